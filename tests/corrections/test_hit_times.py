"""Bounds under inverse sampling hold at every true count, by enumeration of all that the draws can show."""

from typing import Any

import numpy as np
import pytest
from scipy import special

import truerank as tr
from truerank.arrays import Floats, Ints
from truerank.corrections.assumptions import ASSUMPTIONS, Assumption
from truerank.corrections.base import Case
from truerank.corrections.bounds import Bound
from truerank.corrections.corrected import Corrected
from truerank.corrections.hit_times import HitTimes
from truerank.evaluation.exact_ranges import exact_range

DESIGNS = [
    tr.InverseSampling(1), tr.InverseSampling(2), tr.InverseSampling(5), tr.InverseSampling(12),
    tr.InverseSampling(2, most=60), tr.InverseSampling(3, most=200),
    tr.InverseSampling(2, whole=True), tr.InverseSampling(3, most=70, whole=True),
]  # fmt: skip
METRICS = ["recall@10", "ndcg@10", "ap", "r-precision", "ndcg", "rbp(0.8)", "auc", "mean-rank"]
CASES = [(1, 1, 7), (1, 1, 301), (9, 40, 130)]


def batch_edges(design: tr.InverseSampling, N: int) -> list[int]:
    """Numbers of draws after which the design looks whether enough stand above; 16 first, then a quarter more."""
    limit = min(N, design.most or N)
    if not design.whole:
        return list(range(limit + 1))
    edges = [0]
    while edges[-1] < limit:
        edges.append(min(edges[-1] + max(16, edges[-1] // 4), limit))
    return edges


def log_choose(n: Any, k: Any) -> Any:
    n, k = np.broadcast_arrays(np.asarray(n, dtype=float), np.asarray(k, dtype=float))
    possible = (k >= 0) & (k <= n)
    n, k = np.where(possible, n, 0.0), np.where(possible, k, 0.0)
    return np.where(possible, special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1), -np.inf)


def outcomes(design: tr.InverseSampling, N: int) -> tuple[Ints, Ints, Floats]:
    """All that draws can show, j above of T, and how likely that is for every count: a row each.

    All orders in which g above and N - g below can be drawn are equally likely; those that show (T, j) are counted.
    """
    g, h, edges = np.arange(N + 1)[:, None], design.hits, batch_edges(design, N)
    shown, columns = [], []
    for before, T in zip(edges, edges[1:], strict=False):
        last = np.arange(before + 1, T + 1)[:, None]  # the number of the last of the hits
        for j in range(h, min(T, T if design.whole else h) + 1):
            ways = special.logsumexp(log_choose(last - 1, h - 1) + log_choose(T - last, j - h))
            if np.isneginf(ways):
                continue
            shown.append((T, j))
            columns.append(np.exp(ways + log_choose(N - T, g - j) - log_choose(N, g)))
    for j in range(min(h, edges[-1] + 1)):
        shown.append((edges[-1], j))
        columns.append(np.exp(log_choose(edges[-1], j) + log_choose(N - edges[-1], g - j) - log_choose(N, g)))
    T, j = np.array(shown).T
    return T, j, np.hstack(columns)


def shown_ranks(design: tr.InverseSampling, case: tuple[int, int, int], T: Ints, j: Ints) -> tr.Ranks:
    """One instance per outcome; its i-th relevant item has shown it, and the others as much as the rule allows."""
    i, n_relevant, N = case
    size = T.size * n_relevant
    first = np.arange(n_relevant) + 1
    above, drawn = (np.repeat(numbers, n_relevant) for numbers in (j, T))
    return tr.Ranks(
        above=above, drawn=drawn, indptr=np.arange(0, size + 1, n_relevant), n_candidates=T + first.size,
        n_catalogue=np.full(T.size, N + n_relevant), design=design,
    )  # fmt: skip


def excess(
    metric: str, design: tr.InverseSampling, case: tuple[int, int, int], *, upper: bool, assume: Assumption = "nothing"
) -> Floats:
    """By how much the expectation of what is read is on the right side, at each count."""
    i, n_relevant, N = case
    T, j, likely = outcomes(design, N)
    np.testing.assert_allclose(likely.sum(axis=1), 1.0, rtol=1e-9)
    ranks = shown_ranks(design, case, T, j)
    term: Any = Corrected(tr.metric(metric), Bound(upper, assume)).terms(ranks)[0].term
    read = term.values[i - 1 :: n_relevant]
    assert np.all(term.extremes(upper=True) >= term.values - 1e-12)
    assert np.all(term.extremes(upper=False) <= term.values + 1e-12)
    plain: Any = tr.metric(metric)
    exact = Case(i, n_relevant, N + n_relevant, 1).count_term(plain)(np.arange(N + 1.0))
    # relative to the sum of the chances, which the enumeration has up to 1e-10 or so
    return (likely @ read / likely.sum(axis=1) - exact) * (1 if upper else -1)


@pytest.mark.parametrize("design", DESIGNS, ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_bounds_hold_at_every_count(design: tr.InverseSampling, case: tuple[int, int, int]) -> None:
    for upper in (False, True):
        for metric in ("recall@10", "ap"):
            assert excess(metric, design, case, upper=upper).min() >= -1e-10


@pytest.mark.parametrize("metric", METRICS)
def test_bounds_of_every_metric_hold(metric: str) -> None:
    case = (2, 3, 95)
    scale = 98 if metric == "mean-rank" else 1
    for upper in (False, True):
        assert excess(metric, tr.InverseSampling(2), case, upper=upper).min() >= -1e-10 * scale
