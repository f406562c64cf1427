"""Colours of the renderer: the nine palette words of the paper as linear RGB, and helpers on colour planes.

All light is added and multiplied in linear RGB, float32; only `render` turns the finished image into sRGB bytes.
"""

import numpy as np


def linear(code: str) -> np.ndarray:
    """Linear RGB, (3,) float32 in [0, 1], of an sRGB hex code such as "f3bf3b"."""
    value = np.array([int(code[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4).astype(np.float32)


PALETTE = {
    "red": linear("d3171e"),
    "orange": linear("f57a10"),
    "yellow": linear("f7d117"),
    "green": linear("1f9e3a"),
    "blue": linear("1f58d8"),
    "purple": linear("8b22b0"),
    "pink": linear("f57fb6"),
    "white": linear("f4f4f2"),
    "black": linear("141416"),
}


def step(start: float, end: float, x: np.ndarray) -> np.ndarray:
    """Smooth step from 0 at `start` to 1 at `end` (start > end: falling), float32."""
    t = np.clip((x - start) * np.float32(1 / (end - start)), 0, 1)
    return t * t * (3 - 2 * t)


def plane(colour: np.ndarray) -> np.ndarray:
    """A colour (3,) as a column (3, 1) that broadcasts over pixels; planes (3, n) stay as they are."""
    return colour[:, None] if colour.ndim == 1 else colour


def mix(first: np.ndarray, second: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Colour planes (3, n): `first` where share (n,) is 0, `second` where it is 1; both are (3,) or (3, n)."""
    first = plane(first)
    return first + (plane(second) - first) * share


def spectrum(phase: np.ndarray) -> np.ndarray:
    """Fully saturated hues, (3, n), of phases (n,) that repeat with period 1."""
    offsets = np.array([[0], [4], [2]], np.float32)
    return np.clip(np.abs((phase * 6 + offsets) % 6 - 3) - 1, 0, 1) ** 2


def ramp(colours: list[np.ndarray], position: np.ndarray) -> np.ndarray:
    """Colour planes (3, n) of positions in [0, 1] along evenly spaced colours."""
    stops = np.linspace(0, 1, len(colours))
    table = np.stack([np.interp(np.linspace(0, 1, 256), stops, [c[i] for c in colours]) for i in range(3)]).astype(
        np.float32
    )
    return table[:, np.clip(position * 255, 0, 255).astype(np.uint8)]
