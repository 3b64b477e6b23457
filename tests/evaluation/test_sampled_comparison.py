"""Comparisons of sampled ranks against simulation, known exact ranks, and scipy.stats."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

import truerank as tr
from tests.arrays import Floats, Ints
from tests.instances import FirstItems
from tests.reference import lower_end
from truerank.evaluation import paired_values
from truerank.evaluation.exact_ranges import bound_values
from truerank.evaluation.paired_tests import bootstrap_totals, exchange_totals
from truerank.papers.krichene_rendle_2020.movielens import embedded

STUDY = {name: embedded().ranks[name][:1_500].break_ties("random", rng=0) for name in "XY"}


def sampled(m: int, seed: int = 1) -> dict[str, tr.Ranks]:
    rng = np.random.default_rng(seed)
    return {name: tr.UniformSampling(m).draw(one, rng=rng) for name, one in STUDY.items()}


@pytest.mark.parametrize("metric", ["auc", "recall@10", "ap", "ap~bv(0.1)", "ndcg@10~bv(0.01)"])
def test_error_from_candidates_is_that_of_the_exact_ranks(metric: str) -> None:
    found = tr.compare(sampled(100), metric)["Y", "X"]
    variance = sum(tr.risk(one, metric, design=100).variance.sum() for one in STUDY.values())
    assert found.sampling_error == pytest.approx(math.sqrt(variance) / 1_500, rel=0.08)
    assert math.hypot(found.user_error, found.sampling_error) == pytest.approx(found.standard_error, rel=1e-12)


def test_error_from_candidates_is_drawn_once_for_a_metric_and_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def errors(runs: dict[str, tr.Ranks], metric: str, groups: dict[int, str] | None = None) -> list[float | None]:
        return [each.sampling_error for each in tr.compare(runs, metric, by=groups)]

    runs, again = (
        {name: dataclasses.replace(one, ids=np.arange(1_500))[:50] for name, one in sampled(20).items()}
        for _ in range(2)
    )
    groups = [{user: "one" if user % number == 0 else "other" for user in range(50)} for number in (2, 3)]
    asked = [("ap", None), ("auc", None), ("ap", groups[0]), ("ap", groups[1])]
    first = [errors(runs, *each) for each in asked]
    monkeypatch.setattr(paired_values, "plausible_ranks", None)
    assert [errors(runs, *each) for each in asked] == first
    monkeypatch.undo()
    assert [errors(again, *each) for each in reversed(asked)] == first[::-1]


def test_error_from_candidates_with_several_relevant_items() -> None:
    rng = np.random.default_rng(0)
    places = [np.sort(rng.choice(np.arange(1, 2_001), size=rng.integers(1, 6), replace=False, p=weights(2_000)))
              for _ in range(800)]  # fmt: skip
    exact = tr.Ranks.from_ranks(places, n=2_000)
    draws = [tr.estimate(tr.UniformSampling(50).draw(exact, rng=seed), "ndcg@10").mean for seed in range(300)]
    runs = {name: tr.UniformSampling(50).draw(exact, rng=seed) for seed, name in enumerate("AB")}
    found = tr.compare(runs, "ndcg@10")["B", "A"].sampling_error / math.sqrt(2)
    assert found == pytest.approx(np.std(draws), rel=0.15 + 3 / math.sqrt(600))


def weights(n: int) -> Floats:
    found = np.arange(1.0, n + 1) ** -0.7
    return np.asarray(found / found.sum())


def shared_runs(seed: int) -> dict[str, tr.Ranks]:
    """Return ranks of two similar recommenders among the same 20 sampled candidates of 200."""
    scores = np.random.default_rng(0).normal(size=(300, 201)) + np.eye(1, 201)
    noise = np.random.default_rng(1).normal(size=scores.shape) * 0.1
    chosen = np.argsort(np.random.default_rng(seed).random((300, 200)), axis=1)[:, :20] + 1
    ranks = {}
    for name, own in {"A": scores, "B": scores + noise}.items():
        ranks[name] = 1 + (np.take_along_axis(own, chosen, axis=1) > own[:, :1]).sum(axis=1)
    return {name: tr.Ranks.from_sampled(own, m=20, n=201) for name, own in ranks.items()}


def test_common_candidates() -> None:
    runs = [shared_runs(seed) for seed in range(2, 102)]
    differences = [tr.estimate(run["B"], "auc").mean - tr.estimate(run["A"], "auc").mean for run in runs]
    true = float(np.std(differences, ddof=1))
    together = {name: [run[name] for run in runs[:20]] for name in "AB"}
    for same in (False, True):
        several = tr.compare(together, "auc", same_candidates=same)["B", "A"]
        assert several.sampling_error * math.sqrt(20) == pytest.approx(true, rel=0.3)
        assert several.difference == pytest.approx(np.mean(differences[:20]), rel=1e-9)
    apart, told = (tr.compare(runs[0], "auc", same_candidates=same)["B", "A"] for same in (False, True))
    assert 0.9 * true < told.sampling_error < 0.8 * apart.sampling_error
    assert told.order_probability > apart.order_probability


def test_order_probability_is_the_posterior_of_a_flat_prior() -> None:
    found = tr.compare(sampled(100), "ap~bv(0.1)")["Y", "X"]
    expected = stats.norm.cdf(abs(found.difference) / found.sampling_error)
    assert 0.5 < expected < 1
    assert found.order_probability == pytest.approx(expected, rel=1e-12)
    assert found.reversed().order_probability == found.order_probability


def test_an_order_is_claimed_only_if_the_sample_determines_it() -> None:
    result = tr.compare(sampled(100), ["recall@10", "recall@10~bv(0.1)", "auc"])
    for metric in ("recall@10", "recall@10~bv(0.1)"):
        found = result["Y", "X", metric]
        assert (found.bounded, found.verdict, found.p_value) == (True, "not determined by this sample", 1.0)
        values = [tr.values(one, metric) for one in sampled(100).values()]
        theirs = stats.ttest_rel(values[1], values[0]).confidence_interval(0.95)
        by_t = tr.compare(sampled(100), metric, test="t")["Y", "X"]
        assert by_t.expectation_interval() == pytest.approx((theirs.low, theirs.high), rel=1e-9)
        low, high = found.confidence_interval()
        assert low < found.expectation_interval().low < theirs.low < theirs.high < high
        assert math.isinf(found.instances_needed())
    assert math.isnan(result["Y", "X", "recall@10"].order_probability)
    assert result["Y", "X", "auc"].verdict == "X is better"
    assert any(note.startswith("to determine the order by recall@10, rank all") for note in result.notes)


def test_a_clear_order_is_determined() -> None:
    rng = np.random.default_rng(0)
    places = {"good": rng.integers(1, 4, 2_000), "bad": rng.integers(600, 1_000, 2_000)}
    runs = {
        name: tr.UniformSampling(500).draw(tr.Ranks.from_ranks(own, n=1_000), rng=1) for name, own in places.items()
    }
    found = tr.compare(runs, "recall@10~bv(0.1)", margin=0.1)["good", "bad"]
    assert found.verdict == "good is better"
    assert found.confidence_interval().high <= 1.0
    assert found.not_worse(0.0)
    assert found.reversed().verdict == "good is better"
    assert found.reversed().worse(0.1)


def test_bounds_are_those_of_the_instances() -> None:
    runs = sampled(300)
    found = tr.compare(runs, "ap")["Y", "X"]
    y, x = (bound_values(runs[name], tr.metric("ap")) for name in "YX")
    expected = (
        lower_end(y.lower - x.upper, (y.least - x.most).min(), 0.9),
        -lower_end(x.lower - y.upper, (x.least - y.most).min(), 0.9),
    )
    assert found.confidence_interval(0.9) == pytest.approx(expected, abs=1e-7)
    falling = tr.compare(runs, "ap", assume="falling")["Y", "X"].confidence_interval(0.9)
    assert expected[0] < falling.low < falling.high < expected[1]


def test_bounds_cover_the_exact_difference() -> None:
    exact = tr.estimate(STUDY["Y"], "ap").mean - tr.estimate(STUDY["X"], "ap").mean
    for seed in range(3):
        low, high = tr.compare(sampled(300, seed), "ap")["Y", "X"].confidence_interval(0.95)
        assert low < exact < high


def test_inverse_sampling_takes_the_recommended_estimators() -> None:
    runs = {name: tr.InverseSampling(2).draw(one, rng=1) for name, one in STUDY.items()}
    result = tr.compare(runs, ["ap", "ndcg@10"])
    assert result.metrics == ("ap~unbiased", "ndcg@10~smooth")
    plain, pooled = (result["Y", "X", metric] for metric in ("ap", "ndcg@10"))
    x, y = (tr.values(run, "ap") for run in runs.values())
    by_t = tr.compare(runs, "ap", test="t")["Y", "X"]
    assert by_t.p_value == pytest.approx(stats.ttest_rel(y, x).pvalue, rel=1e-9)
    assert by_t.p_value < plain.p_value < 1.5 * by_t.p_value
    assert not plain.bounded
    draws = [tr.estimate(tr.InverseSampling(2).draw(STUDY["X"], rng=seed), "ap").mean for seed in range(200)]
    assert 0.5 * math.sqrt(2) < plain.sampling_error / np.std(draws) < 2 * math.sqrt(2)
    metric = tr.metric("ndcg@10~smooth")
    hidden = math.hypot(*(metric.hidden_error(run) for run in runs.values()))
    spread = stats.sem(np.subtract(*(tr.values(run, metric) for run in runs.values())))
    assert pooled.sampling_error == pytest.approx(hidden, rel=1e-9)
    assert pooled.standard_error == pytest.approx(math.hypot(hidden, spread), rel=1e-9)
    assert pooled.bounded
    fitted = tr.compare(runs, "ndcg@10", test="bootstrap", rng=0)["Y", "X", "ndcg@10~smooth"].expectation_interval()
    assert fitted.high - fitted.low == pytest.approx(2 * 1.96 * pooled.standard_error, rel=0.1)
    low, high = pooled.confidence_interval()
    assert low < fitted.low < fitted.high < high


def hump(users: int, lowest: int, highest: int, n: int, rng: np.random.Generator) -> Ints:
    """Half of the items at ranks from the lowest to the highest, the others anywhere below."""
    there = rng.integers(lowest, highest + 1, users)
    return np.where(rng.random(users) < 0.5, there, rng.integers(highest + 1, n + 1, users))


def test_a_hump_below_the_cut_off_is_never_named_the_better_one() -> None:
    """Recall@10 of A is 0, as half of its items stand at ranks 11 to 20; 8 % of those of B are in the top 10."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        places = {"A": hump(1_500, 11, 20, 2_000, rng), "B": np.where(rng.random(1_500) < 0.08, 5, 700)}
        runs = {
            name: tr.InverseSampling(2).draw(tr.Ranks.from_ranks(own, n=2_000), rng=rng) for name, own in places.items()
        }
        found = tr.compare(runs, "recall@10")["B", "A"]
        assert found.verdict in ("B is better", "not determined by this sample")
        assert found.confidence_interval().low <= np.mean(places["B"] <= 10) <= found.confidence_interval().high


