"""The nano embedder's pretraining: what its losses reward, that it learns, that a killed run goes on as the unbroken one."""

import csv
import json
import multiprocessing
import os
import shutil
import signal
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from bindbench.captions import caption
from bindbench.config.nano import Nano
from bindbench.errors import UserError
from bindbench.nano.combinations import is_held_out
from bindbench.nano.forward import Forward
from bindbench.nano.making import check
from bindbench.nano.pretraining import (
    IGNORED,
    Trainee,
    Training,
    _blocks,
    contrast,
    equal_pairs,
    grounding_loss,
    joint_loss,
    phrase_ends,
    pointing_loss,
    pretrain,
    rate_share,
    read_data,
    read_texts,
    validate,
    words_loss,
    words_of,
)
from bindbench.nano.scenes import BLOCK
from bindbench.nano.texts import shuffled, with_one_replaced
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from nano_runs import run_in, run_slowly
from safetensors.torch import load_file


@pytest.fixture(scope="session")
def data(small, parts):
    return read_data(small, parts["pixels"], parts["tables"], parts["triplets"][0])


@pytest.fixture(scope="session")
def held(small, parts):
    return read_data(small, [parts["held"][0]], [parts["held"][1]], None)


def test_contrast_is_the_cross_entropy_of_both_directions():
    left = torch.nn.functional.normalize(torch.randn(4, 8, generator=torch.Generator().manual_seed(0)), dim=1)
    right, others = left.flip(0), left[:2]
    scores = (5 * left @ torch.cat([right, others]).T).numpy().astype(float)
    forth = np.mean([np.log(np.exp(row).sum()) - row[i] for i, row in enumerate(scores)])
    back = np.mean([np.log(np.exp(column).sum()) - column[i] for i, column in enumerate(scores[:, :4].T)])
    assert contrast(torch.tensor(5.0), left, right, others).item() == pytest.approx((forth + back) / 2, rel=1e-5)


def test_scenes_that_only_swap_are_no_negatives_of_one_another():
    scenes = [
        [("red", "car"), ("icy", "cup")],
        [("icy", "car"), ("red", "cup")],
        [("red", "car"), ("icy", "kite")],
        [("icy", "cup"), ("red", "car")],
    ]
    words, bindings = equal_pairs([words_of(pairs) for pairs in scenes]), equal_pairs([frozenset(s) for s in scenes])
    assert words.tolist() == [[(i != 2 and j != 2) or i == j for j in range(4)] for i in range(4)]
    assert bindings[0].tolist() == [True, False, False, True], "with siblings a swapped scene is a negative"
    vectors = torch.nn.functional.normalize(torch.randn(4, 8, generator=torch.Generator().manual_seed(0)), dim=1)
    scale = torch.tensor(5.0)
    left = vectors.clone().requires_grad_()
    contrast(scale, left, vectors, alike=words).backward()
    # Of row 0 only its own row and row 2 are left: the gradient lies in the plane of their difference.
    difference = vectors[2] - vectors[0]
    cosine = torch.nn.functional.cosine_similarity(left.grad[0], difference, dim=0)
    assert cosine.abs().item() == pytest.approx(1.0, abs=1e-5)


