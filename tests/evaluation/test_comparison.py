"""The comparison against scipy.stats, enumeration, and known truth."""

import json
import math
import sys
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tqdm import tqdm

import truerank as tr
from tests.arrays import Floats
from truerank.evaluation.comparisons import matched
from truerank.evaluation.paired_tests import (
    Bootstrap,
    BootstrapOutcome,
    LikelihoodTest,
    PairedSample,
    Randomisation,
    StudentOutcome,
    StudentTest,
    TestName,
    _around,
    adjusted,
)


def some_ranks(n: int, names: str = "AB", seed: int = 0) -> dict[str, tr.Ranks]:
    rng = np.random.default_rng(seed)
    return {name: tr.Ranks.from_ranks(rng.integers(1, 40, n), n=100, ids=np.arange(n)) for name in names}


def values_of(ranks: dict[str, tr.Ranks], metric: str) -> list[Floats]:
    return [tr.values(one, metric) for one in ranks.values()]


def test_t_test_is_that_of_scipy() -> None:
    ranks = some_ranks(80)
    a, b = values_of(ranks, "ndcg@10")
    found = tr.compare(ranks, ["ndcg@10", "mean-rank"], test="t")["B", "A", "ndcg@10"]
    theirs = stats.ttest_rel(b, a)
    assert found.p_value == pytest.approx(theirs.pvalue, rel=1e-10)
    for level in (0.5, 0.95):
        interval = theirs.confidence_interval(level)
        assert found.confidence_interval(level) == pytest.approx((interval.low, interval.high), rel=1e-10)
    assert found.difference == pytest.approx((b - a).mean(), rel=1e-12)
    assert found.standard_error == pytest.approx(stats.sem(b - a), rel=1e-12)
    assert found.effect_size == pytest.approx((b - a).mean() / (b - a).std(ddof=1), rel=1e-12)
    assert found.relative == pytest.approx((b.mean() - a.mean()) / a.mean(), rel=1e-12)
    [outcome] = StudentTest().outcomes(PairedSample.of(np.column_stack([b, a])), [(0, 1)])
    assert isinstance(outcome, StudentOutcome)
    assert outcome.skewness == pytest.approx(stats.skew(b - a), rel=1e-10)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_bca_interval_is_that_of_scipy_on_the_same_resamples(level: float) -> None:
    values = np.random.default_rng(0).exponential(size=40) - 0.7
    theirs = stats.bootstrap((values,), np.mean, n_resamples=2000, rng=1, confidence_level=level)
    rest = np.array([np.delete(values, at).mean() for at in range(40)])
    ours = BootstrapOutcome.of(theirs.bootstrap_distribution, float(values.mean()), rest)
    expected = (theirs.confidence_interval.low, theirs.confidence_interval.high)
    assert ours.confidence_interval(level) == pytest.approx(expected, rel=1e-10)


def test_replicates_that_equal_the_difference_count_half() -> None:
    ours = BootstrapOutcome.of(np.array([0.0, 0.1 + 0.2, 0.3, 0.5]), 0.3, np.array([0.2, 0.4]))
    assert ours.bias == stats.norm.ppf(0.5)


def test_bootstrap_replicates_have_the_law_of_resampled_means() -> None:
    values = np.column_stack(values_of(some_ranks(6), "ndcg@10"))
    difference = values[:, 1] - values[:, 0]
    [found] = Bootstrap(20_000, rng=3).outcomes(PairedSample.of(values), [(1, 0)])
    assert isinstance(found, BootstrapOutcome)
    every = np.array([difference[list(drawn)].mean() for drawn in product(range(6), repeat=6)])
    for share in (0.1, 0.5, 0.9):
        at = np.quantile(every, share)
        true = (every <= at + 1e-12).mean()
        error = math.sqrt(true * (1 - true) / 20_000)
        assert (found.replicates <= at + 1e-12).mean() == pytest.approx(true, abs=5 * error)


