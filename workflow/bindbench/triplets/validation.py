"""The validator, which alone decides whether a proposal becomes an example (Appendix B.3 and B.4).

`check` runs the rules of RULES in their order and returns an `Example`, or a `Reject` that carries the name of the first
rule that failed. A proposal comes from a language model: anything may be in it, and no proposal raises an exception. What
can be mended without changing a word is mended first, and always in the same way: white space is normalised, the bindings
and distractors are put into their order of mention, and a word is spelled as the positive spells it mid-sentence.

Frequency caps and duplicates (B.3) depend on the examples accepted before and are checked elsewhere.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from unicodedata import normalize

from .constructions import CONSTRUCTIONS, FEWER, MORE, Binding, Construction, Example, Proposal, Reject, Specification
from .negatives import attribute_replacements, object_replacements, query_of
from .sentences import (
    Token,
    article_errors,
    ends_sentence,
    exchange,
    find,
    folded,
    read,
    starts_sentence,
    word_set,
)

LONGEST_TEXT = 1000  # characters
LONGEST_PHRASE = 60
LONGEST_DETAIL = 120
MOST_PHRASES = 20

NO_FAMILIES: Mapping[str, str] = MappingProxyType({})

Span = tuple[int, int]
Key = tuple[tuple[str, ...], str]  # a binding, folded
ADJACENT, PREDICATIVE = frozenset({"adjacent"}), frozenset({"predicative"})
ANAPHORIC, RESPECTIVE = frozenset({"anaphoric"}), frozenset({"respective"})
DEFERRED = ANAPHORIC | RESPECTIVE
ALL = ADJACENT | PREDICATIVE | DEFERRED

_LETTER = "0-9A-Za-zÀ-ÖØ-Þà-öø-ÿ"
_SINGLE_WORD = re.compile(rf"(?=.*[A-Za-zÀ-ÿ])[{_LETTER}]+(?:[-'’][{_LETTER}]+)*")
# Kinds of space and of hyphen that say no more than the plain ones.
_PLAIN = str.maketrans({**dict.fromkeys("\t\u00a0\u2007\u2009\u202f", " "), "\u2010": "-", "\u2011": "-"})
_PICTURES = re.compile("[\u2300-\u23ff\u2500-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")
_MARKUP = re.compile(r"[*_`~|<>\\{}\[\]=^]")
_HEADING = re.compile(r"#(?!\d)")  # "lot #14" is prose
_LIST_ITEM = re.compile(r"(?:[-+•]|\d+[.)])\s")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_END = re.compile(r"[.!?…][\"'”’)]*$")
_QUOTE_OPENED = re.compile(r"(?:^|[\s(—])'(?!(?:tis|twas|em|til|\d))", re.IGNORECASE)
_QUOTE_CLOSED = re.compile(r"'(?:$|[\s),.;:!?—])")
_QUOTES = frozenset("\"'“”‘’")
_FUNCTION_WORDS = frozenset({"a", "an", "the", "and"})
_SPELLINGS = {"colour": "color"}

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


class Draft:
    """What the rules look at: the proposal, mended, and what was found in it. Each group of rules sees one part more."""

    __slots__ = (
        "attribute_negative", "attribute_positions", "bindings", "construction", "distance", "distractor_spans",
        "distractors", "families", "folded", "keys", "missing", "negative_places", "negative_tokens", "negative_words",
        "object_negative", "object_spans", "positive", "proposal", "query", "slots", "specification", "spelling", "tokens",
    )  # fmt: skip

    construction: Construction
    specification: Specification
    proposal: Proposal  # as it came
    families: Mapping[str, str]
    bindings: tuple[Binding, ...]
    distractors: tuple[Binding, ...]
    slots: tuple[str, ...]
    positive: str
    tokens: list[Token]
    folded: list[str]
    missing: str  # a word that does not appear exactly once
    spelling: str  # a word whose capitals contradict the positive
    object_spans: list[Span]
    attribute_positions: list[tuple[int, ...]]
    keys: list[Key]
    distractor_spans: list[tuple[int, Span]]  # attribute, object
    distance: int
    query: str
    attribute_negative: str
    object_negative: str
    negative_tokens: list[list[Token]]
    negative_words: list[list[str]]
    negative_places: list[list[int]]  # of each queried phrase


# The proposal by itself. A rule returns "" or the words concerned.


def shape(draft: Draft) -> str:
    proposal = draft.proposal
    if not isinstance(proposal, Proposal):
        return f"a {type(proposal).__name__}, no proposal"
    texts = [proposal.positive]
    for field in (proposal.bindings, proposal.distractors, proposal.slots):
        if not isinstance(field, tuple | list):
            return f"a {type(field).__name__}, no list"
    texts += proposal.slots
    for binding in (*proposal.bindings, *proposal.distractors):
        if not isinstance(binding, Binding) or not isinstance(binding.attributes, tuple | list):
            return "no binding of attributes and object"
        texts += binding.attributes
        texts.append(binding.object)
    for text in texts:
        if not isinstance(text, str):
            return f"a {type(text).__name__}, no text"
        if not text.isascii() and _LONE_SURROGATE.search(text):
            return "a lone surrogate"
    return ""


def reasonable_size(draft: Draft) -> str:
    proposal = draft.proposal
    if len(proposal.positive) > LONGEST_TEXT:
        return f"{len(proposal.positive)} characters"
    if len(proposal.bindings) + len(proposal.distractors) + len(proposal.slots) > MOST_PHRASES:
        return f"{len(proposal.bindings)} bindings"
    for binding in (*proposal.bindings, *proposal.distractors):
        if len(binding.attributes) > MOST_PHRASES:
            return f"{len(binding.attributes)} attributes"
        if len(binding.object) > LONGEST_PHRASE:
            return binding.object
        for attribute in binding.attributes:
            if len(attribute) > LONGEST_PHRASE:
                return attribute
    return ""


def binding_count(draft: Draft) -> str:
    return "" if len(draft.bindings) == draft.construction.objects else f"{len(draft.bindings)} bindings"


def attribute_count(draft: Draft) -> str:
    expected = draft.construction.attributes
    for binding in draft.bindings:
        if len(binding.attributes) != expected:
            return f"{len(binding.attributes)} attributes of {binding.object}"
    for binding in draft.distractors:
        if len(binding.attributes) != 1:
            return f"{len(binding.attributes)} attributes of {binding.object}"
    return ""


def single_word_attributes(draft: Draft) -> str:
    for binding in draft.bindings + draft.distractors:
        for attribute in binding.attributes:
            if not _is_word(attribute):
                return attribute or "empty"
    return ""


def object_words(draft: Draft) -> str:
    for binding in draft.bindings + draft.distractors:
        if _is_word(binding.object):
            continue
        words = binding.object.split(" ")
        if len(words) > 3 or not all(_SINGLE_WORD.fullmatch(word) for word in words) or not _is_word(words[-1]):
            return binding.object or "empty"
        if not _FUNCTION_WORDS.isdisjoint(folded(word) for word in words):
            return binding.object
    return ""


def distractor_count(draft: Draft) -> str:
    expected = draft.specification.distractors if draft.construction.distractors else 0
    found = len(draft.distractors)
    return "" if found == expected else f"{found} distractors, {expected} asked for"


def different_slots(draft: Draft) -> str:
    if draft.construction.attributes == 1:
        return ""
    names = {_slot(name) for name in draft.slots}
    if len(draft.slots) != draft.construction.attributes or len(names) != len(draft.slots) or "" in names:
        return ", ".join(draft.slots) or "no slots"
    return ""


def claimed_families(draft: Draft) -> str:
    if draft.construction.attributes == 1:
        return ""
    families = draft.families
    for binding in draft.bindings:
        for attribute, slot in zip(binding.attributes, draft.slots, strict=True):
            family = families.get(attribute) or families.get(attribute.lower())
            if family and _slot(family) != _slot(slot):
                return f"{attribute} is {family}, not {slot}"
    return ""


def distinct_words(draft: Draft) -> str:
    objects, attributes = set(), set()
    of_objects: set[str] = set()
    for binding in draft.bindings + draft.distractors:
        thing = folded(binding.object)
        if thing in objects:
            return binding.object
        objects.add(thing)
        of_objects.update(thing.split(" ") if " " in thing else (thing,))
        for attribute in binding.attributes:
            word = folded(attribute)
            if word in attributes:
                return attribute
            attributes.add(word)
    return "" if attributes.isdisjoint(of_objects) else min(attributes & of_objects)


@lru_cache(maxsize=1 << 14)
def _is_word(word: str) -> bool:
    # An ending 's would be taken for a possessive of the sentence.
    return bool(_SINGLE_WORD.fullmatch(word)) and word[-2:] not in ("'s", "’s") and word.lower() not in _FUNCTION_WORDS


def _slot(name: str) -> str:
    name = name.strip().lower()
    return _SPELLINGS.get(name, name)


# The positive as a piece of writing.


def plain_text(draft: Draft) -> str:
    text = draft.positive
    if not text:
        return "empty"
    if not text.isprintable():
        return f"character {next(c for c in text if not c.isprintable())!r}"
    markup = _MARKUP.search(text) or _LIST_ITEM.match(text) or ("#" in text and _HEADING.search(text))
    if markup:
        return markup.group()
    if "://" in text:
        return "://"
    if not text.isascii() and _PICTURES.search(text):
        return "a picture"
    return "capitals throughout" if text.isupper() or text.istitle() else ""


def closed_quotes(draft: Draft) -> str:
    text = draft.positive
    if text.count('"') % 2:
        return '"'
    for opening, closing in ("()", "“”"):
        if text.count(opening) != text.count(closing) or text.find(closing) < text.find(opening):
            return opening
    if text.count("‘") > text.count("’"):
        return "‘"
    if "'" in text and len(_QUOTE_OPENED.findall(text)) > len(_QUOTE_CLOSED.findall(text)):
        return "'"
    return ""


def end_punctuation(draft: Draft) -> str:
    return "" if _END.search(draft.positive, max(0, len(draft.positive) - 6)) else draft.positive[-20:]


def capital_at_start(draft: Draft) -> str:
    first = draft.tokens[0].word[0] if draft.tokens else ""
    return "" if first.isupper() or first.isdigit() else draft.positive[:20]


def length(draft: Draft) -> str:
    low, high = draft.specification.length
    words = len(draft.tokens)
    return "" if low - FEWER <= words <= high + MORE else f"{words} words, {low}-{high} asked for"


# The words of the bindings in the positive.


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


# The four texts.


def once_in_query(draft: Draft) -> str:
    _, words = read(draft.query)
    for attributes, thing in draft.keys:
        for phrase in (*attributes, thing):
            if words.count(phrase.rsplit(" ", 1)[-1]) != 1:
                return phrase
    return ""


def agreeing_articles(draft: Draft) -> str:
    known = None
    for tokens in draft.negative_tokens:
        errors = article_errors(tokens)
        if errors:
            known = article_errors(draft.tokens) if known is None else known
            for error in known:
                if error in errors:
                    errors.remove(error)
            if errors:
                return errors[0]
    return ""


def same_words(draft: Draft) -> str:
    expected = _multiset(draft.folded)
    for words in draft.negative_words:
        if _multiset(words) != expected:
            return " ".join(words)
    return ""


def _multiset(words: Sequence[str]) -> list[str]:
    return sorted(["a" if word == "an" else word for word in words])


def once_in_negatives(draft: Draft) -> str:
    draft.negative_places = []
    for tokens, words in zip(draft.negative_tokens, draft.negative_words, strict=True):
        places = _places(draft, tokens, words)
        if places is None:
            return " ".join(words)
        draft.negative_places.append(places)
    return ""


def broken_bindings(draft: Draft) -> str:
    """Read from the negatives' own texts: all intended wrong bindings, and of the queried ones none but the kept.

    The n-th queried phrase of a negative plays the role of the positive's n-th.
    """
    specification = draft.specification
    correct, kept, intended = _intended(specification.construction, specification.kept, specification.swapped_slot)
    positive_places: list[int] = []
    for places, (start, _) in zip(draft.attribute_positions, draft.object_spans, strict=True):
        positive_places += (*places, start)
    roles = _in_text_order(positive_places)
    played_by = [0] * len(roles)
    for negative, places in enumerate(draft.negative_places):
        for role, phrase in zip(roles, _in_text_order(places), strict=True):
            played_by[role] = phrase
        expressed = {tuple([played_by[role] for role in binding]) for binding in correct}
        if expressed != intended[negative] or expressed.intersection(correct) != kept:
            return " ".join(draft.negative_words[negative])
    return ""


Numbered = tuple[int, ...]


@lru_cache(maxsize=64)
def _intended(
    construction: str, kept: int, swapped_slot: int
) -> tuple[tuple[Numbered, ...], set[Numbered], tuple[set[Numbered], set[Numbered]]]:
    """The queried bindings, those that stay right, and those of the attribute and of the object negative (B.2).

    Queried phrases are numbered binding by binding, attributes before object; a binding is the tuple of its phrases.
    """
    count, width = CONSTRUCTIONS[construction].objects, CONSTRUCTIONS[construction].attributes + 1
    correct = tuple(tuple(range(index * width, index * width + width)) for index in range(count))
    moved = {index: (index + 1) % count for index in range(count)}
    if construction == "triple_bind_swap":
        first, second = sorted({0, 1, 2} - {kept})
        moved = {first: second, second: first, kept: kept}
    slot = swapped_slot if construction == "attr_bundle" else 0
    wrong_attributes = {
        (*binding[:slot], correct[moved[index]][slot], *binding[slot + 1 :]) for index, binding in enumerate(correct)
    }
    wrong_objects = {(*binding[:-1], correct[moved[index]][-1]) for index, binding in enumerate(correct)}
    stays = {correct[kept]} if construction == "triple_bind_swap" else set()
    return correct, stays, (wrong_attributes, wrong_objects)


def _in_text_order(places: Sequence[int]) -> list[int]:
    return sorted(range(len(places)), key=places.__getitem__)


def _places(draft: Draft, tokens: Sequence[Token], words: Sequence[str]) -> list[int] | None:
    """Where each queried phrase stands; None when one does not appear exactly once."""
    places = []
    for attributes, thing in draft.keys:
        for attribute in attributes:
            if words.count(attribute) != 1:
                return None
            places.append(words.index(attribute))
        span = find(tokens, words, thing)
        if span is None:
            return None
        places.append(span[0])
    return places


def different_texts(draft: Draft) -> str:
    return "" if len({draft.positive, draft.attribute_negative, draft.object_negative}) == 3 else draft.positive


# What is worked out between the rules. None of these fails.


def _mend(draft: Draft) -> str:
    """White space normalised, lists made tuples."""
    proposal = draft.proposal
    text = proposal.positive.strip()
    if not text.isascii() or "\t" in text:
        text = normalize("NFC", text).translate(_PLAIN)
    while "  " in text:
        text = text.replace("  ", " ")
    draft.positive = text
    draft.bindings = tuple([_mended(binding) for binding in proposal.bindings])
    draft.distractors = tuple([_mended(binding) for binding in proposal.distractors])
    draft.slots = tuple([name.strip() for name in proposal.slots])
    return ""


@lru_cache(maxsize=1 << 14)
def _single_spaced(phrase: str) -> str:
    return " ".join(normalize("NFC", phrase).translate(_PLAIN).split())


def _mended(binding: Binding) -> Binding:
    attributes = tuple([_single_spaced(attribute) for attribute in binding.attributes])
    thing = _single_spaced(binding.object)
    if attributes == binding.attributes and thing == binding.object:
        return binding
    return Binding(attributes, thing)


def _split(draft: Draft) -> str:
    draft.tokens, draft.folded = read(draft.positive)
    return ""


def _locate(draft: Draft) -> str:
    """Finds every word, and puts bindings, attributes of a bundle and distractors into their order of mention."""
    draft.missing = draft.spelling = ""
    located = []
    for binding in draft.bindings:
        mention = _mention(draft, binding)
        if mention is None:
            return ""
        located.append((mention[1], mention[0], binding))
    if any(located[index][0] > located[index + 1][0] for index in range(len(located) - 1)):
        located.sort(key=lambda item: item[0])
    draft.object_spans = [span for span, _, _ in located]
    draft.attribute_positions = [places for _, places, _ in located]
    draft.bindings = tuple([binding for _, _, binding in located])
    if draft.construction.attributes == 2 and all(first > second for first, second in draft.attribute_positions):
        draft.attribute_positions = [places[::-1] for places in draft.attribute_positions]
        draft.bindings = tuple([Binding(binding.attributes[::-1], binding.object) for binding in draft.bindings])
        draft.slots = draft.slots[::-1]
    _spell(draft)
    if draft.distractors:
        distractors = []
        for binding in draft.distractors:
            mention = _mention(draft, binding)
            if mention is None:
                return ""
            distractors.append((mention[1], mention[0][0], binding))
        distractors.sort(key=lambda item: item[0])
        draft.distractors = tuple([binding for _, _, binding in distractors])
        draft.distractor_spans = [(place, span) for span, place, _ in distractors]
    draft.missing = _shared_mention(draft)
    return ""


def _shared_mention(draft: Draft) -> str:
    """Words that are part of two objects at once: "mug rack" is no mention of a mug."""
    spans = draft.object_spans
    if draft.distractors:
        spans = sorted(spans + [span for _, span in draft.distractor_spans])
    for (start, stop), (following, end) in pairwise(spans):
        if following < stop:
            return " ".join(draft.folded[start : max(stop, end)])
    return ""


def _mention(draft: Draft, binding: Binding) -> tuple[tuple[int, ...], Span] | None:
    words = draft.folded
    places = []
    for attribute in binding.attributes:
        word = folded(attribute)
        if words.count(word) != 1:
            draft.missing = f"{attribute} appears {words.count(word)} times"
            return None
        place = words.index(word)
        if draft.tokens[place].ending:
            draft.missing = f"{draft.tokens[place].text} is not {attribute}"
            return None
        places.append(place)
    span = find(draft.tokens, words, folded(binding.object))
    if span is None:
        draft.missing = f"{binding.object} does not appear exactly once"
        return None
    return tuple(places), span


def _spell(draft: Draft) -> None:
    """Gives every queried word its spelling in the middle of a sentence: the positive's, where it shows one."""
    title_case = all(
        phrase[0].isupper() for binding in draft.bindings for phrase in (*binding.attributes, binding.object)
    )
    bindings, changed = [], False
    for binding, places, (start, stop) in zip(
        draft.bindings, draft.attribute_positions, draft.object_spans, strict=True
    ):
        attributes = tuple(
            [
                _spelled(draft, place, place + 1, attribute, title_case)
                for place, attribute in zip(places, binding.attributes, strict=True)
            ]
        )
        thing = _spelled(draft, start, stop, binding.object, title_case)
        if attributes != binding.attributes or thing != binding.object:
            binding, changed = Binding(attributes, thing), True
        bindings.append(binding)
    if changed:
        draft.bindings = tuple(bindings)
    draft.keys = [
        (tuple([folded(word) for word in binding.attributes]), folded(binding.object)) for binding in draft.bindings
    ]


