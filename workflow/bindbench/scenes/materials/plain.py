"""Paints and metals without a pattern: the nine colours, golden, silver, rainbow, gradient."""

import numpy as np

from ..colours import PALETTE, linear, mix, step
from ..surface import Surface
from .coat import Coat, material

RAINBOW = np.stack(
    [PALETTE[c] for c in ("red", "orange", "yellow", "green")] + [linear("28b6e8"), PALETTE["blue"], PALETTE["purple"]]
)


@material("plain", PALETTE)
def plain(surface: Surface, colour: np.ndarray) -> Coat:
    dark = colour is PALETTE["black"]
    return Coat(colour, roughness=0.3, specular=0.05 if dark else 0.04, tone=0.3 if dark else 0.6, groove=0.62)


@material("golden")
def golden(surface: Surface) -> Coat:
    return Coat(linear("f3bf3b"), roughness=0.2, metalness=1, tone=0.38, groove=0.6)


@material("silver")
def silver(surface: Surface) -> Coat:
    return Coat(linear("dfe2e6"), roughness=0.16, metalness=1, tone=0.42, groove=0.6)


@material("rainbow")
def rainbow(surface: Surface) -> Coat:
    band = np.clip((1 - surface.rise) * 7, 0, 6.99)
    lower = np.minimum(band.astype(np.int64), 5)
    into = step(0.97, 1.03, band - lower)  # a soft edge between neighbouring bands
    return Coat(mix(RAINBOW[lower].T, RAINBOW[lower + 1].T, into), tone=0.45, groove=0.6)


@material("gradient", PALETTE, PALETTE)
def gradient(surface: Surface, top: np.ndarray, bottom: np.ndarray) -> Coat:
    return Coat(mix(top, bottom, step(0.88, 0.12, surface.rise)), roughness=0.32, tone=0.42, groove=0.6)
