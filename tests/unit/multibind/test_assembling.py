"""Assembly of MultiBind (section 3.2): what is left out and why, counts by stage, and files that are whole or absent."""

import json
import os

import pytest
from bindbench.config.multibind_quality import Quality
from bindbench.errors import UserError
from bindbench.files import sha256, sha256_of_file
from bindbench.multibind import assembling
from bindbench.multibind.assembling import assemble, write_data_manifest
from bindbench.multibind.parts import (
    KEY,
    Part,
    crop_digest,
    part_id,
    read_part_id,
    rejected_of,
    rejected_parts,
)
from bindbench.multibind.tables import INSTANCES, LEFT_OUT, PART_VERDICTS, SUBJECTS
from bindbench.review.journal import Journal, verdict_line
from bindbench.tables import read_table
from made_multibind import make_multibind


@pytest.fixture
def made(tmp_path):
    return make_multibind(tmp_path, {"coco-a": 2, "folder-b": 3, "coco-c": 4})


def run(made, settings=None, journal=True):
    made.write()
    folder = made.folder / "out"
    assemble(*made.paths, made.journal if journal else None, settings or Quality(), folder)
    return folder


def rows(table, folder, name):
    return read_table(table, folder / f"{name}.parquet").to_pylist()


def lost(folder):
    return {(row["instance"], row["part"], row["slot"], row["reason"]) for row in rows(LEFT_OUT, folder, "left_out")}


def judge(made, instance, part, slot="", verdict="rejected", reason="wrong", digest=None):
    line = verdict_line(
        part_id(instance, part, slot), digest or digest_of(made, instance, part, slot), verdict, reason, "Ada", KEY
    )
    Journal(made.journal, KEY).append(lambda: [line])


def digest_of(made, instance, part, slot=""):
    if part == "instance":
        return made.row("selected", instance)["sha256"]
    if part == "crop":
        return crop_digest(made.row("crops", instance, slot))
    row = made.row(f"{part}s", instance, slot or None)
    return row["sha256"] if "sha256" in row else sha256(row[part])


def test_everything_that_is_whole_stays_with_its_files(made):
    folder = run(made)
    instances, subjects = rows(INSTANCES, folder, "instances"), rows(SUBJECTS, folder, "subjects")
    assert [row["instance"] for row in instances] == ["coco-a", "folder-b", "coco-c"]
    assert [len([row for row in subjects if row["instance"] == name]) for name in ("coco-a", "folder-b", "coco-c")] == [
        2,
        3,
        4,
    ]
    assert {row["verdict"] for row in instances} == {"open"} and lost(folder) == set()
    first = next(row for row in instances if row["instance"] == "coco-a")
    assert first["photograph"] == "coco/a" and first["licence"] == "licence of coco"
    assert first["transforms"] == made.row("selected", "coco-a")["transforms"]
    named = [(row["target"], row["target_sha256"]) for row in instances]
    named += [(row["background"], row["background_sha256"]) for row in instances]
    named += [
        (row[name], row[digest])
        for row in subjects
        for name, digest in (("crop", "crop_sha256"), ("mask_file", "mask_sha256"), ("reference", "reference_sha256"))
    ]
    assert all(sha256_of_file(folder / name) == digest for name, digest in named)
    found = {str(path.relative_to(folder)) for path in (folder / "images").rglob("*.*")}
    assert found == {name for name, _ in named} and "images/coco-a/A_reference.png" in found
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_files_are_hard_links_not_copies(made):
    folder = run(made)
    assert (folder / "images/coco-a/target.png").samefile(made.folder / "selected/targets/coco-a.png")


