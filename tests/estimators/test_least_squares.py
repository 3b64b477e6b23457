import numpy as np
import pytest

import truerank as tr
from tests.arrays import Floats, Ints
from tests.sampling import reference
from tests.sampling.terms import LAWS, METRICS, law_of, plain, problem_of, term_of
from truerank.estimators import solvers
from truerank.estimators.corrected import Case, Correction
from truerank.estimators.least_squares import ConstrainedLeastSquares, LeastSquares, rank_estimate
from truerank.metrics import AP, AUC, MeanRank, Recall, Term
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("gamma", [1, 0.1, 0.01, 0.001])
@pytest.mark.parametrize("name", reference.TERMS)
def test_bias_variance_agrees_with_fifty_digits(name: str, gamma: float, replace: bool) -> None:
    n, m = 200, 20
    exact = reference.bias_variance(reference.TERMS[name], n - 1, m, gamma, replace)
    table = solvers.bias_variance(problem_of(plain(name), n, m, replace), gamma).values
    assert np.abs(table - exact).max() < 1e-11


@pytest.mark.parametrize("replace", LAWS)
def test_minimal_bias_agrees_with_fifty_digits_where_determined(replace: bool) -> None:
    n, m = 200, 10
    exact = reference.bias_variance(reference.TERMS["recall@10"], n - 1, m, 0, replace)
    result = solvers.minimal_bias(problem_of(Recall(10), n, m, replace))
    assert not result.ill_conditioned
    assert result.determined == m + 1
    np.testing.assert_allclose(result.values, exact, rtol=1e-8)


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("correction", [LeastSquares(), ConstrainedLeastSquares()], ids=str)
def test_tables_of_several_cases_equal_single_solves(correction: Correction, replace: bool) -> None:
    cases, law, term = [Case(1, 1, n, 6) for n in (30, 90, 31)], law_of(replace), Recall(5)
    for case, table in zip(cases, correction.tables(term, law, cases), strict=True):
        np.testing.assert_allclose(table, correction.solve(term, law, case).values, rtol=1e-6)


class Odd(Term):
    """Counts odd ranks only: at ranks that are not whole it means nothing."""

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return (rank % 2 == 1) * 1.0


def test_a_metric_of_any_shape_is_fitted_at_every_count() -> None:
    N, m = 20_000, 3
    counts = np.arange(N + 1)
    expected = np.linalg.lstsq(BINOMIAL.rows(counts, m, N), (counts + 1.0) % 2, rcond=None)[0]
    found = LeastSquares().solve(Odd(), BINOMIAL, Case(1, 1, N + 1, m)).values
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_minimal_bias_says_when_it_is_ill_conditioned() -> None:
    result = solvers.minimal_bias(problem_of(AP(), 2000, 100, True))
    assert result.ill_conditioned
    assert result.determined is not None
    assert result.determined < 101


@pytest.mark.parametrize("replace", LAWS)
def test_gamma_one_is_the_posterior_mean(replace: bool) -> None:
    n, m = 300, 30
    g = np.arange(n)
    law = law_of(replace).rows(g, m, n - 1)
    posterior = law.T @ (1 / (g + 1)) / law.sum(axis=0)
    table = solvers.bias_variance(problem_of(AP(), n, m, replace), 1).values
    np.testing.assert_allclose(table, posterior, rtol=1e-12)


