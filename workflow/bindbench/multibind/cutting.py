"""Makes an instance of a photograph: the target, and crop and mask of every subject, or why it is left out (section 3.2)."""

import io
import re
from pathlib import Path

import cv2
import imagehash
import numpy as np
from PIL import Image

from ..config.multibind_selection import Selection
from ..files import sha256, write_bytes
from ..people.masks import BrokenMask, box_of_mask, decode_mask, encode_mask
from ..people.photographs import Unreadable, changes_of, read_photograph
from ..people.quality import laplacian_variance, mask_quality
from .subjects import Rejection, choose_subjects, fault_of_box, largest_overlap
from .tables import SLOTS

PNG = [
    *(cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_RLE),
    *(cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_SUB),
]  # on photographs half the time of level 1 with all filters, and a sixth of the usual level 6's; 14 % larger than level 1


def make_instance(row: dict, settings: Selection, max_pixels: int, folder: Path) -> tuple[dict, list[dict]] | Rejection:
    """One row of SELECTED and those of CROPS, their pictures written; or why the photograph is left out, nothing written."""
    people = choose_subjects(row, settings)
    if isinstance(people, Rejection):
        return people
    height, width = row["height"], row["width"]
    masks = []
    for person in people:
        try:
            masks.append(decode_mask(person["mask"], height, width))
        except BrokenMask as error:
            return Rejection("broken_mask", f"person {person['person']}: {error}")
    try:
        image, digest, transforms = _read(row["path"], max_pixels)
    except Unreadable as error:
        return Rejection(error.reason, str(error))
    if row["sha256"] not in (None, digest):
        return Rejection(
            "changed_file",
            "the file was changed after people were looked for in it; run snakemake again with --forcerun list_photographs",
        )
    if image.shape[:2] != (height, width):
        return Rejection(
            "other_size", f"the file has {image.shape[1]} x {image.shape[0]} pixels, its annotation {width} x {height}"
        )
    masks = without_shared_pixels(masks)
    size = target_size(width, height, settings.max_side_px)
    if size != (width, height):
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        masks = [scaled_mask(mask, size) for mask in masks]
        transforms.append(f"scaled from {width} x {height} to {size[0]} x {size[1]}")
    for person, mask in zip(people, masks, strict=True):
        if not mask.any():
            return Rejection("hidden", f"person {person['person']}: nothing is left of its mask behind the others")
    sharpness = laplacian_variance(image)
    if sharpness < settings.min_sharpness:
        return Rejection("blurred", f"variance of the Laplacian {sharpness:.1f}, at least {settings.min_sharpness:g}")
    subjects = []
    for person, mask in left_to_right(people, masks):
        box = box_of_mask(mask)
        subjects.append({"person": person, "box": box, "mask": mask, **mask_quality(mask, image, box)})
    boxes = [subject["box"] for subject in subjects]
    for index, subject in enumerate(subjects):
        subject["overlap"] = largest_overlap(index, boxes)
        problem = _fault_of_subject(subject, settings)
        if problem:
            return problem
    return _written(row, image, subjects, folder, digest, transforms, sharpness)


def _read(path: str, max_pixels: int) -> tuple[np.ndarray, str, list[str]]:
    """Pixels, SHA-256 of the file, and what was done to them. One reading, so that all three are of the same bytes."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise Unreadable("no such file", "missing_file") from None
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})") from None
    image = read_photograph(io.BytesIO(data), max_pixels)
    return image, sha256(data), changes_of(io.BytesIO(data))


def without_shared_pixels(masks: list[np.ndarray]) -> list[np.ndarray]:
    """The same masks, each pixel in at most one: where several hold it, the smallest does.

    Of two overlapping people the one in front mostly covers less than what the annotators draw for the other one behind.
    """
    taken = np.zeros_like(masks[0])
    exclusive = list(masks)
    for index in sorted(range(len(masks)), key=lambda index: (int(masks[index].sum()), index)):
        exclusive[index] = masks[index] & ~taken
        taken |= masks[index]
    return exclusive


def target_size(width: int, height: int, max_side: int) -> tuple[int, int]:
    """Width and height of the target: the photograph's, or scaled so that the longer side has max_side pixels."""
    longer = max(width, height)
    if longer <= max_side:
        return width, height
    return max(1, round(width * max_side / longer)), max(1, round(height * max_side / longer))


