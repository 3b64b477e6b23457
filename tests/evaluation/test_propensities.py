"""Weights of 1 / propensity: against the definition, in simulations with a known truth, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import truerank as tr

ITEMS = np.array(["a", "b", "c", "d"])
CHANCE = {"a": 0.9, "b": 0.5, "c": 0.1, "d": 0.3}
RANKS = tr.Ranks(
    above=[0, 3, 5, 2, 0, 9],
    n_candidates=20,
    indptr=[0, 3, 4, 6],
    items=["b", "a", "c", "d", "c", "a"],
    ids=list("uvw"),
)


def slow(ranks: tr.Ranks, k: int, chance: dict[str, float]) -> tuple[float, float]:
    """Return recall@k and its linearised error, term by term."""
    assert ranks.items is not None
    sums, weights = np.zeros(len(ranks)), np.zeros(len(ranks))
    for rank, item, user in zip(ranks.rank, ranks.items, ranks.instance, strict=True):
        share = 1 / chance[str(item)] / ranks.n_relevant[user]
        sums[user] += share * (rank <= k)
        weights[user] += share
    mean = sums.sum() / weights.sum()
    n, gaps = len(ranks), sums - mean * weights
    return mean, math.sqrt(n / (n - 1) * (gaps**2).sum()) / weights.sum()


@pytest.mark.parametrize(
    "given", [CHANCE, tr.Propensity(ITEMS, np.array(list(CHANCE.values())))], ids=["dict", "object"]
)
def test_mean_and_error_are_those_of_the_definition(given: Any) -> None:
    found = tr.evaluate(RANKS, "recall@5", propensity=given)["recommender", "recall@5"]
    mean, error = slow(RANKS, 5, CHANCE)
    assert (found.mean, found.standard_error) == pytest.approx((mean, error), rel=1e-12)
    weights = np.array([(2 + 1 / 0.9 + 10) / 3, 1 / 0.3, (10 + 1 / 0.9) / 2])
    assert found.n_effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-3)
    assert "effective sample size 3 of 3" in found.notes[0]


def test_equal_propensities_change_nothing() -> None:
    equal = tr.evaluate(RANKS, ["recall@5", "ndcg@5", "auc"], propensity=dict.fromkeys(CHANCE, 0.4))
    plain = tr.evaluate(RANKS, ["recall@5", "ndcg@5", "auc"])
    for metric in plain.metrics:
        one, other = equal["recommender", metric], plain["recommender", metric]
        assert (one.mean, one.standard_error) == pytest.approx((other.mean, other.standard_error), rel=1e-12)
        assert one.n_effective == pytest.approx(3)


def test_parts_of_the_users_add_up() -> None:
    whole = tr.evaluate(RANKS, "recall@5", propensity=CHANCE)["recommender", "recall@5"]
    parts = [tr.evaluate(RANKS[own], "recall@5", propensity=CHANCE)["recommender", "recall@5"] for own in ([0, 2], [1])]
    both = parts[0] + parts[1]
    assert (both.mean, both.standard_error) == pytest.approx((whole.mean, whole.standard_error), rel=1e-12)
    assert both.n_effective == pytest.approx(whole.n_effective)
    with pytest.raises(tr.InputError, match="estimates by propensity can't be added to others"):
        parts[0] + tr.estimate(RANKS, "recall@5")


def test_users_with_several_instances_are_one_unit() -> None:
    twice = tr.Ranks.concatenate([RANKS, RANKS])
    found, once = (tr.evaluate(one, "recall@5", propensity=CHANCE)["recommender", "recall@5"] for one in (twice, RANKS))
    assert (found.mean, found.standard_error) == pytest.approx((once.mean, once.standard_error), rel=1e-12)
    assert found.n_effective == pytest.approx(once.n_effective)


def test_groups_have_weights_of_their_own() -> None:
    groups = tr.by_column(pd.DataFrame({"item": ITEMS, "kind": ["head", "head", "tail", "tail"]}), items=True)
    found = tr.evaluate(RANKS, "recall@5", by=groups, propensity=CHANCE)
    head = (2 / 3 + 1 / 0.9 / 3) / (2 / 3 + 1 / 0.9 / 3 + 1 / 0.9 / 2)
    assert found["recommender", "recall@5", "head"].mean == pytest.approx(head)
    by_user = tr.evaluate(RANKS, "recall@5", by={"u": "x", "v": "y", "w": "x"}, propensity=CHANCE)
    assert by_user["recommender", "recall@5", "x"].mean == pytest.approx(slow(RANKS[[0, 2]], 5, CHANCE)[0])


def test_propensities_of_users_and_items_from_columns() -> None:
    rows = [("u", "a", 0.5), ("u", "b", 0.25), ("u", "c", 1.0), ("v", "d", 0.1), ("w", "a", 0.2), ("w", "c", 0.8)]
    frame = pd.DataFrame(rows, columns=["user", "item", "propensity"])
    found = tr.evaluate(RANKS, "recall@5", propensity=frame)["recommender", "recall@5"].mean
    above = (4 + 2) / 3 + 10 + 1.25 / 2
    assert found == pytest.approx(above / (7 / 3 + 10 + 6.25 / 2))
    assert (
        found
        == tr.evaluate(RANKS, "recall@5", propensity=frame.sample(frac=1, random_state=1))[
            "recommender", "recall@5"
        ].mean
    )


def test_propensities_in_columns_of_the_same_name() -> None:
    with pytest.raises(tr.InputError, match="several columns of the same name"):
        tr.evaluate(RANKS, "recall@5", propensity=pd.DataFrame([["a", 0.5]], columns=["item", "item"]))


def test_propensities_from_popularity() -> None:
    train = [[0, 1, 2], [0, 1], [0], [0], []]
    assert tr.popularity_propensity(train, 1.0).chance.tolist() == [1.0, 0.5, 0.25]
    assert tr.popularity_propensity(train, 1.0, offset=1, clip=0.5).chance.tolist() == [1.0, 0.6, 0.5]
    labels = tr.popularity_propensity(train, 0.55, form="labels").chance
    constant = (math.log(5) - 1) * 2.5**0.55
    assert labels == pytest.approx([1 / (1 + constant * (count + 1.5) ** -0.55) for count in (4, 2, 1)], rel=1e-12)


N_ITEMS, N_USERS = 200, 400


def logged(rng: np.random.Generator) -> tuple[tr.Ranks, tr.Ranks, float, float]:
    """Return ranks of two recommenders on a log that shows popular items more often, and both true recalls.

    Each user has one relevant item, all equally likely; it is logged with a chance that falls with its number. The
    first recommender knows popular items only, the second unpopular ones better.
    """
    chance = (np.arange(N_ITEMS) + 1.0) ** -0.5
    relevant = rng.integers(0, N_ITEMS, 10 * N_USERS)
    seen = relevant[rng.random(relevant.size) < chance[relevant]][:N_USERS]
    finds = np.where(np.arange(N_ITEMS) < 50, 0.9, 0.2), np.where(np.arange(N_ITEMS) < 50, 0.1, 0.6)
    both = (
        tr.Ranks(above=np.where(rng.random(seen.size) < own[seen], 0, 50), n_candidates=N_ITEMS, items=seen)
        for own in finds
    )
    return *both, *(float(own.mean()) for own in finds)  # type: ignore[return-value]


def test_bias_is_removed_and_intervals_cover() -> None:
    chance = tr.Propensity(np.arange(N_ITEMS), 1 / np.sqrt(np.arange(N_ITEMS) + 1.0))
    rng, times = np.random.default_rng(0), 100
    found, plain, covered, differs = [], [], 0, 0
    for _ in range(times):
        one, other, true, other_true = logged(rng)
        estimate = tr.evaluate(one, "recall@10", propensity=chance)["recommender", "recall@10"]
        low, high = estimate.confidence_interval()
        covered += low <= true <= high
        found.append(estimate.mean)
        plain.append(tr.estimate(one, "recall@10").mean)
        gap = tr.compare({"A": one, "B": other}, "recall@10", propensity=chance)["B", "A", "recall@10"]
        differs += gap.confidence_interval().low <= other_true - true <= gap.confidence_interval().high
    error = np.std(found) / math.sqrt(times)
    assert np.mean(plain) > true + 0.1, "the log flatters what it shows"
    assert abs(np.mean(found) - true) < 5 * error + 0.005  # a ratio has a bias of the order of 1 / n
    assert min(covered, differs) / times > 0.95 - 5 * math.sqrt(0.95 * 0.05 / times)


def test_comparisons_have_the_means_of_evaluations() -> None:
    rng = np.random.default_rng(1)
    one, other, *_ = logged(rng)
    chance = tr.Propensity(np.arange(N_ITEMS), 1 / np.sqrt(np.arange(N_ITEMS) + 1.0))
    both = {"A": one, "B": other}
    gap, means = (
        tr.compare(both, "ndcg@10", propensity=chance)["B", "A", "ndcg@10"],
        tr.evaluate(both, "ndcg@10", propensity=chance),
    )
    assert gap.mean == pytest.approx(means["B", "ndcg@10"].mean)
    assert gap.difference == pytest.approx(means["B", "ndcg@10"].mean - means["A", "ndcg@10"].mean)
    assert tr.compare(both, "ndcg@10")["B", "A", "ndcg@10"].verdict == "A is better"
    assert gap.difference > 0


SAMPLED = tr.UniformSampling(3).draw(RANKS, rng=0)


@pytest.mark.parametrize(
    ("ranks", "metric", "given", "message"),
    [
        (RANKS, "ap", CHANCE, "ap counts the other relevant items above each one"),
        (RANKS, "rr", CHANCE, "rr counts the other relevant items above each one"),
        (RANKS, "recall@5", {"a": 0.5}, "the relevant item 'b' has no propensity"),
        (RANKS, "recall@5", {}, "the relevant item 'b' has no propensity"),
        (RANKS, "recall@5", CHANCE | {"d": 0.0}, "the relevant item 'd' has a propensity of 0"),
        (RANKS, "recall@5", CHANCE | {"d": 1e-300}, "the relevant item 'd' has a propensity below 1e-100"),
        (RANKS, "recall@5", CHANCE | {"d": 1.5}, "a propensity must lie in 0..1, got 1.5 for item 'd'"),
        (RANKS, "recall@5", CHANCE | {"d": math.nan}, "a propensity must lie in 0..1, got nan for item 'd'"),
        (RANKS, "recall@5", 3, "`propensity` must be a Propensity, a dict"),
        (tr.Ranks.from_ranks([1], n=5), "recall@5", CHANCE, "needs ranks that know their items"),
        (SAMPLED, "recall@5~bv(0.1)", CHANCE, "needs exact ranks or unbiased estimates"),
        (SAMPLED, "recall@5", CHANCE, "needs exact ranks or unbiased estimates"),
    ],
)
def test_refusals(ranks: tr.Ranks, metric: str, given: Any, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.evaluate(ranks, metric, propensity=given)
    with pytest.raises(tr.InputError, match=message):
        tr.compare({"A": ranks, "B": ranks}, metric, propensity=given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], ["often"]), "`chance` must be an array of numbers"),
        ((["a", "b"], [0.5]), r"`items` must be one-dimensional and have the length of `chance` \(1\)"),
        ((["a"], [0.5], [["u"]]), r"`ids` must be one-dimensional and have the length of `chance` \(1\)"),
    ],
)
def test_arrays_that_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.Propensity(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"power": -1}, "`power` must be a number from 0, got -1"),
        ({"offset": -1}, "`offset` must be a number from 0, got -1"),
        ({"clip": 0}, "the least propensity must be above 0 and at most 1, got 0"),
    ],
)
def test_laws_of_popularity_that_are_refused(options: Any, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.popularity_propensity([[0]], **options)


def test_metrics_of_all_instances_are_refused() -> None:
    with pytest.raises(tr.InputError, match="median-rank is of all instances together"):
        tr.evaluate(RANKS, "median-rank", propensity=CHANCE)


def test_items_are_found_by_number_or_text() -> None:
    ranks = tr.Ranks(above=[0, 7, 2], n_candidates=20, items=[3, 1, 2])
    by_text, by_number = (
        tr.evaluate(ranks, "recall@5", propensity={kind(item): 0.2 * item for item in (1, 2, 3)})["recall@5"].mean
        for kind in (str, int)
    )
    assert by_text == by_number == pytest.approx((1 / 0.6 + 1 / 0.4) / (1 / 0.6 + 1 / 0.2 + 1 / 0.4))


def test_one_relevant_item_allows_ap() -> None:
    single = tr.Ranks(above=[0, 4], n_candidates=9, items=["a", "c"])
    found = tr.evaluate(single, "ap", propensity=CHANCE)["recommender", "ap"].mean
    assert found == pytest.approx((1 / 0.9 + 0.2 / 0.1) / (1 / 0.9 + 1 / 0.1))


def test_unbiased_estimates_can_be_weighted() -> None:
    decided = tr.InverseSampling(2, decide=5).draw(RANKS, rng=0)
    found = tr.evaluate(decided, "recall@5", propensity=CHANCE)
    assert found.metrics == ("recall@5~unbiased",)
