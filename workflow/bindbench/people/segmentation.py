"""Who is where in a photograph: a mask for each person, where its source has none (MultiBind, section 3.2).

`yolo` is what a data set of some size needs: a YOLO segmentation model of ultralytics (AGPL-3.0), from a file that the user has.
`embedded` (ours) runs on what packages carry:

1. YuNet finds the faces.
2. Around each face a part of the photograph is cut that holds its body; the other faces in it are painted over, so that
   MediaPipe's pose detector, which goes by faces, takes this person. A pose without the face is dropped.
3. Its segmentation says how surely a pixel is of this person. Each pixel goes to the person who is surest of it; where several
   are certain, to the one whose face is lower in the picture, who usually stands or sits in front; then to the left one.
4. Crumbs are taken off, small holes filled.

Where two bodies cross, MediaPipe often claims the same arm for both, and step 3 may give it to the wrong one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ..config.multibind_segmentation import Segmentation
from ..errors import UserError, room_on_gpu
from ..paths import resolve
from .building import POSE_MODEL
from .faces import Face, find_faces
from .masks import box_iou, box_of_mask, mask_iou
from .poses import Pose, open_pose_model, poses_of

WEIGHTS_KEY = "multibind.segmentation.yolo_weights"

# Parts of the photograph in which a body is looked for, in face sizes from the middle of the face: to each side, and down.
# The first holds a standing person; the others help where that one shows MediaPipe nobody, or somebody else.
REACHES = ((4.0, 11.0), (2.2, 11.0), (6.0, 11.0), (3.0, 5.0), (1.6, 4.0))
WIDE = (8.0, 14.0)  # for bodies that the part cuts: arms stretched out, jumps
ABOVE = 1.6  # face sizes from the middle of the face to the upper edge of the part
HEAD_JOINTS = [0, 2, 5, 9, 10]  # nose, eyes, corners of the mouth
CERTAIN = 0.9  # confidences above are one: MediaPipe's are near 1 for two people at once where they cross
CRUMB = 0.02  # of the mask's area: smaller connected parts are taken off
HOLE = 0.01  # of the mask's area: smaller holes are filled
SAME_PERSON = 0.5  # intersection over union of boxes above which a found person is the one of a given box
SAME_HEAD = 0.3  # of the square root of a body's area: noses nearer than this may be one
POSES_IN_BOX = 3  # a box of a data set may hold others too


@dataclass(frozen=True)
class FoundPerson:
    """box: [x, y, width, height] in pixels, of the mask. mask: (height, width) bool. score: the detector's, 0 to 1."""

    box: list[float]
    mask: np.ndarray
    score: float


@dataclass(frozen=True)
class Claim:
    """What a person claims of the photograph: `confidence`, (height, width) float32, of the part at left, top.

    head: (x, y) of the face. score: the detector's.
    """

    left: int
    top: int
    confidence: np.ndarray
    head: tuple[float, float]
    score: float


@contextmanager
def open_segmenter(settings: Segmentation, models: str | Path) -> Iterator[Any]:
    """The loaded models that `segment_people` needs. models: the folder that `build_people_models` made (for `embedded`).

    Raises UserError: a file is missing or not such a model; it names the config key.
    """
    if settings.method == "yolo":
        yield _open_yolo(settings)
    else:
        with open_pose_model(Path(models) / POSE_MODEL, POSES_IN_BOX) as model:
            yield model


def segment_people(image: np.ndarray, settings: Segmentation, segmenter: Any) -> list[FoundPerson]:
    """Everyone who is found in a (height, width, 3) uint8 RGB photograph, from left to right; no pixel is of two people.

    segmenter: from `open_segmenter` with the same settings.
    """
    find = _yolo_people if settings.method == "yolo" else _people_of_faces
    found = find(segmenter, image, settings)
    least = max(1, settings.min_area * image.shape[0] * image.shape[1])
    kept = [person for person in found if person.mask.sum() >= least]
    return sorted(kept, key=lambda person: (person.box[0] + person.box[2] / 2, person.box))


def segment_boxes(
    image: np.ndarray, boxes: list[list[float]], settings: Segmentation, segmenter: Any
) -> list[np.ndarray | None]:
    """For each box [x, y, width, height] the (height, width) mask of its person within it, or None where none is found.

    No pixel is of two people. segmenter: from `open_segmenter` with the same settings.
    """
    if settings.method == "yolo":
        return masks_of_boxes(boxes, _yolo_people(segmenter, image, settings))
    claims = _claims_of_boxes(segmenter, image, boxes, settings)
    known = [claim for claim in claims if claim is not None]
    masks = iter(masks_of_claims(known, image.shape[:2], settings.mask_threshold))
    found = [None if claim is None else next(masks) for claim in claims]
    return [mask if mask is not None and mask.any() else None for mask in found]


