"""The nano embedder from nothing through the whole workflow, and what a changed setting makes again."""

import json

import pytest
import yaml
from snakemake_runs import REPOSITORY, planned, run

pytestmark = pytest.mark.xdist_group("nano")
TARGETS = ("results/nano/model/model.safetensors", "results/figures/nano_pretraining.svg")
SIZES = {
    **{"shards": 2, "shard_size": 6, "validation_scenes": 50, "words_steps": 2, "words_batch": 4, "joint_steps": 2},
    **{"joint_batch": 4, "log_every": 1, "validate_every": 2},
}
RENDER, PRETRAIN, PLOT = "render_nano_scenes", "pretrain_nano", "plot_nano"


def config_with(directory, **changes):
    values = yaml.safe_load((REPOSITORY / "config/tiny.yaml").read_text())
    values["nano"] = SIZES | changes
    path = directory / "nano.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def test_scenes_model_card_and_curves_come_out_and_only_what_changed_is_made_again(copy_of_tiny, monkeypatch):
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "1")  # which would take a minute
    config = config_with(copy_of_tiny)
    assert planned(*TARGETS, directory=copy_of_tiny, config=config) == {RENDER, PRETRAIN, PLOT}
    run(*TARGETS, "--cores", "2", directory=copy_of_tiny, config=config)
    record = json.loads((copy_of_tiny / "results/nano/record.json").read_text())
    assert record["scenes"] == 12 and record["settings"]["joint_steps"] == 2
    card = (copy_of_tiny / "results/nano/model/README.md").read_text()
    assert f"**{100 * record['check']['binding']:.1f} %**" in card
    assert planned(*TARGETS, directory=copy_of_tiny, config=config) == set()

    for changes, jobs in (
        ({"joint_steps": 3}, {PRETRAIN, PLOT}),
        ({"shards": 3}, {RENDER, PRETRAIN, PLOT}),
        ({"validation_scenes": 60}, {RENDER, PRETRAIN, PLOT}),
    ):
        assert planned(*TARGETS, directory=copy_of_tiny, config=config_with(copy_of_tiny, **changes)) == jobs, changes
    assert planned("all", directory=copy_of_tiny, config=config_with(copy_of_tiny, seed=1)) == set()
