"""The embedding loop: each thing once, in order, resumable to the same bytes."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from bindbench.config.embedders import DEFAULT_EMBEDDERS
from bindbench.embedders import embed as embed_module
from bindbench.embedders.embed import ahead, embed_images, embed_texts
from bindbench.embedders.loading import Model
from bindbench.errors import UserError
from bindbench.files import sha256
from bindbench.tables import embeddings_table, read_table
from tiny_models import adapter
from transformers import AutoModel

TEXTS = {
    f"scene-{index}": " and ".join(["a red cube", "a striped dog", "an orange boot"][: 1 + index % 3])
    + f" {index // 4}"
    for index in range(24)
}


@pytest.fixture
def calls(monkeypatch) -> Counter:
    """How often each text or image went through the model, and how often a model was loaded."""
    counted: Counter = Counter()
    texts, images = Model.prepare_texts, Model.prepare_images

    def count_texts(self, batch):
        counted.update(batch)
        return texts(self, batch)

    def count_images(self, batch):
        counted["images"] += len(batch)
        return images(self, batch)

    def count_loads(self):
        counted["loads"] += 1
        return facts(self)

    facts = Model.facts
    monkeypatch.setattr(Model, "prepare_texts", count_texts)
    monkeypatch.setattr(Model, "prepare_images", count_images)
    monkeypatch.setattr(Model, "facts", count_loads)
    monkeypatch.setattr("bindbench.embedders.loading._check_neighbours", lambda model: None)
    return counted


def vectors_in(path: Path) -> dict[str, np.ndarray]:
    table = pq.read_table(path)
    return dict(zip(table["item"].to_pylist(), np.array(table["embedding"].to_pylist(), np.float32), strict=True))


def test_rows_are_the_items_in_order_with_the_models_vectors(entry_of, loaded, tmp_path):
    output = tmp_path / "out/texts.parquet"
    embed_texts(entry_of("qwen3-vl"), "mine", TEXTS, tmp_path / "cache", output, 1, device="cpu")
    table = read_table(embeddings_table(32), output)
    assert table["item"].to_pylist() == list(TEXTS)
    expected = loaded("qwen3-vl").embed(list(TEXTS.values()))
    assert np.array(table["embedding"].to_pylist(), np.float32) == pytest.approx(expected, abs=1e-5)


def test_equal_texts_are_embedded_once_and_kept_forever(entry_of, tmp_path, calls):
    texts = {"a": "one cube", "b": "two dogs", "c": "one cube", "d": "one cube"}
    arguments = (tmp_path / "cache", tmp_path / "first.parquet", 1)
    embed_texts(entry_of("clip"), "mine", texts, *arguments, device="cpu")
    assert calls == {"one cube": 1, "two dogs": 1, "loads": 1}
    rows = vectors_in(tmp_path / "first.parquet")
    assert np.array_equal(rows["a"], rows["c"]) and not np.array_equal(rows["a"], rows["b"])
    calls.clear()
    # Another name and batch size, another order: no model is loaded at all.
    again = {"x": "two dogs", "y": "one cube"}
    embed_texts(entry_of("clip", batch_size=1), "other", again, tmp_path / "cache", tmp_path / "second.parquet", 1)
    assert not calls
    assert np.array_equal(vectors_in(tmp_path / "second.parquet")["y"], rows["a"])


def test_texts_beyond_the_token_limit_are_counted_and_named(entry_of, tmp_path, calls, capsys):
    texts = {"long": "a cube " * 40, "short": "a cube", "same": "a cube " * 40, "longer": "a dog " * 50}
    arguments = ("mine", texts, tmp_path / "cache", tmp_path / "t.parquet", 1, "cpu")
    for run in range(3):  # the second one reads the cache alone; before the third the record of the cuts is lost
        if run == 2:
            (told,) = (tmp_path / "cache").rglob("*.cut.json")
            told.unlink()
        embed_texts(entry_of("clip"), *arguments)
        record = json.loads((tmp_path / "t.json").read_text())
        if run < 2:
            assert (record["cut"], record["first_cut"]) == (3, ["long", "same", "longer"])
            assert "embedders.mine: 3 of 4 texts are longer than the model reads" in capsys.readouterr().err
        else:  # unknown is not none
            assert (record["cut"], record["first_cut"]) == (None, None)
            assert "longer" not in capsys.readouterr().err
    assert calls["loads"] == 1


def test_texts_that_fit_are_counted_as_none_and_images_not_at_all(entry_of, scenes, tmp_path, capsys):
    embed_texts(entry_of("clip"), "mine", TEXTS, tmp_path / "cache", tmp_path / "t.parquet", 1, "cpu")
    assert json.loads((tmp_path / "t.json").read_text())["cut"] == 0
    embed_images(entry_of("clip"), "mine", scenes[:2], tmp_path / "cache", tmp_path / "i.parquet", 1, "cpu")
    assert "cut" not in json.loads((tmp_path / "i.json").read_text())
    assert "cut" not in capsys.readouterr().err


def test_only_what_is_new_or_changed_is_embedded(entry_of, tmp_path, calls):
    embed_texts(entry_of("clip"), "mine", TEXTS, tmp_path / "cache", tmp_path / "a.parquet", 1, device="cpu")
    before = vectors_in(tmp_path / "a.parquet")
    calls.clear()
    changed = TEXTS | {"scene-3": "a wooden dog", "scene-24": "a glass boat"}
    embed_texts(entry_of("clip"), "mine", changed, tmp_path / "cache", tmp_path / "a.parquet", 1, device="cpu")
    assert calls == {"a wooden dog": 1, "a glass boat": 1, "loads": 1}
    after = vectors_in(tmp_path / "a.parquet")
    assert set(after) == set(before) | {"scene-24"}
    assert all(np.array_equal(after[item], before[item]) == (item != "scene-3") for item in before)


@pytest.mark.parametrize(
    "change",
    [{"instruction": "Find it."}, {"dtype": "bfloat16"}, {"dimensions": 16}, {"max_tokens": 40}, {"adapter": True}],
)
def test_another_setting_is_another_cache(entry_of, checkpoints, tmp_path, calls, change):
    if "adapter" in change:
        lora = adapter(
            tmp_path / "lora", AutoModel.from_pretrained(checkpoints["qwen3-vl"]), r".*language_model.*q_proj"
        )
        change = {"adapter": str(lora)}
    texts = {"a": "one cube", "b": "two dogs"}
    for settings in ({}, change, {}, change):
        embed_texts(entry_of("qwen3-vl", **settings), "m", texts, tmp_path / "cache", tmp_path / "t.parquet", 1, "cpu")
    assert calls == {"one cube": 2, "two dogs": 2, "loads": 2}
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_a_broken_part_is_embedded_again_to_the_same_bytes(entry_of, tmp_path, calls, capsys):
    arguments = (entry_of("qwen3-vl"), "mine", TEXTS, tmp_path / "cache", tmp_path / "t.parquet", 1, "cpu")
    embed_texts(*arguments)
    before = (tmp_path / "t.parquet").read_bytes()
    (part,) = (tmp_path / "cache").rglob("part-*.npy")
    data = bytearray(part.read_bytes())
    data[-20] ^= 4
    part.write_bytes(data)
    calls.clear()
    embed_texts(*arguments)
    assert sum(calls.values()) == len(set(TEXTS.values())) + 1
    assert (tmp_path / "t.parquet").read_bytes() == before
    assert "does not match its checksum" in capsys.readouterr().err


def test_equal_images_are_read_and_embedded_once(entry_of, scenes, tmp_path, calls):
    arguments = (entry_of("qwen3-vl"), "mine", scenes, tmp_path / "cache", tmp_path / "i.parquet", 1, "cpu")
    embed_images(*arguments)
    assert calls == {"images": 22, "loads": 1}
    rows = vectors_in(tmp_path / "i.parquet")
    assert list(rows) == [item for item, _, _ in scenes]
    assert np.array_equal(rows["00"], rows["23"]) and not np.array_equal(rows["00"], rows["01"])
    calls.clear()
    embed_images(*arguments)
    assert not calls


def test_image_embeddings_are_the_models(entry_of, loaded, scenes, tmp_path):
    embed_images(entry_of("siglip-naflex"), "mine", scenes, tmp_path / "cache", tmp_path / "i.parquet", 1, "cpu")
    expected = loaded("siglip-naflex").embed_images([path for _, path, _ in scenes])
    assert np.stack(list(vectors_in(tmp_path / "i.parquet").values())) == pytest.approx(expected, abs=1e-5)


def test_an_image_that_is_not_the_one_written_down_is_refused(entry_of, scenes, tmp_path):
    for name in ("changed", "missing"):
        folder = tmp_path / name
        folder.mkdir()
        copies = [(item, folder / path.name, digest) for item, path, digest in scenes]
        for (_, copy, _), (_, path, _) in zip(copies, scenes, strict=True):
            copy.write_bytes(path.read_bytes())
        copies[10][1].write_bytes(scenes[11][1].read_bytes()) if name == "changed" else copies[10][1].unlink()
        with pytest.raises(UserError, match=rf"{folder}/10\.png: .*; delete {folder}\.parquet and run again"):
            embed_images(entry_of("clip"), "mine", copies, tmp_path / "cache", folder / "i.parquet", 1, "cpu")
        assert not (folder / "i.parquet").exists()
        # What was embedded before the fault is not lost.
        assert any((tmp_path / "cache").rglob("part-*.npy"))


def test_a_broken_image_file_is_named(entry_of, tmp_path):
    path = tmp_path / "broken.png"
    path.write_bytes(b"no image")
    images = [("a", path, sha256(b"no image"))]
    with pytest.raises(UserError, match=r"broken\.png: not a readable image .*; delete .*\.parquet and run again"):
        embed_images(entry_of("clip"), "mine", images, tmp_path / "cache", tmp_path / "i.parquet", 1, "cpu")


def test_a_modality_that_the_entry_lacks_is_refused(scenes, tmp_path):
    minilm, efficientnet = DEFAULT_EMBEDDERS["minilm"], DEFAULT_EMBEDDERS["efficientnet-lite0"]
    with pytest.raises(UserError, match=r"embedders\.minilm\.modalities: image is not among them \(text\)"):
        embed_images(minilm, "minilm", scenes, tmp_path, tmp_path / "i.parquet", 1)
    with pytest.raises(UserError, match=r"embedders\.e\.modalities: text is not among them \(image\)"):
        embed_texts(efficientnet, "e", TEXTS, tmp_path, tmp_path / "t.parquet", 1)


def test_the_record_beside_the_table_says_what_model_it_was(entry_of, tmp_path):
    arguments = (tmp_path / "cache", tmp_path / "saber.text.parquet", 3)
    embed_texts(entry_of("qwen3-vl", instruction="Find it"), "mine", TEXTS, *arguments, device="cpu")
    record = json.loads((tmp_path / "saber.text.json").read_text())
    (model,) = record["models"]
    assert model["last_token"] == "\n" and model["parameters"] == 134_336 and model["device"] == "cpu"
    assert record["identity"]["instruction"] == "Find it" and record["identity"]["version"] == 3
    assert record["items"] == 24 and record["distinct"] == len(set(TEXTS.values())) and record["dimensions"] == 32
    embed_texts(entry_of("qwen3-vl", instruction="Find it"), "mine", TEXTS, *arguments, device="cpu")
    again = json.loads((tmp_path / "saber.text.json").read_text())
    assert record.pop("seconds") >= 0 and again.pop("seconds") >= 0
    assert again == record


def test_wordllama_leaves_ties_in_the_table(tmp_path):
    texts = {"right": "a red cube and a striped dog", "wrong": "a striped cube and a red dog", "other": "a red cube"}
    entry = DEFAULT_EMBEDDERS["wordllama"]
    embed_texts(entry.model_copy(update={"batch_size": 1}), "w", texts, tmp_path, tmp_path / "t.parquet", 1, "cpu")
    rows = vectors_in(tmp_path / "t.parquet")
    assert np.array_equal(rows["right"], rows["wrong"]) and not np.array_equal(rows["right"], rows["other"])


# Killed and resumed


# Embeds texts and images in two threads; each stops in its fourth batch, and waits there to be killed.
STUCK = """
import json, os, sys, threading, time
from pathlib import Path
from bindbench.config.embedders import Embedder
from bindbench.embedders import cache, embed, loading
cache.FLUSH_SECONDS = 0
forward, done = loading.Model.vectors, threading.local()
def stuck(self, features):
    done.batches = getattr(done, "batches", 0) + 1
    if done.batches > 3:
        print("stuck", flush=True)
        time.sleep(60)
        os._exit(1)
    return forward(self, features)
