"""Which attribute-object combinations the nano embedder never sees in its pretraining.

Membership follows from the two names alone, so that a longer vocabulary changes no combination that was there.
"""

import hashlib
from collections.abc import Iterable

from ..vocabulary import Vocabulary

SHARE = 0.1  # of all combinations
_SCALE = 2**64


def is_held_out(attribute: str, thing: str) -> bool:
    """Whether the combination is kept out of every training image, caption and negative."""
    digest = hashlib.sha256(f"nano/{attribute}/{thing}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < SHARE * _SCALE


def any_held_out(pairs: Iterable[tuple[str, str]]) -> bool:
    """pairs: (attribute, object)."""
    return any(is_held_out(attribute, thing) for attribute, thing in pairs)


def held_out(vocabulary: Vocabulary) -> set[tuple[str, str]]:
    """All (attribute, object) combinations of a vocabulary that are held out, about a tenth."""
    return {
        (attribute, thing)
        for attribute in vocabulary.attributes
        for thing in vocabulary.objects
        if is_held_out(attribute, thing)
    }
