"""Four-way multiple choice (SABER, sections 3 and 5.1): is the candidate that keeps the bindings the most similar one?

Candidate 1 is always the one that keeps the query's bindings, so an argmax would silently reward a model that gives
every candidate the same similarity. Therefore only a strict comparison counts as right; ties are wrong, and counted.
"""

import numpy as np

CHANCE = 0.25


def is_correct(similarities: np.ndarray) -> np.ndarray:
    """Whether candidate 1 is strictly above the other three.

    similarities: (n_questions, 4) float32 cosines of the query with candidates 1 to 4. Returns (n_questions,) bool.
    """
    return similarities[:, 0] > similarities[:, 1:].max(axis=1)


def is_tied(similarities: np.ndarray) -> np.ndarray:
    """Whether candidate 1 equals the best of the other three: wrong, but not by preferring another.

    similarities: (n_questions, 4) float32. Returns (n_questions,) bool.
    """
    return similarities[:, 0] == similarities[:, 1:].max(axis=1)
