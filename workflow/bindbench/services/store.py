"""The store: everything that was bought, one file an answer, named by its request's key.

    entries/ab/abcd...   one line of JSON (the header: request, tokens, cost, hashes), then the payload's bytes
    damaged/             entries whose header or payload did not have its hash; they are asked for again, and what they
                         cost stays spent (accounts.py)
    spool/ journal/ batches/ courier.*   work in progress, see spool.py, courier.py and batches.py

An entry is written to a temporary name, fsynced and renamed, and its folder fsynced, before anything uses it; it is never
written over. The header holds its own hash, the payload's, and the whole request, from which the key can be computed again.
"""

import hashlib
import json
import os
import re
import sys
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO
from uuid import uuid4

from ..config.services import Services
from ..errors import UserError
from ..files import canonical_json, room_for, sha256, written_whole
from .requests import Request, key_of

KEY = re.compile(r"[0-9a-f]{64}")
HEADER = re.compile(rb'\{"header_sha256":"([0-9a-f]{64})",([^\n]*\})\n')
END = "end-of-export-"  # the last member of an export: a tar that is cut between members looks whole to tarfile
LONGEST_HEADER = 1 << 24  # bytes; a body with a long prompt and a schema stays far below


class Damaged(Exception):
    """An entry that is not what was written; the message says how."""


@dataclass(frozen=True)
class Entry:
    """An entry with its payload, both verified."""

    header: dict
    payload: bytes


def store_folder(settings: Services) -> Path:
    return Path(os.environ.get("BINDBENCH_STORE") or settings.store).expanduser().absolute()


def make_header(
    request: Request,
    payload: bytes,
    *,
    status: str,
    final: bool = True,
    reason: str = "",
    content_type: str,
    tokens: dict,
    cost_usd: float,
    cost_from: str,
    mode: str = "online",
) -> dict:
    """The header of an entry.

    status: answer, or reject with a reason. final: a reject that is broken, not refused, has final false: the next try
    of the same request follows it.
    cost_from: usage (the answer's own token counts) or estimate.
    """
    return {
        "version": 1,
        "key": request.key,
        "service": request.service,
        "model": request.model,
        "stage": request.stage,
        "request": request.identity,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "mode": mode,
        "status": status,
        "final": final,
        "reason": reason,
        "content_type": content_type,
        "size": len(payload),
        "sha256": sha256(payload),
        "tokens": tokens,
        "cost_usd": cost_usd,
        "cost_from": cost_from,
    }


def header_line(header: dict) -> bytes:
    """The first line of an entry: JSON that begins with the hash of its own rest, so that checking it needs no writing."""
    rest = canonical_json(header)[1:].encode()
    return b'{"header_sha256":"%s",%s\n' % (sha256(rest).encode(), rest)


class Store:
    def __init__(self, root: str | Path):
        self.root = Path(root)
        self.entries = self.root / "entries"
        try:
            self.entries.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"services.store: {self.root}: cannot be made ({error.strerror}); name another folder"
            ) from None

    def path(self, key: str) -> Path:
        return self.entries / key[:2] / key

    def put(self, header: dict, payload: bytes) -> None:
        """Keeps an entry, durably. A good entry that is there already stays; a damaged one is moved away."""
        if self.read(header["key"]) is not None:
            return
        path = self.path(header["key"])
        with room_for(path):
            _make_folder(path.parent)
            temporary = path.parent / f".{path.name}.{uuid4().hex}"
            try:
                with temporary.open("wb") as file:
                    file.write(header_line(header))
                    file.write(payload)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(path)
                _sync(path.parent)
            finally:
                temporary.unlink(missing_ok=True)

    def peek(self, key: str) -> dict | None:
        """The verified header of an entry, without reading its payload; None when there is no good entry."""
        return self._checked(key, lambda file, header: header)

    def read(self, key: str) -> Entry | None:
        """An entry, header and payload verified; None when there is no good entry."""
        return self._checked(key, lambda file, header: Entry(header, read_payload(file, header)))

    def verify(self, key: str) -> dict | None:
        """As `peek`, with the payload hashed in pieces."""
        return self._checked(key, check_payload)

    def _checked(self, key: str, take):
        try:
            with self.path(key).open("rb") as file:
                return take(file, read_header(file, key))
        except FileNotFoundError:
            return None
        except IsADirectoryError:
            self._set_aside(key, "it is a folder")
            return None
        except Damaged as problem:
            self._set_aside(key, str(problem))
            return None
        except OSError as error:  # it may be whole: asking again would pay for it twice
            raise UserError(
                f"{self.path(key)}: cannot be read ({error.strerror}); mend its permissions or the disk"
            ) from None

    def _set_aside(self, key: str, problem: str) -> None:
        folder = self.root / "damaged"
        folder.mkdir(exist_ok=True)
        try:
            self.path(key).replace(folder / f"{key}.{uuid4().hex[:8]}")
        except FileNotFoundError:
            return  # another run was faster
        print(f"store: entry {key[:12]} is damaged ({problem}); moved to {folder}", file=sys.stderr)

    def damaged(self) -> list[Path]:
        """What was set aside."""
        return sorted((self.root / "damaged").glob("*"))

    def every_key(self) -> Iterator[str]:
        """Keys of all entries, unverified, folder by folder."""
        with os.scandir(self.entries) as folders:
            paths = sorted(folder.path for folder in folders if folder.is_dir())
        for path in paths:
            with os.scandir(path) as items:
                yield from sorted(item.name for item in items if KEY.fullmatch(item.name))

    def headers(self) -> Iterator[dict]:
        """The verified headers of all good entries."""
        return (header for header in map(self.peek, self.every_key()) if header is not None)

    def resolve(self, request: Request, tries: int) -> tuple[Request, dict | None]:
        """Where a request stands: the try that holds its outcome, or the next one to ask, and its header or None.

        After `tries` broken payloads the last of them is the outcome.
        """
        for number in range(1, tries + 1):
            attempt = request.at_try(number)
            header = self.peek(attempt.key)
            if header is None or header["final"] or number == tries:
                return attempt, header
        raise AssertionError("tries is at least 1")

    def clean(self, older_than_s: float = 3600) -> None:
        """Removes what killed writers left."""
        now = datetime.now().timestamp()
        for folder in os.scandir(self.entries):
            for item in os.scandir(folder.path) if folder.is_dir() else ():
                if item.name.startswith(".") and now - item.stat().st_mtime > older_than_s:
                    Path(item.path).unlink(missing_ok=True)


