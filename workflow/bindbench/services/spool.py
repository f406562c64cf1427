"""Between a run and the courier: a run's wishes and the courier's news, as two growing files of JSON lines.

    spool/<run>.requests   written by the run: its fingerprint, then one request a line
    spool/<run>.news       written by the courier: {"key", "state": stored | failed | batch}, {"stop": reason} or
                           {"note": text for people}

The run holds a lock on its .requests file for as long as it lives: the kernel lets go of it when the run dies, however it
dies. That is how the courier knows whether anybody still wants an answer. Nothing here has to outlive a power cut, so
nothing is fsynced: a run that starts again asks again.
"""

import fcntl
import json
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from ..errors import UserError
from ..files import canonical_json, room_for
from .requests import Request
from .store import Store


class Tail:
    """Complete lines of a growing file, each once."""

    def __init__(self, path: Path):
        self._path = path
        self._offset = 0

    def lines(self) -> list[dict]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data.rfind(b"\n") + 1
        self._offset += whole
        values = (_value(line) for line in data[:whole].splitlines())
        return [value for value in values if value is not None]


def _value(line: bytes) -> dict | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None  # what a killed courier left of its last line
    return value if isinstance(value, dict) else None


class Lease:
    """The run's end: asks, and hears the news. Closing it, or dying, ends the courier's interest in what is not sent."""

    def __init__(self, store: Store, fingerprint: str):
        folder = store.root / "spool"
        folder.mkdir(exist_ok=True)
        self._requests = folder / f"{uuid4().hex}.requests"
        # Under another name until it is locked, so that the courier never sees it unlocked.
        hidden = self._requests.with_suffix(".new")
        self._file = hidden.open("ab", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except OSError as error:
            raise UserError(
                f"services.store: {store.root}: its file system has no locks ({error.strerror}); name another folder"
            ) from None
        self._write({"fingerprint": fingerprint})
        hidden.rename(self._requests)
        self._news = self._requests.with_suffix(".news")
        self._tail = Tail(self._news)

    def ask(self, requests: list[Request]) -> None:
        if requests:
            self._write(*(request.to_json() for request in requests))

    def news(self) -> list[dict]:
        return self._tail.lines()

    def _write(self, *values: dict) -> None:
        data = b"".join(canonical_json(value).encode() + b"\n" for value in values)
        with room_for(self._requests):
            while data:  # a disk that gets full takes a part, and says so at the next
                data = data[self._file.write(data) :]

    def close(self) -> None:
        self._requests.unlink(missing_ok=True)
        self._news.unlink(missing_ok=True)
        self._file.close()


class Run:
    """The courier's end of one run."""

    def __init__(self, path: Path):
        self.path = path
        self._news_path = path.with_suffix(".news")
        self._tail = Tail(path)
        self.fingerprint: str | None = None
        self.stop_reason: str | None = None
        self.told = False
        self._unwritten = bytearray()

    def new_requests(self) -> list[Request]:
        lines = self._tail.lines()
        if self.fingerprint is None and lines:
            self.fingerprint = lines.pop(0).get("fingerprint", "")
        return [Request.from_json(line) for line in lines]

    def is_alive(self) -> bool:
        """Whether its process still holds the file."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def tell(self, **news) -> None:
        self._unwritten += canonical_json(news).encode() + b"\n"
        self.write_news()

    def begin(self) -> None:
        """Ends a line that a killed courier left open."""
        self._unwritten += b"\n"
        self.write_news()

    def write_news(self) -> None:
        """What a full disk does not take is kept for the next time: news must not bring the courier down."""
        if self._unwritten:
            with suppress(OSError), self._news_path.open("ab", buffering=0) as file:
                del self._unwritten[: file.write(self._unwritten)]

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self._news_path.unlink(missing_ok=True)


@contextmanager
def try_lock(path: Path):
    """Yields whether the lock was free; holds it inside the block if so."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        except BlockingIOError:
            free = False
        yield free
    finally:
        os.close(descriptor)
