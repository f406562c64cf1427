"""One scene: attributes stay on their object, a flip is a mirror, the same scene is the same image everywhere."""

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bindbench.scenes.layout import HALO, scatter
from bindbench.scenes.materials import MATERIALS
from bindbench.scenes.render import SHEAR, SQUASH, SceneObject, render_scene
from hypothesis import given, settings
from hypothesis import strategies as st

SHAPES = ("noto:teapot", "noto:elephant", "own:cube", "noto:guitar")
OTHERS = (SceneObject(SHAPES[1], "plain:blue"), SceneObject(SHAPES[2], "golden"), SceneObject(SHAPES[3], "transparent"))


def words(material: str) -> tuple[str, ...]:
    return tuple(list(slot)[index] for index, slot in enumerate(MATERIALS[material].slots))


def scene(material: str, seed: str, reliefs, size: int = 256, shape: str = SHAPES[0]) -> np.ndarray:
    return render_scene([SceneObject(shape, material, words(material)), *OTHERS], reliefs, size, seed, False)


def reach(place, aspect, size: int) -> np.ndarray:
    """Mask of the object's box with its halo, and of its shadow to the right."""
    mask = np.zeros((size, size), bool)
    width, height, halo = aspect[0] * place.size, aspect[1] * place.size, HALO * place.size
    soft = 0.12 * place.size

    def fill(left, right, top, bottom):
        rows = slice(max(0, int(top * size) - 2), int(np.ceil(bottom * size)) + 2)
        mask[rows, max(0, int(left * size) - 2) : int(np.ceil(right * size)) + 2] = True

    left, right = place.x - width / 2, place.x + width / 2
    fill(left - halo, right + halo, place.foot - height - halo, place.foot + halo)
    fill(left - soft, right + SHEAR * height + soft, place.foot - SQUASH * height - soft, place.foot + soft)
    return mask


@pytest.mark.parametrize("seed", ["a", "b"])
def test_no_attribute_bleeds_out_of_its_object(reliefs, seed):
    """Changing one object's material changes no pixel beyond its box, halo and shadow, and none of its neighbours."""
    size = 256
    aspects = [reliefs[shape].aspect for shape in SHAPES]
    places = scatter(aspects, seed)
    beyond = ~reach(places[0], aspects[0], size)
    opaque = np.zeros((size, size), bool)  # the opaque neighbours, whatever reaches them
    for aspect, place in list(zip(aspects, places, strict=True))[1:3]:
        width, height = aspect[0] * place.size, aspect[1] * place.size
        rows = slice(int((place.foot - 0.6 * height) * size), int((place.foot - 0.4 * height) * size))
        opaque[rows, int((place.x - 0.1 * width) * size) : int((place.x + 0.1 * width) * size)] = True
    base = scene("plain", seed, reliefs).astype(int)
    for material in MATERIALS:
        change = np.abs(scene(material, seed, reliefs).astype(int) - base).max(axis=-1)
        assert change[beyond].max() <= 4, material
        assert change[opaque].max() <= 4, material
        assert change.max() > 20 or material == "plain"


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(MATERIALS)), min_size=2, max_size=6), st.integers(0, 99), st.sampled_from([96, 128])
)
def test_flip_is_an_exact_mirror(reliefs, materials, seed, size):
    objects = [SceneObject(SHAPES[i % 4], material, words(material)) for i, material in enumerate(materials)]
    upright = render_scene(objects, reliefs, size, str(seed), False)
    assert upright.shape == (size, size, 3) and upright.dtype == np.uint8
    assert np.array_equal(render_scene(objects, reliefs, size, str(seed), True), upright[:, ::-1])


def test_nothing_is_cut_by_the_frame(reliefs, shapes):
    """No object touches the border: what lies there is floor and shadow, which are grey and never bright."""
    for seed in range(12):
        chosen = np.random.default_rng(seed).choice(len(shapes), 10, replace=False)
        objects = [SceneObject(shapes[index], "glowing", ("red",)) for index in chosen]
        image = render_scene(objects, reliefs, 200, str(seed), False).astype(int)
        border = np.concatenate([image[:2].reshape(-1, 3), image[-2:].reshape(-1, 3), *(image[:, [0, 1, -2, -1]])])
        assert np.ptp(border, axis=-1).max() <= 4
    assert np.ptp(image, axis=-1).max() > 100


def test_attribute_looks_the_same_wherever_its_object_stands(reliefs):
    """Noise is keyed by the material, not by the image: two layouts show the same marble."""
    thing = SceneObject("noto:teapot", "marble", ("white",))
    aspect = reliefs["noto:teapot"].aspect
    crops = []
    for seed in ("1", "2"):
        place = scatter([aspect], seed)[0]
        image = render_scene([thing], reliefs, 512, seed, False).mean(axis=-1)
        box = [place.foot - aspect[1] * place.size, place.x - aspect[0] * place.size / 2]
        y, x = (np.round(start * 512 + np.linspace(0.25, 0.75, 60) * extent * place.size * 512).astype(int)
                for start, extent in zip(box, aspect[::-1], strict=True))  # fmt: skip
        crops.append(image[np.ix_(y, x)].ravel())
    assert np.corrcoef(crops)[0, 1] > 0.8


def test_layout_seed_moves_the_objects(reliefs):
    assert not np.array_equal(scene("plain", "a", reliefs), scene("plain", "b", reliefs))


PROGRAM = """
import hashlib, sys
from bindbench.scenes.materials import MATERIALS
from bindbench.scenes.relief import read_reliefs
from bindbench.scenes.render import SceneObject, render_scene
reliefs = read_reliefs(sys.argv[1])
for material in sys.argv[2].split(","):
    slots = tuple(list(slot)[index] for index, slot in enumerate(MATERIALS[material].slots))
    image = render_scene([SceneObject("noto:teapot", material, slots)], reliefs, 160, "s", True)
    print(hashlib.sha256(image.tobytes()).hexdigest())
"""


def test_another_process_in_another_order_gives_the_same_pixels(reliefs, reliefs_path):
    names = sorted(MATERIALS)
    here = []
    for name in names:
        image = render_scene([SceneObject("noto:teapot", name, words(name))], reliefs, 160, "s", True)
        here.append(hashlib.sha256(image.tobytes()).hexdigest())
    backwards = ",".join(reversed(names))
    environment = {"PYTHONPATH": str(Path(__file__).parents[3] / "workflow"), "PYTHONHASHSEED": "1"}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(reliefs_path), backwards], capture_output=True, text=True, env=environment
    )
    assert result.stderr == ""
    assert result.stdout.split() == here[::-1]


def test_twenty_objects_and_big_and_small_images(reliefs, shapes):
    objects = [SceneObject(shape, "striped", ("red", "white")) for shape in shapes[:20]]
    for size in (64, 333, 1024):
        assert render_scene(objects, reliefs, size, "x", False).shape == (size, size, 3)


def test_every_object_shows_its_colour(reliefs, shapes):
    for start in range(0, 232, 8):
        chosen = shapes[start : start + 8]
        places = scatter([reliefs[shape].aspect for shape in chosen], "s")
        image = render_scene([SceneObject(shape, "plain:red") for shape in chosen], reliefs, 256, "s", False).astype(
            int
        )
        red = image[..., 0] - image[..., 1:].max(axis=-1) > 60
        for shape, place in zip(chosen, places, strict=True):
            width, height = (extent * place.size * 256 for extent in reliefs[shape].aspect)
            foot, x = round(place.foot * 256), round(place.x * 256)
            box = red[foot - int(height) : foot, x - int(width / 2) : x + int(width / 2)]
            assert box.mean() > 0.06, shape
