"""What published numbers can mean, against all distributions of a small catalogue."""

from itertools import combinations
from math import comb, log

import numpy as np
import pytest
from scipy import stats

import truerank as tr
from tests.arrays import Floats
from truerank.papers.krichene_rendle_2020.toy_tables import TABLE_3


def sampled_at_every_rank(metric: str, n: int, m: int, replace: bool = False) -> Floats:
    """Expected sampled metric of an item at each rank, by `tr.risk`."""
    return tr.risk(tr.Ranks.from_ranks(range(1, n + 1), n=n), metric, design=tr.UniformSampling(m, replace)).expected


def exact_at_every_rank(metric: str, n: int) -> Floats:
    return tr.values(tr.Ranks.from_ranks(range(1, n + 1), n=n), metric)


def by_enumeration(sampled: Floats, exact: Floats, value: float, error: float) -> tuple[float, float]:
    """One equation besides the sum of 1: the extremes mix two ranks, to meet either end of the allowed values."""
    found = []
    for end in (value - error, value + error):
        for a, b in combinations(range(sampled.size), 2):
            if sampled[a] != sampled[b]:
                share = (end - sampled[b]) / (sampled[a] - sampled[b])
                if 0 <= share <= 1:
                    found.append(share * exact[a] + (1 - share) * exact[b])
    found += [exact[a] for a in range(sampled.size) if abs(sampled[a] - value) <= error]
    return min(found), max(found)


@pytest.mark.parametrize("metric", ["recall@3", "ndcg@5", "ap", "mean-rank"])
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("other", ["recall@1", "ap"])
def test_the_range_is_that_of_all_mixtures_of_two_ranks(metric: str, replace: bool, other: str) -> None:
    n, m = 30, 7
    sampled = sampled_at_every_rank(metric, n, m, replace)
    value = round(float(sampled[[0, 4, 11]].mean()), 3)
    design = tr.UniformSampling(m, replace)
    found = tr.audit({"A": {metric: value}}, other, n=n, design=design, rounding=0.01)["A", other]
    expected = by_enumeration(sampled, exact_at_every_rank(other, n), value, 0.005)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("metric", ["recall@3", "ap"])
def test_the_range_over_smooth_distributions_is_that_of_all_mixtures_of_two(metric: str) -> None:
    """Of 30 ranks the first three are smooth: four extreme laws, and the other ranks on their own."""
    n, m = 30, 7
    tops = np.array([[1, a, a * b] for a in (1, 1 / 4) for b in (1, 0)])  # nothing bounds the third from below
    laws = np.block(
        [[tops / tops.sum(axis=1, keepdims=True), np.zeros((4, n - 3))], [np.zeros((n - 3, 3)), np.eye(n - 3)]]
    )
    sampled, exact = laws @ sampled_at_every_rank(metric, n, m), laws @ exact_at_every_rank("recall@2", n)
    value = round(float(sampled[[0, 3, 9]].mean()), 3)
    found = tr.audit({"A": {metric: value}}, "recall@2", n=n, design=m, rounding=0.01, assume="smooth")["A", "recall@2"]
    np.testing.assert_allclose(found, by_enumeration(sampled, exact, value, 0.005), rtol=1e-7, atol=1e-9)


def test_more_numbers_never_widen_the_range_and_it_holds_the_truth() -> None:
    n, m = 200, 20
    counts = np.random.default_rng(0).integers(1, n + 1, 40)
    exact = {name: exact_at_every_rank(name, n)[counts - 1].mean() for name in ("recall@10", "ap")}
    shown = {name: float(sampled_at_every_rank(name, n, m)[counts - 1].mean()) for name in ("recall@5", "ap", "auc")}
    last = dict.fromkeys(exact, (-np.inf, np.inf))
    for size in range(1, len(shown) + 1):
        numbers = dict(list(shown.items())[:size])
        found = tr.audit({"A": numbers}, list(exact), n=n, design=m, rounding=1e-6)
        for name, value in exact.items():
            low, high = found["A", name]
            assert last[name][0] - 1e-9 <= low <= value <= high <= last[name][1] + 1e-9
            last[name] = (low, high)


