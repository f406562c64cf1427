"""Rules of the words of the bindings in the positive."""

from ..sentences import ends_sentence, word_set
from .draft import Draft

_QUOTES = frozenset("\"'“”‘’")

# Predicative: words that link an attribute to its object from a distance.
COPULAS = word_set(
    "is was are were be been being am look looks looked looking seem seems seemed seeming appear appears appeared appearing "
    "feel feels felt feeling smell smells smelled smelling sound sounds sounded sounding taste tastes tasted tasting remain "
    "remains remained remaining stay stays stayed staying prove proves proved proven proving they're"
)
CHANGES_OF_STATE = word_set(
    "become becomes became becoming turn turns turned turning grow grows grew grown growing go goes went gone going get gets "
    "got gotten getting run runs ran running fall falls fell fallen falling come comes came coming"
)
RELATIVES = word_set("which that who whose")
LINKS = COPULAS | CHANGES_OF_STATE | RELATIVES
_CONTRACTED_AFTER = word_set("it he she there what here")  # "and it's red"; "that's" holds a relative anyway
# "The mug's now red" is a contraction, "the mug's handle ..." a possessive: only these stand between 's and an attribute.
_ADVERBS = word_set("now still already quite rather very so too as all just almost nearly again")
NEGATIONS = word_set(
    "no not never neither nor hardly scarcely barely without cannot isn't wasn't aren't weren't ain't don't doesn't didn't "
    "won't wouldn't can't couldn't hasn't hadn't haven't shouldn't"
)
# An attribute after one of these belongs to a noun that follows ("near the old door", "with red paint").
NOUN_AHEAD = RELATIVES | word_set(
    "a an the this these those my your his her its our their some any each every another of with in on at by from under near "
    "beside behind beyond onto into between over against beneath above below toward towards through across along"
)
# Deferred, anaphoric: what refers back to the first and to the second object, each after "the".
CUES: tuple[tuple[frozenset[str], frozenset[str]], ...] = (
    (frozenset({"former"}), frozenset({"latter"})),
    (
        frozenset({"first", "first-named", "first-mentioned", "first-listed"}),
        frozenset({"second", "second-named", "second-mentioned", "second-listed"}),
    ),
)
BARE_PRONOUNS = word_set("it they them its their theirs they're they've they'd they'll it'd it'll")
MOST_WORDS_BETWEEN_JOINED = 3  # "new and rather neat"
FARTHEST_RESPECTIVELY = 6  # words from the attributes: "new and neat in the owner's own words, respectively"


def once_in_positive(draft: Draft) -> str:
    return draft.missing


def consistent_capitals(draft: Draft) -> str:
    return draft.spelling


def attributes_before_object(draft: Draft) -> str:
    for binding, places, (start, _) in zip(draft.bindings, draft.attribute_positions, draft.object_spans, strict=True):
        together = places == tuple(range(start - len(places), start))
        # "red, mug" are two phrases; the attributes of a bundle may have a comma between them.
        trailing = draft.tokens[places[-1]].trailing
        if not together or not _QUOTES.issuperset(trailing) or not _QUOTES.issuperset(draft.tokens[start].leading):
            return f"{' '.join(binding.attributes)} {binding.object}"
        if len(places) > 1 and draft.tokens[places[0]].trailing not in ("", ","):
            return f"{' '.join(binding.attributes)} {binding.object}"
    return ""


def never_adjacent(draft: Draft) -> str:
    for places in draft.attribute_positions:
        for start, stop in draft.object_spans:
            if places[0] + 1 == start or places[0] == stop:
                first, last = min(places[0], start), max(places[0] + 1, stop)
                return " ".join(draft.folded[first:last])
    return ""


def separate_clauses(draft: Draft) -> str:
    (first_start, first_stop), (second_start, second_stop) = (
        (min(start, places[0]), max(stop, places[0] + 1))
        for (start, stop), places in zip(draft.object_spans, draft.attribute_positions, strict=True)
    )
    return "" if first_stop <= second_start or second_stop <= first_start else "the two predications overlap"


def linked_attribute(draft: Draft) -> str:
    for binding, (start, stop), (place,) in zip(
        draft.bindings, draft.object_spans, draft.attribute_positions, strict=True
    ):
        begin, end = (stop, place) if place >= stop else (place + 1, start)
        if not _linked(draft, begin, end):
            return f"no link between {binding.object} and {binding.attributes[0]}"
        # The word before the end of the stretch also must not end a sentence: the link would have another subject.
        last = begin - 1
        for token in draft.tokens[last:end]:
            if token.trailing and ends_sentence(token):
                return f"a sentence ends between {binding.object} and {binding.attributes[0]}"
    return ""


def _linked(draft: Draft, begin: int, end: int) -> bool:
    words = draft.folded[begin:end]
    if not LINKS.isdisjoint(words):
        return True
    if any(token.ending and token.folded in _CONTRACTED_AFTER for token in draft.tokens[begin:end]):
        return True
    contracted = draft.tokens[begin - 1].ending
    return bool(contracted) and all(word in _ADVERBS or word.endswith("ly") for word in words)


def affirmed_attribute(draft: Draft) -> str:
    for places in draft.attribute_positions:
        before = draft.folded[max(0, places[0] - 3) : places[0]]
        if not NEGATIONS.isdisjoint(before):
            return " ".join([*before, draft.folded[places[0]]])
    return ""