def _spelled(draft: Draft, start: int, stop: int, given: str, title_case: bool) -> str:
    if stop - start == 1:
        shown = draft.tokens[start].word
        if shown == given and shown.islower():
            return given
    else:
        inside = [token.word + token.ending for token in draft.tokens[start : stop - 1]]
        shown = " ".join([*inside, draft.tokens[stop - 1].word])
    if "’" in shown or "’" in given:
        given = given.replace("’", "'")
        given = given.replace("'", "’") if "’" in shown else given
    if not shown[0].isupper() or not starts_sentence(draft.tokens, start):
        # The middle of a sentence. "Red" in a list of bindings is the "red" of the text, never the other way round.
        lower = shown.islower() or (shown[0].islower() and shown[1:] == given[1:])
        if shown != given and not lower and shown not in draft.families:
            draft.spelling = f"{shown} for {given}"
        return shown
    lowered = shown[0].lower() + shown[1:]
    if given == lowered:
        return lowered
    if given.lower() != lowered.lower():
        draft.spelling = f"{shown} for {given}"
    elif shown in draft.families or not shown[1:2].islower():  # "Victorian", "X-ray"
        return shown
    elif not title_case and lowered not in draft.families:
        # "Rusty" may be copied from the start of the sentence, "Tudor" not: nothing tells them apart.
        draft.spelling = f"{shown}, in the middle of a sentence"
    return lowered


