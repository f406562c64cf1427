"""Finetuning on images through the whole workflow (Appendix E): what is drawn, rendered and trained, and what again."""

import json

import pytest
import yaml
from bindbench.tables import IMAGES, read_table
from snakemake_runs import REPOSITORY, planned, run

pytestmark = pytest.mark.xdist_group("image_finetuning")
TARGET = "results/finetuning/seen/record.json"
SIZES = {"examples": 9, "validation_examples": 4, "image_px": 64, "shard_size": 5}
RUN = {"base": "nano", "data": "image_triplets", "batch_size": 3, "learning_rate": 0.001, "validate_every": 0}
RENDERED = {"render_image_triplets 0000", "render_image_triplets 0001"}


def config_with(directory, run_changes=(), **changes):
    values = yaml.safe_load((REPOSITORY / "config/tiny.yaml").read_text())
    values |= {"models": ["nano"], "finetuning": {"runs": {"seen": RUN | dict(run_changes)}}}
    values["image_triplets"] = SIZES | changes
    path = directory / "images.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def images(directory) -> dict[str, tuple[str, int]]:
    """Hash and time of every image, by scene."""
    found = {}
    for table in sorted((directory / "results/image_triplets").glob("*/*.parquet")):
        for row in read_table(IMAGES, table).to_pylist():
            found[row["scene"]] = row["sha256"], (table.parent / row["path"]).stat().st_mtime_ns
    return found


def test_a_run_renders_its_images_and_only_what_changed_is_done_again(copy_of_tiny):
    config = config_with(copy_of_tiny)
    assert planned(TARGET, directory=copy_of_tiny, config=config) == {"sample_image_triplets", "finetune"} | RENDERED
    run(TARGET, "--cores", "2", directory=copy_of_tiny, config=config)
    record = json.loads((copy_of_tiny / TARGET).read_text())
    assert (record["examples"], record["steps"], record["validation_examples"]) == (9, 3, 4)
    assert len(before := images(copy_of_tiny)) == 4 * (9 + 4)
    assert planned(TARGET, directory=copy_of_tiny, config=config) == set()

    for changes, jobs in (
        ({"image_px": 96}, RENDERED | {"finetune"}),
        ({"seed": 1}, RENDERED | {"finetune", "sample_image_triplets"}),
        ({"object_counts": [2]}, RENDERED | {"finetune", "sample_image_triplets"}),
        ({"validation_examples": 5}, RENDERED | {"finetune", "sample_image_triplets"}),
        ({"shard_size": 9}, {"render_image_triplets 0000", "finetune"}),
        ({"run_changes": {"margin": 0.1}}, {"finetune"}),
        ({"run_changes": {"data": "train"}}, {"finetune"}),
    ):
        assert planned(TARGET, directory=copy_of_tiny, config=config_with(copy_of_tiny, **changes)) == jobs, changes

    run(TARGET, "--cores", "2", directory=copy_of_tiny, config=config_with(copy_of_tiny, examples=12))
    after = images(copy_of_tiny)
    assert len(after) == 4 * (12 + 4) and after.items() > before.items(), "more examples render only what is new"
    assert json.loads((copy_of_tiny / TARGET).read_text())["examples"] == 12


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"base": "minilm"}, "finetuning.runs.seen.base: minilm embeds no images"),
        ({"attention_weight": 1}, "finetuning.runs.seen: attention_weight: the attention loss reads words"),
    ],
)
def test_what_images_cannot_have_is_told_in_one_line_before_anything_is_rendered(tmp_path, changes, line):
    done = run(TARGET, "-n", directory=tmp_path, config=config_with(tmp_path, changes), check=False)
    assert done.returncode == 2 and line in done.stderr and "Traceback" not in done.stdout + done.stderr


def test_a_config_that_buys_the_benchmarks_images_renders_the_triplets(tmp_path):
    config = config_with(tmp_path)
    values = yaml.safe_load(config.read_text()) | {"scenes": {"renderer": "openai", "image_px": 1024}}
    config.write_text(yaml.safe_dump(values))
    jobs = {job.split()[0] for job in planned(TARGET, directory=tmp_path, config=config)}
    assert {"build_reliefs", "render_image_triplets", "finetune"} <= jobs and "buy_scenes" not in jobs
