"""The tables of rates: equal to a second computation, the same for any order, compared on the same subjects, whole when broken."""

import csv
import math
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import plain_confusion
import pytest
from bindbench.config.multibind_scoring import Scoring
from bindbench.errors import UserError
from bindbench.multibind.evaluation_tables import COMPARED_SUBJECTS, SIMILARITIES, THRESHOLDS
from bindbench.multibind.rates import (
    COUNTS,
    DELTAS,
    SHARES,
    SUBSETS,
    Cutoffs,
    counts,
    freeze_subjects,
    rate_parts,
    sample_rates,
    subset_of,
)
from bindbench.multibind.similarity_arrays import read_compared, read_evaluation
from bindbench.multibind.tables import SLOTS
from bindbench.multibind.tabulate import tabulate_multibind
from bindbench.tables import read_table, write_table
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_people import CONFUSION, SELF, MadeEvaluation, random_evaluation

FEW = Scoring(dimensions=("face", "pose"), bootstrap_rounds=100)
FACE = Scoring(dimensions=("face",), bootstrap_rounds=100)
MEASURED = ("js", "js_macro", "mean_iou", *DELTAS)  # means of numbers that no fraction holds
FAULTS = {
    "target": [0, 1, 2],
    "swap": [1, 0, 2],
    "cycle": [1, 2, 0],
    "copy": [1, 1, 1],
    "blend": [0, (1, 2), None],
    "blur": [0, 1, None],
}


def write_thresholds(path: Path, of: dict[str, tuple[float | None, float | None]], **changes) -> Path:
    rows = [
        {
            **{"dimension": dimension, "kind": kind, "threshold": value, "source": "default", "calibrated": False},
            **{"labels": 0, "positive": 0, "unused": 0, "stale": 0, "made_with": "test"},
            "reason": None if value is not None else "no labels",
        }
        | changes
        for dimension, values in of.items()
        for kind, value in zip(("self", "confusion"), values, strict=True)
    ]
    write_table(THRESHOLDS, rows, path)
    return path


def tabulate(
    made: MadeEvaluation,
    folder: Path,
    scoring: Scoring,
    shuffle=None,
    thresholds=None,
    generators=None,
    deciders=None,
    **changes,
) -> Path:
    paths, generators = made.write(folder, shuffle), generators or made.generators
    freeze_subjects(deciders or generators, paths["matched"], folder / "compared.parquet")
    given = thresholds or dict.fromkeys(scoring.dimensions, (SELF, CONFUSION))
    cutoffs = write_thresholds(folder / "thresholds.parquet", given, **changes)
    tabulate_multibind(
        generators,
        paths["matched"],
        paths["validity"],
        paths["similarities"],
        folder / "compared.parquet",
        cutoffs,
        scoring,
        folder / "tables",
    )
    return folder / "tables"


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def row_of(folder: Path, generator: str, subset="compared", dimension="face", table="table") -> dict[str, str]:
    rows = read_rows(folder / f"multibind_{table}.csv")
    (row,) = [
        row for row in rows if (row["generator"], row["subset"], row["dimension"]) == (generator, subset, dimension)
    ]
    return row


def made_faults(n_instances: int = 3) -> MadeEvaluation:
    made = MadeEvaluation()
    for number in range(n_instances):
        for generator, who in FAULTS.items():
            made.fault(generator, f"instance-{number}", who)
    return made


def all_rates(made: MadeEvaluation, folder: Path, scoring: Scoring, cutoffs: Cutoffs) -> dict:
    """Rates, resamples and counts by subset, as they are before they are written."""
    paths = made.write(folder)
    evaluation = read_evaluation(made.generators, scoring.dimensions, **paths)
    freeze_subjects(made.generators, paths["matched"], folder / "compared.parquet")
    shared = read_compared(folder / "compared.parquet", evaluation)
    found = {}
    for subset in SUBSETS:
        subjects = subset_of(evaluation, shared, subset)
        sample = sample_rates(rate_parts(evaluation, subjects, cutoffs, scoring), scoring)
        found[subset] = (sample, counts(evaluation, subjects, cutoffs))
    return found


