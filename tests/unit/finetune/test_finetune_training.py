"""A whole finetuning: what it trains and what it leaves, what it writes, and what a kill costs (B.5)."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tiny_models
import torch
from bindbench import cli
from bindbench.config.embedders import Embedder
from bindbench.config.finetuning import Run
from bindbench.embedders.loading import load
from bindbench.errors import UserError
from bindbench.finetune import training
from bindbench.finetune.base import load_base, merge
from bindbench.finetune.batches import read_examples
from bindbench.finetune.lora import add_adapter, read_adapter, trainable, write_weights
from bindbench.finetune.training import finetune, validate
from bindbench.paths import REPOSITORY
from bindbench.tables import TRIPLETS, read_table, write_table
from peft import PeftModel, set_peft_model_state_dict
from safetensors.torch import load_file
from tiny_models import SENTENCES

CHILD = """
import sys
from pathlib import Path
from bindbench.config.embedders import Embedder
from bindbench.config.finetuning import Run
from bindbench.finetune.training import finetune
run, entry, train, validation, folder = sys.argv[1:]
entry, run = Embedder.model_validate_json(entry), Run.model_validate_json(run)
finetune(run, entry, "mine", Path(train), Path(validation), Path(folder), "cpu", 1)
"""
OFTEN = 1e-9  # minutes: a checkpoint after every step


def rows_of(folder: Path) -> list[dict]:
    with (folder / "log.csv").open() as file:
        return list(csv.DictReader(file))


def record_of(folder: Path) -> dict:
    return json.loads((folder / "record.json").read_text())


def adapter_bytes(folder: Path) -> bytes:
    return (folder / "adapter/adapter_model.safetensors").read_bytes()


def checkpoints_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoints/*/step-*"))


@pytest.fixture(scope="module")
def finished(tiny, tables, tmp_path_factory) -> tuple[Path, dict]:
    """A run from its start to its end, and its settings."""
    folder = tmp_path_factory.mktemp("finished")
    settings = {"epochs": 2, "checkpoint_minutes": OFTEN, "validate_every": 4, "lines_alpha": 0.25}
    run = Run(base="tiny", batch_size=5, learning_rate=1e-3, **settings)
    finetune(run, tiny, "mine", *tables, folder, "cpu", 1)
    return folder, settings


def test_ten_examples_are_overfit_to_all_triplets_right(tiny, tables, run_of, tmp_path):
    run = run_of(examples=10, batch_size=10, epochs=30, learning_rate=1e-2)
    few = tmp_path / "ten.parquet"
    write_table(TRIPLETS, read_table(TRIPLETS, tables[0]).slice(0, 10), few)
    finetune(run, tiny, "mine", few, few, tmp_path, "cpu", 1)
    validation = record_of(tmp_path)["validation"]
    assert validation["before"]["accuracy"] < 0.9
    assert validation["after"]["accuracy"] == 1.0
    assert validation["after"]["loss"] < validation["before"]["loss"] / 5


@pytest.mark.parametrize("kind", ["tiny", "encoder"])
def test_training_moves_the_adapter_and_nothing_else(kind, tables, run_of, tmp_path, monkeypatch, request):
    """Vision tower, decoder, embeddings: to the bit. Every matrix of the adapter moves."""
    kept = {}

    def keep(entry, run, device, threads):
        kept["model"] = model = load_base(entry, run, device, threads)
        kept["before"] = {name: tensor.clone() for name, tensor in model.network.state_dict().items()}
        return model

    monkeypatch.setattr(training, "load_base", keep)
    run = run_of(base=kind)
    finetune(run, request.getfixturevalue(kind), "mine", *tables, tmp_path, "cpu", 1)
    network = kept["model"].network
    after = {name.replace(".base_layer", ""): tensor for name, tensor in network.state_dict().items()}
    assert all(torch.equal(after[name], tensor) for name, tensor in kept["before"].items())
    assert (kind == "tiny") == any("visual" in name for name in kept["before"])
    for name, weight in trainable(network).items():
        assert weight.dtype is torch.float32
        assert "lora_A" in name or weight.abs().max() > 0


def test_the_adapter_loads_through_the_houses_own_loader(finished, tiny, tables, run_of):
    folder, settings = finished
    loaded = load(tiny.model_copy(update={"adapter": str(folder / "adapter")}), "cpu", "mine", 1)
    run = run_of(**settings)
    model = load_base(tiny, run, "cpu", 1)
    adapted = add_adapter(model.network.transformers_model, "tiny", 4, 4, 0)
    weights, _ = read_adapter(folder / "adapter")
    set_peft_model_state_dict(adapted, weights)
    assert np.array_equal(loaded.embed(SENTENCES), model.embed(SENTENCES))
    assert np.abs(loaded.embed(SENTENCES) - load(tiny, "cpu", "tiny", 1).embed(SENTENCES)).max() > 1e-4
    held = read_examples(tables[1], None, 0, "k")
    assert validate(loaded, held, run.margin) == record_of(folder)["validation"]["after"]


def test_the_adapter_loads_with_peft_and_merges_into_a_folder(finished, tiny, tmp_path):
    folder, _ = finished
    model = load(tiny, "cpu", "tiny", 1)
    PeftModel.from_pretrained(model.network.transformers_model, str(folder / "adapter"))
    with_peft = model.embed(SENTENCES)
    assert np.array_equal(
        with_peft, load(tiny.model_copy(update={"adapter": str(folder / "adapter")}), "cpu").embed(SENTENCES)
    )
    merge(tiny, "tiny", folder / "adapter", tmp_path / "merged")
    merged = load(tiny.model_copy(update={"path": str(tmp_path / "merged")}), "cpu")
    assert merged.embed(SENTENCES) == pytest.approx(with_peft, abs=1e-5)
    assert not [name for name in load_file(tmp_path / "merged/model.safetensors") if "lora" in name]
    with pytest.raises(UserError, match="is there already"):
        merge(tiny, "tiny", folder / "adapter", tmp_path / "merged")


def test_an_adapter_of_another_model_is_not_merged(finished, encoder, tmp_path):
    with pytest.raises(UserError, match="was trained on another model than encoder"):
        merge(encoder, "encoder", finished[0] / "adapter", tmp_path / "merged")


def test_an_adapter_of_a_narrower_model_of_the_same_layers_is_not_merged(finished, tiny, tmp_path):
    weights, settings = read_adapter(finished[0] / "adapter")
    for end, cut in (("lora_A.weight", lambda values: values[:, :-8]), ("lora_B.weight", lambda values: values[:-8])):
        narrow = {name: cut(values).contiguous() if name.endswith(end) else values for name, values in weights.items()}
        write_weights(narrow, settings, tmp_path / "narrow")
        with pytest.raises(
            UserError, match=rf"was trained on another model than tiny \(of other dimensions: .*{end}\)"
        ):
            merge(tiny, "tiny", tmp_path / "narrow", tmp_path / "merged")


@pytest.fixture
def configured(finished, tiny, tmp_path, monkeypatch) -> list[str]:
    """A working directory with the results of the run `mine` and its config; what names both to a command."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished[0], tmp_path / "made/finetuning/mine")
    config = {"embedders": {"tiny": tiny.model_dump(mode="json")}, "finetuning": {"runs": {"mine": {"base": "tiny"}}}}
    (tmp_path / "my.yaml").write_text(json.dumps(config))
    return ["--results", "made", "--configfile", "my.yaml"]


