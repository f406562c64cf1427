"""Who of a generated image is in which slot of its instance (MultiBind, section 3.3; M-1 and M-18 of papers.md A.2.2).

1. People are found as in photographs (people/segmentation.py); all methods give masks, so M-1's boxes are never needed.
2. The Hungarian method gives each subject at most one of them, and each of them to at most one subject, so that the sum of the
   intersections over union of their masks is largest. A pair below the gate is none.
3. The embedded segmentation goes by faces and is blind to people whose face is not seen, such as blurred ones. So at the place of
   each subject without a match MediaPipe's pose model takes a second look: whoever it sees there, without the pixels of those
   who are matched, and whose outline agrees well enough with the subject's.

All three go by place alone: a look at faces or clothes here would put those who were swapped back in their places.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from ..config.multibind_evaluation import Evaluation
from ..config.multibind_segmentation import Segmentation
from ..errors import UserError
from ..files import canonical_json, progress, read_verified, sha256, sha256_of_file
from ..paths import resolve
from ..people.building import POSE_MODEL
from ..people.masks import BrokenMask, box_of_counts, box_of_mask, decode_mask, encode_mask, mask_iou
from ..people.poses import poses_of
from ..people.segmentation import open_segmenter, segment_people
from ..tables import read_table, write_table
from .evaluation_tables import SLOTS_MATCHED
from .generated_tables import GENERATED
from .pictures import decoded
from .sealed import read_sealed, write_sealed
from .tables import INSTANCES, SUBJECTS

REMEDY = "delete the generator's table and run snakemake again"
# Parts of the picture in which the second look is taken, in sizes of the subject's box beyond it: to each side, and up and down.
# MediaPipe's pose detector sees a person in one and nobody in the next for no reason that shows.
MARGINS = ((0.0, 0.0), (0.12, 0.08), (0.3, 0.2), (0.6, 0.3), (1.0, 0.5))
LEFT = 0.5  # share of a pose's own pixels that must be nobody else's: else it is one of the matched people again


@dataclass(frozen=True)
class Match:
    """The person in a slot. mask: (height, width) bool; iou: with the subject's."""

    mask: np.ndarray
    iou: float


@dataclass(frozen=True)
class Unmatched:
    """reason: no_picture; nobody_found (in all of the picture); not_found (nobody is left for it); little_overlap."""

    reason: str


def match_subjects(
    generated: Path,
    pictures: Path,
    instances: Path,
    subjects: Path,
    settings: Evaluation,
    segmentation: Segmentation,
    models: Path,
    out: Path,
    cache: Path,
    version: int = 1,
) -> None:
    """Writes the table SLOTS_MATCHED: every slot of every instance, of every generator in the table `generated`.

    pictures: the folder that the files of `generated` are relative to. segmentation: of photographs, used unless the settings
    have their own. models: the folder of `build_people_models`. cache: what was found in pictures is kept there by their content.
    Raises UserError for a table, picture or model that is missing or broken, and for tables that do not belong together.
    """
    segmentation = settings.segmentation or segmentation
    true = read_subjects(instances, subjects)
    rows = read_table(GENERATED, generated).to_pylist()
    check_instances(generated, rows, true)
    done = []
    with ExitStack() as stack:
        find = _Finder(segmentation, Path(models), Path(cache), version, stack)
        for row in progress(rows, "people in generated images", unit="image"):
            real = true[row["instance"]]
            masks = [real.mask(slot) for slot in real.masks]
            matches = _matches(row, masks, Path(pictures), settings, find)
            done += [_row(row, slot, match) for slot, match in zip(real.masks, matches, strict=True)]
    write_table(SLOTS_MATCHED, done, out)


def _matches(
    row: dict, true: list[np.ndarray], pictures: Path, settings: Evaluation, find: "_Finder"
) -> list[Match | Unmatched]:
    if row["file"] is None:
        return [Unmatched("no_picture")] * len(true)
    true = [at_size(mask, row["height"], row["width"]) for mask in true]

    def read() -> np.ndarray:
        return read_generated(row, pictures)

    matched = match_masks(true, find.people(row, read), settings.min_iou)
    while find.looks_twice:
        others = [match.mask for match in matched if isinstance(match, Match)]
        again = {
            index: second_match(true[index], find.at_place(row, true[index], read), others, settings.second_look_iou)
            for index, match in enumerate(matched)
            if isinstance(match, Unmatched)
        }
        # The surest first: whom two subjects could have goes to the same one whatever the order of the slots.
        index = max(again, key=lambda index: again[index].iou if again[index] else 0.0, default=None)
        if index is None or again[index] is None:
            break
        matched[index] = again[index]
    return matched


