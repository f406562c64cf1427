"""Triplets of scenes, for finetuning on images instead of texts (Appendix E): what they show, before they are rendered.

    python -m bindbench sample-image-triplets --help

Our copy of the paper says of Appendix E only that it compares finetuning with text versus images under the same loss; the
rest is ours. An example is a query and three more scenes of the same objects and attributes in the same realised forms: the
positive holds the query's bindings in another layout, the attribute negative has every attribute on another object, the
object negative every object under another attribute. With three objects or more the two negatives are different sets of
bindings; with two there is only one wrong set, which both hold in layouts of their own.

Nothing that is shown here is shown twice: no set of bindings belongs to two examples, nor to a scene of the benchmark, so
that SABER stays unseen and validation examples are unseen in training.
"""

import random
from collections.abc import Collection
from pathlib import Path

from ..config.image_triplets import ImageTriplets
from ..errors import UserError
from ..tables import IMAGE_TRIPLETS, SCENES, TRIPLET_ROLES, read_table, triplet_scene, write_table
from ..vocabulary import Vocabulary
from .questions import Binding, sample_bindings

Pair = tuple[str, str]  # attribute, object
PARTS = ("validation", "train")  # in the order in which they are drawn: more training examples change no other
ATTEMPTS = 1000
KEY = "image_triplets"


def sample_image_triplets(
    vocabulary: Vocabulary,
    settings: ImageTriplets,
    benchmark: Collection[frozenset[Pair]] = (),
    held_out: Collection[Pair] = (),
) -> dict[str, list[dict]]:
    """Rows of IMAGE_TRIPLETS by part. Every example draws from a generator of its own, seeded by its id.

    benchmark: sets of bindings that no scene may hold. held_out: bindings that no scene may hold, for a model that must
    never see them. Raises UserError for a vocabulary too short for so large scenes, or for so many examples.
    """
    _check_size(vocabulary, settings.object_counts[-1])
    taken, held_out = set(benchmark), frozenset(held_out)
    parts: dict[str, list[dict]] = {}
    for part, count in zip(PARTS, (settings.validation_examples, settings.examples), strict=True):
        parts[part] = []
        for index in range(count):
            n = settings.object_counts[index % len(settings.object_counts)]
            scenes = _sample_scenes(f"{part}-{index:05d}", n, vocabulary, settings.seed, taken, held_out)
            taken |= set(map(_pairs, scenes.values()))
            bindings = {role: [_row(binding) for binding in scene] for role, scene in scenes.items()}
            parts[part].append({"example": f"{part}-{index:05d}", "n_objects": n, **bindings})
    return parts


def _check_size(vocabulary: Vocabulary, largest: int) -> None:
    for what, names in (("objects", vocabulary.objects), ("attributes", vocabulary.attributes)):
        if len(names) < largest:
            raise UserError(
                f"vocabulary: {len(names)} {what} are too few for {KEY}.object_counts (needs {largest}); lower it"
            )


def _sample_scenes(
    name: str, n: int, vocabulary: Vocabulary, seed: int, taken: set[frozenset[Pair]], held_out: frozenset[Pair]
) -> dict[str, list[Binding]]:
    """The bindings of the four scenes of one example, by role."""
    generator = random.Random(f"bindbench/{KEY}/{seed}/{name}")
    for _ in range(ATTEMPTS):
        scenes = four_scenes(sample_bindings(vocabulary, n, generator, f"{KEY}.object_counts"), generator)
        sets = set(map(_pairs, scenes.values()))
        if not sets & taken and not any(pairs & held_out for pairs in sets):
            return scenes
    raise UserError(
        f"{KEY}: no further example with N = {n} found that is neither in the benchmark nor drawn already;"
        " lower examples, or lengthen the vocabulary"
    )


def four_scenes(query: list[Binding], generator: random.Random) -> dict[str, list[Binding]]:
    """Query, positive and both negatives, by role."""
    positive = generator.sample(query, len(query))
    attribute_negative = _rebound(positive, deranged(len(query), generator))
    while True:
        order = deranged(len(query), generator)
        object_negative = [binding.on(positive[i].thing) for binding, i in zip(positive, order, strict=True)]
        if len(query) == 2 or _pairs(object_negative) != _pairs(attribute_negative):
            return dict(zip(TRIPLET_ROLES, (query, positive, attribute_negative, object_negative), strict=True))


def _rebound(scene: list[Binding], order: list[int]) -> list[Binding]:
    """The same objects in the same order, each with the attribute of another."""
    return [scene[i].on(binding.thing) for binding, i in zip(scene, order, strict=True)]


def deranged(n: int, generator: random.Random) -> list[int]:
    """A uniformly drawn permutation of range(n) that leaves nothing in its place. n: 2 or more."""
    while True:
        order = generator.sample(range(n), n)
        if all(place != item for place, item in enumerate(order)):
            return order


def _pairs(scene: list[Binding]) -> frozenset[Pair]:
    return frozenset(binding.pair for binding in scene)


def _row(binding: Binding) -> dict:
    names = {"attribute": binding.attribute, "realised": binding.realised, "object": binding.thing}
    return names | {"slots": list(binding.slots)}


def binding_sets(scenes: Path) -> set[frozenset[Pair]]:
    """What the scenes of a benchmark hold, queries and candidates. Raises UserError for a table that is none."""
    rows = read_table(SCENES, scenes)["bindings"].to_pylist()
    return {frozenset((binding["attribute"], binding["object"]) for binding in bindings) for bindings in rows}


def write_image_triplets(
    vocabulary: Vocabulary, settings: ImageTriplets, benchmark: Path, train: Path, validation: Path
) -> None:
    """Draws the examples and writes a table for each part. benchmark: table of scenes that stay unseen."""
    parts = sample_image_triplets(vocabulary, settings, binding_sets(benchmark))
    write_table(IMAGE_TRIPLETS, parts["train"], train)
    write_table(IMAGE_TRIPLETS, parts["validation"], validation)


def scenes_of(examples: list[dict]) -> list[dict]:
    """Rows of IMAGE_TRIPLETS as scenes for `scenes.images.render_shard`, four for each."""
    return [
        {"scene": triplet_scene(row["example"], role), "bindings": row[role]}
        for row in examples
        for role in TRIPLET_ROLES
    ]
