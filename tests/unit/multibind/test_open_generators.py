"""Open generators: the real Qwen-Image-Edit pipeline in miniature; of the others, that they are asked for what they understand.

No weights of any of them can be had here. HunyuanImage and OmniGen2 never ran: stand-ins with their entry points take their
places, the first through transformers' own loading of code that comes with a checkpoint.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from bindbench.config import check
from bindbench.config.multibind_generators import Generator
from bindbench.errors import UserError
from bindbench.files import canonical_json
from bindbench.multibind.generated_tables import GENERATED
from bindbench.multibind.generators import registry
from bindbench.multibind.generators.making import generate
from bindbench.multibind.generators.open_models import END_BYTES, asked_size, checkpoint_identity, told_in_a_line
from bindbench.snakemake_support import generator_weights
from bindbench.tables import read_table
from hypothesis import given
from hypothesis import settings as tried
from hypothesis import strategies as st
from made_instances import make_instances
from PIL import Image
from tiny_generators import hunyuan, omnigen2_package, qwen_image_edit


@pytest.fixture(scope="module", autouse=True)
def _one_thread(one_thread):
    """See tests/conftest.py."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_instances(tmp_path_factory.mktemp("instances"), {"folder-two": 2, "folder-three": 3})


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return qwen_image_edit(tmp_path_factory.mktemp("qwen") / "model")


@pytest.fixture
def small_inputs(monkeypatch):
    """The pipeline scales what goes in to a million pixels; here to a few thousand."""
    from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as pipeline

    monkeypatch.setattr(pipeline, "VAE_IMAGE_SIZE", 64 * 64)
    monkeypatch.setattr(pipeline, "CONDITION_IMAGE_SIZE", 56 * 56)


def qwen(folder: Path, **more) -> Generator:
    return Generator(
        **{"kind": "qwen-image-edit", "model": str(folder), "steps": 2, "dtype": "float32", "area_px": 4096} | more
    )


def run(made, place, generator) -> dict[str, dict]:
    generate(
        *made.tables, "g", generator, None, place / "g.parquet", place / "g", longest_px=1536, version=1
    )  # fmt: skip
    return {row["instance"]: row for row in read_table(GENERATED, place / "g.parquet").to_pylist()}


def picture(place, row) -> np.ndarray:
    return np.array(Image.open(place / "g" / row["file"]))


@given(width=st.integers(16, 4000), height=st.integers(16, 4000), area=st.integers(10_000, 4_000_000))
@tried(deadline=None)
def test_what_is_asked_has_the_shape_and_about_the_area(width, height, area):
    wide, high = asked_size((width, height), area)
    assert wide % 16 == high % 16 == 0 and wide > 0 and high > 0
    exact = (area * width / height) ** 0.5, (area * height / width) ** 0.5
    assert abs(wide - exact[0]) <= 16 and abs(high - exact[1]) <= 16


def test_qwen_image_edit_makes_a_picture_of_the_common_size_the_same_each_time(made, tiny, small_inputs, tmp_path):
    rows = run(made, tmp_path, qwen(tiny))
    assert run(made, tmp_path / "again", qwen(tiny)) == rows
    assert run(made, tmp_path / "seeded", qwen(tiny, seed=1))["folder-two"]["sha256"] != rows["folder-two"]["sha256"]
    for row in rows.values():
        assert picture(tmp_path, row).shape == (180, 240, 3) and row["problem"] is None
        # 64 x 64 pixels in the shape of 240 x 180.
        assert row["changes"] == ["resized from 80 x 48 to 240 x 180", "width to height times 0.800"]
        assert (
            row["model"] == "qwen-image-edit/model"
            and str(tiny) not in row["settings"]
            and '"steps":2' in row["settings"]
        )


def test_the_references_and_the_words_shape_what_qwen_image_edit_makes(made, tiny, small_inputs):
    model, scene = registry.OPEN["qwen-image-edit"](qwen(tiny)), made.scene("folder-two")
    other = made.scene("folder-two")
    other.row["prompt"] = "Subject A: a red cube. Subject B: a blue sphere."
    assert not np.array_equal(model(scene), model(other))


def test_a_finished_run_loads_no_model(made, tiny, small_inputs, tmp_path, monkeypatch):
    rows = run(made, tmp_path, qwen(tiny))
    monkeypatch.setitem(registry.OPEN, "qwen-image-edit", None)
    assert run(made, tmp_path, qwen(tiny)) == rows


