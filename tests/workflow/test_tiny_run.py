"""The whole tiny run: its tables, that a second run does nothing, the report, and a killed run that goes on."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from bindbench.tables import IMAGES, SCENES, SCORES, read_table
from snakemake_runs import REPOSITORY, command, environment, planned, run

pytestmark = pytest.mark.xdist_group("tiny")
TABLES = (
    "table2",
    "table17",
    "table18",
    "table19",
    "differences",
    "by_category",
    "by_combination",
    "by_candidate_kind",
    "containment",
    "top_four",
)


def rows(directory: Path, table: str) -> list[dict]:
    with (directory / f"results/saber_{table}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_table_2_has_every_model_and_protocol_and_leaves_missing_modalities_empty(tiny):
    table = rows(tiny, "table2")
    models = {row["model"] for row in table}
    assert {"nano", "minilm", "wordllama", "efficientnet-lite0", "chance"} <= models
    for row in table:
        if row["model"] == "minilm":
            assert row["text_text"] != "" and row["text_image"] == row["image_image"] == row["mean"] == ""
        if row["model"] == "efficientnet-lite0":
            assert row["image_image"] != "" and row["text_text"] == row["mean"] == ""
        if row["model"] == "nano":
            assert all(
                row[pairing] != "" for pairing in ("text_text", "text_image", "image_text", "image_image", "mean")
            )
            assert float(row["text_text_low"]) <= float(row["text_text"]) <= float(row["text_text_high"])


def test_a_bag_of_words_ties_and_so_gets_no_question_with_swaps_right(tiny):
    scores = read_table(SCORES, tiny / "results/saber/scores/wordllama.parquet").to_pylist()
    assert not any(row["correct"] for row in scores)
    assert all(row["tied"] for row in scores)


def test_every_final_table_comes_with_a_manifest(tiny):
    manifest = json.loads((tiny / "results/saber_manifest.json").read_text())
    text = json.dumps(manifest)
    for expected in ("bindbench", "torch", "numpy", "nano", "minilm", "questions", "seed"):
        assert expected in text
    assert str(tiny) not in text


def test_images_are_there_with_the_hash_that_their_table_says(tiny):
    import hashlib

    for manifest in sorted((tiny / "results/saber/images").glob("*.parquet")):
        for row in read_table(IMAGES, manifest).to_pylist():
            assert hashlib.sha256((manifest.parent / row["path"]).read_bytes()).hexdigest() == row["sha256"]


def test_nothing_is_left_to_do(tiny):
    done = run("all", "--cores", "1", directory=tiny)
    assert "Nothing to be done" in done.stdout + done.stderr


def test_the_report_is_one_file_without_foreign_addresses(copy_of_tiny):
    run("all", "--report", "report.html", directory=copy_of_tiny)
    report = (copy_of_tiny / "report.html").read_text(errors="replace")
    assert "saber_table2.csv" in report and "saber_accuracy_by_n.svg" in report
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=[\"']https?://", report)


def wait_until(condition, process: subprocess.Popen, seconds=240):
    end = time.time() + seconds
    while time.time() < end:
        if condition():
            return
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.02)
    raise AssertionError("nothing happened")


def kill_when(condition, *targets, directory: Path, config: Path) -> None:
    """Starts a run in a process group of its own and kills all of it, jobs too, once the condition holds."""
    # A part after every batch: the kill comes early, however fast the machine is.
    variables = environment() | {"BINDBENCH_FLUSH_SECONDS": "0"}
    process = subprocess.Popen(
        command(*targets, "--cores", "2", directory=directory, config=config),
        env=variables, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        wait_until(condition, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def killable(tiny, tmp_path):
    """A config with one shard that takes some seconds, in a folder that has the shapes and reliefs already."""
    config = tmp_path / "config.yaml"
    config.write_text(
        "questions: {object_counts: [2, 3, 4], independent: 6, nested: 3}\n"
        "scenes: {image_px: 320, shard_size: 5000}\n"
        "models: [nano]\nembedders: {nano: {batch_size: 8}}\ntables: {bootstrap_samples: 100}\n"
    )
    directory = tmp_path / "run"
    (directory / "results").mkdir(parents=True)
    shutil.copytree(tiny / "results/scenes", directory / "results/scenes")
    return directory, config


def test_kill_9_while_rendering_and_while_embedding_loses_seconds_and_changes_nothing(killable):
    directory, config = killable
    target = "results/saber_table2.csv"
    images = directory / "results/saber/images/0000"
    kill_when(lambda: len(list(images.glob("*.png"))) >= 40, target, directory=directory, config=config)
    kept = {path: path.stat().st_mtime_ns for path in images.glob("*.png")}
    assert not (directory / "results/saber/images/0000.parquet").exists()

    cache = directory / "results/cache/embeddings"
    kill_when(lambda: any(cache.glob("*/image/part-*")), target, directory=directory, config=config)
    again = [path for path, time_ns in kept.items() if path.stat().st_mtime_ns != time_ns]
    assert len(again) <= 2, f"{len(again)} of {len(kept)} finished images were rendered again"
    assert not (directory / "results/embeddings/nano/saber.image.parquet").exists()
    parts = {path: path.stat().st_mtime_ns for path in cache.glob("*/image/part-*")}

    run(target, "--cores", "2", directory=directory, config=config)
    assert all(path.stat().st_mtime_ns == time_ns for path, time_ns in parts.items() if path.exists())

    unbroken = directory.parent / "unbroken"
    (unbroken / "results").mkdir(parents=True)
    shutil.copytree(directory / "results/scenes", unbroken / "results/scenes")
    run(target, "--cores", "2", directory=unbroken, config=config)
    for name in (
        *(f"saber_{table}.csv" for table in TABLES), "saber/images/0000.parquet", "saber/scores/nano.parquet",
        "embeddings/nano/saber.image.parquet", "embeddings/nano/saber.text.parquet",
    ):  # fmt: skip
        assert (directory / "results" / name).read_bytes() == (unbroken / "results" / name).read_bytes(), name


def vectors(directory: Path) -> int:
    """Texts that nano's cache holds."""
    facts = json.loads((directory / "results/embeddings/nano/saber.text.json").read_text())
    parts = (directory / "results/cache/embeddings" / facts["fingerprint"] / "text").glob("part-*.npy")
    return sum(len(np.load(path)) for path in parts)


