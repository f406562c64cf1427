"""Outlines of masks as polygons, to be drawn over pictures."""

import cv2
import numpy as np

SMALLEST = 3  # corners


def outlines_of(mask: np.ndarray, tolerance: float = 1.0) -> list[list[int]]:
    """Polygons [x1, y1, x2, y2, ...] around what is set in (height, width) bool, holes too, in whole pixels.

    tolerance: how far a polygon may lie from the edge, in pixels.
    """
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    polygons = [cv2.approxPolyDP(contour, tolerance, closed=True) for contour in contours]
    return [polygon.reshape(-1).tolist() for polygon in polygons if len(polygon) >= SMALLEST]


def svg_path(polygons: list[list[int]]) -> str:
    """The `d` of an SVG path of these polygons."""
    pieces = []
    for polygon in polygons:
        points = [f"{x} {y}" for x, y in zip(polygon[::2], polygon[1::2], strict=True)]
        pieces.append(f"M{'L'.join(points)}Z")
    return "".join(pieces)
