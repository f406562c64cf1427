"""One scene as an image: floor, shadows and halos first, then every object with its material.

Light is added up in linear RGB float32. An object changes the floor (shadow, halo) but never another object, so that an
attribute cannot bleed into its neighbours. The same scene gives the same pixels on every run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from . import lighting
from .colours import plane, step
from .layout import HALO, Place, scatter
from .materials import Coat, find_material
from .relief import Relief
from .surface import Surface, fit

FLOOR_DETAIL = 2  # shadows and halos are soft: they are drawn at half the image's resolution
SQUASH, SHEAR = 0.30, 0.42  # of a shadow that falls to the right and away from the viewer
STANDS = 0.14  # what lies so close above the foot, as a share of the size, touches the floor
CONTACT = 0.026  # half the thickness of the dark line where an object touches the floor, as a share of its size
SHADES = 4096  # entries of the table from light to bytes
BRIGHTEST = 4.0


@dataclass(frozen=True)
class SceneObject:
    """shape: key of its relief. material: reference such as "striped" or "plain:red". slots: fill its open slots."""

    shape: str
    material: str
    slots: tuple[str, ...] = ()


@dataclass
class _Drawn:
    """An object brought to its place. left, top: of its box, in pixels of the image."""

    surface: Surface
    coat: Coat
    left: int
    top: int
    place: Place
    height: float


def render_scene(
    objects: list[SceneObject], reliefs: Mapping[str, Relief], image_px: int, layout_seed: str, flipped: bool
) -> np.ndarray:
    """Returns (image_px, image_px, 3) uint8 sRGB; `flipped` mirrors the finished image left to right (A.4).

    Raises KeyError for a shape without relief or an unknown material: check the vocabulary first.
    """
    return _mirrored(_painted(_placed(objects, reliefs, image_px, layout_seed), image_px), flipped)


def render_with_owners(
    objects: list[SceneObject], reliefs: Mapping[str, Relief], image_px: int, layout_seed: str, flipped: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The image of `render_scene`, and (image_px, image_px) int8: which object covers each pixel, -1 the floor."""
    drawn = _placed(objects, reliefs, image_px, layout_seed)
    owners = np.full(image_px * image_px, -1, np.int8)
    for number, thing in enumerate(drawn):
        alpha = thing.surface.alpha if thing.coat.alpha is None else thing.coat.alpha
        owners[_pixels_in_image(thing, image_px)[np.broadcast_to(alpha > 0.5, thing.surface.pixels.shape)]] = number
    image = _mirrored(_painted(drawn, image_px), flipped)
    return image, _mirrored(owners.reshape(image_px, image_px), flipped)


def _mirrored(image: np.ndarray, flipped: bool) -> np.ndarray:
    return np.ascontiguousarray(image[:, ::-1]) if flipped else image


def _placed(objects: list[SceneObject], reliefs: Mapping[str, Relief], image_px: int, layout_seed: str) -> list[_Drawn]:
    cv2.setNumThreads(1)
    places = scatter([reliefs[thing.shape].aspect for thing in objects], layout_seed)
    return [_drawn(thing, reliefs[thing.shape], place, image_px) for thing, place in zip(objects, places, strict=True)]


def _painted(drawn: list[_Drawn], image_px: int) -> np.ndarray:
    floor = _lit_floor(drawn, image_px)
    image = _bytes(floor)
    image = cv2.cvtColor(image, cv2.COLOR_GRAY2RGB) if image.ndim == 2 else cv2.merge(list(image))
    pixels = image.reshape(-1, 3)
    for thing in drawn:
        surface = thing.surface
        index = _pixels_in_image(thing, image_px)
        behind = floor.reshape(-1, image_px * image_px)[:, index]
        colour = _shaded(surface, thing.coat, behind)
        alpha = surface.alpha if thing.coat.alpha is None else thing.coat.alpha
        pixels[index] = _bytes(behind + (colour - behind) * alpha).T
    return image


def _pixels_in_image(thing: _Drawn, image_px: int) -> np.ndarray:
    """Where an object's visible pixels lie in the flattened image: (n,) intp."""
    row, column = np.divmod(thing.surface.pixels, thing.surface.box[1])
    return (row + thing.top) * image_px + column + thing.left


