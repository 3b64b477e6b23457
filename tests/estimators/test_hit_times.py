"""Bounds under inverse sampling hold at every true count, by enumeration of all that the draws can show."""

import itertools
import math
from functools import cache
from typing import Any, cast

import numpy as np
import pytest
from scipy import special, stats

import truerank as tr
from tests.arrays import Floats, Ints
from tests.estimators.test_bounds import least_smooth_mean
from truerank.estimators.bounds import Bound, _solved
from truerank.estimators.corrected import ASSUMPTIONS, Assumption, Case, Corrected
from truerank.estimators.draws import Ended, HitTimes, readings
from truerank.evaluation.exact_ranges import bound_values, exact_range
from truerank.metrics.definitions import Term

DESIGNS = [
    tr.InverseSampling(1), tr.InverseSampling(2), tr.InverseSampling(5), tr.InverseSampling(12),
    tr.InverseSampling(2, most=60), tr.InverseSampling(3, most=200),
    tr.InverseSampling(2, whole=True), tr.InverseSampling(3, most=70, whole=True),
]  # fmt: skip
METRICS = ["recall@10", "ndcg@10", "ap", "r-precision", "ndcg", "rbp(0.8)", "auc", "mean-rank"]
CASES = [(1, 1, 7), (1, 1, 151), (9, 12, 90)]


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


