"""What CIHP and LV-MHP-v2 share: a split's folder with photographs, masks by the same names, and a list beside them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ...config.multibind_sources import Source
from ...errors import UserError
from ...people.masks import box_of_mask, encode_mask
from ...people.photographs import Unreadable, read_labels
from .places import SOURCES_KEY, place_of
from .rows import Unusable, ids_of, listed, person, photograph_row, pictures_by_stem

LOSSY = (".jpg", ".jpeg", ".webp")
MOST_NUMBER = 1000  # of a person or a part of a body; a photograph in the place of a mask holds more


def split_folder(name: str, source: Source, masks: str) -> tuple[Path, Path]:
    """The split's folder, and the one in it that holds the masks. Raises UserError for one that is missing."""
    split = place_of(name, "annotations", source.annotations, is_folder=True)
    return split, place_of(name, "annotations", split / masks, is_folder=True)


def rows_of_split(
    name: str,
    source: Source,
    max_pixels: int,
    images: Path,
    lists: list[Path],
    masked: set[str],
    people_in: Callable[[str, int, int], list[dict]],
) -> Iterator[dict]:
    """Rows of PHOTOGRAPHS by id: of the photographs in `lists`, or without lists of all that have a file or a mask.

    images: their folder, where the config names no other. masked: names without suffix that have masks.
    people_in: from a name, a width and a height to people. Raises UserError.
    """
    folder = place_of(name, "images", source.images or images, is_folder=True)
    files = pictures_by_stem(folder)
    stems = sorted({stem for path in lists for stem in listed(name, path)} if lists else {*files, *masked})
    if not stems:
        raise UserError(
            f"{SOURCES_KEY}.{name}.annotations: no photograph in {lists[0] if lists else folder}; correct the path"
        )
    for photograph, stem in list(zip(ids_of(name, stems), stems, strict=True))[: source.limit]:
        path = files.get(stem, folder / f"{stem}.jpg")

        def people_of(width: int, height: int, stem: str = stem) -> list[dict]:
            return people_in(stem, width, height)

        yield photograph_row(photograph, source.kind, path, source.known_licence, max_pixels, people_of)


def labels_of(mask: Path, width: int, height: int) -> np.ndarray:
    """(height, width) integers. Raises Unusable: missing_mask, broken_mask or mask_size."""
    try:
        labels = read_labels(mask, width, height)
        if mask.suffix.lower() in LOSSY:
            raise Unusable(
                "broken_mask", f"{mask.parent.name}/{mask.name}: {mask.suffix} keeps no numbers; save it as PNG"
            )
    except Unreadable as error:
        reason = {"missing_file": "missing_mask", "mask_size": "mask_size"}.get(error.reason, "broken_mask")
        raise Unusable(reason, f"{mask.parent.name}/{mask.name}: {error}") from None
    if labels.min() < 0 or labels.max() > MOST_NUMBER:
        raise Unusable("broken_mask", f"{mask.parent.name}/{mask.name}: holds {labels.min()} to {labels.max()}")
    return labels


def masked_person(number: int, mask: np.ndarray) -> dict:
    """Someone with a (height, width) mask."""
    return person(str(number), box_of_mask(mask), encode_mask(mask))