def _measure(draft: Draft) -> str:
    """The binding distance as B.3 defines it for each kind of construction."""
    places, spans = draft.attribute_positions, draft.object_spans
    if draft.construction.attachment == "adjacent":
        draft.distance = min([places[index + 1][0] - spans[index][1] for index in range(len(spans) - 1)])
    elif draft.construction.attachment == "predicative":
        draft.distance = min(
            [
                place - stop if place >= stop else start - place - 1
                for (place,), (start, stop) in zip(places, spans, strict=True)
            ]
        )
    else:
        draft.distance = min(place for (place,) in places) - max(stop for _, stop in spans)
    return ""


def _make(draft: Draft) -> str:
    specification, bindings = draft.specification, draft.bindings
    draft.query = query_of(bindings, specification.query_order)
    draft.attribute_negative = exchange(
        draft.tokens, attribute_replacements(specification, bindings, draft.attribute_positions)
    )
    draft.object_negative = exchange(draft.tokens, object_replacements(specification, bindings, draft.object_spans))
    # Read anew from the finished texts, so that what is judged is what is written.
    by_attribute, by_object = read(draft.attribute_negative), read(draft.object_negative)
    draft.negative_tokens = [by_attribute[0], by_object[0]]
    draft.negative_words = [by_attribute[1], by_object[1]]
    return ""


