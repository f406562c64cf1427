"""Expression (Table 2: Qwen3-VL-Embedding): the cosine of features of the person's face (M-14); without a face it is invalid.

`embedded` takes MediaPipe's 52 blendshapes, which exist for no profile. `embedder` takes an embedder's vector of the face, asked by
an instruction to heed its expression.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from ...config.embedders import Embedder
from ...config.multibind_evaluation import ExpressionSpecialist
from ...errors import UserError
from ...files import sha256_of_file
from ...people.building import FACE_MODEL
from ...people.poses import blendshapes_of, face_crop, open_face_model
from .base import Crop, Features, Measure, Specialist
from .embedding import KEY, embedder_identity, entry_of, open_embedder
from .faces import own_face
from .similarity import cosines

# In sizes of the face's box around it. MediaPipe's blendshapes of a small face change with what is cut out, so that the mean of
# several parts is taken.
MARGINS = (0.3, 0.45, 0.6, 0.8)
EMBEDDER_MARGIN = 0.2  # of what an embedder sees: forehead and chin belong to an expression


def specialist(
    settings: ExpressionSpecialist,
    embedders: Mapping[str, Embedder],
    min_score: float,
    models: Path,
    version: int,
    device: str | None = None,
    threads: int | None = None,
) -> Specialist:
    """models: the folder of `build_people_models`. Raises UserError as those of face and appearance do."""
    identity = {"method": settings.method, "min_score": min_score}
    if settings.method == "embedded":
        model = models / FACE_MODEL
        identity |= {
            "model": sha256_of_file(model) if model.is_file() else None,
            "margins": MARGINS,
            "version": version,
        }
        return Specialist(
            "expression",
            "mediapipe-blendshapes",
            identity,
            partial(_open_embedded, model, min_score),
            cosines,
            batch=16,
        )
    name = settings.embedder
    entry = entry_of(embedders, name, "expression.embedder")
    if settings.instruction and entry.loader != "sentence-transformers":
        raise UserError(f"{KEY}.expression.instruction: the loader {entry.loader} of {name} heeds none; set it to null")
    entry = entry.model_copy(update={"instruction": settings.instruction})
    identity |= {**embedder_identity(entry, name, version), "margin": EMBEDDER_MARGIN}
    opened = partial(_open_embedder, entry, name, min_score, device, threads)
    return Specialist("expression", name, identity, opened, cosines, entry.batch_size)


@contextmanager
def _open_embedded(path: Path, min_score: float) -> Iterator[Measure]:
    with open_face_model(path) as model:
        yield lambda crops: [_blendshapes(model, crop, min_score) for crop in crops]


def _blendshapes(model, crop: Crop, min_score: float) -> Features:
    face = own_face(crop, min_score)
    if face is None:
        return "no_face"
    read = [blendshapes_of(model, face_crop(crop.pixels, face.box, margin)) for margin in MARGINS]
    vectors = [[shapes[name] for name in sorted(shapes)] for shapes in read if shapes is not None]
    return np.mean(vectors, axis=0, dtype=np.float64).astype(np.float32) if vectors else "face_not_read"


@contextmanager
def _open_embedder(
    entry: Embedder, name: str, min_score: float, device: str | None, threads: int | None
) -> Iterator[Measure]:
    embed = open_embedder(entry, name, device, threads)

    def measure(crops: list[Crop]) -> list[Features]:
        faces = [own_face(crop, min_score) for crop in crops]
        pictures = [
            face_crop(crop.pixels, face.box, EMBEDDER_MARGIN)
            for crop, face in zip(crops, faces, strict=True)
            if face is not None
        ]
        vectors = iter(embed(pictures) if pictures else ())
        return ["no_face" if face is None else next(vectors) for face in faces]

    yield measure
