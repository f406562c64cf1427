"""Run lengths survive the way there and back, and no string can make pycocotools write outside of a picture."""

import numpy as np
import pytest
from bindbench.people.masks import (
    BrokenMask,
    box_iou,
    box_of_counts,
    box_of_mask,
    counts_of_polygons,
    counts_of_runs,
    decode_mask,
    encode_mask,
    mask_iou,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from pycocotools import mask as coco

MASKS = arrays(bool, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=40))
UNHURRIED = settings(deadline=None)
# The 64 characters that numbers are written in, to get past the first check.
ALPHABET = "".join(chr(code) for code in range(48, 112))


@UNHURRIED
@given(MASKS)
def test_a_mask_survives_its_run_lengths(mask):
    assert (decode_mask(encode_mask(mask), *mask.shape) == mask).all()


@UNHURRIED
@given(MASKS)
def test_run_lengths_are_those_of_the_coco_tools(mask):
    counts = encode_mask(mask)
    encoded = {"size": list(mask.shape), "counts": counts.encode()}
    assert coco.area(encoded) == mask.sum() and coco.decode(encoded).tolist() == mask.tolist()


@UNHURRIED
@given(MASKS, st.integers(-3, 3), st.integers(-3, 3))
def test_run_lengths_of_another_size_are_refused(mask, higher, wider):
    height, width = mask.shape[0] + higher, mask.shape[1] + wider
    if height <= 0 or width <= 0 or height * width == mask.size:
        return
    with pytest.raises(BrokenMask, match=f"another size than {width} x {height}"):
        decode_mask(encode_mask(mask), height, width)


@UNHURRIED
@given(st.text(st.sampled_from(ALPHABET), max_size=40) | st.text(max_size=20))
def test_random_text_is_either_a_mask_of_the_size_or_refused(counts):
    try:
        mask = decode_mask(counts, 7, 9)
    except BrokenMask:
        return
    assert mask.shape == (7, 9) and (decode_mask(encode_mask(mask), 7, 9) == mask).all()


@UNHURRIED
@given(MASKS, st.data())
def test_a_damaged_string_is_either_a_mask_of_the_size_or_refused(mask, data):
    counts = encode_mask(mask)
    place = data.draw(st.integers(0, len(counts) - 1))
    damaged = counts[:place] + data.draw(st.sampled_from(["", *ALPHABET, "\0", "é", "\ud800"])) + counts[place + 1 :]
    try:
        found = decode_mask(damaged, *mask.shape)
    except BrokenMask:
        return
    assert found.shape == mask.shape


@UNHURRIED
@given(st.lists(st.integers(-(2**40), 2**40), max_size=8))
def test_numbers_that_pycocotools_would_cut_off_are_refused(numbers):
    """pycocotools keeps 32 bits of a run and shifts signs beyond them, so a sum that looks right can lie."""
    text = "".join(_written(number) for number in numbers)
    try:
        mask = decode_mask(text, 5, 4)
    except BrokenMask:
        return
    assert mask.shape == (5, 4)
    assert coco.area({"size": [5, 4], "counts": text.encode()}) == mask.sum()


def _written(number: int) -> str:
    """COCO's signed groups of five bits, as long as the number needs."""
    text = ""
    while True:
        group, number = number & 0x1F, number >> 5
        more = number != (-1 if group & 0x10 else 0)
        text += chr(48 + group + (0x20 if more else 0))
        if not more:
            return text


def test_a_number_of_seven_groups_is_refused_even_if_the_sum_is_right():
    # Twenty pixels, of which the last run is written as its difference, -4, with sign bits in a seventh group.
    runs = _written(5) + _written(5) + _written(9)
    assert decode_mask(runs + _written(1 - 5), 5, 4).sum() == 6
    seven = "".join(chr(48 + ((-4 >> (5 * k)) & 0x1F) + (0x20 if k < 6 else 0)) for k in range(7))
    with pytest.raises(BrokenMask):
        decode_mask(runs + seven, 5, 4)


@pytest.mark.parametrize("counts", ["", "0", "?", "_", "~", "\0", "é", "1\0", None, b"1", 3])
def test_what_is_no_run_length_is_refused(counts):
    with pytest.raises(BrokenMask):
        decode_mask(counts, 2, 3)