@pytest.mark.parametrize(
    ("generator", "expected"),
    [
        ("target", {"success": 100}),
        ("swap", {"success": 100 / 3, "replaced": 200 / 3, "swap": 100, "swap_partial": 100, "swap_2cycle": 100}),
        ("cycle", {"replaced": 100, "swap": 100, "swap_partial": 100}),
        ("copy", {"success": 100 / 3, "replaced": 200 / 3, "dominance": 100, "dominance_total": 100}),
        ("blend", {"success": 100 / 3, "mixed": 100 / 3, "drift": 100 / 3, "blending": 100}),
        ("blur", {"success": 200 / 3, "drift": 100 / 3}),
    ],
)
def test_each_known_fault_has_its_own_rates_and_no_other(tmp_path, generator, expected):
    # The blend is of the second and the third person, beside a blurred one; its own column is not matched twice.
    made = MadeEvaluation()
    made.fault(generator, "instance", FAULTS[generator] if generator != "blend" else [0, (1, 2), None])
    row = row_of(tabulate(made, tmp_path, FACE), generator)
    for name in ("success", "drift", "replaced", "mixed", *plain_confusion.IMAGE_FLAGS):
        assert row[name] == f"{expected.get(name, 0):.2f}"
    assert (row["js_nats"] == "0.000000") == (generator == "target")
    assert (row["miss"], row["invalid"]) == ("0.00", "0.00")


def test_missing_people_are_misses_and_invalid_crops_are_invalid_and_nothing_else(tmp_path):
    made = MadeEvaluation()
    made.fault("missing", "one", [0, 1, 2, 3], matched=(0, 1, 2), valid_generated=(0, 1))
    made.fault("missing", "two", [0, 1], valid_true=(0,))
    row = row_of(tabulate(made, tmp_path, FACE), "missing")
    assert row["miss"] == f"{100 / 6:.2f}"
    assert row["invalid"] == f"{100 / 4:.2f}"  # of three matched in the first and one in the second, one is lost
    assert row["success"] == "100.00"
    assert [row[name] for name in COUNTS] == ["5", "0", "3", "2", "1", "0"]
    assert all(row[name] == "0.00" for name in plain_confusion.IMAGE_FLAGS)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.sampled_from([0.0, 0.15, 0.6]))
def test_every_rate_is_that_of_the_plain_computation(tmp_path_factory, seed, n_instances, gaps):
    made = random_evaluation(seed, n_instances, gaps=gaps)
    thresholds = {"face": (-0.4, 0.2)} if seed % 3 == 0 else {"face": (-0.4, 0.2), "pose": (-0.5, 0.1)}
    given_cutoffs = [thresholds.get(dimension, (np.nan, np.nan)) for dimension in FEW.dimensions]
    cutoffs = Cutoffs(*(np.array(values) for values in zip(*given_cutoffs, strict=True)))
    folder = tmp_path_factory.mktemp("rates")
    found = all_rates(made, folder, FEW, cutoffs)
    compared = {
        (row["instance"], row["slot"])
        for row in read_table(COMPARED_SUBJECTS, folder / "compared.parquet").to_pylist()
        if row["compared"]
    }
    assert compared == plain_confusion.plain_compared(made.slots, made.generators)
    for subset, subjects in (("compared", compared), ("own", None)):
        sample, numbers = found[subset]
        plain = plain_confusion.plain_rates(made.slots, made.validity, made.similarities, subjects, thresholds)
        for g, generator in enumerate(made.generators):
            for d, dimension in enumerate([*FEW.dimensions, "any"]):
                expected = plain[generator, dimension]
                for name in COUNTS:
                    assert numbers[name][g, d] == expected[name], (subset, generator, dimension, name)
                for name in (*SHARES, "js", "js_macro", *DELTAS):
                    value = float(sample[name].means[g, d])
                    if expected[name] is None:
                        assert math.isnan(value), (subset, generator, dimension, name)
                    elif name in MEASURED:
                        assert value == pytest.approx(expected[name], abs=1e-12), (subset, generator, dimension, name)
                    else:
                        assert isinstance(expected[name], Fraction)
                        assert value == float(expected[name]), (subset, generator, dimension, name)


