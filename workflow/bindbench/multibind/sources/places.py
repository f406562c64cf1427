"""Where the files of the sources are. Light: the Snakefile asks it."""

from pathlib import Path

from ...errors import UserError
from ...paths import resolve

SOURCES_KEY = "multibind.photographs.sources"


def located(path: str | Path) -> Path:
    """A configured path, from the working directory or the repository; ~ is the home folder."""
    return resolve(Path(path).expanduser())


def place_of(name: str, key: str, path: str | Path, is_folder: bool) -> Path:
    """Where a path of source `name` leads. Raises UserError that names its config key where nothing is there."""
    place = located(path)
    if is_folder and not place.is_dir():
        raise UserError(f"{SOURCES_KEY}.{name}.{key}: no folder {place}; correct the path")
    if not is_folder and not place.is_file():
        raise UserError(f"{SOURCES_KEY}.{name}.{key}: no file {place}; correct the path")
    return place
