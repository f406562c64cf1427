"""Annotation of the chosen photographs (section 3.2): measured, or written by a vision-language model with structured output.

    python -m bindbench annotate-instances --help

The paid methods get the photograph, the crop of every subject and its box; the answer has to fit a schema that names exactly
the instance's slots, then the rules of annotation.py, and its prompt those of the linter. An answer that breaks them is asked
for again under its next attempt, up to services.max_attempts_payload times; then the last one's fault is a problem in the table.
Every answer stays in the services' store, where nothing is bought twice.
"""

import io
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from string import Template

import numpy as np
from PIL import Image

from ..config.multibind_annotation import Annotation as Settings
from ..config.services import Services
from ..errors import UserError
from ..files import progress, read_verified, sha256, write_json
from ..paths import resolve
from ..people.masks import BrokenMask, decode_mask
from ..services.buying import Answer
from ..services.requests import InputImage, Request
from ..tables import read_table, write_table
from .annotation import BrokenAnnotation, Position, annotation_of, answer_schema, position_of
from .prompts import compile_prompt, lint_prompt
from .purchases import SAME_AS_REJECTED, bought_well, new_record
from .tables import ANNOTATIONS, CROPS, SELECTED

PROMPT = "resources/prompts/multibind/annotation.txt"
STAGE = "multibind/annotations"
MARGIN = 0.1  # of a box's sides, that a person is looked at with
# Else what is looked at, in face sizes from the middle of the face: to each side, and down. The upper edge is 1.6 above.
REACHES = ((4.0, 11.0), (3.0, 5.0), (1.6, 4.0))
ABOVE = 1.6

Rejected = Mapping[str, set[str]]


def annotate_instances(
    selected: Path,
    crops: Path,
    folder: Path,
    settings: Settings,
    services: Services | None,
    out: Path,
    models: Path | None = None,
    rejected: Rejected | None = None,
) -> None:
    """Writes the table ANNOTATIONS, and beside it NAME.json: what was bought, and what was refused with its reason.

    folder: where the files of both tables lie. services: of the paid methods. models: folder of the MediaPipe models
    (`build-people-models`) for the embedded method; without it there are no joints and blendshapes, and less is said.
    rejected: by instance, the SHA-256 of the annotations that people rejected; each one counts as an attempt of the paid methods.
    Raises UserError for a table or file that is missing or another one, and whatever services.buying.answers raises.
    """
    instances = read_table(SELECTED, selected).to_pylist()
    subjects = subjects_of(instances, read_table(CROPS, crops).to_pylist(), crops)
    record = new_record(STAGE)
    if settings.method == "embedded":
        rows = _measured(instances, subjects, folder, settings, models)
    else:
        rows = _bought(instances, subjects, folder, settings, services, rejected or {}, record)
    write_json(out.with_suffix(".json"), record)
    write_table(ANNOTATIONS, rows, out)


def subjects_of(instances: list[dict], crops: list[dict], path: Path) -> dict[str, list[dict]]:
    """Rows of CROPS of each instance (row of SELECTED), by slot. Raises UserError where they are not its subjects."""
    found: dict[str, list[dict]] = defaultdict(list)
    for row in sorted(crops, key=lambda row: (row["instance"], row["slot"])):
        found[row["instance"]].append(row)
    for instance in instances:
        if len(found[instance["instance"]]) != instance["n_subjects"]:
            raise UserError(
                f"{path}: {instance['instance']}: {len(found[instance['instance']])} crops for {instance['n_subjects']} "
                "subjects; delete it and run again"
            )
    return found


# Bought --------------------------------------------------------------------------------------------------------------


def annotation_requests(
    instances: list[dict],
    subjects: Mapping[str, list[dict]],
    folder: Path,
    settings: Settings,
    rejected: Rejected,
) -> Iterator[Request]:
    """The first request for each instance, in their order; what an estimate counts. subjects: see subjects_of."""
    for instance in instances:
        name = instance["instance"]
        yield annotation_request(instance, subjects[name], folder, settings, len(rejected.get(name, ())))


