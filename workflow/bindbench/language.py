"""English that captions and sentences share: the indefinite article by pronunciation."""

import re
from collections.abc import Sequence
from functools import cache

# inflect follows British usage and letter rules; these are words that it, or one of our hyphenated forms, gets wrong.
ARTICLE_OVERRIDES = {"herb": "an", "herbal": "an"}
# Numbers that are said with a vowel first: eight, eighty, eleven, eighteen, and the years from 1100 and 1800 on.
_VOWEL_NUMBER = re.compile(r"(?:8[\d,]*|1[18](?:\d\d)?(?:,?\d{3})*)(?!\d)")


@cache
def _engine():
    """The engine, without its checks of types at run time: to weave them in takes longer than most commands here."""
    import typeguard

    weave = typeguard.typechecked
    typeguard.typechecked = lambda function: function
    try:
        import inflect
    finally:
        typeguard.typechecked = weave
    return inflect.engine()


@cache
def article(phrase: str) -> str:
    """A or an, by the pronunciation of the first word: an icy cube, a unicorn, an hourglass, a one-piece suit."""
    first = re.split(r"[\s-]", phrase.strip(), maxsplit=1)[0].lower()
    if first in ARTICLE_OVERRIDES:
        return ARTICLE_OVERRIDES[first]
    if _VOWEL_NUMBER.match(first):
        return "an"
    return _engine().an(phrase).split(" ", 1)[0]


def listed(words: Sequence[str]) -> str:
    """One phrase of one or more: `red`, `red and blue`, `red, blue and green`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
