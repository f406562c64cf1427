"""Grown, weathered and crumpled stuffs: wood, stone, hide, sand, rust, moss, fur, paper, lava."""

import numpy as np

from ..colours import PALETTE, linear, mix, ramp, step
from ..noise import cells, coordinates, fractal_noise, value_noise
from ..surface import Surface, Tile, look_up
from .coat import Coat, material

TURN = np.float32(2 * np.pi)


def _wood(size: int) -> Tile:
    x, y = coordinates(size)
    waves = fractal_noise("wood", size, 2, 3, down=6)
    grain = fractal_noise("wood/grain", size, 7, 3, down=42)
    rings = np.abs(np.sin(TURN / 2 * (11 * y + 7 * waves + 0.9 * np.sin(TURN * x) * 0.5)))
    dark = np.clip(0.65 * rings**1.6 + 0.45 * (grain - 0.3), 0, 1)
    return Tile(dark, -1.5 * dark)


@material(
    "wooden",
    {"light-brown": (linear("e0b277"), linear("a8733a")), "dark-brown": (linear("6b3f1f"), linear("351b0c"))},
)
def wooden(surface: Surface, light_and_dark: tuple[np.ndarray, np.ndarray]) -> Coat:
    share, slope = look_up(_wood, surface, 0)
    return Coat(mix(*light_and_dark, share), roughness=0.5, slope=slope, tone=0.55, groove=0.85)


def _marble(size: int) -> Tile:
    x, y = coordinates(size)
    clouds, more = fractal_noise("marble", size, 4, 4), fractal_noise("marble/fine", size, 6, 4)
    wide = np.abs(np.sin(TURN / 2 * (2 * x + 2 * y + 2.6 * 1.02 * clouds)))
    fine = np.abs(np.sin(TURN / 2 * (x - 2 * y + 2.48 * more)))
    veins = 0.85 * step(0.30, 0, wide) + 0.6 * step(0.10, 0, fine) + 0.25 * (clouds - 0.35)
    return Tile(np.clip(veins, 0, 1))


@material(
    "marble",
    {
        "white": (linear("f2f0ec"), linear("74767e")),
        "black": (linear("17171a"), linear("c9c6bf")),
        "green": (linear("1f5a40"), linear("cfe0d2")),
    },
)
def marble(surface: Surface, stone_and_veins: tuple[np.ndarray, np.ndarray]) -> Coat:
    veins, _ = look_up(_marble, surface, 0)
    return Coat(mix(*stone_and_veins, veins), roughness=0.12, tone=0.5, groove=0.85)


def _leather(size: int) -> Tile:
    nearest, second, _ = cells("leather", size, 38)
    pebble = step(0.03, 0.25, second - nearest)
    worn = fractal_noise("leather/worn", size, 7, 3)
    return Tile((0.66 + 0.34 * pebble) * (0.72 + 0.56 * worn), 2.2 * pebble)


@material("leather", {"brown": linear("7b4322"), "black": linear("201d1d"), "tan": linear("b57b45")})
def leather(surface: Surface, hide: np.ndarray) -> Coat:
    brightness, slope = look_up(_leather, surface, 0)
    return Coat(hide[:, None] * brightness, roughness=0.34, specular=0.06, slope=slope, tone=0.5, groove=0.85)


def _cobbles(size: int) -> Tile:
    nearest, second, number = cells("cobblestone", size, 10)
    stone = step(0.03, 0.26, second - nearest)
    rough = fractal_noise("cobblestone/rough", size, 30, 3)
    return Tile((0.14 + 0.86 * stone) * (0.62 + 0.55 * number) + 0.4 * (rough - 0.5), 9 * stone + 6 * rough)


@material("cobblestone", {"gray": linear("93939a"), "beige": linear("c6ad8a")})
def cobblestone(surface: Surface, stone: np.ndarray) -> Coat:
    brightness, slope = look_up(_cobbles, surface, 0.8)
    return Coat(
        stone[:, None] * np.maximum(brightness, 0.05), roughness=0.95, specular=0.01, slope=slope, tone=0.68, groove=1.0
    )


