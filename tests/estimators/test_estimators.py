"""Estimators of exact metrics under designs that draw a number of candidates of their own for each item."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

import truerank as tr
from tests.sampling.test_every_design import looked_at
from truerank.estimators import rank_laws as posteriors
from truerank.estimators.bias_variance import _cases
from truerank.estimators.pooled import Smooth, _quantiles, sampled_again
from truerank.estimators.rank_laws import (
    Cells,
    Seen,
    _coarse,
    cells,
    expectation_maximisation,
    monotone_law,
    smooth_law,
)
from truerank.estimators.unbiased import unbiased_reciprocal
from truerank.papers.krichene_rendle_2020.movielens import embedded
from truerank.sampling.laws import HYPERGEOMETRIC

UNBIASED = ["ap", "rr", "auc", "mean-rank"]
POOLED = ["em", "monotone", "smooth", "smooth(0.5)", "em(5)"]


def every_draw(n: int, above: list[int], hits: int) -> Iterator[tr.Ranks]:
    """Yield the ranks that each order of the irrelevant candidates gives, all of which are equally likely."""
    for order in itertools.permutations(range(n)):
        seen = [looked_at(order, each, hits, None) for each in above]
        drawn, found = [t for t, _ in seen], [j for _, j in seen]
        yield tr.Ranks(
            above=found,
            n_candidates=max(drawn) + len(above),
            indptr=[0, len(above)],
            sample=tr.Sample(tr.InverseSampling(hits), n + len(above), drawn),
        )


@pytest.mark.parametrize("metric", UNBIASED)
@pytest.mark.parametrize("hits", [2, 3])
@pytest.mark.parametrize("above", [[0], [1], [3], [5], [1, 3, 3], [0, 2, 4, 5]])
def test_unbiased_over_all_draws(above: list[int], hits: int, metric: str) -> None:
    exact = tr.Ranks(above=above, n_candidates=5 + len(above), indptr=[0, len(above)])
    mean = np.mean([tr.values(sampled, f"{metric}~unbiased") for sampled in every_draw(5, above, hits)])
    assert mean == pytest.approx(tr.values(exact, metric).item(), rel=1e-12)


@pytest.mark.parametrize("metric", ["ap", "rr"])
def test_unbiased_with_a_single_hit(metric: str) -> None:
    exact = tr.Ranks(above=[1, 2, 4], n_candidates=9, indptr=[0, 3])
    mean = np.mean([tr.values(sampled, metric) for sampled in every_draw(6, [1, 2, 4], 1)])
    assert mean == pytest.approx(tr.values(exact, metric).item(), rel=1e-12)


@pytest.mark.parametrize(("n", "hits"), [(30, 1), (30, 2), (400, 3)])
def test_unbiased_reciprocal_against_its_alternating_sum(n: int, hits: int) -> None:
    """The form with positive terms has all digits where the sum, here in fractions, would cancel."""
    for i, t in itertools.product((1, 2, 7, 25), (hits, n // 2, n)):
        total = Fraction(0)
        for s in range(1, i + 1):
            top, below, catalogue = (math.prod(range(x, x + s)) for x in (t, hits, n + 1))
            factor = Fraction(math.factorial(i - 1), math.factorial(i - s))
            total += (-1) ** (s - 1) * factor * Fraction(top, below * catalogue)
        found = unbiased_reciprocal(np.array([t]), np.array([i]), np.array([n]), hits).item()
        assert found == pytest.approx(float(total), rel=1e-11)


@pytest.mark.parametrize("name", ["X", "Z"])
@pytest.mark.parametrize("metric", UNBIASED)
def test_unbiased_on_real_ranks(name: str, metric: str) -> None:
    exact = embedded().ranks[name]
    truth, design = tr.values(exact, metric).mean(), tr.InverseSampling(2)
    means = [tr.values(design.draw(exact, rng=seed), f"{metric}~unbiased").mean() for seed in range(49)]
    assert abs(np.mean(means) - truth) < 5 * np.std(means, ddof=1) / 7


def test_what_has_no_unbiased_estimate_is_refused() -> None:
    exact = tr.Ranks.from_ranks([1, 2, 300, 800], n=1_000)
    sampled = tr.InverseSampling(2).draw(exact, rng=1)
    with pytest.raises(tr.InputError, match=r"ndcg has no useful unbiased estimate under inverse; use ndcg~smooth"):
        tr.values(sampled, "ndcg~unbiased")
    with pytest.raises(tr.InputError, match=r"rr@5 has no useful unbiased"):
        tr.values(sampled, "rr@5~unbiased")
    with pytest.raises(tr.InputError, match=r"auc has no useful unbiased estimate under inverse\(1\)"):
        tr.values(tr.InverseSampling(1).draw(exact, rng=1), "auc~unbiased")
    with pytest.raises(tr.InputError, match=r"the cap of inverse\(2, 50\) stopped 2 of 4 relevant items"):
        tr.values(tr.InverseSampling(2, most=50).draw(exact, rng=1), "ap~unbiased")
    with pytest.raises(tr.InputError, match=r"needs inverse sampling, but these ranks were sampled by uniform\(9\)"):
        tr.values(tr.UniformSampling(9).draw(exact, rng=1), "ap~unbiased")
    with pytest.raises(tr.InputError, match=r"these ranks are exact; use ap"):
        tr.values(exact, "ap~smooth")
    with pytest.raises(tr.InputError, match=r"needs the same number of draws for each item"):
        tr.values(sampled, "ap~bv(0.1)")
    popular = tr.rank_sampled(np.eye(4), train=[[1], [2], [3]], test=[[0]], design=tr.PopularitySampling(2))
    with pytest.raises(tr.InputError, match=r"needs uniform sampling, but these were sampled by popularity\(2\)"):
        tr.values(popular, "ap~em")


def small(n: int, seed: int = 0) -> Seen:
    """Observations of a catalogue so small that each count is a cell of its own."""
    rng = np.random.default_rng(seed)
    within = cells(n)
    assert within.sizes.tolist() == [1] * (n + 1)
    return Seen(within, rng.integers(1, 9, 30).astype(float), rng.random((30, n + 1)))


def test_em_against_its_definition() -> None:
    seen = small(12)
    law = np.full(13, 1 / 13)
    found = expectation_maximisation(seen.likelihood, seen.weight, law, 7)
    for _ in range(7):
        posteriors = [law * row / sum(law * row) for row in seen.likelihood]
        law = np.average(posteriors, axis=0, weights=seen.weight)
    np.testing.assert_allclose(found, law, rtol=1e-12)


def test_monotone_law_is_the_best_of_those_that_never_rise() -> None:
    from scipy.optimize import minimize

    seen = small(6, seed=3)
    found = monotone_law(seen, steps=20_000)
    assert found.sum() == pytest.approx(1.0)
    assert (np.diff(found) <= 1e-15).all()

    def loss(raw: np.ndarray) -> float:
        steps = np.exp(raw - raw.max())
        law = np.cumsum((steps / steps.sum() / np.arange(1, 8))[::-1])[::-1]
        return -seen.log_likelihood(law)

    best = -min(minimize(loss, start, options={"gtol": 1e-9}).fun for start in (np.zeros(7), np.arange(7.0)))
    assert seen.log_likelihood(found) >= best - 1e-12 * abs(best)
    assert seen.log_likelihood(found) == pytest.approx(best, rel=1e-7)  # SciPy's gradients are finite differences
    assert most_to_gain(seen, found) < 1e-11


def most_to_gain(seen: Seen, law: np.ndarray) -> float:
    """Return a bound on how much more likely another law can be that never rises.

    The logarithm is concave, so that none gains more than the slope towards the steepest of the uniform laws on the
    first counts, of which all such laws are mixtures.
    """
    uniform = np.tri(len(law)) / np.arange(1, len(law) + 1)[:, None]
    slopes = (seen.weight / (seen.likelihood @ law)) @ seen.likelihood
    return float((uniform @ slopes).max() - law @ slopes)


@pytest.mark.parametrize("n", [6, 24, 3_000])
def test_smooth_law_is_a_maximum(n: int) -> None:
    rng = np.random.default_rng(1)
    within: Cells = cells(n)
    seen = Seen(within, np.ones(50), rng.random((50, len(within))) ** 3)
    fit = smooth_law(seen, 5.0)
    assert fit.law.sum() == pytest.approx(1.0)
    rough = np.diff(np.eye(fit.basis.shape[1]), n=2, axis=0)
    coefficients = np.linalg.lstsq(fit.basis, np.log(fit.law / within.sizes), rcond=None)[0]

    def goal(at: np.ndarray) -> float:
        weights = within.sizes * np.exp(fit.basis @ at)
        return seen.log_likelihood(weights / weights.sum()) - 2.5 * float(np.square(rough @ at).sum())

    best = goal(coefficients)
    for direction in rng.normal(size=(20, coefficients.size)):
        for size in (0.1, 0.01):
            assert goal(coefficients + size * direction) < best + 1e-6


def test_a_smooth_law_after_one_step_is_likelier_or_that_of_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step for the second of these observations goes too far, and is not taken."""
    monkeypatch.setattr(posteriors, "_MOST_STEPS", 1)
    likely = np.linspace(2.0, 1.0, 25)
    gentle, uniform = Seen(cells(24), np.ones(30), np.tile(likely, (30, 1))), np.full(25, 1 / 25)
    law = smooth_law(gentle, 500.0).law
    assert law.sum() == pytest.approx(1.0)
    assert gentle.log_likelihood(law) > gentle.log_likelihood(uniform)
    np.testing.assert_allclose(smooth_law(small(24, seed=2), 5.0).law, uniform, rtol=1e-12)


