"""How fast photographs in COCO's layout become targets, crops and masks, and in how much memory. Goals: 1,000 images at 20 a
second or more on two cores, memory flat.

    python benchmarks/photographs.py        writes benchmarks/photographs.md

The images are made in a temporary folder from the two photographs inside the installed ultralytics package: windows of
varying place and size, brightness, mirrored or not, as JPEG of about 640 x 480 pixels, with elliptic people in their places,
by turns as polygons and as run lengths. The peer, in the same run, is a plain loop in one process: Pillow opens, crops and
saves PNG at its default level, pycocotools makes the masks; it judges, compares and hashes nothing.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from machine import describe
from PIL import Image
from pycocotools import mask as coco

REPOSITORY = Path(__file__).resolve().parents[1]
COUNTS = (250, 1000)
CORES = 2
# People in the photographs: [x, y, width, height] in pixels.
PEOPLE = {
    "zidane": [[123, 197, 988, 513], [747, 41, 395, 671]],
    "bus": [[50, 400, 195, 504], [670, 392, 140, 489], [222, 405, 123, 455]],
}
REPORT = """
import json, resource, time
wall = time.perf_counter()
def report(**more):
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    print(json.dumps({"wall": time.perf_counter() - wall, "cpu": cpu, "peak": own.ru_maxrss / 1024,
                      "peak_of_children": children.ru_maxrss / 1024, **more}))
"""
# A file, not `-c`: processes that are started anew import it.
OURS = (
    """
import sys
from pathlib import Path
from bindbench.config.multibind_selection import Selection
from bindbench.config.multibind_sources import Photographs
from bindbench.multibind.selection import select_photographs
from bindbench.multibind.sources.listing import list_photographs
from bindbench.multibind.tables import REJECTED, SELECTED
from bindbench.tables import read_table
"""
    + REPORT
    + """
if __name__ == "__main__":
    folder, output, threads = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    source = {"kind": "coco", "images": str(folder / "images"), "annotations": str(folder / "instances.json")}
    settings = Photographs(sources={"coco": source})
    list_photographs(settings, output / "photographs.parquet")
    tables = [output / f"{name}.parquet" for name in ("selected", "crops", "rejected")]
    selection = Selection(duplicate_bits=None)
    select_photographs(output / "photographs.parquet", selection, settings.max_pixels, *tables, output, threads)
    reasons = read_table(REJECTED, tables[2])["reason"].to_pylist()
    report(selected=read_table(SELECTED, tables[0]).num_rows, reasons={name: reasons.count(name) for name in sorted(set(reasons))})
"""
)
PEER = (
    """
import sys
from collections import defaultdict
from pathlib import Path
from PIL import Image
from pycocotools.coco import COCO
"""
    + REPORT
    + """
folder, output = Path(sys.argv[1]), Path(sys.argv[2])
data = COCO(folder / "instances.json")
for number in data.getImgIds():
    image = Image.open(folder / "images" / data.loadImgs(number)[0]["file_name"]).convert("RGB")
    image.save(output / f"{number}.png")
    for person in data.loadAnns(data.getAnnIds(number)):
        x, y, width, height = person["bbox"]
        image.crop((round(x), round(y), round(x + width), round(y + height))).save(output / f"{number}_{person['id']}.png")
        Image.fromarray(data.annToMask(person) * 255).save(output / f"{number}_{person['id']}_mask.png")
report()
"""
)


def make_images(folder: Path, count: int) -> None:
    """COCO's layout: images/ and instances.json."""
    assets = Path(importlib.util.find_spec("ultralytics").origin).parent / "assets"
    photographs = {name: Image.open(assets / f"{name}.jpg").convert("RGB") for name in PEOPLE}
    generator = np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    images, annotations = [], []
    for number in range(1, count + 1):
        name = list(PEOPLE)[number % 2]
        window = _window(generator, *photographs[name].size)
        size = 640, round(640 * window[3] / window[2])
        x, y, wide, high = window
        picture = photographs[name].resize(size, Image.Resampling.BILINEAR, (x, y, x + wide, y + high))
        brightness = np.minimum(np.arange(256) * generator.uniform(0.7, 1.3), 255).astype(int).tolist()
        picture = picture.point(brightness * 3)
        is_mirrored = generator.random() < 0.5
        if is_mirrored:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        file = f"{number:012d}.jpg"
        picture.save(folder / "images" / file, quality=90)
        images.append({"id": number, "file_name": file, "width": size[0], "height": size[1], "license": 1})
        scale = size[0] / wide
        for box in PEOPLE[name]:
            outline = _outline(
                [(box[0] - x) * scale, (box[1] - y) * scale, box[2] * scale, box[3] * scale], size, is_mirrored
            )
            annotations.append(_annotation(len(annotations) + 1, number, outline, size, as_runs=number % 4 > 1))
    categories, licences = [{"id": 1, "name": "person"}], [{"id": 1, "name": "made for this benchmark", "url": ""}]
    parts = {"images": images, "annotations": annotations, "categories": categories, "licenses": licences}
    (folder / "instances.json").write_text(json.dumps(parts))


