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
    """The picture of an instance; None for none. Raises UserError for several."""
    files = [path for suffix in SUFFIXES if (path := folder / f"{instance}{suffix}").is_file()]
    if len(files) > 1:
        raise UserError(
            f"{folder}: {' and '.join(path.name for path in files)} are both of one instance; remove what is not meant"
        )
    return files[0] if files else None
