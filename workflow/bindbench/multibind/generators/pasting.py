"""People cut out of one place and put into another: what the collage and the faults on purpose are made of.

A cut-out is a person's pixels with how much of each is the person. Scaled, its colours are weighted by that, so that no pixel
from outside a mask has a part in it. Those who stand nearer, with a lower edge of their box, are put in later.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np

from ...people.masks import box_of_mask
from .scene import Scene


@dataclass(frozen=True)
class CutOut:
    """colours: (height, width, 3) float32, 0 to 255; cover: (height, width) float32, 0 to 1: how much is the person."""

    colours: np.ndarray
    cover: np.ndarray


def cut_out(image: np.ndarray, mask: np.ndarray) -> CutOut:
    """The pixels of a (height, width, 3) uint8 image within a (height, width) bool mask, as large as the mask's own box."""
    x, y, width, height = (int(value) for value in box_of_mask(mask))
    place = slice(y, y + height), slice(x, x + width)
    return CutOut(image[place].astype(np.float32), mask[place].astype(np.float32))


def person_of(scene: Scene, slot: str) -> CutOut:
    """A person of the target, by their mask."""
    return cut_out(scene.target, scene.mask(slot))


def own_box(scene: Scene, slot: str) -> tuple[int, int, int, int]:
    """x, y, width and height of a person's mask: the true place."""
    return tuple(int(value) for value in box_of_mask(scene.mask(slot)))


def fitted(size: tuple[int, int], place: tuple[int, int, int, int], stretch: float) -> tuple[int, int, int, int]:
    """x, y, width and height of a person of a size (width, height) in a place (x, y, width, height).

    As large as the place allows while the ratio of the sides changes by at most `stretch`; on its lower edge, in the middle.
    """
    across, down = place[2] / size[0], place[3] / size[1]
    across, down = min(across, down * stretch), min(down, across * stretch)
    width, height = max(1, round(size[0] * across)), max(1, round(size[1] * down))
    return place[0] + (place[2] - width) // 2, place[1] + place[3] - height, width, height


def layer(person: CutOut, box: tuple[int, int, int, int], shape: tuple[int, int]) -> CutOut:
    """A person scaled to a box (x, y, width, height) of a picture of shape (height, width); its own size stays exact."""
    x, y, width, height = box
    if person.cover.shape != (height, width):
        person = scaled(person, width, height)
    colours, cover = np.zeros((*shape, 3), np.float32), np.zeros(shape, np.float32)
    top, left, bottom, right = max(0, y), max(0, x), min(shape[0], y + height), min(shape[1], x + width)
    if top < bottom and left < right:
        inside = slice(top - y, bottom - y), slice(left - x, right - x)
        colours[top:bottom, left:right], cover[top:bottom, left:right] = person.colours[inside], person.cover[inside]
    return CutOut(colours, cover)


def scaled(person: CutOut, width: int, height: int) -> CutOut:
    smaller = width * height < person.cover.size
    way = cv2.INTER_AREA if smaller else cv2.INTER_LINEAR
    cover = cv2.resize(person.cover, (width, height), interpolation=way)
    colours = cv2.resize(person.colours * person.cover[..., None], (width, height), interpolation=way)
    return CutOut(colours / np.maximum(cover, 1e-3)[..., None], cover)


def over(picture: np.ndarray, person: CutOut) -> np.ndarray:
    """A (height, width, 3) uint8 picture with a layer of its size over it."""
    cover = person.cover[..., None]
    return np.clip(np.rint(person.colours * cover + picture * (1 - cover)), 0, 255).astype(np.uint8)


def far_to_near(scene: Scene) -> list[str]:
    """The slots in the order in which they are put in: by the lower edge of the box, at the same height from the left."""
    edges = {slot: (y + height, slot) for slot in scene.slots for _, y, _, height in [own_box(scene, slot)]}
    return sorted(scene.slots, key=edges.__getitem__)


def in_place(scene: Scene, slot: str, person: CutOut, stretch: float) -> CutOut:
    """A person, whoever it is, as a layer of the picture's size in the place of a slot."""
    box = fitted(person.cover.shape[::-1], own_box(scene, slot), stretch)
    return layer(person, box, scene.background.shape[:2])


def pasted(scene: Scene, layers: Mapping[str, CutOut]) -> np.ndarray:
    """(height, width, 3) uint8: the background with layers of its size over it; by slot, places without one stay empty."""
    picture = scene.background
    for slot in far_to_near(scene):
        if slot in layers:
            picture = over(picture, layers[slot])
    return picture
