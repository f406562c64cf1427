"""Tables of ablations (Tables 11 to 13, section 6, Appendix E): finetuned models beside the one that they vary.

    python -m bindbench tabulate-ablations --help

Each table of the config's section `ablations` holds SABER's multiple choice, as the paper's do, and beside it the triplet
accuracy (B.5). Values come with intervals and with the paired difference to the baseline: both models answer the same
questions, or the same triplets, of every resample. The columns of benchmarks that are still to come are there and empty.
"""

from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..config.ablations import AblationPlan, NamedAblation
from ..config.finetuning import NOT_SCALED, Run
from ..config.scoring import Tables
from ..config.triplets import CONSTRUCTIONS
from ..errors import UserError
from ..figures.pages import html_page, html_table
from ..files import csv_text, write_text
from ..statistics import (
    Bootstrap,
    Estimate,
    interval,
    mean_interval,
    mean_of_present,
    paired_difference,
    random_generator,
)
from ..tables import TRIPLET_SCORES, read_table, right_triplets
from .table_page import PAIRING_TITLES, read_reference, value_cells
from .tabulate import COLUMNS, PROTOCOLS, percents, read_scores, sample_protocol

MULTIPLE_CHOICE = PROTOCOLS[0]
# Splits of Table 10 and what a page calls them.
SPLITS = {
    "test": "triplets: test",
    **{name: f"triplets: {name.split('_')[-1]}" for name in CONSTRUCTIONS if name.startswith("deferred")},
}
MEASURED = (*COLUMNS, *(f"triplets_{split}" for split in SPLITS))
# Of benchmarks that the workflow does not run yet: MMEB-v3 (tables 11 to 13) and NegBench (Table 5).
LATER = (
    *("mmeb_v3", "mmeb_v3_image", "mmeb_v3_video", "mmeb_v3_visdoc", "mmeb_v3_agent", "mmeb_v3_text"),
    *("negbench_coco", "negbench_voc2007"),
)
TITLES = [*(PAIRING_TITLES[name] for name in COLUMNS), *SPLITS.values(), "MMEB-v3"]
ENDS = ("", "_low", "_high", "_difference", "_difference_low", "_difference_high")
# All nine columns beside one another on a usual screen.
STYLE = """
body { max-width: 100rem; }
th, td { padding: .35rem .3rem; }
thead th { white-space: normal; }
.gain { color: var(--ink); }
td small { display: inline-block; max-width: 8.5rem; white-space: normal; }
th small { display: inline-block; min-width: 11rem; white-space: normal; font-weight: normal; }
.paper { color: var(--soft); font-weight: normal; }
"""
PAPER_BASE, PAPER_RUN = "Qwen3-VL-Embedding-8B", "Ours-8B"
PAPER_DATA = {
    "train": "",
    "no_overlap": " NoOverlap",
    "random": " Random",
    "overlap_only": " OverlapOnly",
    "mixed_lengths": " MixedLengths",
}


class Measured(NamedTuple):
    """Everything that the tables are made of."""

    models: list[str]
    n_questions: int
    accuracy: Bootstrap  # (n_models, n_pairings): means over N of multiple choice
    triplets: dict[str, dict[str, dict[str, np.ndarray]]]  # by model, split and statistic: see read_triplets


def tabulate_ablations(
    plan: AblationPlan,
    scores: dict[str, Path],
    questions: Path,
    triplets: dict[str, Path],
    settings: Tables,
    reference: Path,
    table: Path,
    page: Path,
) -> None:
    """Writes all tables as one CSV and as one page.

    scores: table SCORES of every model of the plan; triplets: TRIPLET_SCORES of those that read text.
    reference: the paper's known values (CSV).
    Raises UserError when the plan has no table, or when a table is missing, broken or of other questions or triplets.
    """
    if not plan.tables:
        raise UserError("ablations: no table is configured; add --configfile config/ablations.yaml")
    data = read_scores(scores, questions)
    sample = sample_protocol(data, MULTIPLE_CHOICE, settings, data.columns[MULTIPLE_CHOICE.score])
    measured = Measured(
        models=data.models,
        n_questions=len(data.questions),
        accuracy=mean_of_present(sample, 0),
        triplets={model: read_triplets(path) for model, path in triplets.items()},
    )
    paper = paper_values(read_reference(reference))
    rows, parts = [], []
    for entry in plan.tables:
        values, differences = estimates(entry, measured, settings)
        rows += _csv_rows(entry, plan.runs, values, differences)
        parts.append(_section(entry, plan.runs, values, differences, paper))
    header = ["table", "model", "role", "settings", "n_pairings"]
    header += [name + end for name in MEASURED for end in ENDS] + list(LATER)
    write_text(table, csv_text(header, rows))
    write_text(page, html_page("Ablations", "\n".join([_introduction(measured, settings), *parts]), STYLE))