def distinct_captions(directory: Path) -> set[str]:
    return set(read_table(SCENES, directory / "results/saber/scenes.parquet")["caption"].to_pylist())


def test_a_benchmark_that_grows_embeds_and_renders_only_what_is_new(copy_of_tiny):
    config = copy_of_tiny / "grown.yaml"
    values = yaml.safe_load((REPOSITORY / "config/tiny.yaml").read_text()) | {"models": ["wordllama", "nano"]}
    values["questions"]["independent"] += 1
    config.write_text(yaml.safe_dump(values))
    images = {path: path.stat().st_mtime_ns for path in (copy_of_tiny / "results/saber/images").glob("*/*.png")}
    before, captions = vectors(copy_of_tiny), distinct_captions(copy_of_tiny)
    run("results/saber_table2.csv", "--cores", "2", directory=copy_of_tiny, config=config)
    assert 0 < vectors(copy_of_tiny) - before == len(distinct_captions(copy_of_tiny) - captions)
    assert (
        sum(path.exists() and path.stat().st_mtime_ns == time_ns for path, time_ns in images.items()) > len(images) / 2
    )


@pytest.mark.parametrize(
    ("target", "fault"),
    [("results/embeddings/nano/saber.image.parquet", "missing"), ("results/saber_scenes.html", "damaged")],
)
def test_a_missing_image_is_told_with_what_to_do(copy_of_tiny, target, fault):
    """What the message says is done to the letter; it mends the fault, and the good images stay as they are."""
    folder = copy_of_tiny / "results/saber/images/0000"
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.glob("*.png")}
    broken = sorted(folder.glob("*-c1.png"))
    for image in broken:
        image.unlink() if fault == "missing" else image.write_bytes(image.read_bytes()[:-9])
    shutil.rmtree(copy_of_tiny / "results/cache")
    (copy_of_tiny / target).unlink()
    done = run(target, "--cores", "2", directory=copy_of_tiny, check=False)
    told = done.stdout + done.stderr
    assert done.returncode != 0 and "Traceback" not in told
    assert any(image.name in told for image in broken)
    (named,) = set(re.findall(r"delete (\S+) and run again", told))
    assert named.endswith("results/saber/images/0000.parquet")
    (copy_of_tiny / named).unlink()
    run(target, "--cores", "2", directory=copy_of_tiny)
    assert (copy_of_tiny / target).exists()
    assert {path: path.read_bytes() for path in folder.glob("*.png")} == {p: data for p, (_, data) in before.items()}
    assert all(path.stat().st_mtime_ns == time_ns for path, (time_ns, _) in before.items() if path not in broken)


