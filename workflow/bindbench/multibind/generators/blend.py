"""A fault on purpose: everyone averaged with the next, the last with the first."""

import numpy as np

from ...config.multibind_generators import Generator
from .pasting import pasted, person_of
from .scene import Scene


def picture(scene: Scene, settings: Generator) -> np.ndarray:
    people = [person_of(scene, slot) for slot in scene.slots]
    pairs = zip(people, [*people[1:], people[0]], strict=True)
    return pasted(scene, dict(zip(scene.slots, map(list, pairs), strict=True)), settings.stretch)
