"""Masks of people as run lengths: COCO's compressed counts, through pycocotools.

A mask is a (height, width) array of bool; a box is [x, y, width, height] in pixels.
"""

from collections.abc import Sequence

import numpy as np
from pycocotools import mask as coco


class BrokenMask(Exception):
    """Why a mask cannot be read: one line."""


def encode_mask(mask: np.ndarray) -> str:
    """Compressed run lengths of a (height, width) mask."""
    return coco.encode(np.asfortranarray(mask, dtype=np.uint8))["counts"].decode("ascii")


def decode_mask(counts: str, height: int, width: int) -> np.ndarray:
    """(height, width) bool. Raises BrokenMask for run lengths that do not fill exactly this size."""
    check_counts(counts, height, width)
    return coco.decode({"size": [height, width], "counts": counts.encode("ascii")}).astype(bool)


def check_counts(counts: str, height: int, width: int) -> None:
    """Raises BrokenMask unless compressed run lengths fill exactly this size: pycocotools would write beyond the picture."""
    if _area_of_runs(counts) != height * width:
        raise BrokenMask(f"run lengths of another size than {width} x {height}")


def _area_of_runs(counts: str) -> int:
    """Pixels that COCO's compressed counts describe, or -1 where they are broken.

    Each number is written in groups of five bits, the lowest first; from the fourth on it is the difference to the number
    two before it. Six groups hold any picture of less than 2^29 pixels; pycocotools reads longer ones in another way.
    """
    if not isinstance(counts, str) or not counts.isascii():
        return -1
    runs: list[int] = []
    position, data = 0, counts.encode("ascii")
    while position < len(data):
        value, shift, more = 0, 0, True
        while more:
            if position >= len(data) or not 48 <= data[position] < 112 or shift > 25:
                return -1
            group = data[position] - 48
            value |= (group & 0x1F) << shift
            more = bool(group & 0x20)
            position, shift = position + 1, shift + 5
            if not more and group & 0x10:
                value |= -1 << shift
        if len(runs) > 2:
            value += runs[-2]
        if value < 0:
            return -1
        runs.append(value)
    return sum(runs)


def counts_of_polygons(polygons: list[list[float]], height: int, width: int) -> str:
    """Compressed run lengths of COCO's polygons [x1, y1, x2, y2, ...], each filled.

    Raises BrokenMask for one with fewer than three corners, or with corners that are no numbers or lie further outside than
    the picture is large: pycocotools would walk along all of its outline.
    """
    if not isinstance(polygons, list) or not polygons:
        raise BrokenMask("no polygon")
    outlines = []
    for polygon in polygons:
        if not isinstance(polygon, list) or len(polygon) < 6 or len(polygon) % 2:
            raise BrokenMask("a polygon with fewer than three corners")
        try:
            corners = np.array(polygon, dtype=np.float64).reshape(-1, 2)
        except (TypeError, ValueError, OverflowError):
            raise BrokenMask("a polygon with corners that are no numbers") from None
        size = np.array([width, height])
        if not ((corners >= -size) & (corners <= 2 * size)).all():
            raise BrokenMask("a polygon far outside of the picture")
        outlines.append(corners.ravel().tolist())
    return coco.merge(coco.frPyObjects(outlines, height, width))["counts"].decode("ascii")


def counts_of_runs(runs: list[int], height: int, width: int) -> str:
    """Compressed run lengths of plain ones, down the columns, the first of what is not set. Raises BrokenMask for another size."""
    whole = all(isinstance(run, int) and not isinstance(run, bool) and run >= 0 for run in runs)
    if not whole or sum(runs) != height * width:
        raise BrokenMask(f"run lengths of another size than {width} x {height}")
    return coco.frPyObjects({"size": [height, width], "counts": runs}, height, width)["counts"].decode("ascii")


def box_of_counts(counts: str, height: int, width: int) -> list[float]:
    """[x, y, width, height] of what compressed run lengths set; all zero for nothing. Raises BrokenMask for another size."""
    check_counts(counts, height, width)
    return coco.toBbox({"size": [height, width], "counts": counts.encode("ascii")}).tolist()


def box_of_mask(mask: np.ndarray) -> list[float]:
    """[x, y, width, height] of what is set; all zero for an empty mask."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if not len(rows):
        return [0.0, 0.0, 0.0, 0.0]
    x, y = int(columns[0]), int(rows[0])
    return [float(x), float(y), float(columns[-1] + 1 - x), float(rows[-1] + 1 - y)]


def mask_iou(first: np.ndarray, second: np.ndarray) -> float:
    """Intersection over union; 0 for two empty masks."""
    union = np.logical_or(first, second).sum()
    return float(np.logical_and(first, second).sum() / union) if union else 0.0


def box_iou(first: Sequence[float], second: Sequence[float]) -> float:
    """Intersection over union of two boxes [x, y, width, height]."""
    wide = min(first[0] + first[2], second[0] + second[2]) - max(first[0], second[0])
    high = min(first[1] + first[3], second[1] + second[3]) - max(first[1], second[1])
    shared = max(0.0, wide) * max(0.0, high)
    union = first[2] * first[3] + second[2] * second[3] - shared
    return shared / union if union > 0 else 0.0
