"""Large-gallery retrieval (SABER, sections 3 and 5.1): how early come the candidates that hold all query bindings?

Every query is ranked against every candidate of the benchmark by cosine similarity; the queries themselves are not in
the gallery. A candidate is a positive when its set of bindings contains the query's; a query of a nested chain
therefore has several. A tie never helps the model: among equal similarities the negatives are taken to rank first.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Relations(NamedTuple):
    """How the gallery's binding sets relate to one query's: arrays of candidate indices, ascending."""

    positives: np.ndarray  # all of the query's bindings: exact and superset together
    exact: np.ndarray  # the same set
    superset: np.ndarray  # all of the query's bindings and more
    subset: np.ndarray  # some of the query's bindings and nothing else


def binding_relations(queries: Sequence[frozenset], gallery: Sequence[frozenset]) -> list[Relations]:
    """Relations of each query to the whole gallery, by set inclusion.

    A later scene's negative can hold all bindings of an early query of its chain, so bookkeeping by chain would miss
    positives.
    """
    candidates_with: dict = {}
    for index, bindings in enumerate(gallery):
        for binding in bindings:
            candidates_with.setdefault(binding, []).append(index)
    sizes = np.array([len(bindings) for bindings in gallery], dtype=np.int64)

    def relations(query: frozenset) -> Relations:
        touched = [index for binding in query for index in candidates_with.get(binding, ())]
        candidates, shared = np.unique(np.array(touched, dtype=np.int64), return_counts=True)
        holds_all, holds_no_other = shared == len(query), shared == sizes[candidates]
        return Relations(
            positives=candidates[holds_all],
            exact=candidates[holds_all & holds_no_other],
            superset=candidates[holds_all & ~holds_no_other],
            subset=candidates[~holds_all & holds_no_other],
        )

    return [relations(query) for query in queries]


def average_precision(similarities: np.ndarray, positives: Sequence[np.ndarray]) -> np.ndarray:
    """Average precision over the full ranking, one value per query.

    The k-th best positive, with similarity s, ranks behind every negative with similarity >= s and behind k - 1
    positives: its precision is k / (k + #negatives >= s). No sorting of the gallery is needed.

    similarities: (n_queries, n_candidates) float32 cosines.
    positives: for each query the indices of its positives.
    Returns (n_queries,) float64 in (0, 1].
    Raises ValueError for a query without positives, or with a similarity that is not a number.
    """
    # A minimum over an array with a NaN is NaN: one cheap pass, where isnan would fill a second array.
    if similarities.size and np.isnan(similarities.min()):
        row = np.flatnonzero(np.isnan(similarities).any(axis=1))[0]
        raise ValueError(f"query {row} has a similarity that is not a number")
    values = np.empty(len(positives))
    for row, indices in enumerate(positives):
        if len(indices) == 0:
            raise ValueError(f"query {row} has no positive in the gallery")
        scores = similarities[row]
        best_first = np.sort(scores[indices])[::-1]
        at_least = np.array([np.count_nonzero(scores >= score) for score in best_first])
        positives_at_least = np.searchsorted(-best_first, -best_first, side="right")
        k = np.arange(1, len(indices) + 1)
        values[row] = np.mean(k / (k + at_least - positives_at_least))
    return values


def expected_average_precision(n_positives: np.ndarray, n_candidates: int) -> np.ndarray:
    """Average precision that a random ranking has on average: the chance level.

    It is the average over the places i of a positive: 1/i for itself and (i - 1)/i · (P - 1)/(n - 1) for the other
    P - 1, each of which stands before it with the chance (i - 1)/(n - 1).
    n_positives: (n_queries,) integers P >= 1. Returns (n_queries,) float64.
    """
    if n_candidates == 1:
        return np.ones(len(n_positives))
    n, harmonic = n_candidates, np.sum(1 / np.arange(1, n_candidates + 1))
    return harmonic / n + (np.asarray(n_positives) - 1) / (n * (n - 1)) * (n - harmonic)


def rank(similarities: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    """Rank (1 is best) of one candidate per query among the whole gallery, ties against it.

    similarities: (n_queries, n_candidates) float32; candidate: (n_queries,) indices. Returns (n_queries,) int64.
    """
    return np.array(
        [np.count_nonzero(scores >= scores[index]) for scores, index in zip(similarities, candidate, strict=True)]
    )


def hold_top_places(similarities: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Whether a query's own candidates hold the top places: all strictly above every other candidate (section 5.1).

    similarities: (n_queries, n_candidates) float32; candidates: (n_queries, 4) indices. Returns (n_queries,) bool.
    """
    worst = np.take_along_axis(similarities, candidates, axis=1).min(axis=1)
    held = [np.count_nonzero(scores >= score) for scores, score in zip(similarities, worst, strict=True)]
    return np.array(held) == candidates.shape[1]


def pairs_above(similarities: np.ndarray, lower: Sequence[np.ndarray], upper: Sequence[np.ndarray]) -> np.ndarray:
    """Containment (section 5.1): in how many pairs one of `lower` ranks strictly above one of `upper`.

    similarities: (n_queries, n_candidates) float32; lower, upper: candidate indices for each query.
    Returns (n_queries,) int64.
    """
    return np.array(
        [
            np.count_nonzero(scores[low][:, None] > scores[high]) if len(low) and len(high) else 0
            for scores, low, high in zip(similarities, lower, upper, strict=True)
        ],
        dtype=np.int64,
    )
