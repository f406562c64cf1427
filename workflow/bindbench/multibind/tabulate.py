"""The tables of MultiBind's evaluation that people read: rates, paired differences, similarities, and what they rest on.

Rates of two generators are of the same people where both rows say `same_subjects`; a paired difference always is.
Whole images have their figures at the end of each row, the same in every dimension (holistic/tabulating.py).

Shares are percent; the Jensen-Shannon shift is in nats and, divided by log 2, between 0 and 1; delta is in the unit of its
similarity. Each mean has the interval of a bootstrap over instances. A cell is empty where nothing has the value, or where
the dimension has no thresholds.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..config.multibind_scoring import Scoring
from ..files import csv_text, write_text
from ..statistics import Bootstrap, Estimate, interval, paired_difference, percent
from .confusion import largest_other
from .evaluation_tables import THRESHOLD_KINDS, THRESHOLDS
from .holistic import tabulating as whole
from .rates import (
    ANY,
    COUNTS,
    DELTAS,
    SHARES,
    SHIFTS,
    SUBSETS,
    Cutoffs,
    counts,
    has_same_subjects,
    rate_parts,
    read_cutoffs,
    sample_rates,
    subset_of,
)
from .rates_page import rates_page
from .similarity_arrays import Evaluation, read_compared, read_deciders, read_evaluation
from .tables import SLOTS
from .thresholds import GENERATED_AGAIN

ENDS = ("", "_low", "_high")
SCALES = (1, 1 / math.log(2))  # of the shift: nats, and normalised by its largest value
PLACES = ("generator", "subset", "dimension")
OF_THE_GENERATOR = ("miss", "mean_iou")  # the same in every dimension
SAME = "same_subjects"  # the row is of exactly the compared subjects; false: its rates are of other people than those of true


def tabulate_multibind(
    generators: Sequence[str],
    matched: Sequence[Path],
    validity: Sequence[Path],
    similarities: Sequence[Path],
    compared: Path,
    thresholds: Path,
    settings: Scoring,
    folder: Path,
    holistic: Sequence[Path] = (),
) -> None:
    """Writes the CSV tables and the page multibind_table.html into `folder`.

    generators: in the order of the tables. matched, validity, similarities: tables SLOTS_MATCHED, VALIDITY and SIMILARITIES,
    in any number of files. compared: the frozen COMPARED_SUBJECTS. thresholds: THRESHOLDS. holistic: tables HOLISTIC, where
    anything of whole images is measured.
    Raises UserError when a table is missing, broken or of other instances.
    """
    evaluation = read_evaluation(generators, settings.dimensions, matched, validity, similarities)
    shared = read_compared(compared, evaluation)
    cutoffs, threshold_rows = read_cutoffs(thresholds, settings.dimensions)
    samples, numbers, same = {}, {}, {}
    for subset in SUBSETS:
        subjects = subset_of(evaluation, shared, subset)
        samples[subset] = sample_rates(rate_parts(evaluation, subjects, cutoffs, settings), settings)
        numbers[subset] = counts(evaluation, subjects, cutoffs)
        same[subset] = has_same_subjects(subjects, shared)
    estimates = {
        subset: {name: interval(part, settings.confidence) for name, part in sample.items()}
        for subset, sample in samples.items()
    }
    marks = calibration_marks(evaluation, cutoffs, threshold_rows)
    images = whole.summarise(holistic, evaluation.generators, read_deciders(compared), evaluation.instances, settings)
    tables = {
        "table": rate_rows(evaluation, estimates, numbers, same, int(shared.sum()), cutoffs, marks, images),
        "differences": difference_rows(evaluation, samples[SUBSETS[0]], shared, cutoffs, images, settings),
        "similarity": similarity_rows(evaluation, estimates, numbers, same),
        "js_temperatures": sweep_rows(evaluation, estimates, same, settings),
        "undiagnosable": undiagnosable_rows(evaluation, settings.undiagnosable_similarity),
        "holistic": (list(whole.HEADER), whole.rows_of(images, evaluation.generators)),
        "thresholds": (list(THRESHOLDS.schema.names), _cells_of(threshold_rows)),
    }
    for name, (header, rows) in tables.items():
        write_text(folder / f"multibind_{name}.csv", csv_text(header, rows))
    page = rates_page(
        evaluation,
        estimates,
        numbers,
        same[SUBSETS[0]],
        int(shared.sum()),
        read_deciders(compared),
        marks,
        images,
        settings,
    )
    write_text(folder / "multibind_table.html", page)


def calibration_marks(evaluation: Evaluation, cutoffs: Cutoffs, threshold_rows: pa.Table) -> list[tuple[str, str]]:
    """What the tables say of the thresholds of each dimension and of any: calibrated, uncalibrated or none; and from what, or
    why there are none. Any dimension is taken over those that have thresholds, and named after them.
    """
    rows = threshold_rows.to_pylist()
    marks = [
        _calibration([row for row in rows if row["dimension"] == dimension], specialist)
        for dimension, specialist in zip(evaluation.dimensions, evaluation.specialists, strict=True)
    ]
    used = [name for name, judged in zip(evaluation.dimensions, cutoffs.usable, strict=True) if judged]
    kinds = {mark[0] for mark in marks} - {"none"}
    overall = "uncalibrated" if "uncalibrated" in kinds else "calibrated" if kinds else "none"
    return [*marks, (overall, ", ".join(used) or "no dimension has thresholds")]


def _calibration(rows: list[dict], specialist: str) -> tuple[str, str]:
    """rows: of one dimension."""
    without = [row["reason"] or "no threshold" for row in rows if row["threshold"] is None]
    if without or len(rows) < len(THRESHOLD_KINDS):
        return "none", (without or ["no threshold"])[0]
    stale = sum(row["stale"] for row in rows)
    unused = f"; {stale} labels of {GENERATED_AGAIN} are not used" if stale else ""
    if all(row["calibrated"] for row in rows):
        return "calibrated", f"labels{unused}"
    sources = list(dict.fromkeys(row["source"] for row in rows))
    # A threshold is in the unit of its specialist's similarities: that of another one is a guess, which must be seen.
    foreign = sorted({row["made_with"] for row in rows if row["made_with"]} - {specialist})
    made_with = f", made with another specialist, {', '.join(foreign)}" if foreign else ""
    return "uncalibrated", " and ".join(sources) + made_with + unused


def rate_rows(
    evaluation: Evaluation,
    estimates: dict[str, dict[str, Estimate]],
    numbers: dict[str, dict[str, np.ndarray]],
    same: dict[str, np.ndarray],
    n_compared: int,
    cutoffs: Cutoffs,
    marks: list[tuple[str, str]],
    images: whole.Summary,
):
    """multibind_table.csv: a row for each generator, subset of subjects and dimension, and for any dimension.

    estimates, numbers: by subset and name, of shape (n_generators, n_dimensions + 1). same: by subset, from has_same_subjects.
    n_compared: subjects that generators are compared on. marks: from calibration_marks. images: the figures of whole images,
    which are the same in every dimension.
    """
    header = [*PLACES, "specialist", "thresholds", "thresholds_from", "threshold_self", "threshold_confusion", *COUNTS]
    header += ["compared_subjects", SAME]
    header += [name + end for name in (*SHARES, *_shift_names()) for end in ENDS]
    header += [*(measure.name + end for measure in images.measures for end in ENDS), "holistic_notes"]
    cells_of_cutoffs = [[*map(_number, pair)] for pair in zip(*cutoffs, strict=True)]
    before = [
        [name, specialist, *mark, *cells]
        for name, specialist, mark, cells in zip(
            [*evaluation.dimensions, ANY],
            [*evaluation.specialists, ""],
            marks,
            [*cells_of_cutoffs, ["", ""]],
            strict=True,
        )
    ]
    rows = []
    for generator, name in enumerate(evaluation.generators):
        for subset in SUBSETS:
            for dimension, (first, *others) in enumerate(before):
                at = (generator, dimension)
                cells = [int(numbers[subset][count][at]) for count in COUNTS]
                cells += [n_compared, _cell(bool(same[subset][generator]))]
                found = estimates[subset]
                cells += [percent(float(part[at])) for rate in SHARES for part in found[rate]]
                for shift in SHIFTS:
                    cells += [_number(part[at] * scale) for scale in SCALES for part in found[shift]]
                cells += [*images.cells(subset, generator), images.notes(subset, generator)]
                rows.append([name, subset, first, *others, *cells])
    return header, rows


def difference_rows(
    evaluation: Evaluation,
    sample: dict[str, Bootstrap],
    compared: np.ndarray,
    cutoffs: Cutoffs,
    images: whole.Summary,
    settings: Scoring,
):
    """multibind_differences.csv: generator minus other generator on the same resamples and on the same subjects.

    Those are the compared subjects, without any that one of the two lacks, which only a generator that decided nothing can.
    `miss` is of all subjects. Figures of whole images are of the compared images that both have. Shares in percentage points, the
    shift in nats, figures of whole images in their own units.
    sample: of the compared subjects, by name, of shape (n_generators, n_dimensions + 1). compared: from read_compared.
    """
    header = ["dimension", "measure", "generator", "other_generator", "difference", "low", "high", "common_subjects"]
    pairs = {}
    for first, second in combinations(range(len(evaluation.generators)), 2):
        common = compared & evaluation.matched[:, first] & evaluation.matched[:, second]
        of_pair, places = sample, (first, second)
        if (common != compared).any():
            two = evaluation.only((first, second))
            subjects = np.broadcast_to(common[:, None], two.matched.shape)
            of_pair, places = sample_rates(rate_parts(two, subjects, cutoffs, settings), settings), (0, 1)
        pairs[first, second] = of_pair, places, int(common.sum())
    rows = []
    for measure in (*SHARES, *SHIFTS):
        text = percent if measure in SHARES else _number
        for (first, second), (of_pair, places, n_common) in pairs.items():
            both = (Bootstrap(of_pair[measure].means[g], of_pair[measure].resampled[:, g]) for g in places)
            estimate = interval(paired_difference(*both), settings.confidence)
            names = [evaluation.generators[first], evaluation.generators[second]]
            for dimension, name in enumerate([*evaluation.dimensions, ANY]):
                repeated = measure in OF_THE_GENERATOR and name != ANY
                if math.isfinite(estimate.mean[dimension]) and not repeated:
                    cells = [text(float(part[dimension])) for part in estimate]
                    rows.append([name, measure, *names, *cells, n_common])
    rows += [[ANY, *cells, ""] for cells in whole.difference_rows(images, evaluation.generators, settings)]
    return header, rows


def similarity_rows(
    evaluation: Evaluation,
    estimates: dict[str, dict[str, Estimate]],
    numbers: dict[str, dict[str, np.ndarray]],
    same: dict[str, np.ndarray],
):
    """multibind_similarity.csv: delta on the diagonal, and the mean and the largest of each row off it (section 3.3, M-19)."""
    header = [*PLACES, "specialist", "subjects", SAME, *(name + end for name in DELTAS for end in ENDS)]
    rows = [
        [
            *(generator, subset, dimension, specialist, int(numbers[subset]["subjects"][g, d])),
            _cell(bool(same[subset][g])),
            *(_number(part[g, d]) for name in DELTAS for part in estimates[subset][name]),
        ]
        for g, generator in enumerate(evaluation.generators)
        for subset in SUBSETS
        for d, (dimension, specialist) in enumerate(zip(evaluation.dimensions, evaluation.specialists, strict=True))
    ]
    return header, rows


def sweep_rows(
    evaluation: Evaluation, estimates: dict[str, dict[str, Estimate]], same: dict[str, np.ndarray], settings: Scoring
):
    """multibind_js_temperatures.csv: the shift over subjects at several temperatures (M-12)."""
    header = [*PLACES, SAME, "temperature", *(name + end for name in ("js_nats", "js_normalised") for end in ENDS)]
    rows = [
        [
            *(generator, subset, dimension, _cell(bool(same[subset][g])), f"{temperature:g}"),
            *(_number(part[g, d] * scale) for scale in SCALES for part in estimates[subset][f"js_sweep_{number}"]),
        ]
        for g, generator in enumerate(evaluation.generators)
        for subset in SUBSETS
        for d, dimension in enumerate(evaluation.dimensions)
        for number, temperature in enumerate(settings.js_temperatures)
    ]
    return header, rows


def undiagnosable_rows(evaluation: Evaluation, limit: float):
    """multibind_undiagnosable.csv: subjects that are too similar to another one in the real photograph (M-21).

    Of all subjects that are a row for some generator.
    """
    header = ["instance", "dimension", "slot", "most_similar", "similarity"]
    similarity, other = largest_other(evaluation.similarities)
    found: dict[tuple[int, int, int], tuple[int, int]] = {}
    for instance, generator, dimension, slot in np.argwhere(similarity > limit).tolist():
        found.setdefault((instance, dimension, slot), (generator, int(other[instance, generator, dimension, slot])))
    rows = [
        [
            *(evaluation.instances[instance], evaluation.dimensions[dimension], SLOTS[slot], SLOTS[nearest]),
            _number(similarity[instance, generator, dimension, slot]),
        ]
        for (instance, dimension, slot), (generator, nearest) in sorted(found.items())
    ]
    return header, rows


def _shift_names() -> list[str]:
    return [name.replace("js", unit) for name in SHIFTS for unit in ("js_nats", "js_normalised")]


def _cells_of(table: pa.Table) -> list[list]:
    rows = ([row[name] for name in THRESHOLDS.schema.names] for row in table.to_pylist())
    return [[_cell(value) for value in row] for row in rows]


def _cell(value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else _number(value) if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    """Six decimals; empty for NaN."""
    return "" if math.isnan(value) else f"{value:.6f}"
