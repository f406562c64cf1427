"""Measures of a mask: their definitions in the table CROPS, on masks whose measures can be counted by hand."""

import cv2
import numpy as np
import pytest
from bindbench.people.masks import box_of_mask
from bindbench.people.quality import mask_quality
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

NOISE = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)


def rectangle(left, top, right, bottom, shape=(60, 80)):
    mask = np.zeros(shape, bool)
    mask[top:bottom, left:right] = True
    return mask


def test_a_full_box_in_the_middle():
    mask = rectangle(20, 10, 40, 40)
    measured = mask_quality(mask, NOISE, [20, 10, 20, 30])
    assert measured["area"] == pytest.approx(600 / 4800)
    assert measured["filled"] == 1
    assert measured["pieces"] == 1
    assert measured["at_border"] == 0


def test_filled_is_the_share_of_the_box_not_of_the_picture():
    mask = rectangle(20, 10, 30, 40)
    assert mask_quality(mask, NOISE, [20, 10, 20, 30])["filled"] == pytest.approx(0.5)


def test_pieces_leave_out_crumbs_under_a_hundredth():
    mask = rectangle(10, 10, 40, 40) | rectangle(50, 10, 60, 20)
    mask[50, 70:74] = True  # 4 of 1,004 pixels
    assert mask_quality(mask, NOISE, box_of_mask(mask))["pieces"] == 2
    mask[50, 66:77] = True  # 11 of 1,011
    assert mask_quality(mask, NOISE, box_of_mask(mask))["pieces"] == 3


def test_parts_that_touch_at_a_corner_are_one():
    mask = rectangle(10, 10, 20, 20) | rectangle(20, 20, 30, 30)
    assert mask_quality(mask, NOISE, box_of_mask(mask))["pieces"] == 1


@pytest.mark.parametrize(
    "box, share",
    [
        ([0, 10, 20, 30], 30 / 100),  # left
        ([0, 0, 20, 30], 50 / 100),  # left and top
        ([60, 30, 20, 30], 50 / 100),  # right and bottom
        ([0, 0, 80, 60], 1),
        ([0.4, 10, 20, 30], 30 / 100),  # data sets' boxes are not whole pixels
        ([1, 1, 20, 30], 0),
    ],
)
def test_at_border_is_the_share_of_the_outline(box, share):
    assert mask_quality(rectangle(0, 0, 80, 60), NOISE, box)["at_border"] == pytest.approx(share)


def test_sharpness_is_of_the_crop_alone_and_falls_with_blur():
    image = NOISE.copy()
    image[:, 40:] = 128
    flat = mask_quality(rectangle(50, 10, 70, 40), image, [50, 10, 20, 30])["sharpness"]
    sharp = mask_quality(rectangle(5, 10, 25, 40), image, [5, 10, 20, 30])["sharpness"]
    blurred = mask_quality(rectangle(5, 10, 25, 40), cv2.GaussianBlur(image, (0, 0), 2), [5, 10, 20, 30])["sharpness"]
    assert flat == 0
    assert sharp > 20 * blurred > 0


def test_sharpness_is_the_variance_of_the_laplacian_in_grey_levels_squared():
    image = np.repeat(np.random.default_rng(1).integers(0, 256, (12, 14, 1), np.uint8), 3, axis=2)
    grey = np.pad(image[..., 0].astype(float), 1, mode="reflect")
    laplacian = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:] - 4 * grey[1:-1, 1:-1]
    measured = mask_quality(np.ones((12, 14), bool), image, [0, 0, 14, 12])["sharpness"]
    assert measured == pytest.approx(laplacian.var())


@given(arrays(bool, (20, 30)))
def test_every_mask_has_finite_measures_within_their_ranges(mask):
    measured = mask_quality(mask, NOISE[:20, :30], box_of_mask(mask))
    assert measured["area"] == pytest.approx(mask.sum() / 600)
    assert 0 <= measured["filled"] <= 1 and 0 <= measured["at_border"] <= 1
    assert (measured["pieces"] == 0) == (not mask.any())
    assert np.isfinite(measured["sharpness"])


@given(st.tuples(*[st.floats(-200, 200)] * 2, *[st.floats(0, 200)] * 2))
def test_boxes_beyond_the_picture_do_no_harm(box):
    measured = mask_quality(rectangle(0, 0, 40, 40), NOISE, list(box))
    assert 0 <= measured["filled"] <= 1 and 0 <= measured["at_border"] <= 1
