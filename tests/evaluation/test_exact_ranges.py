"""Intervals of corrected metrics cover the exact metric, merge, and say when the sample tells too little."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import truerank as tr
from truerank.evaluation.exact_ranges import exact_range, remedy, unbiased_bounds
from truerank.metrics.definitions import Terms
from truerank.papers.krichene_rendle_2020.movielens import embedded


def several(rng: np.random.Generator, users: int, n: int) -> tr.Ranks:
    """One to four relevant items, ties, one of four n each; ranks from a falling law."""
    sizes = rng.integers(1, 5, users)
    candidates = rng.choice(rng.integers(n // 2, n, 4), users)
    above = [
        np.sort((rng.random(size) ** 3 * (N - size)).astype(int)) for size, N in zip(sizes, candidates, strict=True)
    ]
    exact = tr.Ranks(above=np.concatenate(above), n_candidates=candidates, indptr=np.append(0, np.cumsum(sizes)))
    tied = np.where((exact.i == exact.item_n_relevant) & (rng.random(exact.above.size) < 0.3), 3, 0)
    return dataclasses.replace(exact, tied=np.minimum(tied, exact.item_n - exact.item_n_relevant - exact.above))


@pytest.mark.parametrize("m", [10, 60])
@pytest.mark.parametrize("replace", [False, True])
def test_several_relevant_items_ties_and_own_n_are_covered(m: int, replace: bool) -> None:
    exact = several(np.random.default_rng(0), 200, 400)
    truth = {name: tr.estimate(exact, name).mean for name in ("recall@10", "ndcg@10", "ap", "auc")}
    missed = 0
    for seed in range(3):
        sampled = tr.UniformSampling(m, replace).draw(exact, rng=seed)
        for name, value in truth.items():
            low, high = exact_range(sampled, tr.metric(name)).interval(0.95)
            missed += not low <= value <= high
    assert missed <= 1  # of 12


@pytest.mark.parametrize("assume", ["nothing", "falling", "smooth"])
def test_ranks_of_real_recommenders_are_covered(assume: str) -> None:
    for ranks in embedded().ranks.values():
        sampled = tr.UniformSampling(100).draw(ranks, rng=0)
        for name in ("recall@10", "ap"):
            low, high = tr.estimate(sampled, f"{name}~bv(0.1)", assume=assume).confidence_interval()  # type: ignore[arg-type]
            assert low <= tr.estimate(ranks, name).mean <= high


def test_ranks_that_fall_smoothly_are_covered() -> None:
    """Users drawn from a smooth law, 25 of 800 candidates sampled; the interval is about the mean of that law."""
    ranks = np.arange(1, 801)
    likely = ranks**-1.2 / (ranks**-1.2).sum()
    rng, missed, widths = np.random.default_rng(5), 0, {"falling": 0.0, "smooth": 0.0}
    for _ in range(150):
        drawn = tr.Ranks.from_ranks(rng.choice(ranks, p=likely, size=300), n=800)
        sampled = tr.UniformSampling(25).draw(drawn, rng=rng)
        ends = {name: exact_range(sampled, tr.metric("recall@10"), name).interval(0.95) for name in widths}  # type: ignore[arg-type]
        missed += not ends["smooth"].low <= likely[:10].sum() <= ends["smooth"].high
        widths = {name: widths[name] + ends[name].high - ends[name].low for name in widths}
    assert missed <= 0.06 * 150
    assert widths["smooth"] < 0.9 * widths["falling"]


def test_the_narrow_interval_misses_where_the_honest_one_holds() -> None:
    ranks = embedded().ranks["Y"]
    corrected = tr.estimate(tr.UniformSampling(100).draw(ranks, rng=0), "recall@10~bv(0.1)")
    truth = tr.estimate(ranks, "recall@10").mean
    assert corrected.expectation_interval().high < truth < corrected.confidence_interval().high
    assert not corrected.determined
    assert "not determined" in str(corrected)
    assert any("is not determined by this sample; rank all candidates" in note for note in corrected.notes)


def test_each_instance_may_have_its_own_number_of_draws() -> None:
    rng = np.random.default_rng(3)
    counts, draws = np.minimum(rng.geometric(0.01, 2_000), 400) - 1, rng.choice([20, 50, 133], 2_000)
    shown = rng.hypergeometric(counts, 400 - counts, draws)
    sampled = tr.Ranks.from_sampled(shown + 1, m=draws, n=401)
    low, high = tr.estimate(sampled, "ap~bv(0.1)").confidence_interval()
    assert low <= np.mean(1 / (counts + 1)) <= high


def test_more_draws_narrow_the_interval_down_to_the_exact_metric() -> None:
    exact = tr.Ranks.from_ranks(np.minimum(np.random.default_rng(0).geometric(0.02, 500), 300), n=301)
    widths = []
    for m in (10, 40, 150, 300):
        low, high = tr.estimate(tr.UniformSampling(m).draw(exact, rng=1), "recall@10~bv(0.1)").confidence_interval()
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    low, high = tr.estimate(exact, "recall@10").confidence_interval()
    assert widths[-1] == pytest.approx(high - low, rel=0.1)


def test_negative_weights_are_bounded_from_the_other_side() -> None:
    class Penalty(tr.Metric):
        """Minus recall@10."""

        def terms(self, ranks: tr.Ranks) -> tuple[Terms, ...]:
            return tuple(
                part._replace(weight=-np.ones(ranks.above.size)) for part in tr.metric("recall@10").terms(ranks)
            )

    sampled = tr.UniformSampling(50).draw(tr.Ranks.from_ranks([1, 5, 30, 400] * 50, n=500), rng=0)
    plain, mirrored = (exact_range(sampled, each) for each in (tr.metric("recall@10"), Penalty()))
    assert mirrored.lower.mean == pytest.approx(-plain.upper.mean)
    assert mirrored.upper.mean == pytest.approx(-plain.lower.mean)
    np.testing.assert_allclose(mirrored.interval(0.95), [-end for end in reversed(plain.interval(0.95))], atol=1e-12)


def test_parts_add_up_to_the_stronger_assumption() -> None:
    sampled = tr.UniformSampling(30).draw(several(np.random.default_rng(1), 20, 300), rng=0)
    one, other = (exact_range(sampled, tr.metric("ap"), name) for name in ("falling", "smooth"))
    assert (one + other).assumption == (other + one).assumption == "smooth"


def test_intervals_of_parts_add_up() -> None:
    sampled = tr.UniformSampling(30).draw(several(np.random.default_rng(1), 90, 300), rng=0)
    whole = tr.estimate(sampled, "ndcg@10~bv(0.1)")
    parts = [tr.estimate(sampled[a:b], "ndcg@10~bv(0.1)") for a, b in itertools.pairwise((0, 20, 21, 90))]
    merged = parts[0] + parts[1] + parts[2]
    np.testing.assert_allclose(merged.confidence_interval(), whole.confidence_interval(), rtol=1e-9, atol=1e-12)
    exact = tr.estimate(tr.Ranks.from_ranks([1, 2], n=9), "ap")
    with pytest.raises(tr.InputError, match="estimates with an exact range can't be added to others"):
        dataclasses.replace(whole, metric="ap") + exact


def test_no_hit_in_few_instances_is_not_certainty() -> None:
    sampled = tr.Ranks.from_sampled([60] * 100, m=100, n=150)
    low, high = tr.estimate(sampled, "recall@1~bv(0.1)").confidence_interval()
    assert low == 0.0
    assert 0.025 < high < 0.1  # the rule of three says 0.03


def test_exact_metrics_and_single_instances() -> None:
    exact = tr.estimate(tr.Ranks.from_ranks([1, 2, 4], n=10), "ap")
    assert exact.exact_range is None
    assert exact.determined
    assert exact.confidence_interval() == exact.expectation_interval()
    one = tr.estimate(tr.Ranks.from_sampled([3], m=10, n=100), "ap~bv(0.1)")
    assert all(map(math.isnan, one.confidence_interval()))
    with pytest.raises(tr.InputError, match="`assume` must be one of"):
        tr.estimate(tr.Ranks.from_sampled([3], m=10, n=100), "ap~bv(0.1)", assume="luck")  # type: ignore[arg-type]


def test_records_have_both_errors() -> None:
    sampled = tr.UniformSampling(100).draw(embedded().ranks["X"][:500], rng=0)
    table = tr.evaluate(sampled, ["recall@10~bv(0.1)", "recall@10~cls"])
    first, second = table.rows()
    assert (first["low"], first["high"]) == table["recall@10~bv(0.1)"].confidence_interval()
    assert (first["low"], first["high"]) == (second["low"], second["high"])
    assert first["high"] - first["mean"] > 3 * first["standard_error"]
    assert first["determined"] is False
    assert "not determined" in table.to_markdown()
    assert r"\pm" not in table.to_latex()


def test_advice_depends_on_n_and_m() -> None:
    few = tr.estimate(tr.Ranks.from_sampled([1, 5] * 20, m=100, n=3_541), "recall@10").notes[0]
    assert "100 of 3540 candidates are too few for any correction" in few
    assert "sample at least about" in few
    enough = tr.estimate(tr.Ranks.from_sampled([1, 5] * 20, m=1_000, n=3_541), "recall@10").notes[0]
    assert "or use recall@10~bv(" in enough


def test_values_without_bias_bound_themselves() -> None:
    runs = tuple(tr.Ranks.from_ranks(own, n=9) for own in ([1, 4, 9], [2, 4, 3]))
    found = unbiased_bounds(runs, tr.metric("rr"), "falling")
    values = np.mean([tr.values(run, "rr") for run in runs], axis=0)
    for end in (found.lower, found.upper):
        np.testing.assert_array_equal(end, values)
    for end, expected in ((found.least, 1 / 9), (found.worst, 1 / 9), (found.most, 1.0), (found.best, 1.0)):
        np.testing.assert_allclose(end, [expected] * 3)
    assert found.assumption == "falling"


def test_nothing_remedies_what_is_not_sampled() -> None:
    sampled = tr.Ranks.from_sampled([1, 5], m=100, n=3_541)
    assert remedy(tr.metric("ap"), sampled[:0], "nothing") == ""
    assert remedy(tr.metric("ap"), tr.Ranks.from_ranks([1], n=9), "nothing") == ""