def read_header(file: IO[bytes], key: str) -> dict:
    """Reads and verifies the header line. Raises Damaged."""
    match = HEADER.fullmatch(file.readline(LONGEST_HEADER))
    if match is None or sha256(match[2]) != match[1].decode():
        raise Damaged("its header does not have its hash")
    try:
        header = json.loads(b"{" + match[2])
    except ValueError:
        raise Damaged("its header cannot be read") from None
    if header.get("key") != key:
        raise Damaged("it is the answer to another request")
    return header


def read_payload(file: IO[bytes], header: dict) -> bytes:
    payload = file.read()
    if len(payload) != header["size"] or sha256(payload) != header["sha256"]:
        raise Damaged("its payload does not have its hash")
    return payload


def check_payload(file: IO[bytes], header: dict) -> dict:
    """Hashes the payload in pieces, and checks that the key is the request's. Raises Damaged."""
    if key_of(header["request"]) != header["key"]:
        raise Damaged("its key is not its request's")
    digest = hashlib.sha256()
    while piece := file.read(1 << 20):
        digest.update(piece)
    if digest.hexdigest() != header["sha256"]:
        raise Damaged("its payload does not have its hash")
    return header


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        _sync(folder.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def export_store(store: Store, path: str | Path, services: Iterable[str] = (), stages: Iterable[str] = ()) -> int:
    """Writes the entries of some services and stages (none named: all) into a tar, verified. Returns how many.

    Raises UserError when the file cannot be written; an older one of its name then stays as it is.
    """
    if Path(path).is_dir():
        raise UserError(f"{path}: is a folder; name a file")
    try:
        with written_whole(path) as temporary:
            return _write_tar(store, temporary, set(services), set(stages))
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error}); name another file") from None


def _write_tar(store: Store, path: Path, services: set[str], stages: set[str]) -> int:
    count = 0
    with tarfile.open(path, "w|") as tar:
        for key in store.every_key():
            header = store.verify(key)
            if header is None or (services and header["service"] not in services):
                continue
            if stages and header["stage"] not in stages:
                continue
            with store.path(key).open("rb") as file:
                member = tarfile.TarInfo(f"entries/{key[:2]}/{key}")
                member.size = os.fstat(file.fileno()).st_size
                tar.addfile(member, file)
            count += 1
        tar.addfile(tarfile.TarInfo(f"{END}{count}"))
    return count


@dataclass
class Imported:
    added: int = 0
    held: int = 0  # already here, and good
    refused: int = 0  # not an entry, or damaged


def import_store(store: Store, path: str | Path) -> Imported:
    """Takes over the entries of a tar. Every one is verified; good entries that are here stay as they are.

    Raises UserError when the file is not a tar, and when the store cannot be written.
    """
    counts, whole = Imported(), False
    try:
        with tarfile.open(path, "r|*") as tar:
            for member in tar:
                if member.name.startswith(END):
                    whole = True
                    continue
                key = Path(member.name).name
                file = tar.extractfile(member) if member.isreg() and KEY.fullmatch(key) else None
                if file is None:
                    counts.refused += not member.isdir()
                    continue
                try:
                    header = read_header(file, key)
                    payload = read_payload(file, header)
                    if key_of(header["request"]) != key:
                        raise Damaged("its key is not its request's")
                except Damaged:
                    counts.refused += 1
                    continue
                if store.verify(key) is not None:
                    counts.held += 1
                    continue
                try:
                    store.put(header, payload)
                except OSError as error:
                    raise UserError(
                        f"{error.filename or store.root}: cannot be written ({error.strerror or error}); {counts.added} "
                        "entries were taken over: make room and import again"
                    ) from None
                counts.added += 1
        if not whole:
            raise EOFError("its end is missing")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (tarfile.TarError, EOFError, OSError) as error:
        raise UserError(
            f"{path}: not a whole export of a store ({error}); {counts.added} entries were taken over"
        ) from None
    return counts