@pytest.mark.parametrize(("users", "found"), [(2, False), (5, False), (6, True), (50, True)])
def test_a_few_users_with_the_same_sign_prove_nothing_by_bootstrap(users: int, found: bool) -> None:
    """No test that treats both recommenders alike can have a p-value below 2 / 2^users."""
    ranks = {
        "A": tr.Ranks.from_ranks([2] * users + [3] * 50, n=9),
        "B": tr.Ranks.from_ranks([1] * users + [3] * 50, n=9),
    }
    for each in (ranks, {name: one[:users] for name, one in ranks.items()}):
        difference = tr.compare(each, "rr", test="bootstrap", rng=0)["B", "A"]
        assert difference.p_value >= 2.0 ** (1 - users)
        low, high = difference.confidence_interval()
        assert low <= difference.difference <= high
        assert not (low > 0 and not found)
    assert (difference.finding.kind == "better") == found


def test_bootstrap_p_value_belongs_to_its_interval() -> None:
    ranks = some_ranks(60, seed=5)
    found = tr.compare(ranks, "ndcg@10", test="bootstrap", replicates=50_000, rng=0)["B", "A"]
    assert 0.01 < found.p_value < 0.99
    wide, narrow = (found.confidence_interval(1 - found.p_value * factor) for factor in (0.95, 1.05))
    assert wide.low < 0 < wide.high
    assert not narrow.low < 0 < narrow.high


@pytest.mark.parametrize("shift", [-1.5, -0.4, 0.02, 0.3, 0.7])
def test_bootstrap_p_value_is_the_error_of_the_interval_that_ends_at_0(shift: float) -> None:
    """Replicates at the quantiles of a skewed law, whose bias and acceleration matter."""
    replicates = stats.gamma.ppf((np.arange(100_000) + 0.5) / 100_000, 4) / 4 - 1 + shift
    found = BootstrapOutcome.of(replicates, shift - 0.05, np.random.default_rng(0).exponential(size=60))
    assert abs(found.bias) > 0.02
    assert abs(found.acceleration) > 0.02
    low, high = found.confidence_interval(1 - found.p_value)
    assert min(abs(low), abs(high)) < 1e-3
    assert BootstrapOutcome.of(replicates, shift, np.ones(3), least=0.5).p_value >= 0.5


def test_the_smallest_bootstrap_p_value_counts_the_observed_difference() -> None:
    """Without bias and skewness, if all 999 replicates have the same sign."""
    replicates = np.linspace(0.5, 1.5, 999)
    for sign in (1, -1):
        found = BootstrapOutcome.of(sign * replicates, sign * 1.0, np.array([0.5, 1.0, 1.5]))
        assert (found.bias, found.acceleration) == (0.0, 0.0)
        assert found.p_value == pytest.approx(2 / 1_000, rel=1e-9)
    assert BootstrapOutcome.of(replicates - 1, 0.0, np.array([-0.5, 0.0, 0.5])).p_value == pytest.approx(1.0)


def two_columns(users: int) -> Floats:
    rng = np.random.default_rng(users)
    return np.column_stack([rng.random(users), rng.random(users) ** 2])


@pytest.mark.parametrize("users", [4, 12])
def test_exchanges_of_fitted_metrics_have_their_error_too(users: int) -> None:
    """The share of exchanges is a mean of normal tails, over all ways to exchange."""
    values, hidden = two_columns(users), np.array([0.04, 0.03])
    sample = PairedSample.of(values, hidden=hidden)
    found = [Randomisation(5_000, rng=seed).outcomes(sample, [(0, 1)])[0].p_value for seed in range(40)]
    gaps = values[:, 0] - values[:, 1]
    means = np.array([np.dot(signs, gaps) / users for signs in product([1, -1], repeat=users)])
    exact = float(np.mean([stats.norm.sf(abs(gaps.mean()) + side * means, scale=0.05) for side in (1, -1)]) * 2)
    assert np.mean(found) == pytest.approx(exact, abs=5 * (exact * (1 - exact) / 2**users / 40) ** 0.5)


def test_resamples_of_fitted_metrics_have_their_error_too() -> None:
    values = two_columns(50)
    plain, fitted = (
        Bootstrap(20_000, rng=1).outcomes(PairedSample.of(values, hidden=hidden), [(0, 1)])[0]
        for hidden in (None, np.array([0.12, 0.05]))
    )
    assert isinstance(plain, BootstrapOutcome)
    assert isinstance(fitted, BootstrapOutcome)
    spread = math.hypot(plain.replicates.std(), 0.13)
    assert fitted.replicates.std() == pytest.approx(spread, rel=5 / math.sqrt(2 * 20_000))


