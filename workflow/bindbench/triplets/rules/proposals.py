"""Rules of the proposal by itself."""

import re
from functools import lru_cache

from ..constructions import Binding, Proposal
from ..sentences import folded
from .draft import Draft

LONGEST_TEXT = 1000  # characters
LONGEST_PHRASE = 60
MOST_PHRASES = 20
_LETTER = "0-9A-Za-zÀ-ÖØ-Þà-öø-ÿ"
_SINGLE_WORD = re.compile(rf"(?=.*[A-Za-zÀ-ÿ])[{_LETTER}]+(?:[-'’][{_LETTER}]+)*")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_FUNCTION_WORDS = frozenset({"a", "an", "the", "and"})
_SPELLINGS = {"colour": "color"}


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
