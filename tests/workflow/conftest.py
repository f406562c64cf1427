"""The tiny run is made once for all tests that only look at it; those that change something work on a copy."""

import shutil
from pathlib import Path

import pytest
from snakemake_runs import run


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    """The working directory of a whole run of config/tiny.yaml."""
    directory = tmp_path_factory.mktemp("tiny")
    run("all", "--cores", "2", directory=directory)
    return directory


@pytest.fixture
def copy_of_tiny(tiny, tmp_path) -> Path:
    directory = tmp_path / "copy"
    shutil.copytree(tiny, directory, symlinks=True)
    return directory
