"""The stage of the workflow: from triplets and scenes to margins, table and figure, with the commands of the rules (C.3)."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
import tiny_models
from bindbench.cli import main
from bindbench.config import Config, stage
from bindbench.config.attention import Attention
from bindbench.config.questions import Questions
from bindbench.config.versions import VERSIONS
from bindbench.embedders.loading import load
from bindbench.files import canonical_json
from bindbench.finetune.attention import measure_margins
from bindbench.finetune.attention_sets import read_margins, text_sets
from bindbench.saber.questions import write_questions
from bindbench.tables import TEXT_SETS, TRIPLETS, write_table
from synthetic_triplets import rows

KINDS = ("pair_swap", "attr_bundle", "predicative")
CAPTIONS = 12
TARGETS = r".*language_model\.layers\.\d+\.self_attn\.(q|k|v|o)_proj"
SECTION = canonical_json({"captions": CAPTIONS, "seed": 3})
COST = {"requests": 0, "refused": {}, "cost_usd": 0.0, "tokens": {}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, vocabulary):
    """Both splits, the scenes, and a record of a shard."""
    folder = tmp_path_factory.mktemp("stage")
    for name, first in (("train", 0), ("test", 30)):
        made = [
            row | {"distractors": []} for kind in KINDS for row in rows(kind, 8, first=first)
        ]  # their texts hold none
        write_table(TRIPLETS, made, folder / f"{name}.parquet")
    small = Questions(object_counts=(2, 3), independent=4, nested=2)
    write_questions(vocabulary, small, folder / "questions.parquet", folder / "scenes.parquet")
    (folder / "shard.json").write_text(json.dumps(COST))
    return folder


@pytest.fixture(scope="module")
def adapters(tiny, tmp_path_factory):
    """What a run makes: an adapter, and the same with its updates scaled from nothing at the first layer to all at the last."""
    from safetensors.torch import load_file, save_file

    network = load(tiny, "cpu", "base", 1).network.transformers_model
    trained = tiny_models.adapter(tmp_path_factory.mktemp("run") / "adapter", network, TARGETS)
    scaled = trained.with_name("adapter_lines")
    scaled.mkdir()
    weights = load_file(trained / "adapter_model.safetensors")
    weights = {key: value * (0 if ".layers.0." in key and "lora_B" in key else 1) for key, value in weights.items()}
    save_file(weights, scaled / "adapter_model.safetensors")
    (scaled / "adapter_config.json").write_text((trained / "adapter_config.json").read_text())
    return {"base": None, "ours": scaled, "ours-nolines": trained}


@pytest.fixture(scope="module")
def measured(folder, tiny, adapters):
    for name, adapter in adapters.items():
        line = ["measure-attention", "--model", name, "--threads", "1", "--version", str(VERSIONS["attention"])]
        for key in ("train", "test", "scenes"):
            line += [f"--{key}", str(folder / f"{key}.parquet")]
        line += ["--margins", f"{folder}/{name}.parquet", "--attention", SECTION]
        line += ["--config", tiny.model_dump_json(), *(["--adapter", str(adapter)] if adapter else [])]
        assert main(line) == 0
    return folder


def tabulate(folder, *models, table="attention.csv") -> int:
    tables, facts = ([str(folder / f"{model}.{kind}") for model in models] for kind in ("parquet", "json"))
    line = ["tabulate-attention", "--margins", *tables, "--models", *models, "--facts", *facts]
    line += ["--costs", str(folder / "shard.json"), "--table", str(folder / table)]
    line += ["--manifest", str(folder / "attention_manifest.json"), "--config", stage(Config(), "tables")]
    return main([*line, "--behind", canonical_json({"attention": {"seed": 3}})])


def test_the_job_of_a_model_measures_the_sets_that_the_seed_draws(measured, tiny):
    sets = text_sets(*(measured / f"{name}.parquet" for name in ("train", "test", "scenes")), 3, CAPTIONS)
    margins = read_margins(measured / "base.parquet", "base")
    assert tuple(margins) == TEXT_SETS
    for name, (captions, found) in margins.items():
        drawn = sorted(sets[name])
        assert captions == [caption.name for caption in drawn] and len(captions) == CAPTIONS
        expected = measure_margins(tiny, "base", [(c.text, c.bindings) for c in drawn], 5, "cpu", 1)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_another_seed_draws_other_captions(measured):
    paths = [measured / f"{name}.parquet" for name in ("train", "test", "scenes")]
    assert text_sets(*paths, 3, CAPTIONS) != text_sets(*paths, Attention().seed, CAPTIONS)


def test_a_finetuned_model_is_measured_with_its_adapter_as_trained_or_as_scaled(measured):
    """LiNeS takes the update from the first layer, whose attention is then the base's; above it all three differ."""
    margins = {name: read_margins(measured / f"{name}.parquet", name) for name in ("base", "ours", "ours-nolines")}
    for text_set in TEXT_SETS:
        base, scaled, trained = (np.nan_to_num(margins[name][text_set][1]) for name in margins)
        np.testing.assert_allclose(base[:, 0], scaled[:, 0], atol=1e-6)
        assert np.abs(base[:, 0] - trained[:, 0]).max() > 1e-4
        assert min(np.abs(base[:, 1] - scaled[:, 1]).max(), np.abs(scaled[:, 1] - trained[:, 1]).max()) > 1e-4


def test_the_record_tells_models_of_one_base_apart_and_that_attention_was_eager(measured):
    records = [json.loads((measured / f"{name}.json").read_text()) for name in ("base", "ours", "ours-nolines")]
    assert len({record["fingerprint"] for record in records}) == 3
    assert all(record["identity"]["attention"] == "eager" and record["layers"] == 2 for record in records)
    assert all(record["items"] == 3 * CAPTIONS for record in records)


def test_table_manifest_and_figure_hold_every_model(measured):
    assert tabulate(measured, "base", "ours", "ours-nolines") == 0
    with (measured / "attention.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [(row["model"], row["text_set"], row["layer"]) for row in table] == [
        (model, text_set, layer)
        for model in ("base", "ours", "ours-nolines")
        for text_set in TEXT_SETS
        for layer in ("1", "2")
    ]
    manifest = json.loads((measured / "attention_manifest.json").read_text())
    assert [record["embedder"] for record in manifest["embeddings"]] == ["base", "ours", "ours-nolines"]
    assert manifest["seeds"] == {"attention.seed": 3} and manifest["money_usd"] == 0
    figure = measured / "figures/attention.svg"
    line = ["plot-attention", "--table", str(measured / "attention.csv"), "--figure", str(figure)]
    assert main([*line, "--config", stage(Config(), "figures")]) == 0
    assert figure.exists() and figure.with_suffix(".png").exists()


def test_without_a_model_there_is_one_line(measured, capsys):
    assert tabulate(measured, table="none.csv") == 2
    assert capsys.readouterr().err.startswith("models: none has attention between words")
    assert not (measured / "none.csv").exists()


def test_table_and_figure_need_no_torch(repository):
    """Their environment (envs/score.yaml) has none."""
    program = "import sys, bindbench.finetune.attention_sets, bindbench.figures.attention_plots; sys.exit('torch' in sys.modules)"
    path = {"PYTHONPATH": str(repository / "workflow")}
    assert subprocess.run([sys.executable, "-c", program], env=path, capture_output=True).returncode == 0