def test_a_batch_is_made_of_whole_blocks():
    generator = np.random.default_rng(0)
    for scenes, size in ((10 * BLOCK + 7, 2 * BLOCK), (5 * BLOCK, 2 * BLOCK + 3), (9, 4)):
        chosen = _blocks(scenes, size, generator)
        assert len(set(chosen)) == size and all(0 <= index < scenes for index in chosen)
        assert len({index // BLOCK for index in chosen}) <= -(-size // BLOCK) + 1
    reached = {index for _ in range(300) for index in _blocks(3 * BLOCK + 5, BLOCK, generator)}
    assert reached == set(range(3 * BLOCK + 5)), "every scene has its turn"


def test_a_phrase_ends_where_its_object_ends(network, tokenizer):
    passes = Forward(network, tokenizer)
    pairs = [("red", "car"), ("icy", "hat"), ("golden", "violin")]
    ids = passes.text_ids([caption(pairs)])[0]
    for (_, thing), end in zip(pairs, phrase_ends(passes, pairs), strict=True):
        assert tokenizer.decode(ids[: end + 1]).endswith(f" {thing}")


def test_grounding_is_right_when_words_stand_by_their_own_tokens(network):
    trainee = Trainee(network)
    seen = torch.nn.functional.normalize(torch.randn(2, 25, 16, generator=torch.Generator().manual_seed(0)), dim=-1)
    shown = torch.zeros(4, 50, dtype=torch.bool)
    shown[0, [3, 4]], shown[1, 9], shown[2, 25 + 7] = True, True, True  # the fourth is covered by the others
    read = torch.stack([seen[0, 3] + seen[0, 4], seen[0, 9], seen[1, 7], seen[1, 0]])
    pairs = [("red", "car"), ("icy", "cup"), ("red", "cup"), ("icy", "hat")]
    loss, right = grounding_loss(trainee, seen, shown, read, pairs)
    assert right == 1.0
    worse, none = grounding_loss(trainee, seen, shown, read[[1, 2, 0, 3]], pairs)
    assert none == 0.0 and worse > loss
    # The same combination twice in a batch: neither is wrong for the other.
    same, _ = grounding_loss(trainee, seen, shown, read[[1, 0, 2, 3]], [pairs[0], pairs[0], *pairs[2:]])
    assert same < grounding_loss(trainee, seen, shown, read[[1, 0, 2, 3]], pairs)[0]


def test_reading_gives_embeddings_phrase_states_and_the_loss_of_sentences(network, tokenizer):
    passes = Forward(network, tokenizer)
    pairs = [[("red", "car"), ("icy", "hat")], [("golden", "kite")]]
    sentences = ["a red car stood by the gate.", "a red car stood."]
    texts = [*(caption(scene) for scene in pairs), *sentences]
    ids = passes.text_ids(texts)
    with torch.no_grad():
        vectors, read, language = read_texts(passes, ids, [phrase_ends(passes, scene) for scene in pairs], 2)
        assert torch.allclose(vectors, passes.embed_texts(texts), atol=1e-6)
        losses, states = [], []
        for row in ids:
            positions = torch.arange(len(row)).expand(3, -1)
            middle, last = passes.decode_in_halves(network.language_model.embed_tokens(torch.tensor([row])), positions)
            logits = passes.normed(last[0]) @ network.language_model.embed_tokens.weight.T
            first, behind = len(passes.before), len(passes.after)
            within = range(first, len(row) - behind)
            losses.append([-logits[at - 1].log_softmax(0)[row[at]].item() for at in within])
            states.append(middle[0])
    assert language.item() == pytest.approx(np.mean(losses[2] + losses[3]), rel=1e-4)
    ends = [phrase_ends(passes, scene) for scene in pairs]
    assert torch.allclose(
        read, torch.stack([states[0][ends[0][0]], states[0][ends[0][1]], states[1][ends[1][0]]]), atol=1e-5
    )


def test_pointing_is_right_when_tokens_are_the_words(network, tokenizer, small):
    passes, trainee = Forward(network, tokenizer), Trainee(network)
    words = passes.word_vectors(list(small.objects)).detach()
    objects, attributes = np.full((1, 25), IGNORED), np.full((1, 25), IGNORED)
    objects[0, :5], attributes[0, :5] = [3, 1, 4, 1, 5], 2
    seen = torch.zeros(1, 25, words.shape[1])
    seen[0, :5] = 7 * words[[3, 1, 4, 1, 5]]
    loss, _, right, _ = pointing_loss(trainee, passes, small, seen, (objects, attributes))
    assert right == 1.0
    seen[0, :5] = words[[3, 1, 4, 0, 0]]
    worse, _, share, _ = pointing_loss(trainee, passes, small, seen, (objects, attributes))
    assert share == pytest.approx(0.6) and worse > loss


@hypothesis_settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 5))
def test_a_replaced_caption_names_one_concept_that_the_scene_lacks(small, seed, size):
    generator = np.random.default_rng(seed)
    pairs = list(zip(list(small.attributes)[:size], list(small.objects)[:size], strict=True))
    changed = with_one_replaced(pairs, small, generator)
    assert sum(before != after for before, after in zip(pairs, changed, strict=True)) == 1
    words = {word for pair in pairs for word in pair}
    assert len({word for pair in changed for word in pair} - words) == 1, (
        "never the scene's own concepts bound otherwise"
    )
    new = next(after for before, after in zip(pairs, changed, strict=True) if before != after)
    assert not is_held_out(*new)
    assert sorted(shuffled(pairs, generator)) == sorted(pairs)


