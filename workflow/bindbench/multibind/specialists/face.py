"""Face identity (Table 2: InsightFace): the cosine of face features; a crop without an own face is invalid (M-15).

`embedded` is YuNet with SFace. `insightface` runs a model pack of InsightFace that the user has: its code is MIT, its packs are
for non-commercial research only.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ...config.multibind_evaluation import FaceSpecialist
from ...embedders.sources import digest
from ...errors import UserError, room_on_gpu
from ...paths import resolve
from ...people.faces import face_features
from .base import Crop, Features, Measure, Specialist
from .faces import largest_inside, own_face
from .similarity import cosines

KEY = "multibind.evaluation.face"
PACKAGES = ("insightface", "onnxruntime")
SFACE = ("face_detection_yunet_2023mar_int8bq.onnx", "face_recognition_sface_2021dec_int8bq.onnx")
DETECTOR_PX = 640  # the size at which InsightFace's own examples detect


def specialist(settings: FaceSpecialist, min_score: float, version: int) -> Specialist:
    """min_score: of a face. version: of the stage. Raises UserError for a pack that is no folder of .onnx files."""
    identity = {"method": settings.method, "min_score": min_score, "version": version}
    if settings.method == "embedded":
        # The models come with a package of a fixed version: their names say which they are.
        return Specialist(
            "face", "sface", {**identity, "models": SFACE}, partial(_open_embedded, min_score), cosines, batch=16
        )
    pack = resolve(Path(settings.pack).expanduser())
    if not pack.is_dir() or not sorted(pack.glob("*.onnx")):
        raise UserError(
            f"{KEY}.pack: {pack}: no folder with .onnx files; model packs are not downloaded, put one there"
        )
    identity |= {"files": digest([pack]), "detector_px": DETECTOR_PX}
    return Specialist(
        "face", f"insightface/{pack.name}", identity, partial(_open_insightface, pack, min_score), cosines, batch=16
    )


@contextmanager
def _open_embedded(min_score: float) -> Iterator[Measure]:
    def measure(crop: Crop) -> Features:
        face = own_face(crop, min_score)
        return "no_face" if face is None else face_features(crop.pixels, face)

    yield lambda crops: [measure(crop) for crop in crops]


@contextmanager
def _open_insightface(pack: Path, min_score: float) -> Iterator[Measure]:
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise UserError(f"{KEY}.method: insightface needs {' and '.join(missing)}; run pip install {' '.join(missing)}")
    try:
        from insightface.app import FaceAnalysis
    except Exception as error:  # what its own imports raise: a library that is missing, or of another version
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise UserError(
            f"{KEY}.method: insightface cannot be imported ({reason}); run pip install --upgrade {' '.join(PACKAGES)}"
        ) from None

    try:
        analysis = FaceAnalysis(name=str(pack.resolve()), allowed_modules=["detection", "recognition"])
        analysis.prepare(ctx_id=0, det_thresh=min_score, det_size=(DETECTOR_PX, DETECTOR_PX))
    except (
        Exception
    ) as error:  # onnxruntime and insightface raise their own kinds, and AssertionError for a missing detector
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise UserError(f"{KEY}.pack: {pack}: not a model pack that insightface can open ({reason})") from None
    if "recognition" not in analysis.models:
        raise UserError(f"{KEY}.pack: {pack}: has no recognition model; a detector alone tells nobody from another")

    def measure(crops: list[Crop]) -> list[Features]:
        with room_on_gpu(f"{KEY}.pack: {pack}", "end other programs on it"):
            return [insightface_features(analysis, crop) for crop in crops]

    yield measure


def insightface_features(analysis, crop: Crop) -> Features:
    """(d,) float32 of the crop's own face. analysis: what `FaceAnalysis` is, with get(BGR) -> faces of bbox and embedding."""
    faces = analysis.get(np.ascontiguousarray(crop.pixels[..., ::-1]))
    boxes = [(x, y, right - x, bottom - y) for x, y, right, bottom in (map(float, face.bbox) for face in faces)]
    index = largest_inside(boxes, crop.mask)
    return "no_face" if index is None else np.array(faces[index].embedding, np.float32).reshape(-1)
