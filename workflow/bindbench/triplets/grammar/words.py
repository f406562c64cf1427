"""Objects and attributes of one example: plausible together, each attribute suiting every object it may be moved to.

Families are drawn evenly and then a word of the family, so that no family dominates (B.3).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
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
        "value appeal", "value condition", "value strength", "value make", "value style", "weight strength",
        "condition strength", "condition cleanliness", "condition finish", "condition age", "condition make",
        "temperature moisture", "age style", "age value", "texture finish", "texture material", "texture moisture",
        "texture cleanliness", "finish material", "finish cleanliness", "finish color", "style make", "style appeal",
        "style pattern", "make material", "make pattern", "color material", "strength material", "weight size",
        "weight material", "temperature material", "cleanliness moisture", "cleanliness appeal", "moisture material",
        "make strength", "make finish", "appeal condition",
    )
)  # fmt: skip
TRIES = 12


class Thing(NamedTuple):
    name: str
    kind: str  # its class
    bit: int
    tokens: frozenset[str]
    words: int


@dataclass(frozen=True)
class Lexicon:
    """things: place kind to its objects. families: family to (adjective, classes it suits). becomes: adjectives one can turn."""

    things: dict[str, tuple[Thing, ...]]
    families: dict[str, tuple[tuple[str, int], ...]]
    becomes: frozenset[str]
    all_classes: int
    suiting: dict[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)


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
        if row["becomes"] == "yes":
            becomes.add(row["adjective"])
    return Lexicon(
        {kind: tuple(found) for kind, found in things.items()},
        {family: tuple(found) for family, found in families.items()},
        frozenset(becomes),
        (1 << len(CLASSES)) - 1,
    )


def suiting(lexicon: Lexicon, family: str, classes: int) -> tuple[str, ...]:
    """The adjectives of a family that suit all of some classes."""
    found = lexicon.suiting.get((family, classes))
    if found is None:
        found = tuple(word for word, suits in lexicon.families[family] if not classes & ~suits)
        lexicon.suiting[family, classes] = found
    return found


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

    longest: the most words of an object.
    """
    count = construction.objects + specification.distractors
    pool = lexicon.things.get(specification.scene_kind) or lexicon.things["home"]
    things: list[Thing] = []
    tokens: set[str] = set(taken)
    for _ in range(TRIES * count):
        thing = pool[int(generator.random() * len(pool))]
        if thing.words <= longest and tokens.isdisjoint(thing.tokens) and not banned(thing.name):
            things.append(thing)
            tokens |= thing.tokens
            if len(things) == count:
                break
    else:
        return None
    queried = things[: construction.objects]
    classes = 0
    for thing in queried:
        classes |= thing.bit
    slots: tuple[str, ...] = ()
    if construction.attributes == 2:
        slots = _slots(lexicon, generator, classes)
        families = [slots] * len(queried)
    else:
        families = [("",)] * len(queried)
    bindings = []
    for thing, wanted in zip(queried, families, strict=True):
        attributes = _attributes(lexicon, generator, wanted, classes, tokens, banned)
        if attributes is None:
            return None
        bindings.append(Binding(attributes, thing.name))
    distractors = []
    for thing in things[construction.objects :]:
        attributes = _attributes(lexicon, generator, ("",), thing.bit, tokens, banned)
        if attributes is None:
            return None
        distractors.append(Binding(attributes, thing.name))
    exact = []
    for binding in (*bindings, *distractors):
        exact += [*binding.attributes, *binding.object.split()]
    return Words(
        tuple(bindings),
        tuple(queried),
        tuple(distractors),
        tuple(things[construction.objects :]),
        slots,
        tuple(word.lower() for word in exact),
    )


def _slots(lexicon: Lexicon, generator: Random, classes: int) -> tuple[str, str]:
    """Two families that go together, in the order in which their words stand before a noun."""
    while True:
        first, second = ORDER[int(generator.random() * len(ORDER))], ORDER[int(generator.random() * len(ORDER))]
        if (
            first != second
            and frozenset((first, second)) not in CLASHES
            and len(suiting(lexicon, first, classes)) > 1
            and len(suiting(lexicon, second, classes)) > 1
        ):
            return (first, second) if ORDER.index(first) < ORDER.index(second) else (second, first)


def _attributes(
    lexicon: Lexicon,
    generator: Random,
    families: tuple[str, ...],
    classes: int,
    tokens: set[str],
    banned: Callable[[str], bool],
) -> tuple[str, ...] | None:
    """One word of each family ("": of any), added to the tokens; None where none is free."""
    found: list[str] = []
    for family in families:
        for _ in range(TRIES):
            words = suiting(lexicon, family or ORDER[int(generator.random() * len(ORDER))], classes)
            if words:
                word = words[int(generator.random() * len(words))]
                folded = word.lower()
                if folded not in tokens and not banned(word):
                    tokens.add(folded)
                    found.append(word)
                    break
        else:
            return None
    return tuple(found)