def test_a_clear_order_is_determined_by_inverse_sampling() -> None:
    rng = np.random.default_rng(0)
    places = {"good": rng.integers(1, 4, 800), "bad": rng.integers(600, 1_000, 800)}
    runs = {name: tr.InverseSampling(2).draw(tr.Ranks.from_ranks(own, n=1_000), rng=1) for name, own in places.items()}
    assert tr.compare(runs, "recall@10")["good", "bad"].verdict == "good is better"


def test_a_cap_that_only_other_samples_would_reach_leaves_the_error_from_candidates_open() -> None:
    exact = tr.Ranks.from_ranks([20, 25, 30, 40, 60] * 4, n=1_000)
    draws = (tr.InverseSampling(2, most=220).draw(exact, rng=seed) for seed in range(1_000))
    uncapped = [run for run in draws if (run.item_draws < 220).all()][:2]
    found = tr.compare(dict(zip("AB", uncapped, strict=True)), "ap~unbiased")["B", "A"]
    assert math.isnan(found.sampling_error)
    assert math.isnan(found.order_probability)
    assert not math.isnan(found.p_value)


def test_groups_and_users_with_several_instances() -> None:
    ids = np.arange(1_500) // 2
    runs = {name: dataclasses.replace(one, ids=ids) for name, one in sampled(100).items()}
    groups = {int(user): "even" if user % 2 == 0 else "odd" for user in ids}
    result = tr.compare(runs, ["auc", "recall@10~bv(0.1)"], by=groups)
    for group in ("even", "odd"):
        found = result["Y", "X", "auc", group]
        rows = np.flatnonzero(ids % 2 == (group == "odd"))
        variance = sum(tr.risk(one[rows], "auc", design=100).variance.sum() for one in STUDY.values())
        assert found.sampling_error == pytest.approx(math.sqrt(variance) / rows.size, rel=0.1)
        assert found.n_units == rows.size / 2
        assert result["Y", "X", "recall@10~bv(0.1)", group].verdict == "not determined by this sample"


