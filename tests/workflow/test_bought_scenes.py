"""Paid images through the whole workflow, from a local server: killed at random, refused, rejected and made again."""

import csv
import json
import os
import subprocess
import sys

import pytest
import yaml
from bindbench.tables import IMAGES, read_table
from fake_services import FakeServices
from kill_at_random import KEY, buy, files_with_the_key
from snakemake_runs import REPOSITORY, environment, run

SMALL = {
    "questions": {"object_counts": [2, 3], "independent": 12, "nested": 4},
    "scenes": {"renderer": "openai", "image_px": 1024, "shard_size": 40},
}


def test_a_run_killed_at_random_sends_no_request_twice(tmp_path):
    counts = buy(SMALL, tmp_path, kills=2, seed=1)
    assert counts["exit_code"] == 0, (tmp_path / "out.log").read_text()[-3000:]
    assert counts["images"] == counts["requests"] == 5 * 2 * 16
    assert counts["sent_more_than_once"] == 0
    assert files_with_the_key(tmp_path) == []


@pytest.fixture
def shop(tmp_path):
    """A server, a working directory and a config whose texts alone are embedded: no picture needs to be understood."""
    with FakeServices() as server:
        config = tmp_path / "config.yaml"
        services = {"store": str(tmp_path / "store"), "openai_base_url": f"{server.url}/v1", "budget_usd": 100.0}
        values = SMALL | {
            "questions": {"object_counts": [2, 3], "independent": 3, "nested": 2},
            "models": ["wordllama", "nano"],
            "tables": {"bootstrap_samples": 100},
            "figures": {"sheet_questions": 2},
        }
        config.write_text(yaml.safe_dump(values | {"services": services}))
        yield server, tmp_path, config


def go(directory, config, *targets, **options):
    os.environ["OPENAI_API_KEY"] = KEY
    try:
        return run(
            *(targets or ("results/saber_table2.csv",)), "--cores", "2", directory=directory, config=config, **options
        )
    finally:
        del os.environ["OPENAI_API_KEY"]


def image_rows(directory):
    tables = sorted((directory / "results/saber/images").glob("*.parquet"))
    return {row["scene"]: row for table in tables for row in read_table(IMAGES, table).to_pylist()}


def manifest(directory) -> dict:
    return json.loads((directory / "results/saber_manifest.json").read_text())


def test_a_refused_scene_leaves_its_question_out_and_a_rejected_one_alone_is_made_again(shop):
    server, directory, config = shop
    server.faults({"fault": "status", "status": 400, "code": "moderation_blocked", "match": "exactly 2 objects"})
    go(directory, config)
    rows = image_rows(directory)
    assert len(rows) == 49 and manifest(directory)["bought"]["refused"] == 1
    counts = manifest(directory)["screening"]
    assert (counts["questions"], counts["scored"], counts["left_out_missing"], counts["left_out_rejected"]) == (
        10,
        9,
        1,
        0,
    )
    costs = [json.loads(path.read_text())["cost_usd"] for path in (directory / "results/saber/images").glob("*.json")]
    assert manifest(directory)["money_usd"] == pytest.approx(sum(costs)) and sum(costs) > 0
    with (directory / "results/saber_table2.csv").open() as file:
        table = {row["protocol"]: row for row in csv.DictReader(file) if row["model"] == "nano"}
    assert table["mcq"]["n_questions"] == "9"

    asked = sum(server.counts())
    scene = "independent-03-001-c2"
    journal = directory / "screening/saber.jsonl"
    journal.parent.mkdir()
    line = {
        "scene": scene,
        "sha256": rows[scene]["sha256"],
        "verdict": "rejected",
        "reason": "extra object",
        "by": "me",
    }
    journal.write_text(json.dumps(line | {"time": "2026-11-30T00:00:00+00:00"}) + "\n")
    go(directory, config)
    now = image_rows(directory)
    assert sum(server.counts()) == asked + 1, "only the rejected scene is bought again"
    assert {s for s in rows if rows[s]["sha256"] != now[s]["sha256"]} <= {scene}
    assert files_with_the_key(directory) == []


def test_the_budget_stops_the_run_and_a_larger_one_goes_on(shop):
    server, directory, config = shop
    whole = config.read_text()
    config.write_text(whole.replace("budget_usd: 100.0", "budget_usd: 0.6"))
    stopped = go(directory, config, check=False)
    assert stopped.returncode != 0 and "services.budget_usd" in stopped.stdout + stopped.stderr
    assert "Traceback" not in stopped.stdout + stopped.stderr
    bought = len(server.seen())
    assert 0 < bought < 50
    config.write_text(whole)
    go(directory, config, "results/saber_scenes.html")
    assert len(server.seen()) == 50 and max(entry["count"] for entry in server.seen()) == 1


def test_an_estimate_buys_nothing_and_knows_what_is_held(shop):
    server, directory, config = shop
    line = [sys.executable, "-m", "bindbench", "estimate", "results/saber_table2.csv", "--configfile", str(config)]
    before = subprocess.run(line, cwd=directory, env=environment(), capture_output=True, text=True)
    assert before.returncode == 0, before.stderr
    assert "50, of which the store holds 0" in before.stdout and not server.seen()
    go(directory, config, "results/saber/images/0000.parquet")
    after = subprocess.run(line, cwd=directory, env=environment(), capture_output=True, text=True)
    assert "10, of which the store holds 0" in after.stdout, after.stdout + after.stderr
    (directory / "results/saber/images/0000.parquet").unlink()
    again = subprocess.run(line, cwd=directory, env=environment(), capture_output=True, text=True)
    assert "50, of which the store holds 40" in again.stdout, again.stdout + again.stderr


def test_without_a_key_one_line_says_which(shop):
    _, directory, config = shop
    done = run("results/saber_scenes.html", "--cores", "1", directory=directory, config=config, check=False)
    assert done.returncode != 0 and "OPENAI_API_KEY" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_the_paper_s_config_buys_9000_images_of_the_paper_s_kind():
    values = yaml.safe_load((REPOSITORY / "config/paper.yaml").read_text())["scenes"]
    assert values == {"renderer": "openai", "model": "gpt-image-2", "quality": "medium", "image_px": 1024}
