"""Scenes of one object, and every phrase that could name one: what the single-object measure shows and asks.

    python -m bindbench sample-single-objects --help

The measure is ours and stands beside SABER as a figure of general retrieval: of an embedder that reads images and texts,
how often is the image of one object closest to its own phrase ("a red cube") among those of all attribute-object
combinations of the vocabulary? It shows what finetuning costs and what LiNeS gives back (C.2) where no large benchmark can
be run. Combinations that the nano embedder saw in its pretraining and those held out of it are drawn and reported apart.
`naming` scores it.
"""

import random
from pathlib import Path

from ..captions import caption
from ..config.single_objects import SingleObjects
from ..nano.combinations import is_held_out
from ..tables import PHRASES, SINGLE_OBJECTS, phrase_id, write_table
from ..vocabulary import Vocabulary
from .questions import sample_look


def phrases_of(vocabulary: Vocabulary) -> list[dict]:
    """Rows of PHRASES: every combination of an attribute and an object in its text form (A.3)."""
    return [
        {
            "phrase": phrase_id(attribute, thing),
            "attribute": attribute,
            "object": thing,
            "caption": caption([(attribute, thing)]),
        }
        for attribute in vocabulary.attributes
        for thing in vocabulary.objects
    ]


def sample_single_objects(vocabulary: Vocabulary, settings: SingleObjects) -> list[dict]:
    """Rows of SINGLE_OBJECTS: no combination twice, those that nano saw first, then the held-out ones.

    Each part is one shuffled list of which the first are taken, so that a larger count changes no earlier scene. Where the
    vocabulary has fewer combinations than asked for, all of them are taken.
    """
    pairs = [(attribute, thing) for attribute in vocabulary.attributes for thing in vocabulary.objects]
    rows = []
    for part, held_out, count in (("seen", False, settings.seen), ("held-out", True, settings.held_out)):
        pool = [pair for pair in pairs if is_held_out(*pair) == held_out]
        _generator(settings.seed, part).shuffle(pool)
        for index, (attribute, thing) in enumerate(pool[:count]):
            scene = f"{part}-{index:05d}"
            rows.append(_row(scene, held_out, attribute, thing, vocabulary, _generator(settings.seed, scene)))
    return rows


def _generator(seed: int, name: str) -> random.Random:
    """Seeded by a text: the Mersenne twister gives the same draws on every machine."""
    return random.Random(f"bindbench/single_objects/{seed}/{name}")


def _row(
    scene: str, held_out: bool, attribute: str, thing: str, vocabulary: Vocabulary, generator: random.Random
) -> dict:
    """One scene; its attribute is realised as in SABER's questions, where one object leaves every colour free."""
    look = sample_look(vocabulary, attribute, frozenset(), generator)
    return {
        "scene": scene,
        "held_out": held_out,
        "bindings": [
            {"attribute": attribute, "realised": look.realised, "object": thing, "slots": list(look.slots)},
        ],
        "generation_caption": caption([(look.realised, thing)]),
    }


def write_single_objects(vocabulary: Vocabulary, settings: SingleObjects, scenes: Path, phrases: Path) -> None:
    """Draws the scenes and writes both tables."""
    write_table(SINGLE_OBJECTS, sample_single_objects(vocabulary, settings), scenes)
    write_table(PHRASES, phrases_of(vocabulary), phrases)