loading._check_neighbours = lambda model: None
loading.Model.vectors = stuck
entry, texts, images, folder = json.loads(sys.argv[1])
entry, folder = Embedder.model_validate(entry), Path(folder)
for call, items in ((embed.embed_texts, texts), (embed.embed_images, images)):
    before = len(list(folder.rglob("part-*.npy")))
    arguments = (entry, "mine", items, folder / "cache", folder / "killed.parquet", 1, "cpu")
    thread = threading.Thread(target=call, args=arguments)
    thread.start()
    while thread.is_alive() and len(list(folder.rglob("part-*.npy"))) < before + 3:
        time.sleep(0.02)
thread.join()
os._exit(1)
"""


@pytest.mark.slow
def test_killed_and_resumed_ends_with_the_same_bytes(entry_of, scenes, tmp_path, calls):
    entry = entry_of("qwen3-vl")
    arguments = json.dumps([entry.model_dump(mode="json"), TEXTS, scenes, str(tmp_path)], default=str)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", STUCK, arguments], env=environment, stdout=subprocess.PIPE)
    assert [process.stdout.readline() for _ in range(2)] == [b"stuck\n"] * 2
    process.kill()  # SIGKILL
    process.wait()
    assert not (tmp_path / "killed.parquet").exists()

    for embed, items, distinct in ((embed_texts, TEXTS, len(set(TEXTS.values()))), (embed_images, scenes, 22)):
        embed(entry, "mine", items, tmp_path / "unbroken", tmp_path / "unbroken.parquet", 1, "cpu")
        calls.clear()
        embed(entry, "mine", items, tmp_path / "cache", tmp_path / "killed.parquet", 1, "cpu")
        assert sum(calls.values()) == distinct - 3 * entry.batch_size + 1  # and one load
        assert (tmp_path / "killed.parquet").read_bytes() == (tmp_path / "unbroken.parquet").read_bytes()


# The worker that prepares ahead


def test_ahead_keeps_the_order_and_stays_a_little_ahead():
    started, taken = [], []
    for result in ahead(lambda item: started.append(item) or item * 10, range(20), depth=3):
        time.sleep(0.001)
        assert len(started) <= len(taken) + 1 + 3
        taken.append(result)
    assert taken == [item * 10 for item in range(20)]


def test_ahead_passes_on_what_the_worker_raises():
    def fail_at_two(item: int) -> int:
        if item == 2:
            raise UserError("broken")
        return item

    results = []
    with pytest.raises(UserError, match="broken"):
        results.extend(ahead(fail_at_two, range(9)))
    assert list(ahead(fail_at_two, [])) == []


def test_the_module_has_no_heavy_import():
    """A job whose vectors are all cached starts no torch."""
    code = "import sys, bindbench.embedders.embed, bindbench.embedders.sources; sys.exit('torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(Path(embed_module.__file__).parents[2])}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
