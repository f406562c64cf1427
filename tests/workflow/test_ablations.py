"""Tables of ablations through the whole workflow: out of named runs, and only what changed is trained again."""

import csv
import json
import re

import pytest
import yaml
from snakemake_runs import REPOSITORY, planned, run

pytestmark = pytest.mark.xdist_group("ablations")
TARGET = "results/ablations.csv"
RUN = {"base": "minilm", "examples": 30, "batch_size": 6, "learning_rate": 0.003, "validation_examples": 10}
TABLE = {"title": "Data", "baseline": "bound", "models": ["minilm", "bound-random"]}


def config_with(directory, random=(), tables=()):
    """The tiny config without images, two runs and a table of them; random: changes of the second run."""
    values = yaml.safe_load((REPOSITORY / "config/tiny.yaml").read_text())
    values["models"] = ["minilm", "bound", "bound-random"]
    values["finetuning"] = {"runs": {"bound": RUN, "bound-random": RUN | {"data": "random"} | dict(random)}}
    values["ablations"] = {"data": TABLE, **dict(tables)}
    path = directory / "ablations.yaml"
    path.write_text(yaml.safe_dump(values, sort_keys=False))
    return path


def measuring(*models):
    return {f"{job} {m}" for m in models for job in ("embed_texts", "embed_triplets", "score_saber", "score_triplets")}


def trained(directory, config):
    """The runs that a dry run would train."""
    done = run(TARGET, "-n", "-p", directory=directory, config=config)
    return set(re.findall(r"bindbench finetune --run (\S+)", done.stdout + done.stderr))


def test_one_command_trains_measures_and_compares_and_a_change_of_one_run_trains_that_run_only(copy_of_tiny):
    config = config_with(copy_of_tiny)
    assert trained(copy_of_tiny, config) == {"bound", "bound-random"}
    jobs = planned(TARGET, directory=copy_of_tiny, config=config)
    assert jobs == {"finetune", "tabulate_ablations"} | measuring("bound", "bound-random")
    run(TARGET, "--cores", "2", directory=copy_of_tiny, config=config)
    with (copy_of_tiny / TARGET).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["model"], row["settings"]) for row in rows] == [
        ("bound", "finetuned from minilm, data train, examples 30, with LiNeS"),
        ("minilm", "not finetuned"),
        ("bound-random", "data random"),
    ]
    for row in rows:
        assert row["text_text"] != "" != row["triplets_test"] and row["image_image"] == row["mmeb_v3"] == ""
        assert (row["text_text_difference"] == "") == (row["role"] == "baseline")
    assert "paper: Ours-8B Random" in (copy_of_tiny / "results/ablations.html").read_text()
    manifest = json.loads((copy_of_tiny / "results/ablations_manifest.json").read_text())
    assert set(manifest["settings"]["finetuning"]["runs"]) == {"bound", "bound-random"}
    assert {fact["modality"] for fact in manifest["embeddings"]} == {"text"}

    assert planned(TARGET, directory=copy_of_tiny, config=config) == set()
    changed = config_with(copy_of_tiny, random={"margin": 0.1})
    assert trained(copy_of_tiny, changed) == {"bound-random"}
    assert planned(TARGET, directory=copy_of_tiny, config=changed) == {
        "finetune", "tabulate_ablations", *measuring("bound-random")
    }  # fmt: skip
    other = config_with(copy_of_tiny, tables={"more": TABLE | {"title": "Once more"}})
    assert planned(TARGET, directory=copy_of_tiny, config=other) == {"tabulate_ablations"}
    lines = config_with(copy_of_tiny, tables={"lines": {**TABLE, "models": ["minilm"]}})
    assert planned(TARGET, directory=copy_of_tiny, config=lines) == {"tabulate_ablations"}


def test_without_a_table_the_target_says_what_to_add(copy_of_tiny):
    done = run(TARGET, "--cores", "1", directory=copy_of_tiny, check=False)
    assert done.returncode != 0
    assert "ablations: no table is configured; add --configfile config/ablations.yaml" in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["ablations.yaml", "paper.yaml"])
def test_the_shipped_ablations_hold_the_papers_tables_at_equal_size(tmp_path, name):
    """C.1: NoOverlap, Random and OverlapOnly are of equal size; nothing but the data differs from the baseline."""
    values = yaml.safe_load((REPOSITORY / "config" / name).read_text())
    runs, tables = values["finetuning"]["runs"], values["ablations"]
    for table in (table for key, table in tables.items() if key.endswith("data")):
        rest = [{k: v for k, v in runs[m].items() if k != "data"} for m in [table["baseline"], *table["models"][1:]]]
        assert all(run == rest[0] for run in rest)
        data = [runs[model]["data"] for model in table["models"][1:]]
        assert data == ["no_overlap", "random", "overlap_only", "mixed_lengths"]
    titles = " ".join(table["title"] for table in tables.values())
    assert all(part in titles for part in ("Table 11", "Table 12", "Table 13", "section 6", "Appendix E"))
    measured = {model for table in tables.values() for model in (table["baseline"], *table["models"])}
    assert set(runs) - {"ours-2b"} <= measured, "a run that stands in no table is trained for nothing"
    assert trained(tmp_path, REPOSITORY / "config" / name) == set(runs) - {"ours-2b"}
