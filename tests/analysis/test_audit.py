"""What published numbers can mean, against all distributions of a small catalogue."""

from itertools import combinations

import numpy as np
import pytest

import truerank as tr
from truerank.arrays import Floats
from truerank.papers.krichene_rendle_2020.published import TABLE_3


def sampled_at_every_rank(metric: str, n: int, m: int, replace: bool = False) -> Floats:
    """Expected sampled metric of an item at each rank, by `tr.risk`."""
    return tr.risk(tr.Ranks.from_ranks(range(1, n + 1), n=n), metric, m=m, replace=replace).expected


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
    found = tr.audit({"A": {metric: value}}, other, n=n, m=m, replace=replace, rounding=0.01)["A", other]
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
    found = tr.audit({"A": {metric: value}}, "recall@2", n=n, m=m, rounding=0.01, assume="smooth")["A", "recall@2"]
    np.testing.assert_allclose(found, by_enumeration(sampled, exact, value, 0.005), rtol=1e-7, atol=1e-9)


def test_more_numbers_never_widen_the_range_and_it_holds_the_truth() -> None:
    n, m = 200, 20
    counts = np.random.default_rng(0).integers(1, n + 1, 40)
    exact = {name: exact_at_every_rank(name, n)[counts - 1].mean() for name in ("recall@10", "ap")}
    shown = {name: float(sampled_at_every_rank(name, n, m)[counts - 1].mean()) for name in ("recall@5", "ap", "auc")}
    last = dict.fromkeys(exact, (-np.inf, np.inf))
    for size in range(1, len(shown) + 1):
        numbers = dict(list(shown.items())[:size])
        found = tr.audit({"A": numbers}, list(exact), n=n, m=m, rounding=1e-6)
        for name, value in exact.items():
            low, high = found["A", name]
            assert last[name][0] - 1e-9 <= low <= value <= high <= last[name][1] + 1e-9
            last[name] = (low, high)


def test_the_published_order_of_x_and_y_is_not_determined() -> None:
    numbers = {name: round(float(TABLE_3["recall@10", name].split()[1].split("±")[0]) / 100, 4) for name in "XY"}
    assert numbers == {"X": 0.6619, "Y": 0.5651}
    for assume in ("nothing", "falling", "smooth"):
        found = tr.audit(
            {name: {"recall@10": value} for name, value in numbers.items()}, n=3_706, m=100, users=6_040, assume=assume
        )
        assert found.better("X", "Y", "recall@10") is None
        assert found["X", "recall@10"].low < 0.0760 < found["X", "recall@10"].high
        assert found["Y", "recall@10"].low < 0.0884 < found["Y", "recall@10"].high
        assert "do not determine whether X or Y is better" in str(found)


def test_an_order_that_is_determined() -> None:
    found = tr.audit({"A": {"auc": "0.90"}, "B": {"auc": "0.80"}}, ["auc", "mean-rank"], n=100, m=10)
    assert found.better("A", "B", "auc") == found.better("B", "A", "auc") == "A"
    assert found.better("A", "B", "mean-rank") == "A"
    assert "exact auc: A is better than B" in found.conclusions[0]
    touching = tr.audit({"A": {"auc": 0.9}, "B": {"auc": 0.8}}, n=100, m=10)
    assert touching.better("A", "B", "auc") is None


def test_digits_and_users_count() -> None:
    def width(**options: object) -> float:
        low, high = tr.audit({"A": {"auc": "0.90"}}, n=100, m=10, **options)["auc"]  # type: ignore[arg-type]
        return high - low

    assert width() == pytest.approx(0.01)
    assert width(rounding=0.001) == pytest.approx(0.001)
    assert width(users=400) == pytest.approx(0.01 + 2 * 1.959964 * np.sqrt(0.9 * 0.1 / 400), rel=1e-6)


@pytest.mark.parametrize(
    ("published", "options", "message"),
    [
        ({}, {}, "at least one system"),
        ({"A": {}}, {}, "at least one system, each with at least one number"),
        ({"A": {"ap": "high"}}, {}, "ap of A must be a number such as 0.6619, got 'high'"),
        ({"A": {"recall@10": 66.19}}, {}, "no distribution of ranks gives the numbers of A"),
        ({"A": {"ap": 0.5}}, {"n": 1}, "`n` must lie in 2"),
        ({"A": {"ap": 0.5}}, {"m": 100}, "`m` must be at most"),
        ({"A": {"ap": 0.5}}, {"assume": "luck"}, "`assume` must be one of 'nothing', 'falling', 'smooth', got 'luck'"),
        ({"A": {"marp@5": 0.5}}, {}, "depends on grades"),
    ],
)
def test_what_is_refused(published: dict[str, dict[str, float]], options: dict[str, int], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.audit(published, **{"n": 100, "m": 10, **options})  # type: ignore[arg-type]