def test_rates_of_subjects_add_up_to_one(tmp_path):
    cutoffs = Cutoffs(np.array([-0.4, -0.5]), np.array([0.2, 0.1]))
    for sample, _ in all_rates(random_evaluation(5, 12), tmp_path, FEW, cutoffs).values():
        for end in ("", "_macro"):
            cells = [sample[name + end] for name in ("success", "drift", "replaced", "mixed")]
            assert sum(cell.means for cell in cells) == pytest.approx(np.ones((2, 3)), abs=1e-12)
            assert sum(cell.resampled for cell in cells) == pytest.approx(np.ones((100, 2, 3)), abs=1e-12)


def test_order_of_rows_and_files_changes_no_byte(tmp_path):
    made = random_evaluation(1, 8)
    first = tabulate(made, tmp_path / "first", FEW)
    for shuffle in range(2):
        again = tabulate(made, tmp_path / f"again{shuffle}", FEW, shuffle, generators=made.generators)
        assert sorted(path.name for path in first.iterdir()) == sorted(path.name for path in again.iterdir())
        for path in first.iterdir():
            assert path.read_bytes() == (again / path.name).read_bytes(), path.name


def test_relabelling_the_slots_changes_no_rate(tmp_path):
    made = random_evaluation(2, 10)
    size = {row["instance"]: SLOTS.index(row["slot"]) + 1 for row in made.slots}  # slots come in order
    turned = {(instance, SLOTS[slot]): SLOTS[(slot + 1) % n] for instance, n in size.items() for slot in range(n)}

    def relabelled(rows: list[dict], *names: str) -> list[dict]:
        return [row | {name: turned[row["instance"], row[name]] for name in names} for row in rows]

    other = MadeEvaluation(
        relabelled(made.slots, "slot"),
        relabelled(made.validity, "slot"),
        relabelled(made.similarities, "row", "column"),
    )
    before, after = (tabulate(m, tmp_path / name, FEW) for name, m in (("before", made), ("after", other)))
    for table in ("table", "differences", "similarity", "js_temperatures"):
        assert (before / f"multibind_{table}.csv").read_text() == (after / f"multibind_{table}.csv").read_text()


def test_generators_are_compared_on_the_subjects_that_all_of_them_have(tmp_path):
    made = MadeEvaluation()
    made.fault("good", "one", [0, 1, 2])
    made.fault("poor", "one", [0, 2, 1], matched=(1, 2))
    folder = tabulate(made, tmp_path, FACE)
    rows = read_table(COMPARED_SUBJECTS, tmp_path / "compared.parquet").to_pylist()
    assert [(row["slot"], row["compared"], row["missed_by"]) for row in rows] == [
        ("A", False, ["poor"]),
        ("B", True, []),
        ("C", True, []),
    ]
    shared, own = (row_of(folder, "good", subset) for subset in SUBSETS)
    assert [shared[name] for name in ("matched", "dropped", "subjects")] == ["2", "1", "2"]
    assert [own[name] for name in ("matched", "dropped", "subjects")] == ["3", "0", "3"]
    assert shared["miss"] == own["miss"] == "0.00"
    assert row_of(folder, "poor")["miss"] == f"{100 / 3:.2f}"
    # The columns stay all real subjects: who is dropped as a row can still be copied.
    assert row_of(folder, "poor")["swap"] == "100.00"


def test_frozen_subjects_stay_when_another_generator_comes(tmp_path):
    made = MadeEvaluation()
    made.fault("first", "one", [0, 1, 2])
    paths = made.write(tmp_path / "first")
    freeze_subjects(["first"], paths["matched"], tmp_path / "compared.parquet")
    made.fault("second", "one", [0, 1, 2], matched=(0,))
    paths = made.write(tmp_path / "both")
    cutoffs = write_thresholds(tmp_path / "thresholds.parquet", {"face": (SELF, CONFUSION)})
    tabulate_multibind(
        made.generators, *paths.values(), tmp_path / "compared.parquet", cutoffs, FACE, tmp_path / "tables"
    )
    assert row_of(tmp_path / "tables", "first")["subjects"] == "3"
    assert row_of(tmp_path / "tables", "second")["subjects"] == "1"


