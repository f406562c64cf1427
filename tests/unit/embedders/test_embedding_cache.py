"""The store of embeddings: what it gives back, what it notices, what a killed or a second job does to it."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import numpy as np
import pytest
from bindbench.config.embedders import DEFAULT_EMBEDDERS, Embedder
from bindbench.embedders import cache as cache_module
from bindbench.embedders.cache import Cache
from bindbench.embedders.sources import digest, fingerprint, identity
from hypothesis import given, settings
from hypothesis import strategies as st


def keys_of(*texts: str) -> list[bytes]:
    return [sha256(text.encode()).digest() for text in texts]


def unit_vectors(count: int, dimensions: int = 8, seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def parts(store: Cache) -> list:
    return sorted(store.folder.glob("part-*.npy"))


@settings(deadline=None)
@given(st.lists(st.text(), unique=True, min_size=1, max_size=30), st.data())
def test_gives_back_what_was_added_to_the_bit_and_nothing_else(tmp_path_factory, texts, data):
    store = Cache(tmp_path_factory.mktemp("cache"), "f", "text")
    keys, vectors = keys_of(*texts), unit_vectors(len(texts))
    known = data.draw(st.lists(st.sampled_from(range(len(texts))), unique=True))
    cut = np.array([data.draw(st.booleans()) for _ in texts])
    for row in known:
        store.add([keys[row]], vectors[row : row + 1], cut[row : row + 1])
        if data.draw(st.booleans()):
            store.flush()
    store.flush()
    again = Cache(store.folder.parents[1], "f", "text")
    read, cached = again.read(keys)
    assert set(np.flatnonzero(cached)) == set(known)
    assert again.cut_among([keys[row] for row in known]) == {keys[row] for row in known if cut[row]}
    assert len(known) == len(texts) or again.cut_among(keys) is None
    if known:
        assert read.dtype == np.float32 and np.array_equal(read[cached], vectors[cached])
        assert not read[~cached].any()
    else:
        assert read is None


def test_nothing_is_written_before_a_flush_and_nothing_twice_after(tmp_path):
    store = Cache(tmp_path, "f", "text")
    store.add(keys_of("a"), unit_vectors(1))
    assert not store.folder.exists()
    store.flush()
    store.flush()
    assert len(parts(store)) == 1


def test_what_has_gathered_is_written_after_some_seconds_or_bytes(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(cache_module.time, "monotonic", lambda: clock[0])
    store = Cache(tmp_path, "f", "text")
    store.add(keys_of("a"), unit_vectors(1))
    assert not parts(store)
    clock[0] = cache_module.FLUSH_SECONDS
    store.add(keys_of("b"), unit_vectors(1))
    assert len(parts(store)) == 1
    monkeypatch.setattr(cache_module, "FLUSH_BYTES", 100)
    store.add(keys_of("c", "d", "e", "f"), unit_vectors(4))  # 4 * 8 * 4 bytes
    assert len(parts(store)) == 2


def filled(tmp_path) -> tuple[Cache, list[bytes], np.ndarray]:
    """A cache of two parts: items a, b and c, d."""
    store = Cache(tmp_path, "f", "text")
    keys, vectors = keys_of("a", "b", "c", "d"), unit_vectors(4)
    store.add(keys[:2], vectors[:2])
    store.flush()
    store.add(keys[2:], vectors[2:])
    store.flush()
    return store, keys, vectors


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data + b"\0",
        lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],  # one bit of one vector
        lambda data: data[:140] + bytes([data[140] ^ 128]) + data[141:],  # one bit of one key
    ],
    ids=["cut", "halved", "emptied", "grown", "bit of a vector", "bit of a key"],
)
def test_a_broken_part_is_noticed_reported_and_removed(tmp_path, capsys, damage):
    store, keys, vectors = filled(tmp_path)
    broken = next(path for path in parts(store) if keys[0] in path.read_bytes())
    broken.write_bytes(damage(broken.read_bytes()))
    read, cached = store.read(keys)
    assert cached.tolist() == [False, False, True, True] and np.array_equal(read[2:], vectors[2:])
    assert f"{broken}: does not match its checksum; removed" in capsys.readouterr().err
    assert not broken.exists() and len(parts(store)) == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b'{"parameters": 4}'])
def test_a_broken_record_of_a_model_is_reported_and_removed(tmp_path, capsys, content):
    store, _, _ = filled(tmp_path)
    store.record({}, {"parameters": 3})
    (broken,) = store.folder.glob("model-*.json")
    store.record({}, {"parameters": 5})
    broken.write_bytes(content)
    assert store.models() == [{"parameters": 5}]
    assert f"{broken}: does not match its checksum; removed" in capsys.readouterr().err
    store.record({}, {"parameters": 3})
    assert {facts["parameters"] for facts in store.models()} == {3, 5}


def test_what_a_killed_writer_leaves_is_not_read(tmp_path):
    store, keys, _ = filled(tmp_path)
    whole = parts(store)[0].read_bytes()
    (store.folder / ".part-half.npy.x7.npy").write_bytes(whole[:50])
    _, cached = store.read(keys)
    assert cached.all()


def test_two_writers_at_once_lose_nothing(tmp_path):
    texts = [str(index) for index in range(200)]
    keys, vectors = keys_of(*texts), unit_vectors(200)

    def write(first: int) -> None:
        store = Cache(tmp_path, "f", "text")
        for row in range(first, 200, 3):  # each third overlaps with nothing, the last writer repeats the first's
            store.add([keys[row]], vectors[row : row + 1])
            store.flush()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, [0, 1, 2, 0]))
    read, cached = Cache(tmp_path, "f", "text").read(keys)
    assert cached.all() and np.array_equal(read, vectors)
    assert len(parts(Cache(tmp_path, "f", "text"))) == 200  # equal parts have equal names


def test_a_process_killed_while_it_writes_leaves_a_whole_cache(tmp_path):
    code = (
        "import sys, numpy as np\n"
        "from pathlib import Path\n"
        "from bindbench.embedders.cache import Cache\n"
        "store = Cache(Path(sys.argv[1]), 'f', 'text')\n"
        "index = 0\n"
        "while True:\n"
        "    keys = [(index * 50 + row).to_bytes(32, 'big') for row in range(50)]\n"
        "    store.add(keys, np.full((50, 64), index, np.float32))\n"
        "    store.flush()\n"
        "    index += 1\n"
        "    print(index, flush=True)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, env=environment)
    for _ in range(5):
        process.stdout.readline()
    process.kill()
    written = 5 + len(process.stdout.read().split())
    process.wait()
    read, cached = Cache(tmp_path, "f", "text").read([row.to_bytes(32, "big") for row in range(written * 50)])
    assert cached.all() and np.array_equal(read[:, 0], np.repeat(np.arange(written), 50))


# What makes another cache, and what does not


def name_of(entry: Embedder, name: str = "mine", version: int = 1) -> str:
    return fingerprint(identity(entry, name, version))


@pytest.fixture(scope="module")
def hub_entry() -> Embedder:
    return Embedder(
        path="owner/model", revision="a" * 40, instruction="Find it.", max_pixels=1000, adapter="owner/lora"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"loader": "open_clip", "path": "hf-hub:owner/model", "revision": None},
        {"path": "owner/other"},
        {"revision": "b" * 40},
        {"revision": None},
        {"instruction": "Find it"},
        {"instruction": None},
        {"dtype": "bfloat16"},
        {"attention": "eager"},
        {"min_pixels": 10},
        {"max_pixels": 2000},
        {"max_tokens": 64},
        {"dimensions": 64},
        {"adapter": "owner/other"},
        {"adapter": None},
        {"trust_remote_code": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_changes_the_vectors_makes_another_cache(hub_entry, change):
    assert name_of(hub_entry.model_copy(update=change)) != name_of(hub_entry)


def test_batch_size_name_and_modalities_make_no_other_cache(hub_entry):
    assert name_of(hub_entry.model_copy(update={"batch_size": 1})) == name_of(hub_entry)
    assert name_of(hub_entry.model_copy(update={"modalities": ("text",)})) == name_of(hub_entry)
    assert name_of(hub_entry, "other") == name_of(hub_entry)


def test_a_bump_of_the_stages_version_makes_another_cache(hub_entry):
    assert name_of(hub_entry, version=2) != name_of(hub_entry)


def test_every_setting_of_an_entry_is_judged():
    """A new key of the config must be counted among those that change vectors or those that do not."""
    judged = set(identity(DEFAULT_EMBEDDERS["minilm"], "minilm", 1)) - {"version", "model"}
    assert judged | {"path", "revision", "batch_size", "modalities"} == set(Embedder.model_fields)


def test_local_weights_count_by_their_content_not_their_place(tmp_path):
    for folder in ("here", "there"):
        (tmp_path / folder / "sub").mkdir(parents=True)
        (tmp_path / folder / "model.safetensors").write_bytes(b"weights")
        (tmp_path / folder / "sub/config.json").write_text("{}")
    here, there = (Embedder(path=str(tmp_path / folder)) for folder in ("here", "there"))
    assert name_of(here) == name_of(there)
    (tmp_path / "there/README.md").write_text("a card changes no vector")
    (tmp_path / "there/.cache").mkdir()
    (tmp_path / "there/.cache/download.json").write_text("nor does a record of the download")
    assert name_of(here) == name_of(there)
    (tmp_path / "there/sub/config.json").write_text("{ }")
    assert name_of(here) != name_of(there)
    with_adapter = Embedder(path=str(tmp_path / "here"), adapter=str(tmp_path / "there"))
    before = name_of(with_adapter)
    (tmp_path / "there/model.safetensors").write_bytes(b"trained on")
    assert name_of(with_adapter) != before


def test_a_moved_file_changes_the_digest(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x").write_text("1")
    before = digest([tmp_path / "a"])
    (tmp_path / "a/x").rename(tmp_path / "a/y")
    assert digest([tmp_path / "a"]) != before
