"""GPT-Image by openai: an edit of several pictures."""

from ...config.multibind_generators import Generator
from ..backgrounds import nearest_shape
from ..pictures import OPENAI_SIZES, openai_edit
from .asking import words_of
from .scene import Scene

KIND = "image_edit"


def body(scene: Scene, settings: Generator) -> dict:
    """Of a request; the size whose ratio is nearest to the target's."""
    size = nearest_shape(*scene.size, OPENAI_SIZES)
    return openai_edit(words_of(scene), settings.model_name, size, settings.quality)
