"""The uncalibrated thresholds, for where there are no labels of people (MultiBind, section 3.4).

    python -m bindbench derive-default-thresholds --help

1. Of the photograph itself, of a collage of embedded references and of most faults on purpose it is known who is to be seen in
   each slot (`known_faults`).
2. So each valid similarity has a label: a crop is consistent when it shows its own person, confused with j when it shows j
   (`labels_of_faults`).
3. Both thresholds of a dimension maximise F1 between delta and these labels, as those from labels of people do (M-4, M-5), with
   intervals by bootstrap over instances and F1 on instances that had no part in the choice (M-6).
4. A threshold that does not tell the labels apart is no default: its cell stays empty, and the note says why (`LEAST_F1`).

Such labels are of faults that are made on purpose, much plainer than those of real generators; that is why the thresholds are
called uncalibrated. Choices M-1 to M-21 are those of papers.md A.2.2.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..config.multibind_generators import KNOWN, Generator
from ..config.multibind_scoring import Scoring
from ..errors import UserError
from ..files import csv_text, write_text
from ..tables import read_table, write_table
from .evaluation_tables import DEFAULT_LABELS, THRESHOLD_KINDS
from .generators.swap import exchanged
from .similarity_arrays import Evaluation, read_evaluation
from .tables import SLOTS
from .thresholds import DEFAULT_COLUMNS, Choice, Judged, best_threshold, bootstrap_choice, cross_validated_f1

# A blur (see Generator.blur) up to the first spoils nobody, one from the second on everybody.
RECOGNISED, DEGRADED = 0.005, 0.03
LEAST_F1 = 0.8  # of the lower bound of its interval: a default that is wrong more often would be worse than none
KEPT_BY_BLUR = ("pose",)  # a blurred person still stands as before


class Fault(NamedTuple):
    """A slot of a generated image that shows one person."""

    generator: str
    instance: str
    slot: str
    shows: str  # slot of the real subject who is to be seen there
    degraded: bool  # so blurred that nobody would be recognised


class Derived(NamedTuple):
    """A threshold, how well it tells the labels apart, and why it is no default; None: it is one."""

    dimension: str
    kind: str
    judged: Judged
    choice: Choice | None
    interval: np.ndarray  # (2,), of the threshold
    f1_interval: np.ndarray  # (2,)
    f1_cross_validated: float  # NaN with one instance
    reason: str | None


def derive_default_thresholds(
    generators: Mapping[str, Generator],
    matched: Sequence[Path],
    validity: Sequence[Path],
    similarities: Sequence[Path],
    settings: Scoring,
    output: Path,
) -> None:
    """Writes the CSV of thresholds.read_defaults, beside it the table DEFAULT_LABELS (.parquet) and a note (.md).

    generators: by name, of kinds in KNOWN. matched, validity, similarities: tables SLOTS_MATCHED, VALIDITY and SIMILARITIES
    of these generators. Raises UserError for tables that do not fit, and for another kind.
    """
    evaluation = read_evaluation(list(generators), settings.dimensions, matched, validity, similarities)
    slots = {
        name: tuple(SLOTS[slot] for slot in np.flatnonzero(exists))
        for name, exists in zip(evaluation.instances, evaluation.exists, strict=True)
    }
    faults = known_faults(generators, slots)
    rows = labels_of_faults(faults, evaluation, settings.undiagnosable_similarity)
    write_table(DEFAULT_LABELS, rows, output.with_suffix(".parquet"))
    labels = read_table(DEFAULT_LABELS, output.with_suffix(".parquet"))
    write_text(output, defaults_csv(labels, settings))
    write_text(output.with_suffix(".md"), note(labels, settings))


def known_faults(generators: Mapping[str, Generator], slots: Mapping[str, tuple[str, ...]]) -> list[Fault]:
    """Who is to be seen in every slot that shows one person. slots: of each instance, in order.

    Raises UserError for a generator of which that is not known.
    """
    found = []
    for name, generator in generators.items():
        if generator.kind not in KNOWN:
            raise UserError(
                f"{name}: of the kind {generator.kind} it is not known who is where; use {', '.join(KNOWN)}"
            )
        if generator.kind == "blur" and RECOGNISED < generator.blur < DEGRADED:
            continue
        degraded = generator.kind == "blur" and generator.blur >= DEGRADED
        for instance, own in slots.items():
            for slot, shows in _shown(generator, own).items():
                found.append(Fault(name, instance, slot, shows, degraded))
    return found


def _shown(generator: Generator, slots: tuple[str, ...]) -> dict[str, str]:
    if generator.kind == "swap":
        return exchanged(slots, generator.of_three)
    if generator.kind == "copy":
        return dict.fromkeys(slots, generator.person)
    return {slot: slot for slot in slots}


def labels_of_faults(faults: Iterable[Fault], evaluation: Evaluation, limit: float) -> list[dict]:
    """Rows of DEFAULT_LABELS: of every valid pair of a slot that shows one person.

    A crop is consistent when it shows its own person, confused with j when it shows j, and neither when it is degraded. Where two
    real people are more similar than `limit`, one in the place of the other says nothing and has no label (M-21).
    Raises UserError for a slot or instance that the evaluation does not have.
    """
    data = evaluation.similarities
    names = {"instance": evaluation.instances, "generator": evaluation.generators, "slot": SLOTS, "shows": SLOTS}
    place = {name: {value: index for index, value in enumerate(values)} for name, values in names.items()}
    rows = []
    for fault in faults:
        values = fault._asdict()
        for name, known in place.items():
            if values[name] not in known:
                raise UserError(f"known faults: {name} {values[name]!r} is not one of this evaluation; make both again")
        instance, generator, slot, shows = (known[values[name]] for name, known in place.items())
        for d, (dimension, specialist) in enumerate(zip(evaluation.dimensions, evaluation.specialists, strict=True)):
            at = (instance, generator, d)
            if not data.rows[at][slot] or (fault.degraded and dimension in KEPT_BY_BLUR):
                continue
            real = np.fmax(data.s_gt[at], data.s_gt[at].T)  # symmetric; NaN only where neither is a row
            for column in np.flatnonzero(data.columns[at]):
                others = (slot, shows) if not fault.degraded else (slot,)
                if any(one != column and real[one, column] > limit for one in others):
                    continue
                row = {"generator": fault.generator, "instance": fault.instance, "dimension": dimension}
                row |= {"row": fault.slot, "column": SLOTS[column], "specialist": specialist}
                label = not fault.degraded and shows == column
                rows.append(row | {"label": bool(label), "delta": float(data.delta[at][slot, column])})
    return rows


def derived(labels: pa.Table, settings: Scoring) -> list[Derived]:
    """Both thresholds of each dimension of the settings. labels: table DEFAULT_LABELS."""
    columns = {name: labels[name].to_numpy(zero_copy_only=False) for name in ("dimension", "row", "column", "instance")}
    delta, label = labels["delta"].to_numpy(), labels["label"].to_numpy(zero_copy_only=False).astype(bool)
    _, instances = np.unique(columns["instance"].astype(str), return_inverse=True)
    found = []
    for dimension in settings.dimensions:
        for kind in THRESHOLD_KINDS:
            of_kind = (columns["row"] == columns["column"]) == (kind == "self")
            asked = of_kind & (columns["dimension"] == dimension)
            judged = Judged(delta[asked], label[asked], instances[asked])
            found.append(_derived(dimension, kind, judged, settings))
    return found


def _derived(dimension: str, kind: str, judged: Judged, settings: Scoring) -> Derived:
    choice, nothing = best_threshold(judged.scores, judged.labels), np.full(2, np.nan)
    if choice is None or judged.labels.all():
        reason = "no label says that it holds" if choice is None else "no label says that it does not hold"
        return Derived(dimension, kind, judged, None, nothing, nothing, math.nan, reason)
    interval, f1 = bootstrap_choice(judged, choice.threshold, settings)
    validated, reason = cross_validated_f1(judged, settings.folds, settings.seed), None
    if math.isnan(validated):
        reason = "all labels are of one instance"
    elif math.isinf(choice.threshold) or f1[0] < LEAST_F1:
        reason = f"the lower bound of F1 is {f1[0]:.3f}, below {LEAST_F1}: it does not tell the labels apart"
    return Derived(dimension, kind, judged, choice, interval, f1, validated, reason)


def defaults_csv(labels: pa.Table, settings: Scoring) -> str:
    """The file of thresholds.read_defaults, of table DEFAULT_LABELS."""
    of_dimension: dict[str, list[Derived]] = {}
    for one in derived(labels, settings):
        of_dimension.setdefault(one.dimension, []).append(one)
    rows = []
    for dimension, both in of_dimension.items():
        cells = ["" if one.reason else f"{one.choice.threshold:.4f}" for one in both]
        procedure = f"best F1 on {_count(labels)}; " + "; ".join(_sentence(one) for one in both)
        rows.append([dimension, *cells, procedure, ", ".join(_specialists(labels, dimension))])
    return csv_text(list(DEFAULT_COLUMNS), rows)


def note(labels: pa.Table, settings: Scoring) -> str:
    """What the thresholds rest on, in Markdown."""
    lines = [
        "# Uncalibrated thresholds of MultiBind",
        "",
        f"Best F1 on {_count(labels)}, in which it is known who is in which slot (`derive-default-thresholds`).",
        f"Intervals of {100 * settings.confidence:g} % by bootstrap over the instances, too narrow where these share people.",
        "",
        "| dimension | kind | threshold | interval | F1 | interval | F1, cross-validated | labels | positive | measured by |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in derived(labels, settings):
        chosen = ["–", "–"] if one.reason else [f"{one.choice.threshold:.4f}", _between(one.interval, 4)]
        scores = ["–"] * 3
        if one.choice:
            scores = [f"{one.choice.f1:.3f}", _between(one.f1_interval, 3), f"{one.f1_cross_validated:.3f}"]
        counts = [str(len(one.judged.labels)), str(int(one.judged.labels.sum()))]
        cells = [one.dimension, one.kind, *chosen, *scores, *counts, ", ".join(_specialists(labels, one.dimension))]
        lines.append(f"| {' | '.join(cells)} |")
    left_out = [f"- {one.dimension}, {one.kind}: {one.reason}." for one in derived(labels, settings) if one.reason]
    lines += ["", "Left empty:", "", *left_out] if left_out else []
    instances = sorted(set(labels["instance"].to_pylist()))
    return "\n".join([*lines, "", f"Instances: {', '.join(instances)}.", ""])


def _sentence(one: Derived) -> str:
    if one.reason:
        return f"{one.kind}: none, {one.reason}"
    return (
        f"{one.kind}: F1 {one.choice.f1:.3f} ({_between(one.f1_interval, 3)}) of {len(one.judged.labels)} labels,"
        f" threshold {_between(one.interval, 3)}"
    )


def _between(interval: np.ndarray, decimals: int) -> str:
    return f"{interval[0]:.{decimals}f} to {interval[1]:.{decimals}f}"


def _count(labels: pa.Table) -> str:
    subjects = set(zip(labels["instance"].to_pylist(), labels["row"].to_pylist(), strict=True))
    instances, generators = (labels[name].unique().to_pylist() for name in ("instance", "generator"))
    return f"{len(instances)} instances with {len(subjects)} subjects of {', '.join(generators)}"


def _specialists(labels: pa.Table, dimension: str) -> list[str]:
    chosen = labels.filter(pc.equal(labels["dimension"], dimension))
    return chosen["specialist"].unique().to_pylist()
