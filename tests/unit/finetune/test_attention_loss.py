"""The attention loss: its value, its gradient, where it is zero, and through a real model's weights (C.3)."""

import numpy as np
import pytest
import tiny_models
import torch
from bindbench.config.embedders import Embedder
from bindbench.embedders.loading import load
from bindbench.errors import UserError
from bindbench.finetune.attention import (
    attention_loss,
    attention_modules,
    object_margins,
    recorded_attentions,
    word_pairs,
)
from bindbench.finetune.words import CaptionWords, locate_words

WORDS = [
    CaptionWords(((1, 2), (5,)), (((0,),), ((4,),))),
    CaptionWords(((0,), (3,), (7,)), (((1,),), ((2,), (4, 5)), ((6,),))),
    CaptionWords(((0,),), (((1,),),)),  # one object: no margin
]
CAPTIONS = [
    ("a red cube and a blue sphere", [(("red",), "cube"), (("blue",), "sphere")]),
    ("a dog that is striped, near an umbrella that is wooden", [(("striped",), "dog"), (("wooden",), "umbrella")]),
]


@pytest.fixture
def attentions() -> dict[int, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    drawn = {n: torch.randn(3, 2, 8, 8, generator=generator, dtype=torch.float64) for n in (2, 3, 5)}
    return {number: logits.softmax(-1).requires_grad_() for number, logits in drawn.items()}


def test_the_loss_is_the_mean_hinge_over_layers_and_objects(attentions):
    pairs = word_pairs(WORDS)
    assert len(pairs.weight) == 5 and pairs.undefined == 1
    short = []
    for layer in (2, 5):
        for number, words in enumerate(WORDS[:2]):
            matrix = attentions[layer][number].detach()
            for thing in range(len(words.objects)):
                others = [w for other, of in enumerate(words.attributes) if other != thing for w in of]
                margin = _margin(matrix, words.objects[thing], words.attributes[thing], others)
                short.append(max(0.0, 0.1 - margin))
    loss = attention_loss(attentions, pairs, 0.1, [2, 5])
    assert loss.shape == () and loss.item() == pytest.approx(np.mean(short), abs=1e-7)
    assert loss.item() > 0


def _margin(matrix, thing, own, others) -> float:
    def mean(words):
        values = []
        for word in words:
            earlier, later = sorted((thing, word))
            values.append(sum(float(matrix[:, s, t].mean()) for s in later for t in earlier) / len(later))
        return np.mean(values)

    return mean(own) - mean(others)


def test_the_gradient_is_that_of_finite_differences_and_reaches_only_the_chosen_layers(attentions):
    pairs = word_pairs(WORDS)
    loss = attention_loss(attentions, pairs, 0.1, [2, 5])
    loss.backward()
    assert attentions[3].grad is None
    gradient = attentions[5].grad
    step = 1e-6
    for place in ((0, 0, 1, 0), (0, 1, 5, 4), (1, 0, 3, 2), (1, 1, 7, 6), (2, 0, 1, 0), (0, 0, 0, 5)):
        with torch.no_grad():
            moved = {n: a.clone() for n, a in attentions.items()}
            moved[5][place] += step
            numeric = (attention_loss(moved, pairs, 0.1, [2, 5]) - loss) / step
        assert float(gradient[place]) == pytest.approx(float(numeric), abs=1e-5)
    assert gradient[0].abs().sum() > 0 and gradient[1].abs().sum() > 0
    assert not gradient[2].any(), "a caption without a margin teaches nothing"
    assert not gradient[:, :, torch.triu(torch.ones(8, 8), 1).bool()].any(), "nothing against the causal direction"


def test_a_descent_raises_the_margins_to_the_hinge_and_stops(attentions):
    pairs = word_pairs(WORDS)
    logits = torch.zeros(3, 2, 8, 8, requires_grad=True)
    optimizer = torch.optim.SGD([logits], lr=20.0)
    for _ in range(100):
        loss = attention_loss({1: logits.softmax(-1)}, pairs, 0.2, [1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    margins = object_margins(logits.detach().softmax(-1), pairs)
    assert float(loss.detach()) == 0 and bool((margins >= 0.2).all())
    assert not logits.grad.any(), "all margins are above: the loss and its gradient are zero"
    assert float(margins.max()) < 0.6, "it pushes no further than asked"


def test_a_batch_without_margins_costs_nothing_and_can_still_go_backward(attentions):
    loss = attention_loss(attentions, word_pairs([WORDS[2]] * 3), 0.1, [2])
    assert float(loss.detach()) == 0
    loss.backward()
    assert not attentions[2].grad.any()


def test_half_precision_is_summed_in_single(attentions):
    pairs = word_pairs(WORDS)
    half = {n: a.detach().bfloat16() for n, a in attentions.items()}
    loss = attention_loss(half, pairs, 0.1, [2, 5])
    assert loss.dtype == torch.float32
    assert float(loss) == pytest.approx(float(attention_loss(attentions, pairs, 0.1, [2, 5])), abs=2e-3)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tiny_models.qwen3_vl(tmp_path_factory.mktemp("loss") / "qwen")
    return load(Embedder(path=str(folder), attention="eager", modalities=("text",), batch_size=4), "cpu", "tiny", 1)


def loss_and_gradients(model, modules, layers):
    network = model.network
    features = model.tokens([text for text, _ in CAPTIONS])
    pairs = word_pairs(locate_words(model, CAPTIONS), features["attention_mask"])
    network.zero_grad()
    with recorded_attentions(modules, layers) as attentions:
        embedding = network(dict(features))["sentence_embedding"]
    assert set(attentions) == set(layers)
    loss = attention_loss(attentions, pairs, 0.5, layers)
    (loss + 0 * embedding.sum()).backward()
    gradients = {name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None}
    return float(loss.detach()), gradients


def test_gradients_reach_the_projections_of_the_layers_below_with_or_without_checkpointing(model):
    modules = attention_modules(model.network, model.tokens(["a cube"]), "tiny")
    plain = loss_and_gradients(model, modules, [2])
    for layer in (0, 1):
        for projection in ("q_proj", "k_proj"):
            (gradient,) = (
                g for n, g in plain[1].items() if f"language_model.layers.{layer}.self_attn.{projection}" in n
            )
            assert gradient.abs().max() > 0
    (value,) = (g for n, g in plain[1].items() if "language_model.layers.1.self_attn.v_proj" in n)
    assert not value.any(), "what the last layer's attention carries is not what the loss looks at"
    transformer = model.network.transformers_model
    transformer.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    transformer.train()
    try:
        again = loss_and_gradients(model, modules, [2])
    finally:
        transformer.gradient_checkpointing_disable()
        transformer.eval()
    assert again[0] == pytest.approx(plain[0], abs=1e-7)
    for name, gradient in plain[1].items():
        torch.testing.assert_close(again[1][name], gradient, atol=1e-7, rtol=1e-5)


def test_layers_that_a_model_does_not_have_are_refused(model):
    modules = attention_modules(model.network, model.tokens(["a cube"]), "tiny")
    for layer in (0, 3):
        message = f"layer {layer} is not among the model's 2"
        with pytest.raises(UserError, match=message), recorded_attentions(modules, [layer]):
            pass