def _people_of_faces(model, image: np.ndarray, settings: Segmentation) -> list[FoundPerson]:
    faces = find_faces(image, settings.min_face_score)
    pairs = [(face, _claim_of_face(model, image, face, faces)) for face in faces]
    pairs = [(face, claim) for face, claim in pairs if claim is not None]
    masks = masks_of_claims([claim for _, claim in pairs], image.shape[:2], settings.mask_threshold)
    return [
        FoundPerson(box_of_mask(mask), mask, claim.score)
        for (face, claim), mask in zip(pairs, masks, strict=True)
        if _covers_face(mask, face)
    ]


def _claim_of_face(model, image: np.ndarray, face: Face, faces: list[Face]) -> Claim | None:
    alone = _without_other_faces(image, face, faces)
    for reach in REACHES:
        part, pose = _pose_of_face(model, alone, face, reach)
        if pose is not None:
            break
    else:
        return None
    if _is_cut(pose, part, image):
        wide, whole = _pose_of_face(model, alone, face, WIDE)
        part, pose = (part, pose) if whole is None else (wide, whole)
    return Claim(part[0], part[1], pose.mask, face.centre, face.score)


def _pose_of_face(model, image: np.ndarray, face: Face, reach: tuple[float, float]):
    """The part of the photograph, and the pose in it that has the face, or None."""
    side, down = reach
    size = (face.box[2] * face.box[3]) ** 0.5
    x, y = face.centre
    part = _part(image, x - side * size, y - ABOVE * size, x + side * size, y + down * size)
    return part, next((pose for pose in _poses_in(model, image, part) if _holds_face(pose, face, part)), None)


def _is_cut(pose: Pose, part: tuple[int, int, int, int], image: np.ndarray) -> bool:
    """The body goes on beyond a side of the part, and the photograph does too."""
    body = pose.mask > 0.5
    left, top, right, bottom = part
    height, width = image.shape[:2]
    return bool(
        (left > 0 and body[:, 0].any())
        or (right < width and body[:, -1].any())
        or (top > 0 and body[0].any())
        or (bottom < height and body[-1].any())
    )


def _claims_of_boxes(model, image: np.ndarray, boxes: list[list[float]], settings: Segmentation) -> list[Claim | None]:
    """For each box the body of a face in it that fills it best, else a pose that MediaPipe sees in it; nobody is in two boxes."""
    faces = find_faces(image, settings.min_face_score)
    claims: list[Claim | None] = [None] * len(boxes)
    of_faces = []
    for face in faces:
        mine = [index for index, box in enumerate(boxes) if _is_inside(face.centre, box)]
        body = _claim_of_face(model, image, face, faces) if mine else None
        if body is not None:
            of_faces += [(index, body) for index in mine]
    given = _give(of_faces, boxes, image, claims, [])
    still_open = [index for index, claim in enumerate(claims) if claim is None]
    _give(
        [(i, body) for i in still_open for body in _bodies_in_box(model, image, boxes[i])], boxes, image, claims, given
    )
    return claims


def _give(pairs: list[tuple[int, Claim]], boxes, image, claims: list[Claim | None], given: list[Claim]) -> list[Claim]:
    """Fills claims of boxes that have none with bodies, as far as they lie in the box: the pair that fits best first.

    given: bodies that have a box already. Returns them with those that got one now.
    """
    fits = [
        (_share(within := _within(body, boxes[index], image), boxes[index]), index, body, within)
        for index, body in pairs
    ]
    for share, index, body, within in sorted(fits, key=lambda fit: -fit[0]):
        if share >= SAME_PERSON and claims[index] is None and not any(_is_same_body(body, other) for other in given):
            claims[index] = within
            given = [*given, body]
    return given


def _bodies_in_box(model, image: np.ndarray, box: list[float]) -> list[Claim]:
    x, y, width, height = box
    part = _part(image, x - 0.12 * width, y - 0.08 * height, x + 1.12 * width, y + 1.08 * height)
    poses = _poses_in(model, image, part)
    heads = [pose.landmarks[0, :2] + part[:2] for pose in poses]
    return [
        Claim(part[0], part[1], pose.mask, (float(x), float(y)), 1.0) for pose, (x, y) in zip(poses, heads, strict=True)
    ]


