"""A folder of ready pictures: what a generator made elsewhere, by the names of the instances."""

from pathlib import Path

from ...errors import UserError
from ...paths import resolve

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
MOST_PIXELS = 100_000_000  # larger ones are not unpacked


def opened(folder: str) -> Path:
    """Raises UserError where there is no such folder."""
    place = resolve(folder)
    if not place.is_dir():
        raise UserError(
            f"{place}: no such folder; the generator's key folder names where INSTANCE.png and the like lie"
        )
    return place


def found(folder: Path, instance: str) -> Path | None:
    """The picture of an instance; None for none. Endings may be in capitals. Raises UserError for several."""
    names = [f"{instance}{ending}" for suffix in SUFFIXES for ending in (suffix, suffix.upper())]
    # A file system that knows no capitals has the same file under both names.
    files = list({path.stat().st_ino: path for name in names if (path := folder / name).is_file()}.values())
    if len(files) > 1:
        raise UserError(
            f"{folder}: {' and '.join(path.name for path in files)} are both of one instance; remove what is not meant"
        )
    return files[0] if files else None
