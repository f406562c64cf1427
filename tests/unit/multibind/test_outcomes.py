"""Who became what, one by one: the tables from which galleries and graphs are made."""

from pathlib import Path

import numpy as np
import pytest
from bindbench.config.multibind_scoring import Scoring
from bindbench.multibind.evaluation_tables import IMAGE_PATTERNS, SUBJECT_OUTCOMES, THRESHOLDS
from bindbench.multibind.outcomes import write_outcomes
from bindbench.multibind.rates import freeze_subjects
from bindbench.tables import read_table, write_table
from synthetic_people import CONFUSION, SELF, MadeEvaluation

FACE = Scoring(dimensions=("face",), bootstrap_rounds=100)


def outcomes_of(made: MadeEvaluation, folder: Path, values=(SELF, CONFUSION)) -> tuple[dict, dict]:
    """Rows by (generator, instance, slot), and by (generator, instance)."""
    paths = made.write(folder)
    freeze_subjects(made.generators, paths["matched"], folder / "compared.parquet")
    rows = [
        {"dimension": "face", "kind": kind, "threshold": value, "source": "default", "calibrated": False}
        | {"labels": 0, "positive": 0, "unused": 0, "stale": 0}
        for kind, value in zip(("self", "confusion"), values, strict=True)
    ]
    write_table(THRESHOLDS, rows, folder / "thresholds.parquet")
    outputs = folder / "subjects.parquet", folder / "images.parquet"
    inputs = folder / "compared.parquet", folder / "thresholds.parquet"
    write_outcomes(made.generators, *paths.values(), *inputs, FACE, *outputs)
    subjects, images = (
        read_table(t, p).to_pylist() for t, p in zip((SUBJECT_OUTCOMES, IMAGE_PATTERNS), outputs, strict=True)
    )
    return (
        {(row["generator"], row["instance"], row["slot"]): row for row in subjects},
        {(row["generator"], row["instance"]): row for row in images},
    )


def test_each_subject_names_whom_it_is_confused_with(tmp_path):
    made = MadeEvaluation()
    made.fault("one", "instance", [1, 0, (2, 3), None])
    subjects, images = outcomes_of(made, tmp_path)
    assert [(row["outcome"], row["confused_with"], row["nearest_other"]) for row in subjects.values()][:3] == [
        ("replaced", ["B"], "B"),
        ("replaced", ["A"], "A"),
        ("mixed", ["D"], "D"),
    ]
    assert (subjects["one", "instance", "D"]["outcome"], subjects["one", "instance", "D"]["confused_with"]) == (
        "drift",
        [],
    )
    assert subjects["one", "instance", "A"]["delta_self"] == pytest.approx(-0.8)
    assert subjects["one", "instance", "A"]["delta_other"] == pytest.approx(0.8)
    assert images["one", "instance"]["patterns"] == ["swap_2cycle", "blending"]
    assert (images["one", "instance"]["rows"], images["one", "instance"]["columns"]) == (4, 4)


def test_subject_that_another_generator_lacks_is_not_compared(tmp_path):
    made = MadeEvaluation()
    made.fault("good", "instance", [0, 1])
    made.fault("poor", "instance", [0, 1], matched=(1,))
    subjects, images = outcomes_of(made, tmp_path)
    assert {key: row["compared"] for key, row in subjects.items()} == {
        ("good", "instance", "A"): False,
        ("good", "instance", "B"): True,
        ("poor", "instance", "B"): True,
    }
    assert (images["good", "instance"]["patterns"], images["poor", "instance"]["patterns"]) == ([], None)


def test_subject_without_any_other_has_no_shift_and_no_nearest_one(tmp_path):
    made = MadeEvaluation()
    made.fault("one", "instance", [0, 1], valid_true=(0,))
    subjects, _ = outcomes_of(made, tmp_path)
    (row,) = subjects.values()
    assert (row["outcome"], row["js"], row["delta_other"], row["nearest_other"]) == ("success", None, None, None)


def test_without_thresholds_there_are_deltas_and_no_outcomes(tmp_path):
    made = MadeEvaluation()
    made.fault("one", "instance", [1, 0])
    subjects, images = outcomes_of(made, tmp_path, values=(SELF, None))
    assert {row["outcome"] for row in subjects.values()} == {None}
    assert all(row["js"] > 0 and np.isfinite(row["delta_self"]) for row in subjects.values())
    assert images["one", "instance"]["patterns"] is None


def test_people_nobody_can_tell_apart_are_marked(tmp_path):
    made = MadeEvaluation()
    made.add("one", "twins", 2)
    made.measure("one", "twins", "face", [[1, 0.97], [0.97, 1]], [[1, 0.97], [0.97, 1]])
    subjects, _ = outcomes_of(made, tmp_path)
    assert all(row["undiagnosable"] and row["outcome"] == "success" for row in subjects.values())
