"""Seedream 4.5 by its HTTP API (ModelArk): pictures as data URLs, one picture without a watermark back."""

import math

from ...config.multibind_generators import Generator
from .asking import words_of
from .scene import Scene

KIND = "seedream_image"
LEAST_PX = 2560 * 1440  # it makes no smaller pictures
STEP_PX = 16


def body(scene: Scene, settings: Generator) -> dict:
    """Of a request; the smallest size that is sold, in the target's shape."""
    width, height = smallest_sold(*scene.size)
    return {
        "prompt": words_of(scene),
        "size": f"{width}x{height}",
        "sequential_image_generation": "disabled",
        "response_format": "b64_json",
        "watermark": False,
    }


def smallest_sold(width: int, height: int) -> tuple[int, int]:
    """Width and height of the shape of a picture, with at least LEAST_PX pixels and sides of whole steps."""
    scale = max(1.0, math.sqrt(LEAST_PX / (width * height)))
    return tuple(math.ceil(round(side * scale / STEP_PX, 6)) * STEP_PX for side in (width, height))