def read_triplets(path: Path) -> dict[str, dict[str, np.ndarray]]:
    """By split: `examples`, their ids, and `right`, (n_examples,) float64: the share of an example's two triplets that are
    right.
    """
    scores = read_table(TRIPLET_SCORES, path)
    splits, examples = (scores[name].to_numpy(zero_copy_only=False) for name in ("split", "example"))
    right = right_triplets(scores).mean(axis=0)
    return {
        split: {"examples": examples[splits == split], "right": right[splits == split]}
        for split in dict.fromkeys(splits.tolist())
    }


def estimates(entry: NamedAblation, measured: Measured, settings: Tables) -> tuple[Estimate, Estimate]:
    """Values and differences to the baseline: both (1 + n_models, n_columns), columns as in MEASURED, rows with the baseline
    first; NaN where a model has none, and in the baseline's differences.

    The mean is over the pairings that a model has; of a difference over those that both models have.
    Raises UserError when two models were measured on other triplets.
    """
    names = [entry.baseline, *entry.models]
    places = [measured.models.index(name) for name in names]
    accuracy = Bootstrap(measured.accuracy.means[places], measured.accuracy.resampled[:, places])
    baseline = Bootstrap(accuracy.means[:1], accuracy.resampled[:, :1])
    saber = [_with_present_mean(sample) for sample in (accuracy, paired_difference(accuracy, baseline))]
    blocks = zip(
        (interval(sample, settings.confidence) for sample in saber),
        triplet_estimates(names, measured.triplets, settings),
        strict=True,
    )
    values, differences = (
        Estimate(*(np.concatenate(pair, axis=1) for pair in zip(*block, strict=True))) for block in blocks
    )
    for part in differences:
        part[0] = np.nan
    return values, differences


def _with_present_mean(sample: Bootstrap) -> Bootstrap:
    """Puts the mean over the pairings that exist (last axis) behind them: (..., 4) becomes (..., 5)."""
    mean = mean_of_present(sample, -1)
    return Bootstrap(
        np.concatenate([sample.means, mean.means[..., None]], -1),
        np.concatenate([sample.resampled, mean.resampled[..., None]], -1),
    )


def triplet_estimates(
    models: list[str], triplets: dict[str, dict[str, dict[str, np.ndarray]]], settings: Tables
) -> tuple[Estimate, Estimate]:
    """Accuracy and its difference to that of the first model, (n_models, n_splits) each; the bootstrap draws examples.

    Accuracies and intervals are those of Table 10, which draws the same resamples.
    """
    shape = (len(models), len(SPLITS))
    values, differences = (Estimate(*(np.full(shape, np.nan) for _ in range(3))) for _ in range(2))
    for column, split in enumerate(SPLITS):
        first = triplets.get(models[0], {}).get(split)
        for row, model in enumerate(models):
            own = triplets.get(model, {}).get(split)
            if own is None:
                continue
            compared = [(values, own["right"], "all both")]
            if first is not None:
                if not np.array_equal(own["examples"], first["examples"]):
                    raise UserError(
                        f"{model} and {models[0]}: scores of other triplets ({split}); delete results/triplets/scores and run "
                        "again"
                    )
                compared.append((differences, own["right"] - first["right"], "difference"))
            for target, outcomes, name in compared:
                generator = random_generator(settings.seed, f"triplets {split} {name}")
                found = mean_interval(outcomes, settings.bootstrap_samples, settings.confidence, generator)
                for part, value in zip(target, found, strict=True):
                    part[row, column] = value
    return values, differences


def settings_text(model: str, baseline: str, runs: dict[str, Run]) -> str:
    """What was done to a model, in words: all of it for the baseline, else what differs from the baseline's run."""
    run, other = runs.get(model), runs.get(baseline)
    if run is None:
        return "not finetuned"
    lines = "with LiNeS" if is_scaled(model) else "without LiNeS"
    if model == baseline or other is None:
        said = [
            f"finetuned from {run.base}",
            f"data {_shown(run.data)}",
            f"examples {_shown(run.examples, 'all')}",
            lines,
        ]
    else:
        keys = [key for key in Run.model_fields if getattr(run, key) != getattr(other, key)]
        said = [f"{key.replace('_', ' ')} {_shown(getattr(run, key), 'default')}" for key in keys]
        said += [lines] if is_scaled(model) != is_scaled(baseline) else []
    return ", ".join(said) or "no difference in settings"