@dataclass(frozen=True)
class Rule:
    """A rule, the sentence of the paper it stands for ("" where the rule is ours), and the attachments it applies to."""

    holds: Callable[[Draft], str]
    sentence: str
    attachments: frozenset[str] = ALL

    @property
    def name(self) -> str:
        return self.holds.__name__


_STRUCTURED = "From this structured output, we construct the query and two hard negatives (B.1)."
_DISTINCT = (
    "Attributes are required to be single words, and all objects and attributes must be distinct, each appearing exactly "
    "once in the query, positive, and both negatives, so that all queried bindings are specified unambiguously (B.4)."
)
_DISTRACTORS = (
    "the prompt asks for up to three additional attribute-object pairs that are woven into the sentence but do not appear "
    "in the query (B.3)."
)
_SLOTS = "two objects, each carrying two attributes from different semantic slots (B.2)."
_CAPTION = "the model selects the objects and attributes and writes a contextualized positive caption (B.1)."
_DETACHED = (
    "two objects whose attributes are detached from their nouns through a copula, change-of-state verb, or relative clause "
    '(e.g., "the book was dated") (B.2).'
)
_NOT_ADJACENT = (
    "In the predicative and deferred_bind types, attributes are not adjacent to their objects, so the correct bindings must "
    "be recovered from sentence structure rather than local word co-occurrence (B.2)."
)
_REFERENCE = (
    'the attributes are then assigned by back-reference (e.g., "the former ... the latter" or "the first ... the '
    'second") (B.2).'
)
_JOINTLY = (
    'the attributes are then assigned jointly in noun order (e.g., "... were new and neat respectively"), so the binding '
    "is carried entirely by word order (B.2)."
)
_NEGATIVE = (
    "Each negative must be a word-level permutation of the positive (treating a and an as equivalent) that breaks every "
    "queried binding, introduces all intended incorrect bindings, and remains distinct from both the positive and the other "
    "negative (B.4)."
)