def test_the_error_of_a_pair_is_that_of_a_ratio_and_what_its_columns_hide() -> None:
    rng = np.random.default_rng(2)
    user, values = rng.integers(0, 30, 90), rng.random((90, 3))
    sample = PairedSample.of(values, clusters=user, hidden=np.array([0.3, 0.1, 0.4]))
    sums, sizes = np.stack([np.bincount(user, own) for own in values.T], axis=1), np.bincount(user)
    present = sizes > 0
    gaps, sizes = (sums[:, 2] - sums[:, 0])[present], sizes[present]
    assert sample.difference((2, 0)) == pytest.approx(values[:, 2].mean() - values[:, 0].mean(), rel=1e-12)
    deviations = gaps - gaps.sum() / 90 * sizes
    np.testing.assert_allclose(sample.deviations((2, 0)), deviations, rtol=1e-9, atol=1e-14)
    seen = deviations.std(ddof=1) * sizes.size**0.5 / 90
    assert sample.standard_error((2, 0)) == pytest.approx(math.hypot(seen, 0.5), rel=1e-12)
    assert sample.better((2, 0)).tolist() == [(gaps > 0).sum(), (gaps < 0).sum()]
    assert sample.largest_difference((2, 0)) == pytest.approx(np.ptp((sums[present] / sizes[:, None])[:, [2, 0]]))
    assert sample.units((2, 0)).mean == pytest.approx(sample.difference((2, 0)), rel=1e-12)


def test_randomisation_enumerates_all_exchanges_of_few_instances() -> None:
    a, b = values_of(ranks := some_ranks(9), "ndcg@10")
    theirs = stats.permutation_test(
        (b, a), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True
    )
    assert tr.compare(ranks, "ndcg@10", test="randomisation")["B", "A"].p_value == pytest.approx(theirs.pvalue)


def test_random_exchanges_count_themselves() -> None:
    a, b = values_of(ranks := some_ranks(25, seed=2), "rr")
    theirs = stats.permutation_test(
        (b, a), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=20_000, rng=1,
    )  # fmt: skip
    found = tr.compare(ranks, "rr", test="randomisation", rng=4, replicates=20_000)["B", "A"].p_value
    error = math.sqrt(2 * found * (1 - found) / 20_000)
    assert found == pytest.approx(theirs.pvalue, abs=5 * error)
    far = {name: tr.Ranks.from_ranks([rank] * 40, n=50) for name, rank in {"A": 1, "B": 50}.items()}
    assert tr.compare(far, "rr", test="randomisation", replicates=999, rng=0)["B", "A"].p_value == 1 / 1000


def test_clusters_are_the_units() -> None:
    rng = np.random.default_rng(1)
    user = np.repeat(np.arange(40), rng.integers(1, 5, 40))
    ranks = {name: tr.Ranks.from_ranks(rng.integers(1, 9, user.size), n=20, ids=user) for name in "AB"}
    a, b = values_of(ranks, "rr")
    found = tr.compare(ranks, "rr")["B", "A"]
    assert (found.n, found.n_units) == (user.size, 40)
    # the ratio estimator of the total difference over the total number, from its jackknife
    totals, sizes = np.bincount(user, b - a), np.bincount(user)
    rest = np.array([(totals.sum() - totals[u]) / (sizes.sum() - sizes[u]) for u in range(40)])
    jackknife = math.sqrt(39 / 40 * np.square(rest - rest.mean()).sum())
    assert found.difference == pytest.approx((b - a).mean())
    assert found.standard_error == pytest.approx(jackknife, rel=0.03)
    assert any("clustered by user" in note for note in tr.compare(ranks, "rr").notes)
    doubled = {name: tr.Ranks.concatenate([one, one]) for name, one in ranks.items()}
    assert tr.compare(doubled, "rr")["B", "A"].standard_error == pytest.approx(found.standard_error, rel=1e-12)


def test_adjusted_p_values_are_those_of_scipy_and_of_the_definition() -> None:
    p = np.random.default_rng(0).random(20) ** 3
    assert adjusted(p, "benjamini-hochberg") == pytest.approx(stats.false_discovery_control(p), rel=1e-12)
    order = np.argsort(p)
    slow = {int(at): max(min(p[order[j]] * (20 - j), 1) for j in range(place + 1)) for place, at in enumerate(order)}
    assert adjusted(p, "holm").tolist() == pytest.approx([slow[at] for at in range(20)], rel=1e-12)
    assert adjusted([0.01, math.nan, 0.5], "holm").tolist()[::2] == [0.02, 0.5]


