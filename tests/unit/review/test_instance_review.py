"""The server of MultiBind's review: parts with their bytes, verdicts that belong to them, and only what is known is served."""

import json

import pytest
import review_client
from bindbench.errors import UserError
from bindbench.multibind.parts import KEY, crop_digest, rejected_parts
from bindbench.multibind.reviewing import REASONS, InstanceReview
from bindbench.review.journal import Journal, append_proposal
from bindbench.review.serving import FRAME
from review_client import PRESS

TABLES = ("selected", "crops", "references", "backgrounds", "annotations", "prompts")


def serving(made):
    return review_client.serving(InstanceReview(*(made.path(name) for name in TABLES), made.journal, by="Ada"))


@pytest.fixture
def client(multibind):
    with serving(multibind) as client:
        yield client


def part_of(client, instance, part, slot=""):
    return next(
        one for one in client.get(f"/instances/{instance}")["parts"] if (one["part"], one["slot"]) == (part, slot)
    )


def verdict(part, verdict="accepted", reason=None):
    return {"part": part["id"], "sha256": part["sha256"], "verdict": verdict, "reason": reason}


def test_every_part_of_an_instance_is_judged_by_itself(client, multibind):
    state = client.get("/state")
    assert [(one["instance"], one["subjects"], len(one["parts"])) for one in state["instances"]] == [
        ("coco-a", 2, 8),
        ("folder-b", 3, 10),
        ("coco-c", 4, 12),
    ]
    shown = client.get("/instances/coco-c")
    assert [(part["part"], part["slot"]) for part in shown["parts"]] == [
        ("instance", ""),
        *(("crop", slot) for slot in "ABCD"),
        *(("reference", slot) for slot in "ABCD"),
        *((part, "") for part in ("background", "annotation", "prompt")),
    ]
    assert part_of(client, "coco-c", "crop", "D")["sha256"] == crop_digest(multibind.row("crops", "coco-c", "D"))
    assert {part["part"] for part in shown["parts"]} == set(REASONS)
    assert [slot for slot, _ in shown["prompt"] if slot] == list("ABCD")
    assert [subject["box"] for subject in shown["subjects"]] == [
        multibind.row("crops", "coco-c", s)["box"] for s in "ABCD"
    ]
    assert part_of(client, "coco-c", "crop", "A")["outline"].startswith("M")


def test_pictures_are_served_with_the_bytes_of_the_tables(client, multibind):
    for name, table, slot in [("target", "selected", None), ("background", "backgrounds", None), ("crop_B", "crops", "B"),
                              ("reference_A", "references", "A")]:  # fmt: skip
        row = multibind.row(table, "coco-a", slot)
        column = name.split("_")[0]
        folder = "selected" if table in ("selected", "crops") else table
        response, data = client.ask("GET", f"/pictures/coco-a/{name}")
        assert response.getheader("Content-Type") == "image/png"
        assert data == (multibind.folder / folder / row[column]).read_bytes()
        (multibind.folder / folder / row[column]).write_bytes(b"another")
        response, data = client.ask("GET", f"/pictures/coco-a/{name}")
        assert response.status == 409 and b"was made again" in data
        (multibind.folder / folder / row[column]).unlink()
        assert client.ask("GET", f"/pictures/coco-a/{name}")[0].status == 404


@pytest.mark.parametrize(
    "path",
    ["/pictures/coco-a/../../selected.parquet", "/pictures/coco-a/crop", "/pictures/coco-a/crop_C", "/pictures/coco-a/target_A",
     "/pictures/nothing/target", "/pictures/coco-a/mask_A", "/instances/nothing", "/instances/", "/pictures/coco-a/"],
)  # fmt: skip
def test_only_what_is_known_is_served(client, path):
    assert client.ask("GET", path)[0].status == 404


def test_without_the_token_only_the_page_is_told_which_asks_for_nothing_outside(client):
    for path in ("/state", "/instances/coco-a", "/pictures/coco-a/target"):
        assert client.ask("GET", path, token=False)[0].status == 403
    for path in FRAME | InstanceReview.pages:
        response, data = client.ask("GET", path, token=False)
        assert response.status == 200 and b"://" not in data and b"innerHTML" not in data and b"style=" not in data