def scaled_mask(mask: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """A mask at another size (width, height), smaller: a pixel is set where more than half of its area was.

    Masks without shared pixels stay so: no two can hold more than half. In steps of 1/255, 128 may be a rounded half.
    """
    shares = cv2.resize(mask.astype(np.uint8) * 255, size, interpolation=cv2.INTER_AREA)
    return shares > 128


def left_to_right(people: list[dict], masks: list[np.ndarray]) -> list[tuple[dict, np.ndarray]]:
    """People with their masks in the order of the slots: by the masks' centres, then by the boxes'."""

    def place(pair: tuple[dict, np.ndarray]) -> tuple:
        columns = pair[1].sum(0)
        x, y, width, height = box_of_mask(pair[1])
        centre = float(columns @ np.arange(len(columns)) / columns.sum())
        return centre, x + width / 2, y + height / 2, pair[0]["person"]

    return sorted(zip(people, masks, strict=True), key=place)


def _fault_of_subject(subject: dict, settings: Selection) -> Rejection | None:
    name = subject["person"]["person"]
    problem = fault_of_box(name, subject["box"][3], subject["overlap"], settings)
    if problem:
        return problem
    if subject["at_border"] > settings.max_at_border:
        return Rejection(
            "cut_off",
            f"person {name}: {subject['at_border']:.1%} of the outline of its box lie on the border, "
            f"at most {settings.max_at_border:.1%}",
        )
    if subject["filled"] < settings.min_filled:
        return Rejection(
            "hidden",
            f"person {name}: the mask covers {subject['filled']:.1%} of its box, at least {settings.min_filled:.1%}",
        )
    if subject["pieces"] > settings.max_pieces:
        return Rejection(
            "in_pieces", f"person {name}: the mask has {subject['pieces']} parts, at most {settings.max_pieces}"
        )
    if subject["sharpness"] < settings.min_subject_sharpness:
        return Rejection(
            "blurred",
            f"person {name}: variance of the Laplacian {subject['sharpness']:.1f}, "
            f"at least {settings.min_subject_sharpness:g}",
        )
    return None


def _written(
    row: dict,
    image: np.ndarray,
    subjects: list[dict],
    folder: Path,
    original: str,
    transforms: list[str],
    sharpness: float,
) -> tuple[dict, list[dict]]:
    """The rows of a photograph that is taken, and its pictures."""
    instance = instance_id(row["photograph"])
    target = f"targets/{instance}.png"
    height, width = image.shape[:2]
    selected = {
        "instance": instance,
        "photograph": row["photograph"],
        "source": row["source"],
        "licence": row["licence"],
        "n_subjects": len(subjects),
        "width": width,
        "height": height,
        "target": target,
        "sha256": _write_png(folder / target, image),
        "original_sha256": original,
        "transforms": transforms,
        "sharpness": sharpness,
        "perceptual_hash": str(imagehash.phash(Image.fromarray(image))),
    }
    crops = []
    for slot, subject in zip(SLOTS, subjects, strict=False):
        crop, mask_file = f"crops/{instance}_{slot}.png", f"masks/{instance}_{slot}.png"
        x, y, wide, high = map(int, subject["box"])
        crops.append(
            {
                **{
                    name: subject[name]
                    for name in ("box", "area", "filled", "pieces", "at_border", "overlap", "sharpness")
                },
                "instance": instance,
                "slot": slot,
                "person": subject["person"]["person"],
                "mask": encode_mask(subject["mask"]),
                "crop": crop,
                "crop_sha256": _write_png(folder / crop, image[y : y + high, x : x + wide]),
                "mask_file": mask_file,
                "mask_sha256": _write_png(folder / mask_file, subject["mask"].astype(np.uint8) * 255),
            }
        )
    return selected, crops


def _write_png(path: Path, image: np.ndarray) -> str:
    """Writes RGB or grey; returns the SHA-256 of the file. Not fsynced: the tables hold the hashes, which readers check."""
    data = cv2.imencode(".png", image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2BGR), PNG)[1].tobytes()
    write_bytes(path, data, durable=False)
    return sha256(data)


def instance_id(photograph: str) -> str:
    """A name for files: the photograph's id with a dash for the stroke.

    An id with further strokes, or with signs that a file's name had better not hold, gets a piece of its hash besides.
    """
    plain = photograph.replace("/", "-", 1)
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", plain):
        return plain
    return f"{re.sub('[^A-Za-z0-9._-]+', '-', plain)[:80].lstrip('.-')}-{sha256(photograph)[:8]}"
