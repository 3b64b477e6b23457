"""Corrected metrics as a user meets them: by text, on sampled ranks, with each instance's own n."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truerank as tr
from tests.arrays import Floats, Ints
from truerank.estimators.bias_variance import BiasVariance
from truerank.metrics import AP, Recall
from truerank.sampling.laws import HYPERGEOMETRIC

CORRECTIONS = ["rank", "rank(interpolate)", "ls", "cls", "bv(1)", "bv(0.1)", "bv(0.001)"]


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_text_form_parses_back(correction: str) -> None:
    metric = tr.metric(f"Recall@10~{correction.upper()}")
    assert str(metric) == f"recall@10~{correction}"
    assert tr.metric(str(metric)) == metric


def test_what_the_text_means() -> None:
    assert tr.metric("map~rank") == tr.estimators.Corrected(AP(), tr.estimators.RankEstimate())
    assert tr.metric("recall@5~ls") == tr.estimators.Corrected(Recall(5), tr.estimators.LeastSquares())
    assert tr.metric("recall@5~cls") == tr.estimators.Corrected(Recall(5), tr.estimators.ConstrainedLeastSquares())
    assert tr.metric("recall@5~bv") == tr.metric("recall@5~bv(auto)")
    assert tr.metric("ap ~ BV(gamma = 0.01)") == tr.metric("ap~bv(0.01)")
    assert tr.metric("ap~rank(interpolate=true)") == tr.metric("ap~rank(interpolate)")
    assert tr.metric("ap~rank(interpolate=false)") == tr.metric("ap~rank")
    assert tr.metric("recall@5~bv(1e-2)") == tr.estimators.Corrected(Recall(5), tr.estimators.BiasVariance(0.01))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ap~bv(2)", r"the gamma of ~bv\(gamma\) must lie in \(0, 1\], or be auto, got 2"),
        ("ap~bv(0)", r"must lie in \(0, 1\], or be auto, got 0"),
        ("ap~bv(x)", r"bv is written 'bv' or 'bv\(gamma\)', got 'bv\(x\)'"),
        ("ap~bv(prior=1)", r"bv is written 'bv' or 'bv\(gamma\)', got 'bv\(prior=1\)'"),
        ("ap~bv(0.1, gamma=0.1)", r"bv is written 'bv' or 'bv\(gamma\)'"),
        ("ap~rank(interpolate=yes)", r"rank is written 'rank' or 'rank\(interpolate\)'"),
        ("ndgc@10~cls", "did you mean 'ndcg@10'"),
        ("ap~zzz", "unknown correction 'zzz'; choose from bv, cls, em"),
        ("ap~rnk", "did you mean 'rank'"),
        ("ap~mes(0)", r"the eta of ~mes\(eta\) must be above 0, got 0"),
        ("ap~em(0)", r"the steps of ~em\(steps\) must be at least 1, got 0"),
        ("ap~smooth(0)", r"the penalty of ~smooth\(penalty\) must be above 0, got 0"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.metric(text)


def test_exact_ranks_are_not_corrected() -> None:
    with pytest.raises(tr.InputError, match="corrects sampled ranks, but these ranks are exact; use ap"):
        tr.values(tr.Ranks.from_ranks([3], n=10), "ap~cls")


@given(
    st.sampled_from(CORRECTIONS),
    st.sampled_from(["ap", "auc", "ndcg@3", "recall@2"]),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(7, 9)), min_size=1, max_size=6),
)
@settings(max_examples=50)
def test_values_do_not_depend_on_other_instances(
    correction: str, metric: str, replace: bool, some: list[tuple[int, int, int]]
) -> None:
    """Each instance has the same value alone and with others, in any order."""

    def ranks(chosen: list[tuple[int, int, int]]) -> tr.Ranks:
        above, tied = [above for above, _, _ in chosen], [min(tied, 5 - above) for above, tied, _ in chosen]
        sizes = [n for _, _, n in chosen]
        sample = tr.Sample(tr.UniformSampling(5, replace=replace), sizes)
        return tr.Ranks(above=above, tied=tied, n_candidates=6, sample=sample)

    text = f"{metric}~{correction}"
    alone = [tr.values(ranks([one]), text).item() for one in some]
    np.testing.assert_allclose(tr.values(ranks(some), text), alone, rtol=1e-12)
    np.testing.assert_allclose(tr.values(ranks(some[::-1]), text), alone[::-1], rtol=1e-12)


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("replace", [False, True])
def test_values_are_looked_up_in_each_instances_own_table(correction: str, replace: bool) -> None:
    sizes, relevant = [60, 90, 60, 75], [[1], [2, 9], [4, 5, 6], []]
    sampled = tr.Ranks.from_sampled(relevant, m=12, n=sizes, replace=replace)
    text = f"ap~{correction}"
    expected = [
        sum(
            tr.estimators.correction_table(
                text, design=tr.UniformSampling(12, replace), n=n, i=i, n_relevant=len(ranks)
            )[rank - i]
            for i, rank in enumerate(ranks, start=1)
        )
        if ranks
        else np.nan
        for n, ranks in zip(sizes, relevant, strict=True)
    ]
    np.testing.assert_allclose(tr.values(sampled, text), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", ["auc", "recall@3", "ap", "ndcg@5", "rr", "mean-rank", "rbp(0.8)", "f1@4"])
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_everything_sampled_gives_the_exact_metric(metric: str, correction: str) -> None:
    ranks = [[1], [9], [15], [7]]
    exact = tr.Ranks.from_ranks(ranks, n=16)
    sampled = tr.UniformSampling(15).draw(exact, rng=0)
    np.testing.assert_allclose(tr.values(sampled, f"{metric}~{correction}"), tr.values(exact, metric), atol=1e-7)


def test_ties_are_averaged_over_the_table() -> None:
    table = tr.estimators.correction_table("ap~bv(0.1)", design=10, n=200)
    tied = tr.Ranks(above=[2], tied=[3], n_candidates=11, sample=tr.Sample("uniform(10)", 200))
    assert tr.values(tied, "ap~bv(0.1)")[0] == pytest.approx(table[2:6].mean(), rel=1e-9)


def test_corrected_estimates_come_closer_on_average() -> None:
    rng = np.random.default_rng(0)
    exact = tr.Ranks.from_ranks(np.minimum(rng.geometric(0.01, 4000), 2000), n=2000)
    truth = tr.estimate(exact, "recall@10").mean
    design = tr.UniformSampling(100)
    plain, corrected = (tr.risk(exact, text, design) for text in ("recall@10", "recall@10~bv(0.01)"))
    assert abs(corrected.mean - truth) < 0.1 * abs(plain.mean - truth)
    drawn = [tr.estimate(design.draw(exact, rng=seed), "recall@10~bv(0.01)").mean for seed in range(100)]
    error = corrected.standard_deviation / 10
    assert abs(np.mean(drawn) - corrected.mean) < 5 * error
    assert np.std(drawn, ddof=1) == pytest.approx(corrected.standard_deviation, rel=0.4)


def test_uncorrected_sampled_metrics_come_with_a_warning() -> None:
    sampled = tr.Ranks.from_sampled([1, 3, 7] * 20, m=50, n=1000)
    assert "its bias differs between recommenders" in tr.estimate(sampled, "recall@5").notes[0]
    assert tr.estimate(sampled, "auc").notes == ()
    assert "its bias differs between recommenders" not in " ".join(tr.estimate(sampled, "recall@5~cls").notes)


def test_minimal_bias_says_when_it_is_ill_conditioned() -> None:
    many = tr.Ranks.from_sampled([1, 3, 7] * 20, m=100, n=5000)
    few = tr.Ranks.from_sampled([1, 3, 7] * 20, m=10, n=5000)
    assert "ill-conditioned" in tr.estimate(many, "recall@5~ls").notes[0]
    assert "ill-conditioned" not in " ".join(tr.estimate(few, "recall@5~ls").notes)


def test_metrics_of_ones_own_are_corrected_too() -> None:
    @tr.register
    def reciprocal_again(rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return i / rank / n_relevant

    for correction in CORRECTIONS:
        ours = tr.estimators.correction_table(f"reciprocal-again~{correction}", design=15, n=300)
        np.testing.assert_allclose(
            ours, tr.estimators.correction_table(f"ap~{correction}", design=15, n=300), rtol=1e-6, atol=1e-9
        )


def test_a_learned_prior_is_reversed_with_the_ranks() -> None:
    """Counts from below instead of above, where the catalogue has as many counts as the points of all parts."""
    one, other = (tr.Ranks.from_sampled(ranks, m=10, n=32) for ranks in ([1, 2, 4], [11, 10, 8]))
    priors = [tr.estimators.learn_prior(ranks, parts=4) for ranks in (one, other)]
    np.testing.assert_allclose(priors[0], priors[1][::-1], rtol=1e-9)


def test_priors() -> None:
    top_heavy = tr.estimators.as_prior(1.0 / np.arange(1, 200))
    corrected = tr.estimators.Corrected(AP(), tr.estimators.BiasVariance(0.1, prior=top_heavy))
    assert str(corrected) == "ap~bv(0.1, prior)"
    sampled = tr.Ranks.from_sampled([1, 2, 5], m=20, n=200)
    uniform = tr.estimators.Corrected(AP(), tr.estimators.BiasVariance(0.1, prior=tr.estimators.as_prior([1, 1, 1])))
    np.testing.assert_allclose(tr.values(sampled, uniform), tr.values(sampled, "ap~bv(0.1)"), rtol=1e-9)
    assert np.all(tr.values(sampled, corrected) != tr.values(sampled, "ap~bv(0.1)"))
    assert tr.estimators.as_prior([0, 1, 3]) == (0.0, 0.25, 0.75)
    for bad in ([], [-1, 2], [0, 0], [np.nan]):
        with pytest.raises(tr.InputError, match="a prior must be a list of weights"):
            tr.estimators.as_prior(bad)


@pytest.mark.parametrize("replace", [False, True])
def test_a_prior_learned_from_a_sample_resembles_the_truth(replace: bool) -> None:
    """Ranks are uniform within tenths of the catalogue, as a prior of ten parts supposes."""
    rng = np.random.default_rng(1)
    shares = np.arange(10, 0, -1) ** 2 / 385
    exact = tr.Ranks.from_ranks(1 + 50 * rng.choice(10, 20_000, p=shares) + rng.integers(0, 50, 20_000), n=500)
    truth = np.array(tr.estimators.learn_prior(exact, parts=10))
    assert abs(truth - shares).sum() < 0.02
    learned = np.array(tr.estimators.learn_prior(tr.UniformSampling(100, replace).draw(exact, rng=2), parts=10))
    assert abs(learned - truth).sum() < 0.05
    assert learned.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ranks": [102], "m": 100, "n": 500}, r"`ranks` must lie in 1\.\.101, got 102 in instance 0"),
        ({"ranks": [1, 2], "m": [50, 100, 9], "n": 500}, r"`m` must be one number or one per instance \(2\), got 3"),
        ({"ranks": [1, 9], "m": [50, 8], "n": [500, 8]}, r"at most the number of irrelevant candidates \(7 for some"),
        ({"ranks": [1], "m": 0, "n": 500}, "`m` must be a whole number from 1, got 0"),
        ({"ranks": [1], "m": 500, "n": 500}, r"at most the number of irrelevant candidates \(499 for some instance\)"),
    ],
)
def test_bad_sampled_ranks(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.Ranks.from_sampled(**arguments)


def test_sampled_ranks_survive_files_slices_and_joins(tmp_path: Path) -> None:
    sampled = tr.Ranks.from_sampled([[1, 4], [3], [9]], m=20, n=[100, 200, 300], replace=True, ids=["a", "b", "c"])
    for name in ("sampled.parquet", "sampled.npz"):
        sampled.save(tmp_path / name)
        assert tr.Ranks.load(tmp_path / name) == sampled
    assert tr.Ranks.concatenate([sampled[:1], sampled[1:]]) == sampled
    with pytest.raises(tr.InputError, match="only ranks of one sampling design"):
        tr.Ranks.concatenate([sampled, tr.Ranks.from_ranks([1], n=100)])


def test_tables_of_sampled_ranks(tmp_path: Path) -> None:
    (tmp_path / "study.csv").write_text("user,rank,m,n\na,3,20,100\nb,1,20,90\na,1,20,100\n")
    expected = tr.Ranks.from_sampled([[1, 3], [1]], m=20, n=[100, 90], ids=["a", "b"])
    assert tr.read_ranks(tmp_path / "study.csv") == expected
    (tmp_path / "bare.csv").write_text("rank\n3\n1\n")
    bare = tr.read_ranks(tmp_path / "bare.csv", m=20, n=100, replace=True)
    assert bare == tr.Ranks.from_sampled([3, 1], m=20, n=100, replace=True)
    with pytest.raises(tr.InputError, match="does not state the number of candidates; give `n`"):
        tr.read_ranks(tmp_path / "bare.csv", m=20)
    tr.Ranks.from_ranks([1], n=5).save(tmp_path / "exact.npz")
    with pytest.raises(tr.InputError, match="holds exact ranks, so `m` can't be given"):
        tr.read_ranks(tmp_path / "exact.npz", m=20)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("ap", {}, "only corrected metrics have a table"),
        ("ap~cls", {"i": 2}, "`i` must lie in 1..n_relevant"),
        ("ap~cls", {"design": 200}, "at most the number of irrelevant candidates"),
    ],
)
def test_bad_tables(text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.estimators.correction_table(text, **({"design": 10, "n": 100} | options))


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("replace", [False, True])
def test_each_instance_may_have_its_own_number_of_draws(correction: str, replace: bool, tmp_path: Path) -> None:
    draws, n = [5, 12, 30, 12], [40, 90, 60, 40]
    ranks = [[2], [3, 9], [1, 2, 31], []]
    together = tr.Ranks.from_sampled(ranks, m=draws, n=n, replace=replace)
    assert together.design == tr.UniformSampling(None, replace)
    alone = [tr.Ranks.from_sampled([r], m=m, n=c, replace=replace) for r, m, c in zip(ranks, draws, n, strict=True)]
    for metric in ("ap", "recall@3"):
        text = f"{metric}~{correction}"
        expected = np.concatenate([tr.values(one, text) for one in alone])
        np.testing.assert_allclose(tr.values(together, text), expected, rtol=1e-12)
    together.save(tmp_path / "sampled.parquet")
    assert tr.Ranks.load(tmp_path / "sampled.parquet") == together


@pytest.mark.parametrize("correction", ["ls", "cls", "rank(interpolate)"])
@pytest.mark.parametrize("replace", [False, True])
def test_affine_metrics_have_an_exactly_unbiased_table(correction: str, replace: bool) -> None:
    h = np.arange(101)
    table = tr.estimators.correction_table(f"auc~{correction}", design=tr.UniformSampling(100, replace), n=3_541)
    np.testing.assert_allclose(table, 1 - h / 100, rtol=0, atol=1e-14)
    places = tr.estimators.correction_table(f"mean-rank~{correction}", design=tr.UniformSampling(100, replace), n=3_541)
    np.testing.assert_allclose(places, 1 + 3_540 * h / 100, rtol=1e-14)


def test_only_auc_stays_unbiased_when_sampled() -> None:
    sampled = tr.Ranks.from_sampled([1, 17, 3], m=100, n=3_541)
    assert not any("biased" in note for note in tr.estimate(sampled, "auc").notes)
    for metric in ("mean-rank", "ap", "recall@10"):
        assert any(f"{metric} among 100 sampled candidates" in note for note in tr.estimate(sampled, metric).notes)


def test_under_popularity_sampling_nothing_stays_unbiased() -> None:
    scores = np.random.default_rng(0).normal(size=(5, 30))
    train, test = [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]], [[20]] * 5
    design = tr.PopularitySampling(3, replace=True)
    sampled = tr.rank_sampled(scores, train=train, test=test, design=design, rng=1)
    (note, *_) = tr.estimate(sampled, "auc").notes
    assert "auc among 3 sampled candidates is not auc" in note
    assert "~bv" not in note


def test_constrained_correction_of_a_sample_of_nearly_everything() -> None:
    table = tr.estimators.correction_table("rbp(0.8)~cls", design=30, n=35)
    assert np.all(np.diff(table) <= 0)
    assert np.all(table >= 0)


def test_nothing_is_noted_without_relevant_items() -> None:
    sampled = tr.UniformSampling(3).draw(tr.Ranks.from_ranks([[], [2]], n=9), rng=0)
    metric = tr.metric("ap~ls")
    assert metric.notes(sampled[:1]) == ()


def test_a_gamma_that_is_chosen_for_ranks_has_no_table_of_its_own() -> None:
    case = tr.estimators.Case(i=1, n_relevant=1, n=11, m=2)
    with pytest.raises(tr.InputError, match=r"the gamma of ~bv\(auto\) is chosen for the ranks of an evaluation"):
        BiasVariance("auto").solve(tr.metric("ap").terms(tr.Ranks.from_ranks([1], n=11))[0].term, HYPERGEOMETRIC, case)


def test_a_prior_from_exact_ranks_counts_tied_items_in_the_middle_of_their_ties() -> None:
    """Ten places: one item ties with the first five, and one stands last; each place has one more."""
    ranks = tr.Ranks(above=[0, 9], tied=[4, 0], n_candidates=[10, 10])
    counts = np.ones(10)
    counts[[2, 9]] += 1
    np.testing.assert_allclose(tr.estimators.learn_prior(ranks, parts=10), counts / 12, rtol=1e-12)
