"""Chance levels against all orders of a few candidates."""

import math
from itertools import permutations

import pytest

import truerank as tr


@pytest.mark.parametrize("metric", ["ap", "rr", "ndcg@2", "recall@2", "precision@3", "auc", "mean-rank"])
def test_chance_is_the_mean_over_all_orders(metric: str) -> None:
    ranks = tr.Ranks.from_ranks([[1, 4], [3]], n=5)
    means = []
    for n_relevant in (2, 1):
        every = [order[:n_relevant] for order in permutations(range(1, 6))]
        means.append(tr.values(tr.Ranks.from_ranks([sorted(order) for order in every], n=5), metric).mean())
    level = tr.chance_level(ranks, metric)
    assert level.chance == pytest.approx(sum(means) / 2, rel=1e-12)
    assert level.mean == tr.estimate(ranks, metric).mean
    assert level.best == tr.estimate(tr.Ranks.from_ranks([[1, 2], [1]], n=5), metric).mean
    assert tr.chance_level(tr.Ranks.from_ranks([[1, 2], [1]], n=5), metric).adjusted == 1.0


def test_graded_metrics() -> None:
    grades = [3.0, 1.0]
    places = [order[:2] for order in permutations(range(1, 5))]
    every = tr.Ranks.from_ranks([list(order) for order in places], n=4, grades=[grades] * len(places))
    ranks = tr.Ranks.from_ranks([[2, 1]], n=4, grades=[grades])
    level = tr.chance_level(ranks, "gndcg@3")
    assert level.chance == pytest.approx(tr.values(every, "gndcg@3").mean(), rel=1e-12)
    assert level.best == pytest.approx(1.0)
    only = tr.chance_level(tr.Ranks.from_ranks([[2, 1]], n=2, grades=[grades]), "gndcg@3")
    assert only.mean < only.chance < only.best


def test_lists_that_were_cut_have_no_chance_level() -> None:
    with pytest.raises(tr.InputError, match="unknown for lists that were cut"):
        tr.chance_level(tr.read_lists({"ann": ["a"]}, {"ann": ["a"]}), "rr")
    assert math.isnan(tr.chance_level(tr.Ranks.from_ranks([[]], n=3), "rr").adjusted)
