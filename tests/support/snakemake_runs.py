"""Snakemake as a person calls it, in a working directory of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import snakemake_server

REPOSITORY = Path(__file__).resolve().parents[2]
FOR_ALL_GENERATORS = ("tabulate-multibind", "show-multibind-failures", "derive-default-thresholds")


def command(
    *arguments, directory: Path, config: Path | None = REPOSITORY / "config/tiny.yaml", profile="default"
) -> list[str]:
    """The command line; targets must come first among the arguments."""
    line = [sys.executable, "-m", "snakemake", *map(str, arguments), "--snakefile", str(REPOSITORY / "Snakefile")]
    line += ["--directory", str(directory), "--workflow-profile", str(REPOSITORY / "profiles" / profile)]
    line += ["--max-threads", "1"]  # two tests run at a time: jobs of two threads would wait for one another
    return line + (["--configfile", str(config)] if config else [])


def environment() -> dict[str, str]:
    """Without what a person's shell might bring, and with Snakemake's own caches out of the way."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SNAKEMAKE", "PYTHONPATH"))}
    return kept | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def run(*arguments, directory: Path, check=True, **options) -> subprocess.CompletedProcess:
    line = command(*arguments, directory=directory, **options)
    done = snakemake_server.call(line[3:], directory, environment())
    assert not check or done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return done


def planned(*arguments, directory: Path, **options) -> set[str]:
    """The jobs that a dry run would start, such as "render_scenes 0003", "score_saber nano" or "match_subjects swap"."""
    done = run(*arguments, "-n", "-p", directory=directory, **options)
    jobs = set()
    for name, rest in re.findall(r"python -m bindbench ([a-z0-9-]+)(.*)", done.stdout + done.stderr):
        wildcards = re.findall(
            r"--(?:construction|shard|model) (\S+)|/(?:saber|triplets|single_objects)/scores/([^/ ]+)\.parquet 2>"
            r"|--generated \S+/([^/ ]+)\.parquet",
            rest,
        )
        if name in FOR_ALL_GENERATORS:
            wildcards = []
        jobs.add(" ".join([name.replace("-", "_"), *(part for groups in wildcards for part in groups if part)]))
    return jobs
