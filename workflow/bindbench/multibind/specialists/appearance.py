"""Appearance (Table 2: Qwen3-VL-Embedding): the cosine of an embedder's vectors of the person alone (M-17)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import numpy as np

from ...config.embedders import Embedder
from ...config.multibind_evaluation import AppearanceSpecialist
from .base import Crop, Measure, Specialist
from .embedding import embedder_identity, entry_of, open_embedder
from .similarity import cosines

GREY = 128


def specialist(
    settings: AppearanceSpecialist,
    embedders: Mapping[str, Embedder],
    version: int,
    device: str | None = None,
    threads: int | None = None,
) -> Specialist:
    """embedders: of the config, by name. Raises UserError for one that there is not, or that embeds no images."""
    name = settings.embedder
    entry = entry_of(embedders, name, "appearance.embedder")
    identity = {**embedder_identity(entry, name, version), "grey": GREY}
    return Specialist(
        "appearance", name, identity, partial(_open, entry, name, device, threads), cosines, entry.batch_size
    )


@contextmanager
def _open(entry: Embedder, name: str, device: str | None, threads: int | None) -> Iterator[Measure]:
    embed = open_embedder(entry, name, device, threads)
    yield lambda crops: list(embed([person_alone(crop) for crop in crops]))


def person_alone(crop: Crop) -> np.ndarray:
    """(side, side, 3) uint8: the person before mean grey, in the middle of a square, since embedders cut pictures to squares."""
    height, width = crop.mask.shape
    side = max(height, width)
    top, left = (side - height) // 2, (side - width) // 2
    picture = np.full((side, side, 3), GREY, np.uint8)
    picture[top : top + height, left : left + width][crop.mask] = crop.pixels[crop.mask]
    return picture