def _is_same_body(first: Claim, second: Claim) -> bool:
    """Whether two claims, mostly of different parts of the photograph, are one person: the head and most pixels are the same."""
    if first is second:
        return True
    left, top = min(first.left, second.left), min(first.top, second.top)
    masks = [np.pad(it.confidence > 0.5, ((it.top - top, 0), (it.left - left, 0))) for it in (first, second)]
    high, wide = (max(mask.shape[axis] for mask in masks) for axis in (0, 1))
    masks = [np.pad(mask, ((0, high - mask.shape[0]), (0, wide - mask.shape[1]))) for mask in masks]
    apart = np.hypot(first.head[0] - second.head[0], first.head[1] - second.head[1])
    size = max(masks[0].sum(), masks[1].sum()) ** 0.5
    return bool(apart < SAME_HEAD * size and mask_iou(*masks) > SAME_PERSON)


def _within(claim: Claim, box: list[float], image: np.ndarray) -> Claim:
    left, top, right, bottom = _part(image, *_corners(box))
    inside = np.zeros_like(claim.confidence)
    place = (
        slice(max(0, top - claim.top), max(0, bottom - claim.top)),
        slice(max(0, left - claim.left), max(0, right - claim.left)),
    )
    inside[place] = claim.confidence[place]
    return replace(claim, confidence=inside)


def _share(claim: Claim, box: list[float]) -> float:
    x, y, width, height = box_of_mask(claim.confidence > 0.5)
    return box_iou(box, [x + claim.left, y + claim.top, width, height])


def _is_inside(point: tuple[float, float], box: list[float]) -> bool:
    return box[0] <= point[0] < box[0] + box[2] and box[1] <= point[1] < box[1] + box[3]


def masks_of_claims(claims: list[Claim], shape: tuple[int, int], threshold: float) -> list[np.ndarray]:
    """(height, width) bool for each claim: each pixel to the one who is surest of it, if that is more than the threshold.

    Above CERTAIN all are as sure: then the lower head has it, then the left one.
    """
    # uint8 holds the confidences finely enough, and a large photograph four times.
    surest = np.full(shape, round(255 * threshold), np.uint8)
    owner = np.full(shape, -1, np.int16)
    for index in sorted(range(len(claims)), key=lambda index: (-claims[index].head[1], claims[index].head[0])):
        claim = claims[index]
        height, width = claim.confidence.shape
        place = slice(claim.top, claim.top + height), slice(claim.left, claim.left + width)
        confidence = np.round(255 * np.minimum(claim.confidence, max(CERTAIN, threshold))).astype(np.uint8)
        wins = confidence > surest[place]
        surest[place][wins] = confidence[wins]
        owner[place][wins] = index
    return [_tidied(owner == index, (owner != index) & (owner >= 0)) for index in range(len(claims))]


