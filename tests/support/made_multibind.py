"""A small MultiBind with drawn people: every table and picture that the stages before the assembly write."""

import io
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from bindbench.files import sha256
from bindbench.multibind.annotation import Annotation, position_of
from bindbench.multibind.prompts import compile_prompt
from bindbench.multibind.tables import (
    ANNOTATIONS,
    BACKGROUNDS,
    CROPS,
    PROMPTS,
    REFERENCES,
    REJECTED,
    SELECTED,
    SLOTS,
)
from bindbench.people.masks import encode_mask
from bindbench.tables import write_table
from PIL import Image

WIDTH, HEIGHT = 240, 180
TABLES = {
    "selected": SELECTED,
    "crops": CROPS,
    "references": REFERENCES,
    "backgrounds": BACKGROUNDS,
    "annotations": ANNOTATIONS,
    "prompts": PROMPTS,
    "rejected": REJECTED,
}


@dataclass
class MadeMultiBind:
    """Rows by table, which `write` puts on disk; `paths` in the order of assembling.assemble."""

    folder: Path
    rows: dict[str, list[dict]] = field(default_factory=lambda: {name: [] for name in TABLES})

    @property
    def journal(self) -> Path:
        return self.folder / "screening" / "multibind.jsonl"

    def path(self, table: str) -> Path:
        return self.folder / f"{table}.parquet"

    @property
    def paths(self) -> list[Path]:
        return [self.path(name) for name in TABLES]

    def row(self, table: str, instance: str, slot: str | None = None) -> dict:
        return next(row for row in self.rows[table] if row["instance"] == instance and slot in (None, row.get("slot")))

    def write(self) -> None:
        for name, table in TABLES.items():
            write_table(table, self.rows[name], self.path(name))

    def picture(self, folder: str, name: str, pixels: np.ndarray) -> str:
        """Writes a PNG; returns its SHA-256."""
        data = io.BytesIO()
        Image.fromarray(pixels).save(data, "PNG")
        path = self.folder / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.getvalue())
        return sha256(data.getvalue())

    def remake(self, table: str, instance: str, slot: str | None, shade: int) -> None:
        """Another picture of a reference or a background, noted in its table."""
        row = self.row(table, instance, slot)
        column = table.removesuffix("s")
        row["sha256"] = self.picture(table, row[column], np.full((HEIGHT, WIDTH, 3), shade, np.uint8))
        self.write()


def make_multibind(folder: Path, sizes: dict[str, int]) -> MadeMultiBind:
    """sizes: number of subjects of each instance, by its id."""
    made = MadeMultiBind(folder)
    for number, (instance, n_subjects) in enumerate(sizes.items()):
        _add(made, instance, n_subjects, number)
    made.rows["rejected"] = [
        {"photograph": "folder/blurred", "source": "folder", "reason": "blurred", "detail": "3"},
        {"photograph": "folder/empty", "source": "folder", "reason": "too_few_people", "detail": "0"},
    ]
    made.write()
    return made


def _add(made: MadeMultiBind, instance: str, n_subjects: int, number: int) -> None:
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    background = np.stack([rows, columns // 2 + 40, np.full_like(rows, 90 + 40 * number % 160)], -1).astype(np.uint8)
    target, masks, boxes = background.copy(), [], []
    for place in range(n_subjects):
        centre = WIDTH * (place + 0.5) / n_subjects
        body = ((columns - centre) / 20) ** 2 + ((rows - 110) / 60) ** 2 < 1
        head = (columns - centre) ** 2 + (rows - 45) ** 2 < 18**2
        target[body] = [(200, 40, 40), (40, 160, 60), (40, 80, 200), (220, 190, 40)][place]
        target[head] = (205, 170, 140)
        mask = body | head
        masks.append(mask)
        boxes.append([float(round(centre) - 20), 27.0, 40.0, 143.0])
    made.rows["selected"].append(
        {
            "instance": instance,
            "photograph": instance.replace("-", "/", 1),
            "source": instance.split("-")[0],
            "licence": f"licence of {instance.split('-')[0]}",
            "n_subjects": n_subjects,
            "width": WIDTH,
            "height": HEIGHT,
            "target": f"targets/{instance}.png",
            "sha256": made.picture("selected", f"targets/{instance}.png", target),
            "original_sha256": sha256(instance),
            "transforms": ["scaled from 480 x 360 to 240 x 180"],
            "sharpness": 80.0,
            "perceptual_hash": "0" * 16,
        }
    )
    for slot, mask, box in zip(SLOTS, masks, boxes, strict=False):
        x, y, width, height = map(int, box)
        crop = target[y : y + height, x : x + width]
        grey = np.where(mask[y : y + height, x : x + width, None], crop, 128).astype(np.uint8)
        names = f"crops/{instance}_{slot}.png", f"masks/{instance}_{slot}.png"
        made.rows["crops"].append(
            {
                **{"instance": instance, "slot": slot, "person": slot.lower(), "box": box, "mask": encode_mask(mask)},
                **{"area": float(mask.mean()), "filled": 0.7, "pieces": 1, "at_border": 0.0, "overlap": 0.1},
                **{"sharpness": 60.0, "crop": names[0], "crop_sha256": made.picture("selected", names[0], crop)},
                "mask_file": names[1],
                "mask_sha256": made.picture("selected", names[1], mask.astype(np.uint8) * 255),
            }
        )
        made.rows["references"].append(
            {
                **{
                    "instance": instance,
                    "slot": slot,
                    "reference": f"{instance}_{slot}.png",
                    "model": "embedded/cutout",
                },
                "sha256": made.picture("references", f"{instance}_{slot}.png", grey),
                "problems": [],
            }
        )
    made.rows["backgrounds"].append(
        {
            **{"instance": instance, "background": f"{instance}.png", "model": "patchmatch/5", "people_left": 0},
            "sha256": made.picture("backgrounds", f"{instance}.png", background),
            "problems": [],
        }
    )
    annotation = annotation_of_boxes(boxes)
    prompt = compile_prompt(annotation)
    made.rows["annotations"].append(
        {"instance": instance, "annotation": annotation.to_json(), "model": "embedded", "problems": []}
    )
    made.rows["prompts"].append({"instance": instance, "prompt": prompt, "words": len(prompt.split()), "problems": []})


def annotation_of_boxes(boxes: list[list[float]]) -> Annotation:
    colours = ("red", "green", "blue", "yellow")
    subjects = {
        slot: {
            "appearance": {"hair": {"colour": "dark brown", "length": "short"}},
            "clothes": {"upper_body": {"garment": "shirt", "colour": colours[place], "pattern": "plain"}},
            "pose": {"body": "standing upright", "arms": "hanging at the sides"},
            "expression": ("a slight smile", "a neutral expression")[place % 2],
            "position": position_of(box, WIDTH, HEIGHT),
        }
        for place, (slot, box) in enumerate(zip(SLOTS, boxes, strict=False))
    }
    return Annotation.model_validate(
        {
            "subjects": subjects,
            "relations": [
                {"first": "A", "second": "B", "relation": "to the left of", "detail": "with a gap between them"}
            ],
            "background": {"setting": "a wall whose colour changes", "colours": ["green", "blue"]},
            "camera": {"framing": "a full shot"},
        }
    )
