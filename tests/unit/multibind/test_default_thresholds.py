"""The uncalibrated thresholds: from images of which it is known who is where; those that ship follow from their recorded labels."""

import csv
import json
from itertools import combinations
from pathlib import Path

import cv2
import numpy as np
import pytest
from bindbench import cli
from bindbench.config.multibind_generators import Generator
from bindbench.config.multibind_scoring import Scoring
from bindbench.devtools.known_photographs import HEIGHT_PX, PEOPLE, write_known_photographs
from bindbench.errors import UserError
from bindbench.multibind.default_thresholds import (
    Fault,
    defaults_csv,
    known_faults,
    labels_of_faults,
    note,
)
from bindbench.multibind.evaluation_tables import DEFAULT_LABELS
from bindbench.multibind.similarity_arrays import read_evaluation
from bindbench.multibind.thresholds import read_defaults
from bindbench.paths import resolve
from bindbench.tables import read_table, write_table
from synthetic_people import MadeEvaluation

FACE = Scoring(dimensions=("face",), bootstrap_rounds=100)
SHIPPED = resolve(Scoring().default_thresholds)
GENERATORS = {
    "target": Generator(kind="target"),
    "swap": Generator(kind="swap", of_three="first_two"),
    "copy": Generator(kind="copy", person="B"),
    "blur": Generator(kind="blur"),
}
# Who is to be seen of three people, by number; None: nobody would be recognised.
SHOWN = {"target": [0, 1, 2], "swap": [1, 0, 2], "copy": [1, 1, 1], "blur": [None] * 3}


def made_faults(names=tuple(GENERATORS), n_instances: int = 3, dimension: str = "face") -> MadeEvaluation:
    made = MadeEvaluation()
    for name in names:
        for number in range(n_instances):
            made.fault(name, f"instance-{number}", SHOWN[name], dimensions=(dimension,))
    return made


def labels_of(made: MadeEvaluation, folder: Path, scoring: Scoring = FACE, slots=("A", "B", "C"), faults=None):
    evaluation = read_evaluation(made.generators, scoring.dimensions, **made.write(folder))
    if faults is None:
        generators = {name: GENERATORS[name] for name in made.generators}
        faults = known_faults(generators, dict.fromkeys(evaluation.instances, slots))
    rows = labels_of_faults(faults, evaluation, scoring.undiagnosable_similarity)
    write_table(DEFAULT_LABELS, rows, folder / "labels.parquet")
    return read_table(DEFAULT_LABELS, folder / "labels.parquet")


def thresholds_of(labels, folder: Path, scoring: Scoring = FACE) -> dict[str, float | None]:
    (folder / "defaults.csv").write_text(defaults_csv(labels, scoring))
    return read_defaults(folder / "defaults.csv")["face"].thresholds


def test_faults_say_who_is_in_each_slot():
    found = known_faults(GENERATORS, {"one": ("A", "B", "C")})
    shows = {name: {fault.slot: fault.shows for fault in found if fault.generator == name} for name in GENERATORS}
    assert shows == {
        "target": {"A": "A", "B": "B", "C": "C"},
        "swap": {"A": "B", "B": "A", "C": "C"},
        "copy": {"A": "B", "B": "B", "C": "B"},
        "blur": {"A": "A", "B": "B", "C": "C"},
    }
    assert {fault.generator for fault in found if fault.degraded} == {"blur"}


def test_a_slight_blur_spoils_nobody_and_one_in_between_says_nothing():
    blurs = {name: Generator(kind="blur", blur=blur) for name, blur in (("slight", 0.004), ("middle", 0.01))}
    found = known_faults(blurs, {"one": ("A", "B")})
    assert [(fault.generator, fault.degraded) for fault in found] == [("slight", False)] * 2


def test_a_generator_of_which_nothing_is_known_is_one_line():
    with pytest.raises(UserError, match="ours: of the kind blend it is not known"):
        known_faults({"ours": Generator(kind="blend")}, {"one": ("A", "B")})


