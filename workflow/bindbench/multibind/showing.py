"""Annotations and prompts in pieces that a page can show: what is said of whom, by slot."""

import json
import re
from typing import Any

MENTION = re.compile(r"\b((?:[Ss]ubject|[Rr]eference) ([A-D]))\b")
BLOCK = re.compile(r"Subject ([A-D]): ")

Piece = tuple[str | None, str]  # the slot that is named, and the words


def prompt_blocks(prompt: str) -> list[tuple[str | None, list[Piece]]]:
    """The paragraphs of an entity-indexed prompt: the slot whose block it is (None: of all), and its text in pieces.

    A piece that names a slot is apart; together the pieces are the paragraph.
    """
    blocks = []
    for paragraph in prompt.strip().split("\n\n"):
        block = BLOCK.match(paragraph)
        pieces: list[Piece] = []
        end = 0
        for mention in MENTION.finditer(paragraph):
            if mention.start() > end:
                pieces.append((None, paragraph[end : mention.start()]))
            pieces.append((mention[2], mention[1]))
            end = mention.end()
        if end < len(paragraph):
            pieces.append((None, paragraph[end:]))
        blocks.append((block[1] if block else None, pieces))
    return blocks


def readable_annotation(text: str) -> list[tuple[str | None, str, list[tuple[str, str]]]]:
    """Sections of an annotation (JSON): slot or None, title, and lines of a name and what is said; what is not known is left
    out. A text that is no such JSON is one section with the text itself.
    """
    try:
        annotation = json.loads(text)
        subjects, rest = annotation["subjects"], {key: annotation[key] for key in annotation if key != "subjects"}
        sections = [(slot, f"Subject {slot}", _lines(subject)) for slot, subject in sorted(subjects.items())]
        return sections + [(None, key.capitalize(), _lines(value)) for key, value in rest.items() if _words(value)]
    except (ValueError, TypeError, KeyError, AttributeError):
        return [(None, "Not readable as an annotation", [("", text)])]


def _lines(value: Any, names: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """A line for each thing that is said: `clothes, upper body`: `dark blue plain jacket, two rows of buttons`."""
    if isinstance(value, dict) and not _is_one_thing(value, names):
        return [line for key, part in value.items() for line in _lines(part, (*names, key))]
    if isinstance(value, list) and any(isinstance(part, dict) for part in value):
        return [(", ".join(names), _words(part)) for part in value]
    words = _words(value)
    return [(", ".join(names).replace("_", " "), words)] if words else []


def _is_one_thing(value: dict, names: tuple[str, ...]) -> bool:
    return "garment" in value or {"left", "right"} <= value.keys() or names[-1:] == ("hair",)


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(filter(None, map(_words, value)))
    if not isinstance(value, dict):
        return "" if value is None else str(value)
    if {"first", "second", "relation"} <= value.keys():
        detail = f", {value['detail']}" if value.get("detail") else ""
        return f"{value['first']} {value['relation']} {value['second']}{detail}"
    if "garment" in value:
        worn = " ".join(filter(None, (value.get(name) for name in ("colour", "pattern", "garment"))))
        return ", ".join(filter(None, (worn, value.get("details"))))
    if {"left", "right", "top", "bottom"} <= value.keys():
        cut = f", cut by {_words(value['cut_by'])}" if value.get("cut_by") else ""
        return f"{value['left']} to {value['right']} % from the left, {value['top']} to {value['bottom']} % from the top{cut}"
    return ", ".join(filter(None, map(_words, value.values())))
