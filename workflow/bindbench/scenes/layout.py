"""Where the objects of a scene stand (SABER, section 3: freely scattered): seeded, apart from each other, whole.

Everything is measured in shares of the image's side, so that one seed gives the same layout at every resolution.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

GAP = 0.028  # between the rectangles of two objects
EDGE = 0.03  # between an object and the frame
HALO = 0.13  # reach of a halo, as a share of the object's longer side; every object keeps it free at the frame
TOP, BOTTOM = 0.04, 0.95  # the floor that objects stand on
TRIES = 64  # positions tried for one object before all objects shrink
SHRINK = 0.985


@dataclass(frozen=True)
class Place:
    """x: middle of the object. foot: its lowest point. size: its longer side. Shares of the image's side, y downwards."""

    x: float
    foot: float
    size: float


def _generator(seed: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big")))


def is_flipped(seed: int, scene: str, probability: float) -> bool:
    """Whether the image of a scene is mirrored (A.4): one draw for each scene, from its id and the seed alone."""
    return bool(_generator(f"{seed}/{scene}/flip").random() < probability)


def scatter(aspects: list[tuple[float, float]], seed: str) -> list[Place]:
    """Places for objects whose width and height are given, the longer one 1.

    Objects farther up the image are farther away, and a little smaller. Big objects are placed first; when one finds no
    room, all become smaller and start again, which must end.
    """
    generator = _generator(seed)
    # thin objects would look lost and square ones huge, if the longer side alone were the same
    bulk = [min(1.25, max(0.85, (width * height) ** -0.28)) for width, height in aspects]
    order = sorted(range(len(aspects)), key=lambda i: -aspects[i][0] * aspects[i][1] * bulk[i] ** 2)
    size = 0.62 / np.sqrt(len(aspects)) + 0.035
    while True:
        places = _try(aspects, bulk, order, size, generator)
        if places is not None:
            return places
        size *= SHRINK


def _try(aspects, bulk, order, size: float, generator: np.random.Generator) -> list[Place] | None:
    places: list[Place | None] = [None] * len(order)
    taken = np.empty((0, 4))  # middle x, middle y, width, height
    for index in order:
        across, near = generator.random((2, TRIES))
        sizes = size * bulk[index] * (0.86 + 0.26 * near)
        width, height = aspects[index][0] * sizes, aspects[index][1] * sizes
        margin = np.maximum(EDGE, HALO * sizes)
        left, right = width / 2 + margin, 1 - width / 2 - margin
        top, bottom = height + np.maximum(TOP, margin), np.minimum(BOTTOM, 1 - margin)
        x, foot = left + (right - left) * across, top + (bottom - top) * near
        y = foot - height / 2
        apart = (np.abs(x[:, None] - taken[:, 0]) > (width[:, None] + taken[:, 2]) / 2 + GAP) | (
            np.abs(y[:, None] - taken[:, 1]) > (height[:, None] + taken[:, 3]) / 2 + GAP
        )
        fits = apart.all(axis=1) & (left <= right) & (top <= bottom)
        if not fits.any():
            return None
        first = int(np.argmax(fits))
        places[index] = Place(float(x[first]), float(foot[first]), float(sizes[first]))
        taken = np.vstack([taken, [x[first], y[first], width[first], height[first]]])
    return places
