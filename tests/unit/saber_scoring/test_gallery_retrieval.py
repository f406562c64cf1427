"""Sections 3 and 5.1 on retrieval and containment, as cases that can fail and against independent implementations."""

from itertools import combinations

import numpy as np
import pytest
from bindbench.saber.retrieval import (
    average_precision,
    binding_relations,
    expected_average_precision,
    hold_top_places,
    pairs_above,
    rank,
)
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

RED_CUBE, PINK_KITE, SANDY_BOOT = ("red", "cube"), ("pink", "kite"), ("sandy", "boot")
bindings = st.frozensets(
    st.sampled_from([RED_CUBE, PINK_KITE, SANDY_BOOT, ("red", "kite"), ("pink", "cube")]), min_size=1
)


def test_larger_scene_that_keeps_the_bindings_is_a_positive_whatever_its_role():
    query = frozenset({RED_CUBE, PINK_KITE})
    gallery = [query, frozenset({("pink", "cube"), ("red", "kite")}), query | {SANDY_BOOT}, frozenset({RED_CUBE})]
    (relations,) = binding_relations([query], gallery)
    assert relations.positives.tolist() == [0, 2]
    assert relations.exact.tolist() == [0]
    assert relations.superset.tolist() == [2]
    assert relations.subset.tolist() == [3]


@given(st.lists(bindings, min_size=1, max_size=6), st.lists(bindings, max_size=12))
def test_relations_are_set_inclusion(queries, gallery):
    for query, relations in zip(queries, binding_relations(queries, gallery), strict=True):
        assert relations.positives.tolist() == [i for i, c in enumerate(gallery) if query <= c]
        assert relations.exact.tolist() == [i for i, c in enumerate(gallery) if query == c]
        assert relations.superset.tolist() == [i for i, c in enumerate(gallery) if query < c]
        assert relations.subset.tolist() == [i for i, c in enumerate(gallery) if c < query]


def test_constant_embedder_gains_nothing_from_ties():
    scores = np.ones((1, 8), np.float32)
    assert average_precision(scores, [np.array([0])])[0] == 1 / 8
    assert rank(scores, np.array([0]))[0] == 8
    assert not hold_top_places(scores, np.array([[0, 1, 2, 3]]))[0]
    assert pairs_above(scores, [np.array([1, 2])], [np.array([0])])[0] == 0


def test_single_positive_gives_the_reciprocal_of_its_rank():
    scores = np.array([[0.1, 0.9, 0.5, 0.7]], np.float32)
    assert average_precision(scores, [np.array([2])])[0] == pytest.approx(1 / 3)
    assert rank(scores, np.array([2])).tolist() == [3]


def test_not_a_number_is_an_error_that_names_the_query():
    with pytest.raises(ValueError, match="query 1"):
        average_precision(np.array([[0.2, 0.1], [np.nan, 0.1]], np.float32), [np.array([0]), np.array([1])])


def test_query_without_positive_is_an_error_that_names_the_query():
    with pytest.raises(ValueError, match="query 0 has no positive"):
        average_precision(np.array([[0.2, 0.1]], np.float32), [np.array([], int)])


@given(st.integers(0, 2**32 - 1), st.integers(2, 60))
def test_equals_scikit_learn_where_nothing_ties(seed, gallery_size):
    generator = np.random.default_rng(seed)
    scores = generator.permutation(gallery_size).astype(np.float32)[None]
    positives = generator.choice(gallery_size, generator.integers(1, gallery_size), replace=False)
    relevance = np.isin(np.arange(gallery_size), positives)
    expected = average_precision_score(relevance, scores[0])
    assert average_precision(scores, [positives])[0] == pytest.approx(expected, abs=1e-12)


def worst_case_average_precision(scores, positives):
    """The list sorted with negatives first among equals, and precision read off at each positive."""
    ranked = sorted(range(len(scores)), key=lambda i: (-scores[i], i in positives))
    hits, precisions = 0, []
    for place, index in enumerate(ranked, 1):
        if index in positives:
            hits += 1
            precisions.append(hits / place)
    return np.mean(precisions)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=30), st.data())
def test_with_ties_equals_the_list_sorted_against_the_model(levels, data):
    indices = st.integers(0, len(levels) - 1)
    positives = sorted(data.draw(st.sets(indices, min_size=1)))
    scores = np.array([levels], np.float32)
    value = average_precision(scores, [np.array(positives)])[0]
    assert value == pytest.approx(worst_case_average_precision(levels, set(positives)))


@given(st.lists(st.integers(0, 6), min_size=4, max_size=30), st.data())
def test_rank_top_places_and_pairs_equal_their_definitions(levels, data):
    scores = np.array([levels], np.float32)
    own = data.draw(st.permutations(range(len(levels))))[:4]
    others = [levels[i] for i in range(len(levels)) if i not in own]
    assert rank(scores, np.array(own[:1]))[0] == sum(level >= levels[own[0]] for level in levels)
    assert hold_top_places(scores, np.array([own]))[0] == all(levels[i] > other for i in own for other in others)
    low, high = np.array(own[:2]), np.array(own[2:])
    assert pairs_above(scores, [low], [high])[0] == sum(levels[a] > levels[b] for a in low for b in high)


@given(st.integers(0, 2**32 - 1))
def test_permuting_the_gallery_changes_nothing(seed):
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, 9, (3, 20)).astype(np.float32)
    positives = [generator.choice(20, 3, replace=False) for _ in range(3)]
    own = np.array([generator.choice(20, 4, replace=False) for _ in range(3)])
    order = generator.permutation(20)
    place = np.argsort(order)
    shuffled = scores[:, order]
    assert (average_precision(scores, positives) == average_precision(shuffled, [place[p] for p in positives])).all()
    assert (rank(scores, own[:, 0]) == rank(shuffled, place[own[:, 0]])).all()
    assert (hold_top_places(scores, own) == hold_top_places(shuffled, place[own])).all()


@pytest.mark.parametrize(("n", "n_positives"), [(1, 1), (2, 1), (5, 1), (6, 2), (7, 3), (6, 6)])
def test_chance_is_the_mean_over_every_possible_ranking(n, n_positives):
    every = [
        np.mean([(hit + 1) / (place + 1) for hit, place in enumerate(places)])
        for places in combinations(range(n), n_positives)
    ]
    assert expected_average_precision(np.array([n_positives]), n)[0] == pytest.approx(np.mean(every), abs=1e-12)


def test_chance_in_the_papers_gallery_agrees_with_random_similarities():
    generator = np.random.default_rng(0)
    scores = generator.random((600, 7200), dtype=np.float32)
    for n_positives in (1, 9):
        simulated = average_precision(scores, [np.arange(n_positives)] * len(scores))
        error = 4 * simulated.std() / np.sqrt(len(simulated))
        assert abs(simulated.mean() - expected_average_precision(np.array([n_positives]), 7200)[0]) < error
