"""`python -m bindbench.devtools.known_photographs FOLDER`: photographs of two people each, for the uncalibrated thresholds.

The five people of three photographs inside installed packages, each pair of them once: where two are not in one photograph, their
parts of two are put side by side, one of them in another look. Nothing is downloaded, and no picture comes into the repository.
"""

import importlib.util
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import cv2
import numpy as np

from ..errors import UserError
from ..files import write_bytes
from ..people.photographs import read_photograph

HEIGHT_PX = 640
# Package, file, and the part with one person: left, top, right, bottom in pixels.
PHOTOGRAPHS = {
    "bus": ("ultralytics", "assets/bus.jpg"),
    "zidane": ("ultralytics", "assets/zidane.jpg"),
    "hopper": ("matplotlib", "mpl-data/sample_data/grace_hopper.jpg"),
}
PEOPLE = {
    "bus_left": ("bus", (46, 340, 232, 930)),
    "bus_right": ("bus", (236, 350, 400, 900)),
    "zidane_left": ("zidane", (100, 120, 740, 720)),
    "zidane_right": ("zidane", (740, 0, 1200, 720)),
    "hopper": ("hopper", (0, 0, 512, 600)),
}
LOOKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "plain": lambda picture: picture,
    "mirrored": lambda picture: picture[:, ::-1],
    "darker": lambda picture: cv2.convertScaleAbs(picture, alpha=0.75),
    "brighter": lambda picture: cv2.convertScaleAbs(picture, alpha=1.15, beta=10),
}
JPEG_QUALITY = 80


def write_known_photographs(folder: Path) -> list[str]:
    """Writes the photographs as PAIR.jpg and says their names. Raises UserError for a package that is not there."""
    whole = {name: read_photograph(_file(*place), 10**8) for name, place in PHOTOGRAPHS.items()}
    looks, names = list(LOOKS), []
    pictures = {name: picture for name, picture in whole.items() if name != "hopper"}  # hopper is alone in hers
    for number, (one, other) in enumerate(pair for pair in combinations(PEOPLE, 2) if _apart(*pair)):
        parts = [_part(whole, one, "plain"), _part(whole, other, looks[number % len(looks)])]
        pictures[f"{one}-{other}"] = np.hstack(parts)
    for name, picture in pictures.items():
        rows = cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
        _, data = cv2.imencode(".jpg", rows, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
        write_bytes(folder / f"{name}.jpg", data.tobytes())
        names.append(name)
    return names


def _apart(one: str, other: str) -> bool:
    return PEOPLE[one][0] != PEOPLE[other][0]


def _part(whole: dict[str, np.ndarray], person: str, look: str) -> np.ndarray:
    """(HEIGHT_PX, any, 3) uint8."""
    name, (left, top, right, bottom) = PEOPLE[person]
    part = LOOKS[look](whole[name][top:bottom, left:right])
    width = round(part.shape[1] * HEIGHT_PX / part.shape[0])
    return cv2.resize(np.ascontiguousarray(part), (width, HEIGHT_PX), interpolation=cv2.INTER_AREA)


def _file(package: str, file: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise UserError(f"the package {package} is not installed; its photograph {file} is needed")
    return Path(found.submodule_search_locations[0]) / file


if __name__ == "__main__":
    try:
        print("\n".join(write_known_photographs(Path(sys.argv[1]))))
    except UserError as error:
        sys.exit(str(error))
