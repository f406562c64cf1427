"""The weights that ship: they load as any embedder's folder, and score what their card says."""

import json

import pytest
from bindbench.config.nano import Nano
from bindbench.nano.card import card
from bindbench.nano.making import check
from bindbench.nano.pretraining import read_data
from bindbench.nano.scenes import render_nano_scenes
from bindbench.scenes.relief import build_reliefs


@pytest.fixture(scope="module")
def record(repository) -> dict:
    return json.loads((repository / "resources/models/nano/record.json").read_text())


def test_the_card_is_the_record_s(repository, record):
    assert (repository / "resources/models/nano/README.md").read_text() == card(record)
    assert (repository / "resources/models/nano/model.safetensors").stat().st_size <= 15e6
    assert record["settings"] == Nano().model_dump(mode="json"), "the defaults are what made the weights"


def test_the_weights_score_what_the_card_says(repository, record, vocabulary, fetched_shapes, one_thread, tmp_path):
    scenes = record["check"]["scenes"]
    build_reliefs([thing.shape for thing in vocabulary.objects.values()], fetched_shapes, tmp_path / "reliefs.bin", 1)
    paths = tmp_path / "held.npy", tmp_path / "held.parquet"
    render_nano_scenes(vocabulary, tmp_path / "reliefs.bin", record["settings"]["seed"] + 1, range(scenes), *paths)
    held = read_data(vocabulary, [paths[0]], [paths[1]], None)
    again = check(repository / "resources/models/nano", held)
    assert again == pytest.approx(record["check"], abs=0.02)
    assert again["single_object"] > 0.6, "it knows concepts"
    assert 0.6 < again["binding"] < 0.8, "and binds a little: the model before finetuning, with room"
