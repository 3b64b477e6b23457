"""Intervals for means against scipy, and their coverage."""

import math

import numpy as np
import pytest
from scipy import special, stats

import truerank as tr
from tests.arrays import Floats
from tests.reference import likelihood_statistic, lower_end, with_the_unseen
from truerank.evaluation import intervals
from truerank.evaluation.intervals import (
    Interval,
    Moments,
    Units,
    attainable,
    attainable_of_items,
    student_interval,
    student_quantile,
)
from truerank.evaluation.paired_tests import Bootstrap, LikelihoodTest, PairedSample, Randomisation, StudentTest
from truerank.evaluation.per_instance import item_terms
from truerank.papers.krichene_rendle_2020.movielens import embedded

LEVELS = [0.5, 0.95, 0.999]


@pytest.mark.parametrize("df", [1 / 3, 2 / 3, 1, 1.5, 2, 9.5, 39.9, 40.1, 1_000, 40_000 - 1 / 3, 1e6, 1e9])
@pytest.mark.parametrize("level", [1e-3, 0.1, 0.5, 0.9, 0.95, 0.99])
def test_students_quantile_is_that_of_scipy(df: float, level: float) -> None:
    assert student_quantile(df, level) == pytest.approx(special.stdtrit(df, 0.5 + level / 2), rel=2e-13)


@pytest.mark.parametrize("df", [2 / 3, 3, 500.5])
def test_students_quantile_far_out(df: float) -> None:
    """There SciPy's argument, close to 1, has few digits; its probability of lower values has all of them."""
    found = student_quantile(df, 1 - 2**-30)
    assert 2 * special.stdtr(df, -found) == pytest.approx(2**-30, rel=1e-6)


def test_ends_that_are_not_found_in_time_are_possible_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "_STEPS", 2)
    ranks = tr.Ranks.from_ranks([1] * 3 + [50] * 40, n=50)
    low, high = tr.estimate(ranks, "rr").confidence_interval(0.95)
    assert 1 / 50 <= low <= tr.values(ranks, "rr").mean() <= high <= 1


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("ranks", [[1, 3, 3, 8, 20, 4] * 7, [9] * 30, [1, 50], [1] * 3 + [50] * 40], ids=len)
def test_interval_is_the_set_of_likely_means_with_two_thirds_of_an_extreme_instance(
    ranks: list[int], level: float
) -> None:
    found = tr.Ranks.from_ranks(ranks, n=50)
    values = tr.values(found, "rr")
    low, high = tr.estimate(found, "rr").confidence_interval(level)
    assert low == pytest.approx(lower_end(values, 1 / 50, level), abs=1e-6)
    assert high == pytest.approx(-lower_end(-values, -1.0, level), abs=1e-6)


def users_of_several_sizes(n: int) -> tuple[Floats, Floats]:
    """Return the sums and sizes of units; values lie between -1 and 1."""
    rng = np.random.default_rng(n)
    sizes = rng.integers(1, 30, n).astype(float)
    return rng.beta(0.5, 1.5, n) * sizes * rng.choice([-1.0, 1.0], n, p=[0.2, 0.8]), sizes


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", [2, 5, 60])
def test_intervals_and_p_values_of_units_of_several_sizes(n: int, level: float) -> None:
    sums, sizes = users_of_several_sizes(n)
    units = Units.of(sums, sizes)
    assert units.mean == pytest.approx(sums.sum() / sizes.sum(), rel=1e-14)
    assert (units.n, units.total) == (n, sizes.sum())
    low, high = units.interval(level, Interval(-1.0, 1.0))
    assert low == pytest.approx(lower_end(sums, -1.0, level, sizes), abs=1e-6)
    assert high == pytest.approx(-lower_end(-sums, -1.0, level, sizes), abs=1e-6)
    for m in ((low - 1) / 2, low, (low + units.mean) / 2):
        statistic = likelihood_statistic(m, with_the_unseen(sums, sizes, -1.0))
        assert units.p_above(m, -1.0) == pytest.approx(stats.t.sf(statistic, n - 1 / 3), rel=1e-4)


