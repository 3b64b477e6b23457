from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import ArrayLike

import truerank as tr
from tests.arrays import Floats
from tests.sampling import reference
from tests.sampling.terms import LAWS, METRICS, law_of, plain, problem_of, sampled_table, term_of
from truerank.estimators import solvers
from truerank.estimators.least_squares import rank_estimate
from truerank.metrics import AP
from truerank.sampling import expectations
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC, Law

TOY = {"A": [100] * 5, "B": [40, 40, 8437, 9266, 4482], "C": [212, 2, 743, 5342, 1548]}
# Table 2 of the paper: mean and deviation over 1,000 repetitions, m = 99, n = 10,000.
TABLE_2 = {
    ("A", "auc"): (0.990, 0.004), ("A", "ap"): (0.630, 0.129), ("A", "ndcg"): (0.724, 0.097),
    ("B", "auc"): (0.555, 0.014), ("B", "ap"): (0.336, 0.073), ("B", "ndcg"): (0.444, 0.054),
    ("C", "auc"): (0.843, 0.014), ("C", "ap"): (0.325, 0.050), ("C", "ndcg"): (0.460, 0.039),
    ("A", "recall@10"): (1.000, 0.000), ("B", "recall@10"): (0.400, 0.000), ("C", "recall@10"): (0.567, 0.092),
}  # fmt: skip


