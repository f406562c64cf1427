"""Fragments: pieces of sentences with their number of words, so that lengths and distances (B.3) are met by construction.

A fragment knows what it needs of the sentence it goes into (things that can be moved, an indoor scene, a drawn weather), as
a set of bits: it fits where no needed bit is missing.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable
from enum import IntFlag
from random import Random
from typing import NamedTuple

TRIES = 6  # draws from a pool before it is taken to hold nothing that fits


class Need(IntFlag):
    """What a fragment may need. Those of FLAGS are written in the files, the others follow from placeholders."""

    movable = 1
    made = 2
    indoor = 4
    outdoor = 8
    two = 16  # exactly two things in the sentence
    adjacent = 32  # attributes stand before their objects
    notime = 64
    noweather = 128
    place = 256
    when = 512
    weather = 1024


FLAGS = ("movable", "made", "indoor", "outdoor", "two", "notime", "noweather", "adjacent")
CONTEXT = {
    "place": Need.place,
    "when": Need.when,
    "weather": Need.weather,
    "sky": Need.weather,
    "weathername": Need.weather,
}
# Words that a placeholder stands for, where that does not depend on the sentence.
_WORDS = {"r": 2, "s": 2, "a": 0, "b": 0, "d": 0} | dict.fromkeys(CONTEXT, 0)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Fragment(NamedTuple):
    """words: words before the first attribute when the fragment has {a}, else all; the binding distance is made of these.
    more: further words, after that. Neither counts attributes, distractors and context. context: context it uses up.
    """

    words: int
    text: str
    needs: int
    more: int
    context: tuple[str, ...]


def fragment(text: str, needs: int = 0) -> Fragment:
    names = _PLACEHOLDER.findall(text)
    context = tuple(dict.fromkeys(name for name in names if name in CONTEXT))
    before, _, after = text.partition("{a}")
    for name in context:
        needs |= CONTEXT[name]
    return Fragment(_count(before), text, int(needs), _count(after), context)


def _count(text: str) -> int:
    """Words of a fragment; placeholders inside a word ("{name}'s") count as the word."""
    words = 0
    for token in text.split():
        names = _PLACEHOLDER.findall(token)
        if names and token.strip(",;:.") == "{" + names[0] + "}":
            words += _WORDS.get(names[0], 1)
        elif token.strip(",;:."):
            words += 1
    return words


class Pool:
    """Fragments sorted by words; a draw takes one of a range of words, each with the same chance."""

    __slots__ = ("fragments", "longest", "starts")

    def __init__(self, fragments: Iterable[Fragment]):
        self.fragments = tuple(sorted(fragments))
        words = [f.words for f in self.fragments]
        self.longest = words[-1] if words else -1
        self.starts = [bisect_left(words, n) for n in range(self.longest + 2)]

    def __len__(self) -> int:
        return len(self.fragments)

    def draw(self, generator: Random, low: int, high: int, available: int) -> Fragment | None:
        """A fragment of low to high words that needs nothing but what is available; None where there seems to be none."""
        if high > self.longest:
            high = self.longest
        if low < 0:
            low = 0
        if high < low:
            return None
        start = self.starts[low]
        span = self.starts[high + 1] - start
        if span <= 0:
            return None
        random, fragments = generator.random, self.fragments
        for _ in range(TRIES):
            found = fragments[start + int(random() * span)]
            if not found.needs & ~available:
                return found
        return None