def test_all_pairs_share_the_adjustment() -> None:
    ranks = some_ranks(50, "ABC")
    result = tr.compare(ranks, ["ap", "recall@5"])
    assert len(result.differences) == 6
    raw = [each.p_value for each in result.differences]
    assert [each.adjusted_p_value for each in result.differences] == adjusted(raw, "holm").tolist()
    some = tr.compare(ranks, "ap", baseline="B")
    assert [(each.recommender, each.baseline) for each in some.differences] == [("A", "B"), ("C", "B")]


@pytest.mark.parametrize(("names", "header"), [("AB", "p"), ("ABC", "p (holm)")])
def test_the_header_names_an_adjustment_if_there_is_one(names: str, header: str) -> None:
    assert header in tr.compare(some_ranks(40, names), "rr").to_table().header


@pytest.mark.parametrize("n", [29, 30])
def test_few_instances_are_noted(n: int) -> None:
    notes = tr.compare(some_ranks(n), "rr").notes
    assert any("independent instances: intervals and p-values are rough" in note for note in notes) == (n < 30)
    assert "only 1 independent instance: too few for an interval or a p-value" in tr.compare(some_ranks(1), "rr").notes


def test_reversed_pairs() -> None:
    result = tr.compare(some_ranks(50), "ap", test="bootstrap", rng=0)
    one, other = result["B", "A", "AP"], result["A", "B"]
    assert other.difference == -one.difference
    assert other.mean == one.baseline_mean
    low, high = one.confidence_interval(0.9)
    assert other.confidence_interval(0.9) == (-high, -low)
    assert other.reversed() == one


def test_equal_recommenders_have_no_negative_zero() -> None:
    same = some_ranks(50)["A"]
    result = tr.compare({"A": same, "B": same}, "ap")
    assert [f"{result[pair].difference:+.1f}" for pair in (("A", "B"), ("B", "A"))] == ["+0.0", "+0.0"]


def test_instances_are_matched_by_id() -> None:
    ranks = some_ranks(50)
    shuffled = ranks | {"B": ranks["B"][np.random.default_rng(0).permutation(50)]}
    assert tr.compare(shuffled, "ap").differences == tr.compare(ranks, "ap").differences
    text = ranks | {"B": tr.Ranks.from_ranks(ranks["B"].rank, n=100, ids=np.arange(50).astype(str))}
    assert tr.compare(text, "ap").differences == tr.compare(ranks, "ap").differences


def test_different_numbers_of_candidates_are_noted() -> None:
    said = "2 instances were ranked among different numbers of candidates by 'A' and 'B', such as 80 and 8 for "
    for ids, name in ((None, "1"), (["x", "y", "z"], "'y'")):
        whole = tr.Ranks.from_ranks([5, 6, 7], n=[90, 80, 70], ids=ids)
        fewer = tr.Ranks.from_ranks([1, 2, 3], n=[90, 8, 7], ids=ids)
        assert f"{said}{name}: fewer make better ranks" in tr.compare({"A": whole, "B": fewer}, "rr").notes
        assert not any("candidates" in note for note in tr.compare({"A": whole, "B": whole}, "rr").notes)
        cut = replace(fewer, depth=3)
        assert not any("candidates" in note for note in tr.compare({"A": whole, "B": cut}, "rr@3").notes)


def test_unmatched_instances_are_refused_or_counted() -> None:
    ranks = some_ranks(50)
    fewer = {"A": ranks["A"][3:], "B": ranks["B"][:49]}
    with pytest.raises(tr.InputError, match=r"1 instance of 'A' \(49\) is missing"):
        tr.compare(fewer, "ap")
    for missing, shown in ((3, "0, 1, 2"), (4, "0, 1, 2, ...")):
        with pytest.raises(tr.InputError, match=rf"{missing} instances of 'B' \({shown}\) are missing"):
            tr.compare(ranks | {"A": ranks["A"][missing:]}, "ap")
    result = tr.compare(fewer, "ap", unmatched="drop")
    assert result.differences == tr.compare({"A": ranks["A"][3:49], "B": ranks["B"][3:49]}, "ap").differences
    assert result.notes[:2] == (
        "A: 1 instance that not all recommenders have is left out",
        "B: 3 instances that not all recommenders have are left out",
    )


