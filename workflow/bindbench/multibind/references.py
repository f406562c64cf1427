"""Canonical references: one picture per subject that shows who it is, and nothing of what the prompt has to say (section 3.2).

    python -m bindbench make-references --help

Embedded: the subject's own pixels, centred on neutral grey; pose, expression and gaze stay, so a number made with these
references says so. Paid, as in the paper (Gemini 3 Pro Image) or by GPT-Image: a model gets the subject cut out on grey and the
instruction to neutralise the edit set and to keep the preserve set (both of annotation.py). Each reference is checked by
`reference_problems`; a rejected one is bought again under its next attempt.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import cv2
import numpy as np

from ..config.multibind_pictures import PAID, References
from ..config.services import Services
from ..files import read_verified, sha256, write_json
from ..people.masks import box_of_mask
from ..services.buying import Answer
from ..services.requests import InputImage, Request
from ..tables import read_table, write_table
from .annotating import subjects_of
from .annotation import EDIT_SET, PRESERVE_SET
from .pictures import (
    REMEDY,
    Notes,
    decoded,
    gemini_edit,
    in_processes,
    keep,
    key_of,
    mask_of,
    openai_edit,
    png_of,
    prompt_of,
    target_of,
)
from .purchases import SAME_AS_REJECTED, bought_well, new_record
from .tables import CROPS, REFERENCES, SELECTED

PROMPT = "resources/prompts/multibind/reference.txt"
STAGE = "multibind/references"
GREY = 128
# What each part of the edit set becomes in a reference.
NEUTRAL = {
    "position": "centred in the picture, the whole body as far as it is seen here",
    "pose.body": "standing upright, facing the camera",
    "pose.head": "straight, turned to the camera",
    "pose.arms": "hanging relaxed at the sides, hands empty",
    "pose.legs": "straight, side by side",
    "action": "none, standing still",
    "expression": "neutral, mouth closed",
    "gaze": "straight into the camera",
}
PLAIN = 2.0  # grey levels: a picture that spreads less is empty
SAME = 1.0  # grey levels, mean difference of two thumbnails below which two references are one picture
THUMBNAIL_PX = 32

Rejected = Mapping[tuple[str, str], set[str]]


def make_references(
    selected: Path,
    crops: Path,
    folder: Path,
    settings: References,
    services: Services | None,
    out: Path,
    out_folder: Path,
    *,
    version: int,
    threads: int = 1,
    rejected: Rejected | None = None,
) -> None:
    """Writes the pictures into `out_folder` and the table REFERENCES; beside it NAME.json says what was bought and refused.

    folder: where the targets of SELECTED lie. services: of the paid methods. version: of this stage; another one makes
    everything anew but what was bought. threads: processes at once. rejected: by instance and slot, the SHA-256 of the
    references that people rejected; each one counts as an attempt of the paid methods.
    Raises UserError for a table or file that is missing or another one, and whatever services.buying.answers raises.
    """
    instances, subjects = _rows(selected, crops)
    notes, record = Notes(out_folder, "references"), new_record(STAGE)
    rejected = rejected or {}
    if settings.method in PAID:
        made = _bought(instances, subjects, folder, settings, services, notes, record, version, threads, rejected)
    else:
        made = _cut_out(instances, subjects, folder, settings, notes, version, threads)
    problems = _checks(instances, subjects, folder, settings, made, notes, version, threads)
    rows = []
    for instance, subject in _pairs(instances, subjects):
        place = instance["instance"], subject["slot"]
        value = made.get(place)
        found = problems[place] if value else ["refused" if name_of(subject) in record["refused"] else "empty"]
        if value and value["sha256"] in rejected.get(place, ()):
            found = [*found, "rejected"]
        rows.append(
            {
                "instance": place[0],
                "slot": place[1],
                "reference": value["file"] if value else None,
                "sha256": value["sha256"] if value else None,
                "model": model_of(settings),
                "problems": found,
            }
        )
    notes.tidy()
    write_json(out.with_suffix(".json"), record)
    write_table(REFERENCES, rows, out)


def _rows(selected: Path, crops: Path) -> tuple[list[dict], dict[str, list[dict]]]:
    instances = read_table(SELECTED, selected).to_pylist()
    return instances, subjects_of(instances, read_table(CROPS, crops).to_pylist(), crops)


def _pairs(instances: list[dict], subjects: Mapping[str, list[dict]]) -> Iterator[tuple[dict, dict]]:
    return ((instance, subject) for instance in instances for subject in subjects[instance["instance"]])


def name_of(subject: dict) -> str:
    """Name of a subject (row of CROPS) in records and file names."""
    return f"{subject['instance']}_{subject['slot']}"


def model_of(settings: References) -> str:
    """What makes the references, for the table."""
    if settings.method == "gemini":
        return f"gemini/{settings.gemini_model}/{gemini_size(settings)}"
    if settings.method == "openai":
        return f"openai/{settings.openai_model}/{settings.quality}"
    return "embedded/masked-crop"


def gemini_size(settings: References) -> str:
    """The first size of Gemini's that is not smaller than the references."""
    return next(name for name, pixels in (("1K", 1024), ("2K", 2048), ("4K", 4096)) if settings.size_px <= pixels)