@pytest.mark.parametrize("level", LEVELS)
def test_what_the_spread_does_not_show_is_added_as_an_independent_error(level: float) -> None:
    sums, sizes = users_of_several_sizes(60)
    units, quantile, ends = Units.of(sums, sizes), stats.t.ppf(0.5 + level / 2, 60 - 1 / 3), Interval(-1.0, 1.0)
    narrow, wide = units.interval(level, ends), units.interval(level, ends, hidden=0.03)
    assert units.mean - wide.low == pytest.approx(math.hypot(units.mean - narrow.low, quantile * 0.03), rel=1e-9)
    assert wide.high - units.mean == pytest.approx(math.hypot(narrow.high - units.mean, quantile * 0.03), rel=1e-9)
    # the error is a part of the distance from the mean, at which the statistic without it is larger
    for m in (wide.low, units.mean - 0.1):
        plain = likelihood_statistic(m, with_the_unseen(sums, sizes, -1.0))
        statistic = 1 / math.hypot(1 / plain, 0.03 / (units.mean - m))
        assert units.p_above(m, -1.0, 0.03) == pytest.approx(stats.t.sf(statistic, 60 - 1 / 3), rel=1e-4)
        assert Units.of(-sums, sizes).p_below(-m, 1.0, 0.03) == pytest.approx(units.p_above(m, -1.0, 0.03), rel=1e-12)


def test_units_of_clusters_without_undefined_values() -> None:
    values, sizes = np.array([1.0, np.nan, 2.0, 4.0, 5.0]), np.array([1.0, 9.0, 2.0, 4.0, 1.0])
    clusters = np.array([7, 7, 3, 7, 3])
    for found, sums, totals in (
        (Units.of(values, sizes, clusters), [5.0, 7.0], [5.0, 3.0]),
        (Units.of(values, np.ones(5), clusters), [5.0, 7.0], [2.0, 2.0]),
        (Units.of(values, sizes), [1.0, 2.0, 4.0, 5.0], [1.0, 2.0, 4.0, 1.0]),
        (Units.of(values), [1.0, 2.0, 4.0, 5.0], [1.0] * 4),
    ):
        assert found.n == len(sums)
        assert sorted(zip(found.sums.tolist(), found.sizes.tolist(), strict=True)) == [*zip(sums, totals, strict=True)]


@pytest.mark.parametrize("cut", [0, 1, 7, 40])
def test_moments_of_parts_are_those_of_the_whole(cut: int) -> None:
    rng = np.random.default_rng(8)
    weights = rng.integers(1, 9, 40).astype(float)
    values = rng.exponential(size=40) * weights

    def moments(part: slice) -> Moments:
        v, w = values[part], weights[part]
        mean = v.sum() / w.sum() if v.size else math.nan
        return Moments.of(mean, v - mean * w, w)

    found, mean = moments(slice(cut)) + moments(slice(cut, None)), values.sum() / weights.sum()
    gaps = values - mean * weights
    assert (found.n, found.weight) == (40, weights.sum())
    assert found.mean == pytest.approx(mean, rel=1e-12)
    assert (found.ww, found.ee) == pytest.approx((weights @ weights, gaps @ gaps), rel=1e-12)
    assert found.ew == pytest.approx(gaps @ weights, rel=1e-9)
    assert found.standard_error == pytest.approx(np.std(gaps, ddof=1) * 40**0.5 / weights.sum(), rel=1e-12)


def test_with_the_likelihood_of_a_normal_sample_the_statistic_is_students() -> None:
    """The statistic of the definition is Student's t to second order: nearly symmetric values, many of them."""
    values = np.random.default_rng(0).uniform(0.4, 0.6, 20_000)
    expected = stats.t.interval(0.95, values.size - 1, values.mean(), stats.sem(values))
    # the extreme unit moves each end by two thirds of its distance over the number of units, and widens the spread
    np.testing.assert_allclose(Units.of(values).interval(0.95, Interval(0.4, 0.6)), expected, atol=1e-5)


