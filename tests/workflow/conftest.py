"""The tiny run is made once for all tests that only look at it; those that change something work on a copy."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from snakemake_runs import REPOSITORY, command, environment


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    """The working directory of a whole run of config/tiny.yaml; made once, whichever worker of pytest-xdist is first.

    CI has run `make tiny` before and sets BINDBENCH_TINY=made: its results are copied. There the inputs of the jobs were
    resources/..., as they are wherever that folder is found.
    """
    shared = "PYTEST_XDIST_WORKER" in os.environ
    base = tmp_path_factory.getbasetemp().parent if shared else tmp_path_factory.mktemp("once")
    directory = base / "tiny"
    with (base / "tiny.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (base / "tiny.done").exists():
            directory.mkdir(exist_ok=True)
            if os.environ.get("BINDBENCH_TINY") == "made":
                (directory / "resources").symlink_to(REPOSITORY / "resources")
                for name in ("results", ".snakemake"):
                    shutil.copytree(REPOSITORY / name, directory / name, symlinks=True)
            else:
                line = command("all", "--cores", "2", "--max-threads", "1", directory=directory)
                subprocess.run(line, env=environment(), cwd=directory, check=True)
            (base / "tiny.done").touch()
    return directory


@pytest.fixture
def copy_of_tiny(tiny, tmp_path) -> Path:
    directory = tmp_path / "copy"
    shutil.copytree(tiny, directory, symlinks=True)
    return directory
