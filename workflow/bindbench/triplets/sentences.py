"""Sentences as words that can change places: tokens, capitals, punctuation, articles (Appendix B.1 and B.4).

A word is a whitespace-separated token without its punctuation; a hyphenated word is one word, "mug's" is a mention of mug.
Punctuation that stands alone belongs to the word before it, and a dash between two words parts them, so that the index of
a token is the index of a word and every distance is a difference of indices. When words change places, punctuation, the
possessive 's and the capital of a sentence start stay where they are.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ..language import article

# Marks, inside this module only, a dash that is followed by a word without a space. Not printable: no sentence holds it.
_GLUE = "\ue000"
_TOKEN = re.compile(r"(\W*)(.*?)((?:['’]s)?)(\W*)", re.DOTALL)
_DASH_BEFORE_WORD = re.compile(r"([—…])(?=\w)")
_ARTICLES = frozenset({"a", "an"})
_OPENING = frozenset("\"'“‘(")


def word_set(words: str) -> frozenset[str]:
    """A lexicon, written as one text."""
    return frozenset(words.split())


# Words whose full stop ends no sentence; single letters (initials) are none either.
ABBREVIATIONS = word_set(
    "mr mrs ms dr st prof capt sgt lt col gen rev hon jr sr mt vs no nos vol fig approx ca est dept ave inc ltd co etc "
    "e.g i.e a.m p.m cf pl pp p"
)

Replacement = tuple[int, int, str, str]  # start, stop, the phrase there, the phrase to come


class Token(NamedTuple):
    """One word of a sentence. text = leading + word + ending + trailing; folded: the word for comparisons."""

    text: str
    leading: str
    word: str
    ending: str  # 's, a possessive or a contracted "is"
    trailing: str
    folded: str


@lru_cache(maxsize=1 << 15)
def _token(text: str) -> Token:
    leading, word, ending, trailing = _TOKEN.fullmatch(text).groups()
    return Token(text, leading, word, ending, trailing, folded(word))


@lru_cache(maxsize=1 << 15)
def folded(word: str) -> str:
    """The word, or phrase, for comparisons: lower case, one kind of apostrophe."""
    return word.lower().replace("’", "'")


def tokenise(text: str) -> list[Token]:
    """The words of a text, in order. " ".join of the tokens' texts is the text again, but for the width of white space."""
    return read(text)[0]


def read(text: str) -> tuple[list[Token], list[str]]:
    """The tokens of a text, and their folded words."""
    if "—" in text or "…" in text:
        text = _DASH_BEFORE_WORD.sub(rf"\1{_GLUE} ", text)
    tokens = list(map(_token, text.split()))
    words = [token.folded for token in tokens]
    if "" in words:
        tokens = _with_punctuation_attached(tokens)
        words = [token.folded for token in tokens]
    return tokens, words


def _with_punctuation_attached(tokens: list[Token]) -> list[Token]:
    words: list[Token] = []
    leading = ""
    for token in tokens:
        if token.word:
            if leading:
                token = token._replace(text=leading + token.text, leading=leading + token.leading)
                leading = ""
            words.append(token)
        elif words:
            last = words[-1]
            words[-1] = last._replace(text=f"{last.text} {token.text}", trailing=f"{last.trailing} {token.text}")
        else:
            leading += token.text + " "
    return words


def joined(pieces: Sequence[str]) -> str:
    """The text of the tokens' texts."""
    return " ".join(pieces).replace(_GLUE + " ", "")


def ends_sentence(token: Token) -> bool:
    """Whether . ! ? or an ellipsis after this word ends a sentence; the full stop of "Mr." or of an initial does not."""
    trailing = token.trailing
    if not trailing:
        return False
    if "!" in trailing or "?" in trailing or "…" in trailing:
        return True
    return "." in trailing and token.folded not in ABBREVIATIONS and (len(token.word) > 1 or token.word.isdigit())


