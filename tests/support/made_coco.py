"""A small source in COCO's layout, composed in a test from the photographs inside the installed ultralytics package."""

import json
from pathlib import Path

import cv2
import numpy as np
from bindbench.people.masks import counts_of_polygons
from people_models import builtin

# Outlines of the people, in pixels of the photographs: x, y, x, y, ...
ZIDANE = (
    [
        *(147, 719, 181, 512, 252, 349, 286, 324, 423, 324, 468, 307, 540, 204, 570, 199, 635, 229, 662, 276, 656, 342),
        *(669, 396, 720, 431, 750, 480, 673, 514, 662, 626, 631, 719),
    ],
    [
        *(1016, 48, 945, 44, 905, 88, 894, 126, 899, 227, 887, 250, 786, 317, 755, 373, 751, 520, 750, 601, 779, 718),
        *(1090, 719, 1124, 683, 1082, 590, 1073, 486, 1150, 421, 1072, 411, 1060, 346, 1023, 302, 1071, 112, 1063, 88),
    ],
)
BUS = (
    [
        *(138, 393, 101, 412, 97, 462, 61, 504, 58, 661, 77, 776, 51, 881, 86, 902, 107, 894, 84, 841, 123, 705),
        *(149, 756, 178, 897, 239, 886, 201, 850, 179, 705, 200, 556, 149, 466, 157, 410),
    ],
    [
        *(284, 404, 264, 414, 263, 458, 233, 494, 240, 607, 226, 697, 243, 705, 255, 852, 267, 859, 290, 853),
        *(284, 781, 339, 722, 318, 580, 342, 551, 330, 490, 301, 475, 307, 430),
    ],
)
SIZE = 640, 360  # of the first photograph, halved


class MadeCoco:
    """Photographs and people that are written together; the file is as COCO's instances JSON."""

    def __init__(self, folder: Path):
        self.images, self.path = folder / "images", folder / "instances.json"
        self.images.mkdir(parents=True)
        self.parts = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "person"}]}

    def photograph(
        self, number: int, pixels: np.ndarray, outlines=(), *, is_drawn=True, as_runs=False, crowd=None
    ) -> None:
        """outlines: polygons of its people. as_runs: their masks as run lengths. crowd: box of a crowd region."""
        height, width = pixels.shape[:2]
        file = f"{number:012d}.jpg"
        if is_drawn:
            cv2.imwrite(str(self.images / file), pixels[..., ::-1])
        self.parts["images"].append({"id": number, "file_name": file, "width": width, "height": height})
        for outline in outlines:
            corners = np.array(outline, float).reshape(-1, 2)
            low, high = corners.min(0), corners.max(0)
            segmentation = [corners.ravel().tolist()]
            if as_runs:
                segmentation = {"size": [height, width], "counts": counts_of_polygons(segmentation, height, width)}
            self._person(number, [*low.tolist(), *(high - low).tolist()], segmentation, 0)
        if crowd:
            runs = {"size": [height, width], "counts": [0, height * width]}
            self._person(number, crowd, runs, 1)

    def _person(self, number: int, box: list[float], segmentation, crowd: int) -> None:
        about = {"id": len(self.parts["annotations"]) + 1, "image_id": number, "category_id": 1, "iscrowd": crowd}
        self.parts["annotations"].append(about | {"bbox": box, "segmentation": segmentation})

    def write(self) -> dict:
        """The source, as a config names it."""
        self.path.write_text(json.dumps(self.parts))
        return {"kind": "coco", "images": str(self.images), "annotations": str(self.path), "licence": "made in a test"}


def moved(outlines, scale: float, left: float = 0, top: float = 0) -> list[np.ndarray]:
    return [np.array(outline, float).reshape(-1, 2) * scale + (left, top) for outline in outlines]


def make_coco(folder: Path) -> dict:
    """Three photographs that become instances (2 and 4 of two people, 3 of four), and one for each of some reasons not to:
    1 looks like 4 (which is taken first), 5 is missing, 6 has a crowd over its people, 7 has nobody.
    """
    made = MadeCoco(folder)
    pair = cv2.resize(builtin("zidane.jpg"), SIZE, interpolation=cv2.INTER_AREA)
    people = moved(ZIDANE, 0.5)
    made.photograph(1, pair, people)
    mirror = [corners * (-1, 1) + (SIZE[0], 0) for corners in people]
    made.photograph(2, pair[:, ::-1], mirror, as_runs=True)
    scale = SIZE[1] / 580
    street = cv2.resize(
        builtin("bus.jpg")[340:920, 20:370], (round(350 * scale), SIZE[1]), interpolation=cv2.INTER_AREA
    )
    street_people = moved(BUS, scale, -20 * scale, -340 * scale)
    width = street.shape[1]
    made.photograph(3, np.hstack([street, pair]), [*street_people, *moved(people, 1, width)])
    made.photograph(4, np.clip(pair * 1.08, 0, 255).astype(np.uint8), people)
    made.photograph(5, pair, people, is_drawn=False)
    made.photograph(6, pair[::-1], [corners * (1, -1) + (0, SIZE[1]) for corners in people], crowd=[0, 0, *SIZE])
    made.photograph(7, street)
    return made.write()
