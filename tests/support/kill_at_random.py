"""Buys SABER's images from the local server through Snakemake, kills the run at random, and counts what was asked.

    python tests/support/kill_at_random.py --config config/paper.yaml --kills 10     (the whole benchmark: minutes)

A kill is SIGKILL to the run's whole process group, as a closed terminal or a batch system does it; the courier, a session
of its own, finishes what is in flight. Exits with 1 when a request was sent twice or an image is missing.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[2] / "workflow")]

import yaml  # noqa: E402
from fake_services import FakeServices  # noqa: E402
from snakemake_runs import command, environment  # noqa: E402

KEY = "sk-this-must-appear-nowhere"


def buy(config: dict, directory: Path, kills: int, seed: int, cores: int = 4, pause_s=(6, 16)) -> dict:
    """Runs to the end with so many kills on the way; returns counts.

    config: values of a config file, without services. directory: an empty working directory. pause_s: a kill comes between
        so many seconds after a start.
    """
    generator = random.Random(seed)
    with FakeServices() as server:
        server.faults({"fault": "delay", "seconds": 0.05, "times": 10**9})
        services = {
            "store": str(directory / "store"), "openai_base_url": f"{server.url}/v1", "budget_usd": 1e6, "concurrency": 32,
        }  # fmt: skip
        path = directory / "config.yaml"
        path.write_text(yaml.safe_dump({**config, "services": services}))
        done, started = 0, time.time()
        while True:
            line = command(
                "results/saber_scenes.html",
                "--cores",
                cores,
                "--resources",
                "api_slots=8",
                directory=directory,
                config=path,
            )
            run = subprocess.Popen(
                line, cwd=directory, env=environment() | {"OPENAI_API_KEY": KEY}, start_new_session=True,
                stdout=(directory / "out.log").open("ab"), stderr=subprocess.STDOUT,
            )  # fmt: skip
            if done < kills and not _ends_within(run, generator.uniform(*pause_s)):
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()
                done += 1
                continue
            run.wait()
            if run.returncode == 0 or done >= kills:
                break
        seen = server.seen()
    counts = Counter(entry["count"] for entry in seen if "/images/" in entry["path"])
    images = sum(1 for _ in (directory / "results/saber/images").glob("*/*.png"))
    return {
        "kills": done, "exit_code": run.returncode, "images": images, "requests": sum(counts.values()),
        "sent_more_than_once": sum(n for times, n in counts.items() if times > 1), "seconds": round(time.time() - started, 1),
    }  # fmt: skip


def _ends_within(run: subprocess.Popen, seconds: float) -> bool:
    try:
        run.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        return False


def files_with_the_key(directory: Path) -> list[str]:
    """Files anywhere below that hold the API key."""
    marked = []
    for path in directory.rglob("*"):
        if path.is_file() and KEY.encode() in path.read_bytes():
            marked.append(str(path))
    return marked


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--pause-s", type=float, nargs=2, default=(10, 40), help="a kill comes so many seconds after a start"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts = buy(
            yaml.safe_load(options.config.read_text()),
            Path(folder),
            options.kills,
            options.seed,
            pause_s=options.pause_s,
        )
        counts["files_with_the_key"] = len(files_with_the_key(Path(folder)))
    print(json.dumps(counts))
    bad = counts["exit_code"] or counts["sent_more_than_once"] or counts["files_with_the_key"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
