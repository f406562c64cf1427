"""The triplet loss, the four-text step, batches, and the size of the adapter (section 4, B.5)."""

import random
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from bindbench.errors import UserError
from bindbench.finetune.base import encode, load_base
from bindbench.finetune.batches import read_examples, steps_of, training_batches
from bindbench.finetune.lora import add_adapter, layer_of, target_modules, trainable
from bindbench.finetune.processes import Processes
from bindbench.finetune.training import batch_loss, lengths_of, new_record, prepare, train_step, triplet_hinge
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers.sentence_transformer.losses import TripletDistanceMetric, TripletLoss


def vectors(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 3), st.floats(0.01, 1.5))
@settings(max_examples=60, deadline=None)
def test_the_loss_is_sentence_transformers_triplet_loss(seed, count, negatives, margin):
    query, positive = vectors(count, 8, seed=seed), vectors(count, 8, seed=seed + 1)
    others = vectors(count, negatives, 8, seed=seed + 2)
    peer = TripletLoss(torch.nn.Identity(), TripletDistanceMetric.COSINE, margin)
    repeated = [part.repeat_interleave(negatives, 0) for part in (query, positive)]
    expected = peer.compute_loss_from_embeddings([*repeated, others.flatten(0, 1)], None)
    assert float(triplet_hinge(query, positive, others, margin)) == pytest.approx(float(expected), abs=1e-6)


def test_the_loss_ends_where_the_margin_is_kept():
    """cos(q, p) = 1, cos(q, n) = 0.96 and 0.94: the hinge is 0.01 and 0."""
    query = torch.tensor([[1.0, 0.0]])
    others = torch.tensor([[[0.96, (1 - 0.96**2) ** 0.5], [0.94, (1 - 0.94**2) ** 0.5]]])
    assert float(triplet_hinge(query, 3 * query, others, 0.05)) == pytest.approx(0.005, abs=1e-6)


# The step


@pytest.fixture
def trainee(tiny, run_of):
    """A model whose adapter already changes it: with B = 0 the gradient of A would be zero whatever is computed."""
    run = run_of(margin=1.0)
    model = load_base(tiny, run, "cpu", 1)
    add_adapter(model.network.transformers_model, "tiny", 4, 4, 0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in trainable(model.network).values():
            weight.normal_(0, 0.1, generator=generator)
    return prepare(model, run)


def gradients(trainee) -> list[torch.Tensor]:
    weights = trainable(trainee.model.network).values()
    found = [weight.grad.clone() for weight in weights]
    for weight in weights:
        weight.grad = None
    return found


def test_four_texts_give_the_gradient_of_six(trainee, tables):
    """The two triplets of an example share query and positive; the mean over triplets is the same."""
    examples = read_examples(tables[0], None, 0, "examples")[:7]
    model = trainee.model
    losses = []
    for role in ("attribute_negative", "object_negative"):
        columns = [[getattr(e, name) for e in examples] for name in ("query", "positive", role)]
        query, positive, negative = (encode(model, model.tokens(texts)) for texts in columns)
        losses.append(triplet_hinge(query, positive, negative[:, None], 1.0))
    six = sum(losses) / 2
    six.backward()
    expected = gradients(trainee)
    counts = new_record()
    loss = train_step(trainee, [examples], counts)
    assert loss == pytest.approx(six.item(), abs=1e-6)
    for ours, theirs in zip(gradients(trainee), expected, strict=True):
        assert theirs.abs().max() > 1e-5
        assert torch.allclose(ours, theirs, atol=1e-6, rtol=1e-4)


def test_a_step_tokenises_four_texts_an_example(trainee, tables):
    examples = read_examples(tables[0], None, 0, "examples")[:3]
    seen: list[str] = []
    tokens = trainee.model.tokens
    model = SimpleNamespace(tokens=lambda texts: seen.extend(texts) or tokens(texts), network=trainee.model.network)
    model.entry = trainee.model.entry
    batch_loss(trainee._replace(model=model), examples, new_record())
    assert sorted(seen) == sorted(text for example in examples for text in example[:4])


def test_accumulated_batches_make_the_step_of_one_large_one(trainee, tables):
    """Also when the last batch is smaller: every triplet weighs the same."""
    examples = read_examples(tables[0], None, 0, "examples")[:7]
    losses, steps = [], []
    for batches in ([examples], [examples[:3], examples[3:6], examples[6:]]):
        losses.append(train_step(trainee, batches, new_record()))
        steps.append(gradients(trainee))
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)
    assert all(torch.allclose(a, b, atol=1e-6, rtol=1e-4) for a, b in zip(*steps, strict=True))


