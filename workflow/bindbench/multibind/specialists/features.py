"""Features of crops, measured once: kept by the picture's content, the mask and everything that the specialist is.

The cache is that of the embeddings (embedders/cache.py), a folder for each specialist: `crop` holds the features, `invalid` the
reasons why there are none. A killed run goes on from there; where all is kept no picture is read and no model loaded.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from ...embedders.cache import Cache
from ...files import canonical_json, progress, sha256
from ...people.masks import box_of_mask, decode_mask
from .base import REASONS, Crop, Features, Specialist


@dataclass(frozen=True)
class Place:
    """A person in a picture. sha256: of the picture's file; mask: run lengths of its size; read: gives its RGB pixels."""

    sha256: str
    height: int
    width: int
    mask: str
    read: Callable[[], np.ndarray]

    @property
    def key(self) -> bytes:
        """Names the crop's content: 32 bytes."""
        return bytes.fromhex(sha256(canonical_json([self.sha256, self.height, self.width, self.mask])))


def crop_of(pixels: np.ndarray, mask: np.ndarray) -> Crop:
    """The mask's own box of a (height, width, 3) picture. mask: (height, width) bool, not empty."""
    x, y, width, height = map(int, box_of_mask(mask))
    part = slice(y, y + height), slice(x, x + width)
    return Crop(pixels[part], mask[part])


def features_of(specialist: Specialist, places: Iterable[Place], root: Path) -> dict[bytes, Features]:
    """Features of each place by its key, or the reason why there are none. root: the folder of all caches.

    Which crops share a batch depends on the places alone, not on their order nor on what is kept.
    """
    distinct = {place.key: place for place in places}
    # Those of one picture follow each other, so that it is read once.
    order = sorted(distinct, key=lambda key: (distinct[key].sha256, key))
    found = Kept(root, specialist)
    kept = found.read(order)
    batches = [order[start : start + specialist.batch] for start in range(0, len(order), specialist.batch)]
    missing = [wanted for batch in batches if (wanted := [key for key in batch if key not in kept])]
    if not missing:
        return kept
    picture = lru_cache(maxsize=1)(lambda digest, read: read())
    try:
        with specialist.open() as measure:
            for keys in progress(missing, f"{specialist.dimension} by {specialist.name}", unit="batch"):
                chosen = [distinct[key] for key in keys]
                crops = [
                    crop_of(picture(place.sha256, place.read), decode_mask(place.mask, place.height, place.width))
                    for place in chosen
                ]
                measured = [checked(features) for features in measure(crops)]
                found.add(keys, measured)
                kept |= dict(zip(keys, measured, strict=True))
    finally:
        found.flush()
    return kept


def checked(features: Features) -> Features:
    """float32 features, or `not_a_number` for those that are none or all zero: they would be compared as if they said something."""
    if isinstance(features, str):
        return features
    values = np.asarray(features, np.float32)
    return values if np.isfinite(values).all() and values.any() else "not_a_number"


class Kept:
    """What a specialist has measured."""

    def __init__(self, root: Path, specialist: Specialist) -> None:
        self._valid = Cache(root, specialist.fingerprint, "crop")
        self._invalid = Cache(root, specialist.fingerprint, "invalid")
        self._valid.record({"dimension": specialist.dimension, "name": specialist.name, **specialist.identity})

    def read(self, keys: list[bytes]) -> dict[bytes, Features]:
        vectors, cached = self._valid.read(keys)
        kept: dict[bytes, Features] = {keys[row]: vectors[row] for row in np.flatnonzero(cached)}
        numbers, cached = self._invalid.read(keys)
        return kept | {keys[row]: REASONS[int(numbers[row, 0])] for row in np.flatnonzero(cached)}

    def add(self, keys: list[bytes], measured: list[Features]) -> None:
        valid = [row for row, features in enumerate(measured) if not isinstance(features, str)]
        invalid = [row for row, features in enumerate(measured) if isinstance(features, str)]
        if valid:
            self._valid.add([keys[row] for row in valid], np.stack([measured[row] for row in valid]))
        if invalid:
            numbers = np.array([[REASONS.index(measured[row])] for row in invalid], np.float32)
            self._invalid.add([keys[row] for row in invalid], numbers)

    def flush(self) -> None:
        self._valid.flush()
        self._invalid.flush()
