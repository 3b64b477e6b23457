"""All pairs at once, against the law of the studentised range, a bootstrap of users, and enumeration."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

import truerank as tr
from tests.arrays import Floats
from truerank.evaluation.joint_tests import Maxima, RandomisedTukey, TukeyOutcome, unseen_error
from truerank.evaluation.paired_tests import LikelihoodTest, Pair, PairedSample

REPLICATES = 50_000


def errors_of(values: Floats) -> Floats:
    """Return the standard errors of all pairs' mean differences."""
    gaps = values[:, :, None] - values[:, None, :]
    return gaps.std(axis=0, ddof=1) / len(values) ** 0.5


@pytest.mark.parametrize("count", [2, 3, 10, 50])
def test_independent_recommenders_have_the_studentised_range(count: int) -> None:
    found = 1 - Maxima.of(2**0.5 * (1 - np.eye(count))).level(0.95)
    quantile = stats.norm.isf(found / 2)
    reached = stats.studentized_range.sf(2**0.5 * quantile, count, np.inf) if count > 2 else found
    assert reached == pytest.approx(0.05, abs=5 * (0.05 * 0.95 / REPLICATES) ** 0.5)


def test_dependent_recommenders_are_as_in_a_bootstrap_of_users() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 1)) + rng.normal(size=(400, 5)) * [1.0, 0.1, 0.1, 0.1, 2.0]
    errors = errors_of(values)
    weights = rng.normal(size=(20_000, 400))
    means = weights @ (values - values.mean(axis=0)) / 400
    one, other = np.triu_indices(5, 1)
    largest = np.abs(means[:, one] - means[:, other]) / errors[one, other]
    quantile = stats.norm.isf((1 - Maxima.of(errors).level(0.95)) / 2)
    assert (largest.max(axis=1) > quantile).mean() == pytest.approx(0.05, abs=5 * (0.05 * 0.95 / 20_000) ** 0.5 + 0.002)


def test_pairs_without_a_difference_seen_count_as_those_of_independent_recommenders() -> None:
    nothing_seen = Maxima.of(np.zeros((4, 4)), unseen_error(1.0, 30))
    independent = Maxima.of(1 - np.eye(4))
    assert nothing_seen.level(0.95) == pytest.approx(independent.level(0.95), abs=5e-4)
    assert Maxima.of(np.zeros((4, 4)), np.inf).level(0.95) == pytest.approx(independent.level(0.95), abs=5e-4)


def test_adjusted_p_values_lie_between_the_plain_ones_and_those_of_bonferroni() -> None:
    rng = np.random.default_rng(1)
    found = Maxima.of(errors_of(rng.normal(size=(200, 6))))
    plain = np.append(10 ** rng.uniform(-12, 0, size=500), [0.0, 1.0])
    adjusted = found.adjusted(plain)
    assert (adjusted >= plain).all()
    assert (adjusted <= np.minimum(15 * plain, 1.0)).all()
    assert np.isnan(found.adjusted(np.array([np.nan]))[0])


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_intervals_exclude_zero_where_adjusted_p_values_find_a_difference(level: float) -> None:
    found = Maxima.of(errors_of(np.random.default_rng(2).normal(size=(200, 6))))
    own = 1 - found.level(level)
    below, above = found.adjusted(np.array([own * (1 - 1e-9), own * (1 + 1e-3)]))
    assert below <= 1 - level + 1e-12 < above + 1e-4


def test_levels_and_p_values_are_those_of_the_resampled_maxima() -> None:
    """Few maxima, so that each share can be counted; the observed comparison is one more of them."""
    largest = np.sort(np.abs(np.random.default_rng(3).normal(size=999)) + 0.5)
    found = Maxima(largest, n_pairs=40)
    for p in (1e-9, 1e-3, 0.02, 0.3, 1.0):
        statistic = stats.norm.isf(p / 2)
        share = (sum(each >= statistic - 1e-9 for each in largest) + 1) / 1_000
        assert found.adjusted(np.array([p])) == pytest.approx([min(max(share, p), 40 * p, 1.0)], rel=1e-12)
    # an error of 5 % leaves 50 of the 1,000 beyond
    assert 1 - found.level(0.95) == pytest.approx(2 * stats.norm.sf(largest[949]), rel=1e-9)
    assert found.level(0.9999) == pytest.approx(1 - 1e-4 / 40, rel=1e-12)
    assert Maxima(largest / 100, n_pairs=40).level(0.95) == pytest.approx(0.95)