@pytest.mark.parametrize("kind", ["tiny", "encoder"])
def test_gradient_checkpointing_computes_again_and_changes_nothing(kind, tables, run_of, request):
    """The encoder's own dropout stays off: layers are told that they train, what is inside them is not."""
    examples = read_examples(tables[0], None, 0, "examples")[:4]
    found, passes = [], []
    for again in (False, True):
        run = run_of(margin=1.0, gradient_checkpointing=again)
        model = load_base(request.getfixturevalue(kind), run, "cpu", 1)
        add_adapter(model.network.transformers_model, kind, 4, 4, 0)
        names = ("language_model.layers.0.input_layernorm", "encoder.layer.0.attention.self.query")
        inner = next(part for name, part in model.network.named_modules() if name.endswith(names))
        passes.append(0)
        inner.register_forward_hook(lambda *_: passes.__setitem__(-1, passes[-1] + 1))
        train_step(trainee := prepare(model, run), [examples], new_record())
        found.append(gradients(trainee))
    assert passes == [2, 4]  # queries and sentences, and once more in the backward pass
    assert any(part.abs().max() > 0 for part in found[0])
    assert all(torch.allclose(a, b, atol=1e-7, rtol=1e-5) for a, b in zip(*found, strict=True))


def test_the_shares_of_two_processes_are_the_whole_step(trainee, tables):
    examples = read_examples(tables[0], None, 0, "examples")[:7]
    counts = new_record()
    whole, expected = train_step(trainee, [examples[:6], examples[6:]], counts), gradients(trainee)
    batches = [examples[:6], examples[6:]]  # of the second batch the second process has nothing
    shares = sum(train_step(trainee, batches, counts, Processes(rank, 2)) for rank in range(2))
    assert shares == pytest.approx(whole, abs=1e-6)
    assert all(torch.allclose(a, b, atol=1e-6, rtol=1e-4) for a, b in zip(gradients(trainee), expected, strict=True))


def test_the_attention_loss_adds_a_second_gradient(tiny, tables, run_of):
    examples = read_examples(tables[0], None, 0, "examples")[:4]
    losses, found = [], []
    for weight in (0.0, 0.5, 1.0):
        model = load_base(tiny, run := run_of(attention_weight=weight, attention_margin=0.5), "cpu", 1)
        add_adapter(model.network.transformers_model, "tiny", 4, 4, 0)
        trainee = prepare(model, run)
        losses.append(train_step(trainee, [examples], new_record()))
        found.append(gradients(trainee))
    assert losses[2] - losses[0] == pytest.approx(2 * (losses[1] - losses[0]), abs=1e-5) and losses[2] > losses[0]
    assert not all(torch.allclose(a, b) for a, b in zip(found[0], found[2], strict=True))


def test_the_attention_loss_refuses_a_layer_that_is_not_there(tiny, run_of):
    run = run_of(attention_weight=1.0, attention_layers=(1, 5))
    with pytest.raises(UserError, match=r"attention_layers: tiny has 2 layers \(got 1 to 5\)"):
        prepare(load_base(tiny, run, "cpu", 1), run)


# Batches


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 9))), st.integers(1, 9), st.integers(0, 99))
def test_an_epoch_holds_every_example_once_in_batches_of_like_length(lengths, size, seed):
    batches = training_batches(lengths, size, seed, 0)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert batches == training_batches(lengths, size, seed, 0)
    if batches:
        assert max(lengths) == max(lengths[i] for i in batches[0])
        spans = sorted([min(lengths[i] for i in batch), max(lengths[i] for i in batch)] for batch in batches)
        assert all(left[1] <= right[0] for left, right in pairwise(spans))


