"""All attributes of the vocabulary have a material, look different from each other, and are checked before rendering."""

import numpy as np
import pytest
from bindbench.config.questions import PALETTE
from bindbench.errors import UserError
from bindbench.scenes.materials import MATERIALS, check_material, check_vocabulary
from bindbench.scenes.render import SceneObject, render_scene
from bindbench.vocabulary import Attribute


def attribute(kind: str, material: str, variants: tuple[str, ...] = ()) -> Attribute:
    return Attribute("shaggy", kind, "texture", "shaggy", variants, material)


def test_default_vocabulary_is_complete_and_uses_every_material(vocabulary):
    check_vocabulary(vocabulary)
    used = {attribute.material.split(":")[0] for attribute in vocabulary.attributes.values()}
    assert used == set(MATERIALS)


def test_every_realisation_of_every_attribute_differs_from_every_other(vocabulary, reliefs):
    """More than 500 realisations on one object: pairwise, in the mean over the object's pixels and channels."""
    forms, images = [], []
    for name, realisations in vocabulary.realisations.items():
        for slots, form, _ in realisations:
            thing = SceneObject("noto:teapot", vocabulary.attributes[name].material, slots)
            forms.append(form)
            images.append(render_scene([thing], reliefs, 128, "one", False))
    stack = np.stack(images)
    on_object = np.ptp(stack, axis=0).max(axis=-1) > 60
    seen = stack[:, on_object].reshape(len(stack), -1).astype(np.float32)
    assert len(forms) == len(set(forms)) > 500
    for index in range(1, len(seen)):
        distances = np.abs(seen[:index] - seen[index]).mean(axis=1)
        closest = distances.argmin()
        assert distances[closest] > 4, f"{forms[index]} looks like {forms[closest]}"


@pytest.mark.parametrize("shape", ["noto:soccer-ball", "noto:watch", "noto:alarm-clock"])
def test_inner_parts_show_through_every_material(vocabulary, reliefs, shape):
    """Grooves are darker than what surrounds them, in every pattern: a ball keeps its seams, a watch its hands."""
    relief = reliefs[shape]
    for name, realisations in vocabulary.realisations.items():
        slots, form, _ = realisations[0]
        image = render_scene(
            [SceneObject(shape, vocabulary.attributes[name].material, slots)], reliefs, 320, "x", False
        )
        bare = render_scene([SceneObject(shape, "plain", ("red",))], reliefs, 320, "x", False)
        grey = image.mean(axis=-1)
        rows, columns = np.nonzero(np.abs(bare.astype(int) - bare.mean(axis=-1, keepdims=True)).max(axis=-1) > 40)
        top, left = rows.min(), columns.min()
        height, width = rows.max() - top + 1, columns.max() - left + 1
        grid_y = (np.arange(height) * relief.groove.shape[0] / height).astype(int)
        grid_x = (np.arange(width) * relief.groove.shape[1] / width).astype(int)
        groove, alpha = relief.groove[grid_y][:, grid_x], relief.alpha[grid_y][:, grid_x] > 250
        cut = grey[top : top + height, left : left + width]
        if form != "black":  # black has no room below: its grooves show by their shine
            assert cut[alpha & (groove > 200)].mean() < 0.93 * cut[alpha & (groove < 40)].mean(), form


def test_preset_colour_and_open_slot_are_the_same_paint(reliefs):
    preset = render_scene([SceneObject("own:mug", "plain:green")], reliefs, 96, "x", False)
    filled = render_scene([SceneObject("own:mug", "plain", ("green",))], reliefs, 96, "x", False)
    assert np.array_equal(preset, filled)


@pytest.mark.parametrize(
    "kind, material, variants, message",
    [
        ("standalone", "velvet", (), "attribute shaggy: material velvet: there is no such material"),
        ("standalone", "", (), r"attribute shaggy: material \(empty\): there is no such material"),
        ("standalone", "striped", (), "material striped: needs 2 colours or variants, .* gives 0"),
        ("standalone", "golden:red", (), "material golden:red: needs 0 colours or variants, .* gives 1"),
        ("standalone", "plain:turquoise", (), "material plain:turquoise: does not know turquoise"),
        ("two-color", "furry", (), "material furry: needs 1 .* gives 2"),
        ("fixed-variant", "wooden", ("light-brown", "pine"), "material wooden: does not know pine"),
        ("single-color", "marble", (), "material marble: does not know red, orange"),
    ],
)
def test_attribute_that_no_material_can_show_is_refused(kind, material, variants, message):
    with pytest.raises(UserError, match=message):
        check_material(attribute(kind, material, variants), PALETTE)


def test_palette_colour_that_the_renderer_does_not_know_is_refused():
    with pytest.raises(UserError, match="attribute shaggy: material furry: does not know teal"):
        check_material(attribute("single-color", "furry"), ("red", "teal"))


@pytest.mark.parametrize(
    "kind, material, variants",
    [
        ("standalone", "furry:red", ()),
        ("fixed-variant", "glowing", ("red", "blue")),
        ("single-color", "striped:white", ()),
    ],
)
def test_other_ways_to_fill_a_materials_slots(kind, material, variants):
    check_material(attribute(kind, material, variants), PALETTE)