def test_the_rate_rises_stays_and_falls():
    shares = [rate_share(step, 100, 10) for step in range(100)]
    assert shares[0] == pytest.approx(0.1) and shares[9:50] == pytest.approx([1.0] * 41)
    assert shares[75] == pytest.approx(0.5) and min(shares[10:]) >= 0.02
    assert all(later <= earlier for earlier, later in pairwise(shares[50:]))


def test_the_first_stage_trains_the_tower_and_the_words_alone(network, tokenizer, data, settings):
    training = Training(Trainee(network), tokenizer, 1e-3, first_stage=True, compiled=False)
    before = {name: weight.clone() for name, weight in training.weights.items()}
    loss, _ = words_loss(training, data, settings, np.random.default_rng(0))
    loss.backward()
    training.step(1.0)
    moved = {name for name, weight in training.weights.items() if not torch.equal(weight, before[name])}
    assert any(name.startswith("model.visual.blocks") for name in moved) and "log_sharpness" in moved
    assert "model.language_model.embed_tokens.weight" in moved
    assert not any("language_model.layers" in name or "deepstack" in name or "retelling" in name for name in moved)


def test_the_second_stage_trains_everything_that_the_passes_use(network, tokenizer, data, settings):
    training = Training(Trainee(network), tokenizer, 1e-3, first_stage=False, compiled=False)
    loss, logged = joint_loss(training, data, settings, np.random.default_rng(0))
    loss.backward()
    still = {name for name, weight in training.copies.items() if weight.grad is None}
    assert all("bias" in name or "norm" in name for name in still), still
    assert {"image_text", "captioning", "retelling", "sentences"} <= set(logged)
    assert all(np.isfinite(logged[name]) for name in ("image_text", "captioning", "retelling"))


def test_it_learns_what_it_is_shown(network, tokenizer, data, settings):
    """Twenty steps on two scenes: the losses of naming them fall far."""
    few = replace(data, pairs=data.pairs[:4], tokens=data.tokens[:4])
    training = Training(Trainee(network), tokenizer, 3e-3, first_stage=False, compiled=False)
    seen = []
    for step in range(25):
        loss, logged = joint_loss(training, few, settings, np.random.default_rng(step))
        loss.backward()
        training.step(1.0)
        seen.append(logged)
    for name in ("captioning", "retelling", "words"):
        first, last = (np.mean([row[name] for row in part]) for part in (seen[:3], seen[-3:]))
        assert last < 0.7 * first, name


def test_validation_counts_what_is_closest(tokenizer, held, small, monkeypatch):
    """With vectors that are sets of bindings, everything is right; with bags of words, binding is not."""

    class Passes:
        def __init__(self, binding: bool):
            self.binding = binding

        def vector(self, pairs):
            vector = torch.zeros(len(small.attributes) * len(small.objects) + 100)
            for attribute, thing in pairs:
                a, o = list(small.attributes).index(attribute), list(small.objects).index(thing)
                places = [a * len(small.objects) + o] if self.binding else [-1 - a, -50 - o]
                vector[places] += 1
            return vector / vector.norm()

        def embed_texts(self, texts):
            return torch.stack(
                [self.vector([tuple(phrase.split(" ", 2)[1:]) for phrase in text.split(" and ")]) for text in texts]
            )

        def embed_images(self, pixels):
            return torch.stack([self.vector(held.pairs[int(image[0, 0, 0])]) for image in pixels])

    numbered = [np.zeros((len(held), 2, 1, 1, 3), np.uint8)]
    numbered[0][:, :, 0, 0, 0] = np.arange(len(held))[:, None]
    marked = replace(held, shards=numbered)
    assert validate(Passes(binding=True), marked, 0) == {"single_object": 1.0, "binding": 1.0}
    bag = validate(Passes(binding=False), marked, 0)
    assert bag["single_object"] == 1.0 and bag["binding"] == 0.0, "a tie is wrong"


