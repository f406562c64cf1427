"""The tiny run is made once for all tests that only look at it; those that change something work on a copy."""

import fcntl
import os
import shutil
from pathlib import Path

import pytest
from snakemake_runs import run


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    """The working directory of a whole run of config/tiny.yaml; made once, whichever worker of pytest-xdist is first."""
    shared = "PYTEST_XDIST_WORKER" in os.environ
    base = tmp_path_factory.getbasetemp().parent if shared else tmp_path_factory.mktemp("once")
    directory = base / "tiny"
    with (base / "tiny.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (base / "tiny.done").exists():
            directory.mkdir(exist_ok=True)
            run("all", "--cores", "2", directory=directory)
            (base / "tiny.done").touch()
    return directory


@pytest.fixture
def copy_of_tiny(tiny, tmp_path) -> Path:
    directory = tmp_path / "copy"
    shutil.copytree(tiny, directory, symlinks=True)
    return directory
