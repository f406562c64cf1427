"""Section 3.4 and M-3 to M-6: thresholds with the highest F1, on instances that were not seen, and the documented defaults."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from bindbench.config.multibind_scoring import Scoring
from bindbench.errors import UserError
from bindbench.multibind.evaluation_tables import LABELS, THRESHOLDS
from bindbench.multibind.similarity_arrays import read_evaluation
from bindbench.multibind.thresholds import (
    Judged,
    best_threshold,
    bootstrap_choice,
    calibrate,
    cross_validated_f1,
    f1_score,
    judged_labels,
    read_defaults,
    write_thresholds,
)
from bindbench.paths import resolve
from bindbench.tables import read_table, write_table
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from sklearn.metrics import f1_score as peer_f1
from synthetic_people import MadeEvaluation, picture_of

FACE = Scoring(dimensions=("face",), bootstrap_rounds=100)
DEFAULTS = resolve(Scoring().default_thresholds)
ROWS = st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=1, max_size=14)


def brute_force(scores: list[float], labels: list[bool]) -> float | None:
    """Every candidate by the words of M-4."""
    if not any(labels):
        return None
    distinct = sorted(set(scores))
    candidates = [-math.inf, *((a + b) / 2 for a, b in pairwise(distinct)), math.inf]
    best = None
    for candidate in candidates:
        hits = sum(label for score, label in zip(scores, labels, strict=True) if score >= candidate)
        predicted = sum(score >= candidate for score in scores)
        f1 = 2 * hits / (predicted + sum(labels))
        precision = hits / predicted if predicted else 0.0
        if best is None or (f1, precision, candidate) > best:
            best = (f1, precision, candidate)
    return best[2]


@settings(max_examples=100, deadline=None)
@given(ROWS)
def test_threshold_is_that_of_trying_every_candidate(rows):
    scores, labels = [score / 4 for score, _ in rows], [label for _, label in rows]
    chosen = best_threshold(np.array(scores), np.array(labels))
    expected = brute_force(scores, labels)
    assert (None if chosen is None else chosen.threshold) == expected
    if chosen is not None:
        predicted = np.array(scores) >= chosen.threshold
        assert chosen.f1 == pytest.approx(peer_f1(labels, predicted), abs=1e-15)
        assert chosen.f1 == f1_score(predicted, np.array(labels))


@settings(max_examples=50, deadline=None)
@given(ROWS, st.data())
def test_weight_is_as_many_labels(rows, data):
    scores, labels = np.array([score / 4 for score, _ in rows]), np.array([label for _, label in rows])
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    repeated = best_threshold(np.repeat(scores, weights), np.repeat(labels, weights)) if weights.any() else None
    assert best_threshold(scores, labels, weights.astype(float)) == repeated


def test_threshold_lies_halfway_between_the_neighbours_it_separates():
    chosen = best_threshold(np.array([-0.9, -0.5, 0.0, -0.1]), np.array([False, False, True, True]))
    assert chosen == (-0.3, 1.0, 1.0, 1.0)


def test_equal_f1_is_decided_by_precision():
    # At or above 3: 1 of 1, F1 2/3. At or above 1: 2 of 4, F1 2/3.
    chosen = best_threshold(np.array([3.0, 2.0, 2.0, 1.0]), np.array([True, False, False, True]))
    assert (chosen.threshold, chosen.precision) == (2.5, 1.0)


def test_only_positive_labels_accept_everything_and_none_gives_no_threshold():
    assert best_threshold(np.array([0.5, 0.1]), np.array([True, True])).threshold == -math.inf
    assert best_threshold(np.array([0.5, 0.1]), np.array([False, False])) is None
    assert best_threshold(np.array([]), np.array([], dtype=bool)) is None


def test_neighbouring_numbers_are_told_apart():
    low = 0.3
    high = np.nextafter(low, 1)
    chosen = best_threshold(np.array([low, high]), np.array([False, True]))
    assert (low >= chosen.threshold, high >= chosen.threshold) == (False, True)


def judged(seed: int, n_instances: int = 30, noise: float = 0.3) -> Judged:
    """Three labels an instance; positive ones lie higher by one."""
    draw = np.random.default_rng(seed)
    labels = draw.random(3 * n_instances) < 0.4
    return Judged(labels + draw.normal(0, noise, len(labels)), labels, np.repeat(np.arange(n_instances), 3))


def test_cross_validation_judges_an_instance_by_others_only():
    """Each instance has scores of its own level: its labels go into one fold, and a threshold from the other misjudges it."""
    own = Judged(np.array([0.0, 1.0, 10.0, 11.0]), np.array([False, True, False, True]), np.array([0, 0, 1, 1]))
    assert cross_validated_f1(own, folds=2, seed=0) == 0.5  # from 10.5 the first has none, from 0.5 the second has two
    separable = judged(0, noise=0.01)
    assert cross_validated_f1(separable, folds=5, seed=0) == 1.0
    assert cross_validated_f1(separable, folds=100, seed=0) == 1.0  # no more folds than instances


def test_cross_validation_needs_two_instances_and_a_positive_label_elsewhere():
    assert math.isnan(cross_validated_f1(Judged(np.array([0.0, 1.0]), np.array([False, True]), np.zeros(2, int)), 5, 0))
    single = Judged(np.array([0.0, 1.0]), np.array([False, True]), np.array([0, 1]))
    assert cross_validated_f1(single, folds=2, seed=0) == 0.0


def test_bootstrap_holds_the_choice_and_narrows_with_more_instances():
    widths = []
    for n_instances in (20, 200):
        data = judged(3, n_instances)
        chosen = best_threshold(data.scores, data.labels)
        thresholds, f1 = bootstrap_choice(data, chosen.threshold, FACE.model_copy(update={"bootstrap_rounds": 300}))
        assert thresholds[0] <= chosen.threshold <= thresholds[1]
        assert f1[0] <= chosen.f1 <= f1[1]
        widths.append(f1[1] - f1[0])
    assert widths[1] < widths[0] / 2


def test_bootstrap_of_one_instance_has_no_width_and_infinite_thresholds_are_no_trouble():
    data = Judged(np.array([0.5, 0.25]), np.array([True, True]), np.array([7, 7]))
    thresholds, f1 = bootstrap_choice(data, -math.inf, FACE)
    assert thresholds.tolist() == [-math.inf, -math.inf]
    assert f1.tolist() == [1.0, 1.0]


def made_instances(**valid) -> MadeEvaluation:
    """Two generators, three instances of two people each."""
    made = MadeEvaluation()
    for number in range(3):
        made.fault("good", f"instance-{number}", [0, 1], dimensions=("face", "pose"), **valid)
        made.fault("bad", f"instance-{number}", [1, 0], dimensions=("face", "pose"), **valid)
    return made


def label(generator: str, instance: str, row: str, column: str, value: bool, dimension: str = "face") -> dict:
    return {
        **{"generator": generator, "instance": instance, "dimension": dimension},
        **{"row": row, "column": column, "label": value, "by": "somebody"},
        "sha256": picture_of(generator, instance),
    }


def true_labels(dimension: str = "face", of_pair: bool = True) -> list[dict]:
    rows = []
    for number in range(3):
        for generator in ("good", "bad"):
            for row, other in (("A", "B"), ("B", "A")):
                rows.append(label(generator, f"instance-{number}", row, row, generator == "good", dimension))
                column = other if of_pair else ""
                rows.append(label(generator, f"instance-{number}", row, column, generator == "bad", dimension))
    return rows


def labels_table(rows: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(rows, LABELS.schema)


def evaluated(made: MadeEvaluation, folder: Path, dimensions=("face", "pose")):
    return read_evaluation(made.generators, list(dimensions), **made.write(folder))


@pytest.mark.parametrize("of_pair", [True, False])
def test_labels_of_all_generators_together_give_both_thresholds(tmp_path, of_pair):
    evaluation = evaluated(made_instances(), tmp_path)
    own, confusion = calibrate(labels_table(true_labels(of_pair=of_pair)), evaluation, "face", FACE)
    assert own["threshold"] == pytest.approx(-0.4)  # a swapped person loses 0.8
    assert confusion["threshold"] == pytest.approx(0.4)
    assert [(row["f1"], row["f1_cross_validated"], row["labels"], row["positive"]) for row in (own, confusion)] == [
        (1.0, 1.0, 12, 6)
    ] * 2
    assert (own["labelled"], confusion["labelled"]) == ("pair", "pair" if of_pair else "crop")
    assert all(
        row["calibrated"] and row["source"] == "labels" and row["made_with"] == "plain-face" for row in (own, confusion)
    )


def test_labels_of_crops_are_used_only_where_no_pair_is_labelled(tmp_path):
    evaluation = evaluated(made_instances(), tmp_path)
    rows = [*true_labels(), label("good", "instance-0", "A", "", True)]
    found, labelled, unused = judged_labels(labels_table(rows), evaluation, "face", "confusion")
    assert (len(found.labels), labelled, unused) == (12, "pair", 1)


def test_label_of_a_crop_stands_beside_the_largest_delta_of_its_row(tmp_path):
    made = MadeEvaluation()
    made.fault("one", "instance", [(0, 2), 1, 2])
    evaluation = evaluated(made, tmp_path, ("face",))
    found, _, _ = judged_labels(
        labels_table([label("one", "instance", "A", "", True)]), evaluation, "face", "confusion"
    )
    assert found.scores.tolist() == [
        max(row["delta"] for row in made.similarities if row["row"] == "A" != row["column"])
    ]


def test_labels_of_invalid_crops_and_of_other_generators_are_unused(tmp_path):
    evaluation = evaluated(made_instances(valid_generated=(0,)), tmp_path)
    rows = [*true_labels(), label("absent", "instance-0", "A", "A", True), label("good", "absent", "A", "A", True)]
    found, _, unused = judged_labels(labels_table(rows), evaluation, "face", "self")
    assert (len(found.labels), unused) == (6, 8)
    assert np.isfinite(found.scores).all()


def test_label_of_an_unknown_slot_is_one_line(tmp_path):
    evaluation = evaluated(made_instances(), tmp_path)
    with pytest.raises(UserError, match="slot 'E' does not exist"):
        judged_labels(labels_table([label("good", "instance-0", "A", "E", True)]), evaluation, "face", "confusion")


def thresholds_of(
    made: MadeEvaluation, folder: Path, labels: list[dict] | None, scoring: Scoring, again: tuple[str, ...] = ()
) -> dict:
    paths = made.write(folder)
    if labels is not None:
        write_table(LABELS, labels, folder / "labels.parquet")
    write_thresholds(
        made.generators,
        *paths.values(),
        None if labels is None else folder / "labels.parquet",
        made.write_generated(folder, again),
        DEFAULTS,
        scoring,
        folder / "thresholds.parquet",
    )
    rows = read_table(THRESHOLDS, folder / "thresholds.parquet").to_pylist()
    return {(row["dimension"], row["kind"]): row for row in rows}


BOTH = Scoring(dimensions=("face", "pose"), bootstrap_rounds=100)


def test_without_labels_the_documented_defaults_stand_in_uncalibrated(tmp_path):
    rows = thresholds_of(made_instances(), tmp_path, None, BOTH)
    known = read_defaults(DEFAULTS)
    for kind in ("self", "confusion"):
        row = rows["face", kind]
        assert (row["threshold"], row["source"]) == (known["face"].thresholds[kind], "default")
        assert not row["calibrated"]
        assert row["made_with"] == known["face"].made_with


def test_dimension_without_labels_and_default_is_left_out_with_the_reason(tmp_path):
    defaults = tmp_path / "defaults.csv"
    defaults.write_text("dimension,self,confusion,procedure,made_with\nface,-0.4,,none yet,\n")
    made = made_instances()
    tables = made.generators, *made.write(tmp_path).values()
    write_thresholds(*tables, None, made.write_generated(tmp_path), defaults, BOTH, tmp_path / "t.parquet")
    rows = {(r["dimension"], r["kind"]): r for r in read_table(THRESHOLDS, tmp_path / "t.parquet").to_pylist()}
    assert rows["face", "self"]["threshold"] == -0.4
    for place in (("face", "confusion"), ("pose", "self"), ("pose", "confusion")):
        assert (rows[place]["threshold"], rows[place]["source"]) == (None, "none")
        assert rows[place]["reason"] == "no labels, and no default in defaults.csv"


def test_labelled_dimension_without_positive_labels_is_left_out_and_not_filled_by_a_default(tmp_path):
    labels = [row | {"label": row["label"] and row["row"] == row["column"]} for row in true_labels()]
    rows = thresholds_of(made_instances(), tmp_path, labels, BOTH)
    assert rows["face", "self"]["calibrated"]
    row = rows["face", "confusion"]
    assert (row["threshold"], row["calibrated"]) == (None, False)
    assert row["reason"] == "of 12 labels none says that a crop is confused with another person"
    assert (row["labels"], row["positive"]) == (12, 0)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda row: True, "of 12 labels none says that a crop is not consistent with its own person"),
        (lambda row: row["generator"] == "bad", "12 labels are not told apart: no threshold is better than"),
    ],
)
def test_labels_that_tell_nothing_apart_give_no_threshold(tmp_path, answer, reason):
    labels = [row | ({"label": answer(row)} if row["row"] == row["column"] else {}) for row in true_labels()]
    rows = thresholds_of(made_instances(), tmp_path, labels, BOTH)
    row = rows["face", "self"]
    assert (row["threshold"], row["source"], row["calibrated"], row["f1"]) == (None, "none", False, None)
    assert row["reason"].startswith(reason)
    assert rows["face", "confusion"]["calibrated"]


def test_a_kind_that_no_usable_label_speaks_of_keeps_its_default(tmp_path):
    own = [row for row in true_labels() if row["row"] == row["column"]]
    rows = thresholds_of(made_instances(), tmp_path, own, BOTH)
    assert [rows["face", kind]["source"] for kind in ("self", "confusion")] == ["labels", "default"]
    elsewhere = [row | {"generator": "another"} for row in own]
    rows = thresholds_of(made_instances(), tmp_path, elsewhere, BOTH)
    assert (rows["face", "self"]["source"], rows["face", "self"]["calibrated"]) == ("default", False)
    assert (rows["face", "self"]["labels"], rows["face", "self"]["unused"]) == (0, len(elsewhere))


def test_a_label_of_an_unknown_dimension_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"labels\.parquet: 'faces' is no dimension; they are face, appearance, pose"):
        thresholds_of(made_instances(), tmp_path, true_labels("faces"), BOTH)


def test_labels_of_one_dimension_leave_the_defaults_of_others(tmp_path):
    scoring = Scoring(dimensions=("face", "appearance"), bootstrap_rounds=100)
    made = MadeEvaluation()
    for number in range(3):
        for generator, who in (("good", [0, 1]), ("bad", [1, 0])):
            made.fault(generator, f"instance-{number}", who, dimensions=("face", "appearance"))
    rows = thresholds_of(made, tmp_path, true_labels("appearance"), scoring)
    assert [rows[d, "self"]["source"] for d in ("face", "appearance")] == ["default", "labels"]


def test_labels_of_pictures_that_were_generated_again_are_counted_and_not_used(tmp_path, capsys):
    wrong = [row | {"label": not row["label"]} for row in true_labels() if row["generator"] == "bad"]
    good = [row for row in true_labels() if row["generator"] == "good"] + [label("bad", "instance-0", "A", "A", False)]
    good += [label("bad", "instance-0", "A", "B", True)]
    old = [row | {"sha256": picture_of(row["generator"], "as it was")} for row in wrong]
    rows = thresholds_of(made_instances(), tmp_path, good + old, BOTH)
    for kind in ("self", "confusion"):
        row = rows["face", kind]
        assert (row["calibrated"], row["f1"], row["labels"], row["unused"], row["stale"]) == (True, 1.0, 7, 0, 6)
        assert rows["pose", kind]["stale"] == 0
    assert "labels.parquet: 12 labels are of pictures that were generated again since" in capsys.readouterr().err
    assert len(read_table(LABELS, tmp_path / "labels.parquet")) == 26  # nothing was deleted


def test_a_dimension_whose_labels_are_all_stale_has_its_defaults_and_is_uncalibrated(tmp_path):
    rows = thresholds_of(made_instances(), tmp_path, true_labels(), BOTH, again=("good", "bad"))
    row = rows["face", "self"]
    assert (row["source"], row["calibrated"], row["labels"], row["stale"]) == ("default", False, 0, 12)


def test_threshold_of_the_config_goes_before_labels_and_is_uncalibrated(tmp_path):
    scoring = Scoring(dimensions=("face",), bootstrap_rounds=100, thresholds={"face": {"confusion": 0.25}})
    rows = thresholds_of(made_instances(), tmp_path, true_labels(), scoring)
    assert (rows["face", "self"]["source"], rows["face", "self"]["calibrated"]) == ("labels", True)
    row = rows["face", "confusion"]
    assert (row["threshold"], row["source"], row["calibrated"]) == (0.25, "config", False)


def test_thresholds_do_not_depend_on_the_order_of_labels(tmp_path):
    labels = true_labels()
    labels[3]["label"] = not labels[3]["label"]
    first = thresholds_of(made_instances(), tmp_path / "a", labels, FACE)
    assert first == thresholds_of(made_instances(), tmp_path / "b", labels[::-1], FACE)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("face,high,0.1,p,m", "row 2: a threshold is not a number"),
        ("face,nan,0.1,p,m", "row 2: a threshold is a number from -2 to 2"),
        ("face,-6443,0.1,p,m", "row 2: a threshold is a number from -2 to 2"),
        ("face,0.1,inf,p,m", "row 2: a threshold is a number from -2 to 2"),
        ("faces,0.1,0.1,p,m", "row 2: 'faces' is no dimension"),
        ("face,-0.1,0.1,p,m\nface,-0.2,0.2,p,m", "row 3: face is there twice"),
        ("face,-0.1", "row 2: has fewer cells"),
        ("", "the list is empty"),
    ],
)
def test_broken_defaults_are_one_line_that_names_the_row(tmp_path, row, message):
    path = tmp_path / "defaults.csv"
    path.write_text(f"dimension,self,confusion,procedure,made_with\n{row}\n")
    with pytest.raises(UserError, match=message) as error:
        read_defaults(path)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    "keys",
    [
        {"dimensions": ("face", "face")},
        {"dimensions": ("colour",)},
        {"js_temperature": 0},
        {"js_temperatures": (0.1, 0.1)},
        {"thresholds": {"face": {"confusion": "high"}}},
        {"thresholds": {"colour": {}}},
        {"bootstrap_rounds": True},
        {"undiagnosable": 0.9},
    ],
)
def test_config_refuses_what_has_no_meaning(keys):
    with pytest.raises(ValidationError):
        Scoring(**keys)


def test_broken_labels_are_to_be_mended_not_deleted(tmp_path):
    """People made them: nothing makes them again."""
    made = MadeEvaluation()
    made.fault("left", "instance", [0, 1])
    labels, output = tmp_path / "labels.parquet", tmp_path / "t.parquet"
    tables = made.generators, *made.write(tmp_path / "made").values()
    for data in (None, b"no table"):
        if data:
            labels.write_bytes(data)
        with pytest.raises(
            UserError, match=r"labels\.parquet: .*; mend it, or set multibind\.scoring\.labels"
        ) as error:
            generated = made.write_generated(tmp_path)
            write_thresholds(*tables, labels, generated, tmp_path / "none.csv", Scoring(dimensions=("face",)), output)
        assert "delete" not in str(error.value)
