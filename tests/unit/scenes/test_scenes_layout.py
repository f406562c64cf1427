"""Objects are scattered: they never overlap, and the frame cuts nothing, whatever their number, aspect and seed."""

import numpy as np
from bindbench.scenes.layout import GAP, HALO, is_flipped, scatter
from hypothesis import given
from hypothesis import strategies as st

ASPECTS = st.tuples(st.floats(0.12, 1.0), st.booleans()).map(lambda a: (a[0], 1.0) if a[1] else (1.0, a[0]))


@given(st.lists(ASPECTS, min_size=1, max_size=20), st.text(max_size=12))
def test_objects_never_overlap_and_nothing_is_cut(aspects, seed):
    places = scatter(aspects, seed)
    assert len(places) == len(aspects)
    boxes = []
    for (width, height), place in zip(aspects, places, strict=True):
        halo = HALO * place.size
        left, right = place.x - width * place.size / 2, place.x + width * place.size / 2
        top, bottom = place.foot - height * place.size, place.foot
        assert left - halo >= -1e-9 and right + halo <= 1 + 1e-9
        assert top - halo >= -1e-9 and bottom + halo <= 1 + 1e-9
        boxes.append((left, right, top, bottom))
    for index, (left, right, top, bottom) in enumerate(boxes):
        for other_left, other_right, other_top, other_bottom in boxes[:index]:
            beside = max(other_left - right, left - other_right)
            above = max(other_top - bottom, top - other_bottom)
            assert max(beside, above) >= GAP - 1e-9


@given(st.integers(2, 20))
def test_seed_alone_decides(count):
    aspects = [(1.0, 0.7)] * count
    assert scatter(aspects, "7/a") == scatter(aspects, "7/a")
    assert scatter(aspects, "7/a") != scatter(aspects, "7/b")


def test_objects_are_scattered_over_the_whole_floor():
    places = [place for seed in range(200) for place in scatter([(1, 1)] * 6, str(seed))]
    x, foot = np.array([place.x for place in places]), np.array([place.foot for place in places])
    assert np.histogram(x, bins=4, range=(0.1, 0.9))[0].min() > 150
    assert np.histogram(foot, bins=4, range=(0.3, 0.95))[0].min() > 80


def test_objects_keep_a_visible_size():
    """At 512 px ten objects are at least some 70 px long, two at least 150 px."""
    for count, least in ((2, 0.30), (6, 0.18), (10, 0.13), (20, 0.08)):
        sizes = [place.size for seed in range(40) for place in scatter([(1, 1)] * count, str(seed))]
        assert min(sizes) > least, count


def test_images_are_flipped_with_the_configured_probability_by_seed_and_scene():
    for probability in (0.0, 0.3, 0.5, 1.0):
        share = np.mean([is_flipped(0, f"q{index}", probability) for index in range(2000)])
        assert abs(share - probability) <= 0.04
    draws = [[is_flipped(seed, f"q{index}", 0.5) for index in range(100)] for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