@UNHURRIED
@given(MASKS)
def test_plain_run_lengths_make_the_same_mask(mask):
    flat = mask.T.ravel()
    changes = np.flatnonzero(np.diff(flat)) + 1
    runs = np.diff([0, *changes, len(flat)]).tolist()
    runs = [0, *runs] if flat[0] else runs
    assert (decode_mask(counts_of_runs(runs, *mask.shape), *mask.shape) == mask).all()


@pytest.mark.parametrize("runs", [[], [5], [7], [7, -1], [3.0, 3.0], ["6"], [True] * 6, [2**40], [None]])
def test_plain_run_lengths_that_do_not_fill_the_picture_are_refused(runs):
    with pytest.raises(BrokenMask):
        counts_of_runs(runs, 2, 3)


def test_a_polygon_covers_what_it_encloses():
    mask = decode_mask(counts_of_polygons([[2, 1, 6, 1, 6, 4, 2, 4]], 8, 10), 8, 10)
    assert mask[1:4, 2:6].all() and mask.sum() == 12


def test_polygons_of_one_person_are_joined():
    pieces = [[0, 0, 3, 0, 3, 3, 0, 3], [6, 5, 9, 5, 9, 7, 6, 7]]
    joined = decode_mask(counts_of_polygons(pieces, 8, 10), 8, 10)
    apart = [decode_mask(counts_of_polygons([piece], 8, 10), 8, 10) for piece in pieces]
    assert (joined == (apart[0] | apart[1])).all() and apart[0].any() and apart[1].any()


@UNHURRIED
@given(st.lists(st.floats(-12, 24), min_size=6, max_size=20).filter(lambda corners: not len(corners) % 2))
def test_a_polygon_over_the_edge_stays_inside(corners):
    mask = decode_mask(counts_of_polygons([corners], 12, 12), 12, 12)
    assert mask.shape == (12, 12)


@pytest.mark.parametrize(
    "polygons",
    [
        *(
            [],
            [[]],
            [[1, 1, 2, 2]],
            [[1, 1, 2, 2, 3]],
            [[1, 2, 3, 4, 5, 6], [1, 2]],
            [1, 2, 3, 4, 5, 6],
            "polygon",
            [None],
        ),
        *(
            [[1, 2, 3, "x", 5, 6]],
            [[1, 2, 3, None, 5, 6]],
            [[1, 2, 3, float("nan"), 5, 6]],
            [[1, 2, 3, float("inf"), 5, 6]],
        ),
        *([[1, 2, 3, 1e9, 5, 6]], [[1, 2, 3, 10**400, 5, 6]], [[1, 2, 3, -1e300, 5, 6]], [[[1, 2], [3, 4], [5]] * 2]),
    ],
)
def test_what_is_no_polygon_is_refused(polygons):
    """A corner at a thousand million would have pycocotools walk there, and fill the memory on the way."""
    with pytest.raises(BrokenMask):
        counts_of_polygons(polygons, 20, 20)


@UNHURRIED
@given(MASKS)
def test_the_box_is_the_smallest_that_holds_the_mask(mask):
    x, y, width, height = (int(value) for value in box_of_mask(mask))
    inside = mask[y : y + height, x : x + width]
    assert inside.sum() == mask.sum()
    assert not mask.any() or (inside[0].any() and inside[-1].any() and inside[:, 0].any() and inside[:, -1].any())
    assert mask.any() or [x, y, width, height] == [0, 0, 0, 0]
    assert box_of_counts(encode_mask(mask), *mask.shape) == box_of_mask(mask)


@UNHURRIED
@given(MASKS)
def test_overlap_of_masks_is_one_with_itself_and_none_with_the_rest(mask):
    assert mask_iou(mask, mask) == (1.0 if mask.any() else 0.0)
    assert mask_iou(mask, ~mask) == 0.0
    assert mask_iou(mask, np.ones_like(mask)) == pytest.approx(mask.mean())


BOXES = st.tuples(*[st.integers(0, 12)] * 4).map(list)


@UNHURRIED
@given(BOXES, BOXES)
def test_overlap_of_boxes_is_that_of_their_pixels(first, second):
    drawn = []
    for x, y, width, height in (first, second):
        drawn.append(np.zeros((24, 24), bool))
        drawn[-1][y : y + height, x : x + width] = True
    assert box_iou(first, second) == pytest.approx(mask_iou(*drawn))
