"""A fault on purpose: one person in every place, that is dominance."""

import numpy as np

from ...config.multibind_generators import Generator
from .pasting import in_place, pasted, person_of
from .scene import Scene


def picture(scene: Scene, settings: Generator) -> np.ndarray:
    person = person_of(scene, settings.person)
    return pasted(scene, {slot: in_place(scene, slot, person, settings.stretch) for slot in scene.slots})