def test_equal_generators_differ_by_nothing_in_every_resample(tmp_path):
    made = MadeEvaluation()
    for number, who in enumerate([[0, 1], [1, 0], [0, 1, 2], [None, 1]]):
        for generator in ("one", "twin"):
            made.fault(generator, f"instance-{number}", who)
    folder = tabulate(made, tmp_path, FACE)
    rows = read_rows(folder / "multibind_differences.csv")
    assert {(row["measure"], row["dimension"]) for row in rows} >= {
        ("success", "face"),
        ("swap", "any"),
        ("js", "face"),
    }
    assert all(float(row[name]) == 0 for row in rows for name in ("difference", "low", "high"))
    assert [row["dimension"] for row in rows if row["measure"] in ("miss", "mean_iou")] == ["any", "any"]


def test_differences_are_first_minus_second_in_percentage_points(tmp_path):
    folder = tabulate(made_faults(), tmp_path, FACE)
    rows = read_rows(folder / "multibind_differences.csv")
    (row,) = [
        row
        for row in rows
        if (row["measure"], row["generator"], row["other_generator"], row["dimension"])
        == ("dominance", "target", "copy", "face")
    ]
    assert [row[name] for name in ("difference", "low", "high")] == ["-100.00"] * 3
    assert len({(row["generator"], row["other_generator"]) for row in rows}) == 15


def test_intervals_are_those_of_a_bootstrap_over_whole_instances(tmp_path):
    """The subjects of an instance are drawn together: the interval is as wide as that of instances, not of subjects."""
    made = MadeEvaluation()
    for number in range(40):
        made.fault("half", f"instance-{number:02d}", [0, 1, 2, 3] if number % 2 else [None] * 4)
    scoring = FACE.model_copy(update={"bootstrap_rounds": 4000})
    row = row_of(tabulate(made, tmp_path, scoring), "half")
    assert row["success"] == "50.00"
    half_width = 100 * 1.96 * math.sqrt(0.25 / 40)
    assert 50 - float(row["success_low"]) == pytest.approx(half_width, rel=0.15)
    assert float(row["success_high"]) - 50 == pytest.approx(half_width, rel=0.15)


def test_instance_mean_and_subject_mean_are_told_apart(tmp_path):
    made = MadeEvaluation()
    made.fault("one", "large", [0, 1, 2, 3])
    made.fault("one", "small", [None, None])
    row = row_of(tabulate(made, tmp_path, FACE), "one")
    assert row["success"] == f"{100 * 4 / 6:.2f}"
    assert row["success_macro"] == "50.00"


def test_failure_in_one_dimension_is_a_failure_in_any(tmp_path):
    made = MadeEvaluation()
    made.fault("one", "instance", [0, 1], dimensions=("face",))
    swapped = MadeEvaluation()
    swapped.fault("one", "instance", [1, 0], dimensions=("pose",))
    made.validity += swapped.validity
    made.similarities += swapped.similarities
    folder = tabulate(made, tmp_path, FEW)
    assert row_of(folder, "one", dimension="face")["success"] == "100.00"
    overall = row_of(folder, "one", dimension="any")
    assert [overall[name] for name in ("success", "replaced", "swap")] == ["0.00", "100.00", "100.00"]
    assert [overall[name] for name in ("subjects", "images", "js_nats", "specialist")] == ["2", "1", "", ""]


def test_dimension_without_thresholds_has_shifts_and_losses_but_no_rates_and_says_why(tmp_path):
    made = MadeEvaluation()
    made.fault("one", "instance", [1, 0], dimensions=("face", "pose"))
    folder = tabulate(made, tmp_path, FEW, thresholds={"face": (SELF, CONFUSION), "pose": (None, None)})
    row = row_of(folder, "one", dimension="pose")
    assert (row["thresholds"], row["thresholds_from"]) == ("none", "no labels")
    assert row["success"] == row["swap"] == row["threshold_self"] == ""
    assert float(row["js_nats"]) > 0
    assert row["invalid"] == "0.00"
    overall = row_of(folder, "one", dimension="any")
    assert (overall["thresholds"], overall["thresholds_from"], overall["swap"]) == ("uncalibrated", "face", "100.00")
    assert "no labels" in (folder / "multibind_table.html").read_text()


