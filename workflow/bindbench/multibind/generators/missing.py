"""A fault on purpose: one person is not there, and the background shows in their place."""

import numpy as np

from ...config.multibind_generators import Generator
from .pasting import in_place, pasted, person_of
from .scene import Scene


def picture(scene: Scene, settings: Generator) -> np.ndarray:
    there = [slot for slot in scene.slots if slot != settings.person]
    return pasted(scene, {slot: in_place(scene, slot, person_of(scene, slot), 1) for slot in there})
