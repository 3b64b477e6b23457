"""Through the public names alone: the risk of a sampled metric is what all samples together say."""

from collections import Counter
from functools import lru_cache
from itertools import chain, combinations, product
from math import comb

import numpy as np
import pytest

import truerank as tr
from tests.arrays import Floats
from tests.sampling import reference
from tests.sampling.terms import LAWS, plain
from tests.sampling.test_expectations import TABLE_2, TOY

N, M = 5, 3
"""Irrelevant candidates of the catalogues whose samples are all enumerated, and the size of a sample."""

METRICS = ["auc", "ap", "ap@2", "ndcg@3", "recall@1", "recall@3", "rr", "rbp(0.9)"]
MORE = ["ndcg", "rr@2", "precision@2", "hr@2", "accuracy", "f1@3", "r-precision", "mean-rank"]
CORRECTIONS = ["", "~rank", "~rank(interpolate)", "~ls", "~cls", "~bv(0.1)"]


@lru_cache
def all_ranks(n_relevant: int) -> tr.Ranks:
    """Ways in which the relevant items can stand among the N irrelevant ones: all, every second or every third."""
    n = N + n_relevant
    return tr.Ranks.from_ranks(list(combinations(range(1, n + 1), n_relevant))[::n_relevant], n=n)


@lru_cache
def all_samples(n_relevant: int, m: int, replace: bool) -> tuple[tr.Ranks, int]:
    """What each sample shows of each of `all_ranks`, and the number of samples."""
    drawn = list(reference.samples(N, m, replace))
    exact = all_ranks(n_relevant).above.reshape(-1, n_relevant)
    sampled = [
        [sum(candidate < g for candidate in sample) + i for i, g in enumerate(above, 1)]
        for above in exact.tolist()
        for sample in drawn
    ]
    return tr.Ranks.from_sampled(sampled, m=m, n=N + n_relevant, replace=replace), len(drawn)


def law(g: int, h: int, m: int, n_irrelevant: int, replace: bool) -> float:
    if replace:
        return comb(m, h) * g**h * (n_irrelevant - g) ** (m - h) / n_irrelevant**m
    return comb(g, h) * comb(n_irrelevant - g, m - h) / comb(n_irrelevant, m)


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("n_relevant", [1, 2, 3])
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_risk_equals_the_enumeration_of_all_samples(correction: str, n_relevant: int, replace: bool) -> None:
    ranks = all_ranks(n_relevant)
    samples, number = all_samples(n_relevant, M, replace)
    for metric in METRICS if correction else METRICS + MORE:
        found = tr.risk(ranks, metric + correction, tr.UniformSampling(M, replace))
        values = tr.values(samples, metric + correction).reshape(len(ranks), number)
        np.testing.assert_array_equal(found.exact, tr.values(ranks, metric))
        np.testing.assert_allclose(found.expected, values.mean(axis=1), rtol=1e-12, atol=1e-13, err_msg=metric)
        np.testing.assert_allclose(found.variance, values.var(axis=1), rtol=1e-10, atol=1e-13, err_msg=metric)
        errors = np.mean((values - found.exact[:, None]) ** 2, axis=1)
        np.testing.assert_allclose(found.mean_squared_error, errors, rtol=1e-10, atol=1e-13, err_msg=metric)


@pytest.mark.parametrize("replace", LAWS)
def test_risk_of_instances_of_all_kinds_at_once(replace: bool) -> None:
    """Each instance by its own number of relevant items and candidates; none where nothing is relevant."""
    places = [[2, 3, 9], [], [4], [1, 7], [6], [1, 2, 3]]
    n = [9, 9, 8, 12, 40, 9]
    ranks = tr.Ranks.from_ranks(places, n=n)
    for metric in ("ap", "ndcg@5~cls", "recall@3~bv(0.1)", "ap~ls", "rr~rank"):
        design = tr.UniformSampling(5, replace)
        found = tr.risk(ranks, metric, design)
        for place, (own, size) in enumerate(zip(places, n, strict=True)):
            if own:
                alone = tr.risk(tr.Ranks.from_ranks([own], n=size), metric, design)
                np.testing.assert_allclose(found.expected[place], alone.expected[0], rtol=1e-9)
                np.testing.assert_allclose(found.variance[place], alone.variance[0], rtol=1e-9, atol=1e-15)
            else:
                assert np.isnan([found.exact[place], found.expected[place], found.variance[place]]).all()
        defined = [place for place, own in enumerate(places) if own]
        assert found.mean == pytest.approx(found.expected[defined].mean(), rel=1e-13)
        assert found.mean_bias == pytest.approx((found.expected - found.exact)[defined].mean(), rel=1e-12)
        deviation = np.sqrt(found.variance[defined].sum()) / len(defined)
        assert found.standard_deviation == pytest.approx(deviation, rel=1e-13)


