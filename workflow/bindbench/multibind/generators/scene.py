"""An instance as generators see it: what may go in, and the target that only the embedded kinds look at."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np

from ...errors import UserError
from ...files import read_verified
from ...people.masks import BrokenMask, decode_mask
from ...tables import read_table
from ..pictures import decoded
from ..tables import INSTANCES, SLOTS, SUBJECTS

REMEDY = "delete the table of instances and run snakemake again"


@dataclass(frozen=True)
class Scene:
    """A row of INSTANCES with its rows of SUBJECTS by slot. Pictures are read when they are asked for, and kept: see `fresh`."""

    row: dict
    subjects: Mapping[str, dict]
    folder: Path  # the one that files are relative to
    longest_px: int

    def fresh(self) -> "Scene":
        """The same without the pictures that were read, to be let go of by whoever works through many."""
        return replace(self)

    @property
    def name(self) -> str:
        return self.row["instance"]

    @property
    def slots(self) -> tuple[str, ...]:
        return tuple(self.subjects)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of every picture that is generated of it: the target's shape within the longest side."""
        return within(self.row["width"], self.row["height"], self.longest_px)

    @property
    def files(self) -> list[tuple[Path, str]]:
        """Path and SHA-256 of what goes in: the references in the order of the slots, then the background."""
        references = [(row["reference"], row["reference_sha256"]) for row in self.subjects.values()]
        pictures = [*references, (self.row["background"], self.row["background_sha256"])]
        return [(self.folder / file, digest) for file, digest in pictures]

    @property
    def shapes(self) -> dict:
        """What its pictures are made from, for a key. The embedded kinds look at the target, its masks and its boxes too."""
        return {
            "inputs": [digest for _, digest in self.files],
            "prompt": self.row["prompt"],
            "target": self.row["target_sha256"],
            "masks": [[row["box"], row["mask"]] for row in self.subjects.values()],
            "size": self.size,
        }

    @cached_property
    def target(self) -> np.ndarray:
        """(height, width, 3) uint8 RGB. As all pictures here: raises UserError when the file is not the noted one."""
        return self._picture(self.row["target"], self.row["target_sha256"], True)

    @cached_property
    def background(self) -> np.ndarray:
        """(height, width, 3) uint8 RGB, of the target's size."""
        return self._picture(self.row["background"], self.row["background_sha256"], True)

    def reference(self, slot: str) -> np.ndarray:
        """(any, any, 3) uint8 RGB."""
        row = self.subjects[slot]
        return self._picture(row["reference"], row["reference_sha256"], False)

    def mask(self, slot: str) -> np.ndarray:
        """(height, width) bool, of the target's size. Raises UserError for broken run lengths, and for an empty mask."""
        try:
            mask = decode_mask(self.subjects[slot]["mask"], self.row["height"], self.row["width"])
        except BrokenMask as error:
            raise UserError(f"subjects: {self.name}, slot {slot}: {error}; {REMEDY}") from None
        if not mask.any():
            raise UserError(f"subjects: {self.name}, slot {slot}: an empty mask; {REMEDY}")
        return mask

    def _picture(self, file: str, digest: str, of_target_size: bool) -> np.ndarray:
        path = self.folder / file
        pixels = decoded(read_verified(path, digest, REMEDY), path)
        size = self.row["width"], self.row["height"]
        if of_target_size and (pixels.shape[1], pixels.shape[0]) != size:
            raise UserError(
                f"{path}: is {pixels.shape[1]} x {pixels.shape[0]}, the table says {size[0]} x {size[1]}; {REMEDY}"
            )
        return pixels


def within(width: int, height: int, longest: int) -> tuple[int, int]:
    """A size of the same shape whose longer side is at most `longest`; never larger than it was, never empty."""
    scale = min(1.0, longest / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def resized(picture: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """A (height, width, 3) uint8 picture of another width and height."""
    height, width = picture.shape[:2]
    if (width, height) == size:
        return picture
    smaller = size[0] * size[1] < width * height
    return cv2.resize(picture, size, interpolation=cv2.INTER_AREA if smaller else cv2.INTER_CUBIC)


def read_scenes(instances: Path, subjects: Path, folder: Path, longest_px: int) -> Iterator[Scene]:
    """Every instance, in the order of its table. Raises UserError for a table that is missing, broken or not of the other."""
    by_instance: dict[str, dict[str, dict]] = {}
    for row in read_table(SUBJECTS, subjects).to_pylist():
        by_instance.setdefault(row["instance"], {})[row["slot"]] = row
    for row in read_table(INSTANCES, instances).to_pylist():
        slots, found = SLOTS[: row["n_subjects"]], by_instance.get(row["instance"], {})
        if set(slots) != set(found):
            raise UserError(f"{subjects}: {row['instance']} has not the slots {', '.join(slots)}; {REMEDY}")
        yield Scene(row, {slot: found[slot] for slot in slots}, Path(folder), longest_px)
