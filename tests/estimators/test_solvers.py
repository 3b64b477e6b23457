from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pytest

import truerank as tr
from tests.arrays import Floats, Ints
from tests.sampling.terms import LAWS, law_of
from truerank.estimators import solvers
from truerank.estimators.corrected import Case, Corrected, Correction
from truerank.estimators.corrected import metric as as_metric
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC

TERMS: dict[str, tuple[Callable[[Floats, Any], Any], int | None]] = {
    "recall@10": (lambda g, N: (g < 10) * 1.0, 9),
    "ap": (lambda g, N: 1 / (g + 1), None),
    "auc": (lambda g, N: 1 - g / N, None),
    "recall@900": (lambda g, N: (g < 900) * 1.0, 899),
}
M = 40
SIZES = [3000, 60, 401, 999, 3000, 400, 1234, 2999]


def batch(name: str, sizes: Sequence[int], m: int) -> solvers.Batch:
    term, last = TERMS[name]
    N = np.asarray(sizes)
    return solvers.Batch(lambda g, row: term(g, N[row]), N, m, None if last is None else np.full(N.size, last))


@lru_cache
def single(name: str, N: int, m: int, replace: bool) -> solvers.Problem:
    """One problem over every count."""
    return solvers.problem(lambda g: TERMS[name][0](g, N), N, m, law=law_of(replace), smooth=False)


@pytest.mark.parametrize(("N", "m"), [(12, 12), (30, 10), (500, 25)])
def test_law_without_replacement_is_diagonal(N: int, m: int) -> None:
    law = HYPERGEOMETRIC.rows(np.arange(N + 1), m, N)
    found = np.linalg.svd(law * np.sqrt((m + 1) / (N + 1)), compute_uv=False)
    np.testing.assert_allclose(found, solvers.SPECTRA[HYPERGEOMETRIC].singular_values(N, m), atol=1e-13)


def test_means_of_sampled_polynomials_are_polynomials_of_the_count() -> None:
    N, m = 50, 9
    law = HYPERGEOMETRIC.rows(np.arange(N + 1), m, N)
    means = law @ solvers.sampled_polynomials(m)
    for d in range(m + 1):
        assert np.abs(np.diff(means[:, d], n=d + 1)).max() < 1e-10
    gram = means.T @ means / (N + 1)
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-13)


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("gamma", [1, 0.1, 0.001])
@pytest.mark.parametrize("name", TERMS)
def test_tables_equal_single_solves(name: str, gamma: float, replace: bool) -> None:
    tables = solvers.bias_variance_tables(batch(name, SIZES, M), gamma, law_of(replace))
    for N, table in zip(SIZES, tables, strict=True):
        exact = solvers.bias_variance(single(name, N, M, replace), gamma).values
        assert np.abs(table - exact).max() < 1e-10


@pytest.mark.parametrize("ratio", [1, 1.1, 1.5, 3])
@pytest.mark.parametrize("m", [1, 2, 5, 300])
@pytest.mark.parametrize("replace", LAWS)
def test_samples_not_small_against_the_catalogue(m: int, replace: bool, ratio: float) -> None:
    N = int(ratio * m)
    table = solvers.bias_variance_tables(batch("ap", [N], m), 0.01, law_of(replace))[0]
    exact = solvers.bias_variance(single("ap", N, m, replace), 0.01).values
    assert np.abs(table - exact).max() < 1e-11


@pytest.mark.parametrize("sizes", [[1000], [1000, 1003], [1000, 1020], [1000, 50_000], [100, 50_000]])
def test_few_sizes(sizes: list[int]) -> None:
    tables = solvers.bias_variance_tables(batch("recall@10", sizes, 30), 0.01, BINOMIAL)
    for N, table in zip(sizes, tables, strict=True):
        task = solvers.problem(lambda g: (g < 10) * np.ones(g.size), N, 30, law=BINOMIAL, breaks=[10])
        assert np.abs(table - solvers.bias_variance(task, 0.01).values).max() < 1e-11


