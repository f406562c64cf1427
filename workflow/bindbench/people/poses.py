"""Body poses and faces' expressions, by MediaPipe's Tasks API: one picture at a time, the same picture giving the same answer.

The embedded pose and expression specialists of MultiBind (section 3.3) and the second step of the embedded segmentation.
The .task files are made by `building.build_people_models`; every function here takes a model that was opened from one:

    with open_pose_model(path) as model:
        pose = pose_of(model, crop)
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import cv2
import mediapipe as mp
import numpy as np
from mediapipe.tasks.python import BaseOptions, vision

from ..errors import UserError

MIN_CONFIDENCE = 0.2  # low: a crop is known to hold a person; whether it is the right one, its face decides
SMALLEST_FACE_CROP = 256  # pixels; the face landmarker's detector is made for faces that are near


@dataclass(frozen=True)
class Pose:
    """One person's pose in pixels of the picture that was given.

    landmarks: (33, 3) float32, x, y and visibility (0 to 1), in MediaPipe's order (0 the nose, 11 and 12 the shoulders).
    world: (33, 3) float32, metres from the middle of the hips.
    mask: (height, width) float32, 0 to 1, how surely a pixel is of this person.
    """

    landmarks: np.ndarray
    world: np.ndarray
    mask: np.ndarray


@contextmanager
def open_pose_model(path: str | Path, people: int = 1) -> Iterator[vision.PoseLandmarker]:
    """MediaPipe's pose landmarker for up to so many people in a picture. Raises UserError for a file that is none."""
    options = vision.PoseLandmarkerOptions(
        base_options=BaseOptions(model_asset_buffer=_read(path)),
        num_poses=people,
        min_pose_detection_confidence=MIN_CONFIDENCE,
        min_pose_presence_confidence=MIN_CONFIDENCE,
        output_segmentation_masks=True,
    )
    with _opened(vision.PoseLandmarker, options, path) as model:
        yield model


@contextmanager
def open_face_model(path: str | Path) -> Iterator[vision.FaceLandmarker]:
    """MediaPipe's face landmarker with its blendshapes. Raises UserError for a file that is none."""
    options = vision.FaceLandmarkerOptions(
        base_options=BaseOptions(model_asset_buffer=_read(path)),
        num_faces=1,
        min_face_detection_confidence=MIN_CONFIDENCE,
        output_face_blendshapes=True,
    )
    with _opened(vision.FaceLandmarker, options, path) as model:
        yield model


def poses_of(model: vision.PoseLandmarker, image: np.ndarray) -> list[Pose]:
    """Poses in a (height, width, 3) uint8 RGB picture, as MediaPipe orders them; empty where it sees nobody."""
    found = model.detect(_image(image))
    height, width = image.shape[:2]
    return [
        Pose(
            np.array([[p.x * width, p.y * height, p.visibility] for p in landmarks], np.float32),
            np.array([[p.x, p.y, p.z] for p in world], np.float32),
            np.array(mask.numpy_view(), np.float32).reshape(height, width),  # a copy: the view dies with the result
        )
        for landmarks, world, mask in zip(
            found.pose_landmarks, found.pose_world_landmarks, found.segmentation_masks or (), strict=True
        )
    ]


def pose_of(model: vision.PoseLandmarker, image: np.ndarray) -> Pose | None:
    """The first pose in a picture, or None."""
    return next(iter(poses_of(model, image)), None)


def blendshapes_of(model: vision.FaceLandmarker, crop: np.ndarray) -> dict[str, float] | None:
    """52 blendshapes by name (mouthSmileLeft: 0 to 1) of the face in an RGB crop around it, or None where none is seen.

    The crop should show the face with a margin of about half its size; a small one is enlarged. Profiles are not seen.
    """
    shortest = min(crop.shape[:2])
    if not shortest:
        return None
    if shortest < SMALLEST_FACE_CROP:
        scale = SMALLEST_FACE_CROP / shortest
        crop = cv2.resize(crop, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    found = model.detect(_image(crop)).face_blendshapes
    return {shape.category_name: float(shape.score) for shape in found[0]} if found else None


def face_crop(image: np.ndarray, box: tuple[float, float, float, float], margin: float = 0.6) -> np.ndarray:
    """The part of an RGB picture around a face's box [x, y, width, height], grown by `margin` of its size on each side."""
    x, y, width, height = box
    left, top = max(0, round(x - margin * width)), max(0, round(y - margin * height))
    right, bottom = round(x + (1 + margin) * width), round(y + (1 + margin) * height)
    return image[top : max(top, bottom), left : max(left, right)]


def _image(image: np.ndarray) -> mp.Image:
    return mp.Image(image_format=mp.ImageFormat.SRGB, data=np.ascontiguousarray(image))


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); run build-people-models to make it") from None


@contextmanager
def _opened(kind, options, path: str | Path) -> Iterator:
    try:
        model = kind.create_from_options(options)
    except (RuntimeError, ValueError, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise UserError(
            f"{path}: not a model that MediaPipe can open ({reason}); delete it and make it again"
        ) from None
    try:
        yield model
    finally:
        model.close()