def test_verdicts_of_many_parts_go_into_the_journal_in_one_press_and_are_undone_together(client, multibind):
    parts = client.get("/instances/coco-c")["parts"]
    status, answer = client.press(*map(verdict, parts))
    assert status == 200 and {standing["verdict"] for standing in answer["standings"].values()} == {"accepted"}
    lines = [json.loads(line) for line in multibind.journal.read_text().splitlines()]
    assert [line["part"] for line in lines] == [part["id"] for part in parts] and {line["by"] for line in lines} == {
        "Ada"
    }
    status, answer = client.press(press="f" * 32, undoes=PRESS)
    assert {standing["verdict"] for standing in answer["standings"].values()} == {"open"} and len(
        answer["standings"]
    ) == 12


def test_a_rejection_is_told_to_the_makers_and_a_part_made_again_is_open(client, multibind):
    background = part_of(client, "coco-a", "background")
    assert client.press(verdict(background, "rejected"))[0] == 400  # without a reason
    client.press(verdict(background, "rejected", "a person is left"), verdict(part_of(client, "coco-a", "prompt")))
    assert rejected_parts(multibind.journal) == {("coco-a", "background", ""): {background["sha256"]}}
    multibind.remake("backgrounds", "coco-a", None, 9)
    assert client.press(verdict(background), press="e" * 32)[0] == 200  # of what this review has shown
    with serving(multibind) as again:
        standings = again.get("/state")["standings"]
        assert "coco-a/background" not in standings and standings["coco-a/prompt"]["verdict"] == "accepted"
        assert again.press(verdict(background), press="d" * 32)[0] == 409


def test_a_text_that_changed_is_open_again(client, multibind):
    client.press(verdict(part_of(client, "coco-a", "prompt")), verdict(part_of(client, "coco-a", "annotation")))
    multibind.row("prompts", "coco-a")["prompt"] += "\n\nCamera: The picture has a grain."
    multibind.write()
    with serving(multibind) as again:
        assert set(again.get("/state")["standings"]) == {"coco-a/annotation"}


def test_what_was_not_made_is_shown_with_its_problems_and_cannot_be_judged(multibind):
    multibind.row("references", "coco-a", "B").update(reference=None, sha256=None, problems=["refused"])
    multibind.write()
    with serving(multibind) as client:
        part = part_of(client, "coco-a", "reference", "B")
        assert (part["sha256"], part["problems"]) == (None, ["refused"])
        entry = client.get("/state")["instances"][0]
        assert part["id"] not in entry["parts"] and entry["problems"]
        assert client.press(verdict(part | {"sha256": "0" * 64}))[0] == 404


def test_before_the_later_stages_what_there_is_can_be_judged(multibind):
    for name in ("references", "backgrounds", "annotations", "prompts"):
        multibind.path(name).unlink()
    with serving(multibind) as client:
        assert [part["part"] for part in client.get("/instances/coco-a")["parts"] if part["sha256"]] == [
            "instance",
            "crop",
            "crop",
        ]
        assert client.press(verdict(part_of(client, "coco-a", "crop", "A"), "rejected", "mask leaks"))[0] == 200


def test_a_mask_that_is_another_one_is_told_and_not_outlined(client, multibind):
    path = multibind.folder / multibind.path("selected").stem / multibind.row("crops", "coco-a", "A")["mask_file"]
    path.write_bytes(b"another")
    part = part_of(client, "coco-a", "crop", "A")
    assert "made again" in part["trouble"] and "outline" not in part


def test_a_proposal_of_a_model_stays_open_until_a_person_judges(client, multibind):
    part = part_of(client, "coco-a", "annotation")
    append_proposal(Journal(multibind.journal, KEY), part["id"], part["sha256"], "rejected", "wrong relation", "model")
    standing = client.get("/state")["standings"][part["id"]]
    assert standing["verdict"] == "open" and standing["proposal"]["reason"] == "wrong relation"
    assert rejected_parts(multibind.journal) == {}


def test_a_journal_of_another_page_and_a_set_without_instances_are_told(multibind):
    multibind.journal.parent.mkdir()
    multibind.journal.write_text(json.dumps({"scene": "a", "sha256": "0" * 64, "verdict": "open"}) + "\n")
    paths = [multibind.path(name) for name in TABLES]
    with pytest.raises(UserError, match="part is missing"):
        InstanceReview(*paths, multibind.journal)
    for rows in multibind.rows.values():
        rows.clear()
    multibind.write()
    with pytest.raises(UserError, match="no instance was selected"):
        InstanceReview(*paths, multibind.folder / "none.jsonl")
