"""What people say of generated people (MultiBind, section 3.4): their journals, the table LABELS, and how far they agree.

Each annotator has a journal of their own in the folder of the table's name, and the table is written from all of them. A
label belongs to the bytes of the generated picture that was looked at: those of a picture that was generated again stay in
the table, but no threshold rests on them.
"""

import fcntl
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import UserError
from ..files import csv_text, write_text
from ..review.journal import Journal
from ..statistics import percent
from ..tables import read_table, read_tables, write_table
from .evaluation_tables import LABELS
from .generated_tables import GENERATED

USUAL_TABLE = "screening/multibind_labels.parquet"  # while the config names none; not in results/, which may be deleted
KEY = "label"  # of the journals
ANSWERS = ("yes", "no", "unclear", "open")
ANNOTATOR = re.compile(r"\w[\w. -]{0,39}")
AGREEMENT = ("dimension", "kind", "annotator", "other_annotator", "labels", "agreement", "kappa")


class Pair(NamedTuple):
    """What one label is about: a generated crop beside a real one. row, column: slots."""

    generator: str
    instance: str
    dimension: str
    row: str
    column: str

    @property
    def id(self) -> str:
        """Its name in a journal; none of the parts holds a stroke."""
        return "/".join(self)

    @property
    def kind(self) -> str:
        return kind_of(self.row, self.column)


def kind_of(row: str, column: str) -> str:
    """Which of THRESHOLD_KINDS a label speaks of."""
    return "self" if row == column else "confusion"


def read_labels(path: Path) -> pa.Table:
    """The table LABELS. Raises UserError for one that is missing or broken; it tells nobody to delete what people made."""
    try:
        return read_table(LABELS, path)
    except UserError as error:
        reason = str(error).removesuffix("; delete it and run again").removesuffix("; run snakemake to make it")
        raise UserError(f"{reason}; mend it, or set multibind.scoring.labels to null") from None


def split_labels(labels: pa.Table, generated: Sequence[Path]) -> tuple[pa.Table, Counter]:
    """The labels of pictures as they are now, and the number of the others by (dimension, kind).

    generated: tables GENERATED; labels of images that are in none of them count as of now. Raises UserError for broken ones.
    """
    pictures = read_tables(GENERATED, list(generated)).select(["generator", "instance", "sha256"]).to_pylist()
    now = {(row["generator"], row["instance"]): row["sha256"] for row in pictures}
    rows = labels.to_pylist()
    stale = [now.get((row["generator"], row["instance"]), row["sha256"]) != row["sha256"] for row in rows]
    counts = Counter(
        (row["dimension"], kind_of(row["row"], row["column"])) for row, old in zip(rows, stale, strict=True) if old
    )
    return labels.filter(pa.array([not old for old in stale], pa.bool_())), counts


def cohen_kappa(first: np.ndarray, second: np.ndarray) -> float:
    """Agreement of two annotators beyond chance; NaN where chance alone agrees everywhere. Both (n,) bool, n > 0."""
    by_chance = first.mean() * second.mean() + (1 - first.mean()) * (1 - second.mean())
    return float(((first == second).mean() - by_chance) / (1 - by_chance)) if by_chance < 1 else math.nan


def agreement_rows(labels: pa.Table) -> Iterator[list]:
    """Of each dimension, kind and two annotators who judged the same pairs of the same pictures: the cells of AGREEMENT."""
    by_pair: dict[tuple, dict[str, bool]] = {}
    for row in labels.to_pylist():
        pair = Pair(*(row[name] for name in Pair._fields))
        by_pair.setdefault((pair, row["sha256"]), {})[row["by"]] = row["label"]
    judged: dict[tuple, list[tuple[bool, bool]]] = {}
    for (pair, _), answers in by_pair.items():
        for first, second in combinations(sorted(answers), 2):
            both = answers[first], answers[second]
            judged.setdefault((pair.dimension, pair.kind, first, second), []).append(both)
    for key, answers in sorted(judged.items()):
        first, second = np.array(answers, dtype=bool).T
        kappa = cohen_kappa(first, second)
        yield [*key, len(first), percent(float((first == second).mean())), "" if math.isnan(kappa) else f"{kappa:.4f}"]


def write_agreement(labels: Path | None, output: Path) -> None:
    """Writes the CSV of agreement_rows; without labels, or with one annotator, its header alone. Raises UserError."""
    rows = list(agreement_rows(read_labels(labels))) if labels else []
    write_text(output, csv_text(list(AGREEMENT), rows))


class LabelFiles:
    """The table LABELS at `table`, and the journals of its annotators in the folder of its name.

    Raises UserError for a table or journal that is broken, and for a name of the table that would be the folder's.
    """

    def __init__(self, table: Path) -> None:
        if Path(table).suffix != ".parquet":
            raise UserError(f"{table}: the table of labels is a Parquet file; give it a name that ends in .parquet")
        self.table, self.folder = Path(table), Path(table).with_suffix("")
        self._journals: dict[str, Journal] = {}

    def journal(self, by: str) -> Journal:
        """An annotator's. Raises UserError for a name that cannot name a file."""
        if not ANNOTATOR.fullmatch(by):
            raise UserError(f"--by {by}: a name has at most 40 letters, digits, dots, dashes and spaces")
        return self._journals.setdefault(by, Journal(self.folder / f"{by}.jsonl", KEY, ANSWERS))

    def write(self) -> None:
        """Writes the table if its labels have changed; labels of people who have no journal here stay as they are."""
        with _locked(self.folder):
            names = sorted(path.stem for path in self.folder.glob("*.jsonl"))
            rows = [row for by in names for row in self._rows(by)]
            before = read_labels(self.table) if self.table.exists() else None
            if before is not None:
                rows += [row for row in before.to_pylist() if row["by"] not in names]
            rows.sort(key=lambda row: [row[name] for name in LABELS.key])
            if before is None or rows != before.to_pylist():
                write_table(LABELS, rows, self.table)

    def _rows(self, by: str) -> Iterator[dict]:
        journal = self.journal(by)
        journal.refresh()
        for name in journal.judged():
            pair = name.split("/")
            if len(pair) != len(Pair._fields):
                raise UserError(
                    f"{journal.path}: {name} is no generator/instance/dimension/row/column; remove its lines"
                )
            for sha256, line in journal.standings(name).items():
                if line["verdict"] in ("yes", "no"):
                    answer = {"label": line["verdict"] == "yes", "by": by, "sha256": sha256}
                    yield Pair(*pair)._asdict() | answer


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One program at a time: the table is read and written as a whole."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # also releases the lock
