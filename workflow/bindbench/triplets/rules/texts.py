"""Rules of the four texts of an example: query, positive and both negatives."""

from collections.abc import Sequence
from functools import lru_cache

from ..constructions import CONSTRUCTIONS
from ..sentences import Token, article_errors, find, read
from .draft import Draft


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