def test_what_cannot_be_matched() -> None:
    one, two = tr.Ranks.from_ranks([1, 2], n=5), tr.Ranks.from_ranks([1, 2, 3], n=5)
    ann = tr.Ranks.from_ranks([1, 2], n=5, ids=["ann", "bob"])
    with pytest.raises(tr.InputError, match="the same number of instances, but 'A' has 2, 'B' has 3"):
        matched({"A": one, "B": two})
    with pytest.raises(tr.InputError, match="the ranks of 'B' have none"):
        matched({"A": ann, "B": one})
    with pytest.raises(tr.InputError, match="the id 'ann' occurs several times in 'A'"):
        matched({"A": tr.Ranks.from_ranks([1, 2], n=5, ids=["ann", "ann"]), "B": ann})
    with pytest.raises(tr.InputError, match="no instance in common"):
        matched({"A": ann, "B": tr.Ranks.from_ranks([1], n=5, ids=["cyd"])}, "drop")
    with pytest.raises(tr.InputError, match="instance 'bob' has 1 for 'A' and 2 for 'B'"):
        matched({"A": ann, "B": tr.Ranks.from_ranks([[1], [2, 3]], n=5, ids=["ann", "bob"])})


def test_verdicts() -> None:
    better = {"A": tr.Ranks.from_ranks([5] * 40 + [6] * 40, n=9), "B": tr.Ranks.from_ranks([1] * 40 + [3] * 40, n=9)}
    assert tr.compare(better, "rr")["B", "A"].verdict == "B is better"
    assert tr.compare(better, "rr")["A", "B"].verdict == "B is better"
    assert tr.compare(better, "mean-rank")["B", "A"].verdict == "B is better"
    many = tr.Ranks.from_ranks([5, 6] * 200, n=9)
    same = tr.compare({"A": many, "B": many}, "rr", margin=0.01)["B", "A"]
    assert (same.p_value, same.verdict) == (1.0, "B and A differ by less than 0.01")
    assert tr.compare({"A": many[:80], "B": many[:80]}, "rr", margin=0.01)["B", "A"].verdict == "no difference found"
    assert tr.compare(some_ranks(50, seed=1), "rr")["B", "A"].verdict == "no difference found"
    slightly = {"A": tr.Ranks.from_ranks([2, 3] * 400, n=999), "B": tr.Ranks.from_ranks([2, 4] * 400, n=999)}
    assert tr.compare(slightly, "rr", margin=0.1)["B", "A"].verdict == "A is better, but not by more than 0.1"


def test_not_worse_is_a_one_sided_t_test() -> None:
    a, b = values_of(ranks := some_ranks(70), "ap")
    found = tr.compare(ranks, "ap", test="t")["B", "A"]
    for margin in np.linspace(0, 0.3, 31):
        theirs = stats.ttest_1samp(b - a, -margin, alternative="greater").pvalue < 0.05
        assert found.not_worse(margin) == theirs
        worse = stats.ttest_1samp(b - a, -margin, alternative="less").pvalue < 0.05
        assert found.worse(margin) == worse


def test_instances_needed_by_the_formula_for_small_differences() -> None:
    rng = np.random.default_rng(3)
    ranks = {name: tr.Ranks.from_ranks(rng.integers(1, most, 200), n=50) for name, most in (("A", 20), ("B", 30))}
    found = tr.compare(ranks, "rr")[0]
    quantiles = stats.norm.ppf([0.975, 0.8]).sum()
    wanted = (quantiles * found.standard_error * np.sqrt(200) / found.gain) ** 2
    assert found.instances_needed(level=0.95, power=0.8) == np.ceil(wanted)


