"""Intervals for means against scipy, and their coverage."""

import math

import numpy as np
import pytest
from scipy import stats

import truerank as tr
from truerank.arrays import Floats
from truerank.evaluation.attainable_values import attainable
from truerank.evaluation.intervals import Interval, skewed_interval
from truerank.evaluation.moments import Moments
from truerank.papers.krichene_rendle_2020.experiment import embedded

LEVELS = [0.5, 0.95, 0.999]


@pytest.mark.parametrize("hits", [0, 1, 17, 40])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_means_of_0_and_1_have_wilsons_interval(hits: int, level: float) -> None:
    found = tr.estimate(tr.Ranks.from_ranks([1] * hits + [9] * (40 - hits), n=20), "recall@5")
    theirs = stats.binomtest(hits, 40).proportion_ci(level, method="wilson")
    assert found.binary
    assert found.confidence_interval(level) == pytest.approx((theirs.low, theirs.high), rel=1e-10, abs=1e-12)


def test_binary_estimates_merge() -> None:
    ranks = tr.Ranks.from_ranks([1, 9, 9, 1, 9], n=20)
    assert tr.estimate(ranks[:2], "recall@5") + tr.estimate(ranks[2:], "recall@5") == tr.estimate(ranks, "recall@5")
    assert not (tr.estimate(ranks[:2], "rr") + tr.estimate(ranks[3:4], "rr")).binary


def test_users_with_several_instances_are_the_units() -> None:
    rng = np.random.default_rng(0)
    ranks = tr.Ranks.from_ranks(rng.integers(1, 20, 60), n=30, ids=np.arange(60))
    doubled = tr.Ranks.concatenate([ranks, ranks])
    once, twice = tr.estimate(ranks, "rr"), tr.estimate(doubled, "rr")
    assert twice.standard_error == pytest.approx(once.standard_error, rel=1e-12)
    assert (twice.n, twice.n_users) == (120, 60)
    assert twice.confidence_interval() == pytest.approx(once.confidence_interval(), rel=1e-12)
    assert "120 instances of 60 users: errors are clustered by user" in twice.notes
    with pytest.raises(tr.InputError, match="users with several instances do not add up"):
        twice + once


def test_bootstrap_interval_is_near_that_of_scipy() -> None:
    ranks = tr.Ranks.from_ranks([1] * 5 + list(range(2, 60)), n=100)
    values = tr.values(ranks, "rr")
    ours = tr.bootstrap_interval(ranks, "rr", 0.9, replicates=40_000, rng=0)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=40_000, confidence_level=0.9, rng=1).confidence_interval
    assert ours == pytest.approx((theirs.low, theirs.high), rel=0.02)
    doubled = tr.Ranks(above=np.tile(ranks.above, 2), n_candidates=100, ids=np.tile(np.arange(len(ranks)), 2))
    twice = tr.bootstrap_interval(doubled, "rr", 0.9, replicates=40_000, rng=2)
    assert twice == pytest.approx((theirs.low, theirs.high), rel=0.02)


def test_nothing_to_resample() -> None:
    assert all(map(math.isnan, tr.bootstrap_interval(tr.Ranks.from_ranks([[]], n=3), "rr")))
    assert tr.bootstrap_interval(tr.Ranks.from_ranks([9] * 30, n=9), "recall@1", rng=0) == (0.0, 0.0)
    with pytest.raises(tr.InputError, match="`level`"):
        tr.bootstrap_interval(tr.Ranks.from_ranks([1, 2], n=3), "rr", 95)


@pytest.mark.parametrize("level", LEVELS)
def test_interval_of_symmetric_values_is_students(level: float) -> None:
    values = np.array([1.0, 3, 5, 7, 9])
    expected = stats.t.interval(level, values.size - 1, values.mean(), stats.sem(values))
    np.testing.assert_allclose(skewed_interval(Moments.of(values), level), expected, rtol=1e-12)


def transformed(mean: float, values: Floats, weights: Floats) -> float:
    """Hall's transformation of the t statistic of weighted values, by its definition."""
    n, centre = weights.sum(), np.average(values, weights=weights)
    square, cube = (np.average((values - centre) ** power, weights=weights) for power in (2, 3))
    t, g = (centre - mean) / np.sqrt(square / (n - 1)), cube / square**1.5 / np.sqrt(n)
    return float(t + g * t**2 / 3 + g**2 * t**3 / 27 + g / 6)


