"""All of MultiBind's rates from the table of similarities, without a model, against loops in plain Python.

    python benchmarks/confusion.py        writes benchmarks/confusion.md

500 instances, 6 generators, 4 dimensions, 1,000 bootstrap rounds, from files to files. Goal: under 10 s on two cores. The
plain loops are those of the tests, tests/support/plain_confusion.py; they read no file and have no intervals.
"""

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY / "workflow"), str(REPOSITORY / "tests" / "support")]

import numpy as np  # noqa: E402
from bindbench.config.multibind_scoring import Scoring  # noqa: E402
from bindbench.multibind.evaluation_tables import COMPARED_SUBJECTS, THRESHOLDS  # noqa: E402
from bindbench.multibind.rates import (  # noqa: E402
    SHARES,
    SUBSETS,
    counts,
    freeze_subjects,
    rate_parts,
    read_cutoffs,
    sample_rates,
    subset_of,
)
from bindbench.multibind.similarity_arrays import read_compared, read_evaluation  # noqa: E402
from bindbench.multibind.tabulate import tabulate_multibind  # noqa: E402
from bindbench.tables import read_table, write_table  # noqa: E402
from machine import describe  # noqa: E402
from plain_confusion import plain_rates  # noqa: E402
from synthetic_people import MadeEvaluation, random_evaluation  # noqa: E402

N_INSTANCES = 500
GENERATORS = tuple(f"generator {number}" for number in range(1, 7))
SETTINGS = Scoring(bootstrap_rounds=1000)
CUTOFFS = dict.fromkeys(SETTINGS.dimensions, (-0.4, 0.2))
REPEATS = 3
PLAIN_INSTANCES = (25, 50, 100)


def timed(work: Callable) -> tuple[float, float, object]:
    """Wall seconds, CPU seconds of all threads, and the result of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def fastest(work: Callable) -> tuple[float, float]:
    rounds = [timed(work)[:2] for _ in range(REPEATS)]
    return min(wall for wall, _ in rounds), min(cpu for _, cpu in rounds)


def write_cutoffs(path: Path) -> None:
    empty = {"source": "config", "calibrated": False, "labels": 0, "positive": 0, "unused": 0}
    rows = [
        {"dimension": dimension, "kind": kind, "threshold": value} | empty
        for dimension, values in CUTOFFS.items()
        for kind, value in zip(("self", "confusion"), values, strict=True)
    ]
    write_table(THRESHOLDS, rows, path)


def plain_seconds(made: MadeEvaluation, compared: set, n_instances: int) -> tuple[float, dict]:
    """CPU seconds of the plain loops over both subsets of some instances, and the rates of the own subjects."""
    kept = sorted({row["instance"] for row in made.slots})[:n_instances]
    tables = [
        [row for row in rows if row["instance"] <= kept[-1]] for rows in (made.slots, made.validity, made.similarities)
    ]
    _, cpu, (_, own) = timed(lambda: [plain_rates(*tables, subset, CUTOFFS) for subset in (compared, None)])
    return cpu, own


def differing(own: dict, sample: dict, generators: list[str], dimensions: list[str]) -> tuple[int, int]:
    """How many shares of subjects and images are not exactly those of the plain loops, and how many there are."""
    pairs = [
        (float(sample[name].means[g, d]), own[generator, dimension][name])
        for name in SHARES
        if name != "mean_iou"
        for g, generator in enumerate(generators)
        for d, dimension in enumerate([*dimensions, "any"])
    ]
    same = sum(np.isnan(ours) if plain is None else ours == float(plain) for ours, plain in pairs)
    return len(pairs) - int(same), len(pairs)


def measure(folder: Path) -> list[str]:
    made = random_evaluation(0, N_INSTANCES, GENERATORS, SETTINGS.dimensions, gaps=0.05)
    paths = made.write(folder)
    compared, cutoffs = folder / "compared.parquet", folder / "thresholds.parquet"
    freeze_subjects(GENERATORS, paths["matched"], compared)
    write_cutoffs(cutoffs)
    shared = {(r["instance"], r["slot"]) for r in read_table(COMPARED_SUBJECTS, compared).to_pylist() if r["compared"]}

    def whole() -> None:
        tabulate_multibind(GENERATORS, *paths.values(), compared, cutoffs, SETTINGS, folder / "tables")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wall, cpu = fastest(whole)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    reading = fastest(lambda: read_evaluation(GENERATORS, SETTINGS.dimensions, **paths))
    evaluation = read_evaluation(GENERATORS, SETTINGS.dimensions, **paths)
    thresholds, _ = read_cutoffs(cutoffs, SETTINGS.dimensions)
    subsets = [subset_of(evaluation, read_compared(compared, evaluation), subset) for subset in SUBSETS]

    def rates_alone() -> list[dict]:
        for subjects in subsets:
            counts(evaluation, subjects, thresholds)
        return [rate_parts(evaluation, subjects, thresholds, SETTINGS) for subjects in subsets]

    alone = fastest(rates_alone)
    parts = rates_alone()
    sampling = fastest(lambda: [sample_rates(part, SETTINGS) for part in parts])
    plain = {n: plain_seconds(made, shared, n)[0] for n in PLAIN_INSTANCES}
    whole_plain, own = plain_seconds(made, shared, N_INSTANCES)
    wrong, total = differing(own, sample_rates(parts[1], SETTINGS), evaluation.generators, evaluation.dimensions)
    n = len(made.similarities)
    return [
        "# Confusion",
        "",
        describe(),
        "",
        f"{N_INSTANCES} instances of 2 to 4 subjects, {len(GENERATORS)} generators, {len(SETTINGS.dimensions)} dimensions:"
        f" {n:,} rows of similarities. {SETTINGS.bootstrap_rounds:,} bootstrap rounds, both subsets of subjects, paired"
        f" differences of all {len(GENERATORS) * (len(GENERATORS) - 1) // 2} pairs, shifts at {len(SETTINGS.js_temperatures)}"
        f" temperatures; the fastest of {REPEATS} rounds. Load of the machine meanwhile: {os.getloadavg()[0]:.1f}.",
        "",
        "| | wall s | CPU s |",
        "|---|---|---|",
        f"| **from files to all tables and the page** | {wall:.2f} | {cpu:.2f} |",
        f"| of it: reading and aligning the tables | {reading[0]:.2f} | {reading[1]:.2f} |",
        f"| of it: matrices, outcomes, patterns and shifts of every instance | {alone[0]:.2f} | {alone[1]:.2f} |",
        f"| of it: means and their resamples | {sampling[0]:.2f} | {sampling[1]:.2f} |",
        "",
        f"Peak memory {peak:,.0f} MB, of which {before:,.0f} MB before the first call (the rows of the tables as Python objects).",
        "",
        "| plain Python loops over the same rows, without files and intervals | CPU s |",
        "|---|---|",
        *(f"| {count} instances | {seconds:.2f} |" for count, seconds in plain.items()),
        f"| all {N_INSTANCES} instances | {whole_plain:.2f} |",
        "",
        f"That is {whole_plain / alone[1]:.0f} times our CPU time for the same rates without intervals. It was not run with"
        f" intervals: if each round counted anew in loops, {SETTINGS.bootstrap_rounds:,} rounds would take"
        f" {whole_plain * SETTINGS.bootstrap_rounds / 3600:.1f} CPU hours (extrapolated); loops that keep each instance's sums"
        " would take far less.",
        "",
        f"Of {total} shares of subjects and images {wrong} differ from those of the loops in any bit.",
        "",
        "Goal: under 10 s on two cores.",
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = measure(Path(folder))
    (REPOSITORY / "benchmarks/confusion.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