def test_instances_needed_settle_the_question_with_the_promised_power() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(1, 40, (2, 300))
    found = tr.compare({"A": tr.Ranks.from_ranks(a, n=50), "B": tr.Ranks.from_ranks(b, n=50)}, "mean-rank")["B", "A"]
    needed = found.instances_needed(margin=1.0, power=0.8)
    gains = (a - b).astype(float)
    draws = rng.choice(gains, (4000, int(needed)))
    tests = (draws.mean(axis=1) + 1.0) / (draws.std(axis=1, ddof=1) / math.sqrt(needed))
    settled = (np.sign(found.gain + 1.0) * tests > stats.t.ppf(0.95, needed - 1)).mean()
    assert settled == pytest.approx(0.8, abs=0.04)
    assert tr.compare({"A": tr.Ranks.from_ranks(a, n=50), "B": tr.Ranks.from_ranks(a, n=50)}, "ap")[
        "B", "A"
    ].instances_needed() == math.inf  # fmt: skip


def test_undefined_values_are_left_out_and_counted() -> None:
    ranks = {name: tr.Ranks.from_ranks([[], [place], [1]], n=4) for name, place in {"A": 1, "B": 2}.items()}
    result = tr.compare(ranks, "ap")
    assert (result["B", "A"].n, result["B", "A"].n_undefined) == (2, 1)
    assert "ap is undefined for 1 of 3 instances" in result.notes
    assert math.isnan(tr.compare({name: one[:2] for name, one in ranks.items()}, "ap")["B", "A"].p_value)


@pytest.mark.parametrize("test", ["likelihood", "t", "bootstrap", "randomisation"])
def test_metrics_that_are_defined_nowhere(test: Any) -> None:
    ranks = {name: tr.Ranks.from_ranks([[], []], n=4) for name in "AB"}
    found = tr.compare(ranks, "ap", test=test)["B", "A"]
    assert (found.n, found.n_undefined, found.verdict) == (0, 2, "not determined")
    assert all(map(math.isnan, (found.mean, found.difference, found.p_value, *found.confidence_interval())))


@pytest.mark.parametrize("test", ["likelihood", "t", "bootstrap", "randomisation"])
def test_values_that_are_all_0(test: Any) -> None:
    ranks = {name: tr.Ranks.from_ranks([9] * 50, n=9) for name in "AB"}
    found = tr.compare(ranks, "recall@1", test=test)["B", "A"]
    assert (found.p_value, found.difference, found.effect_size) == (1.0, 0.0, 0.0)


def test_sampled_and_exact_values_are_not_compared() -> None:
    exact = tr.Ranks.from_ranks([5, 7, 9], n=100)
    sampled = tr.Ranks.from_sampled([1, 2, 3], m=10, n=100)
    with pytest.raises(tr.InputError, match="chosen in one way, but it is 'A' among all candidates, 'B'"):
        tr.compare({"A": exact, "B": sampled}, "ap")
    assert tr.compare({"A": exact, "B": sampled}, "auc")["B", "A"].n == 3


