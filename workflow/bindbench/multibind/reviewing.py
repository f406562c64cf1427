"""Quality control of MultiBind by hand (section 3.2): a page that shows an instance and takes a verdict on each of its parts.

    python -m bindbench review-instances --help

A verdict belongs to a part and its bytes (multibind/parts.py): what is rejected is made again and is open again, and the other
parts keep their verdicts. Pictures are served with the bytes that the tables name, and a mask's outline is that of its file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import cv2
import numpy as np

from ..errors import UserError
from ..files import sha256
from ..people.outlines import outlines_of, svg_path
from ..review.journal import Journal
from ..review.judging import Judged, Judging
from ..review.pictures import noted_bytes, picture_reply
from ..review.server import Refusal, Reply, json_reply
from .parts import KEY, Joined, Part, parts_of, picture_folder, read_joined
from .showing import prompt_blocks, readable_annotation
from .tables import SLOTS

REASONS = {
    "instance": (
        "unsuitable photograph",
        "too few people",
        "someone is missing",
        "near duplicate",
        "sensitive content",
    ),
    "crop": ("wrong person", "mask leaks", "mask incomplete", "cut off", "two people in one"),
    "reference": ("other identity", "other clothes", "pose not neutral", "two people", "artefacts", "cut off"),
    "background": ("a person is left", "parts of people are left", "scene changed", "artefacts", "blurred"),
    "annotation": (
        "wrong attribute",
        "under the wrong letter",
        "missing attribute",
        "wrong relation",
        "sensitive content",
    ),
    "prompt": (
        "wrong statement",
        "under the wrong letter",
        "contradiction",
        "missing edit",
        "states what is kept",
        "bad English",
    ),
}
MOST_PARTS = 2 * len(SLOTS) + 4


class InstanceReview:
    """What the page asks for: the instances, one instance, a picture; and the presses of its keys.

    The tables of MultiBind; those of later stages may be missing still, and an instance is shown with what there is of it.
    by: who judges, for the journal. Raises UserError for a table that is broken, and when there is no instance.
    """

    title = "Screening"
    pages: ClassVar = {
        "/page.js": "instances.js",
        "/outlines.js": "outlines.js",
        "/page.css": "instances.css",
        "/people.css": "people.css",
    }

    def __init__(
        self,
        selected: Path,
        crops: Path,
        references: Path,
        backgrounds: Path,
        annotations: Path,
        prompts: Path,
        journal: Path,
        by: str | None = None,
    ):
        later = [path if Path(path).exists() else None for path in (references, backgrounds, annotations, prompts)]
        self.folders = {
            "selected": picture_folder(selected),
            "reference": picture_folder(references),
            "background": picture_folder(backgrounds),
        }
        self.instances = {joined.instance: joined for joined in read_joined(selected, crops, *later)}
        if not self.instances:
            raise UserError(f"{selected}: no instance was selected; run snakemake with other photographs or limits")
        self.parts = {name: parts_of(joined, _slots(joined)) for name, joined in self.instances.items()}
        made = [part for parts in self.parts.values() for part in parts if part.sha256]
        items = {part.id: Judged(part.sha256) for part in made}
        self.judging = Judging(Journal(journal, KEY), items, by, MOST_PARTS)

    def answer(self, method: str, parts: list[str], body: dict | None) -> Reply:
        """Raises Refusal."""
        match method, parts:
            case "GET", ["state"]:
                return json_reply(self.state())
            case "GET", ["instances", instance] if instance in self.instances:
                return json_reply(self.instance(instance))
            case "GET", ["pictures", instance, name] if instance in self.instances:
                return self.picture(instance, name)
            case "POST", ["presses"]:
                return json_reply({"standings": self.judging.press(body)})
        raise Refusal(404, f"there is no {'/'.join(parts)[:100]}")

    def state(self) -> dict:
        """All instances with their parts, and how each part stands unless it is simply open."""
        return {
            "journal": sha256(str(self.judging.journal.path.resolve()))[:16],
            "reasons": REASONS,
            "instances": [self._entry(joined) for joined in self.instances.values()],
            "standings": self.judging.standings(),
        }

    def _entry(self, joined: Joined) -> dict:
        parts = self.parts[joined.instance]
        return {
            "instance": joined.instance,
            "subjects": joined.selected["n_subjects"],
            "source": joined.selected["source"],
            "problems": any(part.problems or part.sha256 is None for part in parts),
            "parts": [part.id for part in parts if part.sha256],
        }

    def instance(self, instance: str) -> dict:
        """Everything that judging one instance needs, but the pictures' bytes."""
        self.judging.journal.refresh()
        joined, parts = self.instances[instance], self.parts[instance]
        row = joined.selected
        annotation, prompt = joined.annotation, joined.prompt
        return {
            **{
                name: row[name]
                for name in ("instance", "photograph", "source", "licence", "width", "height", "transforms")
            },
            "parts": [self._part(joined, part) for part in parts],
            "subjects": [
                {"slot": slot, "box": joined.crops[slot]["box"]} for slot in _slots(joined) if slot in joined.crops
            ],
            "annotation": readable_annotation(annotation["annotation"])
            if annotation and annotation["annotation"]
            else [],
            "prompt": prompt_blocks(prompt["prompt"]) if prompt and prompt["prompt"] else [],
        }

    def _part(self, joined: Joined, part: Part) -> dict:
        shown = {
            "part": part.part,
            "slot": part.slot,
            "id": part.id,
            "sha256": part.sha256,
            "model": part.model,
            "problems": part.problems,
            "facts": _facts(joined, part),
        }
        if part.part == "crop" and part.sha256:
            try:
                shown["outline"] = self._outline(joined, part.slot)
            except Refusal as refusal:
                shown["trouble"] = str(refusal)
        return shown

    def _outline(self, joined: Joined, slot: str) -> str:
        row = joined.crops[slot]
        data = noted_bytes(self.folders["selected"] / row["mask_file"], row["mask_sha256"], row["mask_file"])
        mask = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE)
        if mask is None or mask.shape != (joined.selected["height"], joined.selected["width"]):
            raise Refusal(409, f"{row['mask_file']} is no mask of the photograph's size")
        return svg_path(outlines_of(mask > 127))

    def picture(self, instance: str, name: str) -> Reply:
        """target, background, crop_A, reference_A and so on. Raises Refusal when the file is not the one that was made."""
        joined = self.instances[instance]
        what, _, slot = name.partition("_")
        row, column, digest, folder = {
            "target": (joined.selected, "target", "sha256", "selected"),
            "background": (joined.background, "background", "sha256", "background"),
            "crop": (joined.crops.get(slot), "crop", "crop_sha256", "selected"),
            "reference": (joined.references.get(slot), "reference", "sha256", "reference"),
        }.get(what, (None, "", "", ""))
        if not row or not row[column] or (slot and what not in ("crop", "reference")):
            raise Refusal(404, f"{instance} has no {name[:40]}")
        return picture_reply(self.folders[folder] / row[column], row[digest], row[column])


def _slots(joined: Joined) -> Sequence[str]:
    return SLOTS[: joined.selected["n_subjects"]]


def _facts(joined: Joined, part: Part) -> str:
    """What was measured of a part, in words."""
    if part.part == "instance":
        row = joined.selected
        done = "; ".join(row["transforms"]) or "unchanged"
        return f"{row['width']} x {row['height']} pixels, sharpness {row['sharpness']:.0f}, {done}"
    if part.part == "crop" and part.slot in joined.crops:
        row = joined.crops[part.slot]
        return (
            f"{row['area']:.0%} of the picture, {row['filled']:.0%} of the box filled, {row['pieces']} "
            f"{'piece' if row['pieces'] == 1 else 'pieces'}, at the border {row['at_border']:.0%}, overlap {row['overlap']:.0%}, "
            f"sharpness {row['sharpness']:.0f}"
        )
    if part.part == "background" and joined.background and joined.background["people_left"] is not None:
        return f"people still found: {joined.background['people_left']}"
    if part.part == "prompt" and joined.prompt:
        return f"{joined.prompt['words']} words"
    return ""