def _drawn(thing: SceneObject, relief: Relief, place: Place, image_px: int) -> _Drawn:
    material, preset = find_material(thing.material)
    size = place.size * image_px
    surface = fit(relief, size, material.furry)
    height = relief.aspect[1] * size
    left = round(place.x * image_px - surface.box[1] / 2)
    top = round(place.foot * image_px - height / 2 - surface.box[0] / 2)
    return _Drawn(surface, material.coat(surface, preset + tuple(thing.slots)), left, top, place, height)


def _shaded(surface: Surface, coat: Coat, behind: np.ndarray) -> np.ndarray:
    """Light (3, n) that comes from the object's pixels; behind: (1 or 3, n) light of the floor there."""
    normal = surface.normal
    if coat.slope is not None:
        normal = normal + coat.slope * (1 - np.float32(0.7) * surface.groove)
        normal /= np.sqrt(normal[0] * normal[0] + normal[1] * normal[1] + surface.facing * surface.facing)
    kept = (1 - coat.tone) + coat.tone * (np.float32(0.1) + surface.tone)
    kept *= 1 - np.float32(coat.groove) * surface.groove
    plain, open_, white = lighting.look_up(lighting.finish(coat.roughness, coat.metalness, coat.specular), normal)
    near_floor = 1 - np.float32(0.22) * step(0.28, 0.02, surface.rise) if coat.glow is None else np.float32(1)
    open_ *= surface.openness
    open_ += plain
    open_ *= kept * near_floor
    white *= surface.openness * near_floor * (1 - np.float32(0.5 * coat.groove) * surface.groove)
    colour = plane(coat.albedo) * open_
    colour += white
    if coat.tint is not None:
        through, mirrored = lighting.look_up(lighting.glass(), normal)
        through *= (1 - np.float32(0.75) * surface.groove) * (np.float32(0.80) + np.float32(0.24) * surface.tone)
        clear = coat.clearness
        colour = (
            colour * (1 - clear) + behind * plane(coat.tint) * (through * clear) + mirrored * np.float32(coat.mirrored)
        )
    if coat.emission is not None:
        colour += coat.emission
    return colour


@lru_cache(maxsize=4)
def _floor(image_px: int) -> np.ndarray:
    """Light (image_px, image_px) of the bare floor: grey, brighter in the middle, darker at the far edge."""
    line = (np.arange(image_px, dtype=np.float32) + np.float32(0.5)) / image_px
    across, down = line[None, :], line[:, None]
    light = 0.34 + 0.11 * step(0.0, 0.75, down) - 0.05 * step(0.75, 1.0, down)
    return (light * (1.06 - 0.5 * ((across - 0.45) ** 2 + (down - 0.55) ** 2))).astype(np.float32)


