"""Who is confused with whom (MultiBind, sections 3.3 and 3.4): from similarities to outcomes of subjects and patterns of images.

Everything works on arrays whose last axes are the four slots of an instance, and whose first axes are whatever is scored at
once: generators, instances, dimensions. `rows` marks R_d, the matched subjects with a valid specialist output; `columns`
marks V_d, the real subjects that have one. Entries of other slots are NaN, and no result depends on them.
The paper leaves choices open; M-1 to M-21 are those of papers.md A.2.2.
"""

from typing import NamedTuple

import numpy as np

OUTCOMES = ("consistent", "confused", "success", "drift", "replaced", "mixed")
PATTERNS = ("swap", "swap_partial", "swap_2cycle", "dominance", "dominance_total", "blending")


class Matrices(NamedTuple):
    """Similarities of any number of instances, of any shape (...), in one dimension each."""

    s_gen: np.ndarray  # (..., 4, 4) float64: row's generated crop with column's real crop; NaN outside R_d x V_d
    s_gt: np.ndarray  # (..., 4, 4) float64: row's real crop with column's real crop; NaN outside R_d x V_d
    rows: np.ndarray  # (..., 4) bool: the slots of R_d
    columns: np.ndarray  # (..., 4) bool: the slots of V_d

    @property
    def delta(self) -> np.ndarray:
        """(..., 4, 4) float64: the similarity that generation added (section 3.3)."""
        return self.s_gen - self.s_gt

    @property
    def others(self) -> np.ndarray:
        """(..., 4, 4) bool: the entries off the diagonal of R_d x V_d."""
        return self.rows[..., :, None] & self.columns[..., None, :] & ~np.eye(self.rows.shape[-1], dtype=bool)


class Links(NamedTuple):
    """The binary matrices of section 3.4."""

    consistent: np.ndarray  # (..., 4) bool: the diagonal of A, false outside R_d
    confused: np.ndarray  # (..., 4, 4) bool: B, false on the diagonal and outside R_d x V_d
    rows: np.ndarray  # (..., 4) bool: R_d


