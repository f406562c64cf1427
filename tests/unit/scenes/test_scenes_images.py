"""Shards of images: complete, resumable after a kill at any moment, the same bytes in the end."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from bindbench.config.scenes import Scenes
from bindbench.errors import UserError
from bindbench.files import sha256
from bindbench.scenes import images as module
from bindbench.scenes.images import encode_png, render_shard
from bindbench.tables import IMAGES, SCENES, read_table, write_table
from PIL import Image

SETTINGS = Scenes(image_px=64)


def scenes(count: int, attribute: str = "striped", slots: tuple[str, ...] = ("red", "white")) -> list[dict]:
    def binding(attribute, slots, thing):
        return {"attribute": attribute, "realised": attribute, "object": thing, "slots": list(slots)}

    return [
        {
            "scene": f"q{index:03d}.query",
            "question": f"q{index:03d}",
            "role": "query",
            "kind": "query",
            "bindings": [binding(attribute, slots, "teapot"), binding("golden", (), "mug")],
            "caption": "",
            "generation_caption": "",
            "moved": 0,
        }
        for index in range(count)
    ]


@pytest.fixture
def shard(tmp_path, vocabulary, reliefs_path):
    manifest = tmp_path / "images" / "0003.parquet"

    def render(rows, settings=SETTINGS, version=1):
        render_shard(rows, vocabulary, reliefs_path, settings, manifest, version)
        return contents(manifest)

    render.manifest, render.folder = manifest, manifest.with_suffix("")
    return render


def contents(manifest: Path) -> dict[str, bytes]:
    files = {path.name: path.read_bytes() for path in manifest.with_suffix("").glob("*.png")}
    return {**files, "manifest": manifest.read_bytes()}


@pytest.fixture
def rendered(monkeypatch) -> list[str]:
    """Names of the scenes that are really rendered."""
    names, render = [], module._render

    def noted(plan, *rest):
        names.append(plan["scene"])
        return render(plan, *rest)

    monkeypatch.setattr(module, "_render", noted)
    return names


def test_manifest_names_every_image_with_its_hash(shard):
    shard(scenes(4))
    rows = read_table(IMAGES, shard.manifest).to_pylist()
    assert [row["scene"] for row in rows] == [f"q{i:03d}.query" for i in range(4)]
    for row in rows:
        data = (shard.manifest.parent / row["path"]).read_bytes()
        assert row["path"] == f"0003/{row['scene']}.png"
        assert sha256(data) == row["sha256"]
        assert np.asarray(Image.open(io.BytesIO(data))).shape == (64, 64, 3)
        assert row["renderer"] == "builtin/1"


def test_rows_as_a_table_are_the_same_as_dicts(shard, tmp_path):
    once = shard(scenes(2))
    write_table(SCENES, scenes(2), tmp_path / "scenes.parquet")
    assert shard(read_table(SCENES, tmp_path / "scenes.parquet")) == once


def test_flipped_scene_is_the_mirror_of_the_unflipped(shard):
    def picture(probability):
        shard(scenes(1), Scenes(image_px=64, flip_probability=probability))
        (row,) = read_table(IMAGES, shard.manifest).to_pylist()
        return row["flipped"], np.asarray(Image.open(shard.folder / "q000.query.png"))

    (flipped, mirrored), (upright, plain) = picture(1.0), picture(0.0)
    assert flipped and not upright
    assert np.array_equal(mirrored, plain[:, ::-1])


def test_another_flip_probability_renders_only_what_it_flips(shard, rendered):
    shard(scenes(12), Scenes(image_px=64, flip_probability=0.0))
    rendered.clear()
    shard(scenes(12))
    flipped = [row["scene"] for row in read_table(IMAGES, shard.manifest).to_pylist() if row["flipped"]]
    assert rendered == flipped
    assert 1 <= len(flipped) <= 11


def test_second_run_renders_nothing_and_changes_nothing(shard, rendered):
    once = shard(scenes(3))
    rendered.clear()
    assert shard(scenes(3)) == once
    assert rendered == []


def test_torn_index_line_costs_one_image(shard, rendered):
    once = shard(scenes(3))
    index = shard.folder / "index.jsonl"
    index.write_bytes(index.read_bytes()[:-30])
    rendered.clear()
    assert shard(scenes(3)) == once
    assert rendered == ["q002.query"]


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-40], lambda data: b"", lambda data: data[:99] + b"x" + data[100:]]
)
def test_damaged_image_is_rendered_again(shard, rendered, damage):
    once = shard(scenes(3))
    path = shard.folder / "q001.query.png"
    path.write_bytes(damage(path.read_bytes()))
    rendered.clear()
    assert shard(scenes(3)) == once
    assert rendered == ["q001.query"]


def test_missing_image_is_rendered_again(shard, rendered):
    once = shard(scenes(3))
    (shard.folder / "q000.query.png").unlink()
    rendered.clear()
    assert shard(scenes(3)) == once
    assert rendered == ["q000.query"]


def test_index_full_of_rubbish_is_no_crash(shard, rendered):
    once = shard(scenes(2))
    (shard.folder / "index.jsonl").write_bytes(
        b'\xff\xfe{]\n[1]\n"x"\n{"scene": 1}\n{"scene": [1], "key": 1, "sha256": 2}\n'
    )
    rendered.clear()
    assert shard(scenes(2)) == once
    assert len(rendered) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"rows": scenes(2, "striped", ("white", "red"))},
        {"rows": scenes(2, "glowing", ("red",))},
        {"settings": Scenes(image_px=64, seed=1)},
        {"settings": Scenes(image_px=65)},
        {"version": 2},
    ],
)
def test_whatever_determines_the_pixels_renders_again(shard, rendered, change):
    shard(scenes(2))
    rendered.clear()
    shard(change.pop("rows", scenes(2)), **change)
    assert len(rendered) == 2


def test_settings_that_do_not_touch_the_pixels_render_nothing(shard, rendered):
    shard(scenes(2))
    rendered.clear()
    shard(scenes(2), Scenes(image_px=64, shard_size=7))
    assert rendered == []


def test_scene_that_left_the_shard_takes_its_image_along(shard):
    shard(scenes(3))
    (shard.folder / ".q009.query.png.abc.png").write_bytes(b"half an image of a killed run")
    shard(scenes(2))
    assert sorted(path.name for path in shard.folder.iterdir()) == ["index.jsonl", "q000.query.png", "q001.query.png"]
    assert len((shard.folder / "index.jsonl").read_text().splitlines()) == 2


PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from bindbench.config.questions import PALETTE
from bindbench.scenes.images import render_shard
from bindbench.vocabulary import read_vocabulary
from test_scenes_images import SETTINGS, scenes
lists = Path(sys.argv[3])
vocabulary = read_vocabulary(lists / "objects.csv", lists / "attributes.csv", PALETTE)
render_shard(scenes(60), vocabulary, Path(sys.argv[1]), SETTINGS, Path(sys.argv[2]), 1)
"""


