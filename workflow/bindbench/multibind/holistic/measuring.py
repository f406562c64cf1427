"""Whole generated images against their photographs (MultiBind, section 5.1).

CLIP-I and DINO are the cosine of the features of a generated image and of its photograph; the aesthetic score is the generated
image's own; FID compares all images of a generator with all their photographs, so that here its features are kept. Whoever made
no image of an instance has no figure there. A photograph is looked at in the size that the instance's generated images have: a
smaller resolution, which is the workflow's choice, is no fault of a generator.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ...config.embedders import Embedder
from ...config.multibind_holistic import Holistic
from ...errors import UserError
from ...files import canonical_json, read_verified, sha256, sha256_of_file
from ...paths import resolve
from ...people.masks import encode_mask
from ...tables import read_table, write_table
from ..generated_tables import GENERATED
from ..generators.scene import resized
from ..holistic_tables import HOLISTIC
from ..matching import check_instances, read_generated
from ..pictures import decoded
from ..specialists.base import Features, Specialist
from ..specialists.features import Place, features_of
from ..tables import INSTANCES
from . import models
from .aesthetic import KEY as HEAD_KEY
from .aesthetic import read_head

REMEDY = "delete the table of instances and run snakemake again"


@dataclass(frozen=True)
class Whole:
    """One measure. value: of the features of a generated image and of its photograph; None: only many images have one.

    model: name for the tables. fingerprint: of everything that the figures depend on beside the images.
    """

    name: str
    model: str
    specialist: Specialist
    fingerprint: str
    value: Callable[[np.ndarray, np.ndarray], float] | None
    needs_true: bool = True


def measures_of(
    settings: Holistic,
    embedders: Mapping[str, Embedder],
    version: int = 1,
    device: str | None = None,
    threads: int | None = None,
) -> list[Whole]:
    """What is configured, in the order of the tables. No model is loaded yet but the aesthetic score's head.

    Raises UserError for an embedder, checkpoint or file of weights that there is not.
    """
    on = {"device": device, "threads": threads}
    found = []
    if settings.fid.weights:
        network = models.inception(settings.fid.weights, version, **on)
        found.append(Whole("fid", network.name, network, network.fingerprint, None))
    if settings.clip_i.embedder:
        clip = models.embedder("clip_i.embedder", settings.clip_i.embedder, embedders, version, True, **on)
        found.append(_cosine("clip_i", clip))
    if settings.dino.checkpoint:
        found.append(_cosine("dino", models.dino(settings.dino.checkpoint, version, **on)))
    if settings.aesthetic.head:
        clip = models.embedder("aesthetic.embedder", settings.aesthetic.embedder, embedders, version, True, **on)
        found.append(_aesthetic(resolve(Path(settings.aesthetic.head).expanduser()), clip))
    for number, name in enumerate(settings.similarities):
        found.append(_cosine("similarity", models.embedder(f"similarities.{number}", name, embedders, version, **on)))
    return found


def _cosine(name: str, specialist: Specialist) -> Whole:
    def value(made: np.ndarray, true: np.ndarray) -> float:
        return float(specialist.similarity(made[None], true[None])[0, 0])

    return Whole(name, specialist.name, specialist, specialist.fingerprint, value)


def _aesthetic(path: Path, clip: Specialist) -> Whole:
    head = read_head(path)

    def value(made: np.ndarray, _) -> float:
        if len(made) != head.n_features:
            raise UserError(
                f"{HEAD_KEY}: {path} is for {head.n_features} features, and {clip.name} has {len(made)}; name the CLIP that the "
                "head was trained on"
            )
        return head.score(made)

    fingerprint = sha256(canonical_json([clip.fingerprint, sha256_of_file(path)]))
    return Whole("aesthetic", f"{path.stem} on {clip.name}", clip, fingerprint, value, needs_true=False)


def measure_holistic(
    generated: Path, pictures: Path, instances: Path, folder: Path, measures: list[Whole], cache: Path, out: Path
) -> None:
    """Writes the table HOLISTIC of every generator in the table `generated`.

    pictures: the folder that the files of `generated` are relative to; folder: the same of INSTANCES. measures: of
    `measures_of`. cache: folder of the features of all models, by the content of the pictures.
    Raises UserError for a table, picture or model that is missing or broken, and for tables that do not belong together.
    """
    real = {row["instance"]: row for row in read_table(INSTANCES, instances).to_pylist()}
    images = read_table(GENERATED, generated).to_pylist()
    check_instances(generated, images, real)
    made, true = {}, {}
    for row in images:
        key = row["generator"], row["instance"]
        if row["file"] is not None:
            made[key] = _place(row["sha256"], row, partial(read_generated, row, Path(pictures)))
            target = real[row["instance"]]
            true[key] = _place(target["target_sha256"], row, partial(_target, target, row, Path(folder)))
    done = []
    for measure in measures:
        # Apart, so that the batches of the photographs are the same whatever was generated.
        features = features_of(measure.specialist, true.values(), cache) if measure.needs_true else {}
        features |= features_of(measure.specialist, made.values(), cache)
        for row in images:
            key = row["generator"], row["instance"]
            pair = [features.get(place.key) for place in (made[key], true[key])] if key in made else None
            done.append(
                {
                    **{"generator": row["generator"], "instance": row["instance"], "measure": measure.name},
                    **{"model": measure.model, "fingerprint": measure.fingerprint, **_figures(measure, pair)},
                }
            )
    write_table(HOLISTIC, done, out)


def _figures(measure: Whole, pair: list[Features | None] | None) -> dict:
    """The last columns of a row. pair: features of the generated image and of the photograph; None: there is no image."""
    empty = dict.fromkeys(("value", "generated_features", "true_features", "reason"))
    reasons = ["no_picture"] if pair is None else [part for part in pair if isinstance(part, str)]
    if reasons:
        return empty | {"reason": reasons[0]}
    if measure.value is None:
        return empty | {"generated_features": pair[0].tolist(), "true_features": pair[1].tolist()}
    value = measure.value(*pair)
    return empty | ({"value": value} if np.isfinite(value) else {"reason": "not_a_number"})


def _place(digest: str, size: dict, read: Callable[[], np.ndarray]) -> Place:
    """A whole picture. digest: of its file; size: width and height in which it is looked at."""
    height, width = size["height"], size["width"]
    return Place(digest, height, width, encode_mask(np.ones((height, width), bool)), read)


def _target(target: dict, size: dict, folder: Path) -> np.ndarray:
    """(height, width, 3) uint8 RGB: the photograph in the size of a generated image."""
    path = folder / target["target"]
    return resized(decoded(read_verified(path, target["target_sha256"], REMEDY), path), (size["width"], size["height"]))
