"""Bounds hold at every true count, by brute force over all of them, and are as sharp as a linear program allows."""

import itertools
from typing import Any, cast

import numpy as np
import pytest
from scipy.optimize import linprog

import truerank as tr
from tests.arrays import Floats, Ints
from truerank.estimators import worst_laws
from truerank.estimators.bounds import Bound, possible
from truerank.estimators.corrected import ASSUMPTIONS, Assumption, Case
from truerank.estimators.draws import thinned
from truerank.estimators.worst_laws import minimise, worst_law
from truerank.metrics.definitions import Term
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


def excess(metric: str, case: Case, law: Law, *, upper: bool, assume: Assumption = "nothing") -> Floats:
    """By how much the expectation of the table is on the right side, at each count."""
    term: Any = tr.metric(metric)
    table = Bound(upper, assume).tables(term, law, [case])[0]
    assert table.shape == (case.m + 1,)
    return (law.rows(every_count(case), case.m, case.N) @ table - exact(metric, case)) * (1 if upper else -1)


@pytest.mark.parametrize("law", LAWS, ids=["without", "with"])
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("metric", METRICS)
def test_bounds_hold_at_every_count(metric: str, case: Case, law: Law) -> None:
    scale = np.abs(exact(metric, case)).max()
    for upper in (False, True):
        assert excess(metric, case, law, upper=upper).min() >= -1e-9 * scale


def test_what_is_possible_depends_on_all_candidates() -> None:
    """Of 30 irrelevant candidates 10 were drawn, 2 of them above: between 2 and 22 are."""
    ranks, auc = tr.Ranks.from_sampled([3], m=10, n=31), cast("Term", tr.metric("auc"))
    assert possible(auc, ranks, upper=True).values == pytest.approx([1 - 2 / 30], rel=1e-15)
    assert possible(auc, ranks, upper=False).values == pytest.approx([1 - 22 / 30], rel=1e-15)


class Odd(Term):
    """Counts odd ranks only, so that no other place of the item gives a multiple of its values."""

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return (rank % 2) / n_relevant


@pytest.mark.parametrize("upper", [False, True])
def test_places_that_share_no_table_have_their_own(upper: bool) -> None:
    case, sign = Case(37, 40, 340, 20), 1 if upper else -1
    (table,) = Bound(upper).tables(Odd(), HYPERGEOMETRIC, [case])
    found = HYPERGEOMETRIC.rows(every_count(case), case.m, case.N) @ table
    assert np.all(sign * (found - (every_count(case) + 37) % 2 / 40) >= -1e-9)


class FromTheEnd(Term):
    """Counts places from the last one, so that it is not defined beyond it."""

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return 1 / (n - rank + 1)


@pytest.mark.parametrize("upper", [False, True])
def test_functions_of_ones_own_are_only_asked_about_places_that_exist(upper: bool) -> None:
    """Tables are solved for more candidates, 1,920 here; a function may not be defined for them."""
    case, sign = Case(2, 3, 1_877, 20), 1 if upper else -1
    (table,) = Bound(upper).tables(FromTheEnd(), HYPERGEOMETRIC, [case])
    found = HYPERGEOMETRIC.rows(every_count(case), case.m, case.N) @ table
    assert np.all(sign * (found - 1 / (case.n - every_count(case) - 2 + 1)) >= -1e-9)


