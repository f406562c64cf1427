"""Margins of real models: by hooks, one layer at a time, whatever the batch, the padding and the kind of model (C.3)."""

import weakref

import numpy as np
import pytest
import tiny_models
import torch
from bindbench.config.embedders import DEFAULT_EMBEDDERS, Embedder
from bindbench.embedders.loading import load
from bindbench.errors import UserError
from bindbench.finetune import attention as attention_room
from bindbench.finetune.attention import (
    attention_modules,
    caption_margins,
    margins_of_batch,
    measure_margins,
    recorded_attentions,
)
from bindbench.finetune.words import locate_words

CAPTIONS = [
    ("a red cube and a blue sphere", [(("red",), "cube"), (("blue",), "sphere")]),
    ("a cube that is red, near a sphere that is blue", [(("red",), "cube"), (("blue",), "sphere")]),
    ("a cube", [((), "cube")]),
    (
        "In the long hall a striped dog, a wooden umbrella and a polka-dotted hot air balloon were seen at dusk",
        [(("striped",), "dog"), (("wooden",), "umbrella"), (("polka-dotted",), "hot air balloon")],
    ),
    (
        "a large red cube and a tiny blue sphere",
        [(("large", "red"), "cube"), (("tiny", "blue"), "sphere")],
    ),
    ("an orange boot and a wooden dog", [(("orange",), "boot"), (("wooden",), "dog")]),
    ("a red boot", [(("red",), "boot")]),
    ("a blue umbrella and an orange sphere", [(("blue",), "umbrella"), (("orange",), "sphere")]),
]
UNDEFINED = [False, False, True, False, False, False, True, False]
LAYERS = {"tiny": 2, "minilm": 6}


@pytest.fixture(scope="module")
def entries(tmp_path_factory) -> dict[str, Embedder]:
    folder = tiny_models.qwen3_vl(tmp_path_factory.mktemp("measuring") / "qwen")
    return {
        "tiny": Embedder(
            path=str(folder), batch_size=8, instruction="Represent the user's input", modalities=("text",)
        ),
        "minilm": DEFAULT_EMBEDDERS["minilm"],
    }


@pytest.fixture(scope="module")
def models(entries):
    return {
        name: load(entry.model_copy(update={"attention": "eager"}), "cpu", name, 1) for name, entry in entries.items()
    }


def margins_by_output_attentions(model, captions) -> np.ndarray:
    """Text by text, without padding, from the attentions that transformers itself hands out."""
    rows = []
    for (text, _), words in zip(captions, locate_words(model, captions), strict=True):
        features = {k: v for k, v in model.tokens([text]).items() if torch.is_tensor(v)}
        with torch.inference_mode():
            output = model.network.transformers_model(**features, output_attentions=True)
        rows.append(caption_margins([layer[0] for layer in output.attentions], *words))
    return np.stack(rows)


@pytest.mark.parametrize("name", LAYERS)
def test_hooks_see_what_output_attentions_returns(name, entries, models):
    measured = measure_margins(entries[name], name, CAPTIONS, 8, "cpu", 1)
    assert measured.shape == (len(CAPTIONS), LAYERS[name]) and measured.dtype == np.float32
    np.testing.assert_allclose(measured, margins_by_output_attentions(models[name], CAPTIONS), atol=1e-6)
    assert np.isnan(measured).all(axis=1).tolist() == UNDEFINED
    assert np.abs(measured[~np.array(UNDEFINED)]).min() > 0, "a margin of exactly zero was not measured"


@pytest.mark.parametrize("name", LAYERS)
def test_a_batch_of_one_gives_what_a_batch_of_eight_gives(name, entries):
    one, eight = (measure_margins(entries[name], name, CAPTIONS, size, "cpu", 1) for size in (1, 8))
    np.testing.assert_allclose(one, eight, atol=1e-6)