# The order in which the rules run. Steps whose name begins with "_" work something out for the rules after them.
_ORDER: tuple[Rule | Callable[[Draft], str], ...] = (
    Rule(shape, _STRUCTURED),
    Rule(reasonable_size, ""),
    _mend,
    Rule(
        binding_count,
        "seven construction types, which vary the number of attribute-object pairs and the sentence structure (B.2).",
    ),
    Rule(
        attribute_count,
        "two objects, each directly preceded by its attribute (B.2); two objects, each carrying two attributes (B.2).",
    ),
    Rule(single_word_attributes, _DISTINCT),
    Rule(object_words, ""),
    Rule(distractor_count, _DISTRACTORS),
    Rule(different_slots, _SLOTS, ADJACENT),
    Rule(claimed_families, _SLOTS, ADJACENT),
    Rule(distinct_words, _DISTINCT),
    Rule(plain_text, _CAPTION),
    Rule(closed_quotes, _CAPTION),
    Rule(end_punctuation, _CAPTION),
    _split,
    Rule(capital_at_start, _CAPTION),
    Rule(
        length,
        "The target band is specified in the prompt and enforced during validation, allowing one word below and four words "
        "above the band (B.3).",
    ),
    _locate,
    Rule(once_in_positive, _DISTINCT),
    Rule(consistent_capitals, ""),
    Rule(
        attributes_before_object,
        "attributes directly precede their objects in pair_swap, triple_bind, and attr_bundle (B.4).",
        ADJACENT,
    ),
    Rule(
        never_adjacent,
        "are never adjacent to their objects in predicative; and in deferred_bind are never adjacent to their objects (B.4); "
        'The adjacent phrase "<attribute> <object>" may not appear anywhere in the caption (B.2).',
        PREDICATIVE | DEFERRED,
    ),
    Rule(separate_clauses, _DETACHED, PREDICATIVE),
    Rule(linked_attribute, _DETACHED, PREDICATIVE),
    Rule(objects_first, "appear only after both objects have been introduced (B.4).", DEFERRED),
    Rule(no_bare_pronoun, 'Ambiguous references such as a bare "it" or "they" are rejected (B.2).', ANAPHORIC),
    Rule(back_references, _REFERENCE, ANAPHORIC),
    Rule(resolved_references, _REFERENCE, ANAPHORIC),
    Rule(
        described_order,
        "In half of the examples the second object is described first, so the reference must actually be resolved (B.2).",
        ANAPHORIC,
    ),
    Rule(respectively, _JOINTLY, RESPECTIVE),
    Rule(joined_in_noun_order, _JOINTLY, RESPECTIVE),
    Rule(predicated_attribute, _NOT_ADJACENT, PREDICATIVE | DEFERRED),
    Rule(affirmed_attribute, "", PREDICATIVE | DEFERRED),
    _measure,
    Rule(
        binding_distance,
        "The target range is specified in the prompt and enforced during validation (B.3).",
    ),
    Rule(untouched_bindings, _DISTRACTORS),
    Rule(distractors_outside, _DISTRACTORS, DEFERRED),
    Rule(whole_distractors, _DISTRACTORS),
    _make,
    Rule(once_in_query, _DISTINCT),
    Rule(
        agreeing_articles,
        'Article-agreement errors created by a permutation (e.g., "a envelope") are repaired automatically, and any '
        "remaining article error not already present in the positive causes the example to be rejected (B.4).",
    ),
    Rule(same_words, _NEGATIVE),
    Rule(once_in_negatives, _DISTINCT),
    Rule(broken_bindings, _NEGATIVE),
    Rule(different_texts, _NEGATIVE),
)

