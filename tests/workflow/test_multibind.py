"""MultiBind through the whole workflow: from a COCO-format source to the sheet, bought and killed, rejected and made again."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from bindbench.files import sha256_of_file
from bindbench.multibind.parts import KEY, part_id
from bindbench.multibind.tables import BACKGROUNDS, INSTANCES, LEFT_OUT, REFERENCES, REJECTED, SUBJECTS
from bindbench.review.journal import verdict_line
from bindbench.tables import read_table
from fake_services import FakeServices
from kill_at_random import KEY as SECRET
from kill_at_random import files_with_the_key
from made_coco import make_coco
from made_multibind import annotation_of_boxes
from people_models import people_models_folder
from snakemake_runs import command, environment, planned, run

pytestmark = pytest.mark.xdist_group("multibind")
TARGET, SHEET = "results/multibind/instances.parquet", "results/multibind/sheet.html"
MADE = {"made-2": 2, "made-3": 4, "made-4": 2}  # subjects of each instance
REQUESTS = 8 + 3 + 3  # references, backgrounds, annotations
# The server's pictures are of one colour, and Gemini's are square: that must not keep an instance out here.
SMALL = {"references": {"size_px": 256}, "backgrounds": {"longest_px": 256}}  # for speed
QUALITY = {"reference_problems": ["wrong_size"], "background_problems": ["person_left"]}
GEMINI = {
    "references": {"method": "gemini"},
    "backgrounds": {"method": "gemini"},
    "annotation": {"method": "google-genai", "model": "a-gemini"},
    "quality": QUALITY,
}
OPENAI = {
    "references": {"method": "openai"},
    "backgrounds": {"method": "openai"},
    "annotation": {"method": "openai", "model": "a-gpt"},
    "quality": QUALITY,
}
BOUGHT = {"make_references", "make_backgrounds", "annotate_instances", "compile_prompts", "assemble_instances"}


def write_config(path: Path, source: dict, services: dict | None = None, **sections) -> Path:
    values = {"multibind": {"photographs": {"sources": {"made": source}}, **sections}}
    path.write_text(yaml.safe_dump(values | ({"services": services} if services else {})))
    return path


def place_models(directory: Path) -> None:
    """What build_people_models makes, without its download."""
    shutil.copytree(people_models_folder(), directory / "results/multibind/models")


def rows(directory: Path, table, name: str) -> list[dict]:
    return read_table(table, directory / f"results/multibind/{name}.parquet").to_pylist()


def answer(count: int) -> str:
    """What a model says about a photograph of so many subjects."""
    said = json.loads(annotation_of_boxes([[50.0 * place, 10, 40, 120] for place in range(count)]).to_json())
    for subject in said["subjects"].values():
        del subject["position"]
    return json.dumps(said)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory) -> Path:
    """The working directory of a whole embedded run; its config is source.yaml."""
    directory = tmp_path_factory.mktemp("multibind")
    source = make_coco(directory / "coco")
    config = write_config(directory / "source.yaml", source, **SMALL)
    (directory / "source.json").write_text(json.dumps(source))
    place_models(directory)
    run(TARGET, SHEET, "--cores", "2", directory=directory, config=config)
    return directory


def test_from_coco_s_layout_to_the_sheet(embedded):
    folder = embedded / "results/multibind"
    instances = {row["instance"]: row for row in rows(embedded, INSTANCES, "instances")}
    assert {name: row["n_subjects"] for name, row in instances.items()} == MADE
    counts = json.loads((folder / "counts.json").read_text())
    assert counts["photographs"] == 7 and counts["selected"] == counts["instances"] == 3 and counts["subjects"] == 8
    assert counts["not_selected"] == {"crowd": 1, "missing_file": 1, "near_duplicate": 1, "no_people": 1}
    reasons = {row["photograph"]: row["reason"] for row in rows(embedded, REJECTED, "rejected")}
    assert (
        reasons["made/1"] == "near_duplicate"
        and reasons["made/5"] == "missing_file"
        and reasons["made/6"] == "crowd"
        and reasons["made/7"] == "no_people"
    )
    assert "made 7 (5 usable" in (embedded / "results/logs/list_photographs.log").read_text()

    subjects = rows(embedded, SUBJECTS, "subjects")
    assert len(subjects) == 8 and rows(embedded, LEFT_OUT, "left_out") == []
    files = [(row[name], row[f"{name}_sha256"]) for row in instances.values() for name in ("target", "background")]
    files += [(row[name], row[f"{name}_sha256"]) for row in subjects for name in ("crop", "reference")]
    files += [(row["mask_file"], row["mask_sha256"]) for row in subjects]
    assert all(sha256_of_file(folder / file) == digest for file, digest in files)
    assert {str(path.relative_to(folder)) for path in (folder / "images").rglob("*.png")} == {file for file, _ in files}
    for row in instances.values():
        assert row["licence"] == "made in a test"
        letters = set(re.findall(r"Subject ([A-Z])", row["prompt"]))
        assert letters == set("ABCD"[: row["n_subjects"]])

    page = (folder / "sheet.html").read_text()
    assert all(f'id="{name}"' in page for name in MADE) and page.count("data:image") == 2 * 3 + 2 * 8
    assert "made in a test" in (folder / "README.md").read_text()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["tables"]["instances.parquet"] == sha256_of_file(folder / "instances.parquet")
    assert manifest["models"]["reference"] == ["embedded/masked-crop"] and manifest["counts"] == counts
    assert (manifest["money_usd"], manifest["bought"]["requests"]) == (0, 0)
    assert planned(TARGET, SHEET, directory=embedded, config=embedded / "source.yaml") == set()
    (folder / "images").rename(folder / "elsewhere")
    asked = TARGET, "results/multibind/images"  # as rule all does, which asks for all that the rule makes
    assert "assemble_instances" in planned(*asked, directory=embedded, config=embedded / "source.yaml")
    (folder / "elsewhere").rename(folder / "images")


# Bought ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def shop(embedded, tmp_path):
    """A server that speaks for the models, a copy of the embedded run with its photographs chosen, and a config's maker."""
    directory = tmp_path / "run"
    shutil.copytree(embedded, directory, symlinks=True)
    with FakeServices() as server:
        texts = {count: f"exactly the keys {', '.join('ABCD'[:count])}, one" for count in (2, 4)}
        server.texts(*({"text": answer(count), "match": match, "times": 10**6} for count, match in texts.items()))
        services = {
            **{"store": str(tmp_path / "store"), "openai_base_url": f"{server.url}/v1", "gemini_base_url": server.url},
            **{"budget_usd": 100.0, "concurrency": 2, "backoff_s": 0.02},
            "prices": {name: {"input_text": 1, "input_image": 1, "output_text": 2} for name in ("a-gemini", "a-gpt")},
        }
        source = json.loads((embedded / "source.json").read_text())

        def config(**sections) -> Path:
            return write_config(tmp_path / "config.yaml", source, services, **sections)

        yield server, directory, config