def test_cells_cover_all_counts_once() -> None:
    for largest in (0, 3, 24, 25, 26, 100, 41_000):
        found = cells(largest)
        assert found.starts[0] == 0
        assert (found.starts[1:] == (found.starts + found.sizes)[:-1]).all()
        assert found.starts[-1] + found.sizes[-1] == largest + 1
        inside = (found.points >= found.starts[:, None]) & (found.points < (found.starts + found.sizes)[:, None])
        assert inside.all()


@pytest.mark.parametrize("estimator", POOLED)
@pytest.mark.parametrize("metric", ["ndcg@3", "ap", "auc", "gndcg@3"])
def test_pooled_values_are_posterior_means(metric: str, estimator: str) -> None:
    """A small catalogue, computed item by item from the definition and the law that was fitted."""
    exact = tr.Ranks.from_ranks([1, 2, 2, 5, 9, 14], n=[15, 16, 15, 17, 15, 15], grades=[1, 2, 3, 1, 2, 3])
    assert exact.grades is not None
    for design in (tr.InverseSampling(2, most=9), tr.UniformSampling(6), tr.UniformSampling(6, True)):
        sampled = design.draw(exact, rng=4)
        chosen = tr.metric(f"{metric}~{estimator}")
        assert isinstance(chosen, tr.estimators.Corrected)
        law = chosen.correction.laws(sampled).laws[0]  # type: ignore[attr-defined]
        for place, found in enumerate(tr.values(sampled, chosen)):
            N = int(sampled.item_irrelevant[place])
            count = np.arange(N + 1)
            drawn = (sampled.above[place], sampled.item_draws[place])
            weight = law[: N + 1] * np.exp(design.log_likelihood(*drawn, count, N))
            one = [
                tr.values(tr.Ranks.from_ranks([a + 1], n=N + 1, grades=exact.grades[[place]]), metric).item()
                for a in range(N + 1)
            ]
            assert found == pytest.approx(weight @ one / weight.sum(), rel=1e-10)


