"""What several test folders share."""

from pathlib import Path

import pytest
from bindbench.config.questions import PALETTE
from bindbench.vocabulary import Vocabulary, read_vocabulary

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    """The 232 objects and 50 attributes that ship with the package."""
    folder = REPOSITORY / "resources" / "vocabulary"
    return read_vocabulary(folder / "objects.csv", folder / "attributes.csv", PALETTE)


@pytest.fixture(scope="session")
def fetched_shapes() -> Path:
    """All drawings of the pinned Noto package; the registry is asked once and the file kept beside pytest's cache."""
    from bindbench.scenes.shapes import INTEGRITY, fetch_shapes

    path = REPOSITORY / ".pytest_cache" / f"noto-{INTEGRITY[7:15].replace('/', '_')}.json"
    if not path.exists():
        fetch_shapes(path)
    return path
