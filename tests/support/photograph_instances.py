"""MultiBind instances of the two real photographs of the installed ultralytics package, and faults painted into them."""

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from bindbench.config.multibind_segmentation import Segmentation
from bindbench.files import sha256
from bindbench.multibind.generated_tables import GENERATED
from bindbench.multibind.pictures import png_of
from bindbench.multibind.tables import INSTANCES, SLOTS, SUBJECTS
from bindbench.people.masks import box_of_mask, encode_mask
from bindbench.people.segmentation import open_segmenter, segment_people
from bindbench.tables import write_table
from people_models import builtin

NAMES = ("bus", "zidane")


@dataclass(frozen=True)
class Photographs:
    """images: (height, width, 3) uint8 by instance; masks: of each its people, from left to right, as in the slots."""

    folder: Path
    images: dict[str, np.ndarray]
    masks: dict[str, list[np.ndarray]]

    @property
    def tables(self) -> tuple[Path, Path]:
        return self.folder / "instances.parquet", self.folder / "subjects.parquet"

    def write_generated(self, pictures: dict[tuple[str, str], np.ndarray | None], folder: Path) -> Path:
        """The table GENERATED in `folder`, the files beside it. pictures: by generator and instance; None: there is none."""
        rows = []
        for (generator, instance), pixels in pictures.items():
            data = None if pixels is None else png_of(pixels)
            name = None if data is None else f"{generator}-{instance}.png"
            height, width = (self.images[instance] if pixels is None else pixels).shape[:2]
            if data is not None:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
            rows.append(
                {"generator": generator, "instance": instance, "file": name, "sha256": data and sha256(data),
                 "width": width, "height": height, "model": "made", "settings": "{}", "changes": [],
                 "problem": None if data else "refused"}
            )  # fmt: skip
        write_table(GENERATED, rows, folder / "generated.parquet")
        return folder / "generated.parquet"

    def blurred(self, instance: str) -> np.ndarray:
        """Everyone so blurred within their outline that no face is seen."""
        picture = self.images[instance].copy()
        for mask in self.masks[instance]:
            weight = mask.astype(np.float32)
            sigma = 0.04 * max(box_of_mask(mask)[2:])
            colours = cv2.GaussianBlur(self.images[instance] * weight[..., None], (0, 0), sigma)
            blurred = colours / np.maximum(cv2.GaussianBlur(weight, (0, 0), sigma), 1e-6)[..., None]
            picture[mask] = blurred[mask]
        return picture

    def without(self, instance: str, slot: str) -> np.ndarray:
        """A person painted over with a gradient of their surroundings' colours."""
        mask = self.masks[instance][SLOTS.index(slot)]
        around = cv2.dilate(mask.astype(np.uint8), np.ones((9, 9))).astype(bool)
        small = cv2.resize(self.images[instance], (32, 32), interpolation=cv2.INTER_AREA)
        smooth = cv2.resize(small, mask.shape[::-1], interpolation=cv2.INTER_CUBIC)
        picture = self.images[instance].copy()
        picture[around] = smooth.mean((0, 1)) * 0.5 + smooth[around] * 0.1
        return picture

    def swapped(self, instance: str) -> np.ndarray:
        """The boxes of the first two people exchanged, each scaled to the other's."""
        picture = self.images[instance].copy()
        boxes = [tuple(map(int, box_of_mask(mask))) for mask in self.masks[instance][:2]]
        parts = [self.images[instance][y : y + height, x : x + width] for x, y, width, height in boxes]
        for (x, y, width, height), part in zip(boxes, reversed(parts), strict=True):
            picture[y : y + height, x : x + width] = cv2.resize(part, (width, height), interpolation=cv2.INTER_AREA)
        return picture


def make_photographs(folder: Path, models: Path) -> Photographs:
    """Their tables and targets in `folder`; the masks are the embedded segmentation's own. models: build_people_models' folder."""
    images, masks, instances, subjects = {}, {}, [], []
    with open_segmenter(Segmentation(), models) as segmenter:
        for name in NAMES:
            images[name] = builtin(f"{name}.jpg")
            masks[name] = [person.mask for person in segment_people(images[name], Segmentation(), segmenter)]
    for name in NAMES:
        data = png_of(images[name])
        (folder / f"{name}.png").write_bytes(data)
        height, width = images[name].shape[:2]
        instances.append(
            {"instance": name, "photograph": f"builtin/{name}", "source": "builtin", "licence": "?",
             "n_subjects": len(masks[name]), "width": width, "height": height, "transforms": [],
             "original_sha256": sha256(data), "target": f"{name}.png", "target_sha256": sha256(data),
             "background": f"{name}.png", "background_sha256": sha256(data), "background_model": "none",
             "annotation": "{}", "annotation_model": "none", "prompt": "-", "words": 1, "verdict": "open"}
        )  # fmt: skip
        for slot, mask in zip(SLOTS, masks[name], strict=False):
            noted = dict.fromkeys(("crop", "mask_file", "reference"), f"{name}.png")
            hashes = dict.fromkeys(("crop_sha256", "mask_sha256", "reference_sha256"), sha256(data))
            subjects.append(
                {"instance": name, "slot": slot, "box": box_of_mask(mask), "mask": encode_mask(mask),
                 "reference_model": "none", **noted, **hashes}
            )  # fmt: skip
    write_table(INSTANCES, instances, folder / "instances.parquet")
    write_table(SUBJECTS, subjects, folder / "subjects.parquet")
    return Photographs(folder, images, masks)
