"""What the rules look at, and what is worked out between them. None of these steps fails."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from unicodedata import normalize

from ..constructions import Binding, Construction, Proposal, Specification
from ..negatives import attribute_replacements, object_replacements, query_of
from ..sentences import Token, exchange, find, folded, read, starts_sentence

Span = tuple[int, int]
Key = tuple[tuple[str, ...], str]  # a binding, folded
# Kinds of space and of hyphen that say no more than the plain ones.
_PLAIN = str.maketrans({**dict.fromkeys("\t\u00a0\u2007\u2009\u202f", " "), "\u2010": "-", "\u2011": "-"})


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


def mend(draft: Draft) -> str:
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


def split(draft: Draft) -> str:
    draft.tokens, draft.folded = read(draft.positive)
    return ""


def locate(draft: Draft) -> str:
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


def measure(draft: Draft) -> str:
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


def make(draft: Draft) -> str:
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
