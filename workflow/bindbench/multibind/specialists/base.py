"""A specialist: features of a person's crop, or the reason why there are none, and how the features of two are compared."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from ...files import canonical_json, sha256

# Short names of why a specialist has nothing to measure; features.py keeps them by their place in this list, so add at the end.
REASONS = ("no_face", "face_not_read", "no_pose", "few_keypoints", "not_a_number")


@dataclass(frozen=True)
class Crop:
    """The box of a person's mask in a picture (M-17). pixels: (height, width, 3) uint8 RGB; mask: (height, width) bool."""

    pixels: np.ndarray
    mask: np.ndarray


Features = np.ndarray | str  # (d,) float32, or one of REASONS
Measure = Callable[[list[Crop]], list[Features]]


@dataclass(frozen=True)
class Specialist:
    """name: for tables, of what measures. identity: everything that changes its features, for the cache.

    open: loads the models and gives the function that measures up to `batch` crops. Raises UserError for what is missing.
    similarity: of (n, d) and (m, d) features, the (n, m) float64 similarities; 1 for equal ones, NaN where undefined.
    """

    dimension: str
    name: str
    identity: dict
    open: Callable[[], AbstractContextManager[Measure]]
    similarity: Callable[[np.ndarray, np.ndarray], np.ndarray]
    batch: int = 1

    @property
    def fingerprint(self) -> str:
        return sha256(canonical_json({"dimension": self.dimension, **self.identity}))
