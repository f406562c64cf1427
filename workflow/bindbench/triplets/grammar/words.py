"""Objects and attributes of one example: plausible together, each attribute suiting every object it may be moved to.

Families are drawn evenly and then a word of the family, so that no family dominates (B.3).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from ...errors import UserError
from ..constructions import Binding, Construction, Specification
from ..controls import read_list

CLASSES = (
    "vessel", "container", "furniture", "textile", "clothing", "tool", "machine", "vehicle", "instrument", "paper",
    "ornament", "toy", "food", "plant", "structure", "fixture",
)  # fmt: skip
KINDS = (
    "home", "kitchen", "workshop", "office", "school", "shop", "market", "street", "transport", "farm", "garden", "park",
    "waterfront", "beach", "mountain", "forest", "museum", "theatre", "sports", "industry", "clinic", "camp", "cafe", "hotel",
)  # fmt: skip
MOVABLE = frozenset(CLASSES) - {"structure", "fixture", "plant", "machine", "vehicle"}
MADE = frozenset(CLASSES) - {"food", "plant", "paper"}
# The order of adjectives before a noun: a lovely big old round red French wooden box.
ORDER = (
    "value", "appeal", "size", "weight", "strength", "condition", "cleanliness", "temperature", "moisture", "age", "shape",
    "texture", "color", "pattern", "style", "finish", "origin", "make", "material",
)  # fmt: skip
# Families whose words often contradict, repeat or crowd each other when both describe one thing.
CLASHES = frozenset(
    frozenset(pair.split())
    for pair in (
        "value appeal", "value condition", "value strength", "value style", "weight strength", "condition strength",
        "condition cleanliness", "condition appeal", "temperature moisture", "age style", "texture finish",
        "texture moisture", "texture cleanliness", "finish cleanliness", "style make", "style appeal", "style pattern",
        "cleanliness moisture", "cleanliness appeal", "make strength",
    )
)  # fmt: skip
PARTNERS = {
    first: tuple(second for second in ORDER if second != first and frozenset((first, second)) not in CLASHES)
    for first in ORDER
}
TRIES = 10
FEWEST_THINGS = 20  # of each kind of place
CHOICES = 4  # objects of a place that must suit, for each that is drawn
ALL_CLASSES = (1 << len(CLASSES)) - 1


class Thing(NamedTuple):
    name: str
    kind: str  # its class
    bit: int
    tokens: frozenset[str]
    words: int


@dataclass(frozen=True)
class Lexicon:
    """things: place kind to its objects by class (the class's bit, its objects). families: family to (adjective, bits of the
    classes it suits). becomes: adjectives one can turn.
    """

    things: dict[str, tuple[tuple[int, tuple[Thing, ...]], ...]]
    families: dict[str, tuple[tuple[str, int], ...]]
    becomes: frozenset[str]


class Words(NamedTuple):
    """bindings and distractors with their things; slots: the families, of attr_bundle only."""

    bindings: tuple[Binding, ...]
    things: tuple[Thing, ...]
    distractors: tuple[Binding, ...]
    distracting: tuple[Thing, ...]
    slots: tuple[str, ...]
    exact: tuple[str, ...]  # words that must appear exactly once


def read_lexicon(objects: Path, adjectives: Path) -> Lexicon:
    """Raises UserError that names the file, the row and the fault."""
    bits = {name: 1 << index for index, name in enumerate(CLASSES)}
    things: dict[str, list[Thing]] = {kind: [] for kind in KINDS}
    for number, row in enumerate(read_list(objects, ("object", "class", "places")), 2):
        where = f"{objects}: row {number}: {row['object']}"
        if row["class"] not in bits:
            raise UserError(f"{where}: class {row['class']!r} must be one of {', '.join(CLASSES)}")
        words = row["object"].lower().split()
        thing = Thing(row["object"], row["class"], bits[row["class"]], frozenset(words), len(words))
        for kind in KINDS if row["places"] == "any" else row["places"].split("|"):
            if kind not in things:
                raise UserError(f"{where}: place {kind!r} must be any or one of {', '.join(KINDS)}")
            things[kind].append(thing)
    families: dict[str, list[tuple[str, int]]] = {}
    becomes = set()
    for number, row in enumerate(read_list(adjectives, ("adjective", "family", "suits", "becomes")), 2):
        where = f"{adjectives}: row {number}: {row['adjective']}"
        suits = CLASSES if row["suits"] == "all" else row["suits"].split("|")
        if unknown := [name for name in suits if name not in bits]:
            raise UserError(f"{where}: suits {unknown[0]!r} must be all or one of {', '.join(CLASSES)}")
        if row["family"] not in ORDER:
            raise UserError(f"{where}: family {row['family']!r} must be one of {', '.join(ORDER)}")
        families.setdefault(row["family"], []).append((row["adjective"], sum(bits[name] for name in suits)))
        if row["becomes"] not in ("yes", "no"):
            raise UserError(f"{where}: becomes must be yes or no (got {row['becomes']!r})")
        if row["becomes"] == "yes":
            becomes.add(row["adjective"])
    for kind, found in things.items():
        if len(found) < FEWEST_THINGS:
            raise UserError(f"{objects}: row 1: {len(found)} objects of the place {kind} (needed: {FEWEST_THINGS})")
    if missing := set(ORDER) - families.keys():
        raise UserError(f"{adjectives}: row 1: no adjective of the family {min(missing)}")
    return Lexicon(
        {
            kind: tuple((bit, tuple(t for t in found if t.bit == bit)) for bit in sorted({t.bit for t in found}))
            for kind, found in things.items()
        },
        {family: tuple(found) for family, found in families.items()},
        frozenset(becomes),
    )


class _Draw:
    """One draw of words: what is taken already, and how to draw the next."""

    def __init__(
        self,
        lexicon: Lexicon,
        kind: str,
        generator: Random,
        banned: Callable[[str], bool],
        taken: frozenset[str],
        longest: int,
    ):
        self.families = lexicon.families
        self.things = lexicon.things[kind]
        self.random, self.banned, self.longest = generator.random, banned, longest
        self.tokens = set(taken)

    def choices(self, classes: int) -> int:
        """How many objects of some classes the place has."""
        return sum([len(found) for bit, found in self.things if bit & classes])

    def attribute(self, family: str, classes: int, count: int) -> tuple[str, int] | None:
        """A word of the family ("": of any), and which of the classes it suits: enough for count objects of the place."""
        for _ in range(TRIES):
            words = self.families[family or ORDER[int(self.random() * len(ORDER))]]
            for _ in range(TRIES):
                word, suits = words[int(self.random() * len(words))]
                if word.lower() in self.tokens or self.banned(word):
                    continue
                if self.choices(suits & classes) >= CHOICES * count:
                    self.tokens.add(word.lower())
                    return word, suits & classes
        return None

    def thing(self, classes: int) -> Thing | None:
        """An object of one of the classes."""
        total = self.choices(classes)
        for _ in range(TRIES * 2):
            index = int(self.random() * total)
            for bit, found in self.things:
                if bit & classes:
                    if index < len(found):
                        break
                    index -= len(found)
            thing = found[index]
            if thing.words <= self.longest and self.tokens.isdisjoint(thing.tokens) and not self.banned(thing.name):
                self.tokens |= thing.tokens
                return thing
        return None


def draw_words(
    lexicon: Lexicon,
    specification: Specification,
    construction: Construction,
    generator: Random,
    banned: Callable[[str], bool],
    taken: frozenset[str],
    longest: int,
) -> Words | None:
    """Words of one example, none of them banned or among the taken ones; None where the draw came to nothing.

    Attributes come first, each of a family drawn evenly, then objects of the classes that all of them suit: the other way
    round, families that suit few classes (material) would hardly appear. longest: the most words of an object.
    """
    draw = _Draw(lexicon, specification.scene_kind, generator, banned, taken, longest)
    slots = _slots(generator) if construction.attributes == 2 else ()
    attributes, classes = [], ALL_CLASSES
    for _ in range(construction.objects):
        words = []
        for family in slots or ("",):
            found = draw.attribute(family, classes, construction.objects)
            if found is None:
                return None
            classes = found[1]
            words.append(found[0])
        attributes.append(tuple(words))
    things = [draw.thing(classes) for _ in attributes]
    distractors, distracting = [], []
    for _ in range(specification.distractors):
        found = draw.attribute("", ALL_CLASSES, 1)
        thing = found and draw.thing(found[1])
        if not thing:
            return None
        distractors.append(Binding((found[0],), thing.name))
        distracting.append(thing)
    if None in things:
        return None
    bindings = [Binding(words, thing.name) for words, thing in zip(attributes, things, strict=True)]
    exact = []
    for binding in (*bindings, *distractors):
        exact += [*binding.attributes, *binding.object.split()]
    return Words(
        tuple(bindings),
        tuple(things),
        tuple(distractors),
        tuple(distracting),
        slots,
        tuple(word.lower() for word in exact),
    )


def _slots(generator: Random) -> tuple[str, str]:
    """Two families that go together, in the order in which their words stand before a noun."""
    first = ORDER[int(generator.random() * len(ORDER))]
    partners = PARTNERS[first]
    second = partners[int(generator.random() * len(partners))]
    return (first, second) if ORDER.index(first) < ORDER.index(second) else (second, first)
