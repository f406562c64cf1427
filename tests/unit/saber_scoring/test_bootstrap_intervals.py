"""Every reported mean has an interval that holds what it promises; chains are drawn whole, differences are paired."""

import numpy as np
import pytest
from bindbench import statistics
from bindbench.statistics import (
    bootstrap,
    draw_counts,
    interval,
    mean_of_all,
    mean_of_present,
    paired_difference,
    random_generator,
    stratum_means,
)


def two_sizes(per_size):
    strata = np.repeat([0, 1], per_size)
    return strata, [None] * len(strata)


def test_independent_questions_are_drawn_within_their_size():
    strata, chains = np.array([0, 0, 0, 1, 1]), [None] * 5
    counts = draw_counts(strata, chains, 200, random_generator(0, "test"))
    assert (counts[:, :3].sum(axis=1) == 3).all()
    assert (counts[:, 3:].sum(axis=1) == 2).all()
    assert counts.std(axis=0).min() > 0


def test_chains_are_drawn_whole_and_beside_the_independent_questions():
    strata = np.array([0, 1, 2, 0, 1, 2, 0])
    chains = ["a", "a", "a", "b", "b", "b", None]
    counts = draw_counts(strata, chains, 100, random_generator(0, "test"))
    assert (counts[:, 0] == counts[:, 1]).all()
    assert (counts[:, 0] == counts[:, 2]).all()
    assert (counts[:, 0] + counts[:, 3] == 2).all()
    assert (counts[:, 6] == 1).all()


def test_every_item_is_drawn_equally_often():
    strata, chains = two_sizes(20)
    counts = draw_counts(strata, chains, 4000, random_generator(1, "test"))
    assert counts.mean(axis=0) == pytest.approx(1, abs=5 / np.sqrt(4000))
    assert counts.var() == pytest.approx(19 / 20, abs=0.05)  # of a binomial with 20 draws of chance 1/20


def test_equals_a_naive_loop():
    generator = np.random.default_rng(0)
    strata = np.array([0, 0, 1, 1, 1, 0])
    chains = [None, "x", "x", None, None, "y"]
    values = generator.random((6, 2))
    weights = np.array([[1, 1], [0, 2], [1, 0.5], [3, 0], [1, 1], [1, 1]])
    sample = bootstrap(values, strata, chains, 50, seed=7, weights=weights)
    counts = draw_counts(strata, chains, 50, random_generator(7, "bootstrap"))
    for resample, drawn in enumerate(counts):
        for stratum in (0, 1):
            for column in (0, 1):
                rows = [i for i in range(6) if strata[i] == stratum for _ in range(int(drawn[i]))]
                total = sum(weights[i, column] for i in rows)
                expected = sum(weights[i, column] * values[i, column] for i in rows) / total if total else np.nan
                got = sample.resampled[resample, stratum, column]
                assert got == pytest.approx(expected, nan_ok=True)
    plain = np.average(values[strata == 1, 0], weights=weights[strata == 1, 0])
    assert sample.means[1, 0] == pytest.approx(plain)


def test_macro_mean_weighs_sizes_equally_however_many_questions_they_have():
    values = np.array([1.0, 0, 0, 0, 0, 0, 0])[:, None]
    strata = np.array([0, 1, 1, 1, 1, 1, 1])
    sample = mean_of_present(bootstrap(values, strata, [None] * 7, 100, seed=0), axis=0)
    assert sample.means[0] == 0.5


def test_mean_over_nothing_is_empty_not_zero():
    values = np.array([[1.0, np.nan, np.nan], [0.0, 1.0, np.nan]])
    sample = bootstrap(values, np.array([0, 1]), [None, None], 100, seed=0)
    by_size = interval(sample, 0.95)
    assert np.isnan(by_size.mean).tolist() == [[False, True, True], [False, False, True]]
    assert (np.isnan(by_size.low) == np.isnan(by_size.mean)).all()
    macro = mean_of_present(sample, axis=0)
    assert macro.means.tolist()[:2] == [0.5, 1.0]
    assert np.isnan(macro.means[2])
    assert np.isnan(mean_of_all(macro, axis=0).means)
    assert np.isnan(interval(macro, 0.95).high[2])