def test_one_missing_threshold_leaves_the_dimension_out(tmp_path):
    folder = tabulate(made_faults(1), tmp_path, FACE, thresholds={"face": (SELF, None)})
    assert row_of(folder, "target")["success"] == ""
    overall = row_of(folder, "target", dimension="any")
    assert (overall["thresholds"], overall["success"], overall["subjects"]) == ("none", "", "0")


def test_thresholds_that_are_not_from_labels_are_marked(tmp_path):
    made = made_faults(1)
    folder = tabulate(made, tmp_path, FACE)
    row = row_of(folder, "swap")
    assert (row["thresholds"], row["thresholds_from"]) == (
        "uncalibrated",
        "default, made with another specialist, test",
    )
    assert (
        "uncalibrated</span> (default, made with another specialist, test)"
        in (folder / "multibind_table.html").read_text()
    )
    write_thresholds(tmp_path / "thresholds.parquet", {"face": (SELF, CONFUSION)}, source="labels", calibrated=True)
    paths = made.write(tmp_path)
    tabulate_multibind(
        made.generators, *paths.values(), tmp_path / "compared.parquet", tmp_path / "thresholds.parquet", FACE, folder
    )
    row = row_of(folder, "swap", dimension="any")
    assert (row["thresholds"], row_of(folder, "swap")["thresholds"]) == ("calibrated", "calibrated")
    assert "uncalibrated</span>" not in (folder / "multibind_table.html").read_text()
    cutoffs = {"face": (SELF, CONFUSION)}
    write_thresholds(tmp_path / "thresholds.parquet", cutoffs, source="labels", calibrated=True, stale=3)
    tabulate_multibind(
        made.generators, *paths.values(), tmp_path / "compared.parquet", tmp_path / "thresholds.parquet", FACE, folder
    )
    told = "labels; 6 labels of pictures that were generated again since are not used"
    assert row_of(folder, "swap")["thresholds_from"] == told
    assert f"calibrated ({told})" in (folder / "multibind_table.html").read_text()


def test_near_identical_people_are_counted_and_listed(tmp_path):
    made = MadeEvaluation()
    made.add("one", "twins", 3)
    s_gt = np.array([[1, 0.97, 0.1], [0.97, 1, 0.1], [0.1, 0.1, 1]])
    made.measure("one", "twins", "face", s_gt, s_gt)
    folder = tabulate(made, tmp_path, FACE)
    assert row_of(folder, "one")["undiagnosable"] == f"{200 / 3:.2f}"
    rows = read_rows(folder / "multibind_undiagnosable.csv")
    assert [(row["slot"], row["most_similar"], row["similarity"]) for row in rows] == [
        ("A", "B", "0.970000"),
        ("B", "A", "0.970000"),
    ]


def test_similarities_are_reported_on_and_off_the_diagonal(tmp_path):
    made = MadeEvaluation()
    made.add("one", "instance", 3)
    made.measure(
        "one", "instance", "face", [[0.5, 0.75, 0.25], [0.25, 1, 0], [0.25, 0, 1]], np.eye(3), valid_generated=(0,)
    )
    row = row_of(tabulate(made, tmp_path, FACE), "one", table="similarity")
    assert [row[name] for name in ("diagonal", "off_diagonal_mean", "off_diagonal_max", "subjects")] == [
        "-0.500000",
        "0.500000",
        "0.750000",
        "1",
    ]


def test_sweep_of_temperatures_holds_the_table_own_one(tmp_path):
    folder = tabulate(made_faults(), tmp_path, FACE)
    rows = read_rows(folder / "multibind_js_temperatures.csv")
    here = [row for row in rows if row["generator"] == "swap" and row["subset"] == "own"]
    assert [row["temperature"] for row in here] == ["0.02", "0.05", "0.1", "0.2", "0.5", "1"]
    table = row_of(folder, "swap", "own")
    assert [here[2][name] for name in ("js_nats", "js_normalised")] == [table["js_nats"], table["js_normalised"]]
    values = [float(row["js_normalised"]) for row in here]
    assert values == sorted(values, reverse=True)
    assert 0 < values[-1] < values[0] < 1


