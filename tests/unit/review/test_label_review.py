"""The server of the page of labels: what is asked first, what the page is told, and what comes of its presses."""

import itertools
import json

import numpy as np
import pytest
import review_client
from bindbench.config.multibind_scoring import Scoring
from bindbench.errors import UserError
from bindbench.multibind.evaluation_tables import LABELS, THRESHOLDS
from bindbench.multibind.labelling import LabelReview, evaluation_files, sampled_crops
from bindbench.multibind.similarity_arrays import read_evaluation
from bindbench.multibind.thresholds import Default, write_thresholds
from bindbench.paths import resolve
from bindbench.tables import read_table
from synthetic_people import random_evaluation

SCORING = Scoring(dimensions=("face", "pose"), bootstrap_rounds=100)
PRESSES = (f"{number:032x}" for number in itertools.count())


def serving(labelling, by="Ada", **more):
    return review_client.serving(LabelReview(labelling.files, SCORING, labelling.labels, by, **more))


def press(client, crop, **answers):
    """answers: verdicts by column."""
    verdicts = [
        {"label": f"{crop['crop']}/{column}", "sha256": crop["sha256"], "verdict": verdict}
        for column, verdict in answers.items()
    ]
    return client.press(*verdicts, press=next(PRESSES))


def crops(client):
    return [client.get(f"/crops/{name}") for name, *_ in client.get("/state")["crops"]]


def found(labelling):
    return read_table(LABELS, labelling.labels).to_pylist()


def test_each_key_is_a_label_of_its_pair_in_the_table_at_once(labelling):
    with serving(labelling, blind=False) as client:
        crop = next(crop for crop in crops(client) if crop["instance"] == "folder-b")
        others = [column for column in "ABC" if column != crop["slot"]]
        assert found(labelling) == []
        status, answer = press(client, crop, **{crop["slot"]: "no"})
        assert status == 200 and {standing["verdict"] for standing in answer["standings"].values()} == {"no"}
        press(client, crop, **{others[0]: "yes", others[1]: "unclear"})
        same = {"generator": crop["generator"], "instance": "folder-b", "dimension": crop["dimension"]}
        same |= {"row": crop["slot"], "by": "Ada", "sha256": crop["sha256"]}
        expected = [same | {"column": crop["slot"], "label": False}, same | {"column": others[0], "label": True}]
        assert found(labelling) == sorted(expected, key=lambda row: row["column"])
        press(client, crop, **{others[0]: "open"})
        assert len(found(labelling)) == 1


def test_what_is_not_known_is_refused(labelling):
    with serving(labelling) as client:
        crop = crops(client)[0]
        assert press(client, crop, E="yes")[0] == 404
        assert press(client, crop, A="accepted")[0] == 400
        assert press(client, crop | {"sha256": "0" * 64}, A="yes")[0] == 409
        assert client.press("no verdict", press=next(PRESSES))[0] == 400
        for picture in ("target_E", "target", "crop_A", "generated_A", "../subjects.parquet"):
            assert client.ask("GET", f"/pictures/{crop['crop']}/{picture}")[0].status == 404
        assert not labelling.journal("Ada").exists()


def test_generators_are_not_named_unless_asked_for(labelling):
    with serving(labelling) as client:
        names = [json.dumps(crops(client)), json.dumps(client.get("/state"))]
        crop = crops(client)[0]
        names.append(json.dumps(press(client, crop, **dict.fromkeys(crop["columns"], "yes"))))
        names.append(json.dumps(press(client, crop | {"sha256": "0" * 64}, A="yes")))
        assert not any(generator in name for generator in ("good", "bad") for name in names)
    with serving(labelling, blind=False) as client:
        assert {crop["generator"] for crop in crops(client)} == {"good", "bad"}


def test_pictures_are_those_of_the_tables_and_the_crop_is_the_person_s_box(labelling):
    import cv2

    with serving(labelling) as client:
        crop = crops(client)[0]
        sizes = {}
        for name in ("generated", "crop", "reference", *(f"target_{column}" for column in crop["columns"])):
            response, data = client.ask("GET", f"/pictures/{crop['crop']}/{name}")
            assert response.status == 200
            sizes[name] = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR).shape[:2]
        assert sizes["generated"] == (crop["height"], crop["width"])
        assert (
            sizes["crop"]
            == tuple(map(int, crop["box"][:1:-1]))
            == sizes["reference"]
            == sizes[f"target_{crop['slot']}"]
        )
        for path in labelling.folder.glob("generated/*/*.png"):
            path.write_bytes(b"another")
        for name in ("generated", "crop"):
            assert client.ask("GET", f"/pictures/{crop['crop']}/{name}")[0].status == 409


