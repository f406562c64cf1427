"""The questions of SABER: a query and four candidates each (section 3, A.1 to A.3, A.5).

    python -m bindbench sample-questions --help

Independent questions are drawn one by one; a nested chain starts with its smallest question and adds one binding at each
size. Every question and every chain draws from a generator of its own, seeded by its id: raising a count, or the range
of sizes of independent questions, leaves all earlier questions as they were.
"""

import random
from dataclasses import dataclass
from pathlib import Path

from ..captions import caption
from ..config.questions import Questions
from ..errors import UserError
from ..tables import QUESTIONS, SCENES, write_table
from ..vocabulary import Vocabulary

ATTEMPTS = 10_000
KINDS = ("preserving", "attribute_swap", "object_swap", "joint_swap")


@dataclass(frozen=True)
class Binding:
    """One attribute-object pair with the realisation that all images of its question share."""

    attribute: str
    thing: str
    slots: tuple[str, ...]
    realised: str

    @property
    def pair(self) -> tuple[str, str]:
        return self.attribute, self.thing

    def on(self, thing: str) -> "Binding":
        """The same attribute, realised in the same way, on another object."""
        return Binding(self.attribute, thing, self.slots, self.realised)


@dataclass(frozen=True)
class Look:
    """An attribute as it appears in one question: base form, slot values, generation form, palette words it uses."""

    attribute: str
    slots: tuple[str, ...]
    realised: str
    colours: frozenset[str]

    def on(self, thing: str) -> Binding:
        return Binding(self.attribute, thing, self.slots, self.realised)


def sample_questions(vocabulary: Vocabulary, settings: Questions) -> tuple[list[dict], list[dict]]:
    """Rows of the tables QUESTIONS and SCENES.

    Ordered by index, then N, then subset, so that a larger count appends rows.
    Raises UserError when the vocabulary is too short for the largest scene or its colours cannot be told apart.
    """
    check_size(vocabulary, settings)
    sizes = settings.object_counts
    questions, scenes = [], []
    for index in range(max(settings.independent, settings.nested)):
        chain = f"chain-{index:03d}" if index < settings.nested else None
        drawn = sample_bindings(vocabulary, sizes[-1], _generator(settings, chain)) if chain else []
        for n in sizes:
            if index < settings.independent:
                name = f"independent-{n:02d}-{index:03d}"
                generator = _generator(settings, name)
                bindings = sample_bindings(vocabulary, n, generator)
                _append(questions, scenes, name, "independent", None, bindings, vocabulary, settings, generator)
            if chain:
                name = f"nested-{n:02d}-{index:03d}"
                generator = _generator(settings, name)
                bindings = generator.sample(drawn[:n], n)
                _append(questions, scenes, name, "nested", chain, bindings, vocabulary, settings, generator)
    return questions, scenes


def _generator(settings: Questions, name: str) -> random.Random:
    """Seeded by a text: the Mersenne twister gives the same draws on every machine."""
    return random.Random(f"bindbench/{settings.seed}/{name}")


def check_size(vocabulary: Vocabulary, settings: Questions) -> None:
    largest = settings.object_counts[-1]
    # The two-object rule replaces one element by another from outside the query, so one more of each is needed there.
    needed = max(largest, 3 if 2 in settings.object_counts else 0)
    for what, names in (("objects", vocabulary.objects), ("attributes", vocabulary.attributes)):
        if len(names) < needed:
            raise UserError(
                f"vocabulary: {len(names)} {what} are too few for questions.object_counts (needs {needed} at N = {largest})"
            )


def sample_bindings(
    vocabulary: Vocabulary, n: int, generator: random.Random, key: str = "questions.object_counts"
) -> list[Binding]:
    """N bindings: objects differ, attributes differ, and no palette colour is used by two attributes.

    key: of the config, that asks for N. Raises UserError when the vocabulary's colours do not reach.
    """
    things = generator.sample(list(vocabulary.objects), n)
    for _ in range(ATTEMPTS):
        looks = _sample_looks(vocabulary, n, generator)
        if looks:
            return [look.on(thing) for look, thing in zip(looks, things, strict=True)]
    raise UserError(
        f"vocabulary: no {n} attributes of the list go together without naming a palette colour twice;"
        f" add attributes without colours or lower {key}"
    )


def _sample_looks(vocabulary: Vocabulary, n: int, generator: random.Random) -> list[Look]:
    """Attributes in random order, each taken if a realisation is left whose colours are still free; empty if too few are."""
    looks: list[Look] = []
    used: frozenset[str] = frozenset()
    for attribute in generator.sample(list(vocabulary.attributes), len(vocabulary.attributes)):
        look = sample_look(vocabulary, attribute, used, generator)
        if look:
            looks.append(look)
            used |= look.colours
            if len(looks) == n:
                return looks
    return []