def second_match(true: np.ndarray, seen: list[np.ndarray], others: list[np.ndarray], min_iou: float) -> Match | None:
    """Of the masks seen at a subject's place the one that agrees most with it, without the pixels of the matched others."""
    taken = np.logical_or.reduce(others) if others else np.zeros(true.shape, bool)
    free = [mask & ~taken for mask in seen]
    free = [left for left, mask in zip(free, seen, strict=True) if left.sum() >= LEFT * max(1, mask.sum())]
    best = max(((mask_iou(true, mask), -index) for index, mask in enumerate(free)), default=(0.0, 0))
    return Match(free[-best[1]], best[0]) if best[0] >= min_iou else None


def _row(row: dict, slot: str, match: Match | Unmatched) -> dict:
    found = isinstance(match, Match)
    return {
        "generator": row["generator"],
        "instance": row["instance"],
        "slot": slot,
        "matched": found,
        "iou": match.iou if found else None,
        "box": box_of_mask(match.mask) if found else None,
        "mask": encode_mask(match.mask) if found else None,
        "reason": None if found else match.reason,
    }


class _Finder:
    """Looks at pictures, and keeps what it finds by what that depends on. The models are opened when they are first needed."""

    def __init__(self, settings: Segmentation, models: Path, cache: Path, version: int, stack: ExitStack) -> None:
        self.settings, self.models, self.cache, self.stack = settings, models, cache, stack
        self.looks_twice = settings.method == "embedded"
        weights = models / POSE_MODEL if self.looks_twice else resolve(Path(settings.yolo_weights).expanduser())
        digest = sha256_of_file(weights) if weights.is_file() else None
        self.state = [settings.model_dump(mode="json"), digest, version]
        self._segmenter = None

    @property
    def segmenter(self):
        self._segmenter = self._segmenter or self.stack.enter_context(open_segmenter(self.settings, self.models))
        return self._segmenter

    def people(self, row: dict, read: Callable[[], np.ndarray]) -> list[np.ndarray]:
        """Masks of everyone who is found in the picture of a row, from left to right; no pixel is of two."""

        def find() -> list[np.ndarray]:
            return [person.mask for person in segment_people(read(), self.settings, self.segmenter)]

        return self._kept(row, ["people"], find)

    def at_place(self, row: dict, true: np.ndarray, read: Callable[[], np.ndarray]) -> list[np.ndarray]:
        """Masks of all poses that are seen at the place of a subject."""
        box = box_of_mask(true)

        def find() -> list[np.ndarray]:
            return poses_at(read(), box, self.settings.mask_threshold, self.segmenter)

        return self._kept(row, ["place", box, MARGINS], find)

    def _kept(self, row: dict, what: list, find: Callable[[], list[np.ndarray]]) -> list[np.ndarray]:
        shape = row["height"], row["width"]
        key = sha256(canonical_json([row["sha256"], what, self.state]))
        kept = read_sealed(self.cache, key)
        if kept is None:
            masks = find()
            write_sealed(self.cache, key, [encode_mask(mask) for mask in masks])
            return masks
        return [decode_mask(counts, *shape) for counts in kept]


def poses_at(image: np.ndarray, box: list[float], threshold: float, model) -> list[np.ndarray]:
    """(height, width) bool masks of the poses that MediaPipe sees in parts of a picture around a box [x, y, width, height]."""
    x, y, width, height = box
    masks = []
    for side, up in MARGINS:
        left, top = max(0, round(x - side * width)), max(0, round(y - up * height))
        right, bottom = round(x + (1 + side) * width), round(y + (1 + up) * height)
        part = image[top:bottom, left:right]
        for pose in poses_of(model, part):
            mask = np.zeros(image.shape[:2], bool)
            mask[top:bottom, left:right] = pose.mask > threshold
            if mask.any():
                masks.append(mask)
    return masks