@pytest.mark.parametrize("n_relevant", [1, 2, 3])
@pytest.mark.parametrize("correction", [*CORRECTIONS, "~bv(1)", "~bv(0.001)"])
def test_everything_sampled_gives_the_exact_metric(correction: str, n_relevant: int) -> None:
    ranks = all_ranks(n_relevant)
    samples, number = all_samples(n_relevant, N, False)
    assert number == 1
    for metric in METRICS + MORE:
        exact = tr.values(ranks, metric)
        np.testing.assert_allclose(tr.values(samples, metric + correction), exact, rtol=0, atol=1e-12, err_msg=metric)
        found = tr.risk(ranks[::4], metric + correction, tr.UniformSampling(N))
        np.testing.assert_allclose(found.expected, exact[::4], rtol=0, atol=1e-12, err_msg=metric)
        np.testing.assert_allclose(found.variance, 0, atol=1e-20, err_msg=metric)


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize(("n", "m"), [(9, 4), (30, 26), (400, 30)])
@pytest.mark.parametrize("metric", METRICS + MORE)
def test_gamma_one_is_equation_26(metric: str, n: int, m: int, replace: bool) -> None:
    """Mean of the metric at each rank, weighted by the law of the sampled rank there."""
    for n_relevant in (1, 3):
        size = n - n_relevant
        probabilities = _laws(m, size, replace)
        for i in range(1, n_relevant + 1):
            whole = np.full(size + 1, n)
            numbers = (np.full_like(whole, i), np.full_like(whole, n_relevant), whole)
            term = plain(metric).term(np.arange(size + 1) + i, *numbers)
            direct = probabilities.T @ term / probabilities.sum(axis=0)
            table = tr.estimators.correction_table(
                f"{metric}~bv(1)", design=tr.UniformSampling(m, replace), n=n, i=i, n_relevant=n_relevant
            )
            np.testing.assert_allclose(table, direct, rtol=1e-10, atol=1e-13)


@lru_cache
def _laws(m: int, size: int, replace: bool) -> Floats:
    return np.array([[law(g, h, m, size, replace) for h in range(m + 1)] for g in range(size + 1)])


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize(("name", "metric"), TABLE_2)
def test_table_2(name: str, metric: str, replace: bool) -> None:
    found = tr.risk(tr.Ranks.from_ranks(TOY[name], n=10_000), metric, tr.UniformSampling(99, replace))
    mean, deviation = TABLE_2[name, metric]
    assert abs(found.mean - mean) < 3 * deviation / np.sqrt(1000) + 0.0005


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("metric", ["ap", "ap~bv(0.1)"])
def test_drawn_samples_have_the_risk(metric: str, replace: bool) -> None:
    draws = 20_000
    ranks = tr.Ranks.from_ranks([[3, 20, 21, 77]], n=100)
    design = tr.UniformSampling(20, replace)
    found = tr.risk(ranks, metric, design)
    values = tr.values(design.draw(ranks[np.zeros(draws, dtype=int)], rng=5), metric)
    assert abs(values.mean() - found.expected[0]) < 5 * np.sqrt(found.variance[0] / draws)
    fourth = np.mean((values - found.expected[0]) ** 4)
    assert abs(values.var() - found.variance[0]) < 5 * np.sqrt((fourth - found.variance[0] ** 2) / draws)


def test_risk_needs_exact_ranks() -> None:
    with pytest.raises(tr.InputError, match="must be exact"):
        tr.risk(tr.Ranks.from_sampled([1], m=3, n=9), "ap", tr.UniformSampling(3))
    with pytest.raises(tr.InputError, match="`m` must be at most"):
        tr.risk(tr.Ranks.from_ranks([1], n=9), "ap", tr.UniformSampling(9))
    with pytest.raises(tr.InputError, match="needs uniform sampling"):
        tr.risk(tr.Ranks.from_ranks([1], n=9), "ap", tr.PopularitySampling(3, power=1.0))


