"""The reliefs of the default vocabulary, made by the code under test; kept beside pytest's cache until that code changes."""

from pathlib import Path

import pytest
from bindbench.files import canonical_json, sha256
from bindbench.scenes import relief as relief_module
from bindbench.scenes import shapes as shapes_module
from bindbench.scenes.relief import ReliefFile, build_reliefs, read_reliefs
from bindbench.scenes.shapes import OWN_SHAPES, fetch_shapes, noto_names, read_fetched


@pytest.fixture(scope="session")
def shapes(vocabulary) -> list[str]:
    return [thing.shape for thing in vocabulary.objects.values()]


@pytest.fixture(scope="session")
def noto_shapes(repository, shapes) -> Path:
    """The fetched drawings; the registry is asked once for each list."""
    names = noto_names(shapes)
    path = repository / ".pytest_cache" / f"noto-{sha256(canonical_json(sorted(names)))[:16]}.json"
    if not path.exists() or set(read_fetched(path)) != names:
        fetch_shapes(path, names)
    return path


@pytest.fixture(scope="session")
def reliefs_path(repository, shapes, noto_shapes) -> Path:
    """Reliefs of all 232 objects."""
    sources = [
        Path(relief_module.__file__),
        Path(shapes_module.__file__),
        noto_shapes,
        *sorted(OWN_SHAPES.glob("*.svg")),
    ]
    digest = sha256("".join(path.read_text(encoding="utf-8") for path in sources))
    path = repository / ".pytest_cache" / f"reliefs-{digest[:16]}.bin"
    if not path.exists():
        build_reliefs(shapes, noto_shapes, path)
    return path


@pytest.fixture(scope="session")
def reliefs(reliefs_path) -> ReliefFile:
    return read_reliefs(reliefs_path)