@pytest.mark.parametrize(("model", "adapter"), [("mine", "adapter_lines"), ("mine-nolines", "adapter")])
def test_the_command_merges_the_adapter_that_a_model_of_the_tables_has(configured, finished, tiny, model, adapter):
    assert cli.main(["merge-adapter", model, "deep/merged", *configured]) == 0
    merged = load(tiny.model_copy(update={"path": "deep/merged"}), "cpu").embed(SENTENCES)
    asked = load(tiny.model_copy(update={"adapter": str(finished[0] / adapter)}), "cpu").embed(SENTENCES)
    other = {"adapter": "adapter_lines", "adapter_lines": "adapter"}[adapter]
    wrong = load(tiny.model_copy(update={"adapter": str(finished[0] / other)}), "cpu").embed(SENTENCES)
    assert merged == pytest.approx(asked, abs=1e-5)
    assert merged != pytest.approx(wrong, abs=1e-5)


def test_the_command_tells_what_it_cannot_merge_in_one_line(configured, capsys):
    (Path("taken")).mkdir()
    shutil.rmtree("made/finetuning/mine/adapter")
    for arguments, line in (
        (
            ("tiny", "merged"),
            "tiny: no run of finetuning makes it (nano-lora, nano-lora-nolines, minilm-lora, minilm-lora-nolines, mine, mine-"
            "nolines); name one of them",
        ),
        (("mine", "taken"), "taken: is there already; delete it, or give another folder"),
        (
            ("mine-nolines", "merged"),
            "made/finetuning/mine/adapter/adapter_model.safetensors: no such file; finetune first",
        ),
    ):
        assert cli.main(["merge-adapter", *arguments, *configured]) == 2
        said = capsys.readouterr().err
        assert said.startswith(line) and len(said.splitlines()) == 1, said
        assert not Path("merged").exists()