@pytest.mark.parametrize("estimator", POOLED)
def test_pooled_estimators_with_ties(estimator: str) -> None:
    """Ties are taken in every order: the mean of the values that the orders have under the same law."""
    tied = tr.Ranks(above=[1, 0, 4], tied=[2, 0, 0], n_candidates=7, sample=tr.Sample("uniform(6)", 25))
    found = tr.values(tied, f"ap~{estimator}")
    chosen = tr.metric(f"ap~{estimator}")
    laws = chosen.correction.laws(tied)  # type: ignore[attr-defined]
    values = []
    for above in (1, 2, 3):
        count = np.arange(25)
        joint = laws.laws[0] * np.exp(tr.UniformSampling(6).log_likelihood(above, 6, count, 24))
        values.append(joint @ (1 / (count + 1)) / joint.sum())
    assert found[0] == pytest.approx(np.mean(values), rel=1e-10)


def test_what_is_known_stays_known() -> None:
    """Where all candidates were drawn, the estimates are exact."""
    exact = tr.Ranks.from_ranks([1, 2, 3, 60], n=60)
    sampled = tr.UniformSampling(59).draw(exact, rng=1)
    for estimator in POOLED:
        np.testing.assert_allclose(tr.values(sampled, f"ndcg@10~{estimator}"), tr.values(exact, "ndcg@10"), rtol=1e-9)


