"""Objects365: COCO's layout with boxes alone (`zhiyuan_objv2_train.json`); photographs in folders patch0, patch1, ..."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ...config.multibind_sources import Source
from .coco import read_layout


def read_photographs(name: str, source: Source, max_pixels: int) -> Iterator[dict]:
    """Rows of PHOTOGRAPHS, without masks. Raises UserError as COCO's reader does."""
    return read_layout(name, source, max_pixels, lambda item, width, height: None, find_file)


def find_file(folder: Path, file: str) -> Path:
    """`file_name` is images/v1/patch8/x.jpg; the archives unpack to patch8/x.jpg, and some keep all files in one folder."""
    parts = PurePosixPath(file).parts
    places = [folder.joinpath(*parts[start:]) for start in dict.fromkeys((0, max(0, len(parts) - 2), len(parts) - 1))]
    return next((place for place in places if place.is_file()), places[0])
