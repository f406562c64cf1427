"""Snakemake's command line without its imports, which take twice as long as a dry run.

A process that has imported Snakemake and the package forks for each command: the child is as fresh as a process that a person
starts, and calls Snakemake's `main` with the same arguments.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

_lock = threading.Lock()
_server: subprocess.Popen | None = None


def call(arguments: list[str], directory: Path, environment: dict[str, str]) -> subprocess.CompletedProcess:
    """`snakemake ARGUMENTS` in a working directory; the exit status and what it wrote."""
    with _lock, tempfile.TemporaryDirectory() as written:
        server = _started(environment)
        asked = {"arguments": arguments, "directory": str(directory), "environment": environment, "written": written}
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        streams = {name: (Path(written) / name).read_text() for name in ("stdout", "stderr")}
    return subprocess.CompletedProcess(["snakemake", *arguments], status, **streams)


def _started(environment: dict[str, str]) -> subprocess.Popen:
    """The server of this process; it ends when its standard input does."""
    global _server
    if _server is None:
        package = str(Path(__file__).resolve().parents[2] / "workflow")
        _server = subprocess.Popen(
            [sys.executable, __file__], env=environment | {"PYTHONPATH": package},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    return _server


def serve() -> None:
    import bindbench.snakemake_support  # noqa: F401 (the Snakefile's)
    import smart_open  # noqa: F401 (Snakemake's, late)
    import snakemake.cli  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if not child:
            _become(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _become(arguments: list[str], directory: str, environment: dict[str, str], written: str) -> None:
    import snakemake.cli

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.path[0] = directory  # as `python -m snakemake` has it
    opened = (
        os.open(os.devnull, os.O_RDONLY),
        *(os.open(f"{written}/{name}", os.O_WRONLY | os.O_CREAT, 0o600) for name in ("stdout", "stderr")),
    )
    for stream, file in enumerate(opened):
        os.dup2(file, stream)
    sys.argv = ["snakemake", *arguments]
    snakemake.cli.main()


if __name__ == "__main__":
    serve()
