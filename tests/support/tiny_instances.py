"""Instances of MultiBind without a photograph: people are red rectangles, each of its own pattern, before a ground without red."""

from pathlib import Path

import cv2
import numpy as np
from bindbench.files import sha256
from bindbench.multibind.tables import CROPS, SELECTED, SLOTS
from bindbench.people.masks import box_of_mask, encode_mask
from bindbench.tables import write_table

COLOURS = ((230, 20, 200), (250, 120, 10), (120, 0, 255), (255, 0, 60))


def ground(height: int, width: int, seed: int = 0) -> np.ndarray:
    """(height, width, 3) uint8: green and blue only, no red."""
    texture = np.random.default_rng(seed).integers(60, 160, (height, width, 3), np.uint8)
    texture[..., 0] = 0
    return texture


def scene(n_subjects: int = 2, height: int = 48, width: int = 72, seed: int = 0) -> tuple[np.ndarray, list[np.ndarray]]:
    """A picture and the masks of its people, from left to right."""
    image, masks = ground(height, width, seed), []
    pattern = np.random.default_rng(seed + 1000).integers(-10, 11, (height, width, 1))
    for index in range(n_subjects):
        mask = np.zeros((height, width), bool)
        left = 6 + index * (width // n_subjects)
        mask[10 + 2 * index : height - 12, left : left + 9 + index] = True
        image[mask] = np.clip(COLOURS[index] + pattern, 0, 255)[mask]
        masks.append(mask)
    return image, masks


def write_instances(folder: Path, counts: list[int], **more) -> tuple[Path, Path, Path]:
    """Tables SELECTED and CROPS of one instance for each number of subjects, and the folder of their files."""
    instances, crops = [], []
    for number, count in enumerate(counts):
        image, masks = scene(count, seed=number, **more)
        name = f"made-{number}"
        digests = {}
        files = {f"{name}.png": image[..., ::-1]}
        for slot, mask in zip(SLOTS, masks, strict=False):
            x, y, w, h = map(int, box_of_mask(mask))
            files[f"{name}_{slot}.png"] = image[y : y + h, x : x + w, ::-1]
            files[f"{name}_{slot}.mask.png"] = mask.astype(np.uint8) * 255
        for file, pixels in files.items():
            data = cv2.imencode(".png", pixels)[1].tobytes()
            (folder / "images").mkdir(parents=True, exist_ok=True)
            (folder / "images" / file).write_bytes(data)
            digests[file] = sha256(data)
        instances.append(
            {"instance": name, "photograph": f"made/{number}", "source": "folder", "licence": "ours",
             "n_subjects": count, "width": image.shape[1], "height": image.shape[0], "target": f"{name}.png",
             "sha256": digests[f"{name}.png"], "original_sha256": digests[f"{name}.png"], "transforms": [],
             "sharpness": 1.0, "perceptual_hash": "0" * 16}
        )  # fmt: skip
        for slot, mask in zip(SLOTS, masks, strict=False):
            crops.append(
                {"instance": name, "slot": slot, "person": slot, "box": box_of_mask(mask), "mask": encode_mask(mask),
                 "area": 0.1, "filled": 1.0, "pieces": 1, "at_border": 0.0, "overlap": 0.0, "sharpness": 1.0,
                 "crop": f"{name}_{slot}.png", "crop_sha256": digests[f"{name}_{slot}.png"],
                 "mask_file": f"{name}_{slot}.mask.png", "mask_sha256": digests[f"{name}_{slot}.mask.png"]}
            )  # fmt: skip
    write_table(SELECTED, instances, folder / "selected.parquet")
    write_table(CROPS, crops, folder / "crops.parquet")
    return folder / "selected.parquet", folder / "crops.parquet", folder / "images"
