"""Triplets by a language model through the whole workflow, from a local server: killed, grown, estimated, nothing asked twice."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
import yaml
from bindbench.config.triplets import CONSTRUCTIONS, Generation
from bindbench.tables import TRIPLETS, read_table
from bindbench.triplets.constructions import CONSTRUCTIONS as KINDS
from bindbench.triplets.controls import read_controls, sample_specification
from bindbench.triplets.grammar import propose, read_grammar
from fake_services import FakeServices
from snakemake_runs import REPOSITORY, command, environment, run

SETTINGS = {"backend": "openai", "examples_per_request": 3, "requests_per_round": 4, "seed": 3}
COUNTS = dict.fromkeys(CONSTRUCTIONS, 0) | {"pair_swap": 26, "predicative": 11, "deferred_bind_anaphoric": 5}
TARGET = "results/triplets/train.parquet"
KEY = "sk-this-must-appear-nowhere"


def written_answers() -> list[dict]:
    """What the model says to each request, told apart by the controls of its first example: sentences of the grammar."""
    lists = REPOSITORY / "resources/triplets"
    controls, grammar = read_controls(lists), read_grammar(lists)
    each, seed = SETTINGS["examples_per_request"], SETTINGS["seed"]
    scripts = []
    for construction in (name for name, count in COUNTS.items() if count):
        for number in range(30):
            asked = [sample_specification(controls, construction, seed, number * each + i) for i in range(each)]
            said = [propose(grammar, s, random.Random(f"{construction} {s.index}"), lambda word: False) for s in asked]
            first = asked[0]
            told = (
                f"Example 1\n- place: {first.scene}\n- time of day: {first.time_of_day or 'not given'}\n- weather: "
                f"{first.weather or 'not given'}\n- register: {first.register}"
            )
            examples = [
                {
                    "attributes": [list(binding.attributes) for binding in proposal.bindings],
                    "objects": [binding.object for binding in proposal.bindings],
                    "positive": proposal.positive,
                }
                | (
                    {"distractors": [{"attribute": d.attributes[0], "object": d.object} for d in proposal.distractors]}
                    if KINDS[construction].distractors
                    else {}
                )
                for proposal in said
            ]
            text = json.dumps({"examples": examples})
            scripts.append({"text": text, "match": json.dumps(told)[1:-1], "times": 10**6})
    return scripts


@pytest.fixture
def shop(tmp_path):
    """A server that speaks for the model, a working directory and a config."""
    with FakeServices() as server:
        server.texts(*written_answers())
        config = tmp_path / "config.yaml"
        values = {
            "models": ["wordllama"],
            "triplets": {"counts": COUNTS, "shard_size": 10, "generation": SETTINGS},
            "services": {
                "store": str(tmp_path / "store"),
                "servers": {"gemma-4-31b-it": f"{server.url}/v1"},
                "concurrency": 2,
            },
        }
        config.write_text(yaml.safe_dump(values))
        directory = tmp_path / "run"
        directory.mkdir()
        yield server, directory, config


def rows(directory):
    shards = sorted((directory / "results/triplets/shards").glob("*/0*.parquet"))
    return [row for path in shards if "rejects" not in path.name for row in read_table(TRIPLETS, path).to_pylist()]


def asked(server) -> list[int]:
    return [entry["count"] for entry in server.seen()]


def grown(config, **counts):
    values = yaml.safe_load(config.read_text())
    values["triplets"]["counts"] |= counts
    config.write_text(yaml.safe_dump(values))


def test_a_run_killed_on_the_way_asks_for_nothing_twice_and_a_larger_count_goes_on(shop):
    server, directory, config = shop
    server.faults({"fault": "delay", "seconds": 0.4, "times": 10**9})
    for until in (1, 5):
        process = subprocess.Popen(
            command(TARGET, "--cores", "2", directory=directory, config=config),
            cwd=directory, env=environment() | {"OPENAI_API_KEY": KEY}, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        end = time.time() + 120
        while len(server.seen()) < until and time.time() < end:
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    server.faults()
    run(TARGET, "--cores", "2", directory=directory, config=config)
    first, requests = rows(directory), len(asked(server))
    assert set(asked(server)) == {1}
    assert len(first) == 42 and {row["source"] for row in first} == {"openai/gemma-4-31b-it"}

    grown(config, pair_swap=32)
    run(TARGET, "--cores", "2", directory=directory, config=config)
    more = {row["example"]: row for row in rows(directory)}
    assert len(more) == 48 and all(more[row["example"]] == row for row in first)
    assert set(asked(server)) == {1} and requests < len(asked(server)) <= requests + 3

    again = directory.parent / "elsewhere"
    again.mkdir()
    run(TARGET, "--cores", "2", directory=again, config=config)
    assert rows(again) == rows(directory) and set(asked(server)) == {1}, "another folder, the same store"
    files = [path for path in directory.parent.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in path.read_bytes() for path in files)


def test_an_estimate_of_triplets_buys_nothing(shop):
    server, directory, config = shop
    line = [sys.executable, "-m", "bindbench", "estimate", TARGET, "--configfile", str(config)]
    done = subprocess.run(line, cwd=directory, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not server.seen()
    held = [words for words in done.stdout.splitlines() if "of which the store holds 0" in words]
    number = int(held[0].split(",")[0].split()[-1])
    assert 42 / 3 <= number <= 42 / (3 * 0.6) + 3
    run(TARGET, "--cores", "2", directory=directory, config=config)
    done = subprocess.run(line, cwd=directory, env=environment(), capture_output=True, text=True)
    assert " 0, of which" in done.stdout or "nothing" in done.stdout.lower(), done.stdout


def test_the_paper_s_config_asks_gemma_for_the_full_set():
    values = yaml.safe_load((REPOSITORY / "config/paper.yaml").read_text())["triplets"]["generation"]
    assert Generation(**values).model == "gemma-4-31b-it" and values["backend"] == "google-genai"
