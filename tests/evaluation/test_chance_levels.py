"""Chance levels against all orders of a few candidates."""

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import truerank as tr
from truerank.evaluation.estimates import ChanceLevel


def chance_level(ranks: tr.Ranks, metric: str) -> ChanceLevel:
    found = tr.estimate(ranks, metric, chance=True)
    assert found.chance is not None
    return found.chance


@pytest.mark.parametrize("metric", ["ap", "rr", "ndcg@2", "recall@2", "precision@3", "auc", "mean-rank"])
def test_chance_is_the_mean_over_all_orders(metric: str) -> None:
    ranks = tr.Ranks.from_ranks([[1, 4], [3]], n=5)
    means = []
    for n_relevant in (2, 1):
        every = [order[:n_relevant] for order in permutations(range(1, 6))]
        means.append(tr.values(tr.Ranks.from_ranks([sorted(order) for order in every], n=5), metric).mean())
    level = chance_level(ranks, metric)
    assert level.random == pytest.approx(sum(means) / 2, rel=1e-12)
    assert level.mean == tr.estimate(ranks, metric).mean
    assert level.best == tr.estimate(tr.Ranks.from_ranks([[1, 2], [1]], n=5), metric).mean
    assert chance_level(tr.Ranks.from_ranks([[1, 2], [1]], n=5), metric).adjusted == 1.0


def test_chance_levels_add_up_with_their_estimates() -> None:
    ranks = tr.Ranks.from_ranks([[1, 4], [3], [], [2]], n=5)
    halves = [tr.estimate(ranks[own], "ap", chance=True) for own in (slice(0, 1), slice(1, 4))]
    found, whole = (halves[0] + halves[1]).chance, chance_level(ranks, "ap")
    assert found is not None
    assert (found.mean, found.random, found.best, found.n) == pytest.approx(
        (whole.mean, whole.random, whole.best, 3), rel=1e-14
    )
    assert tr.estimate(ranks, "ap").chance is None
    assert (halves[0] + tr.estimate(ranks, "ap")).chance is None


def test_graded_metrics() -> None:
    grades = [3.0, 1.0]
    places = [order[:2] for order in permutations(range(1, 5))]
    every = tr.Ranks.from_ranks([list(order) for order in places], n=4, grades=[grades] * len(places))
    ranks = tr.Ranks.from_ranks([[2, 1]], n=4, grades=[grades])
    level = chance_level(ranks, "gndcg@3")
    assert level.random == pytest.approx(tr.values(every, "gndcg@3").mean(), rel=1e-12)
    assert level.best == pytest.approx(1.0)
    only = chance_level(tr.Ranks.from_ranks([[2, 1]], n=2, grades=[grades]), "gndcg@3")
    assert only.mean < only.random < only.best


@pytest.mark.parametrize("metric", ["ap", "auc"])
def test_inverse_sampling_without_bias(metric: str) -> None:
    exact = tr.Ranks.from_ranks([3, 17, 250, 900] * 50, n=1_000)
    sampled = tr.InverseSampling(2).draw(exact, rng=1)
    level = chance_level(sampled, metric)
    assert level.mean == tr.estimate(sampled, f"{metric}~unbiased").mean
    assert level.random == pytest.approx(chance_level(exact, metric).random, rel=0.2)
    assert level.best == pytest.approx(1.0)


def test_lists_that_were_cut_have_no_chance_level() -> None:
    with pytest.raises(tr.InputError, match="unknown for ranks that are cut"):
        chance_level(tr.read_lists({"ann": ["a"]}, {"ann": ["a"]}), "rr")
    assert math.isnan(chance_level(tr.Ranks.from_ranks([[]], n=3), "rr").adjusted)


def popular(n_users: int, n_items: int = 400, seed: int = 0) -> tuple[np.ndarray[Any, Any], tr.Split]:
    """Return scores by which users choose items, and what they chose: some items are far more popular than others."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_users, n_items)) + 3 * rng.gumbel(size=n_items)
    best = np.argsort(-(scores + rng.gumbel(size=scores.shape)), axis=1)[:, :6]
    train = tr.Interactions.of([row[1:].tolist() for row in best], "train", n_items=n_items)
    return scores, tr.Split(train, tr.Interactions.of([row[:1].tolist() for row in best], "test", n_items=n_items))


METRICS = ["recall@10", "ndcg@10", "auc"]


def chance_notes(ranks: Any) -> list[str]:
    return [note for note in tr.evaluate(ranks, METRICS).notes if "no better than chance" in note]


@pytest.mark.parametrize("seed", range(5))
def test_scores_in_another_numbering_are_noted(seed: int) -> None:
    scores, split = popular(800, seed=seed)
    assert chance_notes(tr.rank(scores, split)) == []
    mixed = tr.rank(scores[:, np.random.default_rng(seed).permutation(400)], split)
    (note,) = chance_notes(mixed)
    assert note.startswith("recall@10")
    assert note.endswith("check that scores and data number users and items alike")
    sampled = tr.rank_sampled({"right": scores, "wrong": -scores}, split, design=50, rng=seed)
    (note,) = chance_notes(sampled)
    assert note.startswith("wrong: recall@10")


def test_what_is_not_noted() -> None:
    """Few instances, lists that were cut, and recommenders that are weak, but better than chance."""
    rng = np.random.default_rng(0)
    few = tr.Ranks.from_ranks(rng.integers(1, 1001, size=20), n=1000)
    weak = tr.Ranks.from_ranks(np.append(rng.integers(1, 11, size=30), rng.integers(400, 1001, size=970)), n=1000)
    cut = tr.read_lists({user: [1, 2] for user in range(50)}, {user: [3] for user in range(50)}, depth=10)
    assert [chance_notes(ranks) for ranks in (few, weak)] == [[], []]
    assert not any("chance" in note for note in tr.evaluate(cut, "recall@2").notes)
