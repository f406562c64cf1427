"""What several test folders share."""

from pathlib import Path

import pytest
from bindbench.config.questions import PALETTE
from bindbench.vocabulary import Vocabulary, read_vocabulary
from service_fixtures import (  # noqa: F401 (fixtures)
    courier_process,
    courier_thread,
    keys,
    only_server,
    server,
    settings,
)

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


@pytest.fixture(scope="session")
def one_thread():
    """Models as small as those of the tests only lose time to threads, and sums are the same from run to run."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
