"""Which models' attention is measured (C.3), and what their jobs read of the config."""

import pytest
from bindbench.config import check
from bindbench.config.embedders import DEFAULT_EMBEDDERS, Embedder
from bindbench.embedders.loading import UNHEEDED
from bindbench.errors import UserError
from bindbench.snakemake_support import attention_captions, attention_models, settings_behind_attention

RUNS = {
    "models": ["wordllama", "minilm", "efficientnet-lite0", "bound", "bound-nolines", "nano"],
    "finetuning": {"runs": {"bound": {"base": "minilm"}}},
}
PLACES = {"sentence-transformers": {"path": "x"}, "open_clip": {"path": "x", "revision": "y"}}


@pytest.mark.parametrize("loader", UNHEEDED)
def test_text_attention_is_what_a_loader_can_be_asked_for(loader):
    entry = DEFAULT_EMBEDDERS.get(loader) or Embedder(loader=loader, **PLACES[loader])
    assert entry.has_text_attention == ("attention" not in UNHEEDED[loader])


def test_a_model_of_images_alone_has_none():
    assert not Embedder(path="x", modalities=("image",)).has_text_attention


def test_by_default_every_model_that_has_attention_is_measured_finetuned_ones_too():
    assert attention_models(check(RUNS)) == ["minilm", "bound", "bound-nolines", "nano"]
    assert attention_models(check({"models": ["wordllama", "efficientnet-lite0"]})) == []


def test_named_models_are_measured_in_the_order_given():
    settings = check(RUNS | {"attention": {"models": ["bound-nolines", "minilm"]}})
    assert attention_models(settings) == ["bound-nolines", "minilm"]
    behind = settings_behind_attention(settings)
    assert list(behind["embedders"]) == ["bound-nolines", "minilm"] and list(behind["finetuning"]["runs"]) == ["bound"]


def test_which_models_are_measured_is_no_business_of_a_model_s_job():
    one, other = (check(RUNS | {"attention": {"models": names}}) for names in (["minilm"], ["nano"]))
    assert attention_captions(one) == attention_captions(other) == {"captions": 1000, "seed": 0}


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (["qwen"], "attention.models: qwen is not among the models that are measured; add it to models"),
        (["wordllama"], "attention.models: wordllama has no attention between words; leave it out"),
        (["efficientnet-lite0"], "attention.models: efficientnet-lite0 has no attention between words"),
        (["nano", "nano"], "attention.models: a name is given twice"),
    ],
)
def test_a_model_that_cannot_be_measured_is_told_by_its_key(models, message):
    with pytest.raises(UserError, match=message):
        check(RUNS | {"attention": {"models": models}})
