"""LiNeS: each layer keeps its share of the update, exactly (Wang et al., 2025; B.5, C.2)."""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import tiny_models
import torch
from bindbench.embedders.loading import load
from bindbench.errors import UserError
from bindbench.finetune import lines
from bindbench.finetune.lines import (
    SWEEP,
    lines_factor,
    neutral_texts,
    retention,
    scale_adapter,
    scale_in_place,
    sweep,
)
from bindbench.finetune.lora import add_adapter, layer_of, read_adapter, target_modules, write_weights
from bindbench.finetune.training import finetune
from hypothesis import given
from hypothesis import strategies as st
from peft import PeftModel, set_peft_model_state_dict
from safetensors.torch import load_file
from tiny_models import SENTENCES


@pytest.fixture(scope="module", params=["tiny", "encoder"])
def adapted(request, tmp_path_factory):
    """An entry and an adapter with random weights in every projection of its layers, as PEFT saves it."""
    entry = request.getfixturevalue(request.param)
    network = load(entry, "cpu", request.param, 1).network.transformers_model
    folder = tmp_path_factory.mktemp("adapters") / request.param
    tiny_models.adapter(folder, network, target_modules(network, request.param))
    return entry, folder


def merged(entry, adapter: Path) -> dict[str, torch.Tensor]:
    """All weights of the model, in float64, with the adapter's product added to them: by hand, not by PEFT."""
    network = load(entry, "cpu", "mine", 1).network.transformers_model
    weights = {name: tensor.double() for name, tensor in network.state_dict().items()}
    parts = load_file(adapter / "adapter_model.safetensors")
    for name, b in parts.items():
        if "lora_B" in name:
            target = name.removeprefix("base_model.model.").replace("lora_B.", "")
            weights[target] = weights[target] + b.double() @ parts[name.replace("lora_B", "lora_A")].double()
    return weights


@given(st.integers(2, 60), st.floats(0, 1))
def test_the_share_grows_evenly_from_alpha_to_one(layers, alpha):
    shares = [lines_factor(layer, layers, alpha) for layer in range(1, layers + 1)]
    assert shares[0] == alpha and shares[-1] == pytest.approx(1, abs=1e-12)
    assert np.allclose(np.diff(shares), (1 - alpha) / (layers - 1))


def test_the_papers_middle_layers_keep_half_to_seven_tenths():
    """Layers 18 to 26 of 36 at alpha = 0, where the binding margins part (C.3)."""
    assert lines_factor(18, 36, 0) == pytest.approx(17 / 35) and lines_factor(26, 36, 0) == pytest.approx(25 / 35)


def test_a_single_layer_keeps_all_and_a_layer_outside_is_a_fault():
    assert lines_factor(1, 1, 0) == 1
    with pytest.raises(ValueError):
        lines_factor(0, 4, 0)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_what_is_merged_is_the_base_and_each_layers_share_of_the_update(adapted, alpha, tmp_path):
    entry, adapter = adapted
    scale_adapter(adapter, tmp_path / "scaled", alpha)
    base = load(entry, "cpu", "mine", 1).network.transformers_model.state_dict()
    whole, scaled = merged(entry, adapter), merged(entry, tmp_path / "scaled")
    layers = {name: layer_of(name.removesuffix(".weight")) for name in base}
    count = max(layer for layer in layers.values() if layer is not None) + 1
    changed = 0
    for name, tensor in base.items():
        share = 0 if layers[name] is None else lines_factor(layers[name] + 1, count, alpha)
        expected = tensor.double() + share * (whole[name] - tensor.double())
        assert torch.allclose(scaled[name], expected, atol=1e-6)
        changed += not torch.equal(whole[name], tensor.double())
    assert changed == 4 * count


def test_peft_merges_the_scaled_adapter_to_the_same_weights(adapted, tmp_path):
    entry, adapter = adapted
    scale_adapter(adapter, tmp_path / "scaled", 0.2)
    network = load(entry, "cpu", "mine", 1).network.transformers_model
    expected = merged(entry, tmp_path / "scaled")
    actual = PeftModel.from_pretrained(network, str(tmp_path / "scaled")).merge_and_unload().state_dict()
    assert all(torch.allclose(actual[name].double(), tensor, atol=1e-6) for name, tensor in expected.items())


def test_alpha_one_leaves_the_adapter_as_it_is(adapted, tmp_path):
    _, adapter = adapted
    scale_adapter(adapter, tmp_path / "scaled", 1.0)
    before, after = read_adapter(adapter), read_adapter(tmp_path / "scaled")
    assert before[1] == after[1]
    assert before[0].keys() == after[0].keys() and all(torch.equal(before[0][k], after[0][k]) for k in before[0])


def test_alpha_zero_empties_the_first_layer_and_leaves_the_last(adapted, tmp_path):
    _, adapter = adapted
    scale_adapter(adapter, tmp_path / "scaled", 0.0)
    before, after = read_adapter(adapter)[0], read_adapter(tmp_path / "scaled")[0]
    layers = {name: layer_of(name.removeprefix("base_model.model.").split(".lora_")[0]) for name in before}
    for name, layer in layers.items():
        if "lora_A" in name or layer == max(layers.values()):
            assert torch.equal(before[name], after[name])
        elif layer == 0:
            assert not after[name].any() and before[name].any()


