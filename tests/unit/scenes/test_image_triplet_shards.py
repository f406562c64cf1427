"""A shard of image triplets, rendered as the benchmark's scenes are: four images an example, resumable, another layout."""

import numpy as np
import pytest
from bindbench.cli import main
from bindbench.config.image_triplets import ImageTriplets
from bindbench.config.questions import Vocabulary as VocabularySection
from bindbench.saber.image_triplets import sample_image_triplets
from bindbench.tables import IMAGE_TRIPLETS, IMAGES, TRIPLET_ROLES, read_table, write_table
from PIL import Image

SETTINGS = ImageTriplets(examples=5, validation_examples=1, image_px=64, shard_size=2)


@pytest.fixture
def render(vocabulary, reliefs_path, tmp_path):
    write_table(IMAGE_TRIPLETS, sample_image_triplets(vocabulary, SETTINGS)["train"], tmp_path / "train.parquet")

    def rendered(shard: int, settings: ImageTriplets = SETTINGS) -> list[dict]:
        images = tmp_path / f"train/{shard:04d}.parquet"
        arguments = ["--examples", tmp_path / "train.parquet", "--shard", shard, "--reliefs", reliefs_path]
        arguments += ["--images", images, "--vocabulary", VocabularySection().model_dump_json(), "--version", 1]
        line = ["render-image-triplets", *arguments, "--config", settings.model_dump_json()]
        assert main([str(argument) for argument in line]) == 0
        return [row | {"path": images.parent / row["path"]} for row in read_table(IMAGES, images).to_pylist()]

    return rendered


def test_the_last_shard_has_what_is_left_and_every_role_an_image(render):
    assert [len(render(shard)) for shard in (0, 2)] == [8, 4]
    rows = {row["scene"]: np.asarray(Image.open(row["path"])) for row in render(2)}
    assert list(rows) == [f"train-00004-{role}" for role in TRIPLET_ROLES]
    assert {image.shape for image in rows.values()} == {(64, 64, 3)}
    query, positive = (rows[f"train-00004-{role}"].astype(int) for role in ("query", "positive"))
    for other in (positive, positive[:, ::-1]):
        assert np.abs(query - other).max() > 50, "the positive shows the same things in another layout"


def test_a_second_run_renders_nothing_and_another_seed_everything(render):
    before = {row["scene"]: (row["sha256"], row["path"].stat().st_mtime_ns) for row in render(0)}
    again = {row["scene"]: (row["sha256"], row["path"].stat().st_mtime_ns) for row in render(0)}
    assert again == before
    other = {row["scene"]: row["sha256"] for row in render(0, SETTINGS.model_copy(update={"seed": 1}))}
    assert all(other[scene] != digest for scene, (digest, _) in before.items())
