"""Noise that repeats seamlessly over a square tile: value noise, fractal noise, cells.

Every noise has a name; the name alone seeds its PCG64 generator, so that a material looks the same in every image,
process and machine. Tiles are (size, size) float32; frequencies are whole numbers of periods over the tile.
"""

import zlib

import cv2
import numpy as np


def generator(name: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))


def coordinates(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions across (1, size) and down (size, 1) of a tile's pixel centres, in [0, 1)."""
    line = (np.arange(size, dtype=np.float32) + 0.5) / size
    return line[None, :], line[:, None]


def value_noise(name: str, size: int, across: int, down: int | None = None) -> np.ndarray:
    """Random values on a lattice of across x down points, joined by cubic interpolation; about [0, 1]."""
    down = down or across
    lattice = generator(name).random((down, across), dtype=np.float32)
    wrapped = np.pad(lattice, 2, mode="wrap")
    to_lattice = np.array([[across / size, 0, 1.5 + 0.5 * across / size], [0, down / size, 1.5 + 0.5 * down / size]])
    return cv2.warpAffine(
        wrapped, to_lattice, (size, size), flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP, borderMode=cv2.BORDER_REPLICATE
    )


def fractal_noise(
    name: str, size: int, across: int, octaves: int, gain: float = 0.5, down: int | None = None
) -> np.ndarray:
    """Sum of value noises, each of twice the frequency and `gain` times the strength of the one before; about [0, 1]."""
    total, strength, weight = np.zeros((size, size), np.float32), 1.0, 0.0
    for octave in range(octaves):
        total += strength * value_noise(f"{name}/{octave}", size, across << octave, (down or across) << octave)
        weight += strength
        strength *= gain
    return total / np.float32(weight)


def cells(
    name: str, size: int, across: int, down: int | None = None, warp: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Worley cells: distances to the nearest and the second nearest seed, in lattice units, and the cell's own number.

    warp: bends the cells' borders; an offset across in lattice units.
    """
    down = down or across
    x, y = coordinates(size)
    x, y = np.broadcast_to(x * across + warp, (size, size)), np.broadcast_to(y * down, (size, size))
    column, row = np.floor(x).astype(np.int32), np.floor(y).astype(np.int32)
    seeds = generator(name).random((3, down, across), dtype=np.float32)
    nearest = np.full((size, size), 9, np.float32)
    second, number = nearest.copy(), nearest.copy()
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            index = (row + dy) % down * across + (column + dx) % across
            distance = (column + dx - x + seeds[0].ravel()[index]) ** 2 + (row + dy - y + seeds[1].ravel()[index]) ** 2
            closer = distance < nearest
            second = np.where(closer, nearest, np.minimum(second, distance))
            number = np.where(closer, seeds[2].ravel()[index], number)
            nearest = np.minimum(nearest, distance)
    return np.sqrt(nearest), np.sqrt(second), number
