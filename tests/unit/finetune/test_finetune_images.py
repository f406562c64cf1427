"""Finetuning on image triplets (Appendix E): the same loss at the same places, four images in place of four texts."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from bindbench.config.finetuning import Run
from bindbench.embedders.loading import load
from bindbench.errors import UserError
from bindbench.files import sha256
from bindbench.finetune import training
from bindbench.finetune.base import embed, encode, features_of, load_base
from bindbench.finetune.batches import Example, digest_of_images, read_image_examples, steps_of
from bindbench.finetune.lora import add_adapter, trainable
from bindbench.finetune.training import batch_loss, finetune, lengths_of, new_record, prepare, validate
from bindbench.paths import REPOSITORY
from bindbench.tables import IMAGE_TRIPLETS, IMAGES, TRIPLET_ROLES, write_table
from PIL import Image
from sentence_transformers.sentence_transformer.losses import TripletDistanceMetric, TripletLoss

BINDINGS = [{"attribute": a, "realised": a, "object": o, "slots": []} for a, o in (("red", "cube"), ("blue", "kite"))]
CHILD = """
import json, sys
from pathlib import Path
from bindbench.config.embedders import Embedder
from bindbench.config.finetuning import Run
from bindbench.finetune.training import finetune
run, entry, data = Run.model_validate_json(sys.argv[1]), Embedder.model_validate_json(sys.argv[2]), json.loads(sys.argv[3])
train, validation, *images = map(Path, data)
finetune(run, entry, "mine", train, validation, Path(sys.argv[4]), "cpu", 1, images[:2], images[2:])
"""


def write_part(folder: Path, part: str, count: int, shards: int = 1, seed: int = 0) -> tuple[Path, list[Path]]:
    """A table of examples and the tables of their images, which are noise of 64 pixels a side: nothing to generalise."""
    draw = np.random.default_rng([seed, len(part)])
    rows = [
        {"example": f"{part}-{i:05d}", "n_objects": 2} | dict.fromkeys(TRIPLET_ROLES, BINDINGS) for i in range(count)
    ]
    write_table(IMAGE_TRIPLETS, rows, folder / f"{part}.parquet")
    tables = []
    for shard, chosen in enumerate(np.array_split(rows, shards)):
        table = folder / part / f"{shard:04d}.parquet"
        table.with_suffix("").mkdir(parents=True)
        images = []
        for scene in (f"{row['example']}-{role}" for row in chosen for role in TRIPLET_ROLES):
            path = table.with_suffix("") / f"{scene}.png"
            Image.fromarray(draw.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(path)
            place = {"path": f"{table.stem}/{path.name}", "sha256": sha256(path.read_bytes())}
            images.append({"scene": scene, "flipped": False, "renderer": "noise"} | place)
        write_table(IMAGES, images, table)
        tables.append(table)
    return folder / f"{part}.parquet", tables


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> tuple[Path, Path, list[Path], list[Path]]:
    """Training examples in two shards, validation examples in one; and the tables of their images."""
    folder = tmp_path_factory.mktemp("image_triplets")
    train, train_images = write_part(folder, "train", 15, 2)
    validation, validation_images = write_part(folder, "validation", 4)
    return train, validation, train_images, validation_images


@pytest.fixture
def image_run(run_of):
    return lambda **settings: run_of(data="image_triplets", **settings)


def learn(run: Run, entry, data, folder: Path) -> dict:
    train, validation, train_images, validation_images = data
    images = {"train_images": train_images, "validation_images": validation_images}
    finetune(run, entry, "mine", train, validation, folder, "cpu", 1, **images)
    return json.loads((folder / "record.json").read_text())


def examples_of(data, count: int | None = None) -> list[Example]:
    return read_image_examples(data[0], data[2], count, 0, "k")


def adapted(entry, run: Run):
    """A model whose adapter already changes it."""
    model = load_base(entry, run, "cpu", 1)
    add_adapter(model.network.transformers_model, "tiny", 4, 4, 0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in trainable(model.network).values():
            weight.normal_(0, 0.1, generator=generator)
    return prepare(model, run)


def adapter_bytes(folder: Path) -> bytes:
    return (folder / "adapter/adapter_model.safetensors").read_bytes()


def vision_tower(network) -> torch.nn.Module:
    return next(part for name, part in network.named_modules() if name.endswith("visual"))


# What is learnt


def test_ten_examples_are_overfit_to_all_triplets_right(tiny, image_run, tmp_path):
    train, images = write_part(tmp_path, "train", 10)
    run = image_run(batch_size=10, epochs=15, learning_rate=1e-2)
    record = learn(run, tiny, (train, train, images, images), tmp_path / "run")
    assert record["validation"]["before"]["accuracy"] < 0.9
    assert record["validation"]["after"]["accuracy"] == 1.0
    assert record["tokens"] > 0 and record["padding_share"] == 0, "images of one size need no padding"


def test_the_loss_is_sentence_transformers_triplet_loss_on_the_same_embeddings(tiny, image_run, data):
    trainee, batch = adapted(tiny, image_run(margin=0.3)), examples_of(data, 6)
    parts = [encode(trainee.model, features_of(trainee.model, [e[role] for e in batch])) for role in range(4)]
    query, positive, *negatives = parts
    peer = TripletLoss(torch.nn.Identity(), TripletDistanceMetric.COSINE, 0.3)
    expected = [peer.compute_loss_from_embeddings([query, positive, negative], None) for negative in negatives]
    assert batch_loss(trainee, batch, new_record()).item() == pytest.approx(sum(expected).item() / 2, abs=1e-6)


def test_validation_is_triplet_accuracy_of_the_model_as_it_is_measured(tiny, image_run, data):
    model, batch = load(tiny, "cpu", "tiny", 1), examples_of(data)
    query, positive, *negatives = (model.embed_images([example[role].path for example in batch]) for role in range(4))
    right = [((query * positive).sum(1) > (query * negative).sum(1)).mean() for negative in negatives]
    assert validate(model, batch, 0.05)["accuracy"] == pytest.approx(np.mean(right))
    assert np.array_equal(embed(model, [example.query for example in batch]), query)


@pytest.mark.parametrize("changes", [{}, {"gradient_checkpointing": True, "dtype": "bfloat16"}])
def test_the_vision_tower_stays_bit_for_bit_and_no_gradient_enters_it(
    tiny, image_run, data, tmp_path, monkeypatch, changes
):
    """Nor its DeepStack features, which the decoder's first layers add up; every matrix of the adapter moves."""
    kept, outputs = {}, []

    def keep(entry, run, device, threads):
        kept["model"] = model = load_base(entry, run, device, threads)
        vision_tower(model.network).register_forward_hook(
            lambda *seen: outputs.extend([seen[2].pooler_output, *seen[2].deepstack_features])
        )
        kept["before"] = {name: tensor.clone() for name, tensor in model.network.state_dict().items()}
        return model

    monkeypatch.setattr(training, "load_base", keep)
    learn(image_run(**changes), tiny, data, tmp_path)
    network = kept["model"].network
    after = {name.replace(".base_layer", ""): tensor for name, tensor in network.state_dict().items()}
    assert any("visual" in name for name in kept["before"])
    assert all(torch.equal(after[name], tensor) for name, tensor in kept["before"].items())
    assert len(outputs) >= 2 and not any(output.requires_grad for output in outputs)
    weights = trainable(network)
    assert all("language_model" in name and weight.dtype is torch.float32 for name, weight in weights.items())
    assert all("lora_A" in name or weight.abs().max() > 0 for name, weight in weights.items())