def _window(generator: np.random.Generator, width: int, height: int) -> tuple[float, float, float, float]:
    """x, y, width, height: nine tenths of the width or more; of a photograph on end, the lower part, four to three."""
    wide = width * generator.uniform(0.9, 1)
    high = height if width > height else wide * 0.75
    x = generator.uniform(0, width - wide)
    y = 0 if width > height else generator.uniform(0.8, 1) * min(392 - 10, height - high)
    return x, y, wide, high


def _outline(box: list[float], size: tuple[int, int], is_mirrored: bool) -> np.ndarray:
    """(corners, 2) of an ellipse in a box, cut at the picture's edges."""
    angles = np.linspace(0, 2 * np.pi, 32, endpoint=False)
    x = box[0] + box[2] * (1 + np.cos(angles)) / 2
    corners = np.stack([size[0] - x if is_mirrored else x, box[1] + box[3] * (1 + np.sin(angles)) / 2], axis=1)
    return np.clip(corners, 0, size)


def _annotation(identifier: int, image: int, outline: np.ndarray, size: tuple[int, int], as_runs: bool) -> dict:
    polygon = [outline.ravel().round(2).tolist()]
    low, high = outline.min(0), outline.max(0)
    values = {"id": identifier, "image_id": image, "category_id": 1, "iscrowd": 0, "segmentation": polygon}
    values["bbox"] = [*low.round(2).tolist(), *(high - low).round(2).tolist()]
    values["area"] = float(np.prod(high - low))
    if as_runs:
        runs = coco.merge(coco.frPyObjects(polygon, size[1], size[0]))
        values["segmentation"] = {"size": [size[1], size[0]], "counts": runs["counts"].decode("ascii")}
    return values


def measure(program: str, folder: Path, *arguments: str) -> dict:
    """What the program reports of itself. It runs in a process of its own, with one thread for each of its processes."""
    with tempfile.TemporaryDirectory() as output:
        script = Path(output) / "program.py"
        script.write_text(program)
        done = subprocess.run(
            [sys.executable, script, folder, output, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={"PYTHONPATH": str(REPOSITORY / "workflow"), "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
            check=True,
        )
        return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    rows, selected = [], {}
    for count in map(int, sys.argv[1:] or COUNTS):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            make_images(folder, count)
            programs = [(f"bindbench, {CORES} processes", OURS, [str(CORES)])]
            if not rows:  # seconds an image do not depend on the number
                programs += [("bindbench, 1 process", OURS, ["1"]), ("the peer, 1 process", PEER, [])]
            for title, program, arguments in programs:
                figures = measure(program, folder, *arguments)
                peaks = f"{figures['peak']:.0f}" + (
                    f" + {figures['peak_of_children']:.0f} each" if arguments == [str(CORES)] else ""
                )
                rows.append(
                    f"| {count:,} | {title} | {count / figures['wall']:.1f} | {figures['cpu'] / count:.4f} | "
                    f"{CORES * count / figures['cpu']:.0f} | {peaks} |"
                )
                print(rows[-1], flush=True)
                if "selected" in figures:
                    others = ", ".join(f"{reason} {number}" for reason, number in figures["reasons"].items())
                    selected[count] = f"{figures['selected']:,} of {count:,}" + (f" ({others})" if others else "")
    lines = [
        "# Photographs",
        "",
        describe(),
        "",
        "From a COCO file and its images to targets, crops and masks on disk and the three tables, start of the processes "
        "included. Goals: 20 images a second on two cores, and memory that does not grow.",
        "",
        f"Load of the machine when the benchmark ended, itself included: {os.getloadavg()[1]:.1f} of {os.cpu_count()} cores, of "
        f"which the benchmark could use {len(os.sched_getaffinity(0))}.",
        "",
        "| images | program | images a second | CPU-seconds an image | so, a second on two free cores | peak memory, MB |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        f"Selected: {'; '.join(selected.values())}. Near-duplicates stay in, since all are made from two photographs; their "
        "hashes are made all the same. PNG is written with run lengths and one filter: a sixth of the time of the usual "
        "level 6, and 15 to 25 % larger. The peer, at level 6, judges, compares and hashes nothing.",
    ]
    (REPOSITORY / "benchmarks/photographs.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
