"""Where MultiBind's photographs come from (section 3.2): one module for each kind, each with `read_photographs`.

Light until a source is read: the Snakefile asks `check_files` and `photographs_files`.
"""

import importlib
import os
from collections.abc import Iterator
from pathlib import Path

from ...config.multibind_sources import Photographs, Source
from ...files import sha256
from .places import located, place_of

MOST_WATCHED = 20_000  # files of which each is watched; a tenth of a second, whenever Snakemake reads its rules
# Kind of a source, to the module that reads it.
MODULES = {kind: f"{__name__}.{kind}" for kind in ("coco", "objects365", "cihp", "mhp", "folder", "builtin")}


def read_source(name: str, source: Source, max_pixels: int) -> Iterator[dict]:
    """Rows of PHOTOGRAPHS of one source, in a fixed order.

    A photograph that cannot be used has a reason and a detail. Raises UserError that names the config key for annotations or
    a folder that are missing or broken as a whole.
    """
    return importlib.import_module(MODULES[source.kind]).read_photographs(name, source, max_pixels)


def check_files(settings: Photographs) -> None:
    """Folders and annotation files that the config names are there; reads none. Raises UserError that names the key."""
    for name, source in settings.used.items():
        if source.annotations is not None:
            place_of(name, "annotations", source.annotations, is_folder=source.kind in ("cihp", "mhp"))
        if source.images is not None:
            place_of(name, "images", source.images, is_folder=True)


def photographs_files(settings: Photographs) -> list[Path]:
    """What Snakemake should watch: annotation files, lists, and folders of which every file counts; no single photograph.

    A folder is newer when a file came or went. Paths that are not there are left out: `check_files` tells of them.
    """
    return [path for source in settings.used.values() for path in _watched(source) if path.exists()]


def photographs_digest(settings: Photographs) -> str:
    """Of the files in sources of kind folder: names, sizes and times of change, so that one replaced in place is noticed.

    Empty where there is no such source, or where they hold more than MOST_WATCHED files: each job of a cluster asks.
    """
    told = []
    for name, source in settings.used.items():
        for folder in _folders(located(source.images)) if source.kind == "folder" else ():
            for entry in os.scandir(folder):
                if not entry.name.startswith(".") and entry.is_file():
                    state = entry.stat()
                    told.append(f"{name} {os.fsencode(entry.path)!r} {state.st_size} {state.st_mtime_ns}")
                    if len(told) > MOST_WATCHED:
                        return ""
    return sha256("\n".join(sorted(told))) if told else ""


def _watched(source: Source) -> list[Path]:
    if source.kind == "folder":
        return _folders(located(source.images))
    if source.annotations is None:
        return []
    annotations = located(source.annotations)
    if source.kind == "cihp":
        return [annotations / "Human_ids", *sorted(annotations.glob("*_id.txt"))]
    if source.kind == "mhp":
        return [annotations / "parsing_annos", annotations.parent / "list" / f"{annotations.name}.txt"]
    return [annotations]


def _folders(folder: Path) -> list[Path]:
    """A folder and its subfolders, sorted; hidden and linked ones left out."""
    found = []
    for place, folders, _ in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found.append(Path(place))
    return found