def test_gradient_checkpointing_changes_no_gradient(tiny, image_run, data):
    found = []
    for again in (False, True):
        trainee = adapted(tiny, image_run(margin=1.0, gradient_checkpointing=again))
        batch_loss(trainee, examples_of(data, 4), new_record()).backward()
        found.append([weight.grad for weight in trainable(trainee.model.network).values()])
    assert all(part.abs().max() > 0 for part in found[0])
    assert all(torch.allclose(a, b, atol=1e-7, rtol=1e-5) for a, b in zip(*found, strict=True))


def test_lines_and_its_sweep_take_the_adapter_of_images(tiny, image_run, data, tmp_path):
    """The sweep keeps what the model says of single phrases, which the bindings of the examples give."""
    record = learn(image_run(lines_alpha="sweep", examples=5), tiny, data, tmp_path)
    assert [row["alpha"] for row in record["lines"]["sweep"]][::10] == [1.0, 0.0]
    assert load(tiny.model_copy(update={"adapter": str(tmp_path / "adapter_lines")}), "cpu").embed(["a"]).shape == (
        1,
        32,
    )


# Examples and batches


def test_examples_find_their_images_in_all_shards(data):
    examples = examples_of(data)
    assert len(examples) == 15 and all(picture.path.exists() for example in examples for picture in example[:4])
    assert [picture.path.stem for picture in examples[-1][:4]] == [f"train-00014-{role}" for role in TRIPLET_ROLES]
    assert examples[0].bindings[0] == {"attributes": ["red"], "object": "cube"}
    assert examples_of(data, 6) == examples_of(data, 6) and set(map(str, examples_of(data, 6))) < set(
        map(str, examples)
    )
    assert digest_of_images(examples) != digest_of_images(examples[::-1])


