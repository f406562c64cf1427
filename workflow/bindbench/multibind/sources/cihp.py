"""CIHP: instance-level_human_parsing/{Training,Validation} with Images, Human_ids, Category_ids, Instance_ids, and a list.

Human_ids/NAME.png holds the number of the person in each pixel, 0 for none. Instance_ids numbers parts of bodies, and
Category_ids says which; neither is needed here.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...config.multibind_sources import Source
from .rows import pictures_by_stem
from .splits import labels_of, masked_person, rows_of_split, split_folder


def read_photographs(name: str, source: Source, max_pixels: int) -> Iterator[dict]:
    """Rows of PHOTOGRAPHS by id. Raises UserError for a folder that is missing, and for a list that cannot be read."""
    split, folder = split_folder(name, source, "Human_ids")
    masks = pictures_by_stem(folder)

    def people_in(stem: str, width: int, height: int) -> list[dict]:
        labels = labels_of(masks.get(stem, folder / f"{stem}.png"), width, height)
        return [masked_person(int(number), labels == number) for number in np.unique(labels) if number]

    return rows_of_split(name, source, max_pixels, split / "Images", list_files(split), set(masks), people_in)


def list_files(split: Path) -> list[Path]:
    """train_id.txt or val_id.txt; none in copies without it."""
    return sorted(split.glob("*_id.txt"))