def _tidied(mask: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Without crumbs, small holes filled where nobody else is."""
    area = mask.sum()
    large = _parts(mask, CRUMB * area, smallest=True)
    holes = _parts(~large, HOLE * area, smallest=False)
    return large | (holes & ~others)


def _parts(mask: np.ndarray, area: float, smallest: bool) -> np.ndarray:
    """The connected parts of a mask that have at least this area, or (not smallest) those that have less."""
    _, labels, statistics, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=4)
    wanted = (statistics[:, cv2.CC_STAT_AREA] >= area) == smallest
    wanted[0] = False
    return wanted[labels]


def _without_other_faces(image: np.ndarray, face: Face, faces: list[Face]) -> np.ndarray:
    """A copy with every other face in its mean colour, but for what lies on this one."""
    alone = image.copy()
    for other in faces:
        if other is not face:
            x, y, width, height = other.box
            left, top, right, bottom = _part(
                image, x - 0.1 * width, y - 0.2 * height, x + 1.1 * width, y + 1.1 * height
            )
            if right > left and bottom > top:
                alone[top:bottom, left:right] = alone[top:bottom, left:right].mean((0, 1)).astype(np.uint8)
    left, top, right, bottom = _part(image, *_corners(face.box))
    alone[top:bottom, left:right] = image[top:bottom, left:right]
    return alone


def _poses_in(model, image: np.ndarray, part: tuple[int, int, int, int]) -> list[Pose]:
    left, top, right, bottom = part
    return poses_of(model, image[top:bottom, left:right]) if right > left and bottom > top else []


def _holds_face(pose: Pose, face: Face, part: tuple[int, int, int, int]) -> bool:
    """Most of the head's joints lie in the face's box, grown a little."""
    x, y, width, height = face.box
    places = pose.landmarks[HEAD_JOINTS, :2] + part[:2]
    low = np.array([x - 0.15 * width, y - 0.15 * height])
    high = np.array([x + 1.15 * width, y + 1.15 * height])
    return bool(((places >= low) & (places <= high)).all(1).mean() >= 0.6)


def _covers_face(mask: np.ndarray, face: Face) -> bool:
    """At least half of the middle of the face is in the mask."""
    x, y, width, height = face.box
    left, top, right, bottom = _part(mask, x + 0.25 * width, y + 0.25 * height, x + 0.75 * width, y + 0.75 * height)
    middle = mask[top:bottom, left:right]
    return bool(middle.size and middle.mean() >= 0.5)


def _corners(box) -> tuple[float, float, float, float]:
    return box[0], box[1], box[0] + box[2], box[1] + box[3]


def _part(image: np.ndarray, left: float, top: float, right: float, bottom: float) -> tuple[int, int, int, int]:
    """left, top, right, bottom in whole pixels within the picture; without pixels where it lies outside."""
    height, width = image.shape[:2]
    left, top = min(max(0, int(left)), width), min(max(0, int(top)), height)
    return left, top, max(left, min(width, int(np.ceil(right)))), max(top, min(height, int(np.ceil(bottom))))


def import_yolo():
    """The class YOLO of ultralytics, whose import changes nothing for the rest of the program.

    Before it: no download, no report to ultralytics, no pip at run time, and no code from a pickle. After it Pillow opens
    pictures as before: ultralytics puts a function in its place that answers a broken picture with a missing package.
    """
    from PIL import Image

    os.environ |= {"YOLO_OFFLINE": "true", "YOLO_AUTOINSTALL": "false", "ULTRALYTICS_SAFE_LOAD": "true"}
    opening = Image.open
    try:
        from ultralytics import YOLO
    finally:
        Image.open = opening
    return YOLO


def _open_yolo(settings: Segmentation):
    path = resolve(Path(settings.yolo_weights).expanduser())
    if not path.is_file():
        raise UserError(f"{WEIGHTS_KEY}: {path}: no such file; YOLO's weights are not downloaded, put them there")
    try:
        model = import_yolo()(str(path), task="segment")
        task, names = model.task, model.names
    except Exception as error:  # ultralytics raises whatever torch, pickle or a format's runtime raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise UserError(f"{WEIGHTS_KEY}: {path}: not weights that ultralytics can read ({reason})") from None
    if task != "segment" or "person" not in names.values():
        raise UserError(
            f"{WEIGHTS_KEY}: {path}: its task is {task} and it has {len(names)} classes; "
            "a segmentation model with a class `person` is needed, such as yolo11x-seg.pt"
        )
    return model


def _yolo_people(model, image: np.ndarray, settings: Segmentation) -> list[FoundPerson]:
    person = next(number for number, name in model.names.items() if name == "person")
    with room_on_gpu(WEIGHTS_KEY, f"lower multibind.segmentation.yolo_image_px (now {settings.yolo_image_px})"):
        result = model.predict(
            np.ascontiguousarray(image[..., ::-1]),
            imgsz=settings.yolo_image_px,
            conf=settings.min_person_score,
            classes=[person],
            retina_masks=True,  # masks at the photograph's own size
            verbose=False,
        )[0]
    if result.masks is None:
        return []
    scores = result.boxes.conf.cpu().numpy()
    masks = result.masks.data.cpu().numpy() > 0.5
    taken = np.zeros(image.shape[:2], bool)
    found = []
    for index in np.argsort(-scores, kind="stable"):
        mask = masks[index] & ~taken
        taken |= mask
        if mask.any():
            found.append(FoundPerson(box_of_mask(mask), mask, float(scores[index])))
    return found


def masks_of_boxes(boxes: list[list[float]], found: list[FoundPerson]) -> list[np.ndarray | None]:
    """Of each box the mask of the found person who overlaps it most, within the box; the best pair first, each person once."""
    pairs = sorted(
        ((box_iou(box, person.box), -i, -j) for i, box in enumerate(boxes) for j, person in enumerate(found)),
        reverse=True,
    )
    masks: list[np.ndarray | None] = [None] * len(boxes)
    used = set()
    for share, i, j in pairs:
        if share >= SAME_PERSON and masks[-i] is None and j not in used:
            used.add(j)
            left, top, right, bottom = _part(found[-j].mask, *_corners(boxes[-i]))
            mask = np.zeros_like(found[-j].mask)
            mask[top:bottom, left:right] = found[-j].mask[top:bottom, left:right]
            masks[-i] = mask if mask.any() else None
    return masks
