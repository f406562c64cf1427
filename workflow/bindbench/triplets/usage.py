"""Which words the accepted examples of a construction have used: caps, duplicates, avoid lists, suggestions (B.3).

Words are counted apart for each construction, since the caps are fractions of its examples and its duplicates are its own;
constructions can then be made side by side.
"""

import base64
import random
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from hashlib import blake2b

from .constructions import CONSTRUCTIONS, Binding, Guidance

LEAST_CAP = 10  # occurrences
RECENT, FREQUENT = 100, 40  # words of the avoid list
LEAST_USED = 16  # adjectives of each family that a round's prompts draw their suggestions from
SUGGESTED = 4  # adjectives of each family in a prompt
DIGEST_BYTES = 12


class Usage:
    """Counts over the examples of one construction that were accepted so far.

    Memory: a counter for each word and a digest for each example.
    """

    def __init__(self, construction: str):
        self.construction = CONSTRUCTIONS[construction]
        self.accepted = 0
        self.counts: Counter[str] = Counter()
        self.recent: OrderedDict[str, None] = OrderedDict()
        self._sets: set[bytes] = set()

    @property
    def cap(self) -> int:
        """The most examples that may hold one word now: the larger of ten and the fraction of those accepted."""
        return max(LEAST_CAP, int(self.construction.cap_fraction * self.accepted))

    def is_banned(self, word: str) -> bool:
        return self.counts[word.lower()] >= self.cap

    def refusal(self, bindings: tuple[Binding, ...]) -> tuple[str, str] | None:
        """Name of the rule that the words break, and the words; None when they may be used."""
        if set_of(bindings) in self._sets:
            return "duplicate_set", " ".join(sorted(words_of(bindings)))
        for word in words_of(bindings):
            if self.is_banned(word):
                return "word_at_cap", word
        return None

    def add(self, bindings: tuple[Binding, ...]) -> None:
        """Counts an accepted example."""
        self.accepted += 1
        self._sets.add(set_of(bindings))
        for word in words_of(bindings):
            self.counts[word] += 1
            self.recent[word] = None
            self.recent.move_to_end(word)
        while len(self.recent) > RECENT:
            self.recent.popitem(last=False)

    def guidance(self, families: Mapping[str, str], draw: random.Random) -> Guidance:
        """What the prompts of a round say about words. families: adjective of the pool to its family; draw: breaks ties.

        Its suggestions are the LEAST_USED of each family; `suggested` draws those of one prompt from them.
        """
        cap = self.cap
        banned = sorted(word for word, count in self.counts.items() if count >= cap)
        ranked = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        frequent = [word for word, _ in ranked if self.counts[word] < cap][:FREQUENT]
        avoid = dict.fromkeys([*reversed(self.recent), *frequent])
        members: dict[str, list[str]] = {}
        for adjective, family in families.items():
            if self.counts[adjective.lower()] < cap:
                members.setdefault(family, []).append(adjective)
        suggestions = {
            family: tuple(sorted(words, key=lambda word: (self.counts[word.lower()], draw.random()))[:LEAST_USED])
            for family, words in members.items()
        }
        return Guidance(tuple(word for word in avoid if self.counts[word] < cap), tuple(banned), suggestions)

    def to_json(self) -> dict:
        return {
            "construction": self.construction.name,
            "accepted": self.accepted,
            "counts": dict(sorted(self.counts.items())),
            "recent": list(self.recent),
            "sets": base64.b64encode(b"".join(sorted(self._sets))).decode(),
        }

    @classmethod
    def from_json(cls, value: dict) -> "Usage":
        """Raises ValueError, KeyError or TypeError for what `to_json` does not write."""
        usage = cls(value["construction"])
        usage.accepted = whole_number(value["accepted"])
        usage.counts = Counter({word: whole_number(count) for word, count in value["counts"].items()})
        usage.recent = OrderedDict.fromkeys(value["recent"])
        digests = base64.b64decode(value["sets"], validate=True)
        if len(digests) % DIGEST_BYTES or len(digests) > usage.accepted * DIGEST_BYTES:
            raise ValueError(f"{len(digests)} bytes are not the sets of {usage.accepted} examples")
        usage._sets = {digests[start : start + DIGEST_BYTES] for start in range(0, len(digests), DIGEST_BYTES)}
        return usage


def whole_number(value) -> int:
    """Raises ValueError for anything but 0, 1, 2, ..."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no whole number")
    return value


def suggested(guidance: Guidance, draw: random.Random) -> Guidance:
    """The guidance of one prompt: SUGGESTED adjectives of each family, so that the prompts of a round differ."""
    suggestions = {
        family: tuple(draw.sample(words, min(SUGGESTED, len(words)))) for family, words in guidance.suggestions.items()
    }
    return Guidance(guidance.avoid, guidance.banned, suggestions)


def words_of(bindings: Iterable[Binding]) -> list[str]:
    """Attributes and objects, lower case, in order."""
    return [word.lower() for binding in bindings for word in (*binding.attributes, binding.object)]


def set_of(bindings: Iterable[Binding]) -> bytes:
    """A digest of the complete set of attributes and objects: equal for examples that only bind them otherwise."""
    return blake2b("\n".join(sorted(words_of(bindings))).encode(), digest_size=DIGEST_BYTES).digest()
