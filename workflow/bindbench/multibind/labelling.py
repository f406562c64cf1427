"""Labels for the calibration by hand (MultiBind, section 3.4): a page that shows a generated person beside the real ones.

    python -m bindbench label-subjects --help

An entry of the page is a generated crop in one dimension. Two questions are asked about it: whether it is consistent with the
real person of its own slot, and with which of the others it is confused; each pair is a label of its own (M-3). Crops without
similarities are not asked for, since no threshold could rest on them. Which generator made a picture is not told, unless
asked for. Pictures are served with the bytes that the tables name.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow.compute as pc

from ..config.multibind_scoring import Scoring
from ..errors import UserError
from ..files import sha256
from ..paths import resolve
from ..people.masks import decode_mask
from ..people.outlines import outlines_of, svg_path
from ..review.judging import Judged, Judging
from ..review.pictures import noted_bytes, picture_reply
from ..review.server import Refusal, Reply, json_reply
from ..statistics import random_generator
from ..tables import read_table, read_tables
from .confusion import mean_deltas
from .evaluation_tables import SLOTS_MATCHED
from .generated_tables import GENERATED
from .labels import LabelFiles, Pair, read_labels, split_labels
from .parts import picture_folder
from .pictures import decoded, png_of
from .similarity_arrays import Evaluation, read_evaluation
from .tables import SLOTS, SUBJECTS
from .thresholds import Default, read_defaults


class EvaluationFiles(NamedTuple):
    """Tables of an evaluation; of the first four one for each generator, in their order."""

    generators: list[str]
    generated: list[Path]
    matched: list[Path]
    validity: list[Path]
    similarities: list[Path]
    subjects: Path


class Crop(NamedTuple):
    """What is asked about at once: a generated person in one dimension."""

    generator: str
    instance: str
    dimension: str
    row: str

    def pair(self, column: str) -> Pair:
        return Pair(*self, column)


def evaluation_files(folder: Path, generators: list[str]) -> EvaluationFiles:
    """The tables in results/multibind of those generators that were evaluated. Raises UserError when none was."""
    names = "generated", "matched", "validity", "similarities"
    tables = {generator: [folder / name / f"{generator}.parquet" for name in names] for generator in generators}
    done = {generator: paths for generator, paths in tables.items() if all(path.exists() for path in paths)}
    if not done:
        raise UserError(
            f"{folder}: no generator was evaluated yet; first run: snakemake --cores 8 results/multibind_table.csv"
        )
    columns = map(list, zip(*done.values(), strict=True))
    return EvaluationFiles(list(done), *columns, folder / "subjects.parquet")


def sampled_crops(evaluation: Evaluation, defaults: Mapping[str, Default], seed: int) -> list[Crop]:
    """Every measured crop, in the order in which labels are asked for, drawn by the seed.

    Generators and dimensions take turns. Of each, every second crop is the one nearest to a default threshold among those
    that are left, where labels tell most about where a threshold belongs; the crops in between are drawn from all alike.
    """
    generator = random_generator(seed, "labels")
    distance = distance_to_defaults(evaluation, defaults)
    rows = evaluation.similarities.rows
    left = {}
    for g in range(len(evaluation.generators)):
        for d in range(len(evaluation.dimensions)):
            places = generator.permutation(np.argwhere(rows[:, g, d]))
            nearest = places[np.argsort(distance[places[:, 0], g, d, places[:, 1]], kind="stable")]
            left[g, d] = _in_turns(map(tuple, nearest.tolist()), map(tuple, places.tolist()))
    crops, cells = [], sorted(left)
    while cells:
        for cell in generator.permutation(cells).tolist():
            place = next(left[tuple(cell)], None)
            if place is None:
                cells.remove(tuple(cell))
                continue
            (instance, slot), (g, d) = place, cell
            names = evaluation.generators[g], evaluation.instances[instance], evaluation.dimensions[d]
            crops.append(Crop(*names, SLOTS[slot]))
    return crops


def distance_to_defaults(evaluation: Evaluation, defaults: Mapping[str, Default]) -> np.ndarray:
    """(n_instances, n_generators, n_dimensions, n_slots) float64: from a row's delta on the diagonal, and from its largest off
    it, to the default threshold of either, whichever is nearer; infinite where there is none.
    """
    deltas = mean_deltas(evaluation.similarities)
    distance = np.full(evaluation.similarities.rows.shape, np.inf)
    for d, dimension in enumerate(evaluation.dimensions):
        known = defaults[dimension].thresholds if dimension in defaults else {}
        for kind, delta in (("self", "diagonal"), ("confusion", "off_diagonal_max")):
            if known.get(kind) is not None:
                apart = np.abs(deltas[delta][:, :, d] - known[kind])
                distance[:, :, d] = np.fmin(distance[:, :, d], apart)
    return distance


def _in_turns(*orders: Iterator[tuple]) -> Iterator[tuple]:
    """From each order in turn the first that was not given yet; all hold the same."""
    given, orders = set(), list(orders)
    while orders:
        for order in list(orders):
            place = next((place for place in order if place not in given), None)
            if place is None:
                orders.remove(order)
                continue
            given.add(place)
            yield place


class LabelReview:
    """What the page asks for: the crops, one crop, its pictures; and the presses of its keys.

    labels: the table to write; the journals lie in the folder of its name. by: who judges. most: crops that are asked about.
    blind: the page is not told which generator made a picture, not even in the names of things.
    Raises UserError for tables that are broken or do not belong together, and when there is nothing to ask about.
    """

    title = "Labels of generated people"
    pages: ClassVar = {
        "/page.js": "labels.js",
        "/outlines.js": "outlines.js",
        "/page.css": "labels.css",
        "/people.css": "people.css",
    }

    def __init__(
        self,
        files: EvaluationFiles,
        settings: Scoring,
        labels: Path,
        by: str,
        seed: int = 0,
        most: int = 500,
        blind: bool = True,
    ):
        tables = files.generators, settings.dimensions, files.matched, files.validity, files.similarities
        defaults = read_defaults(resolve(settings.default_thresholds))
        crops = sampled_crops(read_evaluation(*tables), defaults, seed)[:most]
        if not crops:
            raise UserError(f"{files.similarities[0]}: nothing could be measured in any generated image")
        self.blind, self.folder = blind, files.subjects.parent
        self.folders = dict(zip(files.generators, map(picture_folder, files.generated), strict=True))
        self.pictures = _rows(read_tables(GENERATED, files.generated).to_pylist(), "generator", "instance")
        self.slots = _rows(read_tables(SLOTS_MATCHED, files.matched).to_pylist(), "generator", "instance", "slot")
        self.subjects: dict[str, dict[str, dict]] = {}
        for row in read_table(SUBJECTS, files.subjects).to_pylist():
            self.subjects.setdefault(row["instance"], {})[row["slot"]] = row
        self._check(files, crops)
        # What the page calls a crop tells nothing of it.
        self.crops = {sha256(f"{seed} {'/'.join(crop)}")[:16]: crop for crop in crops}
        self.shown = {
            crop.pair(column).id: f"{name}/{column}"
            for name, crop in self.crops.items()
            for column in self._columns(crop)
        }
        self.named = {shown: pair for pair, shown in self.shown.items()}
        items = {
            crop.pair(column).id: Judged(self.pictures[crop[:2]]["sha256"])
            for crop in crops
            for column in self._columns(crop)
        }
        self.files = LabelFiles(labels)
        self.judging = Judging(self.files.journal(by), items, by, len(SLOTS))
        self.files.write()
        written = read_labels(self.files.table)
        self.stale = split_labels(written.filter(pc.equal(written["by"], by)), files.generated)[1].total()

    def _check(self, files: EvaluationFiles, crops: list[Crop]) -> None:
        for crop in crops:
            if crop[:2] not in self.pictures or crop.row not in self.subjects.get(crop.instance, {}):
                raise UserError(
                    f"{files.subjects}: {crop.instance} of {crop.generator} is not in all tables; run snakemake again"
                )

    def _columns(self, crop: Crop) -> list[str]:
        """Every real person of the photograph, also those whom the specialist of now cannot measure."""
        return sorted(self.subjects[crop.instance])

    def answer(self, method: str, parts: list[str], body: dict | None) -> Reply:
        """Raises Refusal."""
        match method, parts:
            case "GET", ["state"]:
                return json_reply(self.state())
            case "GET", ["crops", name] if name in self.crops:
                return json_reply(self.crop(name))
            case "GET", ["pictures", name, picture] if name in self.crops:
                return self.picture(self.crops[name], picture)
            case "POST", ["presses"]:
                return json_reply({"standings": self.press(body)})
        raise Refusal(404, f"there is no {'/'.join(parts)[:100]}")

    def state(self) -> dict:
        """All crops, and how each pair stands unless it is simply open."""
        crops = [[name, crop.dimension, "".join(self._columns(crop))] for name, crop in self.crops.items()]
        return {
            "journal": sha256(str(self.judging.journal.path.resolve()))[:16],
            "crops": crops,
            "stale": self.stale,
            "standings": self._shown(self.judging.standings()),
        }

    def crop(self, name: str) -> dict:
        """Everything that judging one crop needs, but the pictures' bytes."""
        crop = self.crops[name]
        picture, slot = self.pictures[crop[:2]], self.slots[(*crop[:2], crop.row)]
        mask = decode_mask(slot["mask"], picture["height"], picture["width"])
        return {
            "crop": name,
            "instance": crop.instance,
            "dimension": crop.dimension,
            "slot": crop.row,
            "generator": None if self.blind else crop.generator,
            "sha256": picture["sha256"],
            "width": picture["width"],
            "height": picture["height"],
            "box": slot["box"],
            "outline": svg_path(outlines_of(mask)),
            "columns": self._columns(crop),
        }

    def press(self, body: dict) -> dict:
        """As Judging.press, in the names of the page; the table is written before anyone is told that it is saved."""
        if isinstance(verdicts := body.get("verdicts"), list):
            body = body | {"verdicts": [self._renamed(given) for given in verdicts]}
        standings = self.judging.press(body)
        self.files.write()
        return self._shown(standings)

    def _renamed(self, given):
        if not isinstance(given, dict):
            return given
        name = given.get("label")
        return given | {"label": self.named.get(name) if isinstance(name, str) else None}

    def _shown(self, standings: dict[str, dict]) -> dict[str, dict]:
        return {self.shown[pair]: standing for pair, standing in standings.items()}

    def picture(self, crop: Crop, name: str) -> Reply:
        """generated, crop, reference, target_A and so on. Raises Refusal when the file is not the one that was made."""
        what, _, slot = name.partition("_")
        row = self.subjects[crop.instance].get(slot or crop.row)
        if what in ("generated", "crop") and not slot:
            made = self.pictures[crop[:2]]
            path = self.folders[crop.generator] / made["file"]
            if what == "generated":
                return picture_reply(path, made["sha256"], "the generated image")
            pixels = decoded(noted_bytes(path, made["sha256"], "the generated image"), "the generated image")
            return Reply(200, "image/png", png_of(_cut(pixels, self.slots[(*crop[:2], crop.row)]["box"])))
        column = {"target": "crop", "reference": "reference"}.get(what)
        if column is None or row is None or bool(slot) != (what == "target"):
            raise Refusal(404, f"there is no picture {name[:40]}")
        return picture_reply(self.folder / row[column], row[f"{column}_sha256"], row[column])


def _rows(rows: list[dict], *key: str) -> dict:
    return {tuple(row[name] for name in key): row for row in rows}


def _cut(pixels: np.ndarray, box: list[float]) -> np.ndarray:
    """The box [x, y, width, height] of a mask: whole pixels within the picture."""
    x, y, width, height = map(int, box)
    return pixels[y : y + height, x : x + width]
