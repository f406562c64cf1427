"""The visible surface of one object in one scene: its relief brought to size, as flat planes over the visible pixels.

Everything that a material or the light may ask of a pixel is here: where it lies, which way it faces, how deep in a
groove. Only pixels that show are kept, so that materials cost nothing where the object is not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from .relief import HEIGHT_UNIT, KEPT_RELIEFS, Relief

ROW = 256  # cv2.remap wants maps with two axes: planes hold a multiple of this many pixels
SCALE = 32000  # of the int16 maps, which resize faster than float32
SWAY = 0.13  # how far a pattern follows the body's roundness
FRINGE = 0.045  # how far fur may stand out, as a share of the object's size


@dataclass
class Surface:
    """Planes (n,) float32 over the pixels that show; n is a multiple of ROW, the last pixel is repeated.

    pixels: (n,) intp, index into the object's box, row by row.
    box: height and width of the box in pixels; its middle is the middle of the object's own rectangle.
    size: longer side of the object in pixels.
    across, down: position in [-1, 1] along the longer side, bent a little with the body.
    normal: (2, n), right and down; the component towards the viewer is `facing`.
    tone, groove, openness: light and dark of the drawing, closeness to a border of parts, ambient light that gets in.
    rise: height above the foot, 0 to 1.
    alpha: coverage; for furry materials (`nap` given) it reaches beyond the silhouette until the coat trims it.
    density: at least 1; patterns on thin objects repeat so much faster, so that a bicycle shows its stripes.
    """

    pixels: np.ndarray
    box: tuple[int, int]
    size: float
    across: np.ndarray
    down: np.ndarray
    normal: np.ndarray
    facing: np.ndarray
    tone: np.ndarray
    groove: np.ndarray
    openness: np.ndarray
    rise: np.ndarray
    alpha: np.ndarray
    nap: np.ndarray | None
    density: float
    silhouette: np.ndarray  # (height, width) coverage of the whole box, for shadows and halos


@dataclass(frozen=True)
class Maps:
    """What is derived once from a relief: two int16 arrays of four channels, and how thin the object is."""

    form: np.ndarray  # normal across and down (both times alpha), alpha, groove
    light: np.ndarray  # tone, openness, sway across and down
    density: float


@lru_cache(maxsize=KEPT_RELIEFS)
def maps(relief: Relief) -> Maps:
    """Normals, ambient openness and sway of a relief."""
    elevation = relief.elevation.astype(np.float32) * np.float32(HEIGHT_UNIT)
    alpha = relief.alpha.astype(np.float32) / 255
    across, down = (cv2.Sobel(elevation, cv2.CV_32F, *order, ksize=3, scale=-1 / 8) for order in ((1, 0), (0, 1)))
    length = np.sqrt(across**2 + down**2 + 0.95**2)
    across, down = across / length, down / length
    size = max(elevation.shape)
    openness = np.clip(1 - 0.05 * (cv2.GaussianBlur(elevation, (0, 0), size * 0.028) - elevation), 0.55, 1.05)
    sway = cv2.resize(np.dstack([across, down]), None, fx=0.25, fy=0.25, interpolation=cv2.INTER_AREA)
    sway = cv2.resize(cv2.GaussianBlur(sway, (0, 0), size * 0.05 / 4), elevation.shape[::-1])
    to_edge = cv2.distanceTransform((alpha > 0.5).astype(np.uint8), cv2.DIST_L2, 3)
    thickness = np.percentile(to_edge[to_edge > 0], 92) / size if (to_edge > 0).any() else 0.3
    form = np.dstack([across * alpha, down * alpha, alpha, relief.groove.astype(np.float32) / 255])
    light = np.dstack([relief.tone.astype(np.float32) / 255, openness / 1.05, sway])
    density = float(np.clip(0.3 / max(thickness, 0.02), 1.0, 2.1)) ** 0.8
    return Maps(*((values * SCALE).astype(np.int16) for values in (form, light)), density)


def fit(relief: Relief, size: float, furry: bool = False) -> Surface:
    """The surface of a relief whose longer side is `size` pixels; `furry` leaves room for a fringe around it."""
    source = maps(relief)
    height, width = source.form.shape[:2]
    scale = size / max(height, width)
    width, height = max(4, round(width * scale)), max(4, round(height * scale))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    form, light = (cv2.resize(values, (width, height), interpolation=how) for values in (source.form, source.light))
    border = 2 + int(size * FRINGE) if furry else 0
    if border:
        form = cv2.copyMakeBorder(form, *[border] * 4, cv2.BORDER_CONSTANT)
        light = cv2.copyMakeBorder(light, *[border] * 4, cv2.BORDER_REPLICATE)
    box = form.shape[:2]
    silhouette = form[..., 2].astype(np.float32) * np.float32(1 / SCALE)
    np.clip(silhouette, 0, 1, out=silhouette)
    soft = cv2.GaussianBlur(silhouette, (0, 0), size * 0.022) if furry else None
    shows = np.flatnonzero((soft if furry else silhouette) > 0.004)
    pixels = np.concatenate([shows, np.full(-len(shows) % ROW, shows[-1])])
    planes = np.empty((8, len(pixels)), np.float32)
    planes[:4] = form.reshape(-1, 4)[pixels].T
    planes[4:] = light.reshape(-1, 4)[pixels].T
    planes *= np.float32(1 / SCALE)
    normal, alpha, groove, tone, openness, sway = planes[:2], planes[2], planes[3], planes[4], planes[5], planes[6:]
    normal /= np.maximum(alpha, np.float32(0.02))
    row, column = np.divmod(pixels, box[1])
    middle = np.float32((box[1] - 1) / 2), np.float32((box[0] - 1) / 2)
    across, down = (column - middle[0]).astype(np.float32), (row - middle[1]).astype(np.float32)
    rise = np.clip(0.5 - down / np.float32(height), 0, 1)
    across, down = across * np.float32(2 / size), down * np.float32(2 / size)
    across += SWAY * sway[0]
    down += SWAY * sway[1]
    flat = 1 - normal[0] * normal[0] - normal[1] * normal[1]
    return Surface(
        pixels=pixels,
        box=box,
        size=size,
        across=across,
        down=down,
        normal=normal,
        facing=np.sqrt(np.maximum(flat, np.float32(0.02))),
        tone=np.clip(tone, 0, 1, out=tone),
        groove=np.clip(groove, 0, 1, out=groove),
        openness=openness * np.float32(1.05),
        rise=rise,
        alpha=np.clip(alpha, 0, 1, out=alpha),
        nap=soft.ravel()[pixels] if furry else None,
        density=source.density,
        silhouette=silhouette,
    )


@dataclass(frozen=True)
class Tile:
    """A square of pattern that repeats seamlessly and spans the object's longer side once (at density 1).

    values: (size, size) or (size, size, up to 4 channels) float32. height: (size, size), bumps, or None.
    """

    values: np.ndarray
    height: np.ndarray | None = None


@lru_cache(maxsize=256)
def _drawn(pattern: Callable[[int], Tile], size: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The tile's values and slopes, with one pixel of its neighbour tiles on each side, for bilinear look-up."""
    tile = pattern(size)
    values = tile.values.astype(np.float32)
    slopes = None
    if tile.height is not None:
        around = cv2.copyMakeBorder(tile.height.astype(np.float32), 2, 2, 2, 2, cv2.BORDER_WRAP)
        # 0.009: bump heights are in units in which 1 to 10 looks like a pebbled to a rocky surface
        slopes = [
            cv2.Sobel(around, cv2.CV_32F, *order, scale=-0.009 * size / 16)[1:-1, 1:-1] for order in ((1, 0), (0, 1))
        ]
        slopes = np.dstack(slopes)
    return cv2.copyMakeBorder(values, 1, 1, 1, 1, cv2.BORDER_WRAP), slopes


