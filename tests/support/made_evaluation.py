"""A small evaluation of MultiBind that is whole: drawn instances, generated pictures, and every table up to the rates.

Who is shown in which slot is given by vectors (synthetic_people.py); the pictures only have to be there.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
from bindbench.config.multibind_scoring import Scoring
from bindbench.files import sha256
from bindbench.multibind.evaluation_tables import SLOTS_MATCHED, THRESHOLDS
from bindbench.multibind.gallery import Paths
from bindbench.multibind.generated_tables import GENERATED
from bindbench.multibind.outcomes import write_outcomes
from bindbench.multibind.rates import freeze_subjects
from bindbench.multibind.tabulate import tabulate_multibind
from bindbench.tables import read_table, write_table
from made_instances import MadeInstances, make_instances
from made_multibind import HEIGHT, WIDTH
from PIL import Image
from synthetic_people import CONFUSION, SELF, MadeEvaluation

DIMENSIONS = ("face", "pose")
SIZES = {"coco-1": 2, "coco-2": 3, "coco-3": 4}
# Who is seen in each slot: a number of a real person, several, or nobody; a generator that is not named here shows everyone.
FAULTS = {
    "exact": {},
    "swapping": {"coco-1": [1, 0], "coco-2": [1, 0, 2], "coco-3": [1, 2, 3, 0]},
    "copying": {"coco-2": [0, 0, 0], "coco-3": [2, 1, 2, 2]},
    "blending": {"coco-1": [(0, 1), 1], "coco-3": [(0, 3), 1, 2, 3]},
    "blurring": {"coco-1": [None, 1], "coco-2": [None, None, None]},
}


def make_evaluation(
    folder: Path, faults=None, thresholds=("face",), missed=(), pictures: bool = True, sizes=None
) -> Paths:
    """Face is measured of everyone, pose of all but the last subject. thresholds: dimensions that have them.

    missed: (generator, instance, number of a slot) that are not found. pictures: whether generators made any.
    """
    faults, sizes = FAULTS if faults is None else faults, sizes or SIZES
    data = make_instances(folder, sizes)
    made = MadeEvaluation()
    for generator, shown in faults.items():
        for instance, count in sizes.items():
            found = [number for number in range(count) if (generator, instance, number) not in missed]
            who = shown.get(instance, list(range(count)))
            made.fault(generator, instance, who, ("face",), found if pictures else [])
            people = MadeEvaluation(slots=made.slots)
            people.measure(generator, instance, "pose", np.eye(count), np.eye(count), valid_true=range(count - 1))
            made.validity += people.validity
            made.similarities += people.similarities
    paths = made.write(folder / "tables")
    with_boxes(paths["matched"][0])
    generated = write_pictures(data, folder / "generated", made.generators, pictures)
    limits = [(name, kind, value) for name in thresholds for kind, value in (("self", SELF), ("confusion", CONFUSION))]
    write_table(THRESHOLDS, [threshold_row(*limit) for limit in limits], folder / "thresholds.parquet")
    out = {name: folder / f"{name}.parquet" for name in ("compared", "thresholds", "outcomes", "patterns")}
    settings = Scoring(dimensions=DIMENSIONS, bootstrap_rounds=100)
    tables = made.generators, *paths.values(), out["compared"], out["thresholds"], settings
    freeze_subjects(made.generators, paths["matched"], out["compared"])
    tabulate_multibind(*tables, folder / "results")
    write_outcomes(*tables, out["outcomes"], out["patterns"])
    rates = folder / "results/multibind_table.csv"
    return Paths(
        *data.tables[:2], generated, *paths.values(), out["outcomes"], out["patterns"], out["thresholds"], rates
    )


def threshold_row(dimension: str, kind: str, value: float) -> dict:
    """Of a documented default; every count is 0."""
    row = {field.name: 0 if pa.types.is_integer(field.type) else None for field in THRESHOLDS.schema}
    about = {"dimension": dimension, "kind": kind, "threshold": value, "source": "default", "calibrated": False}
    return row | about


def with_boxes(path: Path) -> None:
    """Each found subject is in the box that its drawn person has."""
    rows = read_table(SLOTS_MATCHED, path).to_pylist()
    counts: dict[tuple, int] = {}
    for row in rows:
        counts[row["generator"], row["instance"]] = counts.get((row["generator"], row["instance"]), 0) + 1
    for row in rows:
        count = counts[row["generator"], row["instance"]]
        left = WIDTH * ("ABCD".index(row["slot"]) + 0.5) / count - 20
        row["box"] = [left, 27.0, 40.0, 143.0] if row["matched"] else None
    write_table(SLOTS_MATCHED, rows, path)


def write_pictures(data: MadeInstances, folder: Path, generators: list[str], pictures: bool) -> list[Path]:
    """A table and a folder for each generator."""
    tables = []
    for number, generator in enumerate(generators):
        rows = []
        (folder / generator).mkdir(parents=True)
        for instance in dict.fromkeys(path.parent.name for path in (data.folder / "images").rglob("target.png")):
            file = folder / generator / f"{instance}.png"
            Image.new("RGB", (WIDTH, HEIGHT), (60, 90, 30 + 40 * number)).save(file)
            digest = sha256(file.read_bytes())
            about = {"file": file.name, "sha256": digest, "problem": None}
            about = about if pictures else {"file": None, "sha256": None, "problem": "the server refused it"}
            row = {"generator": generator, "instance": instance, "width": WIDTH, "height": HEIGHT, "model": "made"}
            rows.append(row | {"settings": "{}", "changes": []} | about)
        write_table(GENERATED, rows, folder / f"{generator}.parquet")
        tables.append(folder / f"{generator}.parquet")
    return tables