def test_another_checkpoint_in_the_same_folder_is_noticed(made, tiny, small_inputs, tmp_path, monkeypatch):
    run(made, tmp_path, qwen(tiny))
    config = tiny / "scheduler" / "scheduler_config.json"
    before, asked = config.read_bytes(), []
    monkeypatch.setitem(
        registry.OPEN, "qwen-image-edit", lambda settings: lambda scene: asked.append(1) or scene.target
    )
    try:
        config.write_bytes(before + b"\n")
        run(made, tmp_path, qwen(tiny))
    finally:
        config.write_bytes(before)
    assert len(asked) == 2


def test_large_weights_that_are_replaced_in_place_are_noticed_by_their_ends_and_are_inputs_of_the_rule(tmp_path):
    weights = tmp_path / "transformer" / "model.safetensors"
    weights.parent.mkdir()
    (tmp_path / "model_index.json").write_text("{}")
    size, generator, found = 3 * END_BYTES, Generator(kind="omnigen2", model=str(tmp_path)), set()
    for place in (None, 0, END_BYTES - 1, 2 * END_BYTES, size - 1):
        data = bytearray(size)
        if place is not None:
            data[place] = 1
        weights.write_bytes(data)
        found.add(canonical_json(checkpoint_identity(generator)))
    assert len(found) == 5
    weights.write_bytes(bytes(size + 1))
    assert canonical_json(checkpoint_identity(generator)) not in found
    config = check({"multibind": {"generation": {"generators": {"g": generator.settings}}}}, lambda key: "test")
    assert generator_weights(config, "g") == [tmp_path / "model_index.json", weights]


@pytest.mark.parametrize("kind", ["qwen-image-edit", "omnigen2"])
def test_without_diffusers_one_line_says_what_to_install(made, tmp_path, monkeypatch, kind):
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(UserError, match=rf"kind {kind}, model: needs diffusers.*uv pip install diffusers=="):
        run(made, tmp_path, Generator(kind=kind))


@pytest.mark.parametrize("moment", ["loading", "drawing"])
def test_a_full_gpu_is_one_line_with_what_to_lower(made, tmp_path, monkeypatch, moment):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 40.00 GiB.")

    def opened(generator):
        with told_in_a_line(generator):
            return full() if moment == "loading" else full

    monkeypatch.setitem(registry.OPEN, "qwen-image-edit", opened)
    with pytest.raises(UserError, match=r"not enough free memory .*lower area_px \(now 4096\), set dtype: bfloat16"):
        run(made, tmp_path, qwen(tmp_path))


def test_a_checkpoint_that_is_not_there_or_broken_is_one_line(made, tmp_path):
    with pytest.raises(UserError, match=r"no folder \./nowhere"):
        run(made, tmp_path, qwen(Path("./nowhere"), model="./nowhere"))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UserError, match="cannot be loaded") as error:
        run(made, tmp_path, qwen(empty))
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="revision means nothing for a folder"):
        run(made, tmp_path, qwen(empty, revision="main"))


def test_hunyuan_is_loaded_with_the_code_of_its_checkpoint_and_asked_in_its_own_words(made, tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = hunyuan(tmp_path / "checkpoint")
    settings = Generator(kind="hunyuan", model=str(folder), trust_remote_code=True, steps=40, seed=2)
    rows = run(made, tmp_path, settings)
    for name, inputs in (("folder-two", 3), ("folder-three", 4)):
        assert picture(tmp_path, rows[name])[0, 0].tolist() == [10, 200, inputs + 42]
        assert rows[name]["changes"] == ["resized from 480 x 360 to 240 x 180"]


def test_omnigen2_needs_its_authors_package_and_is_asked_in_its_own_words(made, tmp_path, monkeypatch):
    settings = Generator(kind="omnigen2", trust_remote_code=True, steps=7)
    with pytest.raises(UserError, match=r"needs omnigen2.*PYTHONPATH"):
        run(made, tmp_path, settings)
    monkeypatch.syspath_prepend(omnigen2_package(tmp_path / "package"))
    try:
        rows = run(made, tmp_path, settings)
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "omnigen2"]:
            del sys.modules[name]
    assert picture(tmp_path, rows["folder-three"])[0, 0].tolist() == [4, 7, 5]
