"""Background, light and camera, from pixels and the people's boxes."""

from collections.abc import Sequence

import cv2
import numpy as np

from ...config.multibind_annotation import Measures
from ...language import listed
from .bodies import HIPS, KNEES, Body, word_below
from .colours import named_colours, spread_of

BACKGROUND_SHARE, PLACE_SHARE = 0.12, 0.15  # of an area, that a colour covers to be named


PLACES = {
    "along the top": (slice(0, 1), slice(0, 3)),
    "on the left": (slice(1, 2), slice(0, 1)),
    "in the middle": (slice(1, 2), slice(1, 2)),
    "on the right": (slice(1, 2), slice(2, 3)),
    "along the bottom": (slice(2, 3), slice(0, 3)),
}


def background_of(lab: np.ndarray, behind: np.ndarray, limits: Measures) -> dict:
    """Colours outside the masks, as a whole and by place; what is to be seen there cannot be measured."""
    if behind.sum() < 100:
        return {"setting": "hardly anything beside the people"}
    colours = named_colours(lab[behind], BACKGROUND_SHARE)[:4]
    spread = spread_of(lab[..., 0], behind)
    light = float(lab[..., 0][behind].mean())
    tone = word_below(light, (35, "a dark"), (65, "a medium-light"), (101, "a light"))
    textures = word_below(
        spread,
        (1.5, "mostly smooth, without fine detail"),
        (4.0, "moderately detailed"),
        (99, "full of edges and fine detail"),
    )
    places = []
    height, width = behind.shape
    rows, columns = [0, height // 3, 2 * height // 3, height], [0, width // 3, 2 * width // 3, width]
    for words, (down, across) in PLACES.items():
        part = (slice(rows[down.start], rows[down.stop]), slice(columns[across.start], columns[across.stop]))
        pixels = lab[part][behind[part]]
        if len(pixels) >= 0.2 * behind[part].size:
            named = named_colours(pixels, PLACE_SHARE)[:3]
            mainly = f"mainly {listed(named)}"
            places.append(f"a {mainly} area {words}")
    setting = f"{tone} scene behind the people"
    return {"setting": setting, "objects": places, "colours": colours, "textures": textures}


def light_of(lab: np.ndarray) -> dict:
    """Brightness, contrast and tint of the whole picture."""
    lightness = lab[..., 0]
    mean, spread = float(lightness.mean()), float(lightness.std())
    brightness = word_below(
        mean, (25, "very dim"), (40, "rather dim"), (55, "of medium strength"), (70, "bright"), (101, "very bright")
    )
    contrast = word_below(spread, (14, "low"), (23, "medium"), (99, "high"))
    dark, pale = round(100 * float((lightness < 20).mean())), round(100 * float((lightness > 85).mean()))
    details = [f"deep shadows over about {dark} percent of the picture"] if dark >= 3 else []
    details += (
        [
            f"very light areas over about {pale} percent of it"
            if details
            else f"very light areas over about {pale} percent of the picture"
        ]
        if pale >= 3
        else []
    )
    half = lightness.shape[1] // 2
    left, right = float(lightness[:, :half].mean()), float(lightness[:, half:].mean())
    even = "spread evenly over both halves of the picture"
    side = (
        even if abs(left - right) < 6 else f"stronger on the {'left' if left > right else 'right'} half of the picture"
    )
    tint = float(lab[..., 2].mean())
    temperature = word_below(
        tint,
        (-6, "apparently cool"),
        (6, "apparently neutral"),
        (14, "apparently slightly warm"),
        (999, "apparently warm"),
    )
    return {
        "brightness": f"{brightness} and {side}",
        "contrast": f"{contrast}, with {listed(details)}" if details else contrast,
        "temperature": f"{temperature}, judged by the picture as a whole",
    }


RATIOS = {"1 to 1": 1.0, "5 to 4": 1.25, "4 to 3": 4 / 3, "3 to 2": 1.5, "16 to 9": 16 / 9, "2 to 1": 2.0}


def camera_of(image: np.ndarray, people: np.ndarray, bodies: Sequence[Body]) -> dict:
    """Framing from the people's boxes and joints, depth of field from sharpness in and outside the masks."""
    heights = sorted(body.position.bottom - body.position.top for body in bodies)
    low, high = heights[0], heights[-1]
    fill = f"about {low}" if low == high else f"between {low} and {high}"
    height, width = image.shape[:2]
    ratio = max(width, height) / min(width, height)
    sides = min(RATIOS, key=lambda name: abs(RATIOS[name] - ratio))
    kind = "square" if ratio < 1.08 else "landscape" if width > height else "portrait"
    return {
        "framing": f"{_shot(bodies)}, in which the people fill {fill} percent of the picture's height",
        "depth_of_field": _depth(image, people),
        "picture": f"a {kind} format, with sides of about {sides}" if kind != "square" else "a square format",
    }


def _shot(bodies: Sequence[Body]) -> str:
    if not any("bottom" in body.position.cut_by for body in bodies):
        return "a full shot that ends below the people"
    if all("bottom" in body.position.cut_by for body in bodies):
        joints = [body for body in bodies if body.person.joints is not None]
        if any(body.at(joint) is not None for body in joints for joint in KNEES):
            return "a medium long shot from about the knees up"
        if any(body.at(joint) is not None for body in joints for joint in HIPS):
            return "a medium shot from about the hips up"
        return "a medium close shot of the upper bodies" if joints else "a shot whose lower edge cuts the people"
    return "a shot that shows some of the people to the feet and cuts others at the lower edge"


def _depth(image: np.ndarray, people: np.ndarray) -> str | None:
    """Sharpness outside the masks against that within, by the gradients of the lightest tenth of pixels of each."""
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)
    edges = np.hypot(cv2.Sobel(grey, cv2.CV_32F, 1, 0), cv2.Sobel(grey, cv2.CV_32F, 0, 1))
    around = cv2.dilate(people.astype(np.uint8), np.ones((9, 9), np.uint8)).astype(bool)
    if people.sum() < 100 or (~around).sum() < 100:
        return None
    inside, outside = np.percentile(edges[people], 95), np.percentile(edges[~around], 95)
    ratio = float(outside / max(inside, 1e-9))
    return word_below(
        ratio,
        (0.45, "apparently shallow, with the surroundings clearly softer than the people"),
        (0.8, "apparently moderate, with the surroundings a little softer than the people"),
        (1e9, "apparently deep, with the surroundings about as sharp as the people"),
    )
