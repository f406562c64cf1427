"""The references pasted into the background at the true places: who is who is right, the edit set is as the references show it."""

import cv2
import numpy as np

from ...config.multibind_generators import Generator
from ..inpainting import without_gaps
from .pasting import CutOut, cut_out, in_place, pasted
from .scene import Scene

SMALL = 0.02  # parts smaller than this share of the largest are specks of the ground


class NothingToPaste(Exception):
    """Why a picture cannot be made, in one line."""


def picture(scene: Scene, settings: Generator) -> np.ndarray:
    """Raises NothingToPaste for a reference that shows nothing but its ground."""
    layers = {}
    for slot in scene.slots:
        reference = scene.reference(slot)
        mask = shown(reference, settings.grey_tolerance)
        if not mask.any():
            raise NothingToPaste(f"the reference of slot {slot} shows nothing but its ground")
        layers[slot] = in_place(scene, slot, softened(cut_out(reference, mask)), settings.stretch)
    return pasted(scene, layers)


def shown(reference: np.ndarray, tolerance: int) -> np.ndarray:
    """(height, width) bool: what a (height, width, 3) uint8 reference shows before its ground of one colour.

    The ground's colour is the median of the border. Specks are left out; what the rest encloses belongs to it.
    """
    border = np.concatenate([reference[0], reference[-1], reference[:, 0], reference[:, -1]])
    distance = np.abs(reference.astype(np.int16) - np.median(border, axis=0)).max(-1)
    number, parts, of_parts, _ = cv2.connectedComponentsWithStats((distance > tolerance).astype(np.uint8))
    areas = of_parts[1:, cv2.CC_STAT_AREA]
    if number < 2:
        return np.zeros(parts.shape, bool)
    kept = 1 + np.flatnonzero(areas >= SMALL * areas.max())
    return without_gaps(np.isin(parts, kept))


def softened(person: CutOut) -> CutOut:
    """With the outermost pixel half covered: the references' edges are mixed with their grey ground."""
    inner = cv2.erode(person.cover, np.ones((3, 3)), borderType=cv2.BORDER_CONSTANT, borderValue=0)
    return CutOut(person.colours, (person.cover + inner) / 2)
