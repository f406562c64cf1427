"""A fault on purpose: one person in every place, that is dominance."""

import numpy as np

from ...config.multibind_generators import Generator
from .pasting import pasted, person_of
from .scene import Scene


def picture(scene: Scene, settings: Generator) -> np.ndarray:
    person = person_of(scene, settings.person)
    return pasted(scene, {slot: [person] for slot in scene.slots}, settings.stretch)