def read_subjects(instances: Path, subjects: Path) -> dict[str, "Real"]:
    """The real photograph and its subjects by instance, slots in their order.

    Raises UserError for tables that do not belong together, a mask that is broken or empty, and an instance without subjects.
    """
    rows = read_table(INSTANCES, instances).to_pylist()
    found = {
        row["instance"]: Real(row["height"], row["width"], row["target"], row["target_sha256"], {}) for row in rows
    }
    rows = read_table(SUBJECTS, subjects).to_pylist()
    for row in sorted(rows, key=lambda row: (row["instance"], row["slot"])):
        where = f"{subjects}: {row['instance']}, slot {row['slot']}"
        if row["instance"] not in found:
            raise UserError(f"{where}: {instances} has no such instance; run snakemake to make both again")
        real = found[row["instance"]]
        try:
            box = box_of_counts(row["mask"], real.height, real.width)
        except BrokenMask as error:
            raise UserError(f"{where}: {error}; delete it and run again") from None
        if not box[2] * box[3]:
            raise UserError(f"{where}: an empty mask; delete it and run again")
        real.masks[row["slot"]] = row["mask"]
    for name, real in found.items():
        if not real.masks:
            raise UserError(f"{subjects}: {name} of {instances} has no subject; run snakemake to make both again")
    return found


@dataclass(frozen=True)
class Real:
    """The photograph of an instance. target: its file and sha256; masks: run lengths by slot, of its size, never empty."""

    height: int
    width: int
    target: str
    sha256: str
    masks: dict[str, str]

    def mask(self, slot: str) -> np.ndarray:
        """(height, width) bool."""
        return decode_mask(self.masks[slot], self.height, self.width)


def check_instances(generated: Path, rows: list[dict], true: dict) -> None:
    """Raises UserError unless every generator has a row for every instance, and no other."""
    for generator in sorted({row["generator"] for row in rows}):
        have = {row["instance"] for row in rows if row["generator"] == generator}
        for names, fault in (
            (true.keys() - have, "has no row"),
            (have - true.keys(), "is not in the table of instances"),
        ):
            if names:
                raise UserError(f"{generated}: {generator}: {min(names)} {fault}; {REMEDY}")


def read_generated(row: dict, pictures: Path) -> np.ndarray:
    """(height, width, 3) uint8 RGB: the picture of a row of GENERATED. Raises UserError when it is not the noted one."""
    path = pictures / row["file"]
    pixels = decoded(read_verified(path, row["sha256"], REMEDY), path)
    if pixels.shape[:2] != (row["height"], row["width"]):
        size = f"{pixels.shape[1]} x {pixels.shape[0]}"
        raise UserError(f"{path}: is {size}, its table says {row['width']} x {row['height']}; {REMEDY}")
    return pixels


def match_masks(true: list[np.ndarray], found: list[np.ndarray], min_iou: float) -> list[Match | Unmatched]:
    """For each subject's mask, (height, width) bool, the found person who is there: the Hungarian method, then the gate."""
    from scipy.optimize import (
        linear_sum_assignment,
    )  # takes a third of a second, which those who only read tables need not wait

    if not found:
        return [Unmatched("nobody_found")] * len(true)
    overlaps = np.array([[mask_iou(mask, other) for other in found] for mask in true])
    matched: list[Match | Unmatched] = [Unmatched("not_found")] * len(true)
    for row, column in zip(*linear_sum_assignment(overlaps, maximize=True), strict=True):
        iou = float(overlaps[row, column])
        matched[row] = (
            Match(found[column], iou) if iou >= min_iou else Unmatched("little_overlap" if iou else "not_found")
        )
    return matched


def at_size(mask: np.ndarray, height: int, width: int) -> np.ndarray:
    """A subject's mask in a generated picture of another size; of one too small for a pixel, the pixel in its middle."""
    if mask.shape == (height, width):
        return mask
    scaled = cv2.resize(mask.astype(np.float32), (width, height), interpolation=cv2.INTER_AREA) > 0.5
    if not scaled.any():
        x, y, w, h = box_of_mask(mask)
        row, column = (y + h / 2) * height / mask.shape[0], (x + w / 2) * width / mask.shape[1]
        scaled[min(height - 1, int(row)), min(width - 1, int(column))] = True
    return scaled