def test_the_log_and_the_record_say_what_happened(finished, tables):
    folder, settings = finished
    rows, record = rows_of(folder), record_of(folder)
    assert [int(row["step"]) for row in rows] == list(range(1, 13))  # 2 epochs of 30 examples by 5
    assert {float(row["learning_rate"]) for row in rows} == {1e-3}
    assert all(0 < float(row["loss"]) < 2 and float(row["examples_per_second"]) > 0 for row in rows)
    assert [row["step"] for row in rows if row["validation_accuracy"]] == ["4", "8", "12"]
    assert float(rows[-1]["validation_accuracy"]) == pytest.approx(record["validation"]["after"]["accuracy"], abs=1e-6)
    assert record["trainable_parameters"] == 2 * 4 * (2 * (32 + 32) + 2 * (32 + 16))
    assert record["examples"] == 30 and record["steps"] == 12 and record["validation_examples"] == 9
    assert 0 <= record["padding_share"] < 0.2
    assert record["lines"] == {"alpha": 0.25, "sweep": None}
    assert record["run"]["epochs"] == settings["epochs"] and record["libraries"]["peft"]


def test_the_adapters_files_name_no_path_of_this_machine(finished, tiny):
    folder, _ = finished
    config = json.loads((folder / "adapter/adapter_config.json").read_text())
    assert config["r"] == 4 and config["lora_alpha"] == 4 and config["lora_dropout"] == 0
    assert config["base_model_name_or_path"] == tiny.path  # as the config says it
    first, _ = read_adapter(folder / "adapter")
    scaled, _ = read_adapter(folder / "adapter_lines")
    b = next(name for name in first if ".layers.0." in name and "lora_B" in name)
    assert torch.equal(scaled[b], first[b] * 0.25)


def test_two_checkpoints_are_kept(finished):
    assert [path.name[:13] for path in checkpoints_of(finished[0])] == ["step-00000011", "step-00000012"]


# What a kill costs