def starts_sentence(tokens: Sequence[Token], index: int) -> bool:
    """Whether the word is capitalised because of where it stands.

    That is at the start of the text and, when the word has a capital there, after the end of a sentence, after a label with
    a colon and after an opening quotation mark or bracket.
    """
    if index == 0:
        return True
    token = tokens[index]
    if not token.word[0].isupper():
        return False
    previous = tokens[index - 1]
    return ends_sentence(previous) or ":" in previous.trailing or not _OPENING.isdisjoint(token.leading)


def capitalised(phrase: str) -> str:
    return phrase[:1].upper() + phrase[1:]


def find(tokens: Sequence[Token], words: Sequence[str], phrase: str) -> tuple[int, int] | None:
    """Start and stop of the one mention of a phrase; None unless its last word appears exactly once, after the others.

    words: the folded words of the tokens. phrase: folded. The last word of an object of several words is its noun: a second
    noun of the same name would be a second mention of the object.
    """
    if " " not in phrase:
        if words.count(phrase) != 1:
            return None
        start = words.index(phrase)
        return start, start + 1
    parts = phrase.split(" ")
    if words.count(parts[-1]) != 1:
        return None
    last = words.index(parts[-1])
    start = last + 1 - len(parts)
    if start < 0:
        return None
    for offset, part in enumerate(parts[:-1]):
        token = tokens[start + offset]
        inside = offset > 0 and token.leading
        if inside or token.trailing or token.folded + token.ending.replace("’", "'") != part:
            return None
    return None if start < last and tokens[last].leading else (start, last + 1)


def exchange(tokens: Sequence[Token], replacements: Sequence[Replacement]) -> str:
    """The text with other phrases at some positions, each replacement (start, stop, old, new), ascending and apart.

    Phrases come spelled as in the middle of a sentence. A capital stays at a sentence start and goes to the phrase that now
    stands there, while a phrase with a capital of its own keeps it everywhere; punctuation and 's stay with the position;
    a/an directly before a phrase is set by its pronunciation ("a envelope" is repaired).
    """
    pieces = [token.text for token in tokens]
    for start, stop, old, new in reversed(replacements):  # from the back, where positions still hold
        first, last = tokens[start], tokens[stop - 1]
        if start > 0 and is_article(tokens, start - 1):
            before = tokens[start - 1]
            repaired = article(new.split(" ", 1)[0])
            pieces[start - 1] = before.leading + (capitalised(repaired) if before.word[0] == "A" else repaired)
        if first.word[0].isupper() and _capital_of_position(tokens, start, old):
            new = capitalised(new)
        pieces[start:stop] = [first.leading + new + last.ending + last.trailing]
    return joined(pieces)


def _capital_of_position(tokens: Sequence[Token], index: int, phrase: str) -> bool:
    # In "a “Victorian” mug" the capital is the word's own: only the end of a sentence demands one of any word.
    if phrase[0].isupper() and index > 0 and not ends_sentence(tokens[index - 1]):
        return False
    return starts_sentence(tokens, index)


def is_article(tokens: Sequence[Token], index: int) -> bool:
    """Whether the word is an indefinite article: "a", "an", and with a capital at a sentence start (not in "Hall A")."""
    token = tokens[index]
    if token.trailing or token.ending:
        return False
    return token.word in ("a", "an") or (token.word in ("A", "An") and starts_sentence(tokens, index))


def article_errors(tokens: Sequence[Token]) -> list[str]:
    """Every a or an, whatever its capitals, that disagrees with the word after it: ["a envelope"]."""
    errors = []
    for index in [index for index, token in enumerate(tokens) if token.folded in _ARTICLES]:
        token = tokens[index]
        if index + 1 < len(tokens) and not token.trailing and not token.ending:
            word = tokens[index + 1].word
            if article(word) != token.folded:
                errors.append(f"{token.folded} {word}")
    return errors
