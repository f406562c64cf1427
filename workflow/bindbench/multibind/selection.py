"""Chooses the photographs that become instances of MultiBind and cuts their subjects out (section 3.2).

Everyone who is large enough is a subject; a photograph is taken whole or left out whole, with one reason. What boxes alone
can tell is judged first, no file being opened; then the photographs are taken in an order drawn from their ids, until the
quotas are full. So a larger source keeps what was chosen of a smaller one, and neither the order of the rows nor the number
of processes changes anything.
"""

import io
import multiprocessing
import re
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path

import cv2
import imagehash
import numpy as np
import pyarrow as pa
from PIL import Image

from ..config.multibind_selection import Selection
from ..errors import UserError
from ..files import progress, sha256, write_bytes
from ..people.masks import BrokenMask, box_of_mask, decode_mask, encode_mask
from ..people.photographs import Unreadable, changes_of, read_photograph
from ..people.quality import laplacian_variance, mask_quality
from ..tables import read_table, write_table
from .tables import CROPS, PHOTOGRAPHS, REJECTED, SELECTED, SLOTS

REASONS = {
    "broken_box": "a box that is none",
    "low_resolution": "the shorter side is too short",
    "crowd": "a crowd region touches a subject",
    "too_few_people": "too few subjects",
    "too_many_people": "too many subjects",
    "bystanders": "too much is covered by people who are too small to be subjects",
    "cut_off": "too much of a subject's box lies on the border",
    "small_subject": "a subject is too low in pixels",
    "overlap": "another subject's box covers too much of a subject's",
    "no_mask": "a subject has no mask",
    "broken_mask": "a mask that cannot be read, or is of another size",
    "missing_file": "the file is no longer there",
    "broken_file": "the file is broken, or no picture",
    "too_many_pixels": "the file is larger than the limit of pixels",
    "changed_file": "the file is not the one in which people were looked for",
    "other_size": "the file is of another size than its annotation",
    "blurred": "the photograph, or a subject in it, is blurred",
    "hidden": "a mask covers too little of its box",
    "in_pieces": "a mask falls into too many parts",
    "near_duplicate": "another photograph that was taken looks the same",
    "quota_full": "enough photographs of so many subjects were taken",
    "source_quota_full": "enough photographs of this kind of source were taken",
}
AHEAD = 8  # photographs that wait for each process
PNG = [
    *(cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_RLE),
    *(cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_SUB),
]  # on photographs half the time of level 1 with all filters, and a sixth of the usual level 6's; 14 % larger than level 1


@dataclass(frozen=True)
class Rejection:
    """Why a photograph is left out: a key of REASONS or the reason that its source gave, and the figure that decided."""

    reason: str
    detail: str


@dataclass(frozen=True)
class Candidate:
    """A photograph that its boxes let through; `index` is its row."""

    index: int
    photograph: str
    source: str
    n_subjects: int