def test_nothing_valid_is_all_lost_and_no_rate(tmp_path):
    made = MadeEvaluation()
    made.fault("one", "first", [0, 1], valid_generated=())
    made.fault("one", "second", [0, 1], valid_true=())
    row = row_of(tabulate(made, tmp_path, FACE), "one")
    assert (row["invalid"], row["success"], row["swap"], row["js_nats"]) == ("100.00", "", "", "")
    assert [row[name] for name in COUNTS] == ["4", "0", "0", "0", "0", "0"]


def test_nobody_found_is_all_missed(tmp_path):
    made = MadeEvaluation()
    made.fault("one", "instance", [0, 1], matched=())
    row = row_of(tabulate(made, tmp_path, FACE), "one")
    assert (row["miss"], row["invalid"], row["mean_iou"], row["success"]) == ("100.00", "", "", "")


def test_generators_without_a_common_subject_keep_their_own_rates_only(tmp_path):
    made = MadeEvaluation()
    made.fault("left", "instance", [0, 1, 2, 3], matched=(0, 1))
    made.fault("right", "instance", [0, 1, 3, 2], matched=(2, 3))
    folder = tabulate(made, tmp_path, FACE)
    row = row_of(folder, "right")
    assert (row["matched"], row["dropped"], row["success"], row["swap"], row["invalid"]) == ("0", "2", "", "", "")
    assert row_of(folder, "right", "own")["swap"] == "100.00"
    measures = {row["measure"] for row in read_rows(folder / "multibind_differences.csv")}
    assert measures == {"miss"}, "of no common subject there is no overlap to compare either"


def test_faults_on_purpose_take_nobody_from_the_comparison_and_are_told_apart(tmp_path):
    """`missing` lacks half of the people: the others keep them all, and its rates say that they are of fewer."""
    made = MadeEvaluation()
    for number in range(3):
        made.fault("good", f"instance-{number}", [0, 1])
        made.fault("swap", f"instance-{number}", [1, 0])
        made.fault("missing", f"instance-{number}", [0, 1], matched=(1,))
    folder = tabulate(made, tmp_path, FACE, deciders=["good"])
    frozen = read_table(COMPARED_SUBJECTS, tmp_path / "compared.parquet").to_pylist()
    assert all(row["compared"] and row["decided_by"] == ["good"] and not row["missed_by"] for row in frozen)
    for name, subjects, same in (("good", "6", "true"), ("swap", "6", "true"), ("missing", "3", "false")):
        for subset in SUBSETS:
            row = row_of(folder, name, subset)
            assert [row[key] for key in ("subjects", "compared_subjects", "same_subjects")] == [subjects, "6", same]
            assert row_of(folder, name, subset, table="similarity")["same_subjects"] == same
    assert {row["same_subjects"] for row in read_rows(folder / "multibind_js_temperatures.csv")} == {"true", "false"}
    common = {row["common_subjects"] for row in read_rows(folder / "multibind_differences.csv")}
    assert common == {"6", "3"}
    page = (folder / "multibind_table.html").read_text()
    assert "compared on the 6 subjects that every one of good has" in page
    assert "Who is missing for swap, missing takes nobody from the comparison" in page
    assert "missing *" in page and "swap *" not in page and "3 of 6" in page


def test_page_of_generators_that_all_have_everyone_marks_nobody(tmp_path):
    page = (tabulate(made_faults(1), tmp_path, FACE) / "multibind_table.html").read_text()
    assert "compared on the 3 subjects that all of them have" in page
    assert " *" not in page