@pytest.mark.parametrize("law", LAWS, ids=["without", "with"])
@pytest.mark.parametrize("case", [Case(1, 1, 500, 37), Case(1, 4, 3_541, 100), Case(1, 1, 9_999, 300)], ids=str)
@pytest.mark.parametrize("metric", ["recall@10", "ndcg@10", "ap"])
def test_under_falling_laws_bounds_hold_for_every_uniform_law_of_the_top(metric: str, case: Case, law: Law) -> None:
    top = case.N // 10
    for upper in (False, True):
        over = excess(metric, case, law, upper=upper, assume="falling")
        means = np.cumsum(over[: top + 1]) / np.arange(1, top + 2)
        # laws that fall to N // 11 or so are all that tables may assume
        assert means[: case.N // 11].min() >= -1e-9
        assert over[top + 1 :].min() >= -1e-9
        assert over.min() < -1e-3  # no bound without the assumption


def test_only_the_first_relevant_item_is_assumed_to_fall() -> None:
    case = Case(2, 4, 3_541, 100)
    for assume in ASSUMPTIONS:
        assert excess("recall@10", case, HYPERGEOMETRIC, upper=True, assume=assume).min() >= -1e-9


def is_smooth(law: Floats) -> bool:
    """By the words: a deeper rank is never more likely, and one twice as deep is at least a quarter as likely."""
    likely = dict(enumerate(law.tolist(), start=1))
    falls = all(likely[rank + 1] <= likely[rank] for rank in range(1, law.size))
    return falls and all(likely[2 * rank] >= likely[rank] / 4 for rank in range(1, law.size // 2 + 1))


def smooth_by_enumeration(size: int) -> Floats:
    """All smooth laws whose probabilities are 1, 1/4, 1/16, ... of the first; a row each."""
    depth = int(np.log2(size)) + 1
    falling = itertools.combinations_with_replacement(range(depth + 1), size - 1)
    laws = np.array([law for steps in falling if is_smooth(law := 0.25 ** np.array([0, *steps]))])
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


def least_smooth_mean(numbers: Floats) -> float:
    """Least mean of the numbers over smooth laws, by a linear program over probabilities."""
    size = numbers.size
    eye, half = np.eye(size), size // 2
    falls, not_too_far = eye[1:] - eye[:-1], eye[:half] / 4 - eye[1 : 2 * half : 2]
    conditions = np.vstack([falls, not_too_far])
    done = linprog(numbers, conditions, np.zeros(len(conditions)), np.ones((1, size)), [1.0], method="highs")
    return float(done.fun)


def test_the_worst_smooth_law_is_that_of_all_extreme_ones() -> None:
    rng = np.random.default_rng(3)
    for size in (2, 4, 8, 10):
        laws = smooth_by_enumeration(size)
        for _ in range(20):
            numbers = rng.normal(size=size) * rng.choice([0.01, 1.0, 100.0]) + rng.choice([0.0, 5.0])
            found = worst_law(numbers)
            assert is_smooth(found)
            assert found @ numbers == pytest.approx((laws @ numbers).min(), rel=1e-12, abs=1e-12)
    for size in (1, 2, 3, 5, 7, 8, 60, 61, 127, 128, 129):
        numbers = rng.normal(size=size) + rng.choice([0.0, 5.0])
        assert is_smooth(worst_law(numbers))
        assert worst_law(numbers) @ numbers == pytest.approx(least_smooth_mean(numbers), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("metric", ["recall@10", "ndcg@10"])
@pytest.mark.parametrize("upper", [False, True])
def test_tables_hold_for_steps_at_and_around_the_cut_off(metric: str, upper: bool) -> None:
    """Probabilities that fall to a quarter after a rank, which the words for smooth laws allow."""
    case = Case(1, 1, 1_541, 100)
    over = excess(metric, case, HYPERGEOMETRIC, upper=upper, assume="smooth")
    rank = np.arange(1, case.N // 11 + 2)
    for step in (8, 9, 10, 11, 12, 20):
        for steps in ([step], [step, 2 * step], [step // 2, step], [step, 5 * step]):
            law = np.power(0.25, np.searchsorted(steps, rank), dtype=np.float64)
            assert is_smooth(law)
            assert law @ over[: rank.size] / law.sum() >= -1e-9


@pytest.mark.parametrize("law", LAWS, ids=["without", "with"])
@pytest.mark.parametrize("case", [Case(1, 1, 500, 37), Case(1, 4, 1_541, 100), Case(1, 1, 2_999, 300)], ids=str)
@pytest.mark.parametrize("metric", ["recall@10", "ndcg@10", "ap"])
def test_under_smooth_laws_bounds_hold_for_each_of_them(metric: str, case: Case, law: Law) -> None:
    for upper in (False, True):
        over = excess(metric, case, law, upper=upper, assume="smooth")
        top = over[: case.N // 10 + 1]
        assert least_smooth_mean(top) >= -1e-7
        assert over[top.size :].min() >= -1e-9
        uniform = np.cumsum(top) / np.arange(1, top.size + 1)
        assert uniform.min() < -1e-5  # no bound if ranks only fall


def test_bounds_hold_if_too_many_laws_are_violated(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the table falls short of is added to it, so that it is less sharp."""
    case, term = Case(1, 1, 500, 37), cast("Term", tr.metric("recall@10"))
    solved = Bound(True, "smooth").tables(term, HYPERGEOMETRIC, [case])[0]
    monkeypatch.setattr(worst_laws, "_MOST_LAWS", 1)
    over = excess("recall@10", case, HYPERGEOMETRIC, upper=True, assume="smooth")
    assert least_smooth_mean(over[: case.N // 10 + 1]) >= -1e-7
    assert over[case.N // 10 + 1 :].min() >= -1e-9
    rough = Bound(True, "smooth").tables(term, HYPERGEOMETRIC, [case])[0]
    assert not np.allclose(rough, solved)


def test_the_first_guess_of_the_worst_law_is_allowed_and_no_better_than_uniform(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worst_laws, "_ROUNDS", 0)
    numbers = np.random.default_rng(4).normal(size=40)
    assert is_smooth(worst_law(numbers))
    assert worst_law(numbers) @ numbers <= numbers.mean()


def test_a_programme_that_has_no_least_value_is_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        minimise(np.ones(2), -1e9 * np.eye(2), np.eye(2), np.zeros(2))


def test_a_stronger_assumption_gives_a_sharper_bound() -> None:
    case, counts = Case(1, 1, 2_001, 40), np.arange(2_001)
    likely = (counts + 1.0) ** -0.9
    shown = likely @ HYPERGEOMETRIC.rows(counts, 40, 2_000) / likely.sum()
    for metric in ("recall@10", "ap"):
        term, exactly = cast("Term", tr.metric(metric)), likely @ exact(metric, case) / likely.sum()
        ends = np.array([
            [shown @ Bound(upper, assume).tables(term, HYPERGEOMETRIC, [case])[0] for upper in (False, True)]
            for assume in ASSUMPTIONS
        ])  # fmt: skip
        assert np.all((ends[:, 0] < exactly) & (exactly < ends[:, 1]))
        assert np.all(np.diff(ends[:, 1] - ends[:, 0]) < 0)


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
