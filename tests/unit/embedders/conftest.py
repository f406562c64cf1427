"""Checkpoints that the tests of this room share, built once."""

import functools
from pathlib import Path

import numpy as np
import pytest
import tiny_models
from bindbench.config.embedders import Embedder
from PIL import Image


@pytest.fixture(scope="session", autouse=True)
def _one_thread(one_thread):
    """Every test here computes with torch."""


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory) -> dict[str, Path]:
    """Folders of tiny random checkpoints by kind."""
    root = tmp_path_factory.mktemp("checkpoints")
    builders = {
        "qwen3-vl": tiny_models.qwen3_vl,
        "clip": tiny_models.clip,
        "siglip": tiny_models.siglip,
        "siglip-naflex": tiny_models.siglip_naflex,
        "open_clip": tiny_models.open_clip_folder,
    }
    return {kind: build(root / kind) for kind, build in builders.items()}


@pytest.fixture(scope="session")
def entry_of(checkpoints):
    """The config entry of a tiny checkpoint, with settings."""

    def entry(kind: str, **settings) -> Embedder:
        loader = "open_clip" if kind == "open_clip" else "sentence-transformers"
        return Embedder(**{"path": str(checkpoints[kind]), "loader": loader, "batch_size": 4} | settings)

    return entry


@pytest.fixture(scope="session")
def loaded(entry_of):
    """A tiny checkpoint through `load`, loaded once for each set of settings; for tests that leave it as it is."""
    from bindbench.embedders.loading import load

    @functools.cache
    def model(kind: str, **settings):
        return load(entry_of(kind, **settings), "cpu")

    return model


@pytest.fixture(scope="session")
def pictures() -> list[Image.Image]:
    """Images of several sizes, some taller than wide."""
    generator = np.random.default_rng(0)
    sizes = [(64, 96), (96, 64), (128, 128), (64, 64), (160, 96)]
    return [Image.fromarray(generator.integers(0, 256, (*size, 3), dtype=np.uint8)) for size in sizes]


@pytest.fixture(scope="session")
def scenes(tmp_path_factory) -> list[tuple[str, Path, str]]:
    """Item id, path and SHA-256 of 24 PNG files; the last two hold the same bytes as the first."""
    from bindbench.files import sha256_of_file

    folder = tmp_path_factory.mktemp("shard")
    generator = np.random.default_rng(1)
    for index in range(22):
        small = generator.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(small).resize((96, 96)).save(folder / f"{index:02d}.png")
    for index in (22, 23):
        (folder / f"{index:02d}.png").write_bytes((folder / "00.png").read_bytes())
    return [(path.stem, path, sha256_of_file(path)) for path in sorted(folder.glob("*.png"))]
