"""Query and hard negatives, made by our code from the structured output of a backend (Appendix B.1 and B.2).

The query lists the bindings; the negatives permute the attributes or the objects of the positive, so that the three long
texts hold exactly the same words, a and an aside. Objects of several words move as a whole.
"""

from collections.abc import Sequence

from ..language import article
from .constructions import Binding, Specification
from .sentences import Replacement, Token, exchange, find, folded, tokenise


def query_of(bindings: Sequence[Binding], order: Sequence[int]) -> str:
    """The conjunction of the bindings in the given order: "a red mug and a blue kettle" (B.1).

    Joined by "and" alone, whatever their number, as SABER's own captions are (A.3).
    Raises ValueError when the order is not a permutation of the bindings: a fault of the program.
    """
    if sorted(order) != list(range(len(bindings))):
        raise ValueError(f"query order {tuple(order)} is not a permutation of {len(bindings)} bindings")
    phrases = []
    for index in order:
        binding = bindings[index]
        phrases.append(f"{article(binding.attributes[0])} {' '.join(binding.attributes)} {binding.object}")
    return " and ".join(phrases)


def sources(specification: Specification, objects: int) -> tuple[int, ...]:
    """Whose attribute (or noun) stands at each position in a negative (B.2).

    triple_bind_cycle rotates by one position, triple_bind_swap exchanges all but the kept pair, the others exchange two.
    """
    if specification.construction == "triple_bind_swap":
        order = list(range(objects))
        first, second = (index for index in order if index != specification.kept)
        order[first], order[second] = second, first
        return tuple(order)
    return (*range(1, objects), 0)


def attribute_replacements(
    specification: Specification, bindings: Sequence[Binding], positions: Sequence[Sequence[int]]
) -> list[Replacement]:
    """What the attribute negative puts where; in attr_bundle the attributes of one slot only. positions: of attributes."""
    slot = specification.swapped_slot if specification.construction == "attr_bundle" else 0
    replacements = [
        (
            positions[index][slot],
            positions[index][slot] + 1,
            bindings[index].attributes[slot],
            bindings[source].attributes[slot],
        )
        for index, source in enumerate(sources(specification, len(bindings)))
        if source != index
    ]
    replacements.sort()
    return replacements


def object_replacements(
    specification: Specification, bindings: Sequence[Binding], spans: Sequence[tuple[int, int]]
) -> list[Replacement]:
    """What the object negative puts where: the nouns move, the attributes stay. spans: of the objects."""
    replacements = [
        (*spans[index], bindings[index].object, bindings[source].object)
        for index, source in enumerate(sources(specification, len(bindings)))
        if source != index
    ]
    replacements.sort()
    return replacements


def attribute_negative(specification: Specification, bindings: Sequence[Binding], positive: str) -> str:
    """The positive with its attributes exchanged, rotated by one, or exchanged in one slot, by construction (B.2).

    Raises ValueError when an attribute does not appear exactly once; the validator asks before.
    """
    tokens = tokenise(positive)
    positions = [[_span(tokens, word)[0] for word in binding.attributes] for binding in bindings]
    return exchange(tokens, attribute_replacements(specification, bindings, positions))


def object_negative(specification: Specification, bindings: Sequence[Binding], positive: str) -> str:
    """The positive with its nouns exchanged or rotated by one, by construction (B.2).

    Raises ValueError when an object does not appear exactly once; the validator asks before.
    """
    tokens = tokenise(positive)
    spans = [_span(tokens, binding.object) for binding in bindings]
    return exchange(tokens, object_replacements(specification, bindings, spans))


def _span(tokens: Sequence[Token], phrase: str) -> tuple[int, int]:
    span = find(tokens, [token.folded for token in tokens], folded(phrase))
    if span is None:
        raise ValueError(f"{phrase!r} does not appear exactly once in the positive")
    return span