@pytest.mark.parametrize("level", LEVELS)
def test_interval_of_skewed_values_solves_halls_transformation(level: float) -> None:
    values = 1 / np.array([1.0, 3, 3, 8, 20, 4] * 7)
    ends = skewed_interval(Moments.of(values), level)
    quantile = stats.t.ppf(0.5 + level / 2, values.size - 1)
    found = [transformed(end, values, np.ones(values.size)) for end in ends]
    np.testing.assert_allclose(found, [quantile, -quantile], rtol=1e-9)


@pytest.mark.parametrize("level", LEVELS)
def test_each_end_counts_a_tenth_of_the_most_extreme_instance(level: float) -> None:
    ranks = tr.Ranks.from_ranks([1, 3, 3, 8, 20, 4] * 7, n=50)
    ends = tr.estimate(ranks, "rr").confidence_interval(level)
    weights = np.append(np.ones(len(ranks)), 0.1)
    quantile = stats.t.ppf(0.5 + level / 2, weights.sum() - 1)
    for end, extreme, expected in zip(ends, (1 / 50, 1.0), (quantile, -quantile), strict=True):
        assert transformed(end, np.append(tr.values(ranks, "rr"), extreme), weights) == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["rr", "ndcg@3", "auc", "recall@2", "gndcg", "dcg(exp)@3", "mean-rank", "marp@1,2"])
def test_attainable_values_are_those_of_the_best_and_the_worst_order(metric: str) -> None:
    """All ways to place two relevant items, one of them graded higher, among five candidates."""
    places = [[a, b] for a in range(1, 6) for b in range(1, 6) if a != b]
    every = tr.Ranks.from_ranks(places, n=5, grades=[[1.0, 3.0]] * len(places))
    values = tr.values(every, metric)
    for at in range(0, len(every), 3):
        assert attainable(every[[at]], tr.metric(metric)) == pytest.approx((values.min(), values.max()), abs=1e-15)


def test_attainable_values_are_not_always_known() -> None:
    ranks = tr.Ranks.from_ranks([1, 2], n=9)
    own = tr.metric(lambda rank, i, n_relevant, n: 1.0 / rank)
    assert attainable(ranks, own) is None
    assert attainable(tr.UniformSampling(4).draw(ranks, rng=0), tr.metric("ap~bv(0.1)")) is None
    cut = tr.read_lists({"ann": ["a", "b"], "bob": ["b", "c"]}, {"ann": ["a"], "bob": ["d"]}, depth=2)
    assert tr.estimate(cut, "ndcg@2").attainable == (0.0, 1.0)


def test_intervals_stay_within_the_values_that_a_metric_can_have() -> None:
    ranks = {"A": tr.Ranks.from_ranks([1, 3, 1], n=9), "B": tr.Ranks.from_ranks([8, 9, 2], n=9)}
    for metric, least, most in (("rr", 1 / 9, 1.0), ("ndcg@5", 0.0, 1.0), ("mean-rank", 1.0, 9.0)):
        for one in ranks.values():
            low, high = tr.estimate(one, metric).confidence_interval(0.99)
            assert least <= low < high <= most
        low, high = tr.compare(ranks, metric)["A", "B"].confidence_interval(0.999)
        assert (low, high) == (least - most, most - least)


def test_equal_values_are_no_certainty() -> None:
    low, high = tr.estimate(tr.Ranks.from_ranks([2] * 20, n=9), "rr").confidence_interval()
    assert 1 / 9 < low < 0.5 < high < 1.0


def test_estimates_merge_what_they_can_attain() -> None:
    ranks = tr.Ranks.from_ranks([1, 2, 4, 8], n=[10, 20, 30, 40])
    merged = tr.estimate(ranks[:1], "rr") + tr.estimate(ranks[1:], "rr") + tr.estimate(ranks[:0], "rr")
    assert merged.attainable == tr.estimate(ranks, "rr").attainable == Interval(1 / 40, 1.0)
    np.testing.assert_allclose(merged.confidence_interval(), tr.estimate(ranks, "rr").confidence_interval())


def test_rare_hits_on_top_are_covered() -> None:
    """One user in 86 has the item on top, which is a third of the mean, and 31 % of the samples have no such user."""
    population = tr.values(embedded().ranks["X"], "rr")
    rng, ends = np.random.default_rng(1), Interval(0.0, 1.0)
    samples = [Moments.of(population[rng.integers(population.size, size=100)]) for _ in range(3_000)]

    def missed(intervals: list[Interval]) -> float:
        return float(np.mean([not low <= population.mean() <= high for low, high in intervals]))

    assert missed([Interval(own.reach(0.95, -1), own.reach(0.95, 1)) for own in samples]) > 0.13
    assert missed([skewed_interval(own, 0.95) for own in samples]) > 0.08
    assert 0.04 < missed([skewed_interval(own, 0.95, ends) for own in samples]) < 0.07
