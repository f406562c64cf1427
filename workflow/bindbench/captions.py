"""The two textual realisations of a scene (A.3): the text form is embedded, the generation form describes the image."""

from .language import article


def caption(pairs: list[tuple[str, str]]) -> str:
    """The conjunction of (attribute, object) pairs in their order: "a striped cube and a transparent kite".

    Pairs are joined by "and" alone, whatever their number, so that captions of the same words differ in order only.
    """
    phrases = (f"{attribute} {thing}" for attribute, thing in pairs)
    return " and ".join(f"{article(phrase)} {phrase}" for phrase in phrases)
