"""The scenes that the nano embedder is pretrained on: images of the full renderer, and which object each visual token shows.

    python -m bindbench render-nano-scenes --help

A scene is a set of bindings with two views: two layouts, and for every third binding about another realisation too (other
colours of "striped"). No held-out combination is drawn. The scenes of a block, consecutive numbers, are drawn from a few
objects and attributes: side by side in a training batch they share most of their words, so that words alone tell them
apart with little margin. Every scene has a generator of its own, seeded by its number: a larger data set keeps the scenes
of a smaller one. A shard is two files: <shard>.npy, (scenes, 2, 160, 160, 3) uint8, and a
table of what is on it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from ..errors import UserError
from ..files import progress, written_whole
from ..scenes.materials import check_vocabulary
from ..scenes.relief import ReliefFile, read_reliefs
from ..scenes.render import SceneObject, render_with_owners
from ..tables import NANO_SCENES, write_table
from ..vocabulary import Vocabulary
from .combinations import is_held_out

IMAGE_PX = 160  # what the model sees
RENDERED_PX = 2 * IMAGE_PX  # halved by area, as the processor shrinks the benchmark's larger images
TOKEN_PX = 32  # side of one visual token
SIDE = IMAGE_PX // TOKEN_PX
COVERED = 0.15  # least share of a token's pixels that an object must cover for the token to show it
VIEWS = 2
ATTEMPTS = 10_000
SAME_LOOK = 0.7  # chance that a binding looks the same in both views
BLOCK = 24  # scenes that share their words
BLOCK_WORDS = 5  # objects, and attributes, of a block; scenes of more objects draw the others from the whole vocabulary
# Objects in a scene; the middle sizes are where binding is learnt, the large ones are dear and teach little.
SIZES = {1: 0.14, 2: 0.24, 3: 0.20, 4: 0.17, 5: 0.09, 6: 0.08, 8: 0.05, 10: 0.03}

Slots = tuple[str, ...]


class Scene(NamedTuple):
    """bindings: (attribute, object). looks: of each view the values that fill each attribute's slots."""

    bindings: list[tuple[str, str]]
    looks: list[list[Slots]]


def draw_scene(vocabulary: Vocabulary, seed: int, number: int, n_objects: int | None = None) -> Scene:
    """One scene without a held-out combination; colours that two attributes name never meet in a view.

    n_objects: by default drawn from SIZES. Raises UserError for a vocabulary in which none is found.
    """
    generator = np.random.default_rng([seed, number])
    objects, attributes = list(vocabulary.objects), list(vocabulary.attributes)
    size = n_objects or int(generator.choice(list(SIZES), p=list(SIZES.values())))
    size = min(size, len(objects), len(attributes))
    block = np.random.default_rng([seed, number // BLOCK, 1])
    few_objects = block.permutation(len(objects))[:BLOCK_WORDS]
    few_attributes = block.permutation(len(attributes))[:BLOCK_WORDS]
    for attempt in range(ATTEMPTS):
        # Attributes that never stand together (too few colours for all) fill no scene: the last attempts draw from all.
        everything = attempt >= ATTEMPTS // 2
        things = _drawn(len(objects), [] if everything else few_objects, size, generator)
        kinds = _drawn(len(attributes), [] if everything else few_attributes, size, generator)
        bindings = [(attributes[kind], objects[thing]) for kind, thing in zip(kinds, things, strict=True)]
        if any(is_held_out(*binding) for binding in bindings):
            continue
        first = _looks(vocabulary, bindings, generator, [None] * size)
        if first is None:
            continue
        kept = [look if generator.random() < SAME_LOOK else None for look in first]
        second = _looks(vocabulary, bindings, generator, kept)
        return Scene(bindings, [first, second or first])
    raise UserError(
        f"vocabulary: no scene of {size} objects without a held-out combination was found; lengthen the lists for nano"
    )


def _drawn(total: int, few: Sequence[int], size: int, generator: np.random.Generator) -> list[int]:
    """Size different numbers below total in random order: of the few, and of the others where these do not suffice."""
    chosen = generator.permutation(few)[:size].tolist() if len(few) else []
    others = np.setdiff1d(np.arange(total), few) if size > len(chosen) else np.arange(0)
    chosen += generator.permutation(others)[: size - len(chosen)].tolist()
    return [int(number) for number in generator.permutation(chosen)]


def _looks(
    vocabulary: Vocabulary, bindings: list[tuple[str, str]], generator: np.random.Generator, kept: list[Slots | None]
) -> list[Slots] | None:
    """Slot values of each binding, those kept included, with no palette word twice; None where none was found."""
    for _ in range(20):
        looks, used = [], set()
        for (attribute, _), look in zip(bindings, kept, strict=True):
            choices = vocabulary.realisations[attribute]
            known = [choice for choice in choices if choice[0] == look]
            slots, _, words = known[0] if known else choices[int(generator.integers(len(choices)))]
            if words & used:
                break
            used |= words
            looks.append(slots)
        else:
            return looks
    return None


def render_view(
    scene: Scene, view: int, vocabulary: Vocabulary, reliefs: ReliefFile, layout_seed: str, flipped: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(160, 160, 3) uint8, and (25,) int8: the binding that each visual token shows, row by row, -1 none."""
    things = [
        SceneObject(vocabulary.objects[thing].shape, vocabulary.attributes[attribute].material, slots)
        for (attribute, thing), slots in zip(scene.bindings, scene.looks[view], strict=True)
    ]
    image, owners = render_with_owners(things, reliefs, RENDERED_PX, layout_seed, flipped)
    image = cv2.resize(image, (IMAGE_PX, IMAGE_PX), interpolation=cv2.INTER_AREA)
    return image, token_labels(owners, len(things))


def token_labels(owners: np.ndarray, n_objects: int) -> np.ndarray:
    """owners: (height, height) int8. Returns (25,) int8: of each token the object that covers most of it, or -1."""
    side = len(owners) // SIDE
    cells = owners.reshape(SIDE, side, SIDE, side).swapaxes(1, 2).reshape(SIDE * SIDE, side * side)
    counts = (cells[:, :, None] == np.arange(n_objects, dtype=np.int8)).sum(axis=1)
    return np.where(counts.max(axis=1) >= COVERED * side * side, counts.argmax(axis=1), -1).astype(np.int8)


def render_nano_scenes(
    vocabulary: Vocabulary, reliefs_path: Path, seed: int, numbers: range, pixels: Path, table: Path
) -> None:
    """Draws and renders the scenes of these numbers, and writes both files.

    Raises UserError for a material that the renderer lacks, and as `draw_scene` does.
    """
    check_vocabulary(vocabulary)
    reliefs = read_reliefs(reliefs_path)
    rows = []
    with written_whole(pixels) as temporary, temporary.open("wb") as file:
        shape = (len(numbers), VIEWS, IMAGE_PX, IMAGE_PX, 3)
        header = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for number in progress(numbers, "scenes for nano", unit="scene"):
            scene = draw_scene(vocabulary, seed, number)
            labels = []
            for view in range(VIEWS):
                flipped = bool(np.random.default_rng([seed, number, view]).random() < 0.5)
                layout_seed = f"nano/{seed}/{number}/{view}"
                image, seen = render_view(scene, view, vocabulary, reliefs, layout_seed, flipped)
                file.write(image.tobytes())
                labels.append(seen.tolist())
            attributes, objects = zip(*scene.bindings, strict=True)
            row = {"scene": number, "attributes": list(attributes), "objects": list(objects), "tokens": labels}
            rows.append(row)
    write_table(NANO_SCENES, rows, table)