def sample_look(vocabulary: Vocabulary, attribute: str, used: frozenset[str], generator: random.Random) -> Look | None:
    """One of the attribute's realisations that names no used colour, or None when there is none."""
    free = [(slots, form, colours) for slots, form, colours in vocabulary.realisations[attribute] if not colours & used]
    return Look(attribute, *generator.choice(free)) if free else None


def candidates(
    query: list[Binding], vocabulary: Vocabulary, min_moved: int, generator: random.Random
) -> list[tuple[str, list[Binding]]]:
    """Kind and bindings of the four candidates (A.2)."""
    n = len(query)
    first = [query[i] for i in _moving_permutation(n, generator)]
    found = [("preserving", first)]
    taken = {_pairs(first)}
    for kind in KINDS[1:]:
        if n == 2 and kind == "joint_swap":
            found.append(("replacement", _replacement(first, vocabulary, generator)))
            continue
        swapped = _swap(kind, first, taken, min_moved, generator)
        found.append((kind, swapped))
        # With two objects there is one wrong assignment only: candidates 2 and 3 are it, in two orders.
        if n > 2:
            taken.add(_pairs(swapped))
    return found


def _swap(
    kind: str, first: list[Binding], taken: set[frozenset], min_moved: int, generator: random.Random
) -> list[Binding]:
    """Candidate 1 with its attributes, its objects or both permuted, different from every candidate before."""
    n = len(first)
    truth = _pairs(first)
    for _ in range(ATTEMPTS):
        attributes = _moving_permutation(n, generator) if kind != "object_swap" else range(n)
        things = _moving_permutation(n, generator) if kind != "attribute_swap" else range(n)
        swapped = [first[i].on(first[j].thing) for i, j in zip(attributes, things, strict=True)]
        pairs = _pairs(swapped)
        if pairs not in taken and len(truth - pairs) >= min_moved:
            return swapped
    raise UserError(f"questions.min_moved: no third wrong scene found at N = {n} with min_moved = {min_moved}")


def _replacement(first: list[Binding], vocabulary: Vocabulary, generator: random.Random) -> list[Binding]:
    """One binding kept, the object or the attribute of the other replaced by one from outside the query (A.2, N = 2)."""
    changed = generator.randrange(2)
    kept, old = first[1 - changed], first[changed]
    if generator.random() < 0.5:
        outside = [thing for thing in vocabulary.objects if thing not in (kept.thing, old.thing)]
        new = old.on(generator.choice(outside))
    else:
        used = vocabulary.palette_words(kept.realised) | vocabulary.palette_words(old.realised)
        outside = [a for a in vocabulary.attributes if a not in (kept.attribute, old.attribute)]
        for attribute in generator.sample(outside, len(outside)):
            look = sample_look(vocabulary, attribute, used, generator)
            if look:
                new = look.on(old.thing)
                break
        else:
            raise UserError(
                "vocabulary: no attribute is left to replace one of a two-object query without naming a colour twice"
            )
    return [new, kept] if changed == 0 else [kept, new]


def _moving_permutation(n: int, generator: random.Random) -> list[int]:
    """A uniformly drawn permutation of range(n) that is not the identity."""
    while True:
        order = generator.sample(range(n), n)
        if order != list(range(n)):
            return order


def _pairs(bindings: list[Binding]) -> frozenset[tuple[str, str]]:
    return frozenset(binding.pair for binding in bindings)


def _append(questions, scenes, name, subset, chain, query, vocabulary, settings, generator) -> None:
    questions.append({"question": name, "subset": subset, "chain": chain, "n_objects": len(query)})
    truth = _pairs(query)
    rows = [("query", "query", query)]
    for position, (kind, bindings) in enumerate(candidates(query, vocabulary, settings.min_moved, generator), 1):
        rows.append((f"candidate_{position}", kind, bindings))
    for role, kind, bindings in rows:
        scenes.append(
            {
                "scene": f"{name}-{role.replace('candidate_', 'c')}",
                "question": name,
                "role": role,
                "kind": kind,
                "bindings": [
                    {"attribute": b.attribute, "realised": b.realised, "object": b.thing, "slots": list(b.slots)}
                    for b in bindings
                ],
                "caption": caption([b.pair for b in bindings]),
                "generation_caption": caption([(b.realised, b.thing) for b in bindings]),
                "moved": len(truth - _pairs(bindings)),
            }
        )


def write_questions(vocabulary: Vocabulary, settings: Questions, questions_path: Path, scenes_path: Path) -> None:
    """Draws the benchmark and writes its two tables."""
    questions, scenes = sample_questions(vocabulary, settings)
    write_table(QUESTIONS, questions, questions_path)
    write_table(SCENES, scenes, scenes_path)