def test_a_difference_is_of_the_subjects_that_both_have(tmp_path):
    """A fault that shows only the people whom the other has wrong, too, is no better than it."""
    made = MadeEvaluation()
    for number in range(4):
        made.fault("half", f"instance-{number}", [0, 1, None, None])
        made.fault("wrong half", f"instance-{number}", [0, 1, None, None], matched=(2, 3))
    folder = tabulate(made, tmp_path, FACE, deciders=["half"])
    assert [row_of(folder, name)["drift"] for name in ("half", "wrong half")] == ["50.00", "100.00"]
    (row,) = [
        row
        for row in read_rows(folder / "multibind_differences.csv")
        if (row["measure"], row["dimension"]) == ("drift", "face")
    ]
    assert [row[name] for name in ("difference", "low", "high", "common_subjects")] == ["0.00", "0.00", "0.00", "8"]


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([1, 2]))
def test_comparison_is_that_of_the_plain_computation(tmp_path_factory, seed, n_instances, n_deciders):
    made = random_evaluation(seed, n_instances, generators=("one", "two", "three"), gaps=0.3)
    thresholds = {"face": (-0.4, 0.2), "pose": (-0.5, 0.1)}
    deciders = made.generators[:n_deciders]
    folder = tabulate(made, tmp_path_factory.mktemp("compared"), FEW, thresholds=thresholds, deciders=deciders)
    compared = plain_confusion.plain_compared(made.slots, deciders)
    for row in read_rows(folder / "multibind_table.csv"):
        found = plain_confusion.plain_found(made.slots, row["generator"])
        subjects = found & compared if row["subset"] == "compared" else found
        assert row["same_subjects"] == str(subjects == compared).lower()
        assert (int(row["compared_subjects"]), int(row["matched"])) == (len(compared), len(subjects))
    written: dict[tuple[str, str], dict] = {}
    for row in read_rows(folder / "multibind_differences.csv"):
        key = row["dimension"], row["measure"]
        written.setdefault((row["generator"], row["other_generator"]), {})[key] = row
    tables = made.slots, made.validity, made.similarities
    for pair in combinations(made.generators, 2):
        n_common, expected = plain_confusion.plain_differences(*tables, compared, pair, thresholds)
        once = {("any" if name in ("miss", "mean_iou") else dimension, name) for dimension, name in expected}
        assert set(written.get(pair, {})) == {key for key in once if key[1] in (*SHARES, "js", "js_macro")}
        for key, row in written.get(pair, {}).items():
            scale, decimals = (1, 6) if key[1].startswith("js") else (100, 2)
            assert int(row["common_subjects"]) == n_common
            assert float(row["difference"]) == pytest.approx(scale * float(expected[key]), abs=0.51 * 10**-decimals)


def test_one_instance_and_one_row_give_subject_rates_and_only_blending(tmp_path):
    made = MadeEvaluation()
    made.fault("one", "instance", [(0, 1), 1], matched=(0,))
    row = row_of(tabulate(made, tmp_path, FACE), "one")
    assert (row["mixed"], row["images"], row["blending"], row["dominance"]) == ("100.00", "0", "", "")
    assert (row["images_one_row"], row["blending_one_row"]) == ("1", "100.00")
    assert (row["mixed_low"], row["mixed_high"]) == ("100.00", "100.00")


def test_undefined_similarity_is_a_lost_subject_never_a_similarity_of_zero(tmp_path):
    made = MadeEvaluation()
    made.add("one", "instance", 2)
    made.measure("one", "instance", "face", [[1, np.nan], [0, 1]], np.eye(2))
    row = row_of(tabulate(made, tmp_path, FACE), "one")
    assert (row["invalid"], row["subjects"], row["success"]) == ("50.00", "1", "100.00")


def test_names_are_escaped_on_the_page(tmp_path):
    made = MadeEvaluation()
    made.fault("<b>&", "instance", [0, 1])
    page = (tabulate(made, tmp_path, FACE) / "multibind_table.html").read_text()
    assert "&lt;b&gt;&amp;" in page
    assert "<b>&" not in page


