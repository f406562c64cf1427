"""How alike the people of generated images and of the real photographs are, dimension by dimension (MultiBind, section 3.3).

Of each instance and dimension: V_d are the slots whose real crop the specialist can measure, R_d those that were matched and whose
both crops it can. S_gen compares generated with real crops, S_gt real with real ones, and delta is their difference. A similarity
that is undefined makes its row invalid; it is never zero.

A crop is the box of the person's mask, on both sides (M-17): the box that a data set draws may be another one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ..config.embedders import Embedder
from ..config.multibind_evaluation import Evaluation
from ..config.multibind_scoring import DIMENSIONS
from ..errors import UserError
from ..files import read_verified
from ..people.masks import BrokenMask, check_counts
from ..tables import read_table, write_table
from .evaluation_tables import SIMILARITIES, SLOTS_MATCHED, VALIDITY
from .generated_tables import GENERATED
from .matching import Real, check_instances, read_generated, read_subjects
from .pictures import decoded
from .specialists import appearance, expression, face, pose
from .specialists.base import Features, Specialist
from .specialists.features import Place, features_of


def specialists_of(
    settings: Evaluation,
    embedders: Mapping[str, Embedder],
    models: Path,
    dimensions: Sequence[str] = DIMENSIONS,
    version: int = 1,
    device: str | None = None,
    threads: int | None = None,
) -> list[Specialist]:
    """The configured specialist of each dimension. models: the folder of `build_people_models`. No model is loaded yet.

    Raises UserError for an embedder, checkpoint or model pack that there is not.
    """
    models, score = Path(models), settings.min_face_score
    make = {
        "face": lambda: face.specialist(settings.face, score, version),
        "appearance": lambda: appearance.specialist(settings.appearance, embedders, version, device, threads),
        "pose": lambda: pose.specialist(settings.pose, models, version, device, threads),
        "expression": lambda: expression.specialist(
            settings.expression, embedders, score, models, version, device, threads
        ),
    }
    return [make[dimension]() for dimension in dimensions]


def measure_similarities(
    matched: Path,
    generated: Path,
    pictures: Path,
    instances: Path,
    subjects: Path,
    folder: Path,
    specialists: Sequence[Specialist],
    cache: Path,
    similarities: Path,
    validity: Path,
) -> None:
    """Writes the tables SIMILARITIES and VALIDITY of every generator in the tables `matched` and `generated`.

    pictures: the folder that the files of `generated` are relative to; folder: the same of INSTANCES. specialists: of
    `specialists_of`. cache: folder of the features of all specialists.
    Raises UserError for a table, picture or model that is missing or broken, and for tables that do not belong together.
    """
    real = read_subjects(instances, subjects)
    images = read_table(GENERATED, generated).to_pylist()
    check_instances(generated, images, real)
    slots = read_table(SLOTS_MATCHED, matched).to_pylist()
    true = {(name, slot): _real_place(real[name], slot, Path(folder)) for name in real for slot in real[name].masks}
    made = _generated_places(matched, slots, images, true, Path(pictures))
    similar, valid = [], []
    for specialist in specialists:
        # Apart, so that the batches of the real crops are the same whatever was generated.
        features = features_of(specialist, true.values(), Path(cache))
        features |= features_of(specialist, made.values(), Path(cache))
        for image in images:
            generator, name = image["generator"], image["instance"]
            of_slots = {
                slot: Pair(
                    features[true[name, slot].key],
                    features[made[generator, name, slot].key] if (generator, name, slot) in made else None,
                )
                for slot in real[name].masks
            }
            where = {"generator": generator, "instance": name, "dimension": specialist.dimension}
            measured = compare(specialist, of_slots)
            valid += [where | row | {"specialist": specialist.name} for row in measured.validity]
            similar += [where | row for row in measured.similarities]
    write_table(SIMILARITIES, similar, similarities)
    write_table(VALIDITY, valid, validity)


@dataclass(frozen=True)
class Pair:
    """Features of a slot's real crop and of its generated one, or why there are none. generated: None where it is not matched."""

    real: Features
    generated: Features | None