def test_what_was_not_seen_is_two_thirds_of_an_instance() -> None:
    """Its square is that of the standard error of 2/3 of an instance with the largest difference among all."""
    assert unseen_error(3.0, 10) == pytest.approx(((2 / 3) * 3.0**2) ** 0.5 / 10)
    assert unseen_error(3.0, 0) == pytest.approx((2 / 3) ** 0.5 * 3.0)


def joint_p_values(sample: PairedSample, pairs: list[Pair], replicates: int) -> dict[Pair, float]:
    outcomes = RandomisedTukey(LikelihoodTest(), replicates, 0).outcomes(sample, pairs)
    found = {}
    for pair, each in zip(pairs, outcomes, strict=True):
        assert isinstance(each, TukeyOutcome)
        found[pair] = each.joint_p_value
    return found


def tukey(values: Floats, replicates: int = 20_000) -> dict[Pair, float]:
    sample = PairedSample.of(values, largest=np.full(values.shape[1], 1.0))
    pairs = [(one, other) for other in range(values.shape[1]) for one in range(other + 1, values.shape[1])]
    return joint_p_values(sample, pairs, replicates)


def test_tukey_is_the_share_of_all_orders_within_users() -> None:
    values = np.array([[0.9, 0.1, 0.3], [0.8, 0.2, 0.1], [0.4, 0.4, 0.0], [1.0, 0.5, 0.9]])
    ranges = []
    for orders in product(permutations(range(3)), repeat=4):
        means = np.mean([row[list(order)] for row, order in zip(values, orders, strict=True)], axis=0)
        ranges.append(np.ptp(means))
    means = values.mean(axis=0)
    for (one, other), found in tukey(values).items():
        share = (np.array(ranges) >= abs(means[one] - means[other]) - 1e-12).mean()
        assert found == pytest.approx(share, abs=5 * (share * (1 - share) / 20_000) ** 0.5 + 1e-4)


def test_tukey_of_normal_values_is_that_of_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(3)
    values = 0.5 + 0.1 * rng.normal(size=(300, 1)) + 0.05 * rng.normal(size=(300, 4)) + [0, 0, 0.005, 0.012]
    rest = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    square = np.square(rest).sum() / (299 * 3)
    means = values.mean(axis=0)
    for (one, other), found in tukey(values, 5_000).items():
        wanted = stats.studentized_range.sf(abs(means[one] - means[other]) / (square / 300) ** 0.5, 4, 299 * 3)
        assert found == pytest.approx(wanted, abs=0.02)


def test_tukey_keeps_metrics_apart() -> None:
    rng = np.random.default_rng(4)
    values = np.hstack([rng.random((50, 2)), 100 * rng.random((50, 2))])
    both = joint_p_values(PairedSample.of(values), [(1, 0), (3, 2)], 2_000)
    alone = joint_p_values(PairedSample.of(values[:, :2]), [(1, 0)], 2_000)
    assert both[1, 0] == pytest.approx(alone[1, 0], abs=0.06)


def test_tukey_refuses_fitted_metrics() -> None:
    sample = PairedSample(np.zeros((4, 2)), np.ones(4), hidden=np.array([0.1, 0.0]))
    with pytest.raises(tr.InputError, match="fitted metrics"):
        RandomisedTukey(LikelihoodTest()).outcomes(sample, [(0, 1)])


def test_tukey_refuses_sampled_ranks_and_several_runs() -> None:
    exact = {name: tr.Ranks.from_ranks([1, 2, place], n=30) for name, place in (("A", 3), ("B", 4), ("C", 5))}
    sampled = {name: tr.UniformSampling(9).draw(ranks, rng=0) for name, ranks in exact.items()}
    repeated = {name: [ranks, ranks] for name, ranks in exact.items()}
    for given in (sampled, repeated):
        with pytest.raises(tr.InputError, match="needs one run of exact ranks for each recommender"):
            tr.compare(given, "ap", adjustment="tukey")


def test_bounds_may_depend_on_each_other_in_any_way() -> None:
    """Nothing is resampled then: errors are shared as by Bonferroni's method."""
    rng = np.random.default_rng(5)
    exact = {name: tr.Ranks.from_ranks(rng.integers(1, 30, 60), n=30) for name in "ABC"}
    sampled = {name: tr.UniformSampling(25).draw(ranks, rng=0) for name, ranks in exact.items()}
    for found in tr.compare(sampled, "recall@10", adjustment="max-t"):
        assert found.bounded
        assert found.adjusted_level == pytest.approx(1 - 0.05 / 3)
        assert found.adjusted_p_value == pytest.approx(min(3 * found.p_value, 1.0))