def test_kill_9_loses_at_most_the_image_in_work(tmp_path, reliefs_path, rendered, shard):
    root = Path(__file__).parents[3]
    arguments = [reliefs_path, shard.manifest, root / "resources" / "vocabulary", Path(__file__).parent]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(root / "workflow")},
        stderr=subprocess.DEVNULL,
    )
    index = shard.folder / "index.jsonl"
    for _ in range(3000):
        if index.exists() and index.read_bytes().count(b"\n") >= 5:
            break
        assert process.poll() is None, "ended before it could be killed"
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    noted = [json.loads(line)["scene"] for line in index.read_text().splitlines() if line.endswith("}")]
    assert len(noted) >= 5 and not shard.manifest.exists()
    resumed = shard(scenes(60))
    assert len(rendered) == 60 - len(noted)
    for path in shard.folder.iterdir():
        path.unlink()
    assert shard(scenes(60)) == resumed


@pytest.mark.parametrize("thing, attribute", [("unicorn", "red"), ("mug", "plaid")])
def test_binding_outside_the_vocabulary_is_named(shard, thing, attribute):
    row = scenes(1)[0]
    row["bindings"][0] |= {"object": thing, "attribute": attribute}
    with pytest.raises(UserError, match=f"scene q000.query: '{attribute} {thing}' is not in the vocabulary"):
        shard([row])


def test_shape_without_relief_is_named(tmp_path, vocabulary, reliefs):
    from bindbench.scenes.relief import write_reliefs

    write_reliefs(tmp_path / "few.bin", {"own:mug": reliefs["own:mug"]})
    with pytest.raises(UserError, match="shape noto:teapot has no relief; build the reliefs again"):
        render_shard(scenes(1), vocabulary, tmp_path / "few.bin", SETTINGS, tmp_path / "0.parquet", 1)


def test_png_holds_the_pixels_and_the_text():
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    opened = Image.open(io.BytesIO(encode_png(image, {"Software": "bindbench", "Title": "ä"})))
    opened.load()
    assert np.array_equal(np.asarray(opened), image)
    assert opened.text == {"Software": "bindbench", "Title": "ä"}
    assert encode_png(image) == encode_png(image.copy(), {})