@dataclass(frozen=True)
class Measured:
    """Rows of the two tables, of one image and dimension, without what names these."""

    validity: list[dict]
    similarities: list[dict]


def compare(specialist: Specialist, slots: Mapping[str, Pair]) -> Measured:
    """The similarities of one image, and what of it is valid. slots: every slot of the instance."""
    columns = comparable(specialist, {slot: pair.real for slot, pair in slots.items() if _is_valid(pair.real)})
    validity, similarities = [], []
    for slot, pair in slots.items():
        reason = None if slot in columns else "few_common" if _is_valid(pair.real) else pair.real
        row = {"slot": slot, "matched": pair.generated is not None, "valid_true": slot in columns}
        is_valid = pair.generated is not None and _is_valid(pair.generated)
        if is_valid and slot in columns:
            others = np.stack(list(columns.values()))
            s_gen = specialist.similarity(pair.generated[None], others)[0]
            s_gt = specialist.similarity(columns[slot][None], others)[0]
            is_valid = bool(np.isfinite(s_gen).all())
            if is_valid:
                similarities += [
                    {"row": slot, "column": column, "s_gen": float(new), "s_gt": float(old), "delta": float(new - old)}
                    for column, new, old in zip(columns, s_gen, s_gt, strict=True)
                ]
            else:
                reason = "few_common"
        elif pair.generated is not None and not is_valid:
            reason = reason or pair.generated
        validity.append({**row, "valid_generated": is_valid, "reason": reason})
    return Measured(validity, similarities)


def comparable(specialist: Specialist, real: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """V_d: the valid real crops that can all be compared with each other.

    Where a similarity is undefined, such as of two poses that show other halves of the body, those with the most undefined ones
    are left out together, until none is left: the choice depends on no order, and on no generator.
    """
    kept = dict(real)
    while kept:
        features = np.stack(list(kept.values()))
        undefined = (~np.isfinite(specialist.similarity(features, features))).sum(axis=1)
        if not undefined.any():
            break
        kept = {slot: kept[slot] for slot, count in zip(kept, undefined, strict=True) if count < undefined.max()}
    return kept


def _is_valid(features: Features) -> bool:
    return not isinstance(features, str)


def _real_place(real: Real, slot: str, folder: Path) -> Place:
    def read() -> np.ndarray:
        path = folder / real.target
        return decoded(read_verified(path, real.sha256, "delete the table of instances and run snakemake again"), path)

    return Place(real.sha256, real.height, real.width, real.masks[slot], read)


def _generated_places(
    matched: Path, slots: list[dict], images: list[dict], true: Iterable[tuple[str, str]], pictures: Path
) -> dict[tuple[str, str, str], Place]:
    """Those who were matched, by generator, instance and slot. Raises UserError unless each slot of each image has its row."""
    remedy = "delete it and run snakemake again"
    by_image = {(image["generator"], image["instance"]): image for image in images}
    of_instance: dict[str, set[str]] = {}
    for name, slot in true:
        of_instance.setdefault(name, set()).add(slot)
    wanted = {(*image, slot) for image in by_image for slot in of_instance[image[1]]}
    have = {(row["generator"], row["instance"], row["slot"]) for row in slots}
    for rows, fault in ((wanted - have, "is missing"), (have - wanted, "is of no generated image")):
        if rows:
            raise UserError(f"{matched}: the slot {', '.join(min(rows))} {fault}; {remedy}")
    places = {}
    for row in slots:
        if not row["matched"]:
            continue
        key = row["generator"], row["instance"], row["slot"]
        image = by_image[key[:2]]
        try:
            check_counts(row["mask"], image["height"], image["width"])
        except BrokenMask as error:
            raise UserError(f"{matched}: the slot {', '.join(key)}: {error}; {remedy}") from None
        read = partial(read_generated, image, pictures)
        places[key] = Place(image["sha256"], image["height"], image["width"], row["mask"], read)
    return places
