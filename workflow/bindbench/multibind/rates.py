"""The rates of MultiBind (section 3.4) with their intervals: of subjects, of images, and the Jensen-Shannon shift.

Every rate is a sum over instances divided by another one, so that a bootstrap over instances needs only how often each was
drawn. All generators share the resamples: a difference between two of them is a paired one. Subject rates are averaged over
the subjects of all instances, as the paper says, and beside it over instances (M-20).

Generators are compared on the subjects that every one of them has (M-2); beside it stand the rates on all its own subjects.
A fault on purpose takes no part in that choice, since one that leaves people out would take them from everybody: it is rated on
those of the compared subjects that it has, and told apart by `has_same_subjects`.
Choices M-1 to M-21 are those of papers.md A.2.2.
"""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..config.multibind_scoring import Scoring
from ..errors import UserError
from ..statistics import Bootstrap, bootstrap
from ..tables import read_table, read_tables, write_table
from .confusion import (
    OUTCOMES,
    PATTERNS,
    Links,
    Matrices,
    has_one_row,
    has_patterns,
    js_shift,
    links,
    mean_deltas,
    outcomes,
    patterns,
    restrict,
    undiagnosable,
)
from .evaluation_tables import COMPARED_SUBJECTS, SLOTS_MATCHED, THRESHOLD_KINDS, THRESHOLDS
from .similarity_arrays import Evaluation

SUBSETS = ("compared", "own")  # of the subjects that are compared those that the generator has, and all that it has
ANY = "any"  # name of the row over all dimensions (M-11)
MACRO = "_macro"  # ends the name of a mean over instances
SUBJECT_RATES = (*OUTCOMES, *(name + MACRO for name in OUTCOMES))
IMAGE_RATES = (*PATTERNS, "blending_one_row")
SHARES = (*SUBJECT_RATES, *IMAGE_RATES, "undiagnosable", "invalid", "miss", "mean_iou")
SHIFTS = ("js", "js" + MACRO)
DELTAS = tuple(name + end for name in ("diagonal", "off_diagonal_mean", "off_diagonal_max") for end in ("", MACRO))
COUNTS = ("matched", "dropped", "subjects", "instances", "images", "images_one_row")
# A mean over an instance's one to four subjects is a whole number of twelfths: weighted so, sums of them are exact.
TWELFTHS = 12


class Cutoffs(NamedTuple):
    """The thresholds of each dimension, (n_dimensions,) float64; NaN where the dimension has none (M-4)."""

    consistency: np.ndarray
    confusion: np.ndarray

    @property
    def usable(self) -> np.ndarray:
        """(n_dimensions,) bool; a threshold may be infinite."""
        return ~(np.isnan(self.consistency) | np.isnan(self.confusion))


class Parts(NamedTuple):
    """A rate before it is summed: each instance's mean, and its weight in the mean of all; weight 0: it has none.

    Both (n_instances, n_generators, n_dimensions + 1) float64; the last dimension is ANY.
    """

    values: np.ndarray
    weights: np.ndarray


def read_cutoffs(path: Path, dimensions: Sequence[str]) -> tuple[Cutoffs, pa.Table]:
    """The thresholds of each dimension, and the rows of THRESHOLDS; NaN for a dimension that has none."""
    table = read_table(THRESHOLDS, path)
    of = {(row["dimension"], row["kind"]): row["threshold"] for row in table.to_pylist()}
    both = ([of.get((name, kind)) for name in dimensions] for kind in THRESHOLD_KINDS)
    return Cutoffs(*(np.array([math.nan if value is None else value for value in values]) for values in both)), table