def test_scaled_in_memory_is_scaled_on_disk(adapted, tmp_path):
    entry, adapter = adapted
    model = load(entry, "cpu", "mine", 1)
    network = add_adapter(model.network.transformers_model, "mine", 4, 4, 0)
    set_peft_model_state_dict(network, read_adapter(adapter)[0])
    unscaled = model.embed(SENTENCES)
    scale_in_place(network, 0.4)
    scale_adapter(adapter, tmp_path / "scaled", 0.4)
    on_disk = load(entry.model_copy(update={"adapter": str(tmp_path / "scaled")}), "cpu", "mine", 1)
    assert model.embed(SENTENCES) == pytest.approx(on_disk.embed(SENTENCES), abs=1e-5)
    assert np.abs(model.embed(SENTENCES) - unscaled).max() > 1e-4
    scale_in_place(network, 1.0)
    assert np.array_equal(model.embed(SENTENCES), unscaled)


def rewritten(adapter: Path, folder: Path, change) -> Path:
    weights, config = read_adapter(adapter)
    change(weights, config)
    write_weights(weights, config, folder)
    return folder


@pytest.mark.parametrize(
    "change, message",
    [
        (
            lambda w, c: w.update({"base_model.model.norm.lora_B.weight": torch.zeros(4, 4)}),
            "lies in no layer of the text",
        ),
        (
            lambda w, c: w.update({"base_model.model.visual.blocks.0.attn.qkv.lora_B.weight": torch.zeros(4)}),
            "no layer",
        ),
        (lambda w, c: c.update(use_dora=True), "DoRA's update is not linear"),
        (lambda w, c: [w.pop(k) for k in list(w) if ".layers.0." in k or ".layer.0." in k], "no weights for layer 1"),
        (lambda w, c: w.clear(), "no weights for layer 1"),
    ],
    ids=["outside", "vision", "dora", "a layer missing", "empty"],
)
def test_what_cannot_be_scaled_is_refused(change, message, adapted, tmp_path):
    odd = rewritten(adapted[1], tmp_path / "odd", change)
    with pytest.raises(UserError, match=message):
        scale_adapter(odd, tmp_path / "scaled", 0.0)
    assert not (tmp_path / "scaled").exists()


def test_a_folder_without_an_adapter_and_a_broken_one_are_refused(adapted, tmp_path):
    with pytest.raises(UserError, match="no such file; finetune first"):
        scale_adapter(tmp_path, tmp_path / "scaled", 0.0)
    shutil.copytree(adapted[1], tmp_path / "broken")
    weights = tmp_path / "broken/adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:200])
    with pytest.raises(UserError, match="not a readable adapter"):
        scale_adapter(tmp_path / "broken", tmp_path / "scaled", 0.0)


# The official sweep of a single finetuned model


class FakeAdapted:
    """Stands for PEFT's model: remembers how far it is scaled."""

    alpha = 1.0

    def disable_adapter(self):
        return nullcontext()


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(lines, "scale_in_place", lambda adapted, alpha: setattr(adapted, "alpha", alpha))
    return FakeAdapted()


def test_the_sweep_weighs_the_target_twice_and_tries_eleven_values(fake):
    """Target falls by 0.3 of the unscaled, control rises from 0 to 1: 2 * 0.7 + 1 beats 2 * 1 + 0."""
    vectors = np.eye(8, dtype=np.float32)[:, ::-1] + np.arange(8)[:, None] / 10
    noise = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
    calls = []

    def neutral():
        calls.append(fake.alpha)
        return vectors if len(calls) == 1 else (1 - fake.alpha) * vectors + fake.alpha * noise

    alpha, rows = sweep(fake, lambda: 0.7 + 0.3 * fake.alpha, neutral)
    assert [row["alpha"] for row in rows] == list(SWEEP) == [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
    for row in rows:
        assert row["score"] == pytest.approx(2 * row["target"] / rows[0]["target"] + row["control"])
    assert rows[-1]["control"] == pytest.approx(1) and alpha == max(rows, key=lambda row: row["score"])["alpha"] < 1
    assert fake.alpha == 1.0


def test_where_scaling_changes_nothing_the_sweep_leaves_the_adapter_whole(fake):
    vectors = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    assert sweep(fake, lambda: 0.9, lambda: vectors)[0] == 1.0


def test_retention_is_one_for_turned_vectors_and_none_for_unrelated_ones():
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(200, 16)).astype(np.float32)
    turned = vectors @ np.linalg.qr(generator.normal(size=(16, 16)))[0].astype(np.float32)
    assert retention(vectors, turned) == pytest.approx(1, abs=1e-5)
    assert abs(retention(vectors, generator.normal(size=(200, 16)))) < 0.05
    assert retention(vectors, np.ones((200, 16))) == 0


def test_neutral_texts_are_single_objects_each_once():
    mug, oar = {"attributes": ["red", "iron"], "object": "mug"}, {"attributes": ["blue"], "object": "oar"}
    assert neutral_texts([[mug, oar], [oar]], 9) == ["red iron mug", "blue oar"]
    assert neutral_texts([[mug, oar]], 1) == ["red iron mug"]


def test_a_run_may_choose_alpha_by_the_sweep(tiny, tables, run_of, tmp_path):
    run = run_of(lines_alpha="sweep", learning_rate=1e-2)
    finetune(run, tiny, "mine", *tables, tmp_path, "cpu", 1)
    chosen = json.loads((tmp_path / "record.json").read_text())["lines"]
    assert len(chosen["sweep"]) == 11 and chosen["alpha"] in SWEEP
    scale_adapter(tmp_path / "adapter", tmp_path / "again", chosen["alpha"])
    expected, actual = (read_adapter(tmp_path / name)[0] for name in ("again", "adapter_lines"))
    assert all(torch.equal(expected[name], actual[name]) for name in expected)
