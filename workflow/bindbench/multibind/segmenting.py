"""Fills the people of the table PHOTOGRAPHS where its sources know none, or only their boxes (MultiBind, section 3.2).

What was found in a photograph is kept in a cache by what it depends on: the file's bytes, what the source knew, the settings,
the model's bytes and the stage's version. A killed run goes on from there, and a run with one more photograph looks at one.
"""

import json
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from ..config.multibind_segmentation import Segmentation
from ..files import canonical_json, progress, sha256, sha256_of_file, write_bytes
from ..paths import resolve
from ..people.building import POSE_MODEL
from ..people.masks import BrokenMask, decode_mask, encode_mask
from ..people.photographs import Unreadable, read_photograph
from ..people.segmentation import open_segmenter, segment_boxes, segment_people
from ..tables import count_rows, read_rows, write_rows
from .tables import PHOTOGRAPHS


def segment_photographs(
    photographs: str | Path,
    output: str | Path,
    settings: Segmentation,
    models: str | Path,
    max_pixels: int,
    cache: str | Path,
    version: int = 1,
) -> None:
    """Writes the table PHOTOGRAPHS again, with masks for people who had none.

    Rows with a reason, and those whose people all have masks (crowds need none), pass as they are. A photograph without people
    is searched; where nobody is found its reason becomes no_people. Boxes without a mask get one; a box in which no person is
    found keeps none. A photograph that cannot be read gets the reader's reason, one of another size than its row other_size.
    models: the folder that `build_people_models` made. cache: folder of one JSON file for each photograph.
    Raises UserError for a table or a model that is missing or broken.
    """
    weights = _weights_file(settings, Path(models))
    state = (
        canonical_json([settings.model_dump(mode="json"), sha256_of_file(weights), version])
        if weights.is_file()
        else ""
    )
    with ExitStack() as stack:
        segmenter = None

        def filled(row: dict) -> dict:
            nonlocal segmenter
            digest = _digest(row["path"])
            key = digest and _key(row, digest, state, max_pixels)
            kept = _read_cache(Path(cache), key)
            if kept is None:
                # Only now: photographs that come with masks need no model.
                segmenter = segmenter or stack.enter_context(open_segmenter(settings, models))
                kept = _look_at(row, settings, segmenter, max_pixels)
                if key:
                    write_bytes(_cache_file(Path(cache), key), canonical_json(_sealed(kept)).encode(), durable=False)
            return row | kept | {"sha256": digest}

        total = count_rows(photographs)
        rows = progress(read_rows(PHOTOGRAPHS, photographs), "people in photographs", total, "photograph")
        filled_rows = (filled(row) if row["reason"] is None and _is_open(row["people"]) else row for row in rows)
        write_rows(PHOTOGRAPHS, filled_rows, output)


def _is_open(people: list[dict]) -> bool:
    return not people or any(person["mask"] is None and not person["crowd"] for person in people)


def _look_at(row: dict, settings: Segmentation, segmenter, max_pixels: int) -> dict:
    """What changes in the row: people, or reason and detail."""
    try:
        image = read_photograph(row["path"], max_pixels)
    except Unreadable as error:
        return {"people": row["people"], "reason": error.reason, "detail": str(error)}
    height, width = image.shape[:2]
    if (width, height) != (row["width"], row["height"]):
        detail = f"the file has {width} x {height} pixels, its row {row['width']} x {row['height']}"
        return {"people": row["people"], "reason": "other_size", "detail": detail}
    try:
        people = (
            _masked(row["people"], image, settings, segmenter) if row["people"] else _found(image, settings, segmenter)
        )
    except BrokenMask as error:
        return {"people": row["people"], "reason": "broken_mask", "detail": str(error)}
    if not people:
        return {"people": [], "reason": "no_people", "detail": f"the method {settings.method} finds nobody in it"}
    return {"people": people, "reason": None, "detail": None}


def _found(image: np.ndarray, settings: Segmentation, segmenter) -> list[dict]:
    return [
        {"person": str(number), "box": found.box, "mask": encode_mask(found.mask), "crowd": False, "score": found.score}
        for number, found in enumerate(segment_people(image, settings, segmenter), start=1)
    ]


def _masked(people: list[dict], image: np.ndarray, settings: Segmentation, segmenter) -> list[dict]:
    """The people with masks for boxes that have none; pixels of a mask that the source knows stay its own."""
    taken = np.zeros(image.shape[:2], bool)
    for person in people:
        if person["mask"] is not None and not person["crowd"]:
            taken |= decode_mask(person["mask"], *image.shape[:2])
    wanted = [person for person in people if person["mask"] is None and not person["crowd"]]
    masks = segment_boxes(image, [person["box"] for person in wanted], settings, segmenter)
    new = {
        id(person): encode_mask(mask & ~taken)
        for person, mask in zip(wanted, masks, strict=True)
        if mask is not None and (mask & ~taken).any()
    }
    return [person | {"mask": new.get(id(person), person["mask"])} for person in people]


def _weights_file(settings: Segmentation, models: Path) -> Path:
    if settings.method == "yolo":
        return resolve(Path(settings.yolo_weights).expanduser())
    return models / POSE_MODEL


def _digest(path: str) -> str | None:
    """SHA-256 of a file; None for one that cannot be read."""
    try:
        return sha256_of_file(path)
    except OSError:
        return None


def _key(row: dict, digest: str, state: str, max_pixels: int) -> str:
    """What the answer is kept under."""
    return sha256(canonical_json([digest, row["width"], row["height"], row["people"], max_pixels, state]))


def _cache_file(cache: Path, key: str) -> Path:
    return cache / key[:2] / f"{key}.json"


def _sealed(kept: dict) -> dict:
    return {"sha256": sha256(canonical_json(kept)), "kept": kept}


def _read_cache(cache: Path, key: str | None) -> dict | None:
    """What is kept, or None where nothing is, or where it is not what was written."""
    if key is None:
        return None
    try:
        sealed = json.loads(_cache_file(cache, key).read_bytes())
        return sealed["kept"] if sealed == _sealed(sealed["kept"]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