def freeze_subjects(generators: Sequence[str], matched: Sequence[Path], output: Path) -> None:
    """Writes COMPARED_SUBJECTS: which subjects every one of the generators has, so that all are compared on the same ones (M-2).

    generators: those that decide; the tables may hold others, such as faults on purpose. matched: tables SLOTS_MATCHED.
    The file is frozen: the rates are taken on what it names, whatever is evaluated later.
    Raises UserError for slots that a generator does not speak of.
    """
    missed: dict[tuple[str, str], dict[str, bool]] = {}
    data = read_tables(SLOTS_MATCHED, list(matched)).select(["generator", "instance", "slot", "matched"]).to_pylist()
    for row in data:
        missed.setdefault((row["instance"], row["slot"]), {})[row["generator"]] = not row["matched"]
    rows = []
    for (instance, slot), by in sorted(missed.items()):
        if lacking := [name for name in generators if name not in by]:
            raise UserError(
                f"{matched[0]}: {instance} slot {slot} is not spoken of for {lacking[0]}; delete the file and run again"
            )
        missed_by = [name for name in generators if by[name]]
        row = {"instance": instance, "slot": slot, "compared": not missed_by, "missed_by": missed_by}
        rows.append(row | {"decided_by": list(generators)})
    if rows and not any(row["compared"] for row in rows):
        counts = {name: sum(name in row["missed_by"] for row in rows) for name in generators}
        worst = max(counts, key=counts.get)
        print(
            f"no subject is found in the images of all generators, so the rates on compared subjects stay empty: {worst} lacks "
            f"{counts[worst]} of {len(rows)}; leave it out of multibind.scoring.compared_generators",
            file=sys.stderr,
        )
    write_table(COMPARED_SUBJECTS, rows, output)


def subset_of(evaluation: Evaluation, compared: np.ndarray, subset: str) -> np.ndarray:
    """(n_instances, n_generators, n_slots) bool: each generator's matched subjects that belong to a subset.

    compared: (n_instances, n_slots) bool, from read_compared.
    """
    return evaluation.matched & compared[:, None] if subset == "compared" else evaluation.matched


def has_same_subjects(subjects: np.ndarray, compared: np.ndarray) -> np.ndarray:
    """(n_generators,) bool: whose subjects are exactly the compared ones. Rates of others are of other people.

    subjects: from subset_of; compared: from read_compared.
    """
    return (subjects == compared[:, None]).all(axis=(0, 2))


def rate_parts(evaluation: Evaluation, subjects: np.ndarray, cutoffs: Cutoffs, settings: Scoring) -> dict[str, Parts]:
    """Every rate by its name in SHARES, SHIFTS and DELTAS, and the shift at other temperatures by `js_sweep_0` and so on.

    subjects: (n_instances, n_generators, n_slots) bool, from subset_of. `miss` is of all subjects that the instances
    have, in every subset; it and `mean_iou` are the same in every dimension.
    """
    data = restrict(evaluation.similarities, subjects[:, :, None])
    judged = restrict(data, cutoffs.usable[:, None])
    found = links(judged, cutoffs.consistency, cutoffs.confusion)
    parts = outcome_parts(found) | pattern_parts(judged, found)
    rows, lost = data.rows, subjects[:, :, None] & data.columns & ~data.rows
    uncertain = undiagnosable(data, settings.undiagnosable_similarity)
    usable = cutoffs.usable
    parts["undiagnosable"] = _subject_share(_with_any(uncertain, usable), _with_any(rows, usable))
    # Who is lost in one dimension counts as lost in any (M-16).
    parts["invalid"] = _subject_share(_with_any(lost, usable), _with_any(rows | lost, usable))
    shape = (*rows.shape[:2], rows.shape[2] + 1, rows.shape[3])
    exists = np.broadcast_to(evaluation.exists[:, None, None], shape)
    matched = np.broadcast_to(evaluation.matched[:, :, None], shape)
    parts["miss"] = _subject_share(exists & ~matched, exists)
    iou = np.where(subjects, evaluation.iou, np.nan)
    parts["mean_iou"] = _subject_mean(np.broadcast_to(iou[:, :, None], shape))
    shift = js_shift(data, settings.js_temperature)
    parts |= _both_means("js", _without_any(shift))
    for number, temperature in enumerate(settings.js_temperatures):
        parts[f"js_sweep_{number}"] = _subject_mean(_without_any(js_shift(data, temperature)))
    for name, values in mean_deltas(data).items():
        parts |= _both_means(name, _without_any(values))
    return parts


def outcome_parts(found: Links) -> dict[str, Parts]:
    """Rates of subjects, micro and macro. found: of shape (n_instances, n_generators, n_dimensions).

    Any dimension: a subject is consistent when it is so in every dimension in which it has a row, and confused when it is so
    in one of them; the four cells follow from the two.
    """
    rows = found.rows.any(axis=2)
    over_all = Links((found.consistent | ~found.rows).all(axis=2) & rows, found.confused.any(axis=2), rows)
    rows = _with_any(found.rows)
    parts = {}
    for (name, holds), overall in zip(outcomes(found).items(), outcomes(over_all).values(), strict=True):
        holds = np.concatenate([holds, overall[:, :, None]], axis=2)
        parts |= _both_means(name, np.where(rows, holds.astype(float), np.nan))
    return parts