def _sand(size: int) -> Tile:
    """Two channels: light grains, dark grains."""
    x, y = coordinates(size)
    fine = min(170, size // 2)
    grains = 0.6 * value_noise("sand", size, fine) + 0.4 * value_noise("sand/coarse", size, min(120, size // 2))
    ripples = np.sin(TURN * (7 * y + x + 1.5 * fractal_noise("sand/ripples", size, 8, 3)))
    dark = step(0.70, 0.80, value_noise("sand/dark", size, min(150, size // 2)))
    return Tile(np.dstack([np.clip(1.1 * grains - 0.05, 0, 1), dark]), 5 * grains + 1.2 * ripples)


@material("sandy")
def sandy(surface: Surface) -> Coat:
    (light, dark), slope = look_up(_sand, surface, 0)
    colour = mix(linear("a8834e"), linear("ead3a0"), light) * (1 - 0.45 * dark)
    return Coat(colour, roughness=1.0, specular=0.0, slope=slope, tone=0.55, groove=0.9)


def _rust(size: int) -> Tile:
    """Two channels: patches of bare steel, light and dark rust."""
    patches = fractal_noise("rust", size, 10, 5, 0.6)
    grains = fractal_noise("rust/grains", size, 44, 2)
    return Tile(np.dstack([step(0.58, 0.66, patches), grains]), 5 * grains + 6 * patches)


@material("rusty")
def rusty(surface: Surface) -> Coat:
    (steel, grains), slope = look_up(_rust, surface, 0)
    rust = mix(linear("7a2f10"), linear("c8641f"), step(0.3, 0.7, grains))
    colour = mix(rust, linear("6d7074"), steel) * (0.7 + 0.5 * grains)
    return Coat(colour, roughness=0.85, slope=slope, tone=0.58, groove=0.95)


def _moss(size: int) -> Tile:
    """Two channels: light and dark leaves, small pale blossoms."""
    clumps = fractal_noise("moss", size, 18, 4, 0.65)
    leaves = value_noise("moss/leaves", size, min(116, size // 2))
    blossoms = step(0.86, 0.92, value_noise("moss/blossoms", size, 52))
    return Tile(
        np.dstack([np.clip(1.4 * clumps - 0.3 + 0.3 * (leaves - 0.5), 0, 1), blossoms]), 22 * clumps + 5 * leaves
    )


@material("mossy")
def mossy(surface: Surface) -> Coat:
    (light, blossoms), slope = look_up(_moss, surface, 0)
    colour = mix(mix(linear("24410f"), linear("86b03a"), light), linear("dfe3a0"), 0.8 * blossoms)
    return Coat(colour, roughness=1.0, specular=0.0, slope=slope, tone=0.58, groove=0.95)


def _paper(size: int) -> Tile:
    """Facets between random creases, large and small."""
    warp = 0.8 * (fractal_noise("paper/warp", size, 10, 3) - 0.5)
    large, _, shade = cells("paper", size, 9, warp=warp)
    small, _, more = cells("paper/small", size, 17)
    return Tile(0.86 + 0.22 * (shade - 0.5) + 0.1 * (more - 0.5), 26 * large + 9 * small)


@material("crumpled-paper", {"white": linear("f1f0ec"), "brown": linear("b58a58")})
def crumpled_paper(surface: Surface, paper: np.ndarray) -> Coat:
    brightness, slope = look_up(_paper, surface, 0)
    return Coat(paper[:, None] * brightness, roughness=0.95, specular=0.01, slope=slope, tone=0.55, groove=0.9)


def _strands(size: int) -> Tile:
    """Hair that hangs down: noise, stretched downwards, at two lengths."""
    hair = 0.6 * value_noise("fur", size, min(128, size // 2), 22) + 0.4 * value_noise("fur/long", size, 64, 9)
    tufts = value_noise("fur/tufts", size, 12, 10)
    hair = hair + 0.18 * (tufts - 0.5)
    return Tile(np.clip(0.5 + (hair - hair.mean()) * (0.26 / hair.std()), 0, 1), 8 * hair)


@material("furry", PALETTE, furry=True)
def furry(surface: Surface, colour: np.ndarray) -> Coat:
    comb = np.stack([-0.35 * surface.across * surface.down, 0.06 * surface.normal[1]])
    strand, slope = look_up(_strands, surface, 0, comb)
    fringe = step(0.0, 0.22, surface.nap - 0.36 * (1 - strand) - 0.02 + 0.10 * (strand - 0.5))
    hair = np.maximum(colour, 0.045)[:, None] * (0.35 + 1.05 * strand) + 0.05 * strand**3
    return Coat(hair, roughness=0.95, specular=0.0, slope=slope, tone=0.62, groove=0.8, alpha=fringe)


def _lava(size: int) -> Tile:
    """Two channels: brightness of the crust, glow of the cracks."""
    warp = 1.4 * (fractal_noise("lava/warp", size, 12, 4) - 0.5)
    nearest, second, _ = cells("lava", size, 6, warp=warp)
    crack = step(0.15, 0.02, second - nearest)
    rough = fractal_noise("lava/rough", size, 28, 4)
    return Tile(np.dstack([0.5 + rough, crack]), 8 * rough - 8 * crack)


@material("lava")
def lava(surface: Surface) -> Coat:
    (crust, crack), slope = look_up(_lava, surface)
    heat = crack * np.maximum(1 - 1.6 * surface.groove, 0) * (0.4 + 0.6 * surface.tone)
    return Coat(
        linear("4d423d")[:, None] * crust,
        roughness=0.9,
        slope=slope,
        tone=0.5,
        groove=1.0,
        emission=1.1 * ramp([np.zeros(3), linear("d82a00"), 1.7 * linear("ffd23a")], heat),
    )