@pytest.mark.parametrize("metric", METRICS, ids=str)
@pytest.mark.parametrize(("i", "n_relevant"), [(1, 1), (2, 3)])
def test_everything_sampled_returns_the_exact_metric(metric: tr.metrics.PlainMetric, i: int, n_relevant: int) -> None:
    n = 40
    N = n - n_relevant
    task = problem_of(metric, n, N, False, i, n_relevant)
    term = term_of(metric, i, n_relevant, n)
    exact = term(np.arange(N + 1))
    np.testing.assert_array_equal(rank_estimate(term, N, N), exact)
    np.testing.assert_array_equal(rank_estimate(term, N, N, interpolate=True), exact)
    np.testing.assert_allclose(solvers.minimal_bias(task).values, exact, atol=1e-13)
    np.testing.assert_allclose(solvers.constrained(task).values, exact, atol=1e-12)
    for gamma in (1, 0.3, 1e-3):
        np.testing.assert_allclose(solvers.bias_variance(task, gamma).values, exact, atol=1e-13)


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("metric", [*METRICS, MeanRank()], ids=str)
def test_constrained_table_is_optimal(metric: tr.metrics.PlainMetric, replace: bool) -> None:
    """The conditions of Karush, Kuhn and Tucker, on the full problem and in its own words."""
    n, m = 1000, 40
    task = problem_of(metric, n, m, replace, smooth=False)
    falls = not metric.lower_is_better
    table = solvers.constrained(task).values
    steps = -np.diff(table, append=0) if falls else np.diff(table, prepend=0)
    assert steps.min() >= -1e-15 * np.abs(table).max()
    g = np.arange(n)
    law = law_of(replace).rows(g, m, n - 1)
    target = term_of(metric, 1, 1, n)(g)
    columns = np.cumsum(law, axis=1) if falls else np.cumsum(law[:, ::-1], axis=1)[:, ::-1]
    gradient = columns.T @ (law @ table - target) / n
    scale = np.abs(target).max()
    assert gradient.min() > -1e-10 * scale
    assert np.abs(gradient * steps).max() < 1e-9 * scale**2


def test_constrained_needs_a_direction() -> None:
    with pytest.raises(tr.InputError, match="only falls or only rises"):
        solvers.constrained(solvers.problem(lambda g: (g - 5) ** 2, 20, 5, law=BINOMIAL))


def test_constrained_metric_with_negative_values() -> None:
    task = solvers.problem(lambda g: -g, 50, 10, law=BINOMIAL)
    table = solvers.constrained(task).values
    mean = BINOMIAL.rows(np.arange(51), 10, 50) @ table
    np.testing.assert_allclose(mean, -np.arange(51), atol=1e-6)


@pytest.mark.parametrize("replace", LAWS)
def test_auc_is_its_own_correction(replace: bool) -> None:
    """Sampled AUC is unbiased (eq. 17), so minimal bias and the constrained table must find it."""
    m = 100
    task = problem_of(AUC(), 5000, m, replace)
    sampled = 1 - np.arange(m + 1) / m
    np.testing.assert_allclose(solvers.minimal_bias(task).values, sampled, atol=1e-6)
    np.testing.assert_allclose(solvers.constrained(task).values, sampled, atol=1e-6)


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_compressed_problem_has_the_same_solution(metric: tr.metrics.PlainMetric, replace: bool) -> None:
    n, m = 20_001, 50
    few = problem_of(metric, n, m, replace)
    full = problem_of(metric, n, m, replace, smooth=False)
    assert len(few.b) < 400
    for gamma in (1, 0.1, 0.001):
        table = solvers.bias_variance(few, gamma).values
        assert np.abs(table - solvers.bias_variance(full, gamma).values).max() < 1e-10


def test_prior() -> None:
    n, m = 60, 8
    prior = np.zeros(n)
    prior[:5] = [3, 2, 2, 1, 1]
    task = problem_of(AP(), n, m, False, prior=prior)
    table = solvers.bias_variance(task, 1).values
    law = HYPERGEOMETRIC.rows(np.arange(5), m, n - 1)
    with np.errstate(invalid="ignore"):
        posterior = law.T @ (prior[:5] / np.arange(1, 6)) / (law.T @ prior[:5])
    np.testing.assert_allclose(table[:5], posterior[:5], rtol=1e-12)
    assert np.isnan(table[5:]).all()
    assert np.isnan(solvers.constrained(task).values[5:]).all()


def test_uniform_prior_is_the_default() -> None:
    given = problem_of(AP(), 5000, 8, True, prior=np.full(5000, 0.7))
    default = problem_of(AP(), 5000, 8, True)
    a, b = (solvers.bias_variance(task, 0.05).values for task in (given, default))
    np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("gamma", [0, -0.1, 1.5, float("nan")])
def test_gamma_out_of_range(gamma: float) -> None:
    with pytest.raises(tr.InputError, match="`gamma` must lie in"):
        solvers.bias_variance(problem_of(AP(), 50, 5, True), gamma)


def test_rank_estimate_survives_rounding() -> None:
    # In floating point 49 * (1 / 49) * 98 could fall below 98.
    table = rank_estimate(lambda g: g, N=98, m=49)
    np.testing.assert_array_equal(table, 2 * np.arange(50))