@pytest.fixture(scope="session")
def made(small, settings, parts, tmp_path_factory, one_thread, monkeypatch_session=None):
    folder = tmp_path_factory.mktemp("made")
    os.environ["PATH"], path = "", os.environ["PATH"]  # no C++ compiler: compiling would take a minute
    try:
        run_in(folder, small, settings, parts)
    finally:
        os.environ["PATH"] = path
    return folder


def test_a_run_writes_weights_curves_record_and_card(made, settings, held):
    record = json.loads((made / "record.json").read_text())
    assert record["settings"] == settings.model_dump(mode="json")
    assert record["scenes"] == 24 and record["compiled"] is False
    rows = list(csv.DictReader((made / "log.csv").open()))
    assert [(row["stage"], int(row["step"])) for row in rows] == [
        *(("words", step) for step in (2, 4, 6)),
        *(("joint", step) for step in (2, 4)),
    ]
    assert all(float(row["binding"]) <= 1 for row in rows if row["stage"] == "joint")
    assert check(made / "model", held, record["check"]["scenes"]) == record["check"]
    card = (made / "model/README.md").read_text()
    assert f"{100 * record['check']['binding']:.1f} %" in card and "were never shown" in card


def test_a_killed_run_goes_on_and_ends_the_same(made, small, settings, parts, tmp_path):
    process = multiprocessing.get_context("spawn").Process(target=run_slowly, args=(tmp_path, small, settings, parts))
    process.start()
    limit = time.monotonic() + 300
    while len(list(tmp_path.glob("checkpoints/*/step-*"))) < 2 and time.monotonic() < limit and process.is_alive():
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not (tmp_path / "record.json").exists(), "it was killed before its end"
    os.environ["PATH"], path = "", os.environ["PATH"]
    try:
        run_in(tmp_path, small, settings, parts)
    finally:
        os.environ["PATH"] = path
    first, second = (load_file(folder / "model/model.safetensors") for folder in (made, tmp_path))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_loss_that_is_not_a_number_is_one_line(network, tokenizer, data, held, settings, tmp_path):
    with torch.no_grad():
        network.visual.patch_embed.proj.weight.fill_(float("nan"))
    with pytest.raises(UserError, match=r"step 1 \(words\) is not a number; lower words_rate"):
        pretrain(Trainee(network), tokenizer, data, held, settings, {}, tmp_path, False)


def test_other_joint_settings_keep_the_first_stage(made, small, settings, parts, tmp_path):
    from bindbench.nano.pretraining import _trained_by

    changed = settings.model_copy(update={"joint_steps": 9, "retelling_weight": 0.0, "log_every": 3})
    assert _trained_by(changed, "words") == _trained_by(settings, "words")
    assert _trained_by(changed, "joint") != _trained_by(settings, "joint")
    assert _trained_by(settings.model_copy(update={"seed": 1}), "words") != _trained_by(settings, "words")


@pytest.mark.parametrize("fault", ["cut short", "other scenes", "no array"])
def test_images_that_are_not_the_scenes_are_one_line(small, parts, tmp_path, fault):
    path = tmp_path / "0.npy"
    data = parts["pixels"][0].read_bytes()
    path.write_bytes({"cut short": data[:-9], "no array": b"nothing"}.get(fault, data))
    table = parts["held"][1] if fault == "other scenes" else parts["tables"][0]
    with pytest.raises(UserError, match=r"0\.npy: not the images of the \d+ scenes beside it; delete it and run again"):
        read_data(small, [path], [table], None)


def test_other_pixels_of_the_same_scenes_are_trained_again(made, small, settings, parts, tmp_path):
    """As after a change of the renderer: the tables are the same, and the last checkpoint must not be taken for done."""
    shutil.copytree(made, tmp_path / "made")
    np.save(tmp_path / "0.npy", 255 - np.load(parts["pixels"][0]))
    changed = {**parts, "pixels": [tmp_path / "0.npy", parts["pixels"][1]]}
    os.environ["PATH"], path = "", os.environ["PATH"]
    try:
        run_in(tmp_path / "made", small, settings, changed)
    finally:
        os.environ["PATH"] = path
    before, after = (load_file(folder / "model/model.safetensors") for folder in (made, tmp_path / "made"))
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_a_batch_larger_than_the_data_is_refused_with_the_config():
    with pytest.raises(ValueError, match="joint_batch: there are only 24 scenes"):
        Nano(shards=2, shard_size=12, joint_batch=25)
