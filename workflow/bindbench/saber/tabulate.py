"""The tables of SABER that people read: Table 2, the tables by N (17 to 19), and what section 5.1 says beside them.

Every mean is taken per number of objects N, then over N, then over the four pairings, as the paper's are; only the rates
of containment are shares of all comparisons. Each comes with a bootstrap interval. Numbers are percent. A cell without
questions, or whose modality the model lacks, is empty; a mean over the pairings is empty unless all four exist.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..config.scoring import Tables
from ..errors import UserError
from ..files import csv_text, write_text
from ..nano.combinations import any_held_out
from ..statistics import (
    Bootstrap,
    Estimate,
    bootstrap,
    interval,
    mean_of_all,
    mean_of_present,
    paired_difference,
    percent,
)
from ..tables import CANDIDATE_ROLES, PAIRINGS, QUESTIONS, SCENES, SCORES, read_table
from ..vocabulary import Vocabulary
from .multiple_choice import CHANCE
from .table_page import read_reference, table2_page

MEAN = "mean"  # name of the mean over the four pairings
COLUMNS = (*PAIRINGS, MEAN)
CHANCE_ROW = "chance"
CANDIDATE_KINDS = ("attribute_swap", "object_swap", "joint_swap", "replacement")
COMBINATIONS = ("seen", "held_out")
CONTAINMENT = {
    "subset_above_exact": "subset_exact_pairs",
    "subset_above_superset": "subset_superset_pairs",
}


class Protocol(NamedTuple):
    """One way to measure: which column of SCORES, on which questions."""

    name: str
    score: str  # column of SCORES
    subset: str | None  # None: both
    table: str  # of the paper, by N


PROTOCOLS = (
    Protocol("mcq", "correct", None, "table17"),
    Protocol("retrieval_independent", "average_precision", "independent", "table18"),
    Protocol("retrieval_nested", "average_precision", "nested", "table19"),
)


class Scores(NamedTuple):
    """Scores of all models, aligned: axis 0 questions, axis 1 models, axis 2 pairings; NaN where a model has none."""

    models: list[str]
    questions: list[str]
    subset: np.ndarray  # (n_questions,) str
    chain: list[str | None]
    sizes: list[int]  # every N, ascending
    size_index: np.ndarray  # (n_questions,) place of the question's N in sizes
    columns: dict[str, np.ndarray]  # by name in SCORES: (n_questions, n_models, n_pairings) float64
    similarities: np.ndarray  # (n_questions, n_models, n_pairings, 4) float32

    def of(self, protocol: Protocol) -> np.ndarray:
        """(n_questions,) bool: the questions that the protocol asks."""
        return np.full(len(self.subset), True) if protocol.subset is None else self.subset == protocol.subset


def tabulate_saber(
    scores: dict[str, Path],
    questions: Path,
    scenes: Path,
    vocabulary: Vocabulary,
    settings: Tables,
    reference: Path,
    folder: Path,
    bases: dict[str, str] | None = None,
    seeds: dict[str, list[str]] | None = None,
) -> None:
    """Writes the CSV tables and the page saber_table2.html into `folder`.

    scores: table SCORES of each model, in the order of the tables; reference: the paper's known values (CSV).
    bases: of each finetuned model the embedder that was finetuned, where both are measured. seeds: finetuned models that
    differ in their seed alone, by the name under which their mean stands among the gains.
    Raises UserError when a table is missing, broken or of other questions.
    """
    data = read_scores(scores, questions)
    scene_rows = read_table(SCENES, scenes).select(["question", "role", "kind", "bindings"]).to_pylist()
    samples = {p.name: sample_protocol(data, p, settings, data.columns[p.score]) for p in PROTOCOLS}
    estimates = {name: summary(sample, settings) for name, sample in samples.items()}
    tied = summary(sample_protocol(data, PROTOCOLS[0], settings, data.columns["tied"]), settings).mean
    tables = {"table2": table2(data, estimates, tied)}
    tables |= {p.table: by_size(data, samples[p.name], p, settings) for p in PROTOCOLS}
    gained = gains(data, samples, bases or {}, seeds or {}, settings)
    tables |= {
        "differences": differences(data, samples, settings),
        "gains": gain_rows(data, gained),
        "by_category": by_category(data, scene_rows, vocabulary, settings),
        "by_combination": by_combination(data, scene_rows, settings),
        "by_candidate_kind": by_candidate_kind(data, scene_rows, settings),
        "containment": containment(data, settings),
        "top_four": top_four(data, settings),
    }
    for name, (header, rows) in tables.items():
        write_text(folder / f"saber_{name}.csv", csv_text(header, rows))
    page = table2_page(
        data.models,
        {p.name: int(data.of(p).sum()) for p in PROTOCOLS},
        estimates,
        {p.name: _mean(chance(data, p)) for p in PROTOCOLS},
        tied,
        settings.confidence,
        read_reference(reference),
        {p.name: {model: (base, over_n(parts[p.name])) for (model, base), parts in gained.items()} for p in PROTOCOLS},
    )
    write_text(folder / "saber_table2.html", page)


def read_scores(scores: dict[str, Path], questions: Path) -> Scores:
    """Aligns the scores of all models on the table of questions. Raises UserError for scores of other questions."""
    table = read_table(QUESTIONS, questions)
    ids = table["question"].to_pylist()
    n_objects = table["n_objects"].to_numpy()
    sizes = sorted(set(n_objects.tolist()))
    names = [c.name for c in SCORES.columns if pa.types.is_primitive(c.type) and c.name != "n_objects"]
    shape = (len(ids), len(scores), len(PAIRINGS))
    columns = {name: np.full(shape, np.nan) for name in names}
    similarities = np.full((*shape, len(CANDIDATE_ROLES)), np.nan, dtype=np.float32)
    row_of = {question: row for row, question in enumerate(ids)}
    for model, path in enumerate(scores.values()):
        data = read_table(SCORES, path)
        for pairing in range(len(PAIRINGS)):
            part = data.filter(pc.equal(data["pairing"], PAIRINGS[pairing]))
            found = part["question"].to_pylist()
            if not found:
                continue
            if len(found) != len(ids) or not row_of.keys() >= set(found):
                raise UserError(f"{path}: scores of other questions than {questions}; delete it and run again")
            rows = [row_of[question] for question in found]
            for name in names:
                columns[name][rows, model, pairing] = part[name].cast(pa.float64()).to_numpy()
            flat = part["similarities"].combine_chunks().flatten().to_numpy()
            similarities[rows, model, pairing] = flat.reshape(len(found), len(CANDIDATE_ROLES))
    return Scores(
        models=list(scores),
        questions=ids,
        subset=np.array(table["subset"].to_pylist()),
        chain=table["chain"].to_pylist(),
        sizes=sizes,
        size_index=np.searchsorted(sizes, n_objects),
        columns=columns,
        similarities=similarities,
    )


def sample_protocol(
    data: Scores, protocol: Protocol, settings: Tables, values: np.ndarray, weights: np.ndarray | None = None
) -> Bootstrap:
    """Means by N of the questions that the protocol asks: (n_sizes, ...), as wide as `values` behind its first axis."""
    asked = data.of(protocol)
    weights = np.isfinite(values).astype(float) if weights is None else weights
    # Questions outside the protocol keep their place with weight 0, so that all protocols share their resamples.
    weights = np.where(asked.reshape(-1, *[1] * (values.ndim - 1)), weights, 0.0)
    return bootstrap(values, data.size_index, data.chain, settings.bootstrap_samples, settings.seed, weights)


def with_mean(sample: Bootstrap) -> Bootstrap:
    """Puts the mean over the pairings (last axis) behind them: (..., 4) becomes (..., 5)."""
    mean = mean_of_all(sample, -1)
    return Bootstrap(
        np.concatenate([sample.means, mean.means[..., None]], -1),
        np.concatenate([sample.resampled, mean.resampled[..., None]], -1),
    )


def summary(sample: Bootstrap, settings: Tables) -> Estimate:
    """From means by N (n_sizes, ..., 4) to means over N with the mean over pairings: (..., 5)."""
    return interval(with_mean(mean_of_present(sample, 0)), settings.confidence)


def chance(data: Scores, protocol: Protocol) -> np.ndarray:
    """Chance level by N: (n_sizes,) shares; NaN where the protocol asks nothing.

    Retrieval: the expected average precision of a random ranking, which depends on the number of positives only.
    """
    asked, levels = data.of(protocol), np.full(len(data.sizes), np.nan)
    # The same for every model and pairing: the first that exists will do.
    expected = _first_present(data.columns["expected_average_precision"])
    for size in range(len(data.sizes)):
        here = asked & (data.size_index == size)
        if here.any():
            levels[size] = CHANCE if protocol.name == "mcq" else expected[here].mean()
    return levels


def _first_present(values: np.ndarray) -> np.ndarray:
    """(n_questions, n_models, n_pairings) to (n_questions,): the first model and pairing that has values."""
    flat = values.reshape(len(values), -1)
    return flat[:, np.flatnonzero(~np.isnan(flat).all(axis=0))[0]]


def table2(data: Scores, estimates: dict[str, Estimate], tied: np.ndarray):
    """Table 2: a row per model and protocol; value, low and high of each pairing and of their mean; ties of multiple
    choice. The first rows are chance.

    estimates: by protocol, (n_models, 5); tied: (n_models, 5) shares.
    """
    header = ["model", "protocol", "n_questions"]
    header += [name + end for name in COLUMNS for end in ("", "_low", "_high")]
    header += [f"{name}_tied" for name in COLUMNS]
    rows = []
    for protocol in PROTOCOLS:
        level = percent(_mean(chance(data, protocol)))
        cells = [cell for _ in COLUMNS for cell in (level, "", "")]
        rows.append([CHANCE_ROW, protocol.name, int(data.of(protocol).sum()), *cells, *[""] * len(COLUMNS)])
    for model, name in enumerate(data.models):
        for protocol in PROTOCOLS:
            estimate = estimates[protocol.name]
            cells = [cell for column in range(len(COLUMNS)) for cell in percents(estimate, model, column)]
            ties = [percent(share) if protocol.name == "mcq" else "" for share in tied[model]]
            rows.append([name, protocol.name, int(data.of(protocol).sum()), *cells, *ties])
    return header, rows


def by_size(data: Scores, sample: Bootstrap, protocol: Protocol, settings: Tables):
    """Tables 17 to 19: for each model and pairing a row of values, of lower and of upper bounds; a column for each N."""
    header = ["model", "pairing", "statistic", *[str(n) for n in data.sizes], "mean"]
    levels = chance(data, protocol)
    rows = [[CHANCE_ROW, "", "value", *map(percent, levels), percent(_mean(levels))]]
    by_n = interval(with_mean(sample), settings.confidence)
    over_n = summary(sample, settings)
    for model, name in enumerate(data.models):
        for column, pairing in enumerate(COLUMNS):
            for statistic, cells, total in zip(("value", "low", "high"), by_n, over_n, strict=True):
                row = [name, pairing, statistic, *map(percent, cells[:, model, column]), percent(total[model, column])]
                rows.append(row)
    return header, rows


def differences(data: Scores, samples: dict[str, Bootstrap], settings: Tables):
    """Model minus other model on the same resamples, for every pair, protocol and pairing, in percentage points."""
    header = ["protocol", "pairing", "model", "other_model", "difference", "low", "high"]
    rows = []
    for protocol in PROTOCOLS:
        sample = with_mean(mean_of_present(samples[protocol.name], 0))
        for first, second in combinations(range(len(data.models)), 2):
            result = interval(
                paired_difference(*(Bootstrap(sample.means[m], sample.resampled[:, m]) for m in (first, second))),
                settings.confidence,
            )
            for column, pairing in enumerate(COLUMNS):
                cells = percents(result, column)
                rows.append([protocol.name, pairing, data.models[first], data.models[second], *cells])
    return header, rows


def gains(
    data: Scores, samples: dict[str, Bootstrap], bases: dict[str, str], seeds: dict[str, list[str]], settings: Tables
) -> dict[tuple[str, str], dict[str, Estimate]]:
    """Finetuned model minus its base on the same resamples: by (model, base) and protocol. Of seeds, their models' mean minus
    the base: the interval is that of these seeds over other questions.

    Each estimate is (n_sizes + 1, 5): a row for every N and one for the mean over N, a column for every pairing and one for
    their mean.
    """
    found: dict[tuple[str, str], dict[str, Estimate]] = {}
    for protocol in PROTOCOLS:
        by_n = with_mean(samples[protocol.name])
        over_n = with_mean(mean_of_present(samples[protocol.name], 0))
        sample = Bootstrap(
            np.concatenate([by_n.means, over_n.means[None]]),
            np.concatenate([by_n.resampled, over_n.resampled[:, None]], 1),
        )
        compared = [(model, [model], base) for model, base in bases.items()]
        compared += [(name, models, bases[models[0]]) for name, models in seeds.items()]
        for name, models, base in compared:
            parts = (_mean_model(sample, [data.models.index(model) for model in group]) for group in (models, [base]))
            estimate = interval(paired_difference(*parts), settings.confidence)
            found.setdefault((name, base), {})[protocol.name] = estimate
    return found


def _mean_model(sample: Bootstrap, models: list[int]) -> Bootstrap:
    """Of means (n_sizes, n_models, n_columns) those of one model, or the mean of several: (n_sizes, n_columns)."""
    return Bootstrap(sample.means[:, models].mean(1), sample.resampled[:, :, models].mean(2))


def over_n(gain: Estimate) -> Estimate:
    """The last row of one of `gains`, the mean over N: (5,)."""
    return Estimate(*(part[-1] for part in gain))


def gain_rows(data: Scores, gained: dict[tuple[str, str], dict[str, Estimate]]):
    """The gains as rows: one for each finetuned model, protocol, pairing and N, in percentage points."""
    header = ["model", "base", "protocol", "pairing", "n_objects", "difference", "low", "high"]
    rows = [
        [model, base, protocol, pairing, n, *percents(estimate, row, column)]
        for (model, base), parts in gained.items()
        for protocol, estimate in parts.items()
        for column, pairing in enumerate(COLUMNS)
        for row, n in enumerate([*data.sizes, MEAN])
    ]
    return header, rows


def by_category(data: Scores, scene_rows: list[dict], vocabulary: Vocabulary, settings: Tables):
    """Multiple-choice accuracy by the semantic category of the attributes (A.1).

    A question counts in a category by the share of its query's bindings whose attribute is of that category.
    """
    category_of = {attribute.name: attribute.category for attribute in vocabulary.attributes.values()}
    categories = list(dict.fromkeys(category_of.values()))
    row_of = {question: row for row, question in enumerate(data.questions)}
    shares = np.zeros((len(data.questions), len(categories)))
    for scene in scene_rows:
        if scene["role"] != "query":
            continue
        for binding in scene["bindings"]:
            category = category_of.get(binding["attribute"])
            if category is None:
                raise UserError(f"attribute {binding['attribute']!r} of {scene['question']} is not in the vocabulary")
            shares[row_of[scene["question"]], categories.index(category)] += 1 / len(scene["bindings"])
    values = np.repeat(data.columns["correct"][:, None], len(categories), axis=1)
    return _breakdown(data, "category", categories, values, shares, settings)


def by_combination(data: Scores, scene_rows: list[dict], settings: Tables):
    """Multiple-choice accuracy of questions whose query holds no combination that was held out of the pretraining of the nano
    embedder, and of those whose query holds one or more.
    """
    row_of = {question: row for row, question in enumerate(data.questions)}
    weights = np.zeros((len(data.questions), len(COMBINATIONS)))
    for scene in scene_rows:
        if scene["role"] == "query":
            pairs = [(binding["attribute"], binding["object"]) for binding in scene["bindings"]]
            weights[row_of[scene["question"]], int(any_held_out(pairs))] = 1
    values = np.repeat(data.columns["correct"][:, None], len(COMBINATIONS), axis=1)
    return _breakdown(data, "combinations", COMBINATIONS, values, weights, settings)


def by_candidate_kind(data: Scores, scene_rows: list[dict], settings: Tables):
    """Share of questions in which candidate 1 is strictly above the candidate of a kind (A.2)."""
    row_of = {question: row for row, question in enumerate(data.questions)}
    weights = np.zeros((len(data.questions), len(CANDIDATE_KINDS)))
    values = np.full((*weights.shape, len(data.models), len(PAIRINGS)), np.nan)
    for scene in scene_rows:
        if scene["kind"] in CANDIDATE_KINDS:
            row, kind = row_of[scene["question"]], CANDIDATE_KINDS.index(scene["kind"])
            four = data.similarities[row]
            above = four[..., 0] > four[..., CANDIDATE_ROLES.index(scene["role"])]
            values[row, kind] = np.where(np.isnan(four[..., 0]), np.nan, above)
            weights[row, kind] = 1
    return _breakdown(data, "kind", CANDIDATE_KINDS, values, weights, settings)


def _breakdown(
    data: Scores, what: str, names: Sequence[str], values: np.ndarray, weights: np.ndarray, settings: Tables
):
    """Rows of multiple-choice shares for each entry of a breakdown: macro means over N of weighted questions.

    values: (n_questions, n_names, n_models, n_pairings) in 0, 1, NaN; weights: (n_questions, n_names) from 0 to 1.
    """
    header = ["model", "pairing", what, "n_questions", "value", "low", "high"]
    cells = np.isfinite(values) * weights[:, :, None, None]
    estimate = summary(sample_protocol(data, PROTOCOLS[0], settings, values, cells), settings)
    n_questions = (weights > 0).sum(axis=0).tolist()
    rows = [
        [model_name, pairing, name, n_questions[index], *percents(estimate, index, model, column)]
        for model, model_name in enumerate(data.models)
        for column, pairing in enumerate(COLUMNS)
        for index, name in enumerate(names)
    ]
    return header, rows


def containment(data: Scores, settings: Tables):
    """Section 5.1: of all comparisons of nested queries, in how many a candidate with only a strict subset of the
    query's bindings ranks strictly above the exact match, and above one that holds all of them and more.
    """
    header = ["model", "pairing", "comparison", "n_pairs", "value", "low", "high"]
    nested = data.subset == "nested"
    rows, one_stratum = [], np.zeros(len(data.questions), dtype=int)
    for comparison, pairs in CONTAINMENT.items():
        n_pairs = np.where(nested[:, None, None], np.nan_to_num(data.columns[pairs]), 0.0)
        with np.errstate(invalid="ignore"):
            share = data.columns[comparison] / data.columns[pairs]
        sample = bootstrap(share, one_stratum, data.chain, settings.bootstrap_samples, settings.seed, n_pairs)
        estimate = summary(sample, settings)
        total = int(np.max(n_pairs.sum(axis=0)))
        for model, name in enumerate(data.models):
            for column, pairing in enumerate(COLUMNS):
                rows.append([name, pairing, comparison, total, *percents(estimate, model, column)])
    return header, rows


def top_four(data: Scores, settings: Tables):
    """Section 5.1: share of independent queries whose four candidates hold the top four places of the gallery."""
    header = ["model", "pairing", "n_questions", "value", "low", "high"]
    independent = PROTOCOLS[1]
    estimate = summary(sample_protocol(data, independent, settings, data.columns["top_four"]), settings)
    n = int(data.of(independent).sum())
    rows = [
        [name, pairing, n, *percents(estimate, model, column)]
        for model, name in enumerate(data.models)
        for column, pairing in enumerate(COLUMNS)
    ]
    return header, rows


def _mean(values: np.ndarray) -> float:
    """Mean of those that are numbers; NaN where none is."""
    present = values[~np.isnan(values)]
    return float(present.mean()) if len(present) else math.nan


def percents(estimate: Estimate, *place: int) -> list[str]:
    """Value, low and high of one cell."""
    return [percent(float(part[place])) for part in estimate]