def table_moments(table: ArrayLike, g: ArrayLike, N: int, law: Law) -> tuple[Floats, Floats]:
    return expectations.table_moments(table, expectations.ItemLaws(law, g, np.size(table) - 1, N))


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("g", [[0], [3], [6], [1, 4], [2, 2], [0, 6], [1, 3, 5], [0, 0, 6]], ids=str)
@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_joint_moments_equal_enumeration(metric: tr.metrics.PlainMetric, g: list[int], replace: bool) -> None:
    N, m = 6, 4
    tables = [sampled_table(metric, m, i, len(g)) for i in range(1, len(g) + 1)]
    found = expectations.joint_moments(tables, g, N, law=law_of(replace))
    enumerated = reference.enumerated_moments(tables, g, N, m, replace)
    np.testing.assert_allclose(found, enumerated, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("g", [[3], [1, 4], [1, 3, 5]], ids=str)
@pytest.mark.parametrize("method", ["uncorrected", "rank", "cls", "bv"])
def test_bias_with_many_relevant_items_is_the_sum_of_the_terms(method: str, g: list[int], replace: bool) -> None:
    """By enumeration: the expectation of a corrected metric needs no independence."""
    N, m, R = 6, 4, len(g)
    metric, n = AP(), 6 + len(g)

    def table_for(i: int) -> Floats:
        task = problem_of(metric, n, m, replace, i, R)
        if method == "uncorrected":
            return sampled_table(metric, m, i, R)
        if method == "rank":
            return rank_estimate(term_of(metric, i, R, n), N, m)
        return (solvers.constrained(task) if method == "cls" else solvers.bias_variance(task, 0.1)).values

    tables = [table_for(i) for i in range(1, R + 1)]
    exact = [term_of(metric, i, R, n)(np.array(above)).item() for i, above in enumerate(g, 1)]
    formula = sum(
        table_moments(table, [above], N, law_of(replace))[0].item() - f
        for table, f, above in zip(tables, exact, g, strict=True)
    )
    mean, _ = reference.enumerated_moments(tables, g, N, m, replace)
    assert mean - sum(exact) == pytest.approx(float(formula), abs=1e-13)


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_walk_equals_table(metric: tr.metrics.PlainMetric, replace: bool) -> None:
    N, m = 700, 60
    g = np.arange(N + 1)

    def term(h: Floats, size: Floats) -> Floats:
        rank, among = h.astype(np.int64) + 1, size.astype(np.int64) + 1
        return metric.term(rank, np.ones_like(rank), np.ones_like(rank), among)

    mean, variance = expectations.moments(term, g, m, N, law=law_of(replace))
    by_table = table_moments(sampled_table(metric, m), g, N, law_of(replace))
    np.testing.assert_allclose(mean, by_table[0], rtol=1e-12, atol=1e-17)
    np.testing.assert_allclose(variance, by_table[1], rtol=1e-10, atol=1e-17)


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("m", [1, 7, 99])
def test_closed_forms_equal_sums(m: int, replace: bool) -> None:
    N = 99
    g, h = np.arange(N + 1), np.arange(m + 1)
    law = law_of(replace).rows(g, m, N)
    reciprocal = expectations.mean_reciprocal(g, m, N, law=law_of(replace))
    np.testing.assert_allclose(reciprocal, law @ (1 / (h + 1)), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(law @ (1 - h / m), 1 - g / N, rtol=1e-12, atol=1e-14)  # eq. 17
    for k in (0, 1, 5, 50, 200):
        cut = expectations.mean_reciprocal(g, m, N, law=law_of(replace), k=k)
        np.testing.assert_allclose(cut, law[:, :k] @ (1 / (h[:k] + 1)), rtol=1e-11, atol=1e-300)
        hit = law_of(replace).cdf(k - 1, g, m, N)
        np.testing.assert_allclose(hit, law[:, :k].sum(axis=1), rtol=1e-12, atol=1e-300)


def test_equation_19_as_printed() -> None:
    n, m, r = 10_000, 99, np.array([2, 100, 5000])
    printed = (1 - ((n - r) / (n - 1)) ** (m + 1)) / ((r - 1) * (m + 1) / (n - 1))
    np.testing.assert_allclose(expectations.mean_reciprocal(r - 1, m, n - 1, law=BINOMIAL), printed, rtol=1e-11)


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize(("name", "metric"), TABLE_2)
def test_table_2(name: str, metric: str, replace: bool) -> None:
    g = np.array(TOY[name]) - 1
    table = sampled_table(plain(metric), 99)
    mean, variance = table_moments(table, g, 9999, law_of(replace))
    deviation = np.sqrt(variance.sum()) / len(g)
    published_mean, published_deviation = TABLE_2[name, metric]
    # Five standard errors of the paper's 1,000 repetitions, and its rounding.
    assert abs(mean.mean() - published_mean) < 5 * deviation / np.sqrt(1000) + 0.0005
    assert abs(deviation - published_deviation) < 5 * deviation / np.sqrt(2000) + 0.0005


def test_monte_carlo_of_a_shared_sample() -> None:
    rng = np.random.default_rng(4)
    N, m, g = 200, 30, np.array([5, 40, 41, 150])
    tables = [sampled_table(AP(), m, i, 4) for i in range(1, 5)]
    drawn = np.array([rng.choice(N, m, replace=False) for _ in range(20_000)])
    counts = np.stack([(drawn < above).sum(axis=1) for above in g])
    values = np.sum([table[h] for table, h in zip(tables, counts, strict=True)], axis=0)
    mean, variance = expectations.joint_moments(tables, g, N, law=HYPERGEOMETRIC)
    assert abs(values.mean() - mean) < 5 * np.sqrt(variance / 20_000)
    fourth = np.mean((values - mean) ** 4)
    assert abs(values.var() - variance) < 5 * np.sqrt((fourth - variance**2) / 20_000)


def test_risk_of_an_unreachable_unknown_value() -> None:
    table: Sequence[float] = [1.0, 0.5, np.nan]
    assert np.isfinite(table_moments(table, [0, 1], 9, HYPERGEOMETRIC)).all()
    assert np.isnan(table_moments(table, [2], 9, HYPERGEOMETRIC)[0]).all()


@pytest.mark.parametrize("replace", LAWS)
def test_pooled_laws_are_sums_of_the_laws_of_their_groups(replace: bool) -> None:
    rng, law, m = np.random.default_rng(5), law_of(replace), 30
    N, group, weight = rng.integers(30, 200, 40), rng.integers(0, 3, 40), rng.random(40)
    g = rng.integers(0, N + 1)
    expected = np.zeros((3, m + 1))
    for at in range(40):
        expected[group[at]] += weight[at] * law.rows(g[at : at + 1], m, int(N[at]))[0]
    found = expectations.pooled_laws(law, g.astype(float), m, N, weight=weight, group=group, n_groups=3)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)


def test_a_metric_that_ends_above_the_first_place_is_0() -> None:
    numbers = np.array([3.0, 0.0])
    assert expectations.mean_up_to(
        lambda h, m: 1 / (h + 1), -1, numbers, numbers, numbers + 5, HYPERGEOMETRIC
    ).tolist() == [0.0, 0.0]