def test_annotators_are_apart_and_both_in_the_table(labelling):
    with serving(labelling, "Ada") as ada, serving(labelling, "Bea") as bea:
        crop = crops(ada)[0]
        press(ada, crop, **{crop["slot"]: "yes"})
        assert bea.get("/state")["standings"] == {}
        press(bea, crop, **{crop["slot"]: "no"})
        assert [(row["by"], row["label"]) for row in found(labelling)] == [("Ada", True), ("Bea", False)]


def test_a_picture_generated_again_is_asked_anew_and_its_labels_are_kept_and_told(labelling):
    with serving(labelling, blind=False) as client:
        for crop in crops(client):
            press(client, crop, **dict.fromkeys(crop["columns"], "no"))
    before = found(labelling)
    for instance in ("coco-a", "folder-b"):
        labelling.generate("bad", instance, 7)
    labelling.write()
    stale = sum(row["generator"] == "bad" for row in before)
    with serving(labelling, blind=False) as client:
        state = client.get("/state")
        assert (state["stale"], len(state["standings"])) == (stale, len(before) - stale)
        crop = next(crop for crop in crops(client) if crop["generator"] == "bad")
        press(client, crop, **{crop["slot"]: "yes"})
    assert [row for row in found(labelling) if row in before] == before and len(found(labelling)) == len(before) + 1


def test_labels_of_the_page_calibrate_the_thresholds(labelling, tmp_path):
    """Who is shown is known: the first two people of `bad` have changed places."""
    with serving(labelling, blind=False) as client:
        for crop in crops(client):
            moved = crop["generator"] == "bad" and crop["slot"] in "AB"
            shows = {"A": "B", "B": "A"}[crop["slot"]] if moved else crop["slot"]
            press(client, crop, **{column: "yes" if column == shows else "no" for column in crop["columns"]})
    files, output = labelling.files, tmp_path / "thresholds.parquet"
    tables = files.generators, files.matched, files.validity, files.similarities
    write_thresholds(*tables, labelling.labels, files.generated, resolve(SCORING.default_thresholds), SCORING, output)
    rows = read_table(THRESHOLDS, output).to_pylist()
    assert [(row["source"], row["calibrated"], row["f1"], row["unused"], row["stale"]) for row in rows] == [
        ("labels", True, 1.0, 0, 0)
    ] * 4


@pytest.mark.parametrize("seed", [0, 1])
def test_first_crops_are_of_every_generator_and_dimension_and_every_second_is_near_a_default(tmp_path, seed):
    made = random_evaluation(5, 30, ("one", "two", "three"), ("face", "pose"), gaps=0.1)
    evaluation = read_evaluation(made.generators, ["face", "pose"], **made.write(tmp_path))
    order = sampled_crops(evaluation, {"face": Default({"self": -0.3, "confusion": None}, "made")}, seed)
    assert order == sampled_crops(evaluation, {"face": Default({"self": -0.3, "confusion": None}, "made")}, seed)
    measured = {
        (row["generator"], row["instance"], row["dimension"], row["row"]): row["delta"]
        for row in made.similarities
        if row["row"] == row["column"]
    }
    valid = {tuple(crop) for crop in order}
    assert len(order) == len(valid) and valid <= set(measured)
    for turn in range(5):
        cells = {(crop.generator, crop.dimension) for crop in order[6 * turn : 6 * turn + 6]}
        assert len(cells) == 6
    faces = [abs(measured[tuple(crop)] + 0.3) for crop in order if crop.dimension == "face" and crop.generator == "one"]
    assert faces[0] == min(faces) and faces[2] <= min(faces[3:]) and faces[1:8:2] != sorted(faces)[1:8:2]


def test_what_cannot_be_started_is_told(labelling, tmp_path):
    with pytest.raises(UserError, match="no generator was evaluated yet; first run: snakemake"):
        evaluation_files(tmp_path / "nothing", ["good"])
    labelling.labels.parent.mkdir()
    labelling.labels.write_bytes(b"spoilt")
    with pytest.raises(UserError, match=r"labels\.parquet: .*; mend it"):
        LabelReview(labelling.files, SCORING, labelling.labels, "Ada")
    labelling.labels.unlink()
    (labelling.folder / "similarities" / "bad.parquet").unlink()
    assert labelling.files.generators == ["good"]  # the others can be judged before all are measured
