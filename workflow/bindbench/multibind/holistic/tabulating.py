"""What the tables say of whole images: each measure's mean over images, and FID, with bootstrap intervals over instances.

Generators are compared on the instances of which all those that decide on the compared subjects have an image (M-2); beside it
stand all images of their own.

FID is of all images together. Its interval resamples pairs of a generated image and its photograph: a resample holds only two
thirds of the images, and its FID is too large for that reason alone. So the interval is the spread of the resamples about their
own mean, laid around the figure; it says how much the choice of images matters, not how far FID itself is biased by their number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from ...config.multibind_scoring import Scoring
from ...statistics import Bootstrap, Estimate, bootstrap, draw_counts, interval, paired_difference, random_generator
from .frechet import frechet_distance
from .reading import Measured, read_measures

SUBSETS = ("compared", "own")
HEADER = (
    *("generator", "subset", "measure", "model", "value", "low", "high"),
    *("images", "same_images", "without_image", "note", "fingerprint"),
)


@dataclass(frozen=True)
class Summary:
    """estimates, images: by subset and name of the measure, of shape (n_generators,).

    images: with a figure in the subset. samples: by name, of the compared images; compared: which those are, (n_instances,)
    bool. without: (n_generators,) instances that the generator has no image of.
    """

    measures: list[Measured]
    estimates: dict[str, dict[str, Estimate]]
    images: dict[str, dict[str, np.ndarray]]
    samples: dict[str, Bootstrap]
    compared: dict[str, np.ndarray]
    without: np.ndarray

    def cells(self, subset: str, generator: int) -> list[str]:
        """Figure, low and high of every measure in turn, six decimals, empty where there is none."""
        found = self.estimates[subset]
        return [number(part[generator]) for measure in self.measures for part in found[measure.name]]

    def note(self, measure: Measured, subset: str, generator: int) -> str:
        """What must be known of a figure, or why there is none."""
        images = int(self.images[subset][measure.name][generator])
        if measure.reason or measure.features is None:
            return measure.reason or ("" if images else "no image to measure")
        if images < 2:
            return "needs two images at least"
        return rank_note(images, measure.features[0].shape[2])

    def notes(self, subset: str, generator: int) -> str:
        """Of all measures, in one line."""
        notes = {measure.name: self.note(measure, subset, generator) for measure in self.measures}
        return "; ".join(f"{name}: {note}" for name, note in notes.items() if note)


def rank_note(images: int, features: int) -> str:
    """FID is the larger the fewer images; with no more than there are features its covariances have no full rank."""
    if images > features:
        return ""
    return (
        f"biased upwards: {images:,} images for {features:,} features, so that the covariances have no full rank; compare at "
        "equal numbers of images only"
    )


def summarise(
    paths: Sequence[Path],
    generators: Sequence[str],
    deciders: Sequence[str],
    instances: Sequence[str],
    settings: Scoring,
) -> Summary:
    """paths: tables HOLISTIC; none: nothing is measured. generators, instances: of the evaluation. deciders: the generators of
    whose images the compared ones are. Raises as `read_measures`.
    """
    measures, without = read_measures(paths, generators, instances)
    summary = Summary(measures, *({subset: {} for subset in SUBSETS} for _ in range(2)), {}, {}, without)
    decide = [place for place, name in enumerate(generators) if name in deciders]
    for measure in measures:
        own = np.isfinite(measure.values)
        compared = summary.compared[measure.name] = own[:, decide].all(axis=1)
        for subset, shown in zip(SUBSETS, (own & compared[:, None], own), strict=True):
            if subset == SUBSETS[0]:
                sample = summary.samples[measure.name] = _sample(measure, shown, settings)
            elif not compared.all():
                sample = _sample(measure, shown, settings)
            estimate = interval(sample, settings.confidence)
            if measure.measure == "fid":  # the spread about a small one may reach below zero
                estimate = Estimate(*(np.maximum(part, 0) for part in estimate))
            summary.estimates[subset][measure.name] = estimate
            summary.images[subset][measure.name] = shown.sum(axis=0)
    return summary


def rows_of(summary: Summary, generators: Sequence[str]) -> list[list]:
    """Rows of multibind_holistic.csv, below HEADER: of each generator, subset of images and measure.

    same_images: the row is of all compared images and of no other, as the others that say so.
    """
    rows = []
    for place, name in enumerate(generators):
        for subset in SUBSETS:
            for measure in summary.measures:
                images = int(summary.images[subset][measure.name][place])
                compared = summary.compared[measure.name]
                same = int(summary.images[SUBSETS[0]][measure.name][place]) == images == int(compared.sum()) > 0
                estimate = summary.estimates[subset][measure.name]
                rows.append(
                    [
                        *(name, subset, measure.measure, measure.model, *(number(part[place]) for part in estimate)),
                        *(images, str(same).lower(), "" if measure.reason else int(summary.without[place])),
                        *(summary.note(measure, subset, place), measure.fingerprint),
                    ]
                )
    return rows


def difference_rows(summary: Summary, generators: Sequence[str], settings: Scoring) -> list[list[str]]:
    """Measure, generator, other generator, their difference with low and high: of the compared images that both have."""
    rows = []
    for measure in summary.measures:
        own = np.isfinite(measure.values) & summary.compared[measure.name][:, None]
        for pair in combinations(range(len(generators)), 2):
            common = own[:, pair].all(axis=1, keepdims=True)
            if not common.any():
                continue
            sample, places = summary.samples[measure.name], pair
            if (common != own[:, pair]).any():
                sample, places = _sample(_only(measure, pair), np.repeat(common, 2, axis=1), settings), (0, 1)
            first, second = (Bootstrap(sample.means[g], sample.resampled[:, g]) for g in places)
            estimate = interval(paired_difference(first, second), settings.confidence)
            if np.isfinite(estimate.mean):
                names = [generators[place] for place in pair]
                rows.append([measure.name, *names, *(number(float(part)) for part in estimate)])
    return rows


def _only(measure: Measured, pair: tuple[int, int]) -> Measured:
    """The same of two generators."""
    features = measure.features and tuple(part[:, pair] for part in measure.features)
    return replace(measure, values=measure.values[:, pair], features=features)


def number(value: float) -> str:
    """Six decimals; empty for NaN."""
    return "" if np.isnan(value) else f"{value:.6f}"


def _sample(measure: Measured, shown: np.ndarray, settings: Scoring) -> Bootstrap:
    """Of shape (n_generators,). shown: (n_instances, n_generators) bool: the images of the subset."""
    n_instances, n_generators = shown.shape
    if measure.reason:
        return Bootstrap(np.full(n_generators, np.nan), np.full((1, n_generators), np.nan))
    strata, alone = np.zeros(n_instances, dtype=int), [None] * n_instances
    if measure.features is None:
        weights = shown.astype(float)
        sample = bootstrap(measure.values, strata, alone, settings.bootstrap_rounds, settings.seed, weights)
        return Bootstrap(sample.means[0], sample.resampled[:, 0])
    # The same random numbers as for all rates, so that these are the first of the same resamples.
    counts = draw_counts(strata, alone, settings.fid_rounds, random_generator(settings.seed, "bootstrap"))
    counts = np.concatenate([np.ones((1, n_instances)), counts])
    made, true = measure.features
    values = np.array(
        [
            [frechet_distance(made[:, g], true[:, g], drawn * shown[:, g]) for g in range(n_generators)]
            for drawn in counts
        ]
    )
    known = np.isfinite(values[1:])
    centre = np.where(known, values[1:], 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return Bootstrap(values[0], values[0] + values[1:] - centre)