def test_same_items_same_resamples_whatever_the_values():
    strata, chains = two_sizes(30)
    values = np.random.default_rng(0).random((60, 3))
    together = bootstrap(values, strata, chains, 200, seed=3)
    alone = bootstrap(values[:, 2:], strata, chains, 200, seed=3)
    assert together.resampled[:, :, 2:] == pytest.approx(alone.resampled, abs=1e-12)
    assert np.ptp(together.resampled - bootstrap(values, strata, chains, 200, seed=4).resampled) > 0


def test_more_resamples_begin_with_the_same_ones(monkeypatch):
    monkeypatch.setattr(statistics, "BLOCK", 50)
    strata, chains = two_sizes(10)
    values = np.random.default_rng(0).random((20, 1))
    few, many = (bootstrap(values, strata, chains, n, seed=0).resampled for n in (100, 150))
    assert (few == many[:100]).all()


def test_interval_holds_the_true_mean_about_as_often_as_it_says():
    generator = np.random.default_rng(0)
    truth = np.array([0.3, 0.7])
    strata, chains = two_sizes(60)
    # Each column is an experiment of its own.
    values = (generator.random((120, 600)) < truth[strata][:, None]).astype(float)
    low, high = interval(mean_of_present(bootstrap(values, strata, chains, 500, seed=0), axis=0), 0.95)[1:]
    coverage = ((low <= truth.mean()) & (truth.mean() <= high)).mean()
    assert 0.91 < coverage < 0.98


def test_interval_of_chains_holds_the_true_mean_only_because_they_are_drawn_whole():
    generator = np.random.default_rng(1)
    n_chains, n_sizes = 50, 9
    lucky = generator.normal(0, 0.2, (n_chains, 1, 500))
    values = (generator.random((n_chains, n_sizes, 500)) < 0.5 + lucky).astype(float).reshape(-1, 500)
    strata = np.tile(np.arange(n_sizes), n_chains)
    chains = np.repeat([f"chain{i}" for i in range(n_chains)], n_sizes).tolist()

    def interval_of(chains):
        return interval(mean_of_present(bootstrap(values, strata, chains, 400, seed=0), axis=0), 0.95)

    whole, torn = interval_of(chains), interval_of([None] * len(chains))
    covered = [((e.low <= 0.5) & (e.high >= 0.5)).mean() for e in (whole, torn)]
    assert covered[0] > 0.9
    assert covered[1] < 0.85
    assert (whole.high - whole.low).mean() > 1.2 * (torn.high - torn.low).mean()


def test_paired_difference_is_narrower_for_models_that_fail_on_the_same_questions():
    generator = np.random.default_rng(2)
    difficulty = generator.random(400)
    values = np.stack([difficulty < 0.6, difficulty < 0.65, generator.permutation(difficulty) < 0.65], axis=1)
    strata, chains = two_sizes(200)
    sample = mean_of_present(bootstrap(values.astype(float), strata, chains, 1000, seed=0), axis=0)
    one, alike, unlike = (statistics.Bootstrap(sample.means[i], sample.resampled[:, i]) for i in range(3))
    paired = interval(paired_difference(alike, one), 0.95)
    unpaired = interval(paired_difference(unlike, one), 0.95)
    assert paired.mean == pytest.approx(values[:, 1].mean() - values[:, 0].mean())
    assert paired.high - paired.low < 0.6 * (unpaired.high - unpaired.low)
    assert paired.low > 0


def test_weight_zero_leaves_an_item_out_even_if_its_value_is_not_a_number():
    means = stratum_means(
        np.ones((1, 2)), np.array([[np.nan], [0.25]]), np.array([[0.0], [2.0]]), np.array([0, 0]), n_strata=1
    )
    assert means[0, 0, 0] == 0.25


def test_certain_result_has_a_point_as_interval():
    strata, chains = two_sizes(5)
    result = interval(bootstrap(np.ones((10, 1)), strata, chains, 100, seed=0), 0.95)
    assert (result.low == 1).all()
    assert (result.high == 1).all()
