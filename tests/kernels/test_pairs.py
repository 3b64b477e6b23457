"""Scores of pairs against chains of products and the scores that are counted; counts of samples against loops."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import truerank as tr
from truerank.kernels import library
from truerank.kernels.factors import FactorSamples, count_sampled, score_pairs
from truerank.kernels.user_blocks import Lists

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


def near_ties(rng: np.random.Generator, number: Any, depth: int) -> tuple[Any, Any]:
    """Return factors with equal rows, nearly equal ones, zeros, and rows that are very long or very short."""
    users, items = (rng.standard_normal((n, depth)).astype(number) for n in (30, 400))
    items[100:200] = items[:100]
    items[200:300] = np.nextafter(items[:100], number(9))
    items[300:320] = 0
    items[320:340] *= number(2.0**36)
    items[340:360] *= number(2.0**-45)
    items[360:380] *= number(1e-30)
    users[0], users[1], users[2] = 0, users[3] * number(1e-30), users[4] * number(2.0**35)
    return users, items


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("depth", [1, 2, 16, 17, 64, 300, 1023])
@pytest.mark.parametrize("biased", [False, True])
def test_whole_numbers_count_samples_as_scores_do(number: Any, depth: int, biased: bool) -> None:
    rng = np.random.default_rng(depth)
    users, items = near_ties(rng, number, depth)
    bias = items[:, 0].copy() if biased else None
    chosen = np.sort(rng.choice(30, 20, replace=False))
    own, sampled = (Lists(np.arange(21) * n, rng.integers(0, 400, 20 * n)) for n in (40, 1500))
    samples = FactorSamples.of(users, items, bias, n_pairs=10**9)
    assert samples is not None
    found = samples.counts(chosen, own, sampled)
    own_scores, scores = (
        score_pairs(users, items, np.repeat(chosen, np.diff(each.indptr)), each.indices, item_bias=bias)
        for each in (own, sampled)
    )
    for got, expected in zip(found, count_sampled(own_scores, own.indptr, scores, sampled.indptr), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert found.tied.sum() > 1000


@pytest.mark.parametrize("number", NUMBERS)
def test_most_samples_are_decided_by_whole_numbers(number: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the factors of all sampled items change after they were rounded, counts hardly do."""
    rng = np.random.default_rng(0)
    users, items = (rng.standard_normal((n, 64)).astype(number) for n in (20, 3000))
    own, sampled = Lists(np.arange(21), np.arange(20)), Lists(np.arange(21) * 2980, np.tile(np.arange(20, 3000), 20))
    samples = FactorSamples.of(users, items, None, n_pairs=10**9)
    assert samples is not None
    before = samples.counts(np.arange(20), own, sampled).above
    samples.factors.items[20:] = 0
    after = samples.counts(np.arange(20), own, sampled).above
    assert np.abs(before - after).max() < 30


def test_scores_that_whole_numbers_do_not_suit_are_computed() -> None:
    users, items = np.ones((2, 3)), np.ones((4, 3))
    for wrong in (np.nan, np.inf, 2.0**40):
        assert FactorSamples.of(np.full((2, 3), wrong), items, None, n_pairs=10**9) is None
        assert FactorSamples.of(users, items, np.full(4, wrong), n_pairs=10**9) is None
    assert FactorSamples.of(np.ones((2, 1025)), np.ones((4, 1025)), None, n_pairs=10**9) is None
    assert FactorSamples.of(np.ones((2, 0)), np.ones((4, 0)), None, n_pairs=10**9) is None


def test_sampled_items_outside_the_catalogue_are_refused_by_the_loop() -> None:
    samples = FactorSamples.of(np.ones((2, 3)), np.ones((4, 3)), None, n_pairs=100)
    assert samples is not None
    good = Lists(np.array([0, 1, 2]), np.array([0, 3]))
    for wrong in (Lists(good.indptr, np.array([0, 4])), Lists(good.indptr, np.array([-1, 3]))):
        for given in ((wrong, good), (good, wrong)):
            with pytest.raises(ValueError, match="not within their arrays"):
                samples.counts(np.arange(2), *given)
    with pytest.raises(ValueError, match="at least 2"):
        samples.counts(np.arange(1), good, good)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("most", [2, 90, 1500])
def test_counts_of_samples_equal_loops(path: str, number: Any, most: int) -> None:
    rng = np.random.default_rng(most)
    own_bounds, bounds = (np.cumsum([0, *rng.integers(0, size, 9)]) for size in (most, 2500))
    own, sampled = (rng.integers(0, 60, each[-1]).astype(number) for each in (own_bounds, bounds))
    counts = count_sampled(own, own_bounds, sampled, bounds)
    np.testing.assert_array_equal(counts.scores, own[counts.order])
    for (start, stop), span in zip(pairwise(own_bounds), pairwise(bounds), strict=True):
        others = sampled[slice(*span)]
        assert counts.order[start:stop].tolist() == sorted(range(start, stop), key=lambda j: (-own[j], j))
        for j in range(start, stop):
            score = counts.scores[j]
            assert counts.above[j] == np.count_nonzero(others > score)
            assert counts.tied[j] == np.count_nonzero(others == score)
