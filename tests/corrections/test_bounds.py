"""Bounds hold at every true count, by brute force over all of them, and are as sharp as a linear program allows."""

import itertools
from typing import Any, cast

import numpy as np
import pytest
from scipy.optimize import linprog

import truerank as tr
from truerank.arrays import Floats, Ints
from truerank.corrections.base import Case
from truerank.corrections.bounds import Bound
from truerank.corrections.quadratic import minimise
from truerank.corrections.thinning import thinned
from truerank.metrics.base import Term
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC, Law

LAWS = [HYPERGEOMETRIC, BINOMIAL]
CASES = [
    Case(1, 1, 31, 5), Case(1, 1, 31, 30), Case(1, 1, 500, 37), Case(2, 3, 977, 100), Case(5, 40, 1_333, 129),
    Case(37, 40, 3_700, 100), Case(1, 1, 3_541, 1_000), Case(3, 7, 9_999, 99),
]  # fmt: skip
METRICS = ["recall@10", "recall@50", "ndcg@10", "ap", "ndcg", "rbp(0.8)", "auc", "mean-rank", "r-precision"]


def every_count(case: Case) -> Ints:
    return np.arange(case.N + 1)


def exact(metric: str, case: Case) -> Floats:
    term: Any = tr.metric(metric)
    return case.count_term(term)(every_count(case).astype(np.float64)) + np.zeros(case.N + 1)


def excess(metric: str, case: Case, law: Law, *, upper: bool, falling: bool = False) -> Floats:
    """By how much the expectation of the table is on the right side, at each count."""
    term: Any = tr.metric(metric)
    table = Bound(upper, falling).tables(term, law, [case])[0]
    assert table.shape == (case.m + 1,)
    return (law.rows(every_count(case), case.m, case.N) @ table - exact(metric, case)) * (1 if upper else -1)


@pytest.mark.parametrize("law", LAWS, ids=["without", "with"])
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("metric", METRICS)
def test_bounds_hold_at_every_count(metric: str, case: Case, law: Law) -> None:
    scale = np.abs(exact(metric, case)).max()
    for upper in (False, True):
        assert excess(metric, case, law, upper=upper).min() >= -1e-9 * scale


@pytest.mark.parametrize("law", LAWS, ids=["without", "with"])
@pytest.mark.parametrize("case", [Case(1, 1, 500, 37), Case(1, 4, 3_541, 100), Case(1, 1, 9_999, 300)], ids=str)
@pytest.mark.parametrize("metric", ["recall@10", "ndcg@10", "ap"])
def test_under_falling_laws_bounds_hold_for_every_uniform_law_of_the_top(metric: str, case: Case, law: Law) -> None:
    top = case.N // 10
    for upper in (False, True):
        over = excess(metric, case, law, upper=upper, falling=True)
        means = np.cumsum(over[: top + 1]) / np.arange(1, top + 2)
        # laws that fall to N // 11 or so are all that tables may assume
        assert means[: case.N // 11].min() >= -1e-9
        assert over[top + 1 :].min() >= -1e-9
        assert over.min() < -1e-3  # no bound without the assumption


def test_only_the_first_relevant_item_is_assumed_to_fall() -> None:
    case = Case(2, 4, 3_541, 100)
    assert excess("recall@10", case, HYPERGEOMETRIC, upper=True, falling=True).min() >= -1e-9


def test_bounds_are_near_the_sharpest_of_their_size() -> None:
    """The linear program over all tables with entries as large as ours, for the law that was really sampled from."""
    case, counts = Case(1, 1, 301, 60), np.random.default_rng(0).geometric(0.02, 400).clip(1, 300)
    rows = HYPERGEOMETRIC.rows(every_count(case), case.m, case.N)
    shown = rows[counts].mean(axis=0)
    for metric, upper in itertools.product(("recall@10", "ap"), (False, True)):
        sign, term, target = 1 if upper else -1, cast("Term", tr.metric(metric)), exact(metric, case)
        table = Bound(upper).tables(term, HYPERGEOMETRIC, [case])[0]
        size = np.abs(table).max()
        best = linprog(sign * shown, -sign * rows, -sign * target, bounds=[(-size, size)] * table.size, method="highs")
        assert 0 <= sign * (shown @ table) - best.fun < 0.2 * target[counts].mean()


@pytest.mark.parametrize("law", LAWS, ids=["without", "with"])
def test_thinned_tables_keep_the_expectation(law: Law) -> None:
    table = np.random.default_rng(1).normal(size=31)
    for m, sizes in ((30, [40, 57, 60]), (37, [41, 60])):
        tables = thinned(table, m, np.array(sizes), 60, law)
        for N, row in zip(sizes, tables, strict=True):
            counts = np.arange(N + 1)
            np.testing.assert_allclose(law.rows(counts, m, N) @ row, law.rows(counts, 30, 60) @ table, atol=1e-12)


def test_quadratic_programs_against_linear_ones() -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        A, c = rng.normal(size=(40, 6)), rng.normal(size=6)
        A, b = np.vstack([A, np.eye(6), -np.eye(6)]), np.concatenate([rng.normal(size=40) - 3, -np.ones(12)])
        x = minimise(c, 1e-9 * np.eye(6), A, b)
        expected = linprog(c, -A, -b, bounds=[(None, None)] * 6, method="highs")
        assert c @ x == pytest.approx(expected.fun, abs=1e-6)
        assert np.all(A @ x >= b - 1e-7)