def predicated_attribute(draft: Draft) -> str:
    """An attribute is said of its object, not put before another noun; "a dated one" is said of its object too."""
    words = draft.folded
    for (place,) in draft.attribute_positions:
        if place == 0 or draft.tokens[place - 1].ending:  # "that's blue"
            continue
        if words[place - 1] in NOUN_AHEAD and words[place + 1 : place + 2] != ["one"]:
            return " ".join(words[place - 1 : place + 2])
    return ""


def objects_first(draft: Draft) -> str:
    last = max(stop for _, stop in draft.object_spans)
    for places in draft.attribute_positions:
        if places[0] < last:
            return draft.folded[places[0]]
    return ""


def no_bare_pronoun(draft: Draft) -> str:
    first = min(start for start, _ in draft.object_spans)
    last = max(places[0] for places in draft.attribute_positions)
    found = BARE_PRONOUNS.intersection(draft.folded[first:last])
    return min(found) if found else ""


def back_references(draft: Draft) -> str:
    return "" if _cues(draft) else "no pair of back-references, or an ambiguous one"


def resolved_references(draft: Draft) -> str:
    (first,), (second,) = draft.attribute_positions
    to_first, to_second = _cues(draft)
    marks = sorted(((first, "first"), (second, "second"), (to_first, "to first"), (to_second, "to second")))
    names = [name for _, name in marks]
    # The reference stands before its attribute ("the former red, the latter blue") in both halves, or after it in both.
    pairs = {(names[0], names[1]), (names[2], names[3])}
    if pairs in _RESOLVED:
        return ""
    return " ".join(draft.folded[marks[0][0] : marks[3][0] + 1])


_RESOLVED = (
    {("to first", "first"), ("to second", "second")},
    {("first", "to first"), ("second", "to second")},
)


def described_order(draft: Draft) -> str:
    (first,), (second,) = draft.attribute_positions
    if (second < first) == draft.specification.reversed:
        return ""
    return "the second object is described first" if second < first else "the first object is described first"


def _cues(draft: Draft) -> tuple[int, int] | None:
    """Positions of the one reference to the first and the one to the second object, after both objects."""
    words = draft.folded
    after = max(stop for _, stop in draft.object_spans)
    for to_first, to_second in CUES:
        first = [i for i in range(after, len(words)) if words[i] in to_first and words[i - 1] == "the"]
        second = [i for i in range(after, len(words)) if words[i] in to_second and words[i - 1] == "the"]
        if first or second:
            return (first[0], second[0]) if len(first) == len(second) == 1 else None
    return None


def respectively(draft: Draft) -> str:
    if draft.folded.count("respectively") != 1:
        return "no single respectively"
    after = max(stop for _, stop in draft.object_spans)
    place = draft.folded.index("respectively")
    if place < after:
        return "respectively before the objects"
    attributes = [places[0] for places in draft.attribute_positions]
    first, last = min(attributes), max(attributes)
    if max(first - place, place - last) > FARTHEST_RESPECTIVELY:
        return " ".join(draft.folded[min(first, place) : max(last, place) + 1])
    if any(ends_sentence(token) for token in draft.tokens[min(first, place) : max(last, place)]):
        return "respectively in another sentence"
    return ""


def joined_in_noun_order(draft: Draft) -> str:
    (first,), (second,) = draft.attribute_positions
    if draft.folded[first + 1 : first + 2] == ["and"] and 2 <= second - first <= 1 + MOST_WORDS_BETWEEN_JOINED:
        return ""
    return " ".join(draft.folded[min(first, second) : max(first, second) + 1])


def binding_distance(draft: Draft) -> str:
    low, high = draft.specification.distance
    return "" if low <= draft.distance <= high else f"{draft.distance} words, {low}-{high} asked for"


def untouched_bindings(draft: Draft) -> str:
    """No word of a distractor stands beside a queried one."""
    if not draft.distractors:
        return ""
    queried = [(places[0], places[-1] + 1) for places in draft.attribute_positions] + draft.object_spans
    starts, stops = {start for start, _ in queried}, {stop for _, stop in queried}
    for attribute, span in draft.distractor_spans:
        for first, last in ((attribute, attribute + 1), span):
            if last in starts or first in stops:
                return " ".join(draft.folded[max(0, first - 1) : last + 1])
    return ""


def distractors_outside(draft: Draft) -> str:
    """None between the first queried object and the last queried attribute, where references are resolved."""
    if not draft.distractors:
        return ""
    begin = min(start for start, _ in draft.object_spans)
    end = max(places[0] for places in draft.attribute_positions)
    for attribute, (start, stop) in draft.distractor_spans:
        for first, last in ((attribute, attribute + 1), (start, stop)):
            if begin <= first < end:
                return " ".join(draft.folded[first:last])
    return ""


def whole_distractors(draft: Draft) -> str:
    """No queried word between the attribute and the object of a distractor."""
    if not draft.distractors:
        return ""
    queried = [place for places in draft.attribute_positions for place in places]
    queried += [start for start, _ in draft.object_spans]
    for attribute, (start, _) in draft.distractor_spans:
        first, last = min(attribute, start), max(attribute, start)
        if any(first < place < last for place in queried):
            return " ".join(draft.folded[first : last + 1])
    return ""
