"""Who in a photograph is a subject, and what is wrong with one, by boxes alone (MultiBind, section 3.2): no file is opened."""

from dataclasses import dataclass
from math import isfinite

from ..config.multibind_selection import Selection

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


@dataclass(frozen=True)
class Rejection:
    """Why a photograph is left out: a key of REASONS or the reason that its source gave, and the figure that decided."""

    reason: str
    detail: str


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
        problem = fault_of_box(name, box[3] * scale, largest_overlap(index, boxes), settings)
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


def fault_of_box(person: str, height: float, overlap: float, settings: Selection) -> Rejection | None:
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
