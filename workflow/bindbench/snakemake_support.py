"""What the Snakefile needs from Python: the checked config with file names in its errors, paths for shell lines, stale locks.

Everything here is light: each cluster job parses the Snakefile and so imports this.
"""

import json
import os
import shlex
import socket
import sys
from pathlib import Path

from .config import Config, check
from .config.reading import read_yaml
from .errors import UserError

LOCKS = Path(".snakemake/locks")
NOTE = Path(".snakemake/bindbench.json")


def checked_settings(config: dict, configfiles: list) -> Config:
    """Validates Snakemake's merged config, completes it in place, and ends the program with code 2 on a user's mistake."""
    try:
        files = {str(path): read_yaml(path) for path in map(str, configfiles) if Path(path).exists()}
        settings = check(config, lambda key: _file_with(files, key))
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    config.update(settings.model_dump(mode="json"))
    return settings


def _file_with(files: dict[str, dict], key: tuple) -> str:
    """The last config file that holds the key, or as much of it as any file does."""
    best, depth = "--config" if not files else next(iter(files)), -1
    for path, values in files.items():
        found = 0
        for part in key:
            if not isinstance(values, dict) or part not in values:
                break
            values, found = values[part], found + 1
        if found >= max(depth, 1):
            best, depth = path, found
    return best if depth > 0 or len(key) == 0 else "--config"


def shell_prefix(workflow_folder: Path, deployment_methods) -> str:
    """Put before every shell command."""
    methods = {getattr(method, "name", str(method)).lower() for method in deployment_methods or ()}
    prefix = f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(workflow_folder))}${{{{PYTHONPATH:+:$PYTHONPATH}}}}; "
    if "conda" not in methods and "apptainer" not in methods:
        prefix += f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; "
    return prefix


def shard_count(settings: Config) -> int:
    """Jobs that the images of the benchmark are divided into."""
    questions = settings.questions
    images = 5 * len(questions.object_counts) * (questions.independent + questions.nested)
    return -(-images // settings.scenes.shard_size)


def note_start() -> None:
    """Remembers which process holds the working directory's lock."""
    NOTE.parent.mkdir(exist_ok=True)
    NOTE.write_text(json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "started": _started(os.getpid())}))


def release_stale_lock() -> None:
    """Removes a lock whose holder was killed on this machine, so that the same command simply goes on.

    A lock of another machine, or one whose holder still runs, is left to Snakemake.
    """
    if not NOTE.exists() or not LOCKS.is_dir() or not any(LOCKS.iterdir()):
        return
    try:
        holder = json.loads(NOTE.read_text())
        gone = holder["host"] == socket.gethostname() and _started(holder["pid"]) != holder["started"]
    except (ValueError, KeyError, TypeError):
        return
    if gone:
        for lock in LOCKS.iterdir():
            lock.unlink(missing_ok=True)
        print(f"The run with process id {holder['pid']} was killed; its lock is released and the work goes on.", file=sys.stderr)


def _started(pid: int) -> str | None:
    """Start time of a process in clock ticks since boot, with the boot's id; None when there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() + "/" + fields[19]
    except FileNotFoundError:
        pass
    except OSError:
        return None
    if Path("/proc/self/stat").exists():
        return None
    try:
        os.kill(pid, 0)
        return str(pid)
    except OSError:
        return None
