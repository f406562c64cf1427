"""The two textual realisations of a scene (A.3): the text form is embedded, the generation form describes the image."""

import re
from functools import cache

import inflect

# inflect follows British usage and letter rules; these are words that it, or one of our hyphenated forms, gets wrong.
ARTICLE_OVERRIDES = {"herb": "an", "herbal": "an"}


@cache
def _engine() -> inflect.engine:
    return inflect.engine()


@cache
def article(phrase: str) -> str:
    """A or an, by the pronunciation of the first word: an icy cube, a unicorn, an hourglass, a one-piece suit."""
    first = re.split(r"[\s-]", phrase.strip(), maxsplit=1)[0].lower()
    if first in ARTICLE_OVERRIDES:
        return ARTICLE_OVERRIDES[first]
    return _engine().an(phrase).split(" ", 1)[0]


def caption(pairs: list[tuple[str, str]]) -> str:
    """The conjunction of (attribute, object) pairs in their order: "a striped cube and a transparent kite".

    Pairs are joined by "and" alone, whatever their number, so that captions of the same words differ in order only.
    """
    phrases = (f"{attribute} {thing}" for attribute, thing in pairs)
    return " and ".join(f"{article(phrase)} {phrase}" for phrase in phrases)
