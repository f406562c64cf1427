"""A fault on purpose: neighbours exchange places."""

import numpy as np

from ...config.multibind_generators import Generator
from .pasting import in_place, pasted, person_of
from .scene import Scene


def picture(scene: Scene, settings: Generator) -> np.ndarray:
    moved = exchanged(scene.slots, settings.of_three)
    return pasted(
        scene, {slot: in_place(scene, slot, person_of(scene, other), settings.stretch) for slot, other in moved.items()}
    )


def exchanged(slots: tuple[str, ...], of_three: str) -> dict[str, str]:
    """By slot whoever is in it now: A and B exchange, C and D too; three move on by one place, or the third stays."""
    if len(slots) == 3 and of_three == "cycle":
        return {slot: slots[index - 1] for index, slot in enumerate(slots)}
    moved = {slot: slot for slot in slots}
    for first, second in zip(slots[::2], slots[1::2], strict=False):
        moved[first], moved[second] = second, first
    return moved