def test_ties_in_random_order_are_reproducible() -> None:
    ranks = {"A": tr.Ranks(above=[0] * 50, tied=[9] * 50, n_candidates=10), "B": tr.Ranks.from_ranks([5] * 50, n=10)}
    assert tr.compare(ranks, "rr", ties="random", rng=1) == tr.compare(ranks, "rr", ties="random", rng=1)
    assert tr.compare(ranks, "rr", ties="optimistic")["A", "B"].mean == 1.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"baseline": "C"}, "`baseline` must be 'A' or 'B', got 'C'"),
        ({"test": "wilcoxon"}, "does not test the means"),
        ({"test": "z"}, "`test` must be one of 'likelihood', 't', 'bootstrap', 'randomisation', 'anytime', got 'z'"),
        ({"level": 95}, "`level` must lie between 0 and 1"),
        ({"margin": -1}, "`margin` must be a number from 0"),
        ({"margin": 0.1, "level": 0.5}, "the `level` of a one-sided test must lie between 0.5 and 1"),
        ({"unmatched": "skip"}, "`unmatched` must be"),
        ({"adjustment": "bonferroni"}, "`adjustment` must be one of"),
        ({"test": "bootstrap", "replicates": 5}, "`replicates` must be a whole number from 100"),
    ],
)
def test_wrong_arguments(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.compare(some_ranks(10), "ap", **wrong)
    with pytest.raises(tr.InputError, match="at least two recommenders"):
        tr.compare({"A": tr.Ranks.from_ranks([1], n=2)}, "ap")
    with pytest.raises(tr.InputError, match="the comparison has the pairs B - A"):
        tr.compare(some_ranks(10), "ap")["B", "C"]


def test_forms() -> None:
    result = tr.compare(some_ranks(50), ["ap", "recall@5"])
    assert "verdict" in str(result).splitlines()[0]
    assert len(result.to_markdown().splitlines()) == 4
    assert result.to_latex().count(r"\pm") == 2
    record = json.loads(result.to_json())["rows"][0]
    assert record["difference"] == result["B", "A", "ap"].difference
    assert record["low"] == result["B", "A", "ap"].confidence_interval(0.975).low  # adjusted for two tests
    assert list(result.to_frame("polars")["metric"]) == ["ap", "recall@5"]


def test_skewed_differences_are_noted() -> None:
    rare = {"A": tr.Ranks.from_ranks([99] * 200, n=100), "B": tr.Ranks.from_ranks([1] + [99] * 199, n=100)}
    assert any("very skewed" in note for note in tr.compare(rare, "recall@1", test="t").notes)
    assert not any("very skewed" in note for note in tr.compare(rare, "recall@1").notes)
    # seen from the baseline, which comes last, and beside the p-value of all pairs
    for adjustment in ("max-t", "tukey"):
        found = tr.compare(rare, "recall@1", test="t", baseline="B", adjustment=adjustment, rng=0)
        assert any("very skewed" in note for note in found.notes)


def test_tests_of_ones_own() -> None:
    class Doubtful(StudentTest):
        def outcomes(self, sample: Any, pairs: Any) -> Any:
            return [Bootstrap(100, rng=0).outcomes(sample, [pair])[0] for pair in pairs]

    own = tr.compare(some_ranks(50), "ap", test=Doubtful())["B", "A"]
    assert own == tr.compare(some_ranks(50), "ap", test=Bootstrap(100, rng=0))["B", "A"]


def test_hardly_any_true_null_of_few_instances_is_rejected_by_likelihood() -> None:
    rng, test = np.random.default_rng(0), LikelihoodTest()
    samples = (PairedSample.of(1 / rng.integers(1, 20, (60, 2)), largest=np.ones(2)) for _ in range(400))
    rejected = [test.outcomes(sample, [(0, 1)])[0].p_value <= 0.05 for sample in samples]
    assert np.mean(rejected) < 0.05


@pytest.mark.parametrize("test", [StudentTest(), Bootstrap(500, rng=1), Randomisation(199, rng=1)])
def test_one_true_null_in_twenty_is_rejected(test: tr.PairedTest) -> None:
    rng = np.random.default_rng(0)
    rates = []
    for _ in range(400):
        values = 1 / rng.integers(1, 20, (60, 2))
        rates.append(test.outcomes(PairedSample.of(values), [(0, 1)])[0].p_value <= 0.05)
    assert np.mean(rates) == pytest.approx(0.05, abs=5 * math.sqrt(0.05 * 0.95 / 400))


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_progress_is_shown_on_a_terminal_only(
    test: TestName, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bars = []

    class Bar(tqdm):  # type: ignore[type-arg]
        def close(self) -> None:
            bars.append((self.n, bool(self.disable)))
            super().close()

    monkeypatch.setattr("tqdm.tqdm", Bar)
    tr.compare(some_ranks(200), "ap", test=test, replicates=300, rng=0, progress=True)
    assert capsys.readouterr() == ("", "")
    assert all(disabled for _, disabled in bars)
    bars.clear()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    tr.compare(some_ranks(200), "ap", test=test, replicates=300, rng=0, progress=True)
    assert bars[0] == (300, False)


def test_differences_without_each_unit() -> None:
    """Users with several instances weigh as many: what the acceleration of the bootstrap rests on."""
    sums, sizes = np.array([[1.0, 0.5], [2.0, 1.0], [0.3, 0.9]]), np.array([1.0, 3.0, 2.0])
    whole, without = _around(PairedSample(sums, sizes), (0, 1))
    rest = [np.delete(np.arange(3), left) for left in range(3)]
    assert whole == pytest.approx((3.3 - 2.4) / 6, rel=1e-12)
    np.testing.assert_allclose(without, [(sums[own, 0] - sums[own, 1]).sum() / sizes[own].sum() for own in rest])