def test_a_run_that_was_killed_ends_like_the_unbroken_one(finished, tiny, tables, run_of, tmp_path):
    """kill -9 in the middle; then the same bytes, the same losses, and validation of both halves."""
    whole, settings = finished
    run = run_of(**settings | {"checkpoint_minutes": 1e-3})  # every 60 ms: some steps are lost
    arguments = [run.model_dump_json(), tiny.model_dump_json(), *map(str, tables), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "workflow"), "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen([sys.executable, "-c", CHILD, *arguments], env=environment, stderr=subprocess.PIPE)
    while not checkpoints_of(tmp_path):
        assert child.poll() is None, child.stderr.read().decode()
        time.sleep(0.005)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL and not (tmp_path / "record.json").exists()
    child.stderr.close()
    first = int(checkpoints_of(tmp_path)[0].name.split("-")[1])
    assert first < 12

    finetune(run, tiny, "mine", *tables, tmp_path, "cpu", 1)
    assert adapter_bytes(tmp_path) == adapter_bytes(whole)
    pairs = list(zip(rows_of(tmp_path), rows_of(whole), strict=True))
    unlike = {"examples_per_second"}
    assert all(
        {k: v for k, v in a.items() if k not in unlike} == {k: v for k, v in b.items() if k not in unlike}
        for a, b in pairs
    )
    assert record_of(tmp_path)["validation"] == record_of(whole)["validation"]
    for key in ("tokens", "padding_share", "steps"):
        assert record_of(tmp_path)[key] == record_of(whole)[key]


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_broken_checkpoint_is_noticed_and_the_one_before_is_used(
    damage, finished, tiny, tables, run_of, tmp_path, capsys
):
    whole, settings = finished
    shutil.copytree(whole / "checkpoints", tmp_path / "checkpoints")
    last = checkpoints_of(tmp_path)[-1]
    data = bytearray(last.read_bytes())
    data[len(data) // 2] ^= 1
    last.write_bytes(data[:-100] if damage == "cut" else data)
    finetune(run_of(**settings), tiny, "mine", *tables, tmp_path, "cpu", 1)
    said = capsys.readouterr().err
    assert f"{last}: does not match its checksum; removed, the one before it is used" in said
    assert adapter_bytes(tmp_path) == adapter_bytes(whole)


def test_a_finished_run_that_is_asked_for_again_trains_nothing(finished, tiny, tables, run_of, tmp_path, monkeypatch):
    """Another alpha of LiNeS changes no weight of the training."""
    shutil.copytree(finished[0] / "checkpoints", tmp_path / "checkpoints")
    monkeypatch.setattr(training, "train_step", None)
    finetune(run_of(**finished[1] | {"lines_alpha": 0.5}), tiny, "mine", *tables, tmp_path, "cpu", 1)
    assert adapter_bytes(tmp_path) == adapter_bytes(finished[0]) and record_of(tmp_path)["lines"]["alpha"] == 0.5
    assert len(rows_of(tmp_path)) == 12


@pytest.mark.parametrize("change", [{"seed": 1}, {"margin": 0.1}, {"examples": 29}])
def test_another_training_begins_anew_and_leaves_the_first_ones_checkpoints(
    change, finished, tiny, tables, run_of, tmp_path
):
    shutil.copytree(finished[0] / "checkpoints", tmp_path / "checkpoints")
    before = set(checkpoints_of(tmp_path))
    finetune(run_of(**finished[1] | change | {"checkpoint_minutes": 5}), tiny, "mine", *tables, tmp_path, "cpu", 1)
    assert before < set(checkpoints_of(tmp_path)) and adapter_bytes(tmp_path) != adapter_bytes(finished[0])


# Mistakes


def test_a_base_without_text_is_refused(tiny, tables, run_of, tmp_path):
    with pytest.raises(UserError, match=r"embedders\.tiny\.modalities: tiny embeds no texts"):
        finetune(run_of(), tiny.model_copy(update={"modalities": ("image",)}), "mine", *tables, tmp_path)


def test_a_base_that_takes_no_adapter_is_refused(tables, run_of, tmp_path):
    wordllama = Embedder(loader="wordllama", modalities=("text",))
    with pytest.raises(UserError, match=r"embedders\.wordllama\.loader: a wordllama model takes no adapter"):
        finetune(run_of(base="wordllama"), wordllama, "mine", *tables, tmp_path)


def test_a_base_with_an_adapter_is_refused(tiny, finished, tables, run_of, tmp_path):
    adapted = tiny.model_copy(update={"adapter": str(finished[0] / "adapter")})
    with pytest.raises(UserError, match=r"embedders\.tiny\.adapter: .*merge it"):
        finetune(run_of(), adapted, "mine", *tables, tmp_path)


def test_a_model_of_unknown_projections_is_refused(tables, run_of, tmp_path, tmp_path_factory):
    folder = tiny_models.clip(tmp_path_factory.mktemp("clip") / "clip")
    with pytest.raises(
        UserError, match=r"embedders\.clip: a CLIPModel has no attention projections that are known here"
    ):
        finetune(run_of(base="clip"), Embedder(path=str(folder)), "mine", *tables, tmp_path)


def test_a_loss_that_is_not_a_number_ends_the_run(tiny, tables, run_of, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "train_step", lambda *_: float("nan"))
    with pytest.raises(UserError, match=r"finetuning\.runs\.mine: the loss of step 1 is not a number"):
        finetune(run_of(), tiny, "mine", *tables, tmp_path, "cpu", 1)


@pytest.mark.parametrize(("base", "least", "where"), [("tiny", 16, "k_proj"), ("encoder", 32, "query")])
def test_a_rank_beyond_the_smallest_dimension_is_refused(base, least, where, tables, run_of, tmp_path, request):
    """The decoder's keys and values are narrower than its hidden states: two heads of queries share one."""
    entry = request.getfixturevalue(base)
    line = rf"^finetuning\.runs\.mine\.rank: must be <= {least}, the smallest .*{where}\) \(got {least + 1}\)$"
    with pytest.raises(UserError, match=line):
        finetune(run_of(base=base, rank=least + 1), entry, "mine", *tables, tmp_path, "cpu", 1)
    assert not (tmp_path / "record.json").exists()
    finetune(run_of(base=base, rank=least, examples=5), entry, "mine", *tables, tmp_path, "cpu", 1)


def test_a_validation_split_without_rows_is_one_line_with_the_keys_to_raise(tiny, tables, run_of, tmp_path):
    """As `triplets.splits.validation: 0` leaves it; the training split has one key less to blame."""
    empty = tmp_path / "none.parquet"
    write_table(TRIPLETS, [], empty)
    with pytest.raises(
        UserError, match=r"none\.parquet: has no examples; raise triplets\.splits\.validation or triplets\.counts$"
    ):
        finetune(run_of(), tiny, "mine", tables[0], empty, tmp_path, "cpu", 1)
    with pytest.raises(UserError, match=r"none\.parquet: has no examples; raise triplets\.counts$"):
        finetune(run_of(), tiny, "mine", empty, tables[1], tmp_path, "cpu", 1)


def test_half_precision_keeps_the_adapter_in_float32(tiny, tables, run_of, tmp_path):
    finetune(run_of(dtype="bfloat16"), tiny, "mine", *tables, tmp_path, "cpu", 1)
    weights, _ = read_adapter(tmp_path / "adapter")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    assert all(tensor.abs().max() > 0 for tensor in weights.values())
