"""What all sources share: rows of the table PHOTOGRAPHS, ids, boxes, and pictures in folders."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from ...errors import UserError
from ...files import sha256
from ...people.masks import BrokenMask
from ...people.photographs import SUFFIXES, Unreadable, is_turned_unseen, photograph_size
from .places import SOURCES_KEY

LONGEST_ID = 100  # ids become file names


class Unusable(Exception):
    """Why a photograph is left out: a short name, and in one line what is wrong."""

    def __init__(self, reason: str, detail: str):
        super().__init__(detail)
        self.reason = reason


def photograph_row(
    photograph: str,
    kind: str,
    path: Path,
    licence: str,
    max_pixels: int,
    people_of: Callable[[int, int], list[dict]] | None,
) -> dict:
    """A row of PHOTOGRAPHS. Of the photograph only the header is read.

    people_of: from its width and height to its people, or None where nobody is known; it may raise Unusable, Unreadable or
    BrokenMask. Whatever is wrong becomes the row's reason.
    """
    row = _row(photograph, kind, path, licence)
    try:
        if row["path"] != str(path):  # Linux allows names that are no text
            raise Unusable("file_name", "its name is not UTF-8; rename it")
        row["width"], row["height"] = photograph_size(path, max_pixels)
        if people_of is not None:
            if is_turned_unseen(path):
                raise Unusable("turned", "EXIF turns it, and nobody knows whether it was annotated before or after")
            row["people"] = people_of(row["width"], row["height"])
            if not row["people"]:
                raise Unusable("no_people", "the data set names nobody in it")
    except (Unusable, Unreadable) as error:
        return row | _why(error.reason, str(error))
    except BrokenMask as error:
        return row | _why("broken_mask", str(error))
    return row


def left_out(photograph: str, kind: str, path: Path, licence: str, reason: str, detail: str) -> dict:
    """The row of a photograph that was not looked at."""
    return _row(photograph, kind, path, licence) | _why(reason, detail)


def _row(photograph: str, kind: str, path: Path, licence: str) -> dict:
    row = {"photograph": photograph, "source": kind, "path": storable(path), "licence": storable(licence)}
    return row | {"width": 0, "height": 0, "people": [], "reason": None, "detail": None}


def _why(reason: str, detail: str) -> dict:
    return {"reason": reason, "detail": storable(detail)}


def storable(text: str | Path) -> str:
    """Text that a table can hold: file names and JSON may have halves of characters."""
    return str(text).encode("utf-8", "replace").decode()


def person(number: str, box: list[float], mask: str | None, crowd: bool = False) -> dict:
    """Someone whom a data set names; score 1."""
    return {"person": storable(number), "box": box, "mask": mask, "crowd": crowd, "score": 1.0}


def box_within(box, width: int, height: int) -> list[float]:
    """[x, y, width, height] cut at the photograph's edges. Raises Unusable for what is no box, or lies outside."""
    numbers = isinstance(box, list) and len(box) == 4 and all(isinstance(value, (int, float)) for value in box)
    if not numbers or not all(abs(value) < 1e9 for value in box):
        raise Unusable("broken_box", f"a box is not four numbers (it is {str(box)[:80]})")
    left, top = max(0.0, box[0]), max(0.0, box[1])
    right, bottom = min(float(width), box[0] + box[2]), min(float(height), box[1] + box[3])
    if right <= left or bottom <= top:
        raise Unusable("broken_box", f"a box has no pixel of the photograph (it is {str(box)[:80]})")
    return [left, top, right - left, bottom - top]


def ids_of(source: str, names: list[str], whole: list[str] | None = None) -> list[str]:
    """An id for each name, which may hold strokes: the source's name, a stroke, and the name in plain characters.

    An id depends on no order. It stays unique when strokes become dashes, and on file systems that do not tell case apart:
    those that would clash, and long ones, end with eight digits of a hash.
    whole: what tells them apart where names repeat, such as file names with their suffixes; hashed.
    """
    plain = [re.sub(r"[^A-Za-z0-9._/-]", "_", name) for name in names]
    as_files = [name.replace("/", "-").lower() for name in plain]
    count = Counter(as_files)
    return [
        f"{source}/{short}"
        if count[flat] == 1 and len(short) <= LONGEST_ID
        else f"{source}/{short[:LONGEST_ID]}-{sha256(told.encode('utf-8', 'surrogatepass'))[:8]}"
        for told, short, flat in zip(whole or names, plain, as_files, strict=True)
    ]


def pictures_in(folder: Path) -> Iterator[Path]:
    """Files in a folder and its subfolders, also linked ones, that are pictures by their suffix; hidden ones are left out.

    Raises UserError for a subfolder that cannot be read.
    """
    seen = set()
    for place, folders, files in os.walk(folder, onerror=_unreadable_folder, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if (real := Path(place).resolve()) in seen:  # a link to a folder around it
            folders.clear()
            continue
        seen.add(real)
        for name in files:
            if not name.startswith(".") and name.lower().endswith(SUFFIXES):
                yield Path(place, name)


def _unreadable_folder(error: OSError) -> None:
    raise UserError(f"{error.filename}: cannot be read ({error.strerror}); make it readable or move it away")


def pictures_by_stem(folder: Path) -> dict[str, Path]:
    """The pictures directly in a folder by their names without suffix; of several with the same one, the first by name."""
    named = sorted((entry.name for entry in os.scandir(folder)), reverse=True)
    wanted = [name for name in named if not name.startswith(".") and name.lower().endswith(SUFFIXES)]
    return {name.rpartition(".")[0]: folder / name for name in wanted}


def listed(name: str, path: Path) -> list[str]:
    """The names in a list of photographs, one a line, each once, without suffixes of pictures. Raises UserError."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{SOURCES_KEY}.{name}.annotations: {path}: cannot be read ({error})") from None
    stems = (line[: -len(end)] if (end := _suffix(line)) else line for line in lines)
    return list(dict.fromkeys(stems))


def _suffix(line: str) -> str:
    return next((suffix for suffix in SUFFIXES if line.lower().endswith(suffix)), "")
