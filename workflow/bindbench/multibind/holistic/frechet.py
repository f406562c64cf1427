"""The Fréchet distance of two sets of features, as FID takes it (Heusel et al. 2017): each as a Gaussian.

    |mean - mean'|^2 + tr C + tr C' - 2 tr sqrt(C C'),  C the covariance, divided by n - 1

Of n images with d features each covariance is A^T A, A the centred features by sqrt(n - 1); the last trace is then the sum of the
singular values of A A'^T. That is exact for fewer images than features, where C has no full rank, and needs no root of C.
"""

import numpy as np


def frechet_distance(first: np.ndarray, second: np.ndarray, counts: np.ndarray | None = None) -> float:
    """first, second: (n, d) features of paired images, at least two. counts: (n,) how often each pair is drawn; None: once.

    NaN where fewer than two are drawn.
    """
    counts = np.ones(len(first)) if counts is None else counts
    if counts.sum() < 2:
        return float("nan")
    (mean, parts), (other_mean, other_parts) = (_gaussian(values, counts) for values in (first, second))
    shared = np.linalg.svd(parts @ other_parts.T, compute_uv=False).sum()
    spread = (parts**2).sum() + (other_parts**2).sum() - 2 * shared
    return float(max(0.0, ((mean - other_mean) ** 2).sum() + spread))


def _gaussian(features: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(d,) mean, and (m, d) rows A with A^T A the covariance, m no more than n and d. float64."""
    drawn = counts > 0
    values, counts = np.asarray(features, np.float64)[drawn], counts[drawn]
    mean = counts @ values / counts.sum()
    parts = (values - mean) * np.sqrt(counts / (counts.sum() - 1))[:, None]
    return mean, np.linalg.qr(parts, mode="r") if len(parts) > parts.shape[1] else parts
