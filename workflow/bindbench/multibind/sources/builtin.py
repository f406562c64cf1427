"""The photographs inside the installed ultralytics package, read from there and never copied into the repository."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

from ...config.multibind_sources import Source
from ...errors import UserError
from .folder import rows_of_folder
from .places import SOURCES_KEY


def read_photographs(name: str, source: Source, max_pixels: int) -> Iterator[dict]:
    """Rows of PHOTOGRAPHS, without people. Raises UserError where the package is not installed, or has no photographs."""
    return rows_of_folder(name, source, _assets(name), max_pixels)


def _assets(name: str) -> Path:
    found = importlib.util.find_spec("ultralytics")  # not imported: it would load torch
    if found is None or not found.submodule_search_locations:
        raise UserError(
            f"{SOURCES_KEY}.{name}: builtin needs the package ultralytics; install it (envs/people.yaml) or name other sources"
        )
    folder = Path(found.submodule_search_locations[0]) / "assets"
    if not folder.is_dir():
        raise UserError(f"{SOURCES_KEY}.{name}: {folder} is missing; reinstall the package ultralytics")
    return folder
