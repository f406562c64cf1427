"""Light: how bright a pixel is that faces a given way, read from tables instead of being computed per pixel.

One key light from the upper left, one fill light, a bright sky over a grey floor, and two soft boxes that metals and
glossy paint mirror. For each finish the answer depends on the normal alone, so it is a picture of a lit ball.
"""

from functools import lru_cache

import cv2
import numpy as np

from .colours import step
from .surface import ROW

BALL = 160  # pixels across a table
KEY = np.array([-0.48, -0.62, 0.62]) / np.linalg.norm([-0.48, -0.62, 0.62])
FILL = np.array([0.75, -0.15, 0.6]) / np.linalg.norm([0.75, -0.15, 0.6])
VIEWER = np.array([0.0, 0.0, 1.0])
HALFWAY = (KEY + VIEWER) / np.linalg.norm(KEY + VIEWER)  # between the key light and the viewer


def _ball() -> np.ndarray:
    """Unit normals (3, BALL, BALL) of a ball seen from the front; beyond its outline those of the outline."""
    line = np.linspace(-1, 1, BALL)
    across, down = np.meshgrid(line, line)
    beyond = np.maximum(np.hypot(across, down) / 0.995, 1)
    across, down = across / beyond, down / beyond
    return np.stack([across, down, np.sqrt(1 - across**2 - down**2)])


def _along(normals: np.ndarray, direction: np.ndarray) -> np.ndarray:
    return np.clip(np.tensordot(direction, normals, axes=1), 0, 1)


def _surroundings(normals: np.ndarray, roughness: float) -> np.ndarray:
    """Light that comes from where a mirror with these normals looks to."""
    across, down = 2 * normals[2] * normals[:2]
    up = -down
    light = 0.34 + 0.30 * step(-0.15, 0.9, up) - 0.22 * step(0.0, -0.9, up)
    blur = 0.05 + roughness * 0.9
    for x, y, width, height, strength in (
        (-0.5, 0.62, 0.2, 0.18, 1.9 / (1 + 2.5 * roughness)),
        (0.72, 0.25, 0.07, 0.4, 0.9 / (1 + 2 * roughness)),
    ):
        beside, above = np.abs(across - x), np.abs(up - y)
        light = light + strength * step(width + blur, width - 0.6 * blur, beside) * step(
            height + blur, height - 0.6 * blur, above
        )
    horizon = step(0.12, 0.0, np.abs(up + 0.08)) * (1 - roughness)
    return np.clip(light - 0.22 * horizon, 0.02, None)


def _glint(normals: np.ndarray, roughness: float) -> np.ndarray:
    """Highlight of the key light (GGX distribution), capped so that it does not flicker with size."""
    width = max(roughness, 0.08) ** 4
    return np.minimum(width / (np.pi * (_along(normals, HALFWAY) ** 2 * (width - 1) + 1) ** 2 + 1e-6), 12)


def _window(normals: np.ndarray) -> np.ndarray:
    """The mirror image of a window with four panes, at the upper left: what tells the eye that glass is glass."""
    across, up = 2 * normals[2] * normals[0] + 0.52, -2 * normals[2] * normals[1] - 0.55
    pane = step(0.25, 0.20, np.abs(across)) * step(0.25, 0.20, np.abs(up))
    bars = np.minimum(step(0.015, 0.045, np.abs(across)), step(0.015, 0.045, np.abs(up)))
    return pane * bars


@lru_cache(maxsize=64)
def finish(roughness: float, metalness: float, specular: float) -> np.ndarray:
    """(BALL, BALL, 3) float32: light times albedo; the same, times openness; white light times openness."""
    normals = _ball()
    key = np.tensordot(KEY, normals, axes=1)
    lit, wrapped = np.clip(key, 0, 1), np.clip((key + 0.25) / 1.25, 0, 1)
    direct = 1.55 * (0.7 * lit + 0.3 * wrapped) + 0.32 * _along(normals, FILL)
    ambient = 0.30 + 0.42 * (0.5 - 0.5 * normals[1])
    mirrored, glint = _surroundings(normals, roughness), _glint(normals, roughness)
    grazing = (1 - normals[2]) ** 5
    gloss = (specular + (1 - specular) * grazing * (1 - roughness) ** 2) * (1.4 * mirrored + 0.65 * glint * lit)
    metal = 1.35 * mirrored + 0.06 * glint * lit
    matt = 0.62 * (1 - metalness)
    return np.dstack(
        [
            matt * 0.55 * direct,
            matt * (0.45 * direct + ambient) + metalness * metal * (1 - 0.6 * grazing),
            (1 - metalness) * gloss + metalness * metal * 0.6 * grazing,
        ]
    ).astype(np.float32)


@lru_cache(maxsize=1)
def glass() -> np.ndarray:
    """(BALL, BALL, 2) float32: share of the light behind clear glass that gets through, and light that it mirrors.

    Thick glass shows the room upside down: dark towards the top and at the outline, bright at the bottom.
    """
    normals = _ball()
    key = np.tensordot(KEY, normals, axes=1)
    outline = 1 - normals[2]
    through = (1.05 + 0.40 * normals[1]) * (1 - 0.88 * step(0.30, 0.70, outline))
    inner_light = 0.9 * step(-0.25, -0.6, key) * step(0.70, 0.45, outline)  # the key light, focused on the far side
    fresnel = np.clip(0.12 + 0.88 * outline**2.5, 0, 1) * 0.8
    rim = 0.9 * step(0.55, 0.85, outline) * step(-0.4, 0.6, key)
    mirrored = fresnel * _surroundings(normals, 0.04) + 0.75 * _window(normals) + rim
    return np.dstack([through + inner_light, mirrored + rim]).astype(np.float32)


def look_up(table: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Planes (channels, n) of a table for normals (2, n)."""
    half = np.float32((BALL - 1) / 2)
    at = [(component * half + half).reshape(-1, ROW) for component in normal]
    found = cv2.remap(table, *at, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.stack([channel.reshape(-1) for channel in cv2.split(found)])
