"""Binding margins of attention tensors: by hand, by naive loops, in both directions, and where they are undefined (C.3)."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from bindbench.finetune.attention import (
    caption_margins,
    mean_by_caption,
    object_margins,
    pair_attention,
    word_pairs,
)
from bindbench.finetune.words import CaptionWords
from hypothesis import given, settings
from hypothesis import strategies as st

# "red cube and blue ball"; "cube" has two tokens (1, 2). Rows attend to columns; two heads.
FIRST_HEAD = [
    [1.00, 0.00, 0.00, 0.00, 0.00, 0.00],  # red
    [0.60, 0.40, 0.00, 0.00, 0.00, 0.00],  # cu
    [0.20, 0.30, 0.50, 0.00, 0.00, 0.00],  # be
    [0.25, 0.25, 0.25, 0.25, 0.00, 0.00],  # and
    [0.10, 0.20, 0.30, 0.10, 0.30, 0.00],  # blue
    [0.10, 0.00, 0.10, 0.10, 0.50, 0.20],  # ball
]
SECOND_HEAD = [
    [1.00, 0.00, 0.00, 0.00, 0.00, 0.00],
    [0.80, 0.20, 0.00, 0.00, 0.00, 0.00],
    [0.40, 0.10, 0.50, 0.00, 0.00, 0.00],
    [0.25, 0.25, 0.25, 0.25, 0.00, 0.00],
    [0.00, 0.10, 0.00, 0.00, 0.90, 0.00],
    [0.30, 0.10, 0.10, 0.10, 0.10, 0.30],
]
HAND_MADE = np.array([FIRST_HEAD, SECOND_HEAD])
RED, CUBE, BLUE, BALL = (0,), (1, 2), (4,), (5,)


def test_pairs_and_margins_of_a_tensor_worked_out_by_hand():
    # cube -> red, the later word's two tokens averaged: head one (0.6 + 0.2) / 2, head two (0.8 + 0.4) / 2
    assert pair_attention(HAND_MADE, CUBE, RED) == pytest.approx((0.4 + 0.6) / 2)
    # blue -> cube, the earlier word's two tokens summed: 0.2 + 0.3 and 0.1 + 0.0
    assert pair_attention(HAND_MADE, BLUE, CUBE) == pytest.approx((0.5 + 0.1) / 2)
    assert pair_attention(HAND_MADE, BALL, BLUE) == pytest.approx((0.5 + 0.1) / 2)
    assert pair_attention(HAND_MADE, BALL, RED) == pytest.approx((0.1 + 0.3) / 2)
    cube = 0.5 - 0.3  # own red before it, the other's blue behind it
    ball = 0.3 - 0.2
    uniform = np.tril(np.ones((2, 6, 6)))
    uniform /= uniform.sum(-1, keepdims=True)
    # uniform: cube -> red 1/2 and 1/3, blue -> cube 2/5; ball -> blue and ball -> red 1/6 each
    flat_cube = (1 / 2 + 1 / 3) / 2 - 2 / 5
    margins = caption_margins([HAND_MADE, uniform], [CUBE, BALL], [[RED], [BLUE]])
    assert margins.dtype == np.float64
    np.testing.assert_allclose(margins, [(cube + ball) / 2, (flat_cube + 0) / 2], atol=1e-7)


def test_exchanged_attributes_exchange_the_sign():
    right = caption_margins(HAND_MADE[None], [CUBE, BALL], [[RED], [BLUE]])
    wrong = caption_margins(HAND_MADE[None], [CUBE, BALL], [[BLUE], [RED]])
    np.testing.assert_allclose(right, -wrong, atol=1e-9)


@pytest.mark.parametrize("attribute_first", [True, False])
def test_only_the_causal_direction_is_read(attribute_first):
    # object and attribute are tokens 0 and 1 in either order; the other pair is 2 and 3
    (thing, attribute), (other, its) = ((1, 0), (3, 2)) if attribute_first else ((0, 1), (2, 3))
    attention = np.full((1, 4, 4), 1e6)  # what a causal decoder does not have
    attention[0][np.tril_indices(4)] = 0.1
    attention[0, 1, 0], attention[0, 3, 2] = 0.7, 0.5
    margins = caption_margins([attention], [(thing,), (other,)], [[(attribute,)], [(its,)]])
    np.testing.assert_allclose(margins, [((0.7 - 0.1) + (0.5 - 0.1)) / 2], atol=1e-9)


def naive_pair(attention, first, second):
    later, earlier = (first, second) if first[0] > second[0] else (second, first)
    total = 0.0
    for head in attention:
        for s in later:
            for t in earlier:
                total += head[s][t]
    return total / len(later) / len(attention)


def naive_margin(attention, objects, attributes):
    margins = []
    for thing in range(len(objects)):
        own = [naive_pair(attention, objects[thing], word) for word in attributes[thing]]
        others = [
            naive_pair(attention, objects[thing], word)
            for other in range(len(objects))
            if other != thing
            for word in attributes[other]
        ]
        if own and others:
            margins.append(sum(own) / len(own) - sum(others) / len(others))
    return sum(margins) / len(margins) if margins else np.nan


@st.composite
def captions(draw, n_tokens: int):
    """Words of one to three neighbouring tokens, in any order, up to four objects with none to two attributes."""
    cuts = draw(st.lists(st.integers(1, 3), min_size=2, max_size=9))
    starts = np.cumsum([draw(st.integers(0, 2)), *cuts])
    words = [tuple(range(a, b)) for a, b in pairwise(starts) if b <= n_tokens]
    words = draw(st.permutations(words))
    objects, attributes = [], []
    while words and len(objects) < 4:
        objects.append(words.pop())
        count = draw(st.integers(0, min(2, len(words))))
        attributes.append([words.pop() for _ in range(count)])
    return objects, attributes


@given(st.lists(captions(24), min_size=1, max_size=4), st.integers(0, 2**32 - 1), st.integers(1, 3))
@settings(max_examples=80, deadline=None)
def test_the_vectorised_margins_are_those_of_naive_loops(batch, seed, heads):
    attention = np.random.default_rng(seed).random((len(batch), heads, 24, 24))
    expected = [naive_margin(a, *words) for a, words in zip(attention, batch, strict=True)]
    alone = [caption_margins(a[None], *words)[0] for a, words in zip(attention, batch, strict=True)]
    np.testing.assert_allclose(alone, expected, atol=1e-6)
    words = [CaptionWords(tuple(objects), tuple(map(tuple, attributes))) for objects, attributes in batch]
    pairs = word_pairs(words)
    together = mean_by_caption(object_margins(torch.from_numpy(attention), pairs), pairs)
    np.testing.assert_allclose(together, expected, atol=1e-6)
    n_objects = sum(len(objects) for objects, _ in batch)
    assert len(pairs.weight) + pairs.undefined == n_objects


@given(captions(24), st.integers(0, 5), st.integers(0, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_padding_on_either_side_moves_nothing(words, left, right, seed):
    attention = torch.from_numpy(np.random.default_rng(seed).random((1, 2, 24, 24)))
    words = CaptionWords(tuple(words[0]), tuple(map(tuple, words[1])))
    bare = word_pairs([words])
    mask = torch.nn.functional.pad(torch.ones(1, 24, dtype=torch.long), (left, right))
    padded = torch.nn.functional.pad(attention, (left, right, left, right), value=9.0)
    pairs = word_pairs([words], mask)
    assert torch.equal(object_margins(padded, pairs), object_margins(attention, bare))


def test_one_object_alone_has_no_margin_and_is_counted():
    single = CaptionWords((CUBE,), ((RED,),))
    bare = CaptionWords((CUBE, BALL), ((), (BLUE,)))  # one object with an attribute: it has no others, the other no own
    whole = CaptionWords((CUBE, BALL), ((RED,), (BLUE,)))
    pairs = word_pairs([single, whole, bare])
    assert (pairs.undefined, pairs.n_captions) == (3, 3)
    attention = torch.from_numpy(HAND_MADE).expand(3, -1, -1, -1)
    margins = mean_by_caption(object_margins(attention, pairs), pairs)
    np.testing.assert_allclose(margins, [np.nan, 0.15, np.nan], atol=1e-7)
    assert np.isnan(caption_margins(HAND_MADE[None], [CUBE], [[RED]])).all()
    nothing = word_pairs([single])
    assert np.isnan(mean_by_caption(object_margins(attention[:1], nothing), nothing)).all()


def test_each_attribute_of_an_object_counts_alike():
    # cube: own red (0.5) and "and" (0.25 + 0.25 = 0.5 in both heads), others blue (0.3)
    margins = caption_margins(HAND_MADE[None], [CUBE, BALL], [[RED, (3,)], [BLUE]])
    cube = (0.5 + 0.5) / 2 - 0.3
    ball = 0.3 - (0.2 + 0.1) / 2
    np.testing.assert_allclose(margins, [(cube + ball) / 2], atol=1e-7)
