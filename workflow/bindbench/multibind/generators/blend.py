"""A fault on purpose: within everyone's outline half of the next person, the last with the first.

The next person is put so that face lies on face, by the landmarks that YuNet finds, or else into the box, where one of the two
shows no face. The outlines stay, so everybody is where they were.
"""

from collections.abc import Mapping

import numpy as np

from ...config.multibind_generators import Generator
from ...people.faces import Face, find_faces
from ..references import face_in
from .pasting import CutOut, fitted, in_place, layer, own_box, pasted, person_of
from .scene import Scene


def picture(scene: Scene, settings: Generator) -> np.ndarray:
    found = find_faces(scene.target)
    faces = {slot: face_in(found, scene.mask(slot)) for slot in scene.slots}
    layers = {}
    for slot, following in zip(scene.slots, (*scene.slots[1:], scene.slots[0]), strict=True):
        own = in_place(scene, slot, person_of(scene, slot), 1)
        box = box_of_next(scene, slot, following, faces, settings.stretch)
        layers[slot] = mixed(own, layer(person_of(scene, following), box, own.cover.shape))
    return pasted(scene, layers)


def box_of_next(
    scene: Scene, slot: str, following: str, faces: Mapping[str, Face | None], stretch: float
) -> tuple[int, int, int, int]:
    """x, y, width and height that a person gets in the place of another."""
    x, y, width, height = own_box(scene, following)
    if faces[slot] is None or faces[following] is None:
        return fitted((width, height), own_box(scene, slot), stretch)
    scale, (left, top) = onto(np.array(faces[following].landmarks), np.array(faces[slot].landmarks))
    return round(x * scale + left), round(y * scale + top), round(width * scale), round(height * scale)


def onto(points: np.ndarray, others: np.ndarray) -> tuple[float, np.ndarray]:
    """Scale and shift (2,) that bring (n, 2) points onto others: their centres onto one another, to the same spread."""
    centre, other = points.mean(0), others.mean(0)
    scale = float(np.linalg.norm(others - other) / np.linalg.norm(points - centre))
    return scale, other - centre * scale


def mixed(own: CutOut, following: CutOut) -> CutOut:
    """A layer with half of another one where that one is."""
    share = following.cover[..., None] / 2
    return CutOut(own.colours * (1 - share) + following.colours * share, own.cover)