def test_counts_say_what_each_stage_lost_and_add_up(made):
    made.row("references", "coco-a", "B")["problems"] = ["same_as_other", "small"]
    judge(made, "folder-b", "background", reason="a person is left")
    counts = json.loads((run(made) / "counts.json").read_text())
    assert counts["photographs"] == 5 and counts["selected"] == 3
    assert counts["not_selected"] == {"blurred": 1, "too_few_people": 1}
    assert {stage: number for stage, number in counts["lost"].items() if number} == {
        "reference": 1,
        "rejected by people": 1,
    }
    assert counts["selected"] == counts["instances"] + sum(counts["lost"].values())
    assert counts["reasons"] == {"background: rejected": 1, "reference: same_as_other": 1}
    assert (counts["by_subjects"], counts["by_source"], counts["subjects"]) == ({"4": 1}, {"coco": 1}, 4)


MISSING = {
    "crop": lambda made: made.rows["crops"].remove(made.row("crops", "coco-a", "B")),
    "no reference row": lambda made: made.rows["references"].remove(made.row("references", "coco-a", "A")),
    "reference": lambda made: made.row("references", "coco-a", "A").update(
        reference=None, sha256=None, problems=["refused"]
    ),
    "background": lambda made: made.row("backgrounds", "coco-a").update(
        background=None, sha256=None, people_left=None, problems=["nothing_behind"]
    ),
    "no background row": lambda made: made.rows["backgrounds"].remove(made.row("backgrounds", "coco-a")),
    "annotation": lambda made: made.row("annotations", "coco-a").update(annotation=None, problems=["refused"]),
    "prompt": lambda made: made.row("prompts", "coco-a").update(prompt=None, words=0, problems=["no_annotation"]),
    "no prompt row": lambda made: made.rows["prompts"].remove(made.row("prompts", "coco-a")),
}


@pytest.mark.parametrize("what", MISSING)
def test_an_instance_that_lacks_a_part_is_left_out_and_the_others_stay(made, what):
    MISSING[what](made)
    folder = run(made)
    (row,) = rows(LEFT_OUT, folder, "left_out")
    assert row["instance"] == "coco-a" and row["reason"] == "missing" and row["part"] in what
    assert row["slot"] == {"crop": "B", "reference": "A"}.get(row["part"], "")
    if what == "background":
        assert row["detail"] == "nothing_behind"
    assert {row["instance"] for row in rows(INSTANCES, folder, "instances")} == {"folder-b", "coco-c"}
    assert not (folder / "images/coco-a").exists()


def test_only_the_problems_that_the_config_names_keep_an_instance_out(made):
    made.row("backgrounds", "coco-a").update(people_left=1, problems=["person_left"])
    made.row("prompts", "folder-b")["problems"] = ["wrong_letter"]
    made.row("annotations", "coco-c")["problems"] = ["no_face_B"]
    assert lost(run(made)) == {("coco-a", "background", "", "person_left"), ("folder-b", "prompt", "", "wrong_letter")}
    settings = Quality(background_problems=(), prompt_problems=(), annotation_problems=("no_face",))
    assert lost(run(made, settings)) == {("coco-c", "annotation", "", "no_face_B")}


@pytest.mark.parametrize(
    ("part", "slot"),
    [("instance", ""), ("crop", "B"), ("reference", "A"), ("background", ""), ("annotation", ""), ("prompt", "")],
)
def test_a_rejected_part_keeps_its_instance_out_until_it_was_made_again(made, part, slot):
    judge(made, "coco-a", part, slot, reason="of no use")
    folder = run(made)
    (row,) = rows(LEFT_OUT, folder, "left_out")
    assert (row["part"], row["slot"], row["reason"], row["detail"]) == (part, slot, "rejected", "of no use")
    assert rejected_parts(made.journal) == {("coco-a", part, slot): {digest_of(made, "coco-a", part, slot)}}
    judge(made, "coco-a", part, slot, verdict="open", reason=None)  # taken back
    assert lost(run(made)) == set() and rejected_parts(made.journal) == {}