def test_epochs_are_shuffled_anew_and_steps_never_cross_them():
    lengths = [(random.Random(index).randint(1, 5), 1) for index in range(50)]
    steps = steps_of(lengths, 4, 3, 0, 2)
    assert len(steps) == 2 * 5 and [len(step) for step in steps[:5]] == [3, 3, 3, 3, 1]
    assert steps[:5] != steps[5:]
    assert steps != steps_of(lengths, 4, 3, 1, 2)


def test_lengths_are_the_tokens_that_the_model_reads(trainee, tables):
    examples = read_examples(tables[0], None, 0, "examples")
    lengths = lengths_of(trainee.model, examples)
    for example, (positive, query) in zip(examples, lengths, strict=True):
        assert trainee.model.tokens([example.positive])["input_ids"].shape[1] == positive
        assert trainee.model.tokens([example.query])["input_ids"].shape[1] == query


def test_a_sample_of_examples_is_the_seeds(tables):
    whole = read_examples(tables[0], None, 0, "k")
    one, again, other = (read_examples(tables[0], 12, seed, "k") for seed in (0, 0, 1))
    assert one == again != other and len(one) == 12 and all(example in whole for example in one)


def test_too_few_examples_are_refused(tables):
    with pytest.raises(UserError, match=r"runs\.x\.examples: 31 is more than .*train\.parquet has \(30\)"):
        read_examples(tables[0], 31, 0, "finetuning.runs.x.examples")
    assert len(read_examples(tables[0], 31, 0, "k", all_if_fewer=True)) == 30


# The adapter


def qwen3_vl_shape(layers: int, hidden: int, heads: int) -> torch.nn.Module:
    """The text model's real shape, without memory; of the vision tower only that there is one."""
    from transformers import Qwen3VLConfig, Qwen3VLModel

    text = {"num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads}
    text |= {"num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3 * hidden, "vocab_size": 1000}
    with torch.device("meta"):
        return Qwen3VLModel(Qwen3VLConfig(text_config=text, vision_config={"depth": 2, "out_hidden_size": hidden}))


@pytest.mark.parametrize(
    "layers, hidden, heads, expected", [(36, 4096, 32, 3_833_856), (28, 2048, 16, 1_605_632)], ids=["8B", "2B"]
)
def test_the_papers_models_have_the_papers_number_of_trainable_parameters(layers, hidden, heads, expected):
    network = qwen3_vl_shape(layers, hidden, heads)
    add_adapter(network, "qwen", rank=4, alpha=4, seed=0)
    weights = trainable(network)
    assert sum(weight.numel() for weight in weights.values()) == expected
    assert len(weights) == layers * 4 * 2 and all("lora_" in name for name in weights)
    assert not any("visual" in name for name in weights)


def test_minilm_is_trained_at_the_same_four_places_of_all_six_layers():
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    with torch.device("meta"):
        network = BertModel(config)
    add_adapter(network, "minilm", rank=4, alpha=4, seed=0)
    weights = trainable(network)
    assert sum(weight.numel() for weight in weights.values()) == 6 * 4 * 4 * (384 + 384) == 73_728
    places = {name.split(".lora_")[0].split("attention.")[1] for name in weights}
    assert places == {"self.query", "self.key", "self.value", "output.dense"}


@pytest.mark.parametrize(
    "name, layer",
    [
        ("language_model.layers.11.self_attn.q_proj", 11),
        ("model.language_model.layers.0.self_attn.o_proj", 0),
        ("layers.3.self_attn.k_proj", 3),
        ("encoder.layer.5.attention.output.dense", 5),
        ("encoder.layer.5.output.dense", None),
        ("visual.blocks.2.attn.proj", None),
        ("vision_model.encoder.layers.2.self_attn.q_proj", None),
        ("language_model.layers.1.mlp.up_proj", None),
    ],
)
def test_only_attention_projections_of_the_text_model_have_a_layer(name, layer):
    assert layer_of(name) == layer


def test_a_model_without_known_projections_is_refused():
    with pytest.raises(UserError, match=r"embedders\.odd: a Sequential has no attention projections .* another base"):
        target_modules(torch.nn.Sequential(torch.nn.Linear(2, 2)), "odd")