@pytest.mark.parametrize("design", [tr.PopularitySampling(5), FirstItems(5)], ids=str)
def test_designs_without_a_law_determine_nothing(design: tr.SamplingDesign) -> None:
    rng = np.random.default_rng(0)
    train = [rng.choice(30, 5, replace=False).tolist() for _ in range(40)]
    test = [[next(item for item in range(30) if item not in own)] for own in train]
    scores = {name: rng.random((40, 30)) for name in "AB"}
    runs = {name: tr.rank_sampled(own, train=train, test=test, design=design, rng=1) for name, own in scores.items()}
    found = tr.compare(runs, "recall@3")["B", "A"]
    assert found.verdict == "not determined by this sample"
    assert not found.p_value < 1
    assert math.isnan(found.sampling_error)


def test_popularity_sampling_of_nearly_all_candidates_determines_the_order() -> None:
    """Bounds that only count what was not sampled; the exact order is known."""
    scores = np.tile(np.arange(30.0), (40, 1))
    train, test = [[user % 30] for user in range(40)], [[(user + 7) % 30] for user in range(40)]
    raised = scores.copy()
    raised[np.arange(40), [own[0] for own in test]] += 15
    runs = {
        name: tr.rank_sampled(own, train=train, test=test, design=tr.PopularitySampling(27), rng=1)
        for name, own in (("A", scores), ("B", raised))
    }
    found = tr.compare(runs, "recall@10~possible")["B", "A"]
    assert found.verdict == "B is better"
    exact = [tr.estimate(tr.rank(own, train=train, test=test), "recall@10").mean for own in (scores, raised)]
    low, high = found.confidence_interval()
    assert low <= exact[1] - exact[0] <= high