def is_scaled(model: str) -> bool:
    """Whether a finetuned model's adapter went through LiNeS."""
    return not model.endswith(NOT_SCALED)


def _shown(value, empty: str = "") -> str:
    if isinstance(value, tuple):
        return " to ".join(map(str, value))
    return empty if value is None else f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")


def paper_name(model: str, runs: dict[str, Run]) -> str | None:
    """What the list of known values calls the paper's model of the same kind; None where the paper has no such kind."""
    run = runs.get(model)
    if run is None:
        return PAPER_BASE
    if run.data not in PAPER_DATA:
        return None
    attention = " with attention loss" if run.attention_weight else ""
    return PAPER_RUN + PAPER_DATA[run.data] + attention + ("" if is_scaled(model) else " without LiNeS")


def paper_values(reference: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    """By model, then by column of a page's table: the paper's value, or its range."""
    column_of = {("mcq", name): PAIRING_TITLES[name] for name in COLUMNS}
    column_of |= {("triplets", split): title for split, title in SPLITS.items()} | {("mmeb_v3", ""): "MMEB-v3"}
    found: dict[str, dict[str, str]] = {}
    for row in reference:
        if column := column_of.get((row["protocol"], row["pairing"])):
            value = row["value"] + (f" to {row['upper']}" if row["upper"] else "")
            found.setdefault(row["model"], {})[column] = value
    return found


def _csv_rows(entry: NamedAblation, runs: dict[str, Run], values: Estimate, differences: Estimate) -> list[list]:
    rows = []
    for row, model in enumerate([entry.baseline, *entry.models]):
        n_pairings = int((~np.isnan(values.mean[row, : len(COLUMNS) - 1])).sum())
        rows.append(
            [
                *(entry.name, model, "ablation" if row else "baseline", settings_text(model, entry.baseline, runs)),
                n_pairings,
                *(
                    cell
                    for column in range(len(MEASURED))
                    for part in (values, differences)
                    for cell in percents(part, row, column)
                ),
                *[""] * len(LATER),
            ]
        )
    return rows


def _introduction(measured: Measured, settings: Tables) -> str:
    level = f"{100 * settings.confidence:g} % intervals"
    return (
        f"<p>SABER's multiple choice in % ({measured.n_questions:,} questions), averaged over questions of one size, then "
        "over sizes, then over the pairings that a model has; triplet accuracy in % on the test split and on both "
        f"constructions that no training ever sees. Below each value stand its {level} and, with a sign, the difference to "
        "the table's first row in percentage points with its own interval: both models answer the same questions and "
        "triplets of each resample. The best value of each column is bold. A dash: not measured, or the model lacks the "
        "modality.</p>\n"
        '<p class="soft">Rows in grey are the paper\'s, of its 8B model, as far as its text states them or they follow from '
        "it by an addition or a mean. They were measured by the authors of SABER on other images, questions and triplets, "
        "with another model: a value there and one here are not comparable.</p>"
    )


def _section(
    entry: NamedAblation,
    runs: dict[str, Run],
    values: Estimate,
    differences: Estimate,
    paper: dict[str, dict[str, str]],
) -> str:
    rows, shown = [], set()
    for row, model in enumerate([entry.baseline, *entry.models]):
        gain = Estimate(*(part[row] for part in differences))
        said = settings_text(model, entry.baseline, runs)
        name = f"{escape(model)}<br><small>{escape(said)}</small>"
        rows.append([name, *value_cells(values, row, gain=gain), '<span aria-label="none">–</span>'])
        known = paper_name(model, runs)
        if known in paper and known not in shown:
            shown.add(known)
            cells = [paper[known].get(title, "–") for title in TITLES]
            rows.append([f'<span class="paper">{escape(text)}</span>' for text in (f"paper: {known}", *cells)])
    caption = f"Differences are to {entry.baseline}."
    table = html_table(caption, ["model", *TITLES], rows, entry.title)
    return f"<h2>{escape(entry.title)}</h2>\n{table}"
