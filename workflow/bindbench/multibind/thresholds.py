"""From when on a subject is consistent, and from when on it is confused (MultiBind, section 3.4).

Both thresholds of a dimension maximise F1 between delta and the labels of people, over all generators together (M-5). With
them come F1 on instances that had no part in the choice, and bootstrap intervals over instances (M-6). Each label counts, also
where several people judged the same. Where there are no labels, defaults stand in; how each was found is in its file, and every
table says that they are uncalibrated.
default_thresholds.py finds such in the same way from images with faults on purpose, in which it is known who is in which slot.

Choices M-1 to M-21 are those of papers.md A.2.2.
"""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..config.multibind_scoring import DIMENSIONS, Scoring
from ..errors import UserError
from ..files import csv_rows
from ..statistics import draw_counts, random_generator
from ..tables import write_table
from .confusion import mean_deltas
from .evaluation_tables import ANY_COLUMN, LABELS, THRESHOLD_KINDS, THRESHOLDS
from .labels import read_labels, split_labels
from .similarity_arrays import Evaluation, places_of, read_evaluation
from .tables import SLOTS

DEFAULT_COLUMNS = ("dimension", "self", "confusion", "procedure", "made_with")
LARGEST = 2  # a delta is the difference of two cosines
GENERATED_AGAIN = "pictures that were generated again since"


class Choice(NamedTuple):
    """A threshold, and how well it separates the labels it was chosen from."""

    threshold: float
    f1: float
    precision: float
    recall: float


class Judged(NamedTuple):
    """Labels beside what they are to be told from; all of shape (n_labels,)."""

    scores: np.ndarray  # float64: delta, or the largest of a row
    labels: np.ndarray  # bool
    instances: np.ndarray  # integers: labels of one instance are drawn together


class Default(NamedTuple):
    """A row of the file of uncalibrated thresholds; None: there is none yet."""

    thresholds: dict[str, float | None]  # by kind
    made_with: str