@pytest.mark.parametrize("replace", LAWS)
def test_rows_with_their_own_item_and_number_of_relevant_items(replace: bool) -> None:
    n, m, k = 700, 20, 10
    n_relevant, i = np.array([1, 2, 2, 3, 3, 3]), np.array([1, 1, 2, 1, 2, 3])
    N = n - n_relevant

    def term(g: Floats, row: Ints | int) -> Floats:
        return np.where(g + i[row] <= k, i[row] / (g + i[row]) / n_relevant[row], 0.0)

    tables = solvers.bias_variance_tables(solvers.Batch(term, N, m, last=k - i), 0.05, law_of(replace))
    for j, table in enumerate(tables):
        task = solvers.problem(partial(term, row=j), int(N[j]), m, law=law_of(replace), smooth=False)
        assert np.abs(table - solvers.bias_variance(task, 0.05).values).max() < 1e-11


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("i", [1, 2, 3, 4])
def test_items_that_can_never_be_within_the_cutoff_add_nothing(i: int, replace: bool) -> None:
    values = tr.estimators.correction_table(
        "recall@1~bv(0.1)", design=tr.UniformSampling(10, replace), n=1000, i=i, n_relevant=4
    )
    assert (i == 1) == bool(values.any())


@pytest.mark.parametrize("name", ["ap", "ndcg@10", "recall@200", "rr"])
@pytest.mark.parametrize(("correction", "m"), [("cls", 100), ("cls", 7), ("ls", 7)])
def test_least_bias_of_many_sizes_equals_that_of_each(name: str, correction: str, m: int) -> None:
    """The problems set up for all n at once have the solutions of those assembled from the law, one by one."""
    corrected = as_metric(f"{name}~{correction}")
    assert isinstance(corrected, Corrected)
    assert isinstance(corrected.correction, Correction)
    term = corrected.metric.terms(tr.Ranks.from_ranks([1], n=1_000))[0].term
    cases = [Case(i, 2, n, m) for n in (250, 305, 1_000, 3_479, 100_000) for i in (1, 2)] + [Case(1, 1, 3_706, m - 1)]
    together = corrected.correction.tables(term, HYPERGEOMETRIC, cases)
    for case, table in zip(cases, together, strict=True):
        alone = corrected.correction.solve(term, HYPERGEOMETRIC, case).values
        np.testing.assert_allclose(table, alone, rtol=0, atol=1e-9 * np.abs(alone).max(), err_msg=str(case))


@pytest.mark.parametrize("name", ["ap", "ndcg@10", "auc"])
@pytest.mark.parametrize(("m", "sizes"), [(3, (4, 8)), (50, (51, 52, 90, 149)), (200, (203, 420, 601))])
def test_large_samples_have_the_tables_of_direct_solutions(name: str, m: int, sizes: tuple[int, ...]) -> None:
    corrected = as_metric(f"{name}~bv(0.05)")
    assert isinstance(corrected, Corrected)
    assert isinstance(corrected.correction, Correction)
    term = corrected.metric.terms(tr.Ranks.from_ranks([1], n=1_000))[0].term
    cases = [Case(1, 1, n, m) for n in sizes]
    for case, table in zip(cases, corrected.correction.tables(term, HYPERGEOMETRIC, cases), strict=True):
        alone = corrected.correction.solve(term, HYPERGEOMETRIC, case).values
        np.testing.assert_allclose(table, alone, rtol=0, atol=1e-11 * np.abs(alone).max(), err_msg=str(case))


def test_sums_of_samples_that_are_all_too_large_are_left_open() -> None:
    both = batch("ap", [21, 30], m=0)
    counts = np.array([[1.0], [2.0]]), np.ones((2, 1))
    assert np.isnan(solvers.bias_variance_sums(both, counts, np.array([8, 19]), 0.1)).all()
    assert np.isnan(solvers.bias_variance_sums(both, counts, np.array([7, 8]), 0.1)).tolist() == [False, True]


def test_the_polynomial_of_no_draws() -> None:
    assert solvers.sampled_polynomials(0).tolist() == [[1.0]]
