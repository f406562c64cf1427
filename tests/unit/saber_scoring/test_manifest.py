"""The manifest traces a table back to what made it."""

import json
import subprocess

import bindbench
import numpy as np
import pytest
from bindbench.errors import UserError
from bindbench.manifest import git_state, write_manifest
from bindbench.services.costs import read_costs

SETTINGS = {"questions": {"seed": 3, "nested": 2}, "tables": {"seed": 0}, "embedders": {"nano": {"revision": "abc"}}}


def test_manifest_names_config_versions_seeds_models_and_costs(tmp_path):
    for modality, seconds in (("text", 1.5), ("image", 20.25)):
        fact = {"embedder": "nano", "modality": modality, "seconds": seconds, "identity": {"revision": "abc"}}
        (tmp_path / f"{modality}.json").write_text(json.dumps(fact))
    facts = [tmp_path / "text.json", tmp_path / "image.json"]
    write_manifest(tmp_path / "manifest.json", SETTINGS, facts)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["settings"] == SETTINGS
    assert manifest["seeds"] == {"questions.seed": 3, "tables.seed": 0}
    assert manifest["bindbench"] == bindbench.__version__
    assert manifest["libraries"]["numpy"] == np.__version__
    assert [fact["modality"] for fact in manifest["embeddings"]] == ["text", "image"]
    assert manifest["embeddings"][0]["identity"]["revision"] == "abc"
    assert manifest["embedding_seconds"] == pytest.approx(21.75, abs=0.1)
    assert manifest["tokens"] == 0
    assert manifest["money_usd"] == 0
    bought = {"requests": 5, "refused": 1, "cost_usd": 0.27, "tokens": {"input_text": 300, "output_image": 8835}}
    (tmp_path / "counts.json").write_text('{"questions": 9, "left_out_rejected": 2}')
    write_manifest(tmp_path / "manifest.json", SETTINGS, facts, bought, tmp_path / "counts.json")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert (manifest["money_usd"], manifest["tokens"], manifest["bought"]["refused"]) == (0.27, 9135, 1)
    assert manifest["screening"]["left_out_rejected"] == 2


def test_missing_or_broken_record_is_named(tmp_path):
    with pytest.raises(UserError, match=r"absent\.json: no such file"):
        write_manifest(tmp_path / "manifest.json", {}, [tmp_path / "absent.json"])
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(UserError, match=r"broken\.json: not a record of embeddings; delete it and run again"):
        write_manifest(tmp_path / "manifest.json", {}, [tmp_path / "broken.json"])
    assert not (tmp_path / "manifest.json").exists()


FACT = {"embedder": "nano", "modality": "text", "identity": {}, "seconds": 1.5}


@pytest.mark.parametrize("fact", [{}, [], None, {**FACT, "seconds": "x"}, {**FACT, "seconds": None}, {"seconds": 1}])
def test_a_record_that_lacks_what_the_manifest_tells_is_refused(tmp_path, fact):
    path = tmp_path / "text.json"
    path.write_text(json.dumps(fact))
    with pytest.raises(UserError, match=r"text\.json: not a record of embeddings; delete it and run again"):
        write_manifest(tmp_path / "manifest.json", {}, [path])


def test_counts_of_questions_are_not_guessed(tmp_path):
    (tmp_path / "text.json").write_text(json.dumps(FACT))
    (tmp_path / "counts.json").write_text("{}")
    with pytest.raises(UserError, match=r"counts\.json: not a record of screening; delete it and run again"):
        write_manifest(tmp_path / "manifest.json", {}, [tmp_path / "text.json"], None, tmp_path / "counts.json")


RECORD = {"requests": 2, "refused": {}, "cost_usd": 0.1, "tokens": {"output_image": 5}}


@pytest.mark.parametrize(
    "record", [{}, [], None, {**RECORD, "cost_usd": "x"}, {**RECORD, "refused": 1}, {**RECORD, "tokens": {"a": None}}]
)
def test_a_record_of_images_that_lacks_its_costs_is_refused(tmp_path, record):
    path = tmp_path / "0000.json"
    path.write_text(json.dumps(RECORD))
    assert read_costs([path, path])["cost_usd"] == 0.2
    path.write_text(json.dumps(record))
    with pytest.raises(UserError, match=r"0000\.json: not a record of what was bought; delete it and run again"):
        read_costs([path])


def git(folder, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def test_commit_is_recorded_and_a_changed_file_makes_it_dirty(tmp_path):
    module = tmp_path / "manifest.py"
    module.write_text("one")
    git(tmp_path, "init", "-q")
    assert git_state(tmp_path) is None  # a repository that does not track the package says nothing about it
    git(tmp_path, "add", "manifest.py")
    git(tmp_path, "commit", "-q", "-m", "one")
    state = git_state(tmp_path)
    assert len(state["commit"]) == 40
    assert state["dirty"] is False
    (tmp_path / "new.txt").write_text("untracked files do not matter")
    assert git_state(tmp_path) == state
    module.write_text("two")
    assert git_state(tmp_path) == {**state, "dirty": True}
