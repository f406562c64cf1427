"""Section 3: a question is right when the binding-preserving candidate ranks first; ties are wrong and counted."""

import numpy as np
from bindbench.saber.multiple_choice import is_correct, is_tied
from hypothesis import given
from hypothesis import strategies as st


def test_right_only_strictly_above_all_three():
    four = np.array([[0.9, 0.1, 0.2, 0.8], [0.9, 0.1, 0.9, 0.2], [0.5, 0.1, 0.2, 0.6]], np.float32)
    assert is_correct(four).tolist() == [True, False, False]
    assert is_tied(four).tolist() == [False, True, False]


def test_constant_embedder_is_always_wrong_and_always_tied():
    four = np.ones((5, 4), np.float32)
    assert not is_correct(four).any()
    assert is_tied(four).all()


def test_tie_between_wrong_candidates_does_not_matter_when_candidate_1_is_above():
    four = np.array([[0.9, 0.5, 0.5, 0.5]], np.float32)
    assert is_correct(four)[0]
    assert not is_tied(four)[0]


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=20))
def test_equals_the_sentence_written_out(rows):
    four = np.array(rows, np.float32)
    for row, correct, tied in zip(rows, is_correct(four), is_tied(four), strict=True):
        assert correct == all(row[0] > other for other in row[1:])
        assert tied == (row[0] == max(row[1:]))