def with_keys() -> dict[str, str]:
    return environment() | {"OPENAI_API_KEY": SECRET, "GEMINI_API_KEY": SECRET}


def buy(directory: Path, config: Path, monkeypatch, *targets) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("GEMINI_API_KEY", SECRET)
    run(*(targets or (TARGET,)), "--cores", "2", directory=directory, config=config)


def killed(server, directory: Path, config: Path, after: int) -> None:
    """Starts a run and kills it, with all of its jobs, when the server has seen so many requests."""
    process = subprocess.Popen(
        command(TARGET, "--cores", "2", directory=directory, config=config),
        cwd=directory, env=with_keys(), start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    end = time.time() + 120
    while len(server.seen()) < after and time.time() < end:
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def asked(server) -> list[int]:
    return [entry["count"] for entry in server.seen()]


def estimated(target: str, directory: Path, config: Path) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", "bindbench", "estimate", target, "--configfile", str(config)]
    return subprocess.run(line, cwd=directory, env=environment(), capture_output=True, text=True)


def reject(directory: Path, part: str, row: dict, digest: str) -> None:
    journal = directory / "screening/multibind.jsonl"
    journal.parent.mkdir(exist_ok=True)
    line = verdict_line(part_id(row["instance"], part, row.get("slot", "")), digest, "rejected", "no", "me", KEY)
    with journal.open("a") as file:
        file.write(json.dumps(line) + "\n")


def test_bought_by_gemini_killed_on_the_way_and_a_rejected_part_alone_is_made_again(shop, monkeypatch):
    server, directory, config = shop
    gemini = config(**GEMINI)
    told = estimated(TARGET, directory, gemini)
    assert told.returncode == 0, told.stderr
    assert f"{REQUESTS}, of which the store holds 0" in told.stdout and not server.seen()

    server.faults({"fault": "delay", "seconds": 0.3, "times": 10**9})
    for after in (1, 9):
        killed(server, directory, gemini, after)
    server.faults()
    buy(directory, gemini, monkeypatch)
    assert len(server.seen()) == REQUESTS and set(asked(server)) == {1}
    instances = {row["instance"]: row for row in rows(directory, INSTANCES, "instances")}
    assert {name: row["n_subjects"] for name, row in instances.items()} == MADE
    assert {row["annotation_model"] for row in instances.values()} == {"google-genai/a-gemini"}
    assert all("red shirt" not in row["prompt"] and "Subject B" in row["prompt"] for row in instances.values())

    elsewhere = directory.parent / "elsewhere"
    shutil.copytree(directory, elsewhere, symlinks=True)
    for name in ("references", "backgrounds", "annotations"):
        (elsewhere / f"results/multibind/{name}.parquet").unlink()
        shutil.rmtree(elsewhere / "results/multibind" / name, ignore_errors=True)
    buy(elsewhere, gemini, monkeypatch)
    assert len(server.seen()) == REQUESTS and set(asked(server)) == {1}, "another folder, the same store"
    assert {row["instance"]: row for row in rows(elsewhere, INSTANCES, "instances")} == instances

    before = {(row["instance"], row["slot"]): row["sha256"] for row in rows(directory, REFERENCES, "references")}
    reject(directory, "reference", {"instance": "made-3", "slot": "C"}, before["made-3", "C"])
    assert planned(TARGET, directory=directory, config=gemini) == {"make_references", "assemble_instances"}
    server.control("settings", {"tint": 50})
    buy(directory, gemini, monkeypatch)
    after = {(row["instance"], row["slot"]): row["sha256"] for row in rows(directory, REFERENCES, "references")}
    assert {place for place in before if before[place] != after[place]} == {("made-3", "C")}
    assert sorted(asked(server)) == [1] * (REQUESTS - 1) + [2], "the rejected one alone is asked for again"
    assert len(rows(directory, INSTANCES, "instances")) == 3, "the new reference is not the rejected one"

    row = rows(directory, BACKGROUNDS, "backgrounds")[0]
    reject(directory, "background", row, row["sha256"])
    assert planned(TARGET, directory=directory, config=gemini) == {"make_backgrounds", "assemble_instances"}
    assert files_with_the_key(directory.parent) == []


def test_bought_by_openai_and_what_is_refused_leaves_its_instance_out(shop, monkeypatch):
    server, directory, config = shop
    openai = config(**OPENAI)
    assert planned(TARGET, directory=directory, config=openai) == BOUGHT
    server.faults(
        {"fault": "status", "status": 400, "code": "moderation_blocked", "match": "The first picture is a photograph"},
        {"fault": "refusal", "match": "exactly the keys A, B, C, D"},
    )
    buy(directory, openai, monkeypatch)
    assert len(server.seen()) == REQUESTS and set(asked(server)) == {1}
    left_out = rows(directory, LEFT_OUT, "left_out")
    lost = {(row["part"], row["reason"], row["detail"]) for row in left_out}
    assert {("background", "missing", "refused"), ("annotation", "missing", "refused")} <= lost
    assert {part for part, *_ in lost} == {"background", "annotation", "prompt"}
    names = {row["instance"] for row in left_out}
    assert "made-3" in names and set(MADE) - names == {
        row["instance"] for row in rows(directory, INSTANCES, "instances")
    }
    counts = json.loads((directory / "results/multibind/counts.json").read_text())
    assert counts["selected"] == 3 == counts["instances"] + sum(counts["lost"].values())
    refused = {
        name: json.loads((directory / f"results/multibind/{name}.json").read_text())["refused"]
        for name in ("references", "backgrounds", "annotations")
    }
    assert [len(found) for found in refused.values()] == [0, 1, 1]
    assert "moderation_blocked" in str(refused["backgrounds"])
    bought = json.loads((directory / "results/multibind/manifest.json").read_text())["bought"]
    assert (bought["requests"], bought["refused"]) == (REQUESTS, 2) and bought["cost_usd"] > 0


# Mistakes -------------------------------------------------------------------------------------------------------------


def test_an_estimate_before_photographs_are_chosen_says_what_to_run_first(tmp_path):
    config = write_config(
        tmp_path / "config.yaml",
        {"kind": "builtin"},
        {"store": str(tmp_path / "store"), "prices": {"a-gemini": {}}},
        **GEMINI,
    )
    told = estimated(TARGET, tmp_path, config)
    assert told.returncode == 0 and "requests     0" in told.stdout
    assert [
        line for line in told.stderr.splitlines() if "run snakemake results/multibind/selected.parquet first" in line
    ]


@pytest.mark.parametrize(
    ("sections", "line"),
    [
        (
            {"photographs": {"sources": {"made": {"kind": "flickr", "images": "."}}}},
            "multibind.photographs.sources.made.kind: must be",
        ),
        ({"segmentation": {"method": "yolo"}}, "multibind.segmentation: yolo_weights: method yolo needs the file"),
    ],
)
def test_a_mistake_in_the_config_is_one_line_before_anything_runs(tmp_path, sections, line):
    config = tmp_path / "mine.yaml"
    config.write_text(yaml.safe_dump({"multibind": sections}))
    done = run(TARGET, "-n", directory=tmp_path, config=config, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stdout + done.stderr
    assert [text for text in done.stderr.splitlines() if text.startswith(f"{config}: {line}")], done.stderr


@pytest.mark.parametrize(
    ("source", "sections", "line"),
    [
        ({"annotations": "gone.json"}, {}, "multibind.photographs.sources.made.annotations: no file gone.json"),
        ({"kind": "folder", "images": "empty"}, {}, "multibind.photographs.sources.made: empty: holds no photograph"),
        (
            {"kind": "folder"},
            {"segmentation": {"method": "yolo", "yolo_weights": "gone.pt"}},
            "multibind.segmentation.yolo_weights: ",
        ),
        ({}, {"selection": {"min_side_px": 2000}}, "none of its 7 photographs can be taken (low_resolution 5,"),
    ],
)
def test_a_mistake_that_a_job_finds_is_one_line_of_its_log(embedded, tmp_path, source, sections, line):
    (tmp_path / "empty").mkdir()
    source = json.loads((embedded / "source.json").read_text()) | source
    if source["kind"] == "folder":
        del source["annotations"]
    config = write_config(tmp_path / "config.yaml", source, **sections)
    place_models(tmp_path)
    done = run(TARGET, "--cores", "1", directory=tmp_path, config=config, check=False)
    shown = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in shown
    assert [text for text in shown.splitlines() if line in text], shown[-3000:]