def test_exact_ranks_have_no_error_from_candidates() -> None:
    result = tr.compare(STUDY, "ap")
    assert (result["Y", "X"].sampling_error, result["Y", "X"].order_probability) == (0.0, 1.0)
    assert "from users, candidates" not in str(result)
    assert "from users, candidates" in str(tr.compare(sampled(100), "auc"))


def test_a_recommender_without_runs() -> None:
    with pytest.raises(tr.InputError, match="at least one run, but 'X' has none"):
        tr.compare({"X": [], "Y": sampled(100)["Y"]}, "auc")


def test_corrected_values_of_different_designs_are_compared() -> None:
    runs = {"X": sampled(100)["X"], "Y": sampled(200)["Y"]}
    assert tr.compare(runs, "ap~bv(0.1)")["Y", "X"].bounded
    with pytest.raises(tr.InputError, match="chosen in one way"):
        tr.compare(runs, "ap")


def test_totals_of_resamples_have_the_multinomial_law() -> None:
    rng, n = np.random.default_rng(0), 40
    counts = bootstrap_totals(np.eye(n), np.full(20_000, n), rng)
    assert (counts.sum(axis=1) == n).all()
    for number in range(4):
        chance = stats.binom.pmf(number, n, 1 / n)
        error = math.sqrt(chance * (1 - chance) / 20_000)
        assert (counts[:, 7] == number).mean() == pytest.approx(chance, abs=5 * error)
    assert np.cov(counts[:, :2].T)[0, 1] == pytest.approx(-1 / n, abs=5 / math.sqrt(20_000))


def test_totals_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    values, found = np.random.default_rng(0).random((20_000, 2)), []
    for threads in (1, 3):
        monkeypatch.setattr("truerank.evaluation.paired_tests.available_threads", lambda number=threads: number)
        found.append(bootstrap_totals(values, np.full(200, 20_000), np.random.default_rng(1)))
        found.append(exchange_totals(values, 200, np.random.default_rng(1)))
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], found[3])
    assert found[0].mean() == pytest.approx(10_000, rel=0.01)
    assert found[1].mean() == pytest.approx(5_000, rel=0.01)


def test_tables_show_the_parts_of_the_error() -> None:
    exact = {name: tr.Ranks.from_ranks([1, 2, place, 7], n=30) for name, place in (("A", 3), ("B", 14))}
    found = tr.compare({name: tr.UniformSampling(9).draw(one, rng=0) for name, one in exact.items()}, "auc")
    parts = f"{found[0].user_error:.4f}, {found[0].sampling_error:.4f}"
    assert parts in found.to_markdown()
