"""How long Snakemake plans the paper's config, and how many jobs that is. Goals: under 15 s, under 500 jobs.

python benchmarks/planning.py        writes benchmarks/planning.md
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import describe

REPOSITORY = Path(__file__).resolve().parents[1]


def plan(config: str) -> tuple[float, int]:
    """Seconds and number of jobs of a dry run in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        done = subprocess.run(
            [
                *(
                    sys.executable,
                    "-m",
                    "snakemake",
                    "all",
                    "-n",
                    "-q",
                    "rules",
                    "--snakefile",
                    REPOSITORY / "Snakefile",
                ),
                *("--directory", folder, "--configfile", REPOSITORY / config),
                *("--workflow-profile", REPOSITORY / "profiles/default"),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        seconds = time.perf_counter() - start
    return seconds, int(re.search(r"^total +(\d+)$", done.stdout + done.stderr, flags=re.M).group(1))


def bare() -> float:
    """Seconds of starting Snakemake for nothing: the floor, and the peer of the ratio."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "snakemake", "--version"], capture_output=True, check=True)
    return time.perf_counter() - start


def main() -> None:
    floor = min(bare() for _ in range(3))
    lines = [
        "# Planning",
        "",
        describe(),
        "",
        "| config | jobs | seconds | times `snakemake --version` |",
        "|---|---|---|---|",
    ]
    for config in ("config/tiny.yaml", "config/config.yaml", "config/paper.yaml"):
        runs = [plan(config) for _ in range(3)]
        seconds, jobs = min(runs)
        lines.append(f"| {config} | {jobs} | {seconds:.1f} | {seconds / floor:.1f} |")
    lines += [
        "",
        f"`snakemake --version` itself: {floor:.1f} s. Goals: under 15 s and under 500 jobs for `paper.yaml`.",
    ]
    (REPOSITORY / "benchmarks/planning.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
