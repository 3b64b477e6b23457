"""The order of many recommenders: what is said of it follows from the verdicts, and together is rarely wrong."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

import truerank as tr
from tests.arrays import Floats


def ranks_of(chances: Any, users: int, rng: np.random.Generator, shared: float = 0.0) -> dict[str, tr.Ranks]:
    """Return ranks of 1 or 500, the former with these chances; recommenders are named by their place."""
    draws = rng.random((users, len(chances)))
    same = rng.random(users) < shared
    draws[same] = draws[same, :1]
    return {
        str(at): tr.Ranks.from_ranks(np.where(draws[:, at] < chance, 1, 500), n=1_000)
        for at, chance in enumerate(chances)
    }


@pytest.mark.parametrize("adjustment", ["holm", "max-t", "tukey"])
def test_order_restates_the_verdicts(adjustment: Any) -> None:
    result = tr.compare(
        ranks_of([0.1, 0.2, 0.22, 0.25, 0.5], 800, np.random.default_rng(0)), "rr", adjustment=adjustment, rng=0,
        replicates=500,
    )  # fmt: skip
    order = result.order()
    assert [each.mean for each in order] == sorted((each.mean for each in order), reverse=True)
    winners = {frozenset((each.recommender, each.baseline)): each.finding.winner for each in result}
    for place in order:
        own = [winner for pair, winner in winners.items() if place.recommender in pair]
        assert place.first == 1 + sum(winner not in (None, place.recommender) for winner in own)
        assert place.last == 5 - sum(winner == place.recommender for winner in own)
    for one, other in combinations(map(str, range(5)), 2):
        share = set(order[one].groups) & set(order[other].groups)
        assert bool(share) == (winners[frozenset((one, other))] is None)
    assert order.best == ("4",)
    assert order.conclusion == "4 is best (95 %)."


def places_by_bootstrap(values: Floats, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return ranges of places as csranks defines them, slowly: intervals of all differences that hold together.

    Mogstad, Romano, Shaikh and Wilhelm (2024): a place is after all those whose difference from it is above 0 for sure,
    and before all those whose difference is below 0 for sure.
    """
    users, count = values.shape
    pairs = [(one, other) for one in range(count) for other in range(count) if one != other]
    gaps = {pair: values[:, pair[0]] - values[:, pair[1]] for pair in pairs}
    errors = {pair: own.std(ddof=1) / users**0.5 for pair, own in gaps.items()}
    largest = []
    for _ in range(2_000):
        drawn = rng.integers(users, size=users)
        largest.append(max((own[drawn].mean() - own.mean()) / errors[pair] for pair, own in gaps.items()))
    critical = np.quantile(largest, 0.95)
    better = [sum(gaps[k, j].mean() > critical * errors[k, j] for k in range(count) if k != j) for j in range(count)]
    worse = [sum(gaps[j, k].mean() > critical * errors[j, k] for k in range(count) if k != j) for j in range(count)]
    return [(1 + above, count - below) for above, below in zip(better, worse, strict=True)]


def test_places_are_those_of_csranks() -> None:
    rng = np.random.default_rng(6)
    ranks = ranks_of([0.1, 0.2, 0.21, 0.22, 0.4], 600, rng)
    order = tr.compare(ranks, "rr", adjustment="max-t").order()
    expected = places_by_bootstrap(np.stack([tr.values(one, "rr") for one in ranks.values()], axis=1), rng)
    assert [(order[str(at)].first, order[str(at)].last) for at in range(5)] == expected
    assert expected == [(5, 5), (2, 4), (2, 4), (2, 4), (1, 1)]


def test_who_may_be_best_and_groups() -> None:
    result = tr.compare(ranks_of([0.1, 0.5, 0.5], 300, np.random.default_rng(1)), "rr")
    order = result.order("rr")
    assert set(order.best) == {"1", "2"}
    assert order.conclusion == f"one of {', '.join(order.best)} is best (95 %)."
    assert [set(own) for own in order.groups] == [{"1", "2"}, {"0"}]
    assert (order["0"].places, order[0].places, order["0"].letters) == ("3", "1 to 2", "b")
    assert tr.compare(ranks_of([0.3] * 3, 50, np.random.default_rng(2)), "rr").order().conclusion == (
        "any may be best (95 %)."
    )


def test_less_is_better_for_mean_ranks() -> None:
    order = tr.compare(ranks_of([0.1, 0.5, 0.9], 300, np.random.default_rng(1)), "mean-rank").order()
    assert [each.recommender for each in order] == ["2", "1", "0"]


def test_orders_of_groups_and_of_several_metrics() -> None:
    ranks = ranks_of([0.1, 0.5, 0.5], 300, np.random.default_rng(1))
    result = tr.compare(ranks, ["rr", "auc"], by={at: ("even", "odd")[at % 2] for at in range(300)})
    assert result.order("auc", "odd").group == "odd"
    with pytest.raises(tr.InputError, match="`group` must be 'even' or 'odd', got ''"):
        result.order("auc")
    with pytest.raises(tr.InputError, match="`metric` must be 'rr' or 'auc'"):
        result.order("ap", "odd")


