"""The journal of verdicts: an append-only file of JSON lines, one for each thing that a press of a key judged (SABER, A.4).

What is judged has an id and is made of bytes: the image of a scene, or a part of an instance of MultiBind. A verdict belongs
to the bytes: the latest line of an id and SHA-256 counts, and what was made again is open again. Lines are never changed or
deleted; undo appends the earlier verdict again. A line is on disk before anyone is told that it is saved. Any number of
pages, people and programs may append at once.

A line: the id, under the name that the journal's `key` gives (scene, part or label), sha256, verdict (accepted, rejected, open;
or what else the journal has for verdicts), reason, by, time (UTC) and press, the id that all lines of one press share. An undo
names the press that it undoes; a model's line has the verdict open and names what it proposes.
"""

import fcntl
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from ..errors import UserError
from ..files import canonical_json

VERDICTS = ("accepted", "rejected", "open")
SHA256 = re.compile(r"[0-9a-f]{64}")
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')


def default_verdict(renderer: str) -> str:
    """Of an image that nobody judged: the embedded renderer draws what it is told, a generator may not."""
    return "accepted" if renderer.split("/")[0] == "builtin" else "open"


def read_journal(path: str | Path, key: str = "scene") -> "Journal":
    """The journal as it stands; one that is missing is empty. Raises UserError for a line that is no verdict."""
    journal = Journal(path, key)
    journal.refresh()
    return journal


class Journal:
    """The verdicts of one file, as far as it was read; `refresh` reads on where it stopped. Safe to share by threads."""

    def __init__(self, path: str | Path, key: str = "scene", verdicts: tuple[str, ...] = VERDICTS):
        self.path, self.key, self.verdicts = Path(path), key, verdicts
        self._guard = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self._lines: dict[str, dict[str, list[dict]]] = {}  # of people, by id and sha256, in order
        self._proposals: dict[tuple[str, str], dict] = {}  # the latest of models, by id and sha256
        self._presses: dict[str, list[dict]] = {}
        self._file, self._offset, self._count = None, 0, 0

    def refresh(self) -> None:
        """Reads what was appended since. Raises UserError for a line that is no verdict."""
        with self._guard:
            try:
                with self.path.open("rb") as file:
                    status = os.fstat(file.fileno())
                    if self._file != (status.st_dev, status.st_ino) or status.st_size < self._offset:
                        self._forget()
                        self._file = status.st_dev, status.st_ino
                    file.seek(self._offset)
                    data = file.read()
            except FileNotFoundError:
                self._forget()
                return
            except OSError as error:
                raise UserError(f"{self.path}: cannot be read ({error.strerror})") from None
            *whole, rest = data.split(b"\n")
            for line in whole:
                self._take(line)
                self._offset += len(line) + 1
            if _is_json(rest):  # complete but for the line's end, as some editors leave it
                self._take(rest)
                self._offset += len(rest)

    def _take(self, data: bytes) -> None:
        data = data.strip(b"\0 \r\t")
        if not data or is_torn(data):
            self._count += 1
            return
        line = self._checked(data, f"{self.path}: line {self._count + 1}")
        self._count += 1
        judged, sha256 = line[self.key], line["sha256"]
        if line.get("proposed"):
            self._proposals[judged, sha256] = line
        else:
            self._lines.setdefault(judged, {}).setdefault(sha256, []).append(line)
        if line.get("press"):
            self._presses.setdefault(line["press"], []).append(line)

    def _checked(self, data: bytes, where: str) -> dict:
        try:
            line = json.loads(data)
        except ValueError:
            raise UserError(f"{where}: not JSON; mend or remove the line") from None
        problem = _problem(line, self.key, self.verdicts)
        if problem:
            raise UserError(f"{where}: not a verdict ({problem}); mend or remove the line")
        return line

    def judged(self) -> list[str]:
        """Ids of everything that people judged, in the order of their first lines."""
        with self._guard:
            return list(self._lines)

    def standing(self, judged: str, sha256: str) -> dict | None:
        """The line of a person that counts for an id and bytes; None when nobody judged them."""
        with self._guard:
            lines = self._lines.get(judged, {}).get(sha256)
            return lines[-1] if lines else None

    def proposal(self, judged: str, sha256: str) -> dict | None:
        """The latest line of a model for an id and bytes."""
        return self._proposals.get((judged, sha256))

    def standings(self, judged: str) -> dict[str, dict]:
        """Of an id the line of a person that counts, by the SHA-256 of everything that was made under it."""
        with self._guard:
            return {sha256: lines[-1] for sha256, lines in self._lines.get(judged, {}).items()}

    def rejected_images(self, judged: str) -> set[str]:
        """SHA-256 of everything that was made under the id and stands rejected."""
        return {sha256 for sha256, line in self.standings(judged).items() if line["verdict"] == "rejected"}

    def lines_of(self, press: str) -> list[dict]:
        return self._presses.get(press, [])

    def before(self, press: str, judged: str, sha256: str) -> tuple[bool, dict | None]:
        """Whether the press is what counts for the bytes, and the line that counted before it (None: nobody's)."""
        with self._guard:
            stack: list[dict] = []
            for line in self._lines.get(judged, {}).get(sha256, []):
                if line.get("undoes") and stack and stack[-1].get("press") == line["undoes"]:
                    stack.pop()
                else:
                    stack.append(line)
        if not stack or stack[-1].get("press") != press:
            return False, None
        return True, stack[-2] if len(stack) > 1 else None

    def line(self, judged: str, sha256: str, verdict: str, reason: str | None, by: str | None, **more) -> dict:
        """A line of this journal: see verdict_line."""
        return verdict_line(judged, sha256, verdict, reason, by, self.key, self.verdicts, **more)

    def append(self, decide: Callable[[], list[dict]]) -> list[dict]:
        """Appends the lines that `decide` returns, on disk when this returns; decide sees the journal as it stands, locked.

        Raises UserError when the file cannot be written; then the lines count as not appended.
        """
        with self._guard:
            try:
                with _locked(self.path) as descriptor:
                    self.refresh()
                    lines = decide()
                    if lines:
                        _write(descriptor, self.path, lines)
            except OSError as error:
                raise UserError(f"{self.path}: cannot be written ({error.strerror})") from None
            self.refresh()
            return lines


