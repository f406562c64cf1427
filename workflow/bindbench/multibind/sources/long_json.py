"""Reads annotation files of any length piece by piece: Objects365's have several gigabytes, and only people are wanted."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from ...files import progress

PIECE = 1 << 20  # characters read at a time
LONGEST = 1 << 26  # characters of one item, else the file is taken to be broken
LARGE = 1 << 24  # bytes of a file that takes long enough for a line of progress

BEHIND_VALUES = tuple(" \t\r\n,:]}")


class BrokenJson(Exception):
    """Why a file cannot be read: one line without the path."""


def items_of(path: Path, keys: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """(key, item) for each item of the lists that the file's object holds under `keys`, in the file's order.

    Only one item at a time is in memory. Raises BrokenJson for a file that is no JSON object, or of which one of `keys` is neither
    a list nor null; OSError for a file that cannot be opened.
    """
    size = path.stat().st_size
    with path.open(encoding="utf-8-sig") as file, _line_of(path.name, size) as line:
        text = _Text(file, line)
        text.expect("{")
        if text.taken("}"):
            return
        while True:
            key = text.value()
            text.expect(":")
            if key in keys:
                for item in _list(text, key):
                    yield key, item
            elif text.taken("["):
                text.position -= 1
                for _ in _list(text, key):
                    pass
            else:
                text.value()
            if not text.taken(","):
                break
        text.expect("}")


def _line_of(name: str, size: int):
    """Progress in MiB of a large file."""
    return progress(None, f"reading {name}", size >> 20, "MiB") if size >= LARGE else nullcontext()


def _list(text: "_Text", key: str) -> Iterator[object]:
    if not text.taken("["):
        if text.value() is not None:
            raise BrokenJson(f"{key} is no list")
        return
    if text.taken("]"):
        return
    while True:
        yield text.value()
        if not text.taken(","):
            break
    text.expect("]")


class _Text:
    """A file's text, of which only what is not read yet is kept."""

    def __init__(self, file, line=None):
        self.file, self.kept, self.position, self.before, self.ended = file, "", 0, 0, False
        self.line = line
        self.decode = json.JSONDecoder().raw_decode

    def more(self) -> None:
        """Reads on: as much as is kept, so that a long item is not decoded too often."""
        try:
            piece = self.file.read(max(PIECE, len(self.kept) - self.position))
        except UnicodeDecodeError:
            raise BrokenJson("not UTF-8") from None
        if self.line is not None:
            self.line.update((self.file.buffer.tell() >> 20) - self.line.n)
        self.before += self.position
        self.kept, self.position, self.ended = self.kept[self.position :] + piece, 0, not piece

    def next(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            while self.position < len(self.kept) and self.kept[self.position] in " \t\r\n":
                self.position += 1
            if self.position < len(self.kept):
                return self.kept[self.position]
            if self.ended:
                return ""
            self.more()

    def taken(self, character: str) -> bool:
        found = self.next() == character
        self.position += found
        return found

    def expect(self, character: str) -> None:
        if not self.taken(character):
            raise BrokenJson(self._broken())

    def value(self):
        """The next value. A number may go on where the kept text ends: what follows a value shows that it is whole."""
        self.next()
        while True:
            try:
                value, end = self.decode(self.kept, self.position)
            except ValueError:
                # Either broken, or it goes on behind what is kept.
                if self.ended or len(self.kept) - self.position > LONGEST:
                    raise BrokenJson(self._broken()) from None
            except RecursionError:
                raise BrokenJson("nested too deeply") from None
            else:
                shown = self.kept[end : end + 1] in BEHIND_VALUES or len(self.kept) - self.position > LONGEST
                if shown or self.ended:
                    self.position = end
                    return value
            self.more()

    def _broken(self) -> str:
        return f"ends too early or is no JSON at character {self.before + self.position}"
