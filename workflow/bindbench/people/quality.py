"""How good a person's mask is: measures by which MultiBind chooses its subjects (section 3.2)."""

import cv2
import numpy as np

SMALLEST_PIECE = 0.01  # of the mask's area: smaller connected parts are crumbs


def mask_quality(mask: np.ndarray, image: np.ndarray, box: list[float]) -> dict:
    """Measures of one person, by the names of the table CROPS.

    mask: (height, width) bool. image: (height, width, 3) uint8 RGB. box: [x, y, width, height] in pixels.
    area: share of the picture that the mask covers. filled: share of the box that it covers. pieces: its connected parts of at
    least a hundredth of its area. at_border: share of the box's outline that lies on the picture's border. sharpness: variance
    of the Laplacian of the crop, in grey levels squared. An empty mask, or a box without pixels, measures 0.
    """
    left, top, right, bottom = _pixels(box, mask.shape)
    inside = mask[top:bottom, left:right]
    return {
        "area": float(mask.mean()) if mask.size else 0.0,
        "filled": float(inside.mean()) if inside.size else 0.0,
        "pieces": count_pieces(mask),
        "at_border": _at_border(box, mask.shape),
        "sharpness": laplacian_variance(image[top:bottom, left:right]),
    }


def count_pieces(mask: np.ndarray) -> int:
    """Connected parts (also over corners) of at least a hundredth of the mask's area."""
    _, _, statistics, _ = cv2.connectedComponentsWithStats(np.ascontiguousarray(mask, np.uint8), connectivity=8)
    areas = statistics[1:, cv2.CC_STAT_AREA]
    return int((areas >= SMALLEST_PIECE * areas.sum()).sum())


def laplacian_variance(image: np.ndarray) -> float:
    """Of a (height, width, 3) uint8 RGB picture, in grey levels squared: low where it is blurred. 0 for one without pixels."""
    if not image.size:
        return 0.0
    grey = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY)
    return float(cv2.Laplacian(grey, cv2.CV_64F).var())


def _pixels(box: list[float], shape: tuple[int, int]) -> tuple[int, int, int, int]:
    x, y, width, height = box
    left, top = (min(max(0, round(start)), limit) for start, limit in ((x, shape[1]), (y, shape[0])))
    right, bottom = (min(max(0, round(end)), limit) for end, limit in ((x + width, shape[1]), (y + height, shape[0])))
    return left, top, max(left, right), max(top, bottom)


def _at_border(box: list[float], shape: tuple[int, int]) -> float:
    """A side counts as on the border when it is less than half a pixel from it, or beyond."""
    x, y, width, height = box
    if width <= 0 or height <= 0:
        return 0.0
    upright = (x < 0.5) + (x + width > shape[1] - 0.5)
    level = (y < 0.5) + (y + height > shape[0] - 0.5)
    return float((upright * height + level * width) / (2 * (width + height)))
