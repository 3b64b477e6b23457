"""Scores of pairs against chains of products and the scores that are counted; counts of samples against loops."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import truerank as tr
from truerank.kernels import library
from truerank.kernels.factors import count_sampled, score_pairs

NUMBERS = (np.float32, np.float64)


@pytest.fixture(params=["compiled", "numpy"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "numpy":
        monkeypatch.setattr(library, "load", lambda: None)
    return str(request.param)


def chain(user: Any, item: Any) -> float:
    """Add products one after the other, with one rounding to float64 each."""
    total = 0.0
    for one, other in zip(user.tolist(), item.tolist(), strict=True):
        total = float(Fraction(one) * Fraction(other) + Fraction(total))
    return total


@pytest.mark.parametrize("depth", [1, 2, 3, 7, 21])
def test_a_score_is_a_chain_of_products(depth: int) -> None:
    rng = np.random.default_rng(depth)
    users, items, bias = (rng.standard_normal(shape) for shape in ((5, depth), (40, depth), (40,)))
    rows, columns = np.sort(rng.integers(0, 5, 90)), rng.integers(0, 40, 90)
    found = score_pairs(users, items, rows, columns)
    chains = [chain(users[user], items[item]) for user, item in zip(rows, columns, strict=True)]
    assert found.tolist() == chains
    assert score_pairs(users, items, rows, columns, item_bias=bias).tolist() == (chains + bias[columns]).tolist()


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("depth", [0, 1, 6, 33])
def test_scores_of_pairs_equal_products(path: str, number: Any, depth: int) -> None:
    """Whole numbers, whose sums are exact, in any order of users, and from arrays of any strides."""
    rng = np.random.default_rng(depth)
    users, items = (rng.integers(-9, 10, (n, 2 * depth)).astype(number)[:, ::2] for n in (11, 70))
    bias = rng.integers(-9, 10, 70).astype(number)
    rows, columns = rng.integers(0, 11, 500), rng.integers(0, 70, 500)
    expected = (users @ items.T + bias)[rows, columns]
    for factors in ((users, items), (np.asfortranarray(users), items.copy())):
        found = score_pairs(*factors, rows, columns, item_bias=bias)
        assert found.dtype == number
        np.testing.assert_array_equal(found, expected)
    mixed = score_pairs(users.astype(np.float32), items.astype(np.float64), rows, columns, item_bias=bias)
    assert mixed.dtype == np.float64
    np.testing.assert_array_equal(mixed, expected)


def test_no_pairs(path: str) -> None:
    nothing = np.zeros(0, np.int64)
    assert score_pairs(np.ones((2, 3)), np.ones((4, 3)), nothing, nothing).shape == (0,)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("biased", [False, True])
def test_a_sample_of_all_candidates_gives_the_exact_ranks(number: Any, biased: bool) -> None:
    """Items whose rows are equal tie, and items whose scores nearly tie are ordered in the same way."""
    rng = np.random.default_rng(0)
    users, items = rng.standard_normal((50, 37)).astype(number), rng.standard_normal((300, 37)).astype(number)
    items[100:200] = items[:100]
    items[200:] = np.nextafter(items[:100], number(9))
    factors = tr.Factors(users, items, items[:, 0] if biased else None)
    test = [rng.choice(300, 3, replace=False).tolist() for _ in users]
    exact, sampled = tr.rank(factors, test=test), tr.rank_sampled(factors, test=test, design=297, rng=0)
    assert exact.tied.sum() >= 50
    np.testing.assert_array_equal(sampled.above, exact.above)
    np.testing.assert_array_equal(sampled.tied, exact.tied)
    np.testing.assert_array_equal(sampled.items, exact.items)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("most", [2, 90, 1500])
def test_counts_of_samples_equal_loops(path: str, number: Any, most: int) -> None:
    rng = np.random.default_rng(most)
    own_bounds, bounds = (np.cumsum([0, *rng.integers(0, size, 9)]) for size in (most, 2500))
    own, sampled = (rng.integers(0, 60, each[-1]).astype(number) for each in (own_bounds, bounds))
    counts = count_sampled(own, own_bounds, sampled, bounds)
    np.testing.assert_array_equal(counts.scores, own[counts.order])
    for (start, stop), span in zip(pairwise(own_bounds), pairwise(bounds), strict=True):
        others = sampled[slice(*span)].tolist()
        assert counts.order[start:stop].tolist() == sorted(range(start, stop), key=lambda j: (-own[j], j))
        for j in range(start, stop):
            score = counts.scores[j]
            assert counts.above[j] == sum(other > score for other in others)
            assert counts.tied[j] == others.count(score)
