"""An evaluation with little pictures, for the page of labels: people are coloured rectangles, two generators, two dimensions."""

from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
from bindbench.files import sha256
from bindbench.multibind.evaluation_tables import SIMILARITIES, SLOTS_MATCHED, VALIDITY
from bindbench.multibind.generated_tables import GENERATED
from bindbench.multibind.labelling import EvaluationFiles, evaluation_files
from bindbench.multibind.tables import SLOTS, SUBJECTS
from bindbench.people.masks import box_of_mask, encode_mask
from bindbench.tables import write_table
from synthetic_people import MadeEvaluation
from tiny_instances import scene

FAULTS = {"good": [0, 1, 2], "bad": [1, 0, 2]}  # who is shown, by generator
DIMENSIONS = ("face", "pose")
HEIGHT, WIDTH = 48, 72


@dataclass
class MadeLabelling:
    """The folder results/multibind, and where labels go."""

    root: Path
    made: MadeEvaluation = field(default_factory=MadeEvaluation)
    pictures: list[dict] = field(default_factory=list)  # rows of GENERATED

    @property
    def folder(self) -> Path:
        return self.root / "results" / "multibind"

    @property
    def labels(self) -> Path:
        return self.root / "screening" / "labels.parquet"

    @property
    def files(self) -> EvaluationFiles:
        return evaluation_files(self.folder, list(FAULTS))

    def journal(self, by: str) -> Path:
        return self.root / "screening" / "labels" / f"{by}.jsonl"

    def save(self, folder: str, name: str, pixels: np.ndarray) -> str:
        """Writes a PNG; returns its SHA-256."""
        data = cv2.imencode(".png", pixels)[1].tobytes()
        (self.folder / folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / folder / name).write_bytes(data)
        return sha256(data)

    def generate(self, generator: str, instance: str, shade: int) -> None:
        """The picture of a generator, in place of an earlier one."""
        self.pictures = [row for row in self.pictures if (row["generator"], row["instance"]) != (generator, instance)]
        pixels = np.full((HEIGHT, WIDTH, 3), shade, np.uint8)
        name = f"{instance}.png"
        self.pictures.append(
            {"generator": generator, "instance": instance, "file": name, "width": WIDTH, "height": HEIGHT, "problem": None,
             "sha256": self.save(f"generated/{generator}", name, pixels), "model": "made", "settings": "{}", "changes": []}
        )  # fmt: skip

    def write(self) -> None:
        tables = {
            "generated": (GENERATED, self.pictures),
            "matched": (SLOTS_MATCHED, self.made.slots),
            "validity": (VALIDITY, self.made.validity),
            "similarities": (SIMILARITIES, self.made.similarities),
        }
        for name, (table, rows) in tables.items():
            for generator in FAULTS:
                of_generator = [row for row in rows if row["generator"] == generator]
                write_table(table, of_generator, self.folder / name / f"{generator}.parquet")


def make_labelling(root: Path, sizes: dict[str, int]) -> MadeLabelling:
    """sizes: number of subjects of each instance, 2 or 3."""
    labelling, subjects = MadeLabelling(root), []
    for number, (instance, count) in enumerate(sizes.items()):
        image, masks = scene(count, HEIGHT, WIDTH, seed=number)
        for slot, mask in zip(SLOTS, masks, strict=False):
            x, y, width, height = map(int, box_of_mask(mask))
            row = {"instance": instance, "slot": slot, "box": box_of_mask(mask), "mask": encode_mask(mask)}
            for what, column in (("crop", "crop"), ("mask", "mask_file"), ("reference", "reference")):
                row[column] = f"images/{instance}_{slot}.{what}.png"
                pixels = mask.astype(np.uint8) * 255 if what == "mask" else image[y : y + height, x : x + width]
                row[f"{what}_sha256"] = labelling.save(".", f"images/{instance}_{slot}.{what}.png", pixels)
            subjects.append(row | {"reference_model": "made"})
        for shade, (generator, who) in enumerate(FAULTS.items()):
            labelling.generate(generator, instance, 100 + 50 * number + 20 * shade)
            labelling.made.fault(generator, instance, who[:count], DIMENSIONS)
            for slot, mask in zip(labelling.made.slots[-count:], masks, strict=True):
                slot |= {"box": box_of_mask(mask), "mask": encode_mask(mask)}
    write_table(SUBJECTS, subjects, labelling.folder / "subjects.parquet")
    labelling.write()
    return labelling