def _lit_floor(drawn: list[_Drawn], image_px: int) -> np.ndarray:
    """The floor with all shadows and halos: (h, w) while it is grey, (3, h, w) when a halo colours it."""
    side = -(-image_px // FLOOR_DETAIL)
    shade = np.ones((side, side), np.float32)
    for thing in drawn:
        _cast_shadow(shade, thing)
    floor = _floor(image_px) * cv2.resize(shade, (image_px, image_px), interpolation=cv2.INTER_LINEAR)
    if any(thing.coat.glow is not None for thing in drawn):
        floor = np.stack([floor] * 3)
        for thing in drawn:
            if thing.coat.glow is not None:
                _shine(floor, thing)
    return floor


def _multiply(canvas: np.ndarray, patch: np.ndarray, left: int, top: int) -> None:
    """Multiplies a patch into a canvas, as far as it lies on it."""
    height, width = canvas.shape
    x0, y0, x1, y1 = max(left, 0), max(top, 0), min(left + patch.shape[1], width), min(top + patch.shape[0], height)
    if x0 < x1 and y0 < y1:
        canvas[y0:y1, x0:x1] *= patch[y0 - top : y1 - top, x0 - left : x1 - left]


def _cast_shadow(shade: np.ndarray, thing: _Drawn) -> None:
    """A sheared, squashed shadow of the silhouette on the floor, and a dark line where the object touches it."""
    silhouette, size = thing.surface.silhouette, thing.surface.size / FLOOR_DETAIL
    box_height, box_width = silhouette.shape
    bottom = thing.top + (box_height + thing.height) / 2  # the foot, in pixels of the image
    foot_row = round(bottom - thing.top)
    height, width = max(2, round(foot_row * SQUASH / FLOOR_DETAIL)), max(2, round(box_width / FLOOR_DETAIL))
    flat = cv2.resize(silhouette[:foot_row], (width, height), interpolation=cv2.INTER_AREA)
    border = max(2, round(size * 0.09))
    lean = SHEAR / SQUASH
    onto = np.float32([[1, -lean, border + lean * height], [0, 1, border]])
    cast = cv2.warpAffine(flat, onto, (width + round(lean * height) + 2 * border, height + 2 * border))
    cast = cv2.GaussianBlur(cast, (0, 0), size * 0.03)
    left, top = round(thing.left / FLOOR_DETAIL), round(bottom / FLOOR_DETAIL)
    _multiply(shade, 1 - np.float32(0.46 * thing.coat.shadow) * cast, left - border, top - height - border)

    band = max(2, round(size * STANDS))
    low = cv2.resize(
        silhouette[max(0, foot_row - FLOOR_DETAIL * band) : foot_row], (width, band), interpolation=cv2.INTER_AREA
    )
    covered = low > 0.3
    lowest = band - np.argmax(covered[::-1], axis=0)  # of each column
    row = np.arange(-border, band + border)[:, None]
    touching = (np.abs(row - lowest + 0.3 * size * CONTACT) <= size * CONTACT) & covered.any(axis=0)
    contact = cv2.copyMakeBorder(touching.astype(np.float32), 0, 0, border, border, cv2.BORDER_CONSTANT)
    contact = cv2.GaussianBlur(contact, (0, 0), size * 0.018)
    _multiply(shade, 1 - np.float32(0.6 * thing.coat.shadow) * contact, left - border, top - band - border)


def _shine(floor: np.ndarray, thing: _Drawn) -> None:
    """Adds a halo that fades to nothing at HALO times the object's size; floor (3, h, w)."""
    silhouette, reach = thing.surface.silhouette, int(np.ceil(thing.surface.size * HALO))
    height, width = silhouette.shape
    padded = cv2.copyMakeBorder(silhouette, reach, reach, reach, reach, cv2.BORDER_CONSTANT)
    half = cv2.resize(padded, None, fx=1 / FLOOR_DETAIL, fy=1 / FLOOR_DETAIL, interpolation=cv2.INTER_AREA)
    size = thing.surface.size / FLOOR_DETAIL
    light = 0.55 * cv2.GaussianBlur(half, (0, 0), size * 0.035) + 0.45 * cv2.GaussianBlur(half, (0, 0), size * 0.08)
    away = cv2.distanceTransform((half < 0.5).astype(np.uint8), cv2.DIST_L2, 3)
    light *= step(0.98 * HALO * size, 0.4 * HALO * size, away)
    light = cv2.resize(light, (width + 2 * reach, height + 2 * reach), interpolation=cv2.INTER_LINEAR)
    left, top = max(thing.left - reach, 0), max(thing.top - reach, 0)
    cut = light[top - thing.top + reach :, left - thing.left + reach :]
    around = floor[:, top : top + cut.shape[0], left : left + cut.shape[1]]
    cut = cut[: around.shape[1], : around.shape[2]]
    for channel, strength in zip(around, thing.coat.glow, strict=True):
        channel += cut * (np.float32(1.05 * strength) - np.float32(0.45) * channel)


@lru_cache(maxsize=1)
def _table() -> np.ndarray:
    """Bytes by the square root of light: highlights are rolled off, then the sRGB curve is applied."""
    light = np.linspace(0, BRIGHTEST**0.5, SHADES) ** 2
    rolled = np.where(light < 0.7, light, 0.7 + 0.3 * (1 - np.exp(-(light - 0.7) / 0.3)))
    curve = np.where(rolled <= 0.0031308, 12.92 * rolled, 1.055 * np.maximum(rolled, 1e-6) ** (1 / 2.4) - 0.055)
    return np.clip(curve * 255 + 0.5, 0, 255).astype(np.uint8)


def _bytes(light: np.ndarray) -> np.ndarray:
    root = np.sqrt(np.clip(light, 0, BRIGHTEST))
    root *= np.float32((SHADES - 1) / BRIGHTEST**0.5)
    return _table()[root.astype(np.uint16)]
