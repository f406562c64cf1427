"""Colours of clothes and hair by region of the mask, named by the nearest of a small table in CIELAB. Bare skin is left out."""

import cv2
import numpy as np

from ...config.multibind_annotation import Measures
from .bodies import Body

# Ours: sRGB of colours as people name them.
COLOURS = {
    "black": (20, 20, 22),
    "dark grey": (70, 70, 72),
    "grey": (125, 125, 127),
    "light grey": (190, 190, 192),
    "white": (245, 245, 243),
    "dark red": (110, 20, 25),
    "red": (200, 35, 40),
    "pink": (235, 150, 170),
    "dark brown": (65, 42, 30),
    "brown": (120, 80, 50),
    "tan": (190, 150, 110),
    "beige": (222, 205, 175),
    "orange": (235, 130, 40),
    "yellow": (240, 215, 70),
    "olive green": (110, 110, 50),
    "dark green": (25, 70, 45),
    "green": (60, 150, 75),
    "turquoise": (65, 180, 180),
    "dark blue": (25, 35, 80),
    "blue": (45, 100, 190),
    "light blue": (150, 190, 230),
    "purple": (105, 55, 130),
    "lilac": (185, 160, 210),
}
_NAMES = tuple(COLOURS)


def lab_of(image: np.ndarray) -> np.ndarray:
    """(height, width, 3) float32 CIELAB of uint8 RGB: L* from 0 to 100."""
    return cv2.cvtColor(np.asarray(image, np.float32) / 255, cv2.COLOR_RGB2LAB)


_TABLE = lab_of(np.array([list(COLOURS.values())], np.uint8))[0]


def named_colours(pixels: np.ndarray, least_share: float) -> list[str]:
    """The names that at least this share of (n, 3) CIELAB pixels are nearest to, the most frequent first; at least one."""
    nearest = np.argmin(((pixels[:, None] - _TABLE) ** 2).sum(-1), axis=1)
    shares = np.bincount(nearest, minlength=len(_NAMES)) / len(pixels)
    order = np.argsort(-shares, kind="stable")
    return [_NAMES[index] for rank, index in enumerate(order) if rank == 0 or shares[index] >= least_share]


def clothes_of(lab: np.ndarray, mask: np.ndarray, body: Body, scale: float, limits: Measures) -> dict:
    """Colour and pattern of the clothes by region of the mask; what they are cannot be measured."""
    clothed = mask & ~_bare(lab, body, scale, limits)
    names = {"upper_body": "clothing of the upper body", "lower_body": "clothing of the lower body", "feet": "footwear"}
    clothes = {}
    for region, (top, bottom) in body.regions().items():
        area = np.zeros_like(mask)
        area[max(0, round(top * scale)) : max(0, round(bottom * scale))] = True
        area &= clothed
        if area.sum() >= 40:
            colours = named_colours(lab[area], limits.colour_share)[:2]
            pattern = "patterned" if spread_of(lab[..., 0], area) >= limits.patterned else "plain"
            clothes[region] = {"garment": names[region], "colour": " and ".join(colours), "pattern": pattern}
    return clothes


def hair_of(lab: np.ndarray, mask: np.ndarray, body: Body, scale: float, limits: Measures) -> dict | None:
    """The colour above the face, where it is another than the face's own; a hat cannot be told from hair."""
    if body.person.face_box is None:
        return None
    x, y, width, height = (value * scale for value in body.person.face_box)
    area = np.zeros_like(mask)
    area[
        max(0, round(y - 0.35 * height)) : max(0, round(y + 0.05 * height)), max(0, round(x)) : max(0, round(x + width))
    ] = True
    area &= mask
    bare = _bare_colour(lab, body, scale)
    if bare is None or area.sum() < 20:
        return None
    colour = np.median(lab[area], axis=0)
    # A bald head is as tinted as the face, and lit more brightly; light hair of such a tint cannot be told from it.
    if np.hypot(*(colour - bare)[1:]) < limits.bare_distance / 2 and colour[0] > bare[0] - 2 * limits.bare_distance:
        return None
    return {"colour": named_colours(colour[None], limits.colour_share)[0]}


def _bare(lab: np.ndarray, body: Body, scale: float, limits: Measures) -> np.ndarray:
    """(height, width) bool: as coloured as the middle of the face. It serves to leave skin out, and is not written down."""
    bare = _bare_colour(lab, body, scale)
    if bare is None:
        return np.zeros(lab.shape[:2], bool)
    return np.sqrt(((lab - bare) ** 2).sum(-1)) < limits.bare_distance


def _bare_colour(lab: np.ndarray, body: Body, scale: float) -> np.ndarray | None:
    """(3,) CIELAB, the median of the middle of the face; None without a face."""
    if body.person.face_box is None:
        return None
    x, y, width, height = (value * scale for value in body.person.face_box)
    rows = slice(max(0, round(y + 0.3 * height)), max(1, round(y + 0.8 * height)))
    columns = slice(max(0, round(x + 0.25 * width)), max(1, round(x + 0.75 * width)))
    middle = lab[rows, columns].reshape(-1, 3)
    return np.median(middle, axis=0) if len(middle) else None


def spread_of(lightness: np.ndarray, area: np.ndarray) -> float:
    """Mean local standard deviation of lightness, in windows of 5 x 5 pixels that lie within the area."""
    inner = cv2.erode(area.astype(np.uint8), np.ones((5, 5), np.uint8)).astype(bool)
    if not inner.any():
        return 0.0
    mean, square = cv2.blur(lightness, (5, 5)), cv2.blur(lightness**2, (5, 5))
    return float(np.sqrt(np.maximum(square - mean**2, 0))[inner].mean())
