"""Scenes of the nano embedder's pretraining: held-out combinations stay out, labels say what is where, shards are stable."""

import numpy as np
import pytest
from bindbench.errors import UserError
from bindbench.nano.combinations import any_held_out, held_out, is_held_out
from bindbench.nano.scenes import COVERED, SIZES, draw_scene, render_nano_scenes, token_labels
from bindbench.tables import NANO_SCENES, read_table
from bindbench.vocabulary import Vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st


def test_a_tenth_of_all_combinations_is_held_out(vocabulary):
    share = len(held_out(vocabulary)) / (len(vocabulary.objects) * len(vocabulary.attributes))
    assert 0.09 < share < 0.11
    by_object = [sum(is_held_out(a, thing) for a in vocabulary.attributes) for thing in vocabulary.objects]
    assert max(by_object) < len(vocabulary.attributes) / 2, "every object is learnt with most attributes"


def test_a_longer_vocabulary_holds_out_the_same_and_more(vocabulary, small):
    assert held_out(small) == {
        pair for pair in held_out(vocabulary) if pair[0] in small.attributes and pair[1] in small.objects
    }


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 5), number=st.integers(0, 10**6))
def test_no_scene_holds_a_held_out_combination(vocabulary, seed, number):
    scene = draw_scene(vocabulary, seed, number)
    attributes, objects = zip(*scene.bindings, strict=True)
    assert not any_held_out(scene.bindings)
    assert len(set(attributes)) == len(attributes) and len(set(objects)) == len(objects)
    assert len(scene.bindings) in SIZES
    for looks in scene.looks:
        words = [
            words
            for attribute, slots in zip(attributes, looks, strict=True)
            for values, _, words in vocabulary.realisations[attribute]
            if values == slots
        ]
        assert len(words) == len(attributes), "every look is one of the attribute's"
        assert sum(map(len, words)) == len(frozenset().union(*words)), "no colour stands for two attributes"


def test_a_scene_depends_on_its_number_alone(vocabulary):
    alone = draw_scene(vocabulary, 0, 7)
    assert [draw_scene(vocabulary, 0, number) for number in (3, 7, 9)][1] == alone
    assert draw_scene(vocabulary, 1, 7) != alone


def test_labels_are_the_objects_that_cover_the_tokens():
    owners = np.full((320, 320), -1, np.int8)
    owners[:64, :64] = 0  # the first token, whole
    owners[64:128, :20] = 1  # 20 of 64 columns of the sixth
    owners[128:192, 64:68] = 1  # too little
    owners[256:320, 256:290], owners[256:320, 290:320] = 0, 1  # two of them: the larger
    labels = token_labels(owners, 2).reshape(5, 5)
    assert labels[0, 0] == 0 and labels[1, 0] == 1 and labels[2, 1] == -1 and labels[4, 4] == 0
    assert (labels >= 0).sum() == 3
    assert 4 / 64 < COVERED < 20 / 64


def test_a_part_is_the_same_pixels_again_and_two_views_differ(small, parts, tmp_path):
    images = np.load(parts["pixels"][0], mmap_mode="r")
    assert images.shape == (12, 2, 160, 160, 3) and images.dtype == np.uint8
    rows = read_table(NANO_SCENES, parts["tables"][0]).to_pylist()
    assert [row["scene"] for row in rows] == list(range(12))
    render_nano_scenes(small, parts["reliefs"][0], 0, range(3, 5), tmp_path / "a.npy", tmp_path / "a.parquet")
    again = np.load(tmp_path / "a.npy")
    assert np.array_equal(again, images[3:5])
    assert read_table(NANO_SCENES, tmp_path / "a.parquet").to_pylist() == rows[3:5]
    assert all((first != second).any() for first, second in images)


def test_tokens_show_their_objects(small, parts):
    """The floor is grey: tokens of a red object are redder than those of none."""
    images, rows = np.load(parts["pixels"][0]), read_table(NANO_SCENES, parts["tables"][0]).to_pylist()
    inside, outside = [], []
    for row, views in zip(rows, images, strict=True):
        for labels, image in zip(row["tokens"], views.astype(float), strict=True):
            colour = image.reshape(5, 32, 5, 32, 3).mean(axis=(1, 3)).reshape(25, 3)
            saturation = colour.max(axis=1) - colour.min(axis=1)
            labels = np.array(labels)
            shown = [row["attributes"][label] in ("red", "golden") if label >= 0 else False for label in labels]
            inside += saturation[shown].tolist()
            outside += saturation[labels < 0].tolist()
    assert len(inside) > 10 and np.median(inside) > 5 * np.median(outside)


def test_a_short_vocabulary_has_smaller_scenes(small):
    sizes = [len(draw_scene(small, 0, number).bindings) for number in range(200)]
    assert max(sizes) == len(small.attributes) < max(SIZES)


def test_a_vocabulary_that_is_held_out_whole_is_refused_not_searched_forever(small):
    pair = next(iter(held_out(small)))
    one = Vocabulary({pair[1]: small.objects[pair[1]]}, {pair[0]: small.attributes[pair[0]]}, small.palette)
    with pytest.raises(UserError, match="no scene"):
        draw_scene(one, 0, 0, n_objects=1)