def verdict_line(
    judged: str,
    sha256: str,
    verdict: str,
    reason: str | None,
    by: str | None,
    key: str = "scene",
    verdicts: tuple[str, ...] = VERDICTS,
    **more,
) -> dict:
    """A line of a journal, with the time of now. key, verdicts: the journal's; more: press, undoes, proposed.

    Raises ValueError for what is no such line.
    """
    line = {key: judged, "sha256": sha256, "verdict": verdict, "reason": reason, "by": by, **more}
    line["time"] = datetime.now(UTC).isoformat(timespec="seconds")
    problem = _problem(line, key, verdicts)
    if problem:
        raise ValueError(problem)
    return line


def append_proposal(journal: Journal, judged: str, sha256: str, verdict: str, reason: str | None, by: str) -> None:
    """Notes what a model proposes; it stays as it is until a person confirms it. Raises ValueError, UserError."""
    line = journal.line(judged, sha256, "open", reason, by, proposed=verdict)
    journal.append(lambda: [line])


def _problem(line, key: str, verdicts: tuple[str, ...]) -> str | None:
    if not isinstance(line, dict):
        return "not an object"
    for name in (key, "sha256", "verdict"):
        if not isinstance(line.get(name), str):
            return f"{name} is missing"
    for name in ("reason", "by", "time", "press", "undoes", "proposed"):
        if not isinstance(line.get(name), (str, type(None))):
            return f"{name} is not a text"
    if not SHA256.fullmatch(line["sha256"]):
        return f"sha256 is {line['sha256']!r}"
    if line["verdict"] not in verdicts:
        return f"verdict is {line['verdict']!r}, not one of {', '.join(verdicts)}"
    if line.get("proposed") not in (None, "accepted", "rejected"):
        return f"proposed is {line['proposed']!r}, not accepted or rejected"
    return None


def _is_json(data: bytes) -> bool:
    """True of a whole line only: no part of a JSON object that lacks its end is JSON."""
    try:
        return isinstance(json.loads(data), dict)
    except ValueError:
        return False


def is_torn(data: bytes) -> bool:
    """The beginning of a line whose writer was killed: nobody was told that it is saved.

    An open brace or quote is left; a whole line that somebody damaged is not torn.
    """
    rest = STRING.sub(b"", data)
    return data.startswith(b"{") and (b'"' in rest or rest.count(b"{") > rest.count(b"}"))


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The file open for appending under an exclusive lock; reopened when somebody put another file in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                yield descriptor
                return
        finally:
            os.close(descriptor)  # also releases the lock


def _write(descriptor: int, path: Path, lines: list[dict]) -> None:
    data = "".join(canonical_json(line) + "\n" for line in lines).encode()
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        data = b"\n" + data  # after a torn line
    while data:
        data = data[os.write(descriptor, data) :]
    os.fsync(descriptor)
    if not size:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