def test_the_published_order_of_x_and_y_is_not_determined() -> None:
    numbers = {name: round(float(TABLE_3["recall@10", name].split()[1].split("±")[0]) / 100, 4) for name in "XY"}
    assert numbers == {"X": 0.6619, "Y": 0.5651}
    for assume in ("nothing", "falling", "smooth"):
        found = tr.audit(
            {name: {"recall@10": value} for name, value in numbers.items()},
            n=3_706,
            design=100,
            users=6_040,
            assume=assume,
        )
        assert found.better("X", "Y", "recall@10") is None
        assert found["X", "recall@10"].low < 0.0760 < found["X", "recall@10"].high
        assert found["Y", "recall@10"].low < 0.0884 < found["Y", "recall@10"].high
        assert "do not determine whether X or Y is better" in str(found)


def test_an_order_that_is_determined() -> None:
    found = tr.audit({"A": {"auc": "0.90"}, "B": {"auc": "0.80"}}, ["auc", "mean-rank"], n=100, design=10)
    assert found.better("A", "B", "auc") == found.better("B", "A", "auc") == "A"
    assert found.better("A", "B", "mean-rank") == "A"
    assert "exact auc: A is better than B" in found.conclusions[0]
    touching = tr.audit({"A": {"auc": 0.9}, "B": {"auc": 0.8}}, n=100, design=10)
    assert touching.better("A", "B", "auc") is None


def test_digits_count() -> None:
    def width(**options: object) -> float:
        low, high = tr.audit({"A": {"auc": "0.90"}}, n=100, design=10, **options)["auc"]  # type: ignore[arg-type]
        return high - low

    assert width() == pytest.approx(0.01)
    assert width(rounding=0.001) == pytest.approx(0.001)


def of_all_candidates(metric: str, mean: float | str, users: int, rounding: float | None = 0.0) -> tuple[float, float]:
    """Return the range if all candidates are "sampled": that of the expectation of the mean over the users."""
    return tr.audit({"A": {metric: mean}}, n=5, design=4, users=users, rounding=rounding)["A", metric]


@pytest.mark.parametrize(("users", "hits"), [(10, range(11)), (50, (0, 1, 7, 49, 50)), (1_000, (0, 3, 500, 1_000))])
def test_shares_of_users_have_the_interval_of_clopper_and_pearson(users: int, hits: tuple[int, ...]) -> None:
    for count in hits:
        expected = stats.binomtest(count, users).proportion_ci(0.95, "exact")
        found = of_all_candidates("recall@1", count / users, users)
        np.testing.assert_allclose(found, (expected.low, expected.high), atol=1e-6)


@pytest.mark.parametrize("users", [10, 50, 1_000])
@pytest.mark.parametrize("chance", [0.0005, 0.002, 0.01, 0.05, 0.3, 0.99, 0.999])
def test_shares_of_users_are_covered_at_least_as_often_as_stated(users: int, chance: float) -> None:
    likely = [hits for hits in range(users + 1) if stats.binom.pmf(hits, users, chance) > 1e-5]
    ranges = [of_all_candidates("recall@1", hits / users, users) for hits in likely]
    covered = [low - 1e-7 <= chance <= high + 1e-7 for low, high in ranges]
    weights = stats.binom.pmf(likely, users, chance)
    assert weights @ np.array(covered) + (1 - weights.sum()) >= 0.95