# Cut out -------------------------------------------------------------------------------------------------------------


def masked_crop(image: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """(side, side, 3) uint8: the pixels within the mask at their own size, centred on grey; what the paid methods get.

    Whole pixels only, so the same photograph makes the same request on any machine. side: the mask's longer one and a
    sixteenth on every side. Raises ValueError for an empty mask.
    """
    x, y, width, height = _box(mask)
    border = max(width, height) // 16 + 1
    side = max(width, height) + 2 * border
    picture = np.full((side, side, 3), GREY, np.uint8)
    left, top = (side - width) // 2, (side - height) // 2
    inside = mask[y : y + height, x : x + width]
    picture[top : top + height, left : left + width][inside] = image[y : y + height, x : x + width][inside]
    return picture


def embedded_reference(image: np.ndarray, mask: np.ndarray, size_px: int, margin: float) -> np.ndarray:
    """(size_px, size_px, 3) uint8: the pixels within the mask, scaled to fill the picture, centred on grey.

    The edge is soft over one or two pixels, and no pixel from outside the mask has a part in it. margin: free border as a
    share of size_px. Raises ValueError for an empty mask.
    """
    x, y, width, height = _box(mask)
    # A pixel of nothing on every side, or the edge could not fade where the mask touches its box.
    inside = np.pad(mask[y : y + height, x : x + width].astype(np.float32), 1)
    colours = np.pad(image[y : y + height, x : x + width].astype(np.float32), ((1, 1), (1, 1), (0, 0)))
    scale = size_px * (1 - 2 * margin) / max(width, height)
    size = max(1, round((width + 2) * scale)), max(1, round((height + 2) * scale))
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    # Colours are weighted by the mask before they are mixed.
    share = cv2.resize(inside, size, interpolation=way)
    colours = cv2.resize(colours * inside[..., None], size, interpolation=way) / np.maximum(share, 1e-3)[..., None]
    cover = np.clip((share - 0.5) * max(1.0, scale) + 0.5, 0, 1)[..., None]
    cover[share < 1e-3] = 0
    mixed = np.clip(np.rint(colours * cover + GREY * (1 - cover)), 0, 255).astype(np.uint8)
    beyond = max(0, *(side - size_px for side in size))  # the added pixels may reach over the border
    picture = np.full((size_px + 2 * beyond, size_px + 2 * beyond, 3), GREY, np.uint8)
    left, top = ((size_px + 2 * beyond - side) // 2 for side in size)
    picture[top : top + size[1], left : left + size[0]] = mixed
    return picture[beyond : beyond + size_px, beyond : beyond + size_px]


def _box(mask: np.ndarray) -> tuple[int, int, int, int]:
    if not mask.any():
        raise ValueError("the mask is empty")
    return tuple(int(value) for value in box_of_mask(mask))


def _cut_out(instances, subjects, folder, settings, notes, version, threads) -> dict:
    """The embedded references by instance and slot: values of Notes; a subject with an empty mask has none."""
    return _pictures(instances, subjects, folder, settings, notes, version, threads, "picture")


def _pictures(instances, subjects, folder, settings, notes: Notes, version, threads, kind: str) -> dict:
    """kind: `picture` (embedded references) or `input` (masked crops for the paid methods), also the prefix of the items."""
    made, tasks = {}, []
    for instance in instances:
        missing = []
        for subject in subjects[instance["instance"]]:
            value = notes.find(f"{kind}/{name_of(subject)}", _cut_key(instance, subject, settings, version, kind))
            if value is None:
                missing.append(subject)
            elif "file" in value:
                made[instance["instance"], subject["slot"]] = value
        if missing:
            tasks.append((kind, folder, instance, missing, settings, notes.folder))
    results = in_processes(_cut, tasks, threads, "references" if kind == "picture" else "subjects cut out")
    for task, values in zip(tasks, results, strict=True):
        _, _, instance, missing, *_ = task
        for subject, value in zip(missing, values, strict=True):
            notes.add(f"{kind}/{name_of(subject)}", _cut_key(instance, subject, settings, version, kind), value or {})
            if value:
                made[instance["instance"], subject["slot"]] = value
    return made


def _cut_key(instance: dict, subject: dict, settings: References, version: int, kind: str) -> str:
    shapes = {"size_px": settings.size_px, "margin": settings.margin, "version": version} if kind == "picture" else {}
    return key_of(kind=kind, target=instance["sha256"], mask=subject["mask"], **shapes)


def _cut(task: tuple) -> list[dict | None]:
    """Writes the pictures of the subjects of one instance; None for an empty mask."""
    kind, folder, instance, subjects, settings, out_folder = task
    image = target_of(folder, instance)
    values = []
    for subject in subjects:
        mask = mask_of(subject, instance)
        if not mask.any():
            values.append(None)
        elif kind == "picture":
            picture = embedded_reference(image, mask, settings.size_px, settings.margin)
            values.append(keep(out_folder / f"{name_of(subject)}.png", png_of(picture)))
        else:
            values.append(keep(out_folder / f"{name_of(subject)}.input.png", png_of(masked_crop(image, mask))))
    return values


# Bought --------------------------------------------------------------------------------------------------------------


def reference_prompt() -> str:
    """The instruction: what is neutralised, what is kept. Raises UserError when the template is missing or broken."""
    edits = "\n".join(f"- {words}: {NEUTRAL[field]}" for field, words in EDIT_SET.items())
    return prompt_of(PROMPT, edits=edits, keeps="\n".join(f"- {words}" for words in PRESERVE_SET.values()))


def reference_request(picture: InputImage, settings: References, attempt: int) -> Request:
    """What is asked for one subject. attempt: 0 at first, one more for each rejected reference."""
    prompt = reference_prompt()
    if settings.method == "openai":
        model, kind = settings.openai_model, "image_edit"
        body = openai_edit(prompt, model, (1024, 1024), settings.quality)
    else:
        model, kind = settings.gemini_model, "gemini_content"
        body = gemini_edit(prompt, 1, (1, 1), gemini_size(settings))
    return Request(kind, model, body, (picture,), attempt=attempt + 1, stage=STAGE)


def references_requests(
    selected: Path, crops: Path, folder: Path, settings: References, rejected: Rejected | None = None
) -> Iterator[Request]:
    """What `make_references` would ask for, for an estimate; nothing is written. None for the embedded method."""
    if settings.method not in PAID:
        return
    instances, subjects = _rows(selected, crops)
    for instance in instances:
        image = target_of(folder, instance)
        for subject in subjects[instance["instance"]]:
            mask = mask_of(subject, instance)
            if mask.any():
                picture = InputImage(name_of(subject), sha256(png_of(masked_crop(image, mask))))
                attempt = len((rejected or {}).get((instance["instance"], subject["slot"]), ()))
                yield reference_request(picture, settings, attempt)


def _bought(
    instances, subjects, folder, settings, services, notes: Notes, record, version, threads, rejected: Rejected
) -> dict:
    """The paid references by instance and slot: values of Notes; a refused one is in the record instead."""
    inputs = _pictures(instances, subjects, folder, settings, notes, version, threads, "input")
    places = {f"{instance}_{slot}": (instance, slot) for instance, slot in inputs}
    made = {}

    def ask(name: str, attempt: int) -> Request:
        place = places[name]
        picture = InputImage(str((notes.folder / inputs[place]["file"]).resolve()), inputs[place]["sha256"])
        return reference_request(picture, settings, len(rejected.get(place, ())) + attempt)

    def judge(name: str, answer: Answer) -> str:
        value = _kept(name, answer, settings, notes, version)
        if value is None:
            return "its pixels do not decode"
        made[places[name]] = value
        return SAME_AS_REJECTED if value["sha256"] in rejected.get(places[name], ()) else ""

    bought_well(places, ask, judge, services, record)
    return made


def _kept(name: str, answer: Answer, settings: References, notes: Notes, version: int) -> dict | None:
    """The file of an answer, of the size that was set where it is square; None when its pixels do not decode."""
    key = key_of(kind="bought", payload=sha256(answer.payload), size_px=settings.size_px, version=version)
    value = notes.find(f"picture/{name}", key)
    if value is None:
        pixels = cv2.imdecode(np.frombuffer(answer.payload, np.uint8), cv2.IMREAD_COLOR)
        if pixels is None:
            return None
        size = settings.size_px
        height, width = pixels.shape[:2]
        if height == width and height != size:
            pixels = cv2.resize(
                pixels, (size, size), interpolation=cv2.INTER_AREA if height > size else cv2.INTER_CUBIC
            )
        value = keep(notes.folder / f"{name}.png", png_of(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)))
        notes.add(f"picture/{name}", key, value)
    return value


# Checked -------------------------------------------------------------------------------------------------------------


def _checks(instances, subjects, folder, settings, made, notes: Notes, version, threads) -> dict:
    """What is wrong with each reference, by instance and slot."""
    problems, tasks, keys = {}, [], []
    for instance in instances:
        name = instance["instance"]
        rows = [subject for subject in subjects[name] if (name, subject["slot"]) in made]
        values = {subject["slot"]: made[name, subject["slot"]] for subject in rows}
        if not values:
            continue
        key = key_of(
            target=instance["sha256"],
            masks={subject["slot"]: subject["mask"] for subject in subjects[name]},
            references={slot: value["sha256"] for slot, value in values.items()},
            paid=settings.method in PAID,
            size_px=settings.size_px,
            least_coverage=settings.least_coverage,
            version=version,
        )
        found = notes.find(f"checks/{name}", key)
        if found is None:
            tasks.append((folder, instance, subjects[name], values, settings, notes.folder))
            keys.append(key)
        else:
            problems |= {(name, slot): short for slot, short in found.items()}
    results = in_processes(_check, tasks, threads, "references checked")
    for task, key, found in zip(tasks, keys, results, strict=True):
        name = task[1]["instance"]
        notes.add(f"checks/{name}", key, found)
        problems |= {(name, slot): short for slot, short in found.items()}
    return problems


def _check(task: tuple) -> dict[str, list[str]]:
    folder, instance, subjects, values, settings, out_folder = task
    pictures = {
        slot: decoded(read_verified(out_folder / value["file"], value["sha256"], REMEDY), value["file"])
        for slot, value in values.items()
    }
    masks = {subject["slot"]: mask_of(subject, instance) for subject in subjects}
    return reference_problems(target_of(folder, instance), masks, pictures, settings)


def reference_problems(
    target: np.ndarray, masks: Mapping[str, np.ndarray], pictures: Mapping[str, np.ndarray], settings: References
) -> dict[str, list[str]]:
    """Short names of what is wrong with the references of one instance, by slot.

    target: (height, width, 3) uint8 RGB; masks: (height, width) bool of every slot; pictures: the references.
    wrong_size; empty: one colour; small: covers less than settings.least_coverage (embedded); same_as_other: the picture of
    another slot; no_face: the subject shows a face, the reference none; other_person: its face is closer to that of another
    subject (paid; cosine of SFace).
    """
    from ..people.faces import face_features, find_faces

    faces = find_faces(target)
    faces_of = {slot: face_in(faces, mask) for slot, mask in masks.items()}
    paid = settings.method in PAID
    features = {}
    if paid:
        features = {slot: _unit(face_features(target, face)) for slot, face in faces_of.items() if face is not None}
    thumbnails = {slot: _thumbnail(picture) for slot, picture in pictures.items()}
    problems: dict[str, list[str]] = {}
    for slot, picture in pictures.items():
        found = problems[slot] = []
        if picture.shape[:2] != (settings.size_px, settings.size_px):
            found.append("wrong_size")
        if thumbnails[slot].std(axis=(0, 1)).max() < PLAIN:
            found.append("empty")
        if not paid and (picture != GREY).any(-1).mean() < settings.least_coverage:
            found.append("small")
        others = (thumbnail for other, thumbnail in thumbnails.items() if other != slot)
        if any(np.abs(thumbnails[slot] - other).mean() < SAME for other in others):
            found.append("same_as_other")
        if faces_of[slot] is None:
            continue
        face = largest(find_faces(picture))
        if face is None:
            found.append("no_face")
        elif paid:
            mine = _unit(face_features(picture, face))
            closest = max(features, key=lambda other: float(mine @ features[other]))
            if closest != slot:
                found.append("other_person")
    return problems


def face_in(faces: list, mask: np.ndarray):
    """The largest face whose centre lies in a (height, width) bool mask; None when there is none."""
    height, width = mask.shape
    inside = []
    for face in faces:
        x, y = (int(value) for value in face.centre)
        if 0 <= x < width and 0 <= y < height and mask[y, x]:
            inside.append(face)
    return largest(inside)


def largest(faces: list):
    """The largest face; None of none."""
    return max(faces, key=lambda face: (face.box[2] * face.box[3], face.box), default=None)


def _unit(features: np.ndarray) -> np.ndarray:
    return features / max(float(np.linalg.norm(features)), 1e-12)


def _thumbnail(picture: np.ndarray) -> np.ndarray:
    small = cv2.resize(picture, (THUMBNAIL_PX, THUMBNAIL_PX), interpolation=cv2.INTER_AREA)
    return small.astype(np.float32)