def best_threshold(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> Choice | None:
    """The threshold with the highest F1 between `scores >= threshold` and the labels (M-4).

    Candidates lie halfway between neighbouring distinct scores, and at the two infinities. Among equals the one with the
    higher precision is taken, then the larger one. scores: (n,) float64, no NaN; labels: (n,) bool; weights: (n,) whole
    numbers, how often each label counts. None where no label is positive.
    """
    weights = np.ones(len(scores)) if weights is None else weights
    order = np.argsort(scores, kind="stable")
    return _best_of_sorted(scores[order], labels[order], weights[order])


def _best_of_sorted(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Choice | None:
    kept = weights > 0
    scores, labels, weights = scores[kept], labels[kept], weights[kept]
    positive = float(weights[labels].sum())
    if not positive:
        return None
    starts = np.flatnonzero(np.concatenate([[True], scores[1:] > scores[:-1]]))  # the first of each distinct score
    # What is at or above each candidate: below the lowest score everything, above the highest nothing.
    at_or_above = np.concatenate([np.cumsum(weights[::-1])[::-1][starts], [0.0]])
    hits = np.concatenate([np.cumsum((weights * labels)[::-1])[::-1][starts], [0.0]])
    f1 = 2 * hits / (at_or_above + positive)
    precision = np.divide(hits, at_or_above, out=np.zeros_like(hits), where=at_or_above > 0)
    # Of equal F1 the highest threshold accepts the fewest, and is for that the most precise one.
    best = len(f1) - 1 - np.argmax(f1[::-1])
    distinct = scores[starts]
    return Choice(_between(distinct, best), float(f1[best]), float(precision[best]), float(hits[best] / positive))


def _between(distinct: np.ndarray, place: int) -> float:
    """The candidate below distinct[place]."""
    if place in (0, len(distinct)):
        return -math.inf if place == 0 else math.inf
    below, above = float(distinct[place - 1]), float(distinct[place])
    middle = below + (above - below) / 2
    return middle if middle > below else above  # no number lies between neighbouring floats


def f1_score(predicted: np.ndarray, labels: np.ndarray) -> float:
    """2 tp / (2 tp + fp + fn); NaN without anything positive. Both (n,) bool."""
    total = int(predicted.sum() + labels.sum())
    return 2 * int((predicted & labels).sum()) / total if total else math.nan


def cross_validated_f1(judged: Judged, folds: int, seed: int) -> float:
    """F1 of all labels, each judged by the threshold from the other folds; NaN with fewer than two instances.

    Instances go whole into a fold. A threshold from folds without a positive label judges nothing positive.
    """
    instances = np.unique(judged.instances)
    folds = min(folds, len(instances))
    if folds < 2:
        return math.nan
    shuffled = random_generator(seed, "folds").permutation(len(instances))
    fold_of = (shuffled % folds)[np.searchsorted(instances, judged.instances)]
    predicted = np.zeros(len(judged.labels), dtype=bool)
    for fold in range(folds):
        inside = fold_of == fold
        chosen = best_threshold(judged.scores[~inside], judged.labels[~inside])
        if chosen is not None:
            predicted[inside] = judged.scores[inside] >= chosen.threshold
    return f1_score(predicted, judged.labels)


def bootstrap_choice(judged: Judged, threshold: float, settings: Scoring) -> tuple[np.ndarray, np.ndarray]:
    """Intervals over resampled instances: of the threshold chosen anew in each, and of F1 of the given one. Both (2,).

    Resamples without a positive label are left out; NaN where none is left.
    """
    instances, index = np.unique(judged.instances, return_inverse=True)
    generator = random_generator(settings.seed, "threshold bootstrap")
    counts = draw_counts(
        np.zeros(len(instances), dtype=int), [None] * len(instances), settings.bootstrap_rounds, generator
    )
    predicted = judged.scores >= threshold
    hits, total = (
        counts @ np.bincount(index, weights=part, minlength=len(instances))
        for part in (predicted & judged.labels, predicted.astype(float) + judged.labels)
    )
    has_positive = counts @ np.bincount(index, weights=judged.labels, minlength=len(instances)) > 0
    order = np.argsort(judged.scores, kind="stable")
    scores, labels, index = judged.scores[order], judged.labels[order], index[order]
    chosen = (_best_of_sorted(scores, labels, count[index]) for count in counts)
    thresholds = np.array([choice.threshold for choice in chosen if choice is not None])
    f1 = 2 * hits[has_positive] / total[has_positive]
    tails = [(1 - settings.confidence) / 2, (1 + settings.confidence) / 2]
    # A quantile that is one of the values: between infinities nothing can be interpolated.
    return tuple(
        np.quantile(values, tails, method="inverted_cdf") if len(values) else np.full(2, np.nan)
        for values in (thresholds, f1)
    )


def judged_labels(labels: pa.Table, evaluation: Evaluation, dimension: str, kind: str) -> tuple[Judged, str, int]:
    """The labels of one dimension and kind beside delta, whether they are of a pair or of a crop, and how many are unused.

    Labels of confusion are of a pair; only where there is none, those of a crop are used, beside the largest delta of its row
    off the diagonal (M-3). A label is unused when its crop has no valid similarity, or when pairs are used and it is of a crop.
    Raises UserError for a label of a slot that does not exist.
    """
    rows, columns = (labels[name].to_numpy(zero_copy_only=False) for name in ("row", "column"))
    if unknown := (set(rows) | (set(columns) - {ANY_COLUMN})) - set(SLOTS):
        raise UserError(f"labels: slot {min(unknown)!r} does not exist; the slots are {', '.join(SLOTS)}")
    of_dimension = labels["dimension"].to_numpy(zero_copy_only=False) == dimension
    values = labels["label"].to_numpy().astype(bool)
    of_pair = of_dimension & (rows != columns) & (columns != ANY_COLUMN)
    labelled = "pair" if kind == "self" or of_pair.any() else "crop"
    if kind == "self":
        asked = all_of_kind = of_dimension & (rows == columns)
    else:
        all_of_kind = of_dimension & (rows != columns)
        asked = of_pair if labelled == "pair" else all_of_kind
    index = places_of(labels, evaluation, ("instance", "generator", "dimension", "row", "column"))
    known = (np.stack(index[:4]) >= 0).all(axis=0) & asked
    instance, generator, at_dimension, row, column = (axis[known] for axis in index)
    if labelled == "pair":
        scores = evaluation.similarities.delta[instance, generator, at_dimension, row, column]
    else:
        scores = mean_deltas(evaluation.similarities)["off_diagonal_max"][instance, generator, at_dimension, row]
    valid = np.isfinite(scores)
    judged = Judged(scores[valid], values[known][valid], instance[valid])
    return judged, labelled, int(all_of_kind.sum() - valid.sum())


def calibrate(labels: pa.Table, evaluation: Evaluation, dimension: str, settings: Scoring) -> list[dict]:
    """The two rows of THRESHOLDS of a dimension, from labels; without a `source` where no usable label speaks of that kind.

    Without positive labels there is no threshold (M-4), nor without negative ones or where the best accepts everything or nothing:
    such labels tell nothing apart.
    """
    rows = []
    for kind in THRESHOLD_KINDS:
        judged, labelled, unused = judged_labels(labels, evaluation, dimension, kind)
        if not len(judged.labels):
            rows.append({"unused": unused})
            continue
        row = {"dimension": dimension, "kind": kind, "labels": len(judged.labels), "unused": unused}
        row |= {
            "positive": int(judged.labels.sum()),
            "labelled": labelled,
            "made_with": _specialist(evaluation, dimension),
        }
        chosen = best_threshold(judged.scores, judged.labels)
        if reason := _useless(judged, chosen, kind):
            rows.append(row | {"source": "none", "calibrated": False, "reason": reason})
            continue
        thresholds, f1 = bootstrap_choice(judged, chosen.threshold, settings)
        cross_validated = cross_validated_f1(judged, settings.folds, settings.seed)
        row |= {"threshold_low": thresholds[0], "threshold_high": thresholds[1], "f1_low": f1[0], "f1_high": f1[1]}
        row |= {"f1_cross_validated": None if math.isnan(cross_validated) else cross_validated}
        rows.append(row | chosen._asdict() | {"source": "labels", "calibrated": True})
    return rows


def _useless(judged: Judged, chosen: Choice | None, kind: str) -> str | None:
    """Why labels give no threshold; None: they give one."""
    word = "consistent with its own person" if kind == "self" else "confused with another person"
    count = len(judged.labels)
    if chosen is None:
        return f"of {count} labels none says that a crop is {word}"
    if judged.labels.all():
        return f"of {count} labels none says that a crop is not {word}"
    if math.isinf(chosen.threshold):
        return f"{count} labels are not told apart: no threshold is better than to call every crop {word}"
    return None


def write_thresholds(
    generators: Sequence[str],
    matched: Sequence[Path],
    validity: Sequence[Path],
    similarities: Sequence[Path],
    labels: Path | None,
    generated: Sequence[Path],
    defaults: Path,
    settings: Scoring,
    output: Path,
) -> None:
    """Writes THRESHOLDS: of each dimension and kind from the config, else from labels of it, else from the defaults.

    labels: table LABELS. generated: tables GENERATED; labels of pictures that are no longer theirs are counted, not used.
    defaults: CSV, see read_defaults. Raises UserError for tables that are broken or of other slots.
    """
    evaluation = read_evaluation(generators, settings.dimensions, matched, validity, similarities)
    data = read_labels(labels) if labels else pa.Table.from_pylist([], LABELS.schema)
    data, stale = split_labels(data, generated)
    if stale:
        print(f"{labels}: {stale.total()} labels are of {GENERATED_AGAIN}; they stay there unused", file=sys.stderr)
    if unknown := sorted(set(data["dimension"].to_pylist()) - set(DIMENSIONS)):
        raise UserError(f"{labels}: {unknown[0]!r} is no dimension; they are {', '.join(DIMENSIONS)}")
    known = read_defaults(defaults)
    rows = []
    for dimension in settings.dimensions:
        made = [
            row if "source" in row else _default_row(dimension, kind, known.get(dimension), defaults) | row
            for kind, row in zip(THRESHOLD_KINDS, calibrate(data, evaluation, dimension, settings), strict=True)
        ]
        given = settings.thresholds.get(dimension)
        values = (given.consistency, given.confusion) if given else (None, None)
        rows += [
            row if value is None else _row_without_labels(dimension, row["kind"], value, "config")
            for row, value in zip(made, values, strict=True)
        ]
    rows = [row | {"stale": stale[row["dimension"], row["kind"]]} for row in rows]
    write_table(THRESHOLDS, rows, output)


def _row_without_labels(dimension: str, kind: str, threshold: float | None, source: str, **more) -> dict:
    row = {"dimension": dimension, "kind": kind, "threshold": threshold, "source": source, "calibrated": False}
    return row | {"labels": 0, "positive": 0, "unused": 0} | more


def _default_row(dimension: str, kind: str, default: Default | None, path: Path) -> dict:
    value = default.thresholds[kind] if default else None
    if value is None:
        return _row_without_labels(dimension, kind, None, "none", reason=f"no labels, and no default in {path.name}")
    return _row_without_labels(dimension, kind, value, "default", made_with=default.made_with)


def read_defaults(path: Path) -> dict[str, Default]:
    """The uncalibrated thresholds by dimension, from a CSV with the columns DEFAULT_COLUMNS; an empty cell: there is none.

    Raises UserError that names the row of a cell that is no delta, or of a dimension that is unknown or there twice.
    """
    found: dict[str, Default] = {}
    for line, row in csv_rows(path, DEFAULT_COLUMNS):
        if row["dimension"] not in DIMENSIONS:
            raise UserError(
                f"{path}: row {line}: {row['dimension']!r} is no dimension; they are {', '.join(DIMENSIONS)}"
            )
        if row["dimension"] in found:
            raise UserError(f"{path}: row {line}: {row['dimension']} is there twice; remove one")
        try:
            values = {kind: float(row[kind]) if row[kind] else None for kind in THRESHOLD_KINDS}
        except ValueError:
            raise UserError(f"{path}: row {line}: a threshold is not a number; write one such as -0.15") from None
        if any(value is not None and not -LARGEST <= value <= LARGEST for value in values.values()):
            raise UserError(
                f"{path}: row {line}: a threshold is a number from -{LARGEST} to {LARGEST}; leave the cell empty if there is none"
            )
        found[row["dimension"]] = Default(values, row["made_with"])
    return found


def _specialist(evaluation: Evaluation, dimension: str) -> str:
    return evaluation.specialists[evaluation.dimensions.index(dimension)]