def annotation_request(instance: dict, subjects: list[dict], folder: Path, settings: Settings, attempt: int) -> Request:
    """What is asked about an instance: the instruction, its target, then each crop behind its letter.

    attempt: 0 at first, one more for each answer that a person rejected or that would not do.
    Raises UserError for a template that is missing or broken.
    """
    slots = tuple(row["slot"] for row in subjects)
    files = [(instance["target"], instance["sha256"]), *((row["crop"], row["crop_sha256"]) for row in subjects)]
    images = tuple(InputImage(str((folder / path).resolve()), digest) for path, digest in files)
    labels = ["The photograph:", *(f"The crop of Subject {slot}:" for slot in slots)]
    schema = answer_schema(slots)
    text = annotation_prompt(instance, subjects)
    if settings.method == "openai":
        content: list[dict] = [{"type": "text", "text": text}]
        for index, label in enumerate(labels):
            content += [{"type": "text", "text": label}, {"image": index}]
        json_schema = {"name": "annotation", "strict": True, "schema": schema}
        body = {
            "messages": [{"role": "user", "content": content}],
            "response_format": {"type": "json_schema", "json_schema": json_schema},
            "max_completion_tokens": settings.max_tokens,
        }
        config = body
        kind = "chat"
    else:
        parts: list[dict] = [{"text": text}]
        for index, label in enumerate(labels):
            parts += [{"text": label}, {"image": index}]
        config = {
            "response_mime_type": "application/json",
            "response_json_schema": schema,
            "max_output_tokens": settings.max_tokens,
        }
        body = {"contents": [{"role": "user", "parts": parts}], "config": config}
        kind = "gemini_content"
    if settings.temperature is not None:
        config["temperature"] = settings.temperature
    return Request(kind, settings.model, body, images, attempt=attempt + 1, stage=STAGE)


def annotation_prompt(instance: dict, subjects: list[dict]) -> str:
    """The instruction: which subject is where. Raises UserError when the template is missing or names another field."""
    path = resolve(PROMPT)
    lines = []
    for row in subjects:
        at = position_of(row["box"], instance["width"], instance["height"])
        lines.append(
            f"- Subject {row['slot']}: the box from {at.left} to {at.right} percent of the width (from the left) and from "
            f"{at.top} to {at.bottom} percent of the height (from the top)"
        )
    slots = ", ".join(row["slot"] for row in subjects)
    try:
        return Template(path.read_text(encoding="utf-8")).substitute(subjects="\n".join(lines), slots=slots)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (KeyError, ValueError) as error:
        raise UserError(f"{path}: not a template with $subjects and $slots ({error})") from None


def _bought(
    instances: list[dict],
    subjects: Mapping[str, list[dict]],
    folder: Path,
    settings: Settings,
    services: Services | None,
    rejected: Rejected,
    record: dict,
) -> list[dict]:
    """Rows of ANNOTATIONS. record: gets what was bought."""
    if services is None:
        raise UserError(f"annotation: the method {settings.method} needs the section services")
    of_name = {instance["instance"]: instance for instance in instances}
    kept: dict[str, tuple[str | None, list[str]]] = {}

    def ask(name: str, attempt: int) -> Request:
        attempt += len(rejected.get(name, ()))
        return annotation_request(of_name[name], subjects[name], folder, settings, attempt)

    def judge(name: str, answer: Answer) -> str:
        text, problems, detail = _judged(answer.payload, _positions(of_name[name], subjects[name]))
        if text and sha256(text) in rejected.get(name, ()):
            problems, detail = ["rejected"], SAME_AS_REJECTED
        # Of answers that all have faults, one that is an annotation is better than one that is none.
        if not problems or text or not kept.get(name, (None,))[0]:
            kept[name] = text, problems
        return f"{problems[0]}: {detail}" if problems else ""

    bought_well(of_name, ask, judge, services, record, "annotations", "photograph")
    rows = []
    for name in of_name:
        text, problems = kept.get(name, (None, []))
        if reason := record["refused"].get(name):
            print(f"{name}: {reason}", file=sys.stderr)
            if name not in kept:
                problems = ["broken_answer" if reason.startswith("broken ") else "refused"]
        model = f"{settings.method}/{settings.model}"
        rows.append({"instance": name, "annotation": text, "model": model, "problems": problems})
    return rows