def test_padding_left_or_right_gives_the_same_margins(models):
    """Of a decoder with rotary positions; BERT numbers its positions from the first column, so there it is another input."""
    model = models["tiny"]
    texts, words = [text for text, _ in CAPTIONS], locate_words(model, CAPTIONS)
    modules = attention_modules(model.network, model.tokens(["a cube"]), "tiny")
    tokenizer = model.network.tokenizer
    sides, before = {}, tokenizer.padding_side
    try:
        for side in ("left", "right"):
            tokenizer.padding_side = side
            first = model.tokens(texts)["attention_mask"][:, 0]
            assert bool(first.all()) == (side == "right"), "the side must have been heeded"
            assert locate_words(model, CAPTIONS) == words
            sides[side] = margins_of_batch(model, modules, texts, words)
    finally:
        tokenizer.padding_side = before
    np.testing.assert_allclose(sides["left"], sides["right"], atol=2e-6)


@pytest.mark.parametrize("name", LAYERS)
def test_no_two_layers_attentions_are_alive_at_once(name, models, monkeypatch):
    model = models[name]
    texts, words = [text for text, _ in CAPTIONS], locate_words(model, CAPTIONS)
    modules = attention_modules(model.network, model.tokens(["a cube"]), name)
    assert len(modules) == LAYERS[name]
    seen: list[weakref.ref] = []
    alive: list[int] = []
    real = attention_room.object_margins

    def watched(attention, pairs):
        seen.append(weakref.ref(attention))
        alive.append(sum(one() is not None for one in seen))
        return real(attention, pairs)

    monkeypatch.setattr(attention_room, "object_margins", watched)
    margins_of_batch(model, modules, texts, words)
    assert alive == [1] * LAYERS[name]
    assert not any(one() is not None for one in seen), "nothing stays behind the forward pass"
    seen.clear(), alive.clear()
    with recorded_attentions(modules, range(1, len(modules) + 1)) as kept:  # the same watch does see what is kept
        margins_of_batch(model, modules, texts, words)
    assert alive == list(range(1, LAYERS[name] + 1)) and len(kept) == LAYERS[name]


def test_measuring_leaves_no_hook_behind(models):
    model = models["tiny"]

    def hooks():
        return [len(module._forward_hooks) for module in model.network.modules()]

    before = hooks()
    modules = attention_modules(model.network, model.tokens(["a cube"]), "tiny")
    with pytest.raises(ZeroDivisionError), recorded_attentions(modules, [1]):
        raise ZeroDivisionError
    margins_of_batch(model, modules, ["a cube"], locate_words(model, [("a cube", [((), "cube")])]))
    assert hooks() == before


def test_an_adapter_changes_the_margins(entries, models, tmp_path):
    network = load(entries["tiny"], "cpu", "base", 1).network.transformers_model
    targets = r".*language_model\.layers\.\d+\.self_attn\.(q|k)_proj"
    folder = tiny_models.adapter(tmp_path / "adapter", network, targets)
    entry = entries["tiny"].model_copy(update={"adapter": str(folder)})
    base, adapted = (measure_margins(e, "tiny", CAPTIONS, 8, "cpu", 1) for e in (entries["tiny"], entry))
    assert np.nanmax(np.abs(base - adapted)) > 1e-3


def test_models_without_attention_are_refused(entries):
    for name in ("wordllama", "efficientnet-lite0"):
        with pytest.raises(UserError, match=rf"^embedders\.{name}: has no attention between words"):
            measure_margins(DEFAULT_EMBEDDERS[name], name, CAPTIONS, 8, "cpu", 1)
    model = load(entries["tiny"].model_copy(update={"attention": "sdpa"}), "cpu", "fast", 1)
    with pytest.raises(
        UserError, match=r"^embedders\.fast\.attention: this model gives no attention .*set it to eager"
    ):
        attention_modules(model.network, model.tokens(["a cube"]), "fast")


def test_a_causal_decoder_has_nothing_above_the_diagonal_and_an_encoder_has(models):
    for name, causal in (("tiny", True), ("minilm", False)):
        model = models[name]
        modules = attention_modules(model.network, model.tokens(["a cube"]), name)
        with recorded_attentions(modules, [1]) as kept, torch.inference_mode():
            model.network(model.tokens([CAPTIONS[0][0]]))
        assert bool((kept[1].triu(1) == 0).all()) == causal
        np.testing.assert_allclose(kept[1].sum(-1), 1, atol=1e-5)


def test_captions_of_no_texts_have_no_rows(entries):
    assert measure_margins(entries["tiny"], "tiny", [], 8, "cpu", 1).shape == (0, 2)
