"""Estimators of the literature against their definitions, and gamma by least estimated risk."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

import truerank as tr
from tests.arrays import Floats
from truerank.estimators.bias_variance import GAMMAS, BiasVariance
from truerank.estimators.literature import MultinomialTable, maximum_entropy_law
from truerank.estimators.pooled import Smooth
from truerank.estimators.rank_laws import cells
from truerank.sampling.laws import HYPERGEOMETRIC

N, M = 20, 6


def chances(m: int = M) -> Floats:
    """A row per count 0..20 above the item: the law of the sampled count."""
    return stats.hypergeom.pmf(np.arange(m + 1), N, np.arange(N + 1)[:, None], m)


def sample(seed: int, design: tr.SamplingDesign | None = None) -> tr.Ranks:
    rng = np.random.default_rng(seed)
    exact = tr.Ranks.from_ranks(np.minimum(rng.geometric(0.2, 400), N + 1), n=N + 1)
    return (design or tr.UniformSampling(M)).draw(exact, rng=rng)


def test_maximum_entropy_is_the_least_of_its_goal() -> None:
    ranks = sample(0)
    shares = np.bincount(ranks.above, minlength=M + 1) / len(ranks)
    found = maximum_entropy_law(chances(), shares, cells(N), 0.01)

    def goal(law: Floats) -> float:
        return float((M + 1) * shares @ (chances().T @ law - shares) ** 2 + 0.01 * (law @ np.log(law)))

    best = minimize(
        goal,
        np.full(N + 1, 1 / (N + 1)),
        bounds=[(1e-9, 1)] * (N + 1),
        constraints={"type": "eq", "fun": lambda law: law.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1_000},
    )
    assert found.sum() == pytest.approx(1.0, rel=1e-12)
    assert goal(found) <= best.fun + 1e-10
    np.testing.assert_allclose(found, best.x, atol=1e-4)


@pytest.mark.parametrize(("m", "count", "eta"), [(M, 0, 1e-7), (M, 0, 1e-4), (18, 5, 1e-6), (18, 10, 4e-8)])
def test_maximum_entropy_of_a_single_count(m: int, count: int, eta: float) -> None:
    """Whole Newton steps would leave the region where the law is positive, or raise the goal."""
    found = maximum_entropy_law(chances(m), np.eye(m + 1)[count], cells(N), eta)

    def goal(law: Floats) -> float:
        return float((m + 1) * (chances(m)[:, count] @ law - 1) ** 2 + eta * (law @ np.log(law)))

    assert found.sum() == pytest.approx(1.0, rel=1e-12)
    for cell, share in product(np.eye(N + 1), [1e-6, 1e-4, 0.01, 0.1]):
        for other in ((1 - share) * found + share * cell, (found * (1 - share * cell)) / (1 - share * found @ cell)):
            assert goal(found) <= goal(other) + 1e-11


def test_a_law_that_is_not_found_in_time_is_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truerank.estimators.literature._MOST_STEPS", 1)
    found = maximum_entropy_law(chances(), np.eye(M + 1)[0], cells(N), 0.01)
    assert found.sum() == pytest.approx(1.0, rel=1e-12)
    assert (found > 0).all()
    assert found[0] > 1 / (N + 1)


def test_a_single_multinomial_table_is_that_of_many() -> None:
    """Few numbers of candidates, however far apart, are not interpolated."""
    table, term = MultinomialTable(tr.estimators.as_prior([3, 1, 2]), 400), tr.metric("ap").terms(sample(2))[0].term
    cases = [tr.estimators.Case(1, 1, n, M) for n in (N + 1, 307, 2_001)]
    for case, expected in zip(cases, table.tables(term, HYPERGEOMETRIC, cases), strict=True):
        np.testing.assert_array_equal(table.solve(term, HYPERGEOMETRIC, case).values, expected)


@pytest.mark.parametrize("metric", ["ndcg@5", "ap", "recall@3"])
def test_maximum_entropy_metrics_are_means_under_the_law(metric: str) -> None:
    ranks = sample(1)
    shares = np.bincount(ranks.above, minlength=M + 1) / len(ranks)
    law = maximum_entropy_law(chances(), shares, cells(N), 0.02)
    exact = tr.values(tr.Ranks.from_ranks(range(1, N + 2), n=N + 1), metric)
    assert tr.estimate(ranks, f"{metric}~mes(0.02)").mean == pytest.approx(law @ exact, rel=1e-9)
    assert tr.values(ranks, f"{metric}~mes(0.02)").std() > 0, "instances differ, and so have an error"


@pytest.mark.parametrize("metric", ["ndcg@5", "ap", "recall@3"])
def test_multinomial_tables_against_the_formula(metric: str) -> None:
    prior = tr.estimators.as_prior(1 / np.arange(1.0, N + 2))
    A, D, ones = chances(), np.diag(prior), np.ones(N + 1)
    f = tr.values(tr.Ranks.from_ranks(range(1, N + 2), n=N + 1), metric)
    expected = np.linalg.inv(A.T @ D @ A - A.T @ A / 400 + np.diag(A.T @ ones) / 400) @ A.T @ D @ f
    chosen = tr.estimators.Corrected(tr.metric(metric), MultinomialTable(prior, 400))
    np.testing.assert_allclose(tr.values(sample(2), chosen), expected[sample(2).above], rtol=1e-9)


def test_multinomial_learns_its_prior() -> None:
    ranks = sample(3)
    table = tr.estimators.Corrected(tr.metric("ap"), MultinomialTable(tr.estimators.learn_prior(ranks), 400))
    np.testing.assert_array_equal(tr.values(ranks, "ap~mn"), tr.values(ranks, table))
    (note,) = (note for note in tr.estimate(ranks, "ap~mn").notes if "prior" in note)
    assert note == "ap~mn rests on a prior that is learned from the same sample"


def test_multinomial_tables_are_interpolated_between_many_sizes() -> None:
    rng = np.random.default_rng(5)
    n = rng.integers(1_500, 3_500, 300)
    ranks = tr.UniformSampling(50).draw(tr.Ranks.from_ranks(rng.integers(1, 60, 300), n=n), rng=1)
    correction = MultinomialTable(tr.estimators.as_prior(1 / np.arange(1.0, 400)), 300)
    chosen = tr.estimators.Corrected(tr.metric("ndcg@10"), correction)
    single = np.concatenate([tr.values(ranks[[place]], chosen) for place in range(40)])
    np.testing.assert_allclose(tr.values(ranks, chosen)[:40], single, atol=0.01 * np.abs(single).max())


def risk(gamma: float, metric: str, law: Floats, instances: int) -> float:
    """Squared bias plus variance over the instances, by enumeration."""
    table = tr.estimators.correction_table(f"{metric}~bv({gamma})", design=M, n=N + 1)
    exact = tr.values(tr.Ranks.from_ranks(range(1, N + 2), n=N + 1), metric)
    mean = chances() @ table
    return float((law @ (mean - exact)) ** 2 + law @ (chances() @ table**2 - mean**2) / instances)


@pytest.mark.parametrize("metric", ["ndcg@5", "ap", "recall@3"])
def test_gamma_has_the_least_estimated_risk(metric: str) -> None:
    ranks = sample(4)
    law = Smooth().laws(ranks).laws[0]
    best = min(GAMMAS, key=lambda gamma: risk(gamma, metric, law, len(ranks)))
    assert len({round(risk(gamma, metric, law, len(ranks)), 12) for gamma in GAMMAS}) == len(GAMMAS)
    np.testing.assert_array_equal(tr.values(ranks, f"{metric}~bv(auto)"), tr.values(ranks, f"{metric}~bv({best})"))
    notes = tr.estimate(ranks, f"{metric}~bv(auto)").notes
    assert f"the gamma of {metric}~bv(auto) is {best:g}, which has the least risk if" in " ".join(notes)


def test_text_forms_and_refusals() -> None:
    assert str(tr.metric("ap~bv(auto)")) == "ap~bv(auto)"
    assert tr.metric("ap~bv(auto)") == tr.estimators.Corrected(tr.metric("ap"), BiasVariance("auto"))
    assert str(tr.metric("ap~mes")) == "ap~mes"
    with pytest.raises(tr.InputError, match=r"ap~bv\(auto\) has no table: its values depend on all instances"):
        tr.estimators.correction_table("ap~bv(auto)", design=5, n=20)
    with pytest.raises(tr.InputError, match=r"bv is written 'bv' or 'bv\(gamma\)', got 'bv\(best\)'"):
        tr.metric("ap~bv(best)")
    inverse = sample(1, tr.InverseSampling(2))
    for estimator in ("bv(auto)", "mes", "mn"):
        with pytest.raises(tr.InputError, match="needs the same number of draws for each item"):
            tr.values(inverse, f"ap~{estimator}")
    two = tr.Ranks.from_sampled([1, 2], m=[5, 6], n=21)
    with pytest.raises(tr.InputError, match="ap~mes needs the same number of draws for each instance; use ~em"):
        tr.values(two, "ap~mes")


def test_a_prior_that_drives_the_result_is_noted() -> None:
    ranks = sample(6)
    steep = tr.estimators.as_prior(2.0 ** np.arange(N + 1.0))
    for correction in (
        BiasVariance(0.1, steep),
        BiasVariance("auto", tr.estimators.as_prior(4.0 ** np.arange(N + 1.0))),
    ):
        notes = tr.estimate(ranks, tr.estimators.Corrected(tr.metric("ap"), correction)).notes
        assert any(note.startswith("the prior drives ap~bv(") for note in notes)
    nothing = tr.Ranks.concatenate([ranks, tr.Ranks.from_sampled([[]] * 100, m=M, n=N + 1)])
    plain, steeply = (tr.estimators.Corrected(tr.metric("ap"), BiasVariance(0.1, prior)) for prior in (None, steep))
    (note,) = (note for note in tr.estimate(nothing, steeply).notes if "drives" in note)
    assert f"without it the result is {tr.estimate(ranks, plain).mean:.4f}, more than" in note
    flat = tr.estimators.Corrected(tr.metric("ap"), BiasVariance(0.1, tr.estimators.as_prior(np.ones(N + 1))))
    assert not any("prior" in note for note in tr.estimate(ranks, flat).notes)


def test_priors_in_parts_are_spread_over_all_counts() -> None:
    parts, counts = (MultinomialTable(tr.estimators.as_prior(np.ones(size)), 300) for size in (3, 60))
    one, other = (
        tr.estimators.correction_table(tr.estimators.Corrected(tr.metric("ap"), correction), design=10, n=60)
        for correction in (parts, counts)
    )
    np.testing.assert_allclose(one, other, rtol=1e-9)
