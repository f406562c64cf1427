"""The plan of a sentence: opening, core and ending, tried until register, opener, length and distance (B.3) are all met."""

import re
from collections import Counter
from collections.abc import Callable
from itertools import islice, pairwise
from operator import eq
from random import Random

from ..constructions import CONSTRUCTIONS, Proposal, Specification
from .cores import core
from .draft import Draft
from .endings import distract, distractor_words, end_sentence, tell_context
from .openings import open_sentence
from .reading import Grammar
from .words import draw_words

ATTEMPTS = 60  # sentences tried for one specification
ATTEMPTS_PER_WORDS = 20  # with the same objects and attributes
PLACED = 0.5  # chance that the place follows an opening that does not tell it: "Curiously, at the market, ..."
LIGHT = frozenset({"the", "which", "that", "had", "has", "have", "was", "were"})  # these may repeat with what follows
_WORD = re.compile(r"[\w'-]+")


def propose(
    grammar: Grammar, specification: Specification, generator: Random, banned: Callable[[str], bool]
) -> Proposal:
    """The grammar's answer to one specification (B.1), with the controls of B.3. The same generator, the same answer.

    banned: whether a word is at its cap; such words are not drawn. Where no sentence fits all controls, an empty proposal
    is returned, which the validator rejects.
    """
    construction = CONSTRUCTIONS[specification.construction]
    taken = frozenset(_WORD.findall(specification.scene.lower()))
    words = None
    for attempt in range(ATTEMPTS):
        if words is None or attempt % ATTEMPTS_PER_WORDS == 0:
            words = draw_words(
                grammar.lexicon, specification, construction, generator, banned, taken, 1 if attempt else 3
            )
            if words is None:
                continue
            draft = Draft(grammar, specification, construction, words, generator)
        draft.restart(attempt)
        if _write(draft):
            text = finished(draft.pieces)
            if _exact(text, draft):
                return Proposal(words.bindings, text, words.distractors, words.slots)
    return Proposal((), "")


def _write(draft: Draft) -> bool:
    construction, specification = draft.construction, draft.specification
    waiting = distractor_words(draft)
    things = sum(thing.words for thing in draft.words.things)
    least = things + (construction.attributes + 1) * construction.objects
    if construction.attachment == "adjacent":
        least += specification.distance[0] * (construction.objects - 1)
    elif construction.attachment == "predicative":
        least += 2 * specification.distance[0] + 1
    else:
        least += specification.distance[0] + 3
    mode = open_sentence(draft, draft.high - least - waiting)
    if mode is None:
        return False
    spare = draft.high - draft.written - least - waiting
    if mode == "subject" and draft.pieces and spare > 3 and not draft.tight and draft.generator.random() < PLACED:
        comma = draft.pieces[-1].endswith(",")
        if draft.tell_place(spare) and comma:
            draft.add(",", 0)
    opened = draft.pieces[-1].endswith(",") if draft.pieces else False
    if waiting and opened and mode == "subject" and draft.generator.random() < 0.3:
        count = 1 + int(draft.generator.random() * len(draft.words.distractors))
        if not distract(draft, "distractors before", count, draft.high - draft.written - least):
            return False
        waiting = distractor_words(draft)
    if not core(draft, mode, draft.high - draft.written - waiting):
        return False
    return tell_context(draft, mode) and end_sentence(draft)


def finished(pieces: list[str]) -> str:
    """The pieces as one sentence, with its capital, commas and full stop."""
    text = " ".join(pieces)
    text = text.replace(" ,", ",").replace(" ;", ";").replace(",,", ",").replace(",;", ";").rstrip(", ")
    return text[0].upper() + text[1:] + "."


def _exact(text: str, draft: Draft) -> bool:
    """Whether objects, attributes and back-references appear once, no word twice in a row, no phrase twice."""
    found = _WORD.findall(text.lower())
    if any(map(eq, found, islice(found, 1, None))):
        return False
    for word in draft.words.exact:
        if found.count(word) != 1:
            return False
    for reference in draft.references:
        if text.count(reference) != 1:
            return False
    return not _repeats_itself(found)


def _repeats_itself(found: list[str]) -> bool:
    """Whether two words that say something stand together twice: "our guide showed us what our guide had praised"."""
    pairs = list(pairwise(found))
    if len(set(pairs)) == len(pairs):
        return False
    return any(
        count > 1 and len(first) > 2 and len(second) > 4 and first not in LIGHT
        for (first, second), count in Counter(pairs).items()
    )
