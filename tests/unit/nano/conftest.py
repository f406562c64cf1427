"""A handful of scenes and sentences, and a model of random weights, made once."""

from pathlib import Path

import pytest
import torch
from bindbench.config.nano import Nano
from bindbench.nano.model import new_model, train_tokenizer
from bindbench.nano.scenes import render_nano_scenes
from bindbench.nano.texts import tokenizer_texts
from bindbench.scenes.relief import build_reliefs
from bindbench.tables import TRIPLETS, write_table
from bindbench.vocabulary import Vocabulary
from synthetic_triplets import rows

OBJECTS = ("car", "cup", "kite", "lamp", "dog", "hat", "boat", "violin", "drum", "duck", "fish", "key")
ATTRIBUTES = ("red", "striped", "golden", "furry", "icy", "wooden", "checkered", "knitted")


@pytest.fixture(scope="session")
def small(vocabulary) -> Vocabulary:
    """A few objects and attributes, so that phrases are few."""
    objects = {name: vocabulary.objects[name] for name in OBJECTS if name in vocabulary.objects}
    attributes = {name: vocabulary.attributes[name] for name in ATTRIBUTES if name in vocabulary.attributes}
    assert len(objects) > 9 and len(attributes) > 5
    return Vocabulary(objects, attributes, vocabulary.palette)


@pytest.fixture(scope="session")
def settings() -> Nano:
    counts = {"shards": 2, "shard_size": 12, "validation_scenes": 50}
    steps = {"words_steps": 6, "words_batch": 4, "joint_steps": 4, "joint_batch": 4}
    return Nano(**counts, **steps, log_every=2, validate_every=2)


@pytest.fixture(scope="session")
def parts(small, settings, fetched_shapes, tmp_path_factory) -> dict[str, list[Path]]:
    """Files of the scenes: two shards and the validation; and of some triplets."""
    folder = tmp_path_factory.mktemp("nano")
    reliefs = folder / "reliefs.bin"
    build_reliefs([thing.shape for thing in small.objects.values()], fetched_shapes, reliefs, 1)
    numbers = {"0": range(12), "1": range(12, 24), "validation": range(50)}
    for name, part in numbers.items():
        seed = settings.seed + (name == "validation")
        render_nano_scenes(small, reliefs, seed, part, folder / f"{name}.npy", folder / f"{name}.parquet")
    write_table(TRIPLETS, rows("pair_swap", 20), folder / "train.parquet")
    return {
        "pixels": [folder / "0.npy", folder / "1.npy"],
        "tables": [folder / "0.parquet", folder / "1.parquet"],
        "held": [folder / "validation.npy", folder / "validation.parquet"],
        "triplets": [folder / "train.parquet"],
        "reliefs": [reliefs],
    }


@pytest.fixture(scope="session")
def tokenizer(small):
    return train_tokenizer(tokenizer_texts(small, ["a red car stood by the gate."]))


@pytest.fixture
def network(tokenizer, one_thread):
    torch.manual_seed(0)
    return new_model(tokenizer)