def test_recommended_estimators_are_named() -> None:
    exact = tr.Ranks.from_ranks([[1, 5], [300], [800], [2], [40]], n=1_000)
    sampled = tr.InverseSampling(2).draw(exact, rng=1)
    table = tr.evaluate(sampled, ["ap", "ndcg@10", "recall@10~monotone"])
    assert table.metrics == ("ap~unbiased", "ndcg@10~smooth", "recall@10~monotone")
    assert table["ap"] == table["ap~unbiased"] == tr.estimate(sampled, "ap")
    assert "ap~unbiased" in str(table)
    np.testing.assert_array_equal(tr.values(sampled, "ap"), tr.values(sampled, "ap~unbiased"))
    ended = tr.InverseSampling(2, most=100).draw(exact, rng=1)
    assert tr.evaluate(ended, "ap").metrics == ("ap~smooth",)
    table = tr.evaluate(tr.InverseSampling(2, most=20).draw(exact, rng=1), "ap")
    assert table.metrics == ("ap~monotone",)
    assert any("the cap of inverse(2, 20) ended the draws for" in note for note in table.notes)
    both = tr.evaluate({"exact": exact, "sampled": sampled}, "ap")
    assert both.metrics == ("ap",)
    assert both["sampled", "ap"].metric == "ap~unbiased"
    fixed = tr.evaluate(tr.UniformSampling(100).draw(exact, rng=1), "ap")
    assert fixed.metrics == ("ap",), "nothing is used silently where the number of draws is fixed"


@pytest.mark.parametrize("estimator", ["monotone", "smooth"])
def test_pooled_estimates_on_real_ranks(estimator: str) -> None:
    """Errors of a few runs are within what was measured over many, and their stated size is right."""
    exact = embedded().ranks["Y"]
    for metric in ("recall@10", "ndcg@10", "ap"):
        truth, chosen = tr.values(exact, metric).mean(), tr.metric(f"{metric}~{estimator}")
        for seed in range(3):
            sampled = tr.InverseSampling(2).draw(exact, rng=seed)
            error = abs(tr.values(sampled, chosen).mean() - truth)
            assert error < 0.06 * truth
            assert error < 4 * chosen.hidden_error(sampled)
            assert 0.002 < chosen.hidden_error(sampled) / truth < 0.05


