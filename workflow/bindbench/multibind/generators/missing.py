"""A fault on purpose: one person is not there, and the background shows in their place."""

import numpy as np

from ...config.multibind_generators import Generator
from .pasting import pasted, person_of
from .scene import Scene


def picture(scene: Scene, settings: Generator) -> np.ndarray:
    there = [slot for slot in scene.slots if slot != settings.person]
    return pasted(scene, {slot: [person_of(scene, slot)] for slot in there}, 1)