def test_defaults_lie_halfway_between_the_faults_and_the_faultless(tmp_path):
    labels = labels_of(made_faults(), tmp_path)
    # A wrong person loses 0.8 and gains 0.8, a blur loses 1: the nearest to the faultless 0 are 0.8 away.
    assert thresholds_of(labels, tmp_path) == {"self": -0.4, "confusion": 0.4}
    with (tmp_path / "defaults.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["made_with"] == "plain-face"
    assert "3 instances with 9 subjects of target, swap, copy, blur" in row["procedure"]
    assert "self: F1 1.000 (1.000 to 1.000) of 36 labels" in row["procedure"]
    text = note(labels, FACE)
    assert "| face | self | -0.4000 | -0.4000 to -0.4000 | 1.000 | 1.000 to 1.000 | 1.000 | 36 |" in text
    assert "Instances: instance-0, instance-1, instance-2." in text


def test_the_command_writes_thresholds_their_labels_and_a_note(tmp_path):
    made, output = made_faults(), tmp_path / "defaults.csv"
    arguments = ["derive-default-thresholds", "--defaults", str(output), "--config", FACE.model_dump_json()]
    generators = {name: entry.model_dump(exclude_defaults=True) for name, entry in GENERATORS.items()}
    arguments += ["--generation", json.dumps({"generators": generators})]
    for name, paths in made.write(tmp_path).items():
        arguments += [f"--{name}", *map(str, paths)]
    assert cli.main(arguments) == 0
    labels = read_table(DEFAULT_LABELS, tmp_path / "defaults.parquet")
    assert output.read_text() == defaults_csv(labels, FACE)
    assert (tmp_path / "defaults.md").read_text() == note(labels, FACE)
    assert read_defaults(output)["face"].thresholds == {"self": -0.4, "confusion": 0.4}


def test_known_photographs_show_each_pair_of_five_people_once(tmp_path):
    names = write_known_photographs(tmp_path)
    assert len(names) == len(set(names)) == 10 == len(list(tmp_path.iterdir()))
    shown = [{"bus_left", "bus_right"}, {"zidane_left", "zidane_right"}, *(set(name.split("-")) for name in names[2:])]
    assert sorted(map(sorted, shown)) == sorted(map(sorted, combinations(PEOPLE, 2)))
    assert all(cv2.imread(str(tmp_path / f"{name}.jpg")).shape[0] == HEIGHT_PX for name in names[2:])


def test_faults_without_anyone_confused_give_no_confusion_threshold(tmp_path):
    labels = labels_of(made_faults(("target", "blur")), tmp_path)
    assert thresholds_of(labels, tmp_path) == {"self": -0.5, "confusion": None}
    assert "- face, confusion: no label says that it holds." in note(labels, FACE)


def test_faultless_people_alone_give_no_threshold(tmp_path):
    labels = labels_of(made_faults(("target",)), tmp_path)
    assert thresholds_of(labels, tmp_path) == {"self": None, "confusion": None}
    assert "- face, self: no label says that it does not hold." in note(labels, FACE)


def test_a_threshold_from_one_instance_alone_is_no_default(tmp_path):
    labels = labels_of(made_faults(n_instances=1), tmp_path)
    assert thresholds_of(labels, tmp_path) == {"self": None, "confusion": None}
    assert "all labels are of one instance" in note(labels, FACE)


def test_what_does_not_tell_the_faults_apart_is_left_empty_with_the_reason(tmp_path):
    """Delta without any tie to who is shown: no threshold is much better than calling everything consistent."""
    labels = labels_of(made_faults(("target", "swap", "copy"), n_instances=6), tmp_path)
    noise = np.random.default_rng(0).normal(size=len(labels))
    labels = labels.set_column(labels.schema.get_field_index("delta"), "delta", [noise])
    assert thresholds_of(labels, tmp_path) == {"self": None, "confusion": None}
    assert "it does not tell the labels apart" in (tmp_path / "defaults.csv").read_text()


def test_near_identical_people_say_nothing(tmp_path):
    """Nor do they on the diagonal: who stands like the other still stands like himself after a swap (M-21)."""
    made = made_faults(("target", "swap"))
    s_gt = np.array([[1.0, 0.99, 0.2], [0.99, 1.0, 0.2], [0.2, 0.2, 1.0]])
    for generator, who in (("target", [0, 1, 2]), ("swap", [1, 0, 2])):
        made.add(generator, "twins", 3)
        made.measure(generator, "twins", "face", s_gt[who], s_gt)
    labels = labels_of(made, tmp_path)
    pairs = {
        (row["generator"], row["row"] + row["column"]): row["label"]
        for row in labels.to_pylist()
        if row["instance"] == "twins"
    }
    of_target = {pair: pair in ("AA", "BB", "CC") for pair in ("AA", "AC", "BB", "BC", "CA", "CB", "CC")}
    of_swap = {pair: pair == "CC" for pair in ("AC", "BC", "CA", "CB", "CC")}
    assert pairs == {
        (name, pair): label for name, of in (("target", of_target), ("swap", of_swap)) for pair, label in of.items()
    }
    assert thresholds_of(labels, tmp_path) == {"self": -0.4, "confusion": 0.4}


def test_a_blurred_person_still_stands_as_before(tmp_path):
    pose = Scoring(dimensions=("pose",), bootstrap_rounds=100)
    labels = labels_of(made_faults(("target", "swap", "blur"), dimension="pose"), tmp_path, pose)
    assert set(labels["generator"].to_pylist()) == {"target", "swap"}


def test_fault_of_an_unknown_instance_is_one_line(tmp_path):
    faults = [Fault("target", "absent", "A", "A", False)]
    with pytest.raises(UserError, match="instance 'absent'"):
        labels_of(made_faults(("target",)), tmp_path, faults=faults)


def test_defaults_that_ship_follow_from_their_recorded_labels():
    """resources/multibind/default_thresholds.* are one run of config/default_thresholds.yaml."""
    table = SHIPPED.with_suffix(".parquet")
    labels = read_table(DEFAULT_LABELS, table)
    assert SHIPPED.read_text() == defaults_csv(labels, Scoring())
    assert SHIPPED.with_suffix(".md").read_text() == note(labels, Scoring())
    assert table.stat().st_size < 50_000
    assert list(read_defaults(SHIPPED)) == list(Scoring().dimensions)


@pytest.mark.parametrize(
    ("dimension", "own", "other", "expected"),
    [
        ("face", (0.0,), (0.0,), "success"),
        ("face", (-0.89, -0.96), (0.43, 0.86), "replaced"),  # a swap, and the row that a copy replaces
        ("appearance", (0.0,), (0.0,), "success"),
        ("appearance", (-0.29, -0.35), (0.29, 0.33), "replaced"),
        ("appearance", (-0.66, -0.74), (-0.36, -0.43), "drift"),  # a blur; a face is then invalid
    ],
)
def test_defaults_that_ship_tell_the_faults_of_two_photographs_apart(dimension, own, other, expected):
    """Delta on and off the diagonal as it was first measured: boxes cut and pasted, YuNet and SFace, EfficientNet-Lite0."""
    thresholds = read_defaults(SHIPPED)[dimension].thresholds
    cells = {(True, False): "success", (False, False): "drift", (False, True): "replaced", (True, True): "mixed"}
    for diagonal in own:
        for off_diagonal in other:
            assert cells[diagonal >= thresholds["self"], off_diagonal >= thresholds["confusion"]] == expected
