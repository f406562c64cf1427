"""A fault on purpose: everyone blurred within their outline, that is drift: nobody is themselves, nor anybody else."""

import cv2
import numpy as np

from ...config.multibind_generators import Generator
from .pasting import CutOut, in_place, pasted, person_of
from .scene import Scene


def picture(scene: Scene, settings: Generator) -> np.ndarray:
    people = {slot: blurred(person_of(scene, slot), settings.blur) for slot in scene.slots}
    return pasted(scene, {slot: in_place(scene, slot, person, 1) for slot, person in people.items()})


def blurred(person: CutOut, share: float) -> CutOut:
    """A Gaussian blur of a person's own colours alone; the outline stays. share: of the longer side, see Generator.blur."""
    sigma = share * max(person.cover.shape)
    colours = cv2.GaussianBlur(person.colours * person.cover[..., None], (0, 0), sigma)
    weight = cv2.GaussianBlur(person.cover, (0, 0), sigma)
    return CutOut(colours / np.maximum(weight, 1e-6)[..., None], person.cover)
