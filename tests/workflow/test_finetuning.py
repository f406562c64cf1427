"""Finetuning through the whole workflow: rows with and without LiNeS, what runs again, and a killed training that goes on."""

import csv
import json
import os
import signal
import subprocess
import time

import pytest
import yaml
from snakemake_runs import REPOSITORY, command, environment, planned, run

pytestmark = pytest.mark.xdist_group("finetuning")
TARGET = "results/triplet_accuracy.csv"
FIGURE_4 = "results/figures/attention.svg"
RUN = {"base": "minilm", "examples": 60, "batch_size": 6, "learning_rate": 0.003, "validation_examples": 10}
MODELS = ["minilm", "bound", "bound-nolines"]


def config_with(directory, **changes):
    """The tiny config with one run, without images: nothing of SABER is made again."""
    values = yaml.safe_load((REPOSITORY / "config/tiny.yaml").read_text())
    values |= {"models": MODELS, "finetuning": {"runs": {"bound": RUN | changes}}}
    path = directory / "finetuning.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def weights(directory):
    folder = directory / "results/finetuning/bound"
    return [(folder / part / "adapter_model.safetensors").read_bytes() for part in ("adapter", "adapter_lines")]


def test_a_run_gives_two_models_and_only_what_changed_is_done_again(copy_of_tiny):
    config = config_with(copy_of_tiny)
    jobs = planned(TARGET, FIGURE_4, directory=copy_of_tiny, config=config)
    steps = ("embed_triplets", "score_triplets", "measure_attention")
    made = {f"{step} {model}" for model in MODELS[1:] for step in steps}
    assert jobs == {"finetune", "tabulate_triplets", "tabulate_attention", "plot_attention"} | made
    run(TARGET, FIGURE_4, "--cores", "2", directory=copy_of_tiny, config=config)
    with (copy_of_tiny / TARGET).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["model"] for row in rows} == {"chance", *MODELS}
    manifest = json.loads((copy_of_tiny / "results/triplet_manifest.json").read_text())
    assert manifest["settings"]["finetuning"]["runs"]["bound"]["learning_rate"] == 0.003
    identities = {fact["embedder"]: fact["fingerprint"] for fact in manifest["embeddings"]}
    assert len(set(identities.values())) == 3, "the adapter is part of a model's identity"
    assert planned(TARGET, FIGURE_4, directory=copy_of_tiny, config=config) == set()
    with (copy_of_tiny / "results/attention.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    margins = {m: {(r["text_set"], r["layer"]): r["margin"] for r in rows if r["model"] == m} for m in MODELS}
    assert len({tuple(of_model.values()) for of_model in margins.values()}) == 3, "each with its own adapter"
    first = [{key: of_model[key] for key in of_model if key[1] == "1"} for of_model in margins.values()]
    assert first[0] == first[1] != first[2], "LiNeS takes the whole update from the first layer"

    before = weights(copy_of_tiny)
    log = (copy_of_tiny / "results/finetuning/bound/log.csv").read_bytes()
    assert planned(TARGET, FIGURE_4, directory=copy_of_tiny, config=config_with(copy_of_tiny, margin=0.1)) == jobs
    run(TARGET, "--cores", "2", directory=copy_of_tiny, config=config_with(copy_of_tiny, lines_alpha=0.5))
    trained, scaled = weights(copy_of_tiny)
    assert trained == before[0] and scaled != before[1], "another alpha of LiNeS trains nothing again"
    assert (copy_of_tiny / "results/finetuning/bound/log.csv").read_bytes() == log


def test_kill_9_while_training_loses_steps_and_changes_nothing(copy_of_tiny, tmp_path):
    adapter = "results/finetuning/bound/adapter/adapter_model.safetensors"
    config = config_with(copy_of_tiny, epochs=4, checkpoint_minutes=0.0001)
    line = command(adapter, "--cores", "2", directory=copy_of_tiny, config=config)
    process = subprocess.Popen(
        line, cwd=copy_of_tiny, env=environment(), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    checkpoints = copy_of_tiny / "results/finetuning/bound/checkpoints"
    end = time.time() + 240
    while not list(checkpoints.glob("*/step-*")) and time.time() < end:
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert list(checkpoints.glob("*/step-*")) and not (copy_of_tiny / adapter).exists()
    run(adapter, "--cores", "2", directory=copy_of_tiny, config=config)
    killed = weights(copy_of_tiny)
    run(adapter, "--cores", "2", "--forcerun", "finetune", directory=copy_of_tiny, config=config)
    assert weights(copy_of_tiny) == killed, "a finished training that is asked for again is there"
    for path in checkpoints.rglob("*.safetensors"):
        path.unlink()
    run(adapter, "--cores", "2", "--forcerun", "finetune", directory=copy_of_tiny, config=config)
    assert weights(copy_of_tiny) == killed, "the unbroken run"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"base": "nothing"}, "finetuning.runs.bound.base: nothing is not among the embedders"),
        ({"rank": 0}, "finetuning.runs.bound.rank: must be >= 1 (got 0)"),
        ({"data": "everything"}, "finetuning.runs.bound.data: must be one of"),
        ({"lines_alpha": 2}, "finetuning.runs.bound.lines_alpha"),
    ],
)
def test_a_wrong_run_is_told_in_one_line(tmp_path, changes, line):
    done = run(TARGET, "-n", directory=tmp_path, config=config_with(tmp_path, **changes), check=False)
    assert done.returncode != 0 and line in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["ablations.yaml", "paper.yaml"])
def test_the_configs_of_finetuning_plan_their_runs(tmp_path, name):
    jobs = planned(TARGET, directory=tmp_path, config=REPOSITORY / "config" / name)
    runs = yaml.safe_load((REPOSITORY / "config" / name).read_text())["finetuning"]["runs"]
    done = run(TARGET, "-n", directory=tmp_path, config=REPOSITORY / "config" / name)
    assert "finetune" in jobs
    assert all(f"Finetuning {run_name}" in done.stdout + done.stderr for run_name in runs)