def test_batches_are_shuffled_whole_since_all_images_have_one_size(data):
    examples = examples_of(data)
    steps = steps_of(lengths_of(None, examples), 4, 1, 0, 2)  # no tokens are counted, so no model is asked
    epochs = [[index for step in half for batch in step for index in batch] for half in (steps[:4], steps[4:])]
    assert all(sorted(epoch) == list(range(15)) != epoch for epoch in epochs) and epochs[0] != epochs[1]


def test_a_scene_without_image_and_an_image_that_changed_are_told(data, tiny, image_run, tmp_path):
    with pytest.raises(UserError, match=r"no table of images has the scene train-00008-query; run snakemake"):
        read_image_examples(data[0], data[2][:1], None, 0, "k")
    train, images = write_part(tmp_path, "train", 2)
    broken = read_image_examples(train, images, None, 0, "k")[1].positive.path
    broken.write_bytes(broken.read_bytes()[:-5])
    with pytest.raises(UserError, match=rf"{broken}: .* delete {images[0]} and run again"):
        learn(image_run(), tiny, (train, train, images, images), tmp_path / "run")


# What a kill costs


def test_a_killed_run_ends_like_the_unbroken_one_and_other_images_begin_anew(
    tiny, image_run, data, tmp_path, monkeypatch
):
    run = image_run(epochs=4, batch_size=3, validate_every=10)
    whole = learn(run, tiny, data, tmp_path / "whole")
    killed = run.model_copy(update={"checkpoint_minutes": 1e-9})
    paths = json.dumps([str(path) for path in (*data[:2], *data[2], *data[3])])
    arguments = [killed.model_dump_json(), tiny.model_dump_json(), paths, str(tmp_path / "killed")]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "workflow"), "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen([sys.executable, "-c", CHILD, *arguments], env=environment, stderr=subprocess.PIPE)
    while not list((tmp_path / "killed").glob("checkpoints/*/step-*")):
        assert child.poll() is None, child.stderr.read().decode()
        time.sleep(0.005)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL and not (tmp_path / "killed/record.json").exists()
    child.stderr.close()
    resumed = learn(run, tiny, data, tmp_path / "killed")
    assert adapter_bytes(tmp_path / "killed") == adapter_bytes(tmp_path / "whole")
    assert [resumed[key] for key in ("validation", "tokens", "steps")] == [
        whole[key] for key in ("validation", "tokens", "steps")
    ]

    monkeypatch.setattr(training, "train_step", None)  # the same images in other folders and shards: nothing is trained
    train_images = write_part(tmp_path / "elsewhere", "train", 15, 3)[1]
    learn(run, tiny, (*data[:2], train_images, data[3]), tmp_path / "killed")
    assert adapter_bytes(tmp_path / "killed") == adapter_bytes(tmp_path / "whole")
    with pytest.raises(TypeError):  # other images: the training begins anew
        learn(
            run, tiny, (*data[:2], write_part(tmp_path / "other", "train", 15, seed=1)[1], data[3]), tmp_path / "killed"
        )


# Mistakes


def test_a_base_without_images_is_refused(tiny, image_run, data, tmp_path):
    text_only = tiny.model_copy(update={"modalities": ("text",)})
    with pytest.raises(UserError, match=r"embedders\.tiny\.modalities: tiny embeds no images, and image_triplets are"):
        learn(image_run(), text_only, data, tmp_path)