@cache
def outcomes(design: tr.InverseSampling, N: int) -> tuple[Ints, Ints, Floats]:
    """All that draws can show, j above of T, and how likely that is for every count: a row each.

    All orders in which g above and N - g below can be drawn are equally likely; those that show (T, j) are counted.
    """
    g, h, edges = np.arange(N + 1)[:, None], design.hits, batch_edges(design, N)
    shown, columns = [], []
    for before, T in itertools.pairwise(edges):
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
    """One instance per outcome, which all of its relevant items have shown."""
    _, n_relevant, N = case
    size = T.size * n_relevant
    above, drawn = (np.repeat(numbers, n_relevant) for numbers in (j, T))
    return tr.Ranks(
        above=above, indptr=np.arange(0, size + 1, n_relevant), n_candidates=T + n_relevant,
        sample=tr.Sample(design, N + n_relevant, drawn),
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


@pytest.mark.parametrize("hits", [1, 2, 7])
def test_bounds_hold_at_every_count_of_a_large_catalogue(hits: int) -> None:
    """Of 40,000, by the law of the outcomes, which the tests above compare with that of the draws."""
    N = 40_000
    draws = HitTimes.serving(N, hits, N)
    counts = np.arange(N + 1)
    likely = draws.rows(counts)
    for metric, upper in itertools.product(("recall@10", "ndcg@10"), (False, True)):
        term = cast("Term", tr.metric(metric))
        exact = Case(1, 1, N + 1, 1).count_term(term)(counts.astype(np.float64))
        table = _solved(Bound(upper), term, draws, (Case(1, 1, N + 1, N),))[0]
        assert ((likely @ table - exact) * (1 if upper else -1)).min() >= -1e-12


@pytest.mark.parametrize("design", [DESIGNS[1], DESIGNS[5], DESIGNS[6]], ids=str)
@pytest.mark.parametrize("metric", ["recall@10", "ap"])
def test_under_an_assumption_bounds_hold_for_every_law_that_it_allows(metric: str, design: tr.InverseSampling) -> None:
    N = 256
    least = {"falling": lambda top: (np.cumsum(top) / np.arange(1, top.size + 1)).min(), "smooth": least_smooth_mean}
    for assume, upper in itertools.product(ASSUMPTIONS[1:], (False, True)):
        over = excess(metric, design, (1, 1, N), upper=upper, assume=assume)
        assert least[assume](over[: N // 13 + 1]) >= -1e-7
        assert over[N // 10 + 1 :].min() >= -1e-9
        assert excess(metric, design, (2, 2, N), upper=upper, assume=assume).min() >= -1e-9  # the first item only


def drawn_ranks(law: str, users: int, n: int, rng: np.random.Generator) -> Ints:
    """Draw ranks by a law."""
    anywhere = rng.integers(1, n + 1, users)
    if law == "power":
        return np.minimum((n ** rng.random(users)).astype(np.int64), n)
    if law == "all at the top":
        return rng.integers(1, 4, users)
    low, high = map(int, law.split("-"))
    return np.where(rng.random(users) < 0.5, rng.integers(low, high + 1, users), anywhere)


@pytest.mark.parametrize("law", ["11-20", "11-99", "8-59", "10-11", "power", "all at the top"])
def test_intervals_cover_the_exact_metric(law: str) -> None:
    """Of the law, in samples of users and candidates."""
    rng, n, missed = np.random.default_rng(1), 800, 0
    truth = {
        name: tr.estimate(tr.Ranks.from_ranks(drawn_ranks(law, 200_000, n, rng), n=n), name).mean
        for name in ("recall@10", "ndcg@10")
    }
    for design in (tr.InverseSampling(2), tr.InverseSampling(3, most=300)):
        for _ in range(10):
            sampled = design.draw(tr.Ranks.from_ranks(drawn_ranks(law, 400, n, rng), n=n), rng=rng)
            for name, value in truth.items():
                low, high = exact_range(sampled, tr.metric(name)).interval(0.95)
                missed += not low - 1e-9 <= value <= high + 1e-9
    assert missed <= 4  # of 40


def test_own_numbers_of_candidates_and_several_items() -> None:
    rng, missed = np.random.default_rng(2), 0
    sizes, n = rng.integers(1, 5, 300), rng.choice(rng.integers(400, 900, 12), 300)
    places = [np.unique((size ** rng.random(own)).astype(np.int64)) for own, size in zip(sizes, n, strict=True)]
    exact = tr.Ranks.from_ranks(places, n=n)
    for seed, name in itertools.product(range(6), ("recall@10", "ndcg@10", "r-precision")):
        sampled = tr.InverseSampling(2, whole=seed % 2 == 0).draw(exact, rng=seed)
        low, high = exact_range(sampled, tr.metric(name)).interval(0.95)
        missed += not low <= tr.estimate(exact, name).mean <= high
    assert missed <= 2  # of 18


def test_as_many_hits_as_the_cut_off_decide_everything() -> None:
    exact = tr.Ranks.from_ranks([[1, 40], [3, 9, 12], [11], [700]], n=1_000)
    sampled = tr.InverseSampling(10).draw(exact, rng=0)
    for name in ("recall@10", "ndcg@10", "ap@10"):
        bounds = bound_values(sampled, tr.metric(name))
        np.testing.assert_allclose(bounds.lower, tr.values(exact, name), rtol=1e-12)
        np.testing.assert_allclose(bounds.upper, tr.values(exact, name), rtol=1e-12)


def test_draws_that_ended_for_unknown_reasons_leave_what_is_possible() -> None:
    ranks = tr.Ranks.from_draws([2, 0, 1, 12], [60, 99, 7, 30], n=100)
    bounds = bound_values(ranks, tr.metric("recall@10"))
    assert bounds.lower.tolist() == [0.0, 1.0, 0.0, 0.0]  # all candidates of the second were drawn
    assert bounds.upper.tolist() == [1.0, 1.0, 1.0, 0.0]
    found = tr.estimate(ranks, "recall@10")
    assert not found.determined
    assert any(
        note.endswith(
            "is not determined by this sample; rank all candidates, or draw by inverse(10), which determines it"
        )
        for note in found.notes
    )
    budget = tr.rank_sampled(
        np.random.default_rng(0).random((40, 500)), test=[[user] for user in range(40)],
        design=tr.InverseSampling(2), rng=0, most_scores=400,
    )  # fmt: skip
    assert set(bound_values(budget, tr.metric("recall@1")).upper.tolist()) == {0.0, 1.0}


def test_notes_say_what_the_interval_rests_on_and_what_would_tell_more() -> None:
    sampled = tr.InverseSampling(2).draw(tr.Ranks.from_ranks([3, 15, 500] * 20, n=1_000), rng=1)
    notes = tr.estimate(sampled, "recall@10").notes
    assert "values by ~smooth are those of a fitted law of ranks; their intervals do not rest on it" in notes
    assert "in brackets: 95 % interval of the exact metric, whatever the distribution of the ranks" in notes
    assert any("draw by inverse(10), which determines it, or try assume='falling'" in note for note in notes)


def test_estimates_without_bias_keep_their_own_error() -> None:
    sampled = tr.InverseSampling(2).draw(tr.Ranks.from_ranks([3, 40, 500] * 20, n=1_000), rng=1)
    assert tr.estimate(sampled, "ap").exact_range is None
    assert tr.estimate(sampled, "ap~smooth").exact_range is not None
    # a cap makes estimates biased even if no draw has reached it
    capped = tr.InverseSampling(2, most=990).draw(tr.Ranks.from_ranks([300, 400, 500] * 20, n=1_000), rng=1)
    assert capped.item_draws.max() < 990
    assert tr.estimate(capped, "ap~unbiased").exact_range is not None


@pytest.mark.parametrize(("N", "limit", "hits"), [(30, 20, 2), (300, 200, 3), (300, 60, 1), (900, 880, 4)])
def test_tables_are_read_without_bias_where_draws_may_end_early(N: int, limit: int, hits: int) -> None:
    """All ways in which draws can end, with their chances: what is not known is hardly ever needed."""
    draws = HitTimes.serving(N, hits, limit)
    table = np.random.default_rng(0).random((1, draws.n_outcomes))
    found, missed = np.arange(hits, limit + 1), np.arange(hits)
    above = np.append(np.full(found.size, hits), missed)
    drawn = np.append(found, np.full(hits, limit))
    read = readings(draws, Ended(np.full(drawn.size, N), above, drawn, drawn - 1))
    low, high = (read.values(table, np.zeros(drawn.size, dtype=np.int64), np.array([end])) for end in (0.0, 1.0))
    for g in (0, 1, hits, hits + 3, N // 2, N):
        times = found.tolist() if g >= hits else []
        ways = [math.comb(T - 1, hits - 1) * math.comb(N - T, g - hits) / math.comb(N, g) for T in times]
        chance = np.append(ways or [0.0] * found.size, stats.hypergeom.pmf(missed, N, g, limit))
        exact = draws.rows(np.array([g]))[0] @ table[0]
        assert chance @ low - 1e-12 <= exact <= chance @ high + 1e-12
        assert chance @ (high - low) < 1e-6
