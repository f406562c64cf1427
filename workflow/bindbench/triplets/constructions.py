"""The seven constructions (B.2), and what travels between sampling, backends and validation.

A `Specification` says what is wanted of one example, a backend answers with a `Proposal`, and the validator makes an
`Example` or a `Reject` of it. Nothing here reads a file.
"""

from dataclasses import dataclass, field
from typing import Literal

Attachment = Literal["adjacent", "predicative", "anaphoric", "respective"]
Range = tuple[int, int]  # both ends belong to it


@dataclass(frozen=True)
class Construction:
    """How many bindings an example has, and how the sentence expresses them.

    attachment: adjacent (attributes directly before the object), predicative (copula, change of state, relative clause),
        anaphoric and respective (both objects first, then the attributes by back-reference or jointly in noun order).
    distractors: whether further attribute-object pairs may be woven in (B.3).
    """

    name: str
    objects: int
    attributes: int  # of each object
    attachment: Attachment
    distractors: bool

    @property
    def deferred(self) -> bool:
        return self.attachment in ("anaphoric", "respective")

    @property
    def cap_fraction(self) -> float:
        """Part of the accepted examples that may hold one word (B.3): 1.5 % for every two attributes of an example."""
        return 0.015 * self.objects * self.attributes / 2


CONSTRUCTIONS: dict[str, Construction] = {
    c.name: c
    for c in (
        Construction("pair_swap", 2, 1, "adjacent", True),
        Construction("triple_bind_cycle", 3, 1, "adjacent", False),
        Construction("triple_bind_swap", 3, 1, "adjacent", False),
        Construction("attr_bundle", 2, 2, "adjacent", False),
        Construction("predicative", 2, 1, "predicative", True),
        Construction("deferred_bind_anaphoric", 2, 1, "anaphoric", True),
        Construction("deferred_bind_respective", 2, 1, "respective", True),
    )
}
DEFERRED = tuple(name for name, c in CONSTRUCTIONS.items() if c.deferred)

# Target lengths in words (B.3). Three-object constructions shift a band upward by 2 to 4 words; the deferred ones use the
# three longer bands. A sentence may be one word shorter or four words longer than its band.
LENGTH_BANDS: tuple[Range, ...] = ((10, 15), (16, 22), (23, 30), (31, 42))
SHIFTS = (2, 3, 4)
FEWER, MORE = 1, 4
MOST_DISTRACTORS = 3

# Windows of the binding distance in words (B.3). The paper gives the ends, 0-2 to 14-26 for two objects and up to 7-13 for
# three; the steps between, and the windows of the other constructions, are ours.
WINDOWS: dict[str, tuple[Range, ...]] = {
    "adjacent_two": ((0, 2), (3, 5), (6, 9), (10, 13), (14, 26)),
    "adjacent_three": ((0, 2), (3, 6), (7, 13)),
    "predicative": ((1, 2), (3, 5), (6, 9), (10, 14)),
    "anaphoric": ((3, 6), (7, 11), (12, 18)),
    "respective": ((1, 5), (6, 10), (11, 18)),
}


def windows_of(construction: Construction) -> tuple[Range, ...]:
    if construction.attachment == "adjacent":
        return WINDOWS["adjacent_three" if construction.objects == 3 else "adjacent_two"]
    return WINDOWS[construction.attachment]


@dataclass(frozen=True)
class Binding:
    """Attributes (one, or two in attr_bundle) of one object. Spelled as in the middle of a sentence: "red", "Victorian"."""

    attributes: tuple[str, ...]
    object: str


@dataclass(frozen=True)
class Specification:
    """The controls drawn for one example (B.3), each independently and from its own seed.

    scene: a place with its preposition, "at a roadside fruit stand". time_of_day, weather: names, or "" for none.
    register, opener: names. length: target words, shift included. distance: target window of the binding distance.
    distractors: how many further pairs are asked for. reversed: anaphoric, the second object is described first.
    kept: triple_bind_swap, index of the pair that stays right in both negatives. swapped_slot: attr_bundle, index of the
    attribute slot that the attribute negative exchanges. query_order: permutation of the bindings for the query.
    """

    construction: str
    index: int
    scene: str
    scene_kind: str
    time_of_day: str
    weather: str
    register: str
    opener: str
    length: Range
    distance: Range
    distractors: int = 0
    reversed: bool = False
    kept: int = 0
    swapped_slot: int = 0
    query_order: tuple[int, ...] = (0, 1)


@dataclass(frozen=True)
class Proposal:
    """What a backend says: the bindings, in the order in which their objects are mentioned, and the positive sentence.

    slots: attr_bundle, the names of the two semantic slots (such as color and material), in the order of each binding's
        attributes. distractors: further pairs in the sentence that the query does not ask about.
    """

    bindings: tuple[Binding, ...]
    positive: str
    distractors: tuple[Binding, ...] = ()
    slots: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guidance:
    """What a backend is told about the words of the accepted examples (B.3).

    avoid: recent and frequent words, better left out. banned: words at their cap, which would be rejected. suggestions: by
    family, its least-used adjectives below their cap.
    """

    avoid: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()
    suggestions: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Example:
    """An accepted structure: four texts that differ only in their bindings. distance, words: as measured."""

    specification: Specification
    bindings: tuple[Binding, ...]
    query: str
    positive: str
    attribute_negative: str
    object_negative: str
    distance: int
    words: int
    distractors: tuple[Binding, ...] = ()
    slots: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reject:
    """Why a proposal is not an example. reason: the name of the rule; detail: the words concerned."""

    specification: Specification
    proposal: Proposal | None
    reason: str
    detail: str = field(default="")
