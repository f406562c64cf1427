"""LV-MHP-v2: {train,val} with images and parsing_annos, and list/train.txt beside them.

Everyone has a picture of labels, parsing_annos/IMAGE_COUNT_INDEX.png, in which 0 is no part of that person.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ...config.multibind_sources import Source
from .rows import Unusable
from .splits import labels_of, masked_person, rows_of_split, split_folder

NAMED = re.compile(r"(.+)_([0-9]{1,6})_([0-9]{1,6})\.png")


def read_photographs(name: str, source: Source, max_pixels: int) -> Iterator[dict]:
    """Rows of PHOTOGRAPHS by id. Raises UserError for a folder that is missing, and for a list that cannot be read."""
    split, folder = split_folder(name, source, "parsing_annos")
    masks = _masks(folder)

    def people_in(stem: str, width: int, height: int) -> list[dict]:
        return _people(folder, masks.get(stem, []), width, height)

    return rows_of_split(name, source, max_pixels, split / "images", list_files(split), set(masks), people_in)


def list_files(split: Path) -> list[Path]:
    """list/train.txt of the split train; none in copies without it."""
    path = split.parent / "list" / f"{split.name}.txt"
    return [path] if path.is_file() else []


def _masks(folder: Path) -> dict[str, list[tuple[int, int, str]]]:
    """Of each image its masks in order: the number of people in their names, the number of the person, and the file."""
    found: dict[str, list[tuple[int, int, str]]] = {}
    for entry in os.scandir(folder):
        if named := NAMED.fullmatch(entry.name):
            found.setdefault(named[1], []).append((int(named[2]), int(named[3]), entry.name))
    return {stem: sorted(files) for stem, files in found.items()}


def _people(folder: Path, masks: list[tuple[int, int, str]], width: int, height: int) -> list[dict]:
    if not masks:
        return []
    total = masks[0][0]
    if [(count, index) for count, index, _ in masks] != [(total, index) for index in range(1, total + 1)]:
        raise Unusable("missing_mask", f"masks are not numbered from 1 to the same number: {masks[0][2]} and others")
    return [_person(folder / file, index, width, height) for _, index, file in masks]


def _person(mask: Path, index: int, width: int, height: int) -> dict:
    inside = labels_of(mask, width, height) > 0
    if not inside.any():
        raise Unusable("broken_mask", f"{mask.parent.name}/{mask.name}: nobody is in it")
    return masked_person(index, inside)
