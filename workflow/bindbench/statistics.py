"""Means over questions with bootstrap intervals, and paired differences between models.

The paper averages over questions of one size N, then over N, then over pairings; here every such mean comes with a
percentile interval. Questions are resampled as they were drawn: independent ones within their N, nested chains as a
whole, because a chain's questions share their bindings and a lucky chain is lucky at every N. All models share
the resamples, so that the difference between two models is a paired one.

Resampling a mean needs only how often each item was drawn: all resamples of all models are one matrix product.
"""

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .files import sha256

# Resamples drawn at once; fixed, since it is part of the sequence of random numbers.
BLOCK = 2000


class Estimate(NamedTuple):
    """A mean and the bounds of its interval; NaN where there is nothing to average."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Bootstrap(NamedTuple):
    """Some means of the data, and the same means of every resample; NaN where there is nothing to average."""

    means: np.ndarray  # any shape, float64
    resampled: np.ndarray  # (n_resamples, *shape of means) float64


def random_generator(seed: int, name: str) -> np.random.Generator:
    """A generator of its own for each purpose: the config's seed and a fixed name."""
    return np.random.Generator(np.random.PCG64([seed, int(sha256(name)[:16], 16)]))


def draw_counts(
    strata: np.ndarray, chains: Sequence[str | None], n_resamples: int, generator: np.random.Generator
) -> np.ndarray:
    """How often each item is drawn in each resample.

    strata: (n_items,) integers. chains: for each item the id of its chain, or None for an item drawn by itself.
    Items without a chain are drawn with replacement within their stratum; chains among each other, one draw for all
    strata. Returns (n_resamples, n_items) float64 of whole numbers.
    """
    counts = np.zeros((n_resamples, len(strata)))
    alone = np.array([chain is None for chain in chains], dtype=bool)
    for stratum in np.unique(strata):
        members = np.flatnonzero(alone & (strata == stratum))
        if len(members):
            counts[:, members] = _multinomial(len(members), n_resamples, generator)
    in_chain = np.flatnonzero(~alone)
    if len(in_chain):
        names, chain_of = np.unique([chains[item] for item in in_chain], return_inverse=True)
        counts[:, in_chain] = _multinomial(len(names), n_resamples, generator)[:, chain_of]
    return counts


def _multinomial(n: int, n_resamples: int, generator: np.random.Generator) -> np.ndarray:
    """(n_resamples, n) counts of n draws with replacement from n things."""
    drawn = generator.integers(0, n, (n_resamples, n)) + n * np.arange(n_resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * n_resamples).reshape(n_resamples, n)


def stratum_means(
    counts: np.ndarray, values: np.ndarray, weights: np.ndarray, strata: np.ndarray, n_strata: int
) -> np.ndarray:
    """Weighted mean of each stratum under each resample: sum(count · weight · value) / sum(count · weight).

    counts: (n_resamples, n_items). values, weights: (n_items, n_columns) float64; an item of weight 0 is left out, and
    its value may be NaN. strata: (n_items,) integers below n_strata.
    Returns (n_resamples, n_strata, n_columns); NaN where a stratum has no weight.
    """
    weighted = np.where(weights > 0, weights * values, 0.0)
    means = np.full((len(counts), n_strata, values.shape[1]), np.nan)
    for stratum in range(n_strata):
        items = strata == stratum
        totals = counts[:, items] @ weights[items]
        np.divide(counts[:, items] @ weighted[items], totals, out=means[:, stratum], where=totals > 0)
    return means


def bootstrap(
    values: np.ndarray,
    strata: np.ndarray,
    chains: Sequence[str | None],
    n_resamples: int,
    seed: int,
    weights: np.ndarray | None = None,
) -> Bootstrap:
    """Means by stratum; the same resamples for the same items, whatever the values.

    values: (n_items, ...) float64, such as one column per model and pairing; NaN where an item has no value.
    strata: (n_items,) integers 0, 1, ...; chains: ids or None; weights: like values, 1 where not given.
    Returns means of shape (n_strata, ...).
    """
    weights = np.isfinite(values).astype(float) if weights is None else weights
    n_strata, shape = int(strata.max()) + 1, values.shape[1:]
    values, weights = (array.reshape(len(array), -1) for array in (values, weights))
    generator = random_generator(seed, "bootstrap")
    resampled = np.empty((n_resamples, n_strata, values.shape[1]))
    for start in range(0, n_resamples, BLOCK):
        part = resampled[start : start + BLOCK]
        counts = draw_counts(strata, chains, len(part), generator)
        part[:] = stratum_means(counts, values, weights, strata, n_strata)
    means = stratum_means(np.ones((1, len(strata))), values, weights, strata, n_strata)[0]
    return Bootstrap(means.reshape(n_strata, *shape), resampled.reshape(n_resamples, n_strata, *shape))


def mean_of_present(sample: Bootstrap, axis: int) -> Bootstrap:
    """Mean over the entries of one axis that have a value, such as the N that have questions; NaN where none has."""
    return Bootstrap(_nanmean(sample.means, axis), _nanmean(sample.resampled, axis + 1 if axis >= 0 else axis))


def mean_of_all(sample: Bootstrap, axis: int) -> Bootstrap:
    """Mean over one axis, such as over the pairings; NaN unless every entry has a value."""
    return Bootstrap(sample.means.mean(axis), sample.resampled.mean(axis + 1 if axis >= 0 else axis))


def paired_difference(first: Bootstrap, second: Bootstrap) -> Bootstrap:
    """First minus second, resample by resample: both must come from the same items."""
    return Bootstrap(first.means - second.means, first.resampled - second.resampled)


def interval(sample: Bootstrap, confidence: float) -> Estimate:
    """Means with their percentile intervals, which hold `confidence` of the resamples."""
    tail = (1 - confidence) / 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column without any value stays NaN
        quantile = np.nanquantile if np.isnan(sample.resampled).any() else np.quantile  # the first is slow
        low, high = quantile(sample.resampled, [tail, 1 - tail], axis=0)
    empty = np.isnan(sample.means)
    return Estimate(sample.means, np.where(empty, np.nan, low), np.where(empty, np.nan, high))


def _nanmean(values: np.ndarray, axis: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # "mean of empty slice": NaN is what we want there
        return np.nanmean(values, axis=axis)


def percent(share: float) -> str:
    """Percent with two decimals; empty for NaN."""
    return "" if math.isnan(share) else f"{100 * share:.2f}"


def mean_interval(values: np.ndarray, n_resamples: int, confidence: float, generator: np.random.Generator) -> Estimate:
    """Mean of many items that take few values, with the percentile interval of its bootstrap.

    values: (n_items,) float64. How often each distinct value is drawn is one multinomial draw, so the cost does not depend on
    the number of items. NaN without items.
    """
    if not len(values):
        return Estimate(np.array(np.nan), np.array(np.nan), np.array(np.nan))
    distinct, counts = np.unique(values, return_counts=True)
    drawn = generator.multinomial(len(values), counts / len(values), n_resamples)
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn @ distinct / len(values), [tail, 1 - tail])
    return Estimate(np.asarray(values.mean()), low, high)
