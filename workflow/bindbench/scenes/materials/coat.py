"""What a material gives the light to work with (`Coat`), and the list of all materials.

A material is a function of a surface and of the values of its slots (colours, or words such as "dark-brown"), entered
into MATERIALS by the decorator `material`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..surface import Surface


@dataclass
class Coat:
    """Planes are (n,) or (3, n) float32 over a surface's pixels; a colour (3,) is the same everywhere.

    albedo: colour. roughness, metalness, specular: its finish.
    slope: (2, n), tilts the normal: bumps.
    tone, groove: how dark the drawing's dark parts and the grooves between its parts become, 0 to 1. Busy patterns
        need much of both, or a ball's seams and a clock's hands get lost in them.
    emission: light of its own. glow: colour of the halo that it throws on the surroundings.
    clearness: share of the light from behind that passes; tint: the colour that this light takes.
    mirrored: what clear glass mirrors, times this.
    shadow: strength of the shadow. alpha: coverage, where it is not the surface's own (fur).
    """

    albedo: np.ndarray
    roughness: float = 0.35
    metalness: float = 0.0
    specular: float = 0.04
    slope: np.ndarray | None = None
    tone: float = 0.5
    groove: float = 0.75
    emission: np.ndarray | None = None
    glow: np.ndarray | None = None
    clearness: np.ndarray | float = 0.0
    tint: np.ndarray | None = None
    mirrored: float = 1.0
    shadow: float = 1.0
    alpha: np.ndarray | None = None


@dataclass(frozen=True)
class Material:
    """paint: function of a surface and one value a slot. slots: for each slot the words it knows and what they mean."""

    paint: Callable[..., Coat]
    slots: tuple[dict[str, object], ...]
    furry: bool = False

    def coat(self, surface: Surface, words: tuple[str, ...]) -> Coat:
        return self.paint(surface, *(values[word] for values, word in zip(self.slots, words, strict=True)))


MATERIALS: dict[str, Material] = {}


def material(name: str, *slots: dict[str, object], furry: bool = False) -> Callable:
    """Enters a paint function into MATERIALS."""

    def enter(paint: Callable[..., Coat]) -> Callable[..., Coat]:
        MATERIALS[name] = Material(paint, slots, furry)
        return paint

    return enter
