"""The journal of verdicts: an append-only file of JSON lines, one for each scene that a press of a key judged (SABER, A.4).

A verdict belongs to the bytes of an image: the latest line of a scene and SHA-256 counts, and an image that was made again
is open again. Lines are never changed or deleted; undo appends the earlier verdict again. A line is on disk before
anyone is told that it is saved. Any number of pages, people and programs may append at once.

A line: scene, sha256, verdict (accepted, rejected, open), reason, by, time (UTC) and press, the id that all lines of one
press share. An undo names the press that it undoes; a model's line has the verdict open and names what it proposes.
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


def read_journal(path: str | Path) -> "Journal":
    """The journal as it stands; one that is missing is empty. Raises UserError for a line that is no verdict."""
    journal = Journal(path)
    journal.refresh()
    return journal


class Journal:
    """The verdicts of one file, as far as it was read; `refresh` reads on where it stopped. Safe to share by threads."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._guard = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self._lines: dict[str, dict[str, list[dict]]] = {}  # of people, by scene and sha256, in order
        self._proposals: dict[tuple[str, str], dict] = {}  # the latest of models, by scene and sha256
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
        line = _checked(data, f"{self.path}: line {self._count + 1}")
        self._count += 1
        scene, sha256 = line["scene"], line["sha256"]
        if line.get("proposed"):
            self._proposals[scene, sha256] = line
        else:
            self._lines.setdefault(scene, {}).setdefault(sha256, []).append(line)
        if line.get("press"):
            self._presses.setdefault(line["press"], []).append(line)

    def standing(self, scene: str, sha256: str) -> dict | None:
        """The line of a person that counts for an image; None when nobody judged it."""
        with self._guard:
            lines = self._lines.get(scene, {}).get(sha256)
            return lines[-1] if lines else None

    def proposal(self, scene: str, sha256: str) -> dict | None:
        """The latest line of a model for an image."""
        return self._proposals.get((scene, sha256))

    def rejected_images(self, scene: str) -> set[str]:
        """SHA-256 of every image of the scene that stands rejected."""
        with self._guard:
            images = self._lines.get(scene, {})
            return {sha256 for sha256, lines in images.items() if lines[-1]["verdict"] == "rejected"}

    def lines_of(self, press: str) -> list[dict]:
        return self._presses.get(press, [])

    def before(self, press: str, scene: str, sha256: str) -> tuple[bool, dict | None]:
        """Whether the press is what counts for the image, and the line that counted before it (None: nobody's)."""
        with self._guard:
            stack: list[dict] = []
            for line in self._lines.get(scene, {}).get(sha256, []):
                if line.get("undoes") and stack and stack[-1].get("press") == line["undoes"]:
                    stack.pop()
                else:
                    stack.append(line)
        if not stack or stack[-1].get("press") != press:
            return False, None
        return True, stack[-2] if len(stack) > 1 else None

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


def verdict_line(scene: str, sha256: str, verdict: str, reason: str | None, by: str | None, **more) -> dict:
    """A line of the journal, with the time of now. more: press, undoes, proposed. Raises ValueError."""
    line = {"scene": scene, "sha256": sha256, "verdict": verdict, "reason": reason, "by": by, **more}
    line["time"] = datetime.now(UTC).isoformat(timespec="seconds")
    problem = _problem(line)
    if problem:
        raise ValueError(problem)
    return line


def append_proposal(journal: Journal, scene: str, sha256: str, verdict: str, reason: str | None, by: str) -> None:
    """Notes what a model proposes; the image stays as it is until a person confirms it. Raises ValueError, UserError."""
    line = verdict_line(scene, sha256, "open", reason, by, proposed=verdict)
    journal.append(lambda: [line])


def _problem(line) -> str | None:
    if not isinstance(line, dict):
        return "not an object"
    for name in ("scene", "sha256", "verdict"):
        if not isinstance(line.get(name), str):
            return f"{name} is missing"
    for name in ("reason", "by", "time", "press", "undoes", "proposed"):
        if not isinstance(line.get(name), (str, type(None))):
            return f"{name} is not a text"
    if not SHA256.fullmatch(line["sha256"]):
        return f"sha256 is {line['sha256']!r}"
    if line["verdict"] not in VERDICTS:
        return f"verdict is {line['verdict']!r}, not one of {', '.join(VERDICTS)}"
    if line.get("proposed") not in (None, "accepted", "rejected"):
        return f"proposed is {line['proposed']!r}, not accepted or rejected"
    return None


def _checked(data: bytes, where: str) -> dict:
    try:
        line = json.loads(data)
    except ValueError:
        raise UserError(f"{where}: not JSON; mend or remove the line") from None
    problem = _problem(line)
    if problem:
        raise UserError(f"{where}: not a verdict ({problem}); mend or remove the line")
    return line


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