def broken(made: MadeEvaluation, what: str) -> None:
    if what == "slot is missing":
        made.slots.pop()
    elif what == "validity is missing":
        made.validity.pop()
    elif what == "similarity is missing":
        made.similarities.pop()
    elif what == "similarity too many":
        made.similarities.append(made.similarities[-1] | {"column": "D"})
    elif what == "other matches":
        made.validity[0] |= {"matched": False, "valid_generated": False}
    elif what == "valid without a match":
        made.slots[-1] |= {"matched": False}
        made.validity[-1] |= {"matched": False}
    elif what == "other real crops":
        made.validity[0] |= {"valid_true": False}
    elif what == "two specialists":
        made.validity[0] |= {"specialist": "another"}
    elif what == "other delta":
        made.similarities[0] |= {"delta": 0.5}
    elif what == "unknown generator":
        made.slots[0] |= {"generator": "stranger"}
    elif what == "unknown slot":
        made.slots[0] |= {"slot": "E"}


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("slot is missing", "swap, slot C is missing"),
        ("validity is missing", "validity of one, swap, face, slot C is missing"),
        ("similarity is missing", "similarity of one, swap, face, slot C and C is missing"),
        ("similarity too many", "slot C and D is there"),
        ("other matches", "other slots are matched"),
        ("valid without a match", "not matched has a valid generated crop"),
        ("other real crops", "real crop of one slot A is valid in face for one generator"),
        ("two specialists", "another and plain-face"),
        ("other delta", "delta is not s_gen minus s_gt"),
        ("unknown generator", "generator 'stranger'"),
        ("unknown slot", "slot 'E'"),
    ],
)
def test_tables_that_do_not_belong_together_are_one_line(tmp_path, what, message):
    made = MadeEvaluation()
    made.fault("target", "one", [0, 1, 2])
    made.fault("swap", "one", [1, 0, 2])
    broken(made, what)
    with pytest.raises(UserError) as error:
        read_evaluation(["target", "swap"], ["face"], **made.write(tmp_path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_same_file_twice_is_one_line(tmp_path):
    paths = made_faults(1).write(tmp_path)
    paths["similarities"] *= 2
    with pytest.raises(UserError, match="repeat over the files"):
        read_evaluation(list(FAULTS), ["face"], **paths)


def test_no_instance_is_one_line(tmp_path):
    with pytest.raises(UserError, match="no instance was evaluated"):
        read_evaluation(["one"], ["face"], **MadeEvaluation().write(tmp_path))


def test_subjects_of_other_instances_are_one_line(tmp_path):
    made = made_faults(2)
    evaluation = read_evaluation(made.generators, ["face"], **made.write(tmp_path))
    freeze_subjects(list(FAULTS), made_faults(3).write(tmp_path / "more")["matched"], tmp_path / "compared.parquet")
    with pytest.raises(UserError, match="instance-2"):
        read_compared(tmp_path / "compared.parquet", evaluation)


def test_generator_without_slots_cannot_be_compared(tmp_path):
    paths = made_faults(1).write(tmp_path)
    with pytest.raises(UserError, match="not spoken of for absent"):
        freeze_subjects([*FAULTS, "absent"], paths["matched"], tmp_path / "compared.parquet")


def test_a_generator_that_misses_everyone_is_named_where_nobody_can_be_compared(tmp_path, capsys):
    made = MadeEvaluation()
    for number in range(2):
        for generator, who in FAULTS.items():
            made.fault(generator, f"instance-{number}", who, matched=[] if generator == "swap" else None)
    paths = made.write(tmp_path)
    freeze_subjects(list(FAULTS), paths["matched"], tmp_path / "compared.parquet")
    told = capsys.readouterr().err
    assert "no subject is found in the images of all generators" in told
    assert "swap lacks 6 of 6; leave it out of multibind.scoring.compared_generators" in told
    freeze_subjects([name for name in FAULTS if name != "swap"], paths["matched"], tmp_path / "compared.parquet")
    assert capsys.readouterr().err == ""


def test_other_dimensions_of_the_tables_are_left_aside(tmp_path):
    made = MadeEvaluation()
    made.fault("one", "instance", [1, 0], dimensions=("face", "pose"))
    assert {row["dimension"] for row in read_rows(tabulate(made, tmp_path, FACE) / "multibind_table.csv")} == {
        "face",
        "any",
    }


def test_similarities_keep_every_digit(tmp_path):
    made = MadeEvaluation()
    made.fault("one", "instance", [1, 0])
    paths = made.write(tmp_path)
    back = read_table(SIMILARITIES, paths["similarities"][0]).to_pylist()
    assert [row["delta"] for row in back] == [row["delta"] for row in made.similarities]
