"""A plain folder of photographs and its subfolders; who is in them is not known yet."""

import os
from collections.abc import Iterator
from pathlib import Path

from ...config.multibind_sources import Source
from ...errors import UserError
from ...people.photographs import SUFFIXES
from .places import SOURCES_KEY, place_of
from .rows import ids_of, photograph_row, pictures_in


def read_photographs(name: str, source: Source, max_pixels: int) -> Iterator[dict]:
    """Rows of PHOTOGRAPHS by path, without people. Raises UserError for a folder that is missing or holds no photograph."""
    folder = place_of(name, "images", source.images, is_folder=True)
    return rows_of_folder(name, source, folder, max_pixels)


def rows_of_folder(name: str, source: Source, folder: Path, max_pixels: int) -> Iterator[dict]:
    """Rows of everything in a folder that is a picture by its suffix."""
    found = {path.relative_to(folder).as_posix(): path for path in pictures_in(folder)}
    if not found:
        raise UserError(
            f"{SOURCES_KEY}.{name}: {folder}: holds no photograph ({', '.join(SUFFIXES)}); correct the path"
        )
    files = sorted(found, key=os.fsencode)
    ids = ids_of(name, [file.rpartition(".")[0] for file in files], files)
    for photograph, file in list(zip(ids, files, strict=True))[: source.limit]:
        yield photograph_row(photograph, source.kind, found[file], source.known_licence, max_pixels, None)