@pytest.mark.parametrize("law", [(0.9, 0.1, 0.0), (0.98, 0.01, 0.01), (0.0, 0.5, 0.5), (0.1, 0.0, 0.9)])
def test_other_means_are_covered_at_least_as_often_as_stated(law: tuple[float, float, float]) -> None:
    """Ranks beyond 2, of 2 and of 1; all outcomes of ten users."""
    at, users, covered = np.array([0.0, 1 / np.log2(3), 1.0]), 10, 0.0
    for second in range(users + 1):
        for first in range(users + 1 - second):
            counts = np.array([users - first - second, second, first])
            low, high = of_all_candidates("ndcg@2", float(counts @ at) / users, users)
            chance = comb(users, first) * comb(users - first, second) * np.prod(np.power(law, counts))
            covered += chance * (low - 1e-7 <= np.dot(law, at) <= high + 1e-7)
    assert covered >= 0.95


def test_other_means_have_the_interval_of_hoeffding() -> None:
    """The ends are where the mean has a divergence of log(40) per user."""
    for mean in (0.3, 0.95):
        low, high = of_all_candidates("ndcg@2", mean, 400)
        for end in (low, high):
            assert 400 * stats.entropy([mean, 1 - mean], [end, 1 - end]) == pytest.approx(log(40), rel=1e-4)
        assert low < mean < high
    assert of_all_candidates("ndcg@2", 0.0, 10) == pytest.approx((0.0, 1 - 0.025 ** (1 / 10)), abs=1e-6)


def test_rounded_shares_are_those_of_all_counts_that_round_to_them() -> None:
    assert of_all_candidates("recall@1", "0.0000", 10, None) == pytest.approx((0.0, 1 - 0.025 ** (1 / 10)), abs=1e-6)
    least, most = (stats.binomtest(hits, 1_000).proportion_ci(0.95, "exact") for hits in (115, 125))
    assert of_all_candidates("recall@1", "0.12", 1_000, None) == pytest.approx((least.low, most.high), abs=1e-6)
    between = (stats.binomtest(3, 10).proportion_ci(0.95, "exact").low, stats.binomtest(4, 10).proportion_ci().high)
    assert of_all_candidates("recall@1", "0.333", 10, None) == pytest.approx(between, abs=1e-6)


def test_several_numbers_share_the_error() -> None:
    found = tr.audit({"A": {"recall@1": 0.0, "recall@2": 0.1}}, n=5, design=4, users=20, rounding=0.0)["A", "recall@2"]
    expected = stats.binomtest(2, 20).proportion_ci(0.975, "exact")
    np.testing.assert_allclose(found, (expected.low, expected.high), atol=1e-6)


@pytest.mark.parametrize(
    ("published", "options", "message"),
    [
        ({}, {}, "at least one system"),
        ({"A": {}}, {}, "at least one system, each with at least one number"),
        ({"A": {"ap": "high"}}, {}, "ap of A must be a number such as 0.6619, got 'high'"),
        ({"A": {"recall@10": 66.19}}, {}, "no distribution of ranks gives the numbers of A"),
        ({"A": {"ap": 0.5}}, {"n": 1}, "`n` must lie in 2"),
        ({"A": {"ap": 0.5}}, {"design": 100}, "`m` must be at most"),
        ({"A": {"ap": 0.5}}, {"assume": "luck"}, "`assume` must be one of 'nothing', 'falling', 'smooth', got 'luck'"),
        ({"A": {"recall@10": 66.19}}, {"users": 50}, "no distribution of ranks gives the numbers of A"),
        ({"A": {"recall@10": 0.5}}, {"design": 5, "users": 50}, "no distribution of ranks gives the numbers of A"),
        ({"A": {"marp@5": 0.5}}, {}, "depends on grades"),
    ],
)
def test_what_is_refused(published: dict[str, dict[str, float]], options: dict[str, int], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.audit(published, **{"n": 100, "design": 10, **options})  # type: ignore[arg-type]


def test_a_metric_that_was_published_plain_and_corrected_has_one_range() -> None:
    assert tr.audit({"X": {"ap": 0.3, "ap~bv(0.1)": 0.1}}, n=1_000, design=100, users=500).metrics == ("ap",)