def _judged(payload: bytes, positions: dict[str, Position]) -> tuple[str | None, list[str], str]:
    """The annotation's JSON text, short names of what is wrong with the answer or with its prompt, and the first one's detail."""
    try:
        annotation = annotation_of(json.loads(payload), positions)
    except BrokenAnnotation as error:
        return None, [error.problem], str(error)
    problems = lint_prompt(compile_prompt(annotation), annotation)
    names = list(dict.fromkeys(problem.split(":", 1)[0] for problem in problems))
    return annotation.to_json(), names, problems[0].partition(": ")[2] if problems else ""


def _positions(instance: dict, subjects: list[dict]) -> dict[str, Position]:
    return {row["slot"]: position_of(row["box"], instance["width"], instance["height"]) for row in subjects}


# Measured ------------------------------------------------------------------------------------------------------------


def _measured(
    instances: list[dict],
    subjects: Mapping[str, list[dict]],
    folder: Path,
    settings: Settings,
    models: Path | None,
) -> list[dict]:
    from ..people.building import FACE_MODEL, POSE_MODEL
    from .measuring import measured_annotation

    rows = []
    with ExitStack() as opened:
        pose_model = face_model = None
        if models is not None:
            from ..people.poses import open_face_model, open_pose_model

            pose_model = opened.enter_context(open_pose_model(models / POSE_MODEL))
            face_model = opened.enter_context(open_face_model(models / FACE_MODEL))
        for instance in progress(instances, "annotations", unit="photograph"):
            image = _target(instance, folder)
            people = look_at(image, subjects[instance["instance"]], settings, pose_model, face_model)
            missing = [f"no_face_{person.slot}" for person in people if person.face is None]
            missing += [f"no_pose_{person.slot}" for person in people if person.joints is None and models is not None]
            annotation = measured_annotation(image, people, settings.measures)
            rows.append(
                {
                    "instance": instance["instance"],
                    "annotation": annotation.to_json(),
                    "model": "embedded",
                    "problems": missing,
                }
            )
    return rows


def _target(instance: dict, folder: Path) -> np.ndarray:
    """(height, width, 3) uint8 RGB. Raises UserError for a file that is missing or not the one that was written down."""
    remedy = f"delete {folder}.parquet and run snakemake again"
    data = read_verified(folder / instance["target"], instance["sha256"], remedy)
    image = np.array(Image.open(io.BytesIO(data)).convert("RGB"))
    if image.shape[:2] != (instance["height"], instance["width"]):
        raise UserError(
            f"{folder / instance['target']}: not {instance['width']} x {instance['height']} pixels; {remedy}"
        )
    return image


def look_at(image: np.ndarray, subjects: list[dict], settings: Settings, pose_model, face_model) -> list:
    """Mask, face, joints and blendshapes of every subject (rows of CROPS), as measures.bodies.Person.

    pose_model, face_model: of people.poses, or None. Raises UserError for a broken mask.
    """
    from ..people.faces import find_faces
    from .measures.bodies import Person

    height, width = image.shape[:2]
    faces = find_faces(image, settings.measures.face_score)
    masks = [_mask(row, height, width) for row in subjects]
    people = []
    for number, (row, mask, face) in enumerate(zip(subjects, masks, faces_of_masks(faces, masks), strict=True)):
        pose = _pose(_alone(image, masks, number), row["box"], face, pose_model)
        people.append(
            Person(
                row["slot"],
                [float(value) for value in row["box"]],
                mask,
                face_box=face and face.box,
                face=None if face is None else np.array(face.landmarks, float),
                joints=None if pose is None else pose.landmarks,
                world=None if pose is None else pose.world,
                blendshapes=_blendshapes(image, face, face_model),
            )
        )
    return people