def select_photographs(
    photographs: Path,
    settings: Selection,
    max_pixels: int,
    selected: Path,
    crops: Path,
    rejected: Path,
    folder: Path,
    threads: int = 1,
) -> None:
    """Writes the tables SELECTED, CROPS and REJECTED of the PHOTOGRAPHS, and the pictures that they name into `folder`.

    Every photograph stands in exactly one of `selected` and `rejected`. Pictures: targets/INSTANCE.png, and
    crops/INSTANCE_SLOT.png and masks/INSTANCE_SLOT.png for each subject. A file that is no longer there, or broken, when its
    turn comes is a rejection like any other. Quotas that are not filled are told on standard error.
    Raises UserError where nothing is left.
    """
    table = read_table(PHOTOGRAPHS, photographs).combine_chunks()
    candidates, rejections = _judge_boxes(table, settings)
    folder = Path(folder)
    for name in ("targets", "crops", "masks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    work = partial(make_instance, settings=settings, max_pixels=max_pixels, folder=folder)
    instances: list[dict] = []
    subjects: list[dict] = []
    taken: Counter[int | str] = Counter()  # by number of subjects and by source
    hashes = np.empty(len(candidates), np.uint64)
    results = _in_order(
        work,
        progress(candidates, "photographs", unit="photograph"),
        lambda candidate: _row(table, candidate.index),
        lambda candidate: _full_quota(candidate, taken, settings) is None,
        threads,
    )
    for candidate, made in results:
        # The quota comes first: what a process has made in advance must not decide the reason.
        outcome = _full_quota(candidate, taken, settings) or made
        if not isinstance(outcome, Rejection):
            outcome = _same_as_before(outcome, hashes, instances, settings) or outcome
        if isinstance(outcome, Rejection):
            rejections[candidate.photograph] = (candidate.source, outcome)
            if isinstance(made, tuple):
                _remove(folder, *made)
            continue
        instance, its_subjects = outcome
        hashes[len(instances)] = int(instance["perceptual_hash"], 16)
        instances.append(instance)
        subjects += its_subjects
        taken.update((candidate.n_subjects, candidate.source))
    if not instances:
        counts = Counter(rejection.reason for _, rejection in rejections.values())
        told = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
        raise UserError(
            f"{photographs}: none of its {table.num_rows} photographs can be taken ({told or 'it is empty'}); give other "
            "photographs, or loosen multibind.selection"
        )
    write_table(SELECTED, sorted(instances, key=lambda row: row["instance"]), selected)
    write_table(CROPS, sorted(subjects, key=lambda row: (row["instance"], row["slot"])), crops)
    rows = [
        {"photograph": photograph, "source": source, "reason": rejection.reason, "detail": rejection.detail}
        for photograph, (source, rejection) in sorted(rejections.items())
    ]
    write_table(REJECTED, rows, rejected)
    for line in _open_quotas(taken, settings):
        print(line, file=sys.stderr)


def _open_quotas(taken: Counter, settings: Selection) -> list[str]:
    """A line for each quota that the photographs did not fill."""
    quotas = [(f"quotas.{number}", number, quota) for number, quota in settings.quotas.items()]
    quotas += [(f"source_quotas.{kind}", kind, quota) for kind, quota in settings.source_quotas.items()]
    return [
        f"multibind.selection.{key}: {taken[counted]} of {quota} photographs were found"
        for key, counted, quota in quotas
        if taken[counted] < quota
    ]


def _full_quota(candidate: Candidate, taken: Counter, settings: Selection) -> Rejection | None:
    """taken: photographs by number of subjects and by source."""
    number, source = candidate.n_subjects, candidate.source
    if number in settings.quotas and taken[number] >= settings.quotas[number]:
        return Rejection("quota_full", f"{taken[number]} photographs of {number} subjects are taken")
    if source in settings.source_quotas and taken[source] >= settings.source_quotas[source]:
        return Rejection("source_quota_full", f"{taken[source]} photographs of {source} are taken")
    return None


def _judge_boxes(table: pa.Table, settings: Selection) -> tuple[list[Candidate], dict[str, tuple[str, Rejection]]]:
    """Candidates in the order in which they are taken; source and rejection of the others by photograph."""
    candidates, rejections = [], {}
    for index in range(table.num_rows):
        row = _row(table, index)
        subjects = choose_subjects(row, settings)
        if isinstance(subjects, Rejection):
            rejections[row["photograph"]] = (row["source"], subjects)
        else:
            candidates.append(Candidate(index, row["photograph"], row["source"], len(subjects)))
    candidates.sort(key=lambda candidate: sha256(f"{settings.seed}:{candidate.photograph}"))
    return candidates, rejections


def _row(table: pa.Table, index: int) -> dict:
    return table.slice(index, 1).to_pylist()[0]


def choose_subjects(row: dict, settings: Selection) -> list[dict] | Rejection:
    """The people of a photograph (a row of PHOTOGRAPHS) that are subjects, by boxes alone, or why it is left out.

    Subjects are all people whose box covers `min_subject_share` of the photograph. Smaller ones, and crowd regions, are
    bystanders, who may cover `max_bystander_share` together; a crowd region that touches a subject is a reason of its own,
    since nobody knows then to whom a pixel belongs.
    """
    if row["reason"]:
        return Rejection(row["reason"], row["detail"] or row["reason"])
    width, height = row["width"], row["height"]
    if min(width, height) < settings.min_side_px:
        return Rejection("low_resolution", f"{width} x {height} pixels, at least {settings.min_side_px} are asked for")
    subjects, bystanders, crowds, covered = [], 0, [], 0.0
    for person in row["people"]:
        inside = _inside(person["box"], width, height)
        if inside is None:
            return Rejection("broken_box", f"person {person['person']}: {person['box']}")
        share = inside[2] * inside[3] / (width * height)
        if person["crowd"]:
            crowds.append(inside)
        elif share >= settings.min_subject_share:
            subjects.append((person, inside))
            continue
        bystanders += 1
        covered += share
    if not settings.min_subjects <= len(subjects) <= settings.max_subjects:
        few = len(subjects) < settings.min_subjects
        return Rejection(
            "too_few_people" if few else "too_many_people",
            f"{len(subjects)} of at least {settings.min_subject_share:.2%} of the photograph, asked for are "
            f"{settings.min_subjects} to {settings.max_subjects}",
        )
    for person, box in subjects:
        if any(covered_share(box, crowd) > 0 for crowd in crowds):
            return Rejection("crowd", f"a crowd region touches person {person['person']}")
    if covered > settings.max_bystander_share:
        return Rejection(
            "bystanders",
            f"{bystanders} smaller people or crowds cover {covered:.2%} of the photograph, "
            f"at most {settings.max_bystander_share:.2%}",
        )
    scale = min(1.0, settings.max_side_px / max(width, height))
    boxes = [box for _, box in subjects]
    for index, (person, box) in enumerate(subjects):
        name = person["person"]
        problem = _fault_of_box(name, box[3] * scale, largest_overlap(index, boxes), settings)
        if problem:
            return problem
        if not person["mask"]:
            return Rejection("no_mask", f"person {name} has none")
    return [person for person, _ in subjects]


def _inside(box: list[float] | None, width: int, height: int) -> list[float] | None:
    """The part of a box within the photograph; None for what is no box."""
    if box is None or len(box) != 4 or not all(map(isfinite, box)) or min(box[2:]) <= 0:
        return None
    left, top = max(0.0, box[0]), max(0.0, box[1])
    right, bottom = min(float(width), box[0] + box[2]), min(float(height), box[1] + box[3])
    return [left, top, max(0.0, right - left), max(0.0, bottom - top)]


def covered_share(box: list[float], other: list[float]) -> float:
    """Share of `box` that `other` covers; both [x, y, width, height]. 0 for an empty box."""
    wide = min(box[0] + box[2], other[0] + other[2]) - max(box[0], other[0])
    high = min(box[1] + box[3], other[1] + other[3]) - max(box[1], other[1])
    area = box[2] * box[3]
    return max(0.0, wide) * max(0.0, high) / area if area > 0 else 0.0


def largest_overlap(index: int, boxes: list[list[float]]) -> float:
    """Largest share of one box that one of the others covers."""
    return max(covered_share(boxes[index], other) for place, other in enumerate(boxes) if place != index)


def _fault_of_box(person: str, height: float, overlap: float, settings: Selection) -> Rejection | None:
    if height < settings.min_subject_height_px:
        return Rejection(
            "small_subject",
            f"person {person}: {height:.0f} pixels high in the target, at least {settings.min_subject_height_px}",
        )
    if overlap > settings.max_overlap:
        return Rejection(
            "overlap",
            f"person {person}: another subject's box covers {overlap:.1%} of its box, at most {settings.max_overlap:.1%}",
        )
    return None


def _in_order(
    work: Callable[[dict], tuple | Rejection],
    candidates: Iterable[Candidate],
    load: Callable[[Candidate], dict],
    is_wanted: Callable[[Candidate], bool],
    threads: int,
) -> Iterator[tuple[Candidate, tuple | Rejection | None]]:
    """Each candidate with what `work` makes of its row, in their order; None where it was not wanted any more.

    Only a few photographs are under way at a time, whatever their number. A process that dies is a UserError.
    """
    if threads == 1:
        cv2.setNumThreads(1)
        for candidate in candidates:
            yield candidate, work(load(candidate)) if is_wanted(candidate) else None
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(threads, mp_context=context, initializer=cv2.setNumThreads, initargs=(1,)) as pool:
        waiting = deque()
        try:
            for candidate in candidates:
                waiting.append((candidate, pool.submit(work, load(candidate)) if is_wanted(candidate) else None))
                if len(waiting) >= AHEAD * threads:
                    yield _result(*waiting.popleft())
            while waiting:
                yield _result(*waiting.popleft())
        except BrokenProcessPool:
            raise UserError(
                "a process that reads photographs has died, most likely for want of memory; run again with fewer threads "
                "or a lower limit of pixels"
            ) from None


def _result(candidate: Candidate, future) -> tuple[Candidate, tuple | Rejection | None]:
    return candidate, future.result() if future else None


def _same_as_before(made: tuple, hashes: np.ndarray, instances: list[dict], settings: Selection) -> Rejection | None:
    """Compares with all that were taken at once: one popcount over packed hashes."""
    if settings.duplicate_bits is None or not instances:
        return None
    own = np.uint64(int(made[0]["perceptual_hash"], 16))
    distances = np.bitwise_count(hashes[: len(instances)] ^ own)
    closest = int(distances.argmin())
    if distances[closest] > settings.duplicate_bits:
        return None
    return Rejection(
        "near_duplicate",
        f"{distances[closest]} of 64 bits differ from {instances[closest]['photograph']}, more than "
        f"{settings.duplicate_bits} are asked for",
    )


def _remove(folder: Path, instance: dict, subjects: list[dict]) -> None:
    for name in (instance["target"], *(name for row in subjects for name in (row["crop"], row["mask_file"]))):
        (folder / name).unlink(missing_ok=True)


def make_instance(row: dict, settings: Selection, max_pixels: int, folder: Path) -> tuple[dict, list[dict]] | Rejection:
    """One row of SELECTED and those of CROPS, their pictures written; or why the photograph is left out, nothing written."""
    people = choose_subjects(row, settings)
    if isinstance(people, Rejection):
        return people
    height, width = row["height"], row["width"]
    masks = []
    for person in people:
        try:
            masks.append(decode_mask(person["mask"], height, width))
        except BrokenMask as error:
            return Rejection("broken_mask", f"person {person['person']}: {error}")
    try:
        image, digest, transforms = _read(row["path"], max_pixels)
    except Unreadable as error:
        return Rejection(error.reason, str(error))
    if row["sha256"] not in (None, digest):
        return Rejection(
            "changed_file",
            "the file was changed after people were looked for in it; run snakemake again with --forcerun list_photographs",
        )
    if image.shape[:2] != (height, width):
        return Rejection(
            "other_size", f"the file has {image.shape[1]} x {image.shape[0]} pixels, its annotation {width} x {height}"
        )
    masks = without_shared_pixels(masks)
    size = target_size(width, height, settings.max_side_px)
    if size != (width, height):
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        masks = [scaled_mask(mask, size) for mask in masks]
        transforms.append(f"scaled from {width} x {height} to {size[0]} x {size[1]}")
    for person, mask in zip(people, masks, strict=True):
        if not mask.any():
            return Rejection("hidden", f"person {person['person']}: nothing is left of its mask behind the others")
    sharpness = laplacian_variance(image)
    if sharpness < settings.min_sharpness:
        return Rejection("blurred", f"variance of the Laplacian {sharpness:.1f}, at least {settings.min_sharpness:g}")
    subjects = []
    for person, mask in left_to_right(people, masks):
        box = box_of_mask(mask)
        subjects.append({"person": person, "box": box, "mask": mask, **mask_quality(mask, image, box)})
    boxes = [subject["box"] for subject in subjects]
    for index, subject in enumerate(subjects):
        subject["overlap"] = largest_overlap(index, boxes)
        problem = _fault_of_subject(subject, settings)
        if problem:
            return problem
    return _written(row, image, subjects, folder, digest, transforms, sharpness)


def _read(path: str, max_pixels: int) -> tuple[np.ndarray, str, list[str]]:
    """Pixels, SHA-256 of the file, and what was done to them. One reading, so that all three are of the same bytes."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise Unreadable("no such file", "missing_file") from None
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})") from None
    image = read_photograph(io.BytesIO(data), max_pixels)
    return image, sha256(data), changes_of(io.BytesIO(data))


def without_shared_pixels(masks: list[np.ndarray]) -> list[np.ndarray]:
    """The same masks, each pixel in at most one: where several hold it, the smallest does.

    Of two overlapping people the one in front mostly covers less than what the annotators draw for the other one behind.
    """
    taken = np.zeros_like(masks[0])
    exclusive = list(masks)
    for index in sorted(range(len(masks)), key=lambda index: (int(masks[index].sum()), index)):
        exclusive[index] = masks[index] & ~taken
        taken |= masks[index]
    return exclusive


def target_size(width: int, height: int, max_side: int) -> tuple[int, int]:
    """Width and height of the target: the photograph's, or scaled so that the longer side has max_side pixels."""
    longer = max(width, height)
    if longer <= max_side:
        return width, height
    return max(1, round(width * max_side / longer)), max(1, round(height * max_side / longer))


def scaled_mask(mask: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """A mask at another size (width, height), smaller: a pixel is set where more than half of its area was.

    Masks without shared pixels stay so: no two can hold more than half. In steps of 1/255, 128 may be a rounded half.
    """
    shares = cv2.resize(mask.astype(np.uint8) * 255, size, interpolation=cv2.INTER_AREA)
    return shares > 128


def left_to_right(people: list[dict], masks: list[np.ndarray]) -> list[tuple[dict, np.ndarray]]:
    """People with their masks in the order of the slots: by the masks' centres, then by the boxes'."""

    def place(pair: tuple[dict, np.ndarray]) -> tuple:
        columns = pair[1].sum(0)
        x, y, width, height = box_of_mask(pair[1])
        centre = float(columns @ np.arange(len(columns)) / columns.sum())
        return centre, x + width / 2, y + height / 2, pair[0]["person"]

    return sorted(zip(people, masks, strict=True), key=place)


def _fault_of_subject(subject: dict, settings: Selection) -> Rejection | None:
    name = subject["person"]["person"]
    problem = _fault_of_box(name, subject["box"][3], subject["overlap"], settings)
    if problem:
        return problem
    if subject["at_border"] > settings.max_at_border:
        return Rejection(
            "cut_off",
            f"person {name}: {subject['at_border']:.1%} of the outline of its box lie on the border, "
            f"at most {settings.max_at_border:.1%}",
        )
    if subject["filled"] < settings.min_filled:
        return Rejection(
            "hidden",
            f"person {name}: the mask covers {subject['filled']:.1%} of its box, at least {settings.min_filled:.1%}",
        )
    if subject["pieces"] > settings.max_pieces:
        return Rejection(
            "in_pieces", f"person {name}: the mask has {subject['pieces']} parts, at most {settings.max_pieces}"
        )
    if subject["sharpness"] < settings.min_subject_sharpness:
        return Rejection(
            "blurred",
            f"person {name}: variance of the Laplacian {subject['sharpness']:.1f}, "
            f"at least {settings.min_subject_sharpness:g}",
        )
    return None


def _written(
    row: dict,
    image: np.ndarray,
    subjects: list[dict],
    folder: Path,
    original: str,
    transforms: list[str],
    sharpness: float,
) -> tuple[dict, list[dict]]:
    """The rows of a photograph that is taken, and its pictures."""
    instance = instance_id(row["photograph"])
    target = f"targets/{instance}.png"
    height, width = image.shape[:2]
    selected = {
        "instance": instance,
        "photograph": row["photograph"],
        "source": row["source"],
        "licence": row["licence"],
        "n_subjects": len(subjects),
        "width": width,
        "height": height,
        "target": target,
        "sha256": _write_png(folder / target, image),
        "original_sha256": original,
        "transforms": transforms,
        "sharpness": sharpness,
        "perceptual_hash": str(imagehash.phash(Image.fromarray(image))),
    }
    crops = []
    for slot, subject in zip(SLOTS, subjects, strict=False):
        crop, mask_file = f"crops/{instance}_{slot}.png", f"masks/{instance}_{slot}.png"
        x, y, wide, high = map(int, subject["box"])
        crops.append(
            {
                **{
                    name: subject[name]
                    for name in ("box", "area", "filled", "pieces", "at_border", "overlap", "sharpness")
                },
                "instance": instance,
                "slot": slot,
                "person": subject["person"]["person"],
                "mask": encode_mask(subject["mask"]),
                "crop": crop,
                "crop_sha256": _write_png(folder / crop, image[y : y + high, x : x + wide]),
                "mask_file": mask_file,
                "mask_sha256": _write_png(folder / mask_file, subject["mask"].astype(np.uint8) * 255),
            }
        )
    return selected, crops


def _write_png(path: Path, image: np.ndarray) -> str:
    """Writes RGB or grey; returns the SHA-256 of the file. Not fsynced: the tables hold the hashes, which readers check."""
    data = cv2.imencode(".png", image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2BGR), PNG)[1].tobytes()
    write_bytes(path, data, durable=False)
    return sha256(data)


def instance_id(photograph: str) -> str:
    """A name for files: the photograph's id with a dash for the stroke.

    An id with further strokes, or with signs that a file's name had better not hold, gets a piece of its hash besides.
    """
    plain = photograph.replace("/", "-", 1)
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", plain):
        return plain
    return f"{re.sub('[^A-Za-z0-9._-]+', '-', plain)[:80].lstrip('.-')}-{sha256(photograph)[:8]}"