def test_sizes_of_catalogues_may_be_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instances share likelihoods if their candidates differ by less than 0.1 %; estimates hardly notice."""
    exact = embedded().ranks["Y"][:2_000]
    for design, metric in itertools.product((tr.InverseSampling(2), tr.UniformSampling(300)), ("ndcg@10", "auc")):
        shared = tr.metric(f"{metric}~smooth")
        sampled = design.draw(exact, rng=1)
        rounded = tr.values(sampled, shared).mean(), shared.hidden_error(sampled)
        with monkeypatch.context() as context:
            context.setattr(posteriors, "_DIGITS", 60)
            alone = design.draw(exact, rng=1)
            single = tr.values(alone, shared).mean(), shared.hidden_error(alone)
        assert len(posteriors.observed(sampled)[0].examples) < len(posteriors.observed(alone)[0].examples)
        assert rounded[0] == pytest.approx(single[0], rel=5e-4)
        assert rounded[1] == pytest.approx(single[1], rel=5e-3)


def test_several_relevant_items_have_laws_by_place_and_number() -> None:
    """Half of the users have one relevant item, often far down, the others five near the top: one law would mislead."""
    rng = np.random.default_rng(0)
    far, near = np.geomspace(1, 900, 60).astype(int) + np.arange(60), np.arange(1, 60)
    nested = [rng.choice(near, 5, replace=False) if user % 2 else rng.choice(far, 1) for user in range(800)]
    exact = tr.Ranks.from_ranks(nested, n=1_000)
    means: dict[str, list[float]] = {"ap~unbiased": [], "ap~smooth": [], "ap~monotone": []}
    for seed in range(5):
        sampled = tr.InverseSampling(2).draw(exact, rng=seed)
        for metric, found in means.items():
            found.append(tr.estimate(sampled, metric).mean)
    for metric, found in means.items():
        truth = tr.estimate(exact, metric.partition("~")[0]).mean
        assert np.mean(found) == pytest.approx(truth, rel=0.04), metric


@pytest.mark.parametrize("design", [tr.UniformSampling(100), tr.UniformSampling(100, True), tr.InverseSampling(1)])
def test_learned_priors_are_fine_at_the_top(design: tr.SamplingDesign) -> None:
    exact = embedded().ranks["X"]
    truth, learned = (np.cumsum(tr.estimators.learn_prior(ranks)) for ranks in (exact, design.draw(exact, rng=1)))
    assert truth.size == learned.size == exact.item_irrelevant.max() + 1
    top = [9, 24, 99, 999]
    shares = [(exact.above <= count).mean() for count in top]
    np.testing.assert_allclose(truth[top], shares, rtol=0.1)
    np.testing.assert_allclose(learned[top], shares, rtol=0.15)


def test_pooled_estimators_have_no_tables() -> None:
    exact = tr.Ranks.from_ranks([1, 20], n=50)
    with pytest.raises(tr.InputError, match="ap~smooth has no table: its values depend on all instances together"):
        tr.estimators.correction_table("ap~smooth", design=10, n=50)
    with pytest.raises(tr.InputError, match="ap~em has no table"):
        tr.risk(exact, "ap~em", design=10)
    with pytest.raises(tr.InputError, match="needs inverse sampling"):
        tr.risk(exact, "ap~unbiased", design=10)
    with pytest.raises(tr.InputError, match="the risk needs the same number of draws for each item"):
        tr.risk(exact, "ap", tr.InverseSampling(2))


def test_shapes_that_differ_are_noted_and_part_of_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks stand around 300, which a law that never rises can't follow; a cap leaves much open."""
    rng = np.random.default_rng(0)
    exact = tr.Ranks.from_ranks(rng.integers(280, 320, 3_000), n=2_000)
    sampled = tr.InverseSampling(2, most=60).draw(exact, rng=1)
    chosen = tr.metric("ndcg@100~smooth")
    assert isinstance(chosen, tr.estimators.Corrected)
    parts = chosen.metric.terms(sampled)
    smooth, monotone = (tr.values(sampled, f"ndcg@100~{name}").mean() for name in ("smooth", "monotone"))
    narrow = chosen.correction.statistical_error(parts, sampled)  # type: ignore[attr-defined]
    assert abs(smooth - monotone) > 2 * narrow
    assert chosen.hidden_error(sampled) == pytest.approx(math.hypot(narrow, smooth - monotone), rel=1e-6)
    found = tr.estimate(sampled, chosen)
    note = f"ndcg@100~smooth and ndcg@100~monotone ({monotone:.4f}) differ by more than twice their error"
    assert note in found.notes
    assert found.standard_error > abs(smooth - monotone)
    apart = abs(smooth - monotone)
    for error, is_noted in ((apart / 2.1, True), (apart / 1.9, False)):
        monkeypatch.setattr(Smooth, "statistical_error", lambda *_, error=error: error)
        assert (note in chosen.notes(sampled)) == is_noted
    monkeypatch.undo()
    falling = tr.InverseSampling(2).draw(embedded().ranks["X"], rng=1)
    assert not any("differ by more" in note for note in tr.estimate(falling, "ap~smooth").notes)


def test_quantiles_are_interpolated_within_a_cell() -> None:
    cumulative = np.array([[0.2, 0.5, 1.0], [0.0, 0.5, 0.5]])
    column, inside = _quantiles(cumulative, np.array([0, 0, 1, 0]), np.array([0.35, 0.1, 0.5, 0.75]))
    assert column.tolist() == [1, 0, 1, 2]
    np.testing.assert_allclose(inside, [0.5, 0.5, 0.5, 0.5], rtol=1e-12)