def test_what_gives_no_order() -> None:
    ranks = ranks_of([0.1, 0.5, 0.5], 60, np.random.default_rng(1))
    with pytest.raises(tr.InputError, match="all pairs, so compare without `baseline`"):
        tr.compare(ranks, "rr", baseline="0").order()
    with pytest.raises(tr.InputError, match="needs adjustment 'holm', 'max-t' or 'tukey', got 'none'"):
        tr.compare(ranks, "rr", adjustment="none").order()


def test_one_baseline_is_less_to_allow_for_than_all_pairs() -> None:
    ranks = ranks_of([0.3] * 6, 400, np.random.default_rng(3), shared=0.5)
    every, some = (tr.compare(ranks, "rr", adjustment="max-t", baseline=name) for name in (None, "0"))
    holm = tr.compare(ranks, "rr", baseline="0")
    assert [(each.recommender, each.baseline) for each in some] == [(str(at), "0") for at in range(1, 6)]
    assert every[0].adjusted_level > some[0].adjusted_level > 0.95
    assert some[0].adjusted_level < holm[0].adjusted_level
    assert some["3", "0"].difference == pytest.approx(every["3", "0"].difference)
    middle = tr.compare(ranks, "rr", adjustment="max-t", baseline="3")
    assert middle["1", "3"].difference == pytest.approx(every["1", "3"].difference)
    assert all(each.baseline == "3" for each in middle)


def test_several_metrics_and_groups_share_the_error() -> None:
    ranks = ranks_of([0.3] * 3, 400, np.random.default_rng(3))
    one, two = (tr.compare(ranks, metrics, adjustment="max-t") for metrics in ("rr", ["rr", "recall@10"]))
    assert two[0].adjusted_level > one[0].adjusted_level
    assert two[0].adjusted_p_value == pytest.approx(min(2 * one[0].adjusted_p_value, 1.0))


@pytest.mark.parametrize("adjustment", ["max-t", "holm"])
@pytest.mark.parametrize(
    ("chances", "users", "shared"),
    [([0.2] * 6, 100, 0.0), ([0.97] * 6, 60, 0.0), ([0.2] * 6, 100, 0.9), ([0.2, 0.2, 0.2, 0.35], 100, 0.0)],
)
def test_all_that_is_said_together_is_rarely_wrong(adjustment: Any, chances: Any, users: int, shared: float) -> None:
    rng, times, wrong = np.random.default_rng(4), 60, 0
    for _ in range(times):
        found = tr.compare(ranks_of(chances, users, rng, shared), "rr", adjustment=adjustment)
        winners = [(each.finding.winner, each.recommender, each.baseline) for each in found]
        wrong += any(
            winner is not None and chances[int(winner)] <= chances[int(one if winner == other else other)]
            for winner, one, other in winners
        )
    assert wrong / times < 0.05 + 5 * (0.05 * 0.95 / times) ** 0.5


def test_tukey_needs_single_exact_values() -> None:
    ranks = ranks_of([0.3] * 3, 40, np.random.default_rng(0))
    with pytest.raises(tr.InputError, match="adjustment='tukey' needs one run of exact ranks"):
        tr.compare({name: [one, one] for name, one in ranks.items()}, "rr", adjustment="tukey")
    sampled = {name: tr.UniformSampling(20).draw(one, rng=0) for name, one in ranks.items()}
    with pytest.raises(tr.InputError, match="adjustment='tukey' needs one run of exact ranks"):
        tr.compare(sampled, "rr", adjustment="tukey")


def test_shares_of_users_who_are_better_off() -> None:
    a, b = tr.Ranks.from_ranks([1, 2, 3, 4] * 25, n=9), tr.Ranks.from_ranks([1, 1, 2, 9] * 25, n=9)
    result = tr.compare({"A": a, "B": b}, ["rr", "mean-rank"])
    for found in result:
        assert (found.better_off, found.worse_off) == (0.5, 0.25)
        assert (found.reversed().better_off, found.reversed().worse_off) == (0.25, 0.5)
        assert found.record()["better_off"] == 0.5
    wanted = stats.binomtest(50, 100).proportion_ci(0.9)
    assert result[0].better_off_interval(0.9) == pytest.approx((wanted.low, wanted.high))
    assert tr.compare({"A": a, "B": a}, "rr")[0].better_off_interval().low == 0
    sampled = {name: tr.UniformSampling(3).draw(one, rng=0) for name, one in {"A": a, "B": b}.items()}
    assert np.isnan(tr.compare(sampled, "rr")[0].better_off)
    assert np.isnan(tr.compare(sampled, "rr")[0].better_off_interval().low)


def test_equivalence_is_two_one_sided_tests() -> None:
    rng = np.random.default_rng(5)
    ranks = {name: tr.Ranks.from_ranks(rng.integers(1, 100, size=400), n=100) for name in "AB"}
    found = tr.compare(ranks, "rr", test="t")[0]
    low, high = found.confidence_interval(0.9)
    limit = max(-low, high)
    assert found.equivalent(limit + 1e-9)
    assert not found.equivalent(limit - 1e-9)
    both = tr.compare(ranks, "rr", test="t", margin=limit + 1e-9)[0]
    assert both.finding.kind == "equivalent"