def test_verdicts_belong_to_what_was_judged_and_older_ones_wait(made):
    judge(made, "coco-a", "reference", "A")
    old = digest_of(made, "coco-a", "reference", "A")
    made.remake("references", "coco-a", "A", 7)
    folder = run(made)
    assert lost(folder) == set()
    verdicts = {(row["instance"], row["part"], row["slot"]): row for row in rows(PART_VERDICTS, folder, "verdicts")}
    row = verdicts["coco-a", "reference", "A"]
    assert (row["verdict"], row["attempt"]) == ("open", 1)
    assert (verdicts["coco-a", "reference", "B"]["verdict"], verdicts["coco-a", "reference", "B"]["attempt"]) == (
        "open",
        0,
    )
    rejected = rejected_parts(made.journal)
    assert rejected == {("coco-a", "reference", "A"): {old}}
    assert rejected_of(rejected, "reference") == {("coco-a", "A"): {old}} and rejected_of(rejected, "background") == {}
    row = made.row("references", "coco-a", "A")
    row["sha256"] = old  # the maker gives the rejected one again: it stands rejected
    assert {reason for *_, reason in lost(run_expecting_files_as_named(made, old))} == {"rejected"}


def run_expecting_files_as_named(made, digest):
    assert digest == made.row("references", "coco-a", "A")["sha256"]
    return run(made)  # the instance is left out, so its file, which is another one by now, is not asked for


def test_accepted_is_who_was_accepted_in_every_part(made):
    for part, slot in [("instance", ""), ("crop", "A"), ("crop", "B"), ("reference", "A"), ("reference", "B"),
                       ("background", ""), ("annotation", "")]:  # fmt: skip
        judge(made, "coco-a", part, slot, "accepted", None)
    verdicts = {row["instance"]: row["verdict"] for row in rows(INSTANCES, run(made), "instances")}
    assert set(verdicts.values()) == {"open"}
    judge(made, "coco-a", "prompt", "", "accepted", None)
    verdicts = {row["instance"]: row["verdict"] for row in rows(INSTANCES, run(made), "instances")}
    assert verdicts == {"coco-a": "accepted", "folder-b": "open", "coco-c": "open"}
    folder = run(made, Quality(require_verdict=True))
    assert [row["instance"] for row in rows(INSTANCES, folder, "instances")] == ["coco-a"]
    assert {reason for *_, reason in lost(folder)} == {"open"}
    assert json.loads((folder / "counts.json").read_text())["lost"]["not judged"] == 2


def test_nothing_left_is_told_in_one_line_with_the_stages(made):
    run(made)
    for row in made.rows["backgrounds"]:
        row["problems"] = ["person_left"]
    with pytest.raises(UserError, match=r"none of its 3 instances is left \(lost at: background 3\)"):
        run(made)
    assert not (made.folder / "out/instances.parquet").exists()


@pytest.mark.parametrize(
    "file", ["selected/targets/coco-a.png", "selected/masks/coco-a_B.png", "references/coco-a_A.png"]
)
def test_a_file_that_is_another_one_or_gone_is_told_and_nothing_looks_whole(made, file):
    path = made.folder / file
    path.write_bytes(b"another")
    with pytest.raises(UserError, match=r"SHA-256 differs.*delete .*parquet and run again"):
        run(made)
    path.unlink()
    with pytest.raises(UserError, match=r"cannot be read.*run again"):
        run(made)
    assert not (made.folder / "out/instances.parquet").exists() and not (made.folder / "out/images").exists()


class Killed(BaseException):
    pass


@pytest.mark.parametrize("after", range(0, 24, 3))
def test_a_killed_run_never_looks_whole_and_the_next_one_is(made, monkeypatch, after):
    run(made)
    made.remake("backgrounds", "coco-a", None, 9)
    left = iter(range(after))

    def link(*about):
        if next(left, None) is None:
            raise Killed
        return real(*about)

    real = os.link
    with monkeypatch.context() as patch:
        patch.setattr(assembling.os, "link", link)
        with pytest.raises(Killed):
            run(made)
    folder = made.folder / "out"
    assert not (folder / "instances.parquet").exists()
    test_everything_that_is_whole_stays_with_its_files(made)


