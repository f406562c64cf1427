"""Gemini 3 Pro Image (Nano Banana Pro) by google-genai."""

from ...config.multibind_generators import Generator
from ..backgrounds import nearest_shape
from ..pictures import GEMINI_RATIOS
from .asking import words_of
from .scene import Scene

KIND = "gemini_content"


def body(scene: Scene, settings: Generator) -> dict:
    """Of a request: pictures first, then the words; the ratio nearest to the target's."""
    ratio = nearest_shape(*scene.size, GEMINI_RATIOS)
    parts = [*({"image": index} for index in range(len(scene.files))), {"text": words_of(scene)}]
    return {
        "contents": [{"role": "user", "parts": parts}],
        "config": {
            "response_modalities": ["IMAGE"],
            "image_config": {"aspect_ratio": f"{ratio[0]}:{ratio[1]}", "image_size": settings.size},
        },
    }