def test_jobs_ask_the_cluster_for_what_their_rules_say(tiny, tmp_path):
    """Submits for real, to scripts that stand for a cluster, with a model of others so that a GPU is asked for."""
    shim = tmp_path / "shim"
    shim.mkdir()
    directory = tmp_path / "run"
    (directory / "results").mkdir(parents=True)
    shutil.copytree(tiny / "results/scenes", directory / "results/scenes")
    weights = REPOSITORY / "resources/models/nano"
    shutil.copytree(weights, directory / "weights")
    config = directory / "c.yaml"
    theirs = {"embedders": {"theirs": {"path": "./weights", "modalities": ["text"]}}, "models": ["wordllama", "theirs"]}
    config.write_text(yaml.safe_dump(yaml.safe_load((REPOSITORY / "config/tiny.yaml").read_text()) | theirs))
    profile = tmp_path / "profile"
    profile.mkdir()
    scripts = REPOSITORY / "tests/support/cluster"
    (profile / "config.yaml").write_text(
        "executor: cluster-generic\n"
        f"cluster-generic-submit-cmd: '{sys.executable} {scripts}/submit --cpus={{threads}} --mem={{resources.mem_mb}}"
        " --gpus={resources.gpu} --time={resources.runtime} --name={rule}'\n"
        f"cluster-generic-status-cmd: '{sys.executable} {scripts}/status'\n"
        "jobs: 2\nseconds-between-status-checks: 1\nscheduler: greedy\n"
        "default-resources: {gpu: 0, api_slots: 0, runtime: 30, mem_mb: 1000}\n"
    )
    line = command("results/saber_table2.csv", directory=directory, config=config)
    line[line.index("--workflow-profile") + 1] = str(profile)
    done = subprocess.run(
        line, capture_output=True, text=True, env=environment() | {"SHIM_FOLDER": str(shim)}, cwd=directory
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert len(rows(directory, "table2")) > 0
    asked = [json.loads(path.read_text()) for path in shim.glob("*.json")]
    by_rule = {}
    for request in asked:
        by_rule.setdefault(request["name"], []).append(request)
    assert sorted(request["gpus"] for request in by_rule["embed_texts"]) == ["0", "1"]
    for name, requests in by_rule.items():
        for request in requests:
            assert int(request["mem"]) >= 500 and int(request["time"]) >= 10 and int(request["cpus"]) >= 1
            assert name == "embed_texts" or request["gpus"] == "0", name


def test_the_slurm_profile_sends_gpu_jobs_to_a_partition_with_gpus(tmp_path):
    from snakemake_executor_plugin_slurm.partitions import read_partition_file

    profile = yaml.safe_load((REPOSITORY / "profiles/slurm/config.yaml").read_text())
    partitions = read_partition_file(REPOSITORY / profile["slurm-partition-config"])
    assert {partition.name: partition.limits.max_gpu > 0 for partition in partitions} == {"cpu": False, "gpu": True}
    shutil.copytree(REPOSITORY / "profiles", tmp_path / "profiles")  # the file is looked for where a person would run
    assert planned("all", directory=tmp_path, profile="slurm") == planned("all", directory=tmp_path)
