"""Files that are whole or absent: every output is written to a temporary name, fsynced, then renamed.

Also the hashes by which stored items are recognised, and the progress line of long steps.
"""

import csv
import errno
import hashlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from .errors import UserError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the disk is full, the quota is used up, the file is too large


@contextmanager
def room_for(path: str | Path) -> Iterator[None]:
    """A disk that has no room for what the block writes is an OSError that names `path`: writing to an open file says none."""
    try:
        yield
    except OSError as error:
        hidden = f".{Path(path).name}."  # begins the temporary name of written_whole
        if error.errno not in NO_ROOM or not (error.filename is None or Path(error.filename).name.startswith(hidden)):
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


@contextmanager
def written_whole(path: str | Path, durable: bool = True) -> Iterator[Path]:
    """Yields a temporary path beside `path`; when the block ends well it is renamed to `path`, else removed.

    durable: fsync before the rename, so that a power cut leaves the old file or the new one. Off for items that are
    checked by their hash on every read. A disk without room is an OSError that names `path`.
    """
    path = Path(path)
    with room_for(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            temporary.chmod(0o666 & ~_umask())
            if durable:
                with temporary.open("rb") as file:
                    os.fsync(file.fileno())
            temporary.replace(path)
            if durable:
                _sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_bytes(path: str | Path, data: bytes, durable: bool = True) -> None:
    with written_whole(path, durable) as temporary:
        temporary.write_bytes(data)


def write_text(path: str | Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_json(path: str | Path, value) -> None:
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def csv_text(header: list, rows: list[list]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def csv_rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells, stripped, of every row of a CSV list with a header.

    Raises UserError that names the file, the row and the fault: a missing column, too many or too few cells, no row at all,
    a file that is missing or no CSV.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            missing = set(columns) - set(reader.fieldnames or ())
            if missing:
                raise UserError(f"{path}: row 1: no column {', '.join(sorted(missing))} (needed: {', '.join(columns)})")
            count = 0
            for row in reader:
                count += 1
                if None in row or None in row.values():
                    raise UserError(
                        f"{path}: row {reader.line_num}: has {'more' if None in row else 'fewer'} cells than the header"
                    )
                yield reader.line_num, {key: value.strip() for key, value in row.items()}
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read as CSV ({error})") from None
    if not count:
        raise UserError(f"{path}: row 2: the list is empty")


def canonical_json(value) -> str:
    """The one JSON text of a value: sorted keys, no spaces. What params and fingerprints are made of."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def sha256_of_file(path: str | Path) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_verified(path: str | Path, digest: str, remedy: str) -> bytes:
    """The bytes of a file, checked against the SHA-256 (hex) that was written down when it was made.

    remedy: what the user should do about a file that is missing or another one. Raises UserError that ends with it.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None
    if sha256(data) != digest:
        raise UserError(f"{path}: is not the file that was written down (its SHA-256 differs); {remedy}")
    return data


def progress(items: Iterable, what: str, total: int | None = None, unit: str = "it") -> tqdm:
    """A progress line on standard error: redrawn on a terminal, a line every ten seconds in a log file."""
    interactive = sys.stderr.isatty()
    return tqdm(items, desc=what, total=total, unit=unit, file=sys.stderr, mininterval=0.5 if interactive else 10)