def look_up(
    pattern: Callable[[int], Tile], surface: Surface, crowding: float = 1.0, shift: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """The pattern's values, (n,) or (channels, n), and its slopes, (2, n) or None, at the surface's pixels.

    crowding: power of the surface's density by which the pattern repeats.
    shift: (2, n), moves the pattern; in units of the position.
    """
    repeat = surface.density**crowding
    size = int(np.clip(2 ** np.round(np.log2(surface.size * repeat)), 64, 1024))
    values, slopes = _drawn(pattern, size)
    at = []
    for axis, position in enumerate((surface.across, surface.down)):
        moved = position if shift is None else position + shift[axis]
        at.append(_wrapped(moved, np.float32(repeat / 2), np.float32(size)).reshape(-1, ROW))
    found = cv2.remap(values, *at, cv2.INTER_LINEAR)
    planes = _planes(found)
    if slopes is None:
        return planes, None
    return planes, _planes(cv2.remap(slopes, *at, cv2.INTER_LINEAR)) * np.float32(repeat)


def _wrapped(position: np.ndarray, repeat: np.float32, size: np.float32) -> np.ndarray:
    turns = position * repeat + np.float32(0.5)
    turns -= np.floor(turns)
    turns *= size
    turns += np.float32(0.5)
    return turns


def _planes(found: np.ndarray) -> np.ndarray:
    return found.reshape(-1) if found.ndim == 2 else np.stack([channel.reshape(-1) for channel in cv2.split(found)])
