"""All materials of the renderer, and the check that a vocabulary's attributes name materials that exist."""

from ...errors import UserError
from ...vocabulary import Attribute, Vocabulary
from . import natural, optical, patterns, plain  # noqa: F401 (they enter their materials into MATERIALS)
from .coat import MATERIALS, Coat, Material

__all__ = ["MATERIALS", "Coat", "Material", "check_material", "check_vocabulary", "find_material"]


def find_material(reference: str) -> tuple[Material, tuple[str, ...]]:
    """The material of a reference and the words it presets: "plain:red" is plain with its first slot filled.

    Raises KeyError for a material that does not exist.
    """
    name, *preset = reference.split(":")
    return MATERIALS[name], tuple(preset)


def check_material(attribute: Attribute, palette: tuple[str, ...]) -> None:
    """Refuses an attribute whose material does not exist or does not know a colour or variant of the attribute.

    Raises UserError that names the attribute, the material and the word.
    """
    where = f"attribute {attribute.name}: material {attribute.material or '(empty)'}"
    try:
        found, preset = find_material(attribute.material)
    except KeyError:
        raise UserError(f"{where}: there is no such material (known: {', '.join(sorted(MATERIALS))})") from None
    choices = [(word,) for word in preset]
    choices += [attribute.variants if slot == "variant" else palette for slot in attribute.slots]
    if len(choices) != len(found.slots):
        raise UserError(
            f"{where}: needs {len(found.slots)} colours or variants, but the {attribute.type} attribute gives {len(choices)}"
        )
    for words, known in zip(choices, found.slots, strict=True):
        unknown = [word for word in words if word not in known]
        if unknown:
            raise UserError(f"{where}: does not know {', '.join(unknown)} (known: {', '.join(known)})")


def check_vocabulary(vocabulary: Vocabulary) -> None:
    """Checks every attribute of a vocabulary. Raises UserError."""
    for attribute in vocabulary.attributes.values():
        check_material(attribute, vocabulary.palette)
