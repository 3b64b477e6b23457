"""Intervals for means against scipy, and their coverage."""

import math

import numpy as np
import pytest
from scipy import stats

import truerank as tr


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