def test_typical_items_are_of_all_sizes() -> None:
    """The items that represent a group are quantiles of its numbers of candidates, and add a bias and a variance."""
    n = np.array([100, 900, 300, 800, 200, 700, 400, 600, 500])
    ranks = tr.UniformSampling(20).draw(tr.Ranks.from_ranks(n // 10, n=n), rng=0)
    (part,) = tr.metric("ap").terms(ranks)
    cases = _cases(part, ranks, HYPERGEOMETRIC)
    assert sorted(typical.case.n for typical in cases) == [200, 500, 800]
    law, shown, table = np.array([0.25, 0.75]), np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([1.0, 4.0])
    one = cases[0]._replace(law=law, shown=shown, exact=np.array([2.0, 3.0]), weight=2.0, single=0.5)
    bias = 0.25 * (2.5 - 2.0) + 0.75 * (3.7 - 3.0)
    variance = 0.25 * 0.5 * 0.5 * 9 + 0.75 * 0.1 * 0.9 * 9
    assert one.moments(table) == pytest.approx((2 * bias, 2 * 0.5 * variance), rel=1e-12)


def test_possible_values_need_draws_item_by_item() -> None:
    with pytest.raises(tr.InputError, match=r"known item by item, but these were sampled by uniform\(9\)"):
        tr.values(tr.Ranks.from_sampled([1, 3], m=9, n=30), "ap~possible")


@pytest.mark.parametrize("design", [tr.InverseSampling(2), tr.UniformSampling(7)], ids=str)
def test_samples_drawn_again_are_of_the_same_kind(design: tr.InverseSampling | tr.UniformSampling) -> None:
    exact = tr.Ranks.from_ranks([3, 40, 80], n=100)
    sampled = design.draw(exact, rng=0)
    again = sampled_again(exact, sampled, rng=np.random.default_rng(1))
    assert again.design == design
    assert (again.drawn is None) == (sampled.drawn is None)
    np.testing.assert_array_equal(again.draws, sampled.draws if sampled.drawn is None else again.draws)


def test_instances_without_relevant_items_do_not_count_in_fitted_means() -> None:
    some, others = (tr.Ranks.from_sampled(ranks, m=9, n=30) for ranks in ([[1], [], [3]], [[1], [3]]))
    one, other = (Smooth().mean(tr.metric("ap").terms(ranks), ranks) for ranks in (some, others))
    assert one == pytest.approx(other, rel=1e-9)


def test_many_metrics_of_one_fitted_law() -> None:
    """More than are remembered: the first ones are computed again, and come out the same."""
    sampled = tr.UniformSampling(20).draw(tr.Ranks.from_ranks([1, 3, 9, 40, 70] * 20, n=100), rng=0)
    metrics = [f"recall@{k}~smooth" for k in range(1, 21)]
    once = [tr.values(sampled, metric) for metric in metrics]
    fresh = [tr.values(tr.Ranks.from_sampled(sampled.rank, m=20, n=100), metric) for metric in metrics[:2]]
    np.testing.assert_allclose(once[:2], fresh, rtol=1e-12)
    np.testing.assert_array_equal(once, [tr.values(sampled, metric) for metric in metrics])


EVERY = ["bv(auto)", "bv(0.1)", "ls", "cls", "rank", "mes(0.01)", "mn", "em", "monotone", "smooth"]


@pytest.mark.parametrize("estimator", EVERY)
@pytest.mark.parametrize("metric", ["recall@5", "ap"])
def test_instances_without_relevant_items_change_nothing(estimator: str, metric: str) -> None:
    """Nor does the order of the others; the notes and the interval of the exact metric are the same, too."""
    rng = np.random.default_rng(1)
    exact = tr.Ranks.from_ranks([np.sort(rng.choice(30, size, replace=False)) + 1 for size in (1, 2, 1, 3) * 10], n=30)
    drawn = tr.UniformSampling(12).draw(exact, rng=rng)
    lists, order = np.split(drawn.rank, drawn.indptr[1:-1]), rng.permutation(47)
    draws, n = [12] * 40 + [1, 5, 12, 13, 20, 50, 99], [30] * 40 + [25, 30, 31, 40, 50, 60, 1_000]
    every = tr.Ranks.from_sampled([*lists, *[np.empty(0)] * 7], m=draws, n=n)
    sampled, mixed = every[:40], every[order]
    one, other = (tr.estimate(ranks, f"{metric}~{estimator}") for ranks in (sampled, mixed))
    assert (other.n, other.n_undefined) == (40, 7)
    for name in ("mean", "standard_error"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-9)
    assert other.confidence_interval() == pytest.approx(one.confidence_interval(), rel=1e-6)
    assert set(one.notes) <= set(other.notes)
    np.testing.assert_allclose(
        tr.values(mixed, f"{metric}~{estimator}"),
        np.append(tr.values(sampled, f"{metric}~{estimator}"), [np.nan] * 7)[order],
        rtol=1e-8,
    )


def test_items_share_a_law_with_those_of_about_as_many_relevant_ones() -> None:
    numbers = np.arange(1, 20_000)
    kinds = _coarse(numbers)
    assert (np.diff(kinds) >= 0).all()
    few = numbers[kinds == numbers]
    assert few.tolist() == list(range(1, few.size + 1))
    for kind in np.unique(kinds[few.size :]):
        alike = numbers[kinds == kind]
        assert alike.max() <= 2**0.5 * alike.min() + 1