@pytest.mark.parametrize("n", [5, 20, 100, 1_000])
def test_false_passes_of_any_share_of_losers_are_at_most_five_in_a_hundred(n: int) -> None:
    """All numbers of losers out of n, for every share: the chance that the lower end lies above the true mean."""
    losers = np.arange(n + 1)
    ends = np.array([Units.of(-np.repeat([1.0, 0.0], [k, n - k])).low(0.9, -1.0) for k in losers[: n // 2 + 1]])
    shares = np.linspace(0.001, 0.4, 400)
    passed = [float(stats.binom.pmf(losers[: ends.size][ends > -share], n, share).sum()) for share in shares]
    assert max(passed) < 0.053


@pytest.mark.parametrize("n", [10, 100, 1_000])
def test_intervals_of_shares_cover_them(n: int) -> None:
    """Against all outcomes of the binomial distribution; Wilson's interval falls to 83 % for small shares."""
    hits = np.arange(n + 1)
    ends = np.array([Units.of(np.repeat([1.0, 0.0], [k, n - k])).interval(0.95, Interval(0.0, 1.0)) for k in hits])
    for share in np.concatenate([np.geomspace(1e-4, 0.1, 60), np.linspace(0.1, 0.5, 40)]):
        covered = (ends[:, 0] <= share) & (share <= ends[:, 1])
        assert stats.binom.pmf(hits[covered], n, share).sum() > 0.945


def test_units_merge_to_the_same_bins() -> None:
    rng = np.random.default_rng(3)
    values, sizes, ends = rng.normal(0, 0.2, 5_000), rng.integers(1, 4, 5_000).astype(float), Interval(-1.5, 1.5)
    whole = Units.of(values, sizes)
    parts = [Units.of(values[at::3], sizes[at::3]) for at in range(3)]
    merged = parts[2] + (parts[0] + parts[1])
    assert merged.n == whole.n == 5_000
    np.testing.assert_allclose(merged.interval(0.95, ends), whole.interval(0.95, ends), rtol=1e-12)
    assert whole.p_above(0.0, -1.0) == pytest.approx(merged.p_above(0.0, -1.0), rel=1e-9)
    assert Units.of(rng.normal(0, 0.2, 10**5)).counts.size < 30_000


def test_bins_hardly_change_an_interval() -> None:
    values = np.random.default_rng(4).beta(0.3, 2, 400)
    low, high = Units.of(values).interval(0.95, Interval(0.0, 1.0))
    assert (low, high) == pytest.approx((lower_end(values, 0.0, 0.95), -lower_end(-values, -1.0, 0.95)), abs=1e-7)


def test_rounding_does_not_divide_bins() -> None:
    around = 0.5 * (1 + np.array([-1e-12, 0.0, 1e-12]))
    assert Units.of(around).counts.tolist() == [3.0]
    assert (Units.of(around[:1]) + Units.of(around[1:])).counts.tolist() == [3.0]


def test_units_that_all_have_the_least_value_up_to_rounding() -> None:
    sizes = np.array([3.0, 1.0, 4.0, 5.0, 2.0])
    units = Units.of(sizes * 0.1, sizes)
    assert units.low(0.95, 0.1) == 0.1
    assert units.p_above(0.1, 0.1) == 0.5


def test_p_value_and_interval_agree() -> None:
    units = Units.of(np.random.default_rng(5).normal(0.05, 0.3, 80).clip(-1, 1))
    low, high = units.interval(0.9, Interval(-1.0, 1.0))
    assert units.p_above(low, -1.0) == pytest.approx(0.05, rel=1e-6)
    assert units.p_below(high, 1.0) == pytest.approx(0.05, rel=1e-6)
    assert units.p_above(-1.0, -1.0) == 0.0


@pytest.mark.parametrize("sizes", ["equal", "geometric", "heavy"])
def test_users_with_several_instances_may_all_lose_everything(sizes: str) -> None:
    """A fifth of the users lose all of their instances: the lower end must not lie above the true mean."""
    rng, missed = np.random.default_rng(6), 0
    for _ in range(500):
        n = {"equal": np.full(60, 20), "geometric": rng.geometric(0.2, 60), "heavy": rng.zipf(1.8, 60).clip(1, 99)}[
            sizes
        ]
        users = np.repeat(np.arange(60), n)
        lost = (rng.random(60) < 0.2)[users]
        missed += Units.of(-lost.astype(float), clusters=users).low(0.9, -1.0) > -0.2
    assert missed / 500 < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 500)


def test_corrected_metrics_are_clustered() -> None:
    """60 users with 20 sessions each, all alike within a user."""
    rng, covered = np.random.default_rng(7), 0
    for seed in range(40):
        ranks = np.repeat(np.where(rng.random(60) < 0.3, 1, 1_000), 20)
        users = np.repeat(np.arange(60), 20)
        sampled = tr.UniformSampling(1_000).draw(tr.Ranks.from_ranks(ranks, n=2_001, ids=users), rng=seed)
        low, high = tr.estimate(sampled, "ndcg@10~bv(0.1)").confidence_interval()
        covered += low <= 0.3 <= high
    assert covered >= 36


def test_two_units_are_enough_and_one_is_not() -> None:
    two = np.array([[0.3, 0.1], [0.9, 0.4]])
    gaps = two[:, 0] - two[:, 1]
    sample, alone = PairedSample.of(two), PairedSample.of(two[:1])
    theirs, pair = stats.ttest_1samp(gaps, 0.0), (0, 1)
    interval = theirs.confidence_interval(0.9)
    assert student_interval(gaps.mean(), stats.sem(gaps), 2, 0.9) == pytest.approx((interval.low, interval.high))
    assert math.isnan(student_interval(0.5, 0.1, 1, 0.9).low)
    assert sample.standard_error(pair) == Moments.of(gaps.mean(), gaps - gaps.mean()).standard_error
    assert sample.standard_error(pair) == pytest.approx(stats.sem(gaps), rel=1e-12)
    assert math.isnan(alone.standard_error(pair))
    assert math.isnan(Moments.of(0.2, np.zeros(1)).standard_error)
    found: dict[str, tuple[float, float]] = {}
    for test in (StudentTest(), LikelihoodTest(), Bootstrap(100, rng=0), Randomisation(100, rng=0)):
        p_values = [test.outcomes(each, [pair])[0].p_value for each in (sample, alone)]
        found[type(test).__name__] = (p_values[0], p_values[1])
    assert found["StudentTest"][0] == pytest.approx(theirs.pvalue)
    assert found["Randomisation"][0] == 0.5  # two of four exchanges
    assert all(0 < p < 1 and math.isnan(none) for p, none in found.values())


def test_no_difference_on_five_users_is_no_evidence() -> None:
    same = tr.Ranks.from_ranks([3] * 5, n=100)
    found = tr.compare({"old": same, "new": same}, "recall@10")["new", "old"]
    assert found.p_value == 1.0
    assert found.confidence_interval() == pytest.approx((-0.573, 0.573), abs=1e-3)
    assert not found.not_worse(0.4)
    two = {"old": tr.Ranks.from_ranks([50, 50], n=100), "new": tr.Ranks.from_ranks([1, 1], n=100)}
    assert tr.compare(two, "recall@10")["new", "old"].p_value == pytest.approx(0.57, abs=0.01)


def test_groups_of_items_are_within_what_they_can_add() -> None:
    """One of two relevant items of each user is rare, and never found."""
    truth = {user: ["common", "rare"] for user in range(100)}
    ranks = tr.read_lists({user: ["common"] for user in truth}, truth, depth=10)
    groups = tr.Groups.named(np.array(["common", "rare"]), ["common", "rare"], of_items=True)
    table = tr.evaluate(ranks, ["recall@10", "rr@10"], by=groups)
    low, high = table["recommender", "recall@10", "rare"].confidence_interval()
    assert low == 0.0
    assert high == pytest.approx(stats.binomtest(0, 100).proportion_ci(method="exact").high, rel=0.05)
    assert table["recommender", "rr@10", "common"].mean == 2.0
    assert table["recommender", "rr@10", "common"].confidence_interval().high == 2.0
    assert "rr@10 of a group is its share of rr@10 over its share of the items: it can exceed 1" in table.notes
    halves = tr.compare({"A": ranks, "B": ranks}, "recall@10", by=groups)["B", "A", "recall@10", "rare"]
    assert halves.confidence_interval() == pytest.approx((-high, high), rel=0.2)


def test_users_with_several_instances_are_the_units() -> None:
    rng = np.random.default_rng(0)
    ranks = tr.Ranks.from_ranks(rng.integers(1, 20, 60), n=30, ids=np.arange(60))
    doubled = tr.Ranks.concatenate([ranks, ranks])
    once, twice = tr.estimate(ranks, "rr"), tr.estimate(doubled, "rr")
    assert twice.standard_error == pytest.approx(once.standard_error, rel=1e-12)
    assert (twice.n, twice.n_users) == (120, 60)
    assert twice.confidence_interval() == pytest.approx(once.confidence_interval(), rel=1e-12)
    assert "120 instances of 60 users: errors are clustered by user" in twice.notes
    with pytest.raises(tr.InputError, match="users with several instances can't be added"):
        twice + once


def test_bootstrap_interval_is_near_that_of_scipy() -> None:
    ranks = tr.Ranks.from_ranks([1] * 5 + list(range(2, 60)), n=100)
    values = tr.values(ranks, "rr")
    ours = tr.Bootstrap(40_000, rng=0).interval(ranks, "rr", 0.9)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=40_000, confidence_level=0.9, rng=1).confidence_interval
    assert ours == pytest.approx((theirs.low, theirs.high), rel=0.02)
    doubled = tr.Ranks(above=np.tile(ranks.above, 2), n_candidates=100, ids=np.tile(np.arange(len(ranks)), 2))
    twice = tr.Bootstrap(40_000, rng=2).interval(doubled, "rr", 0.9)
    assert twice == pytest.approx((theirs.low, theirs.high), rel=0.02)


def test_nothing_to_resample() -> None:
    assert all(map(math.isnan, tr.Bootstrap().interval(tr.Ranks.from_ranks([[]], n=3), "rr")))
    assert tr.Bootstrap(rng=0).interval(tr.Ranks.from_ranks([9] * 30, n=9), "recall@1") == (0.0, 0.0)
    with pytest.raises(tr.InputError, match="`level`"):
        tr.Bootstrap().interval(tr.Ranks.from_ranks([1, 2], n=3), "rr", 95)


@pytest.mark.parametrize("metric", ["rr", "ndcg@3", "auc", "recall@2", "gndcg", "dcg(exp)@3", "mean-rank", "marp@1,2"])
def test_attainable_values_are_those_of_the_best_and_the_worst_order(metric: str) -> None:
    """All ways to place two relevant items, one of them graded higher, among five candidates."""
    places = [[a, b] for a in range(1, 6) for b in range(1, 6) if a != b]
    every = tr.Ranks.from_ranks(places, n=5, grades=[[1.0, 3.0]] * len(places))
    values = tr.values(every, metric)
    for at in range(0, len(every), 3):
        assert attainable(every[[at]], tr.metric(metric)) == pytest.approx((values.min(), values.max()), abs=1e-15)


def test_what_some_of_the_relevant_items_can_add() -> None:
    """Any one of an instance's items, in all orders of five candidates, of which two are relevant."""
    places = [[a, b] for a in range(1, 6) for b in range(1, 6) if a != b]
    every = tr.Ranks.from_ranks(places, n=5, grades=[[1.0, 3.0]] * len(places))
    for metric in ("dcg@3", "mean-rank"):
        added = item_terms(every, tr.metric(metric).terms(every))
        found = attainable_of_items(every[[0]], tr.metric(metric), np.array([1]), np.array([0.5]))
        assert found == pytest.approx((2 * added.min(), 2 * added.max()))
    one = np.array([1])
    assert attainable_of_items(every[:0], tr.metric("dcg"), one[:0], np.ones(0)) is None
    own = tr.metric(lambda rank, i, n_relevant, n: 1.0 / rank)
    assert attainable_of_items(tr.Ranks.from_ranks([3], n=5), own, one, np.ones(1)) is None


def test_attainable_values_are_not_always_known() -> None:
    ranks = tr.Ranks.from_ranks([1, 2], n=9)
    own = tr.metric(lambda rank, i, n_relevant, n: 1.0 / rank)
    assert attainable(ranks, own) is None
    assert tr.estimate(ranks, own).attainable == (0.5, 1.0)
    sampled = tr.UniformSampling(4).draw(ranks, rng=0)
    assert attainable(sampled, tr.metric("ap~bv(0.1)")) == attainable(ranks, tr.metric("ap")) == (1 / 9, 1.0)
    cut = tr.read_lists({"ann": ["a", "b"], "bob": ["b", "c"]}, {"ann": ["a"], "bob": ["d"]}, depth=2)
    assert tr.estimate(cut, "ndcg@2").attainable == (0.0, 1.0)


def test_intervals_stay_within_the_values_that_a_metric_can_have() -> None:
    ranks = {"A": tr.Ranks.from_ranks([1, 3, 1], n=9), "B": tr.Ranks.from_ranks([8, 9, 2], n=9)}
    for metric, least, most in (("rr", 1 / 9, 1.0), ("ndcg@5", 0.0, 1.0), ("mean-rank", 1.0, 9.0)):
        for one in ranks.values():
            low, high = tr.estimate(one, metric).confidence_interval(0.99)
            assert least <= low < high <= most
        low, high = tr.compare(ranks, metric)["A", "B"].confidence_interval(0.999)
        assert least - most <= low < 0 < high <= most - least


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
    samples = [population[rng.integers(population.size, size=100)] for _ in range(1_000)]

    def missed(intervals: list[Interval]) -> float:
        return float(np.mean([not low <= population.mean() <= high for low, high in intervals]))

    assert missed([student_interval(own.mean(), stats.sem(own), 100, 0.95) for own in samples]) > 0.13
    assert missed([Units.of(own).interval(0.95, ends) for own in samples]) < 0.06


def test_a_mean_that_is_all_but_reached() -> None:
    """With the unseen two thirds of a unit at -1 the mean is above 0 by rounding alone."""
    for seed in range(40):
        values = np.random.default_rng(seed).uniform(-0.5, 0.5, 10 + seed)
        values -= (values.sum() - 2 / 3 - 1e-15) / values.size
        assert Units.of(values).p_above(0.0, -1.0) == pytest.approx(0.5)
