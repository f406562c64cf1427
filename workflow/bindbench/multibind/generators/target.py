"""The photograph itself: a perfect reconstruction, of which every measure must find nothing wrong."""

import numpy as np

from ...config.multibind_generators import Generator
from .scene import Scene


def picture(scene: Scene, settings: Generator) -> np.ndarray:
    """(height, width, 3) uint8, of the target's size, as of all embedded kinds."""
    return scene.target