def matrices(s_gen: np.ndarray, s_gt: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> Matrices:
    """Puts NaN outside R_d x V_d, and drops every row of R_d that is not in V_d or has a similarity that is no number.

    A row with an undefined similarity, such as two poses without enough common joints, has no defined degree: it is an
    invalid row, never one without a link. Shapes as in Matrices.
    """
    known = np.isfinite(s_gen) & np.isfinite(s_gt)
    rows = rows & columns & (known | ~columns[..., None, :]).all(axis=-1)
    inside = rows[..., :, None] & columns[..., None, :]
    return Matrices(np.where(inside, s_gen, np.nan), np.where(inside, s_gt, np.nan), rows, columns)


def restrict(data: Matrices, subjects: np.ndarray) -> Matrices:
    """The same with rows of the given slots only, (..., 4) bool; the columns stay all valid real subjects (M-2)."""
    return matrices(data.s_gen, data.s_gt, data.rows & subjects, data.columns)


def links(data: Matrices, consistency: np.ndarray, confusion: np.ndarray) -> Links:
    """A and B: delta at or above its threshold (M-4). Thresholds: floats, or arrays that broadcast against (...)."""
    delta = data.delta
    consistency, confusion = np.asarray(consistency)[..., None], np.asarray(confusion)[..., None, None]
    # NaN outside R_d x V_d is at or above nothing.
    diagonal = np.diagonal(delta, axis1=-2, axis2=-1)
    return Links((diagonal >= consistency) & data.rows, (delta >= confusion) & data.others, data.rows)


def outcomes(found: Links) -> dict[str, np.ndarray]:
    """What became of each subject, (..., 4) bool by the names in OUTCOMES; false outside R_d.

    Success, drift, replaced and mixed are the four cells of consistent x confused, so that exactly one holds.
    """
    consistent, confused = found.consistent, found.confused.any(axis=-1)
    return {
        "consistent": consistent,
        "confused": confused,
        "success": consistent & ~confused,
        "drift": found.rows & ~consistent & ~confused,
        "replaced": ~consistent & confused,
        "mixed": consistent & confused,
    }


def patterns(found: Links) -> dict[str, np.ndarray]:
    """The patterns of each image, (...) bool by the names in PATTERNS (M-7, M-8); they do not exclude one another (M-9).

    Only images with at least two rows have patterns: see has_patterns. By their definition a swap is neither dominance nor
    blending. When every real subject has a row and every row a link, a blend is dominance too: more links than columns.
    """
    size = found.rows.shape[-1]
    combined = found.confused | (found.consistent[..., :, None] & np.eye(size, dtype=bool))
    of_row, of_column = combined.sum(axis=-1), combined.sum(axis=-2)
    any_link = found.confused.any(axis=(-2, -1))
    n_rows = found.rows.sum(axis=-1)
    at_most_one = (of_column <= 1).all(axis=-1) & any_link
    return {
        "swap": at_most_one & ((of_row == 1) | ~found.rows).all(axis=-1),
        "swap_partial": at_most_one & (of_row <= 1).all(axis=-1),
        "swap_2cycle": (found.confused & np.swapaxes(found.confused, -1, -2)).any(axis=(-2, -1)),
        "dominance": (of_column >= 2).any(axis=-1),
        "dominance_total": (n_rows >= 2) & (of_column == n_rows[..., None]).any(axis=-1),
        "blending": (of_row >= 2).any(axis=-1),
    }


def has_patterns(data: Matrices) -> np.ndarray:
    """(...) bool: at least two rows, and so two columns: the images that image-level rates are taken over (M-10)."""
    return data.rows.sum(axis=-1) >= 2


def has_one_row(data: Matrices) -> np.ndarray:
    """(...) bool: one row and at least two columns, where of all patterns only blending is defined (M-10)."""
    return (data.rows.sum(axis=-1) == 1) & (data.columns.sum(axis=-1) >= 2)


def js_shift(data: Matrices, temperature: float) -> np.ndarray:
    """Jensen-Shannon divergence of each row's softmax over S_gen from that over S_gt, (..., 4) in nats (section 3.4, M-12).

    Divided by log(2) it lies in [0, 1]. NaN outside R_d, and where V_d has one subject only: it would be 0 by definition.
    """
    generated, real = (_softmax(part / temperature) for part in (data.s_gen, data.s_gt))
    middle = (generated + real) / 2
    shift = (_relative_entropy(generated, middle) + _relative_entropy(real, middle)) / 2
    defined = data.rows & (data.columns.sum(axis=-1) >= 2)[..., None]
    return np.where(defined, np.clip(shift, 0, np.log(2)), np.nan)  # rounding may leave the range by an ulp


def _softmax(logits: np.ndarray) -> np.ndarray:
    """Over the last axis; NaN has the probability 0, and a row of NaN only zeros."""
    present = np.where(np.isnan(logits), -np.inf, logits)
    largest = present.max(axis=-1, keepdims=True)
    weights = np.exp(present - np.where(np.isfinite(largest), largest, 0))
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total > 0, total, 1)


def _relative_entropy(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    ratio = np.divide(first, second, out=np.ones_like(first), where=first > 0)
    return (first * np.log(ratio)).sum(axis=-1)


def mean_deltas(data: Matrices) -> dict[str, np.ndarray]:
    """Of each row delta on the diagonal, and mean and largest delta off it (M-19): (..., 4); NaN where there is none."""
    delta, others = data.delta, data.others
    count = others.sum(axis=-1)
    total = np.where(others, delta, 0).sum(axis=-1)
    largest = np.where(others, delta, -np.inf).max(axis=-1)
    return {
        "diagonal": np.where(data.rows, np.diagonal(delta, axis1=-2, axis2=-1), np.nan),
        "off_diagonal_mean": np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0),
        "off_diagonal_max": np.where(count > 0, largest, np.nan),
    }


def largest_other(data: Matrices) -> tuple[np.ndarray, np.ndarray]:
    """Of each row the real subject that is most similar to its own: similarity and slot number, (..., 4) (M-21).

    NaN and -1 where there is no other.
    """
    values = np.where(data.others, data.s_gt, -np.inf)
    exists = data.others.any(axis=-1)
    return np.where(exists, values.max(axis=-1), np.nan), np.where(exists, values.argmax(axis=-1), -1)


def undiagnosable(data: Matrices, limit: float) -> np.ndarray:
    """(..., 4) bool: rows whose real subject is more similar than `limit` to another one: delta to it cannot rise (M-21)."""
    return largest_other(data)[0] > limit
