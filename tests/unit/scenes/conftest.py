"""The default vocabulary and its reliefs, made once per session by the code under test."""

from pathlib import Path

import pytest
from bindbench.config.questions import PALETTE
from bindbench.files import canonical_json, sha256
from bindbench.scenes.relief import Relief, build_reliefs, read_reliefs
from bindbench.scenes.shapes import fetch_shapes, noto_names, read_fetched
from bindbench.vocabulary import Vocabulary, read_vocabulary

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    lists = ROOT / "resources" / "vocabulary"
    return read_vocabulary(lists / "objects.csv", lists / "attributes.csv", PALETTE)


@pytest.fixture(scope="session")
def shapes(vocabulary) -> list[str]:
    return [thing.shape for thing in vocabulary.objects.values()]


@pytest.fixture(scope="session")
def noto_shapes(shapes) -> Path:
    """The fetched drawings; kept beside pytest's cache, so that the registry is asked once per list."""
    names = noto_names(shapes)
    path = ROOT / ".pytest_cache" / f"noto-{sha256(canonical_json(sorted(names)))[:16]}.json"
    if not path.exists() or set(read_fetched(path)) != names:
        fetch_shapes(path, names)
    return path


@pytest.fixture(scope="session")
def reliefs_path(shapes, noto_shapes, tmp_path_factory) -> Path:
    """Reliefs of all 232 objects."""
    path = tmp_path_factory.mktemp("reliefs") / "reliefs.bin"
    build_reliefs(shapes, noto_shapes, path)
    return path


@pytest.fixture(scope="session")
def reliefs(reliefs_path) -> dict[str, Relief]:
    return read_reliefs(reliefs_path)
