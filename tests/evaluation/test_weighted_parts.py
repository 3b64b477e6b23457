"""Estimates for groups of items that merge, against those of all instances at once."""

from functools import reduce
from operator import add

import numpy as np
import pytest

import truerank as tr
from truerank.evaluation.estimates import summary


@pytest.mark.parametrize("cuts", [[], [1], [100, 101], [7, 50, 300]])
@pytest.mark.parametrize("name", ["ap", "ndcg@10", "auc"])
def test_parts_merge_to_the_whole(name: str, cuts: list[int]) -> None:
    rng = np.random.default_rng(0)
    ranks, metric = tr.Ranks.from_ranks(rng.integers(1, 60, 400), n=60), tr.metric(name)
    weights = rng.integers(1, 5, 400) / 4
    values = tr.values(ranks, metric) * weights * rng.random(400)
    values[::19] = np.nan
    rows = np.split(np.arange(400), cuts)
    parts = [summary(values[own], ranks[own], metric, "expected", weights=weights[own]) for own in rows]
    found, whole = reduce(add, parts), summary(values, ranks, metric, "expected", weights=weights)
    assert (found.n, found.n_undefined, found.n_tied) == (whole.n, whole.n_undefined, whole.n_tied)
    expected = (whole.mean, whole.standard_error, whole.weight, *whole.confidence_interval())
    assert (found.mean, found.standard_error, found.weight, *found.confidence_interval()) == pytest.approx(
        expected, rel=1e-10
    )
