"""What a shard of triplets costs: controls, grammar, validator, caps and tables together. Goals: 1,500 accepted examples a
second on one core, memory flat beyond the counters, no more for an example at the end than at the beginning.

    python benchmarks/triplet_building.py        writes benchmarks/triplet_building.md; one minute
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import describe

REPOSITORY = Path(__file__).resolve().parents[1]
SHARDS, SIZE = 4, 4000

# One shard in a process of its own: CPU seconds without start-up, and peak memory.
PROGRAM = """
import json, resource, sys, time
from pathlib import Path
from bindbench.config.triplets import Generation
from bindbench.triplets.building import build_shard
construction, size, before, *outputs = sys.argv[1:]
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
start = time.process_time()
build_shard(construction, int(size), Path(before) if before else None, Generation(), None, *map(Path, outputs))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": time.process_time() - start, "peak": peak, "base": base}))
"""


def shard(construction: str, size: int, before: Path | str, folder: Path) -> dict:
    outputs = [folder / name for name in ("examples", "rejects", "state", "record")]
    folder.mkdir()
    line = [sys.executable, "-c", PROGRAM, construction, str(size), str(before), *map(str, outputs)]
    environment = {"PYTHONPATH": str(REPOSITORY / "workflow"), "PATH": ""}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout) | {"state": outputs[2]}


def rows(construction: str, folder: Path) -> list[str]:
    lines, before = [], ""
    for number in range(SHARDS):
        measured = shard(construction, SIZE, before, folder / f"{construction}{number}")
        before = measured["state"]
        lines.append(
            f"| {construction} | {number * SIZE + 1:,} to {(number + 1) * SIZE:,} | {SIZE / measured['seconds']:,.0f} | "
            f"{measured['base']:.0f} | {measured['peak']:.0f} |"
        )
    return lines


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        table = [line for c in ("pair_swap", "triple_bind_cycle", "predicative") for line in rows(c, Path(name))]
    lines = [
        "# Building triplets",
        "",
        f"{describe()} Each shard in a process of its own, reading the lists and the state of the shard before included.",
        "",
        "| construction | accepted examples | a CPU-second | MB before | MB at the peak |",
        "|---|---|---|---|---|",
        *table,
        "",
        "Goal: 1,500 accepted a second on one core, no fewer for the last shard than for the first. Memory holds the rows of one",
        "shard; what grows with the examples is the counters and a digest for each.",
    ]
    (REPOSITORY / "benchmarks/triplet_building.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
