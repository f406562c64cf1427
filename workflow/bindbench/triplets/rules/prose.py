"""Rules of the positive as a piece of writing."""

import re

from ..constructions import FEWER, MORE
from .draft import Draft

_PICTURES = re.compile("[\u2300-\u23ff\u2500-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")
_MARKUP = re.compile(r"[*_`~|<>\\{}\[\]=^]")
_HEADING = re.compile(r"#(?!\d)")  # "lot #14" is prose
_LIST_ITEM = re.compile(r"(?:[-+•]|\d+[.)])\s")
_END = re.compile(r"[.!?…][\"'”’)]*$")
_QUOTE_OPENED = re.compile(r"(?:^|[\s(—])'(?!(?:tis|twas|em|til|\d))", re.IGNORECASE)
_QUOTE_CLOSED = re.compile(r"'(?:$|[\s),.;:!?—])")


def plain_text(draft: Draft) -> str:
    text = draft.positive
    if not text:
        return "empty"
    if not text.isprintable():
        return f"character {next(c for c in text if not c.isprintable())!r}"
    markup = _MARKUP.search(text) or _LIST_ITEM.match(text) or ("#" in text and _HEADING.search(text))
    if markup:
        return markup.group()
    if "://" in text:
        return "://"
    if not text.isascii() and _PICTURES.search(text):
        return "a picture"
    return "capitals throughout" if text.isupper() or text.istitle() else ""


def closed_quotes(draft: Draft) -> str:
    text = draft.positive
    if text.count('"') % 2:
        return '"'
    for opening, closing in ("()", "“”"):
        if text.count(opening) != text.count(closing) or text.find(closing) < text.find(opening):
            return opening
    if text.count("‘") > text.count("’"):
        return "‘"
    if "'" in text and len(_QUOTE_OPENED.findall(text)) > len(_QUOTE_CLOSED.findall(text)):
        return "'"
    return ""


def end_punctuation(draft: Draft) -> str:
    return "" if _END.search(draft.positive, max(0, len(draft.positive) - 6)) else draft.positive[-20:]


def capital_at_start(draft: Draft) -> str:
    first = draft.tokens[0].word[0] if draft.tokens else ""
    return "" if first.isupper() or first.isdigit() else draft.positive[:20]


def length(draft: Draft) -> str:
    low, high = draft.specification.length
    words = len(draft.tokens)
    return "" if low - FEWER <= words <= high + MORE else f"{words} words, {low}-{high} asked for"
