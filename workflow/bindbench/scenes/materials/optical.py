"""Materials that play with light: glass, soap film, foil, ice, crystal, glitter, glow, a starry galaxy."""

import numpy as np

from ..colours import PALETTE, linear, mix, ramp, spectrum, step
from ..noise import cells, fractal_noise, value_noise
from ..surface import Surface, Tile, look_up
from .coat import Coat, material


@material("transparent")
def transparent(surface: Surface) -> Coat:
    return Coat(
        np.float32([0.9, 0.95, 0.97]),
        roughness=0.04,
        tone=0.12,
        groove=0.6,
        clearness=0.96,
        tint=np.float32([0.84, 0.97, 1.0]),
        shadow=0.45,
    )


def _film(size: int) -> Tile:
    return Tile(fractal_noise("soap-bubble", size, 6, 3))


@material("soap-bubble")
def soap_bubble(surface: Surface) -> Coat:
    thickness, _ = look_up(_film, surface, 0)
    outline = 1 - surface.facing
    colour = spectrum((1.7 * outline + 1.1 * thickness + 0.35 * surface.down) % 1) * 0.8 + 0.2
    opaque = np.clip(0.16 + 0.85 * outline**1.1, 0, 1)
    gleam = np.clip(0.06 + 0.94 * outline**3.2, 0, 1) * 0.68 + 0.09
    return Coat(
        colour,
        roughness=0.05,
        tone=0.15,
        groove=0.55,
        clearness=1 - 0.85 * opaque,
        tint=np.float32([0.98, 0.98, 1.0]),
        mirrored=0.8,
        emission=colour * gleam,
        shadow=0.3,
    )


def _foil(size: int) -> Tile:
    return Tile(fractal_noise("holographic", size, 4, 3))


@material("holographic")
def holographic(surface: Surface) -> Coat:
    folds, _ = look_up(_foil, surface, 0)
    across, down = surface.normal
    phase = 0.55 * surface.across + 0.35 * surface.down + 0.55 * across + 0.4 * down + 0.7 * folds
    return Coat(spectrum(phase % 1) * 0.55 + 0.42, roughness=0.16, metalness=0.85, tone=0.35, groove=0.8)


def _ice(size: int) -> Tile:
    """Two channels: cracks, cloudiness."""
    nearest, second, number = cells("ice", size, 8)
    clouds = fractal_noise("ice/clouds", size, 10, 4)
    return Tile(np.dstack([step(0.06, 0.0, second - nearest), clouds]), 6 * number + 4 * clouds)


@material("icy")
def icy(surface: Surface) -> Coat:
    (crack, clouds), slope = look_up(_ice, surface)
    return Coat(
        linear("cfeaf7")[:, None] * (0.8 + 0.3 * clouds) + 0.3 * crack,
        roughness=0.1,
        slope=slope,
        tone=0.4,
        groove=0.75,
        clearness=0.42,
        tint=linear("a9dcf6"),
        shadow=0.6,
    )


def _facets(size: int) -> Tile:
    """Four channels: tilt across and down, brightness, sparkle along edges and on some facets."""
    nearest, second, number = cells("crystal", size, 9)
    edge = step(0.06, 0.0, second - nearest)
    bright = 0.35 + 0.9 * np.abs(np.sin(37 * number))
    sparkle = 0.25 * edge + 0.5 * step(0.88, 0.97, np.abs(np.sin(91 * number)))
    return Tile(np.dstack([0.5 * np.sin(301 * number), 0.5 * np.cos(514 * number), bright, sparkle]))


@material("crystal", PALETTE)
def crystal(surface: Surface, colour: np.ndarray) -> Coat:
    (across, down, bright, sparkle), _ = look_up(_facets, surface, 0.7)
    light = 0.15 + 0.85 * float(colour.max())  # black crystal sparkles less, or it would look grey
    return Coat(
        colour[:, None] * (0.15 + bright) + sparkle * (0.35 * light + 0.65 * colour[:, None]),
        roughness=0.08,
        specular=0.03 + 0.03 * light,
        slope=np.stack([across, down]),
        tone=0.45,
        groove=0.85,
        clearness=0.2,
        tint=np.clip(0.85 * colour + 0.12 * light, 0, 1),
        shadow=0.7,
    )


def _flakes(size: int) -> Tile:
    """Two channels: shade of the flakes, and those that sparkle."""
    _, _, shade = cells("glitter", size, 52)
    _, _, other = cells("glitter/fine", size, 80)
    return Tile(np.dstack([shade, np.clip(step(0.80, 0.92, shade) + step(0.86, 0.95, other), 0, 1)]), 7 * shade)


@material("glittery", PALETTE)
def glittery(surface: Surface, colour: np.ndarray) -> Coat:
    (shade, sparkle), slope = look_up(_flakes, surface, 0)
    base = np.maximum(colour, 0.03)[:, None]
    flakes = base * (0.22 + shade) + sparkle * (0.35 * base + 0.75)
    light = 0.5 * step(0.93, 0.99, shade) * (1 - surface.groove)
    return Coat(
        flakes, roughness=0.4, metalness=0.25, slope=slope, tone=0.55, groove=0.95, emission=np.stack([light] * 3)
    )


@material("glowing", PALETTE)
def glowing(surface: Surface, colour: np.ndarray) -> Coat:
    """Bright in the middle, deep in colour at the outline. Black cannot shine: a dark body in a pale, violet aura."""
    outline = 1 - surface.facing**2
    if colour is PALETTE["black"]:
        aura = np.float32([0.70, 0.62, 1.0])
        rim = step(0.45, 1.0, outline) * (1 - 0.6 * surface.groove)
        return Coat(
            np.float32([0.008, 0.008, 0.010]),
            roughness=0.3,
            tone=0.3,
            emission=aura[:, None] * (0.9 * rim),
            glow=1.25 * aura,
            shadow=0.15,
        )
    core = mix(colour, np.minimum(0.45 * colour + 0.6, 1), 0.75 * (1 - outline))
    light = 1.25 * (0.55 + 0.45 * surface.tone) * (1 - 0.45 * surface.groove)
    return Coat(0.2 * colour, roughness=0.6, specular=0.0, tone=0.3, emission=core * light, glow=colour, shadow=0.15)


def _galaxy(size: int) -> Tile:
    """Four channels: colour of the nebula, stars."""
    clouds, more = fractal_noise("galaxy", size, 5, 5, 0.55), fractal_noise("galaxy/more", size, 6, 5, 0.55)
    violet = ramp([linear("0a0a2a"), linear("5a1f9a")], step(0.42, 0.68, clouds).reshape(-1))
    pink = mix(violet, linear("e04fb0"), 0.8 * step(0.58, 0.78, more).reshape(-1))
    nebula = mix(pink, linear("2f7fe0"), 0.6 * step(0.62, 0.8, 1 - more).reshape(-1))
    small = step(0.93, 0.99, value_noise("galaxy/small", size, min(110, size // 2)))
    stars = np.clip(step(0.90, 0.97, value_noise("galaxy/stars", size, 68)) + small, 0, 1)
    return Tile(np.dstack([nebula.reshape(3, size, size).transpose(1, 2, 0), stars]))


@material("galaxy")
def galaxy(surface: Surface) -> Coat:
    channels, _ = look_up(_galaxy, surface, 0)
    nebula, stars = channels[:3], channels[3]
    return Coat(
        nebula, roughness=0.25, tone=0.4, groove=0.85, emission=0.25 * nebula + 0.95 * stars * (1 - surface.groove)
    )
