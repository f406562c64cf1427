"""Which face of a crop is the person's: the largest whose middle lies in the mask (M-15)."""

import numpy as np

from ...people.faces import Face, find_faces
from .base import Crop


def own_face(crop: Crop, min_score: float) -> Face | None:
    """YuNet's, in pixels of the crop; None where there is none."""
    faces = find_faces(crop.pixels, min_score)
    index = largest_inside([face.box for face in faces], crop.mask)
    return None if index is None else faces[index]


def largest_inside(boxes: list[tuple[float, float, float, float]], mask: np.ndarray) -> int | None:
    """Number of the largest box [x, y, width, height] whose middle lies in a (height, width) bool mask; of equal ones the first."""
    inside = [index for index, box in enumerate(boxes) if _holds(mask, box[0] + box[2] / 2, box[1] + box[3] / 2)]
    return max(inside, key=lambda index: (boxes[index][2] * boxes[index][3], -index), default=None)


def _holds(mask: np.ndarray, x: float, y: float) -> bool:
    row, column = int(np.floor(y)), int(np.floor(x))
    return 0 <= row < mask.shape[0] and 0 <= column < mask.shape[1] and bool(mask[row, column])