TIED = {
    "one": tr.Ranks(above=[2], tied=[3], n_candidates=8),
    "two in a block": tr.Ranks(above=[1, 1], tied=[3, 3], n_candidates=8, indptr=[0, 2]),
    "one apart": tr.Ranks(above=[0, 2, 2], tied=[0, 2, 2], n_candidates=9, indptr=[0, 3]),
    "two blocks": tr.Ranks(above=[0, 0, 4], tied=[2, 2, 2], n_candidates=9, indptr=[0, 3]),
    "all": tr.Ranks(above=[0, 0, 0], tied=[5, 5, 5], n_candidates=8, indptr=[0, 3]),
}


def all_orders(ranks: tr.Ranks) -> tr.Ranks:
    """Every order of the ties of one instance: in a block, any places are as likely as any others."""
    blocks = sorted(Counter(zip(ranks.above.tolist(), ranks.tied.tolist(), strict=True)).items())
    before, ways = 0, []
    for (above, tied), relevant in blocks:
        places = range(above + before + 1, above + before + tied + relevant + 1)
        ways.append(list(combinations(places, relevant)))
        before += relevant
    return tr.Ranks.from_ranks([list(chain(*way)) for way in product(*ways)], n=int(ranks.n_candidates[0]))


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("name", TIED)
def test_ties_are_averaged_over_all_orders(name: str, replace: bool) -> None:
    """The mean of the means, and the law of total variance, over every order of the ties."""
    ranks, design = TIED[name], tr.UniformSampling(3, replace)
    if replace and len(ranks.above) > 1:
        with pytest.raises(tr.InputError, match="only for sampling without replacement"):
            tr.risk(ranks, "ap", design)
        return
    orders = all_orders(ranks)
    for metric in ("ap", "auc", "recall@2", "ndcg@3", "ap~bv(0.1)", "recall@2~cls"):
        found, each = tr.risk(ranks, metric, design), tr.risk(orders, metric, design)
        assert found.expected[0] == pytest.approx(each.expected.mean(), rel=1e-12, abs=1e-13), metric
        variance = each.variance.mean() + each.expected.var()
        assert found.variance[0] == pytest.approx(variance, rel=1e-11, abs=1e-13), metric
        assert found.exact[0] == pytest.approx(each.exact.mean(), rel=1e-12)


@pytest.mark.parametrize("replace", LAWS)
def test_many_ties_equal_the_mean_over_every_place(replace: bool) -> None:
    n, tied = 900, 700
    places = tr.Ranks.from_ranks(np.arange(101, 101 + tied + 1), n=n)
    for metric in ("ap", "recall@10~bv(0.1)", "ndcg@10"):
        found = tr.risk(
            tr.Ranks(above=[100], tied=[tied], n_candidates=n), metric, design=tr.UniformSampling(50, replace)
        )
        each = tr.risk(places, metric, design=tr.UniformSampling(50, replace))
        assert found.mean == pytest.approx(each.mean, rel=1e-11)
        assert found.variance[0] == pytest.approx(each.variance.mean() + each.expected.var(), rel=1e-10)


def test_a_correction_may_assume_another_design_and_another_n() -> None:
    ranks = tr.Ranks.from_ranks([3, 40, 77], n=[90, 100, 120])
    drawn, assumed = tr.UniformSampling(20), tr.UniformSampling(20, replace=True)
    found = tr.risk(ranks, "ap~bv(0.1)", drawn, assumed=assumed, assumed_n=100)
    table = tr.estimators.correction_table("ap~bv(0.1)", assumed, n=100)
    expected = [
        sum(law(rank - 1, h, 20, n - 1, False) * table[h] for h in range(21))
        for rank, n in ((3, 90), (40, 100), (77, 120))
    ]
    np.testing.assert_allclose(found.expected, expected, rtol=1e-12)
    with pytest.raises(tr.InputError, match="must sample as many candidates"):
        tr.risk(ranks, "ap~cls", drawn, assumed=tr.UniformSampling(19))