def _mask(row: dict, height: int, width: int) -> np.ndarray:
    try:
        return decode_mask(row["mask"], height, width)
    except BrokenMask as error:
        raise UserError(
            f"crops: {row['instance']}, slot {row['slot']}: {error}; delete the table and run again"
        ) from None


def faces_of_masks(faces: list, masks: list[np.ndarray]) -> list:
    """For each mask the largest face whose centre lies in it, or None; a face goes to one mask only."""
    taken: set[int] = set()
    found = []
    for mask in masks:
        height, width = mask.shape
        inside = []
        for number, face in enumerate(faces):
            x, y = (round(value) for value in face.centre)
            if number not in taken and 0 <= x < width and 0 <= y < height and mask[y, x]:
                inside.append((face.box[2] * face.box[3], -number))
        best = -max(inside)[1] if inside else None
        if best is not None:
            taken.add(best)
        found.append(None if best is None else faces[best])
    return found


def _blendshapes(image: np.ndarray, face, face_model) -> dict[str, float] | None:
    if face is None or face_model is None:
        return None
    from ..people.poses import blendshapes_of, face_crop

    return blendshapes_of(face_model, face_crop(image, face.box))


def _alone(image: np.ndarray, masks: list[np.ndarray], number: int) -> np.ndarray:
    """A copy with the other subjects painted over: MediaPipe goes by faces, and may take the larger one."""
    others = np.zeros(image.shape[:2], bool)
    for other, mask in enumerate(masks):
        if other != number:
            others |= mask
    alone = image.copy()
    alone[others & ~masks[number]] = 128
    return alone


def _pose(image: np.ndarray, box: list[float], face, pose_model):
    """people.poses.Pose with its landmarks in pixels of the photograph; None where MediaPipe sees nobody or somebody else.

    It is shown the box, then parts around the face.
    """
    if pose_model is None:
        return None
    from ..people.poses import pose_of

    for left, top, right, bottom in _parts(image, box, face):
        pose = pose_of(pose_model, image[top:bottom, left:right]) if right > left and bottom > top else None
        if pose is not None:
            joints = pose.landmarks + np.array([left, top, 0], np.float32)
            if _is_theirs(joints, box, face):
                return replace(pose, landmarks=joints)
    return None


def _parts(image: np.ndarray, box: list[float], face) -> Iterator[tuple[int, int, int, int]]:
    """left, top, right and bottom of parts of the photograph that should hold the person."""
    height, width = image.shape[:2]
    x, y, wide, high = box
    parts = [(x - MARGIN * wide, y - MARGIN * high, x + (1 + MARGIN) * wide, y + (1 + MARGIN) * high)]
    if face is not None:
        (x, y), size = face.centre, (face.box[2] * face.box[3]) ** 0.5
        parts += [(x - side * size, y - ABOVE * size, x + side * size, y + down * size) for side, down in REACHES]
    for left, top, right, bottom in parts:
        yield max(0, round(left)), max(0, round(top)), min(width, round(right)), min(height, round(bottom))


def _is_theirs(joints: np.ndarray, box: list[float], face) -> bool:
    """Whether the nose lies in the person's face; without a face, whether it lies in the box."""
    x, y, width, height = face.box if face is not None else box
    slack = 0.25 if face is not None else 0.0
    nose = joints[0]
    across = x - slack * width <= nose[0] <= x + (1 + slack) * width
    return bool(across and y - slack * height <= nose[1] <= y + (1 + slack) * height)