def pattern_parts(data: Matrices, found: Links) -> dict[str, Parts]:
    """Rates of images, over those with at least two rows (M-10); `blending_one_row` over those with one row and two columns.

    Any dimension: the image has the pattern in one of the dimensions in which it can have any (M-11).
    """
    present = patterns(found)
    defined, single = has_patterns(data), has_one_row(data)
    shown = {name: (holds, defined) for name, holds in present.items()}
    shown["blending_one_row"] = (present["blending"], single)
    return {
        name: Parts(_with_any(holds & among).astype(float), _with_any(among).astype(float))
        for name, (holds, among) in shown.items()
    }


def _with_any(holds: np.ndarray, judged: np.ndarray | slice = slice(None)) -> np.ndarray:
    """(n_instances, n_generators, n_dimensions, ...) bool, with one more dimension: whether it holds in any of the judged."""
    return np.concatenate([holds, holds[:, :, judged].any(axis=2, keepdims=True)], axis=2)


def _without_any(values: np.ndarray) -> np.ndarray:
    """The same with NaN for any dimension: similarities of different specialists have no common mean."""
    return np.concatenate([values, np.full_like(values[:, :, :1], np.nan)], axis=2)


def _subject_share(holds: np.ndarray, among: np.ndarray) -> Parts:
    return _subject_mean(np.where(among, (holds & among).astype(float), np.nan))


def _subject_mean(values: np.ndarray) -> Parts:
    """Mean over all subjects that have a value: an instance weighs as many. values: (..., n_slots), NaN: none."""
    count = np.isfinite(values).sum(axis=-1).astype(float)
    total = np.where(np.isfinite(values), values, 0).sum(axis=-1)
    return Parts(np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0), count)


def _both_means(name: str, values: np.ndarray) -> dict[str, Parts]:
    """Mean over subjects, and mean over instances of their means (M-20)."""
    micro = _subject_mean(values)
    return {name: micro, name + MACRO: Parts(micro.values, np.where(micro.weights > 0, TWELFTHS, 0.0))}


def counts(evaluation: Evaluation, subjects: np.ndarray, cutoffs: Cutoffs) -> dict[str, np.ndarray]:
    """What the rates are taken over, (n_generators, n_dimensions + 1) integers by the names in COUNTS.

    matched: subjects of the generator in the subset; dropped: others that it has; subjects and instances: with a row in the
    dimension; images: with two rows or more; images_one_row: with one row and at least two columns. The last dimension is
    any of those that have thresholds.
    """
    data = restrict(evaluation.similarities, subjects[:, :, None])
    judged = cutoffs.usable
    shape = (data.rows.shape[1], data.rows.shape[2] + 1)

    def number(holds: np.ndarray) -> np.ndarray:
        everything = np.concatenate([holds, holds[:, :, judged].any(axis=2, keepdims=True)], axis=2)
        return everything.reshape(*everything.shape[:3], -1).sum(axis=(0, 3))

    numbers = {
        "matched": np.broadcast_to(subjects.sum(axis=(0, 2))[:, None], shape),
        "dropped": np.broadcast_to((evaluation.matched & ~subjects).sum(axis=(0, 2))[:, None], shape),
        "subjects": number(data.rows),
        "instances": number(data.rows.any(axis=3)),
        "images": number(has_patterns(data)),
        "images_one_row": number(has_one_row(data)),
    }
    return {name: numbers[name] for name in COUNTS}


def sample_rates(parts: dict[str, Parts], settings: Scoring) -> dict[str, Bootstrap]:
    """Each rate and its resamples, of shape (n_generators, n_dimensions + 1); NaN where nothing has it.

    The same seed and the same instances give the same resamples, whatever the rates, generators and subset.
    """
    values, weights = (np.stack([getattr(part, what) for part in parts.values()], axis=-1) for what in Parts._fields)
    n_instances = len(values)
    sample = bootstrap(
        values,
        np.zeros(n_instances, dtype=int),
        [None] * n_instances,
        settings.bootstrap_rounds,
        settings.seed,
        weights,
    )
    return {
        name: Bootstrap(sample.means[0, ..., column], sample.resampled[:, 0, ..., column])
        for column, name in enumerate(parts)
    }