def test_a_run_that_is_killed_between_the_images_and_the_tables_is_made_up_for(made, monkeypatch):
    run(made)
    with monkeypatch.context() as patch:
        patch.setattr(assembling, "write_table", lambda *about: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            run_without_writing(made)
    assert not (made.folder / "out/instances.parquet").exists()
    test_everything_that_is_whole_stays_with_its_files(made)


def run_without_writing(made):
    assemble(*made.paths, made.journal, Quality(), made.folder / "out")


def test_an_instance_that_is_lost_later_loses_its_folder(made):
    run(made)
    judge(made, "coco-a", "prompt")
    folder = run(made)
    assert sorted(path.name for path in (folder / "images").iterdir()) == ["coco-c", "folder-b"]


def test_without_hard_links_files_are_copied_once_and_taken_over(made, monkeypatch):
    sources = [made.folder / name for name in ("selected", "references", "backgrounds")]
    real = os.link

    def link(source, path):
        if any(source.is_relative_to(folder) for folder in sources):
            raise OSError(18, "Invalid cross-device link")
        return real(source, path)

    monkeypatch.setattr(assembling.os, "link", link)
    folder = run(made)
    target = folder / "images/coco-a/target.png"
    assert not target.samefile(made.folder / "selected/targets/coco-a.png")
    inode = target.stat().st_ino
    made.remake("backgrounds", "coco-a", None, 9)
    run(made)
    assert target.stat().st_ino == inode  # taken over
    assert sha256_of_file(folder / "images/coco-a/background.png") == made.row("backgrounds", "coco-a")["sha256"]
    target.write_bytes(b"damaged")
    run(made)
    assert sha256_of_file(target) == made.row("selected", "coco-a")["sha256"]


def test_the_same_inputs_give_the_same_tables(made):
    folder = run(made)
    before = {path.name: path.read_bytes() for path in folder.glob("*.*")}
    run(made)
    assert {path.name: path.read_bytes() for path in folder.glob("*.*")} == before


def test_without_a_journal_nobody_has_judged(made):
    folder = run(made, journal=False)
    assert {row["verdict"] for row in rows(PART_VERDICTS, folder, "verdicts")} == {"open"} and rejected_parts(
        None
    ) == {}


def test_a_journal_of_saber_is_refused(made):
    line = verdict_line("i2-0.query", "0" * 64, "rejected", "cut off", None)
    Journal(made.journal).append(lambda: [line])
    with pytest.raises(UserError, match=r"line 1: not a verdict \(part is missing\)"):
        run(made)


@pytest.mark.parametrize("name", ["a", "a/hat", "a/crop", "a/prompt/A", "a/crop/A/B", "/", ""])
def test_a_name_that_is_no_part_is_passed_over(name):
    assert read_part_id(name) is None


def test_names_of_parts_are_read_back():
    for part, slot in [("instance", ""), ("crop", "D"), ("reference", "A"), ("prompt", "")]:
        assert read_part_id(Part("coco-1.2", part, slot, None).id) == ("coco-1.2", part, slot)


def test_the_manifest_names_models_settings_and_hashes(made):
    folder = run(made)
    tables = folder / "instances.parquet", folder / "subjects.parquet"
    costs = {"requests": 3, "refused": 1, "cost_usd": 0.25, "tokens": {"input_text": 20, "output_image": 1120}}
    write_data_manifest(folder / "manifest.json", {"quality": {"seed": 3}}, *tables, folder / "counts.json", costs)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["models"] == {
        "reference": ["embedded/cutout"],
        "background": ["patchmatch/5"],
        "annotation": ["embedded"],
    }
    assert manifest["tables"]["instances.parquet"] == sha256_of_file(tables[0])
    assert manifest["seeds"] == {"quality.seed": 3} and manifest["counts"]["instances"] == 3
    assert (manifest["bought"], manifest["money_usd"], manifest["tokens"]) == (costs, 0.25, 1140)
    assert {"bindbench", "git", "libraries", "python"} <= manifest.keys()
