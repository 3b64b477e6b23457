"""Large blocks of ties: the mean over all orders against exact fractions."""

from collections.abc import Callable
from fractions import Fraction
from math import comb

import numpy as np
import pytest

import truerank as tr
from truerank.evaluation.per_instance import chance

TERMS: dict[str, Callable[[int, int, int], Fraction]] = {
    "ap": lambda rank, i, n: Fraction(i, rank * n),
    "recall@20": lambda rank, i, n: Fraction(int(rank <= 20), n),
    "rr": lambda rank, i, n: Fraction(int(i == 1), rank),
    "auc": lambda rank, i, n: 1 - Fraction(rank - i, 500),
}
"""What the i-th of n relevant items adds; AUC times n, among 500 irrelevant candidates."""


def mean_over_orders(metric: str, above: int, tied: int, block: int) -> Fraction:
    """Sum of all terms, each weighted by the number of orders in which so many ties come before."""
    total = Fraction(0)
    for j in range(1, block + 1):
        for lost in range(tied + 1):
            ways = comb(lost + j - 1, lost) * comb(tied - lost + block - j, tied - lost)
            total += ways * TERMS[metric](above + lost + j, j, block)
    return total / comb(tied + block, block) / (block if metric == "auc" else 1)


@pytest.mark.parametrize("metric", TERMS)
@pytest.mark.parametrize(("tied", "block"), [(30, 33), (200, 40), (60, 120), (5, 300)])
def test_blocks_of_many_relevant_items(metric: str, tied: int, block: int) -> None:
    ranks = tr.Ranks(above=[3] * block, tied=[tied] * block, n_candidates=[500 + block], indptr=[0, block])
    expected = float(mean_over_orders(metric, 3, tied, block))
    np.testing.assert_allclose(tr.values(ranks, metric), [expected], rtol=1e-12)


@pytest.mark.parametrize("metric", ["ap", "ndcg", "gndcg", "rbp(0.9)", "rr", "recall@5"])
def test_no_block_is_too_large(metric: str) -> None:
    """1,031 relevant items made the number of orders overflow, once computed factor by factor."""
    sizes = [900, 1_031, 1_200]
    found = [
        tr.values(tr.Ranks(above=[0] * b, tied=[5] * b, n_candidates=[b + 5], indptr=[0, b]), metric)[0] for b in sizes
    ]
    assert np.isfinite(found).all()
    assert max(found) <= 1
    # nothing special happens at any size
    assert abs(found[1] - np.interp(1_031, sizes[::2], found[::2])) < 0.005


def test_a_function_of_ones_own_equals_the_smooth_sum_in_large_blocks() -> None:
    tied, block = 3_000, 400
    ranks = tr.Ranks(above=[9] * block, tied=[tied] * block, n_candidates=[tied + block + 20], indptr=[0, block])

    def reciprocal(rank, i, n_relevant, n):  # type: ignore[no-untyped-def]
        return i / rank / n_relevant

    np.testing.assert_allclose(tr.values(ranks, "ap"), tr.values(ranks, reciprocal), rtol=1e-12)


def test_blocks_of_few_and_of_many_relevant_items_together() -> None:
    """Their chances are computed in two ways, here at once; those of a block add up to 1."""
    tied, block = np.array([20, 20, 7, 50]), np.array([32, 33, 1, 90])
    place, lost = np.array([5, 30, 1, 60]), np.arange(51)[:, None]
    found = np.where(lost <= tied, chance(np.minimum(lost, tied), tied, place, block), 0.0)
    np.testing.assert_allclose(found.sum(axis=0), 1.0, rtol=1e-12)
    for at in range(4):
        t, j, b = (int(numbers[at]) for numbers in (tied, place, block))
        ways = [comb(x + j - 1, x) * comb(t - x + b - j, t - x) / comb(t + b, b) for x in range(t + 1)]
        np.testing.assert_allclose(found[: t + 1, at], ways, rtol=1e-11)