RULES: dict[str, Rule] = {step.name: step for step in _ORDER if isinstance(step, Rule)}

_STEPS: dict[str, tuple[Callable[[Draft], str], ...]] = {
    name: tuple(
        step.holds if isinstance(step, Rule) else step
        for step in _ORDER
        if not isinstance(step, Rule) or construction.attachment in step.attachments
    )
    for name, construction in CONSTRUCTIONS.items()
}


def check(
    specification: Specification, proposal: Proposal, *, families: Mapping[str, str] = NO_FAMILIES
) -> Example | Reject:
    """What becomes of a proposal: the example, or the name of the first rule of RULES that it fails (B.4).

    families: adjective -> family of the pool, for the slots of attr_bundle; adjectives that it does not hold are accepted.
    A proposal of the wrong types is a `Reject` without proposal, since no table could hold it.
    Raises only for a specification that makes no sense (KeyError, ValueError), a fault of the program.
    """
    draft = Draft()
    draft.specification, draft.proposal, draft.families = specification, proposal, families
    draft.construction = CONSTRUCTIONS[specification.construction]
    for step in _STEPS[specification.construction]:
        detail = step(draft)
        if detail:
            kept = None if step is shape else proposal
            return Reject(specification, kept, step.__name__, detail[:LONGEST_DETAIL])
    return Example(
        specification=specification,
        bindings=draft.bindings,
        query=draft.query,
        positive=draft.positive,
        attribute_negative=draft.attribute_negative,
        object_negative=draft.object_negative,
        distance=draft.distance,
        words=len(draft.tokens),
        distractors=draft.distractors,
        slots=draft.slots,
    )
