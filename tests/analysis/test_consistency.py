from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

import truerank as tr
from tests.arrays import Floats
from tests.sampling.terms import LAWS, law_of, plain, sampled_table
from tests.sampling.test_expectations import TOY
from truerank.analysis.consistencies import Flip, _flips, _settled, expected_term
from truerank.evaluation.per_instance import chance

N = 9_999
RANKS = {name: tr.Ranks.from_ranks(ranks, n=N + 1) for name, ranks in TOY.items()}
METRICS = [
    "auc", "ap", "ap@7", "ndcg", "ndcg@5", "rr", "rr@4", "recall@1", "recall@10", "precision@6", "hr@5", "accuracy",
    "f1@9", "r-precision", "rbp(0.9)", "mean-rank",
]  # fmt: skip


def order_at(curves: dict[str, Floats], m: int) -> str:
    return "".join(sorted(curves, key=lambda name: -curves[name][m - 1]))


def test_toy_example_with_replacement() -> None:
    found = tr.consistency(RANKS, "ap", "uniform(replace)", sizes=range(1, N + 1))
    assert found.flips == (Flip(73, "B", "C"), Flip(281, "C", "B"), Flip(438, "C", "A"), Flip(954, "B", "A"))
    expected = {
        72: "ACB",
        73: "ABC",
        280: "ABC",
        281: "ACB",
        437: "ACB",
        438: "CAB",
        953: "CAB",
        954: "CBA",
    }
    assert {m: order_at(found.curves, m) for m in expected} == expected
    assert found.orders() == [
        (1, "A > C > B"), (73, "A > B > C"), (281, "A > C > B"), (438, "C > A > B"), (954, "C > B > A"),
    ]  # fmt: skip
    np.testing.assert_array_equal(found.sizes, np.arange(1, N + 1))
    for name, ranks in TOY.items():
        assert found.exact[name] == pytest.approx(np.mean(1 / np.array(ranks)), rel=1e-13)
    assert found.settled == 954


def test_toy_example_without_replacement_ends_exact() -> None:
    found = tr.consistency(RANKS, "ap")
    assert [flip.m for flip in found.flips] == [73, 277, 434, 1108]
    assert found.settled == 1108
    for name, ranks in TOY.items():
        assert found.curves[name][-1] == pytest.approx(np.mean(1 / np.array(ranks)), rel=1e-12)


@pytest.mark.parametrize("replace", LAWS)
def test_auc_never_flips(replace: bool) -> None:
    found = tr.consistency(RANKS, "auc", tr.UniformSampling(replace=replace), sizes=[1, 2, 10, 100, 1000, N])
    assert found.flips == ()
    assert found.settled == 1


def test_ties_are_no_flips() -> None:
    curves = {"up": np.array([1.0, 1.0, 2.0, 1.0]), "down": np.array([1.0, 1.0, 1.0, 1.0])}
    sizes = np.arange(1, 5)
    assert _flips(curves, sizes) == ()
    assert _settled(curves, {"up": 1.0, "down": 1.0}, sizes) == 4


def test_the_same_recommender_twice_never_flips() -> None:
    found = tr.consistency({"C": RANKS["C"], "again": RANKS["C"]}, "ndcg", sizes=[1, 10, 100])
    assert found.flips == ()
    assert found.settled == 1


def test_unsettled_within_the_sizes() -> None:
    assert tr.consistency(RANKS, "ap", "uniform(replace)", sizes=range(1, 900)).settled is None


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("metric", METRICS)
def test_expected_term_equals_the_sum_over_the_law(metric: str, replace: bool) -> None:
    size = 60
    above = np.arange(size + 1.0)[:, None]
    sizes = np.array([1, 2, 7, 59, 60])
    for i, n_relevant in [(1, 1), (1, 3), (2, 3), (3, 3)]:
        numbers = (np.array([i]), np.array([n_relevant]), np.array([size + n_relevant]))
        found = expected_term(plain(metric), above, *numbers, sizes[None, :], law=law_of(replace))
        summed = [
            law_of(replace).rows(above.ravel(), m, size) @ sampled_table(plain(metric), m, i, n_relevant)
            for m in sizes.tolist()
        ]
        np.testing.assert_allclose(found, np.stack(summed, axis=1), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("metric", [*METRICS, "ap~bv(0.1)", "ndcg@10~cls", "recall@10~rank"])
def test_curves_are_expected_means(metric: str, replace: bool) -> None:
    """Instances with one, several and no relevant items, of several sizes; some of them equal."""
    rng = np.random.default_rng(3)
    n = [40, 40, 55, 40, 55, 40, 70]
    relevant = [1, 3, 2, 0, 2, 1, 4]
    ranks = {
        name: tr.Ranks.from_ranks(
            [rng.choice(size, r, replace=False) + 1 for size, r in zip(n, relevant, strict=True)], n=n
        )
        for name in ("one", "other")
    }
    sizes = [1, 5, 36]
    found = tr.consistency(ranks, metric, tr.UniformSampling(replace=replace), sizes=sizes)
    for name, places in ranks.items():
        means = [tr.risk(places, metric, tr.UniformSampling(m, replace)).mean for m in sizes]
        np.testing.assert_allclose(found.curves[name], means, rtol=1e-11, atol=1e-14)
        exact = tr.estimate(places, metric.partition("~")[0]).mean
        assert found.exact[name] == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("growth", [0.05, 0.17])
def test_flips_are_located_as_by_trying_every_size(growth: float) -> None:
    found = tr.consistency(RANKS, "ap", growth=growth)
    every = tr.consistency(RANKS, "ap", sizes=range(1, N))
    assert found.flips == every.flips
    assert len(found.flips) >= 3


def test_lower_is_better_for_the_mean_rank() -> None:
    found = tr.consistency(RANKS, "mean-rank", sizes=[10, 100])
    assert found.orders() == [(10, "A > C > B")]


@pytest.mark.parametrize(
    ("ranks", "options", "message"),
    [
        ({"A": RANKS["A"]}, {}, "at least two"),
        ({"A": RANKS["A"], "B": tr.Ranks.from_sampled([1], m=3, n=9)}, {}, "must be exact"),
        (RANKS, {"sizes": []}, "`sizes` must hold"),
        ({"A": RANKS["A"], "B": tr.Ranks.from_ranks([[]], n=9)}, {}, "must have an instance with a relevant item"),
        (RANKS, {"growth": 0}, "`growth` must be above 0, got 0"),
        (RANKS, {"sizes": [0, 5]}, "at least one sampled candidate"),
        (RANKS, {"sizes": [5, N + 1]}, "`m` must be at most"),
    ],
)
def test_what_cannot_be_compared(ranks: dict[str, tr.Ranks], options: dict[str, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.consistency(ranks, "ap", **options)


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("metric", ["ap", "recall@3", "ndcg@5", "auc", "rbp(0.9)"])
def test_ties_are_in_random_order(metric: str, replace: bool) -> None:
    """Single ties and blocks of relevant items; the risk at each size says what the curve must be."""
    tied = tr.Ranks(above=[2, 0, 3, 3, 10], tied=[5, 0, 4, 4, 0], n_candidates=[40, 50, 45], indptr=[0, 1, 4, 5])
    single = tr.Ranks(above=[2, 20, 0], tied=[5, 300, 0], n_candidates=[40, 400, 45])
    ranks = single if replace else tr.Ranks.concatenate([tied, single])
    sizes = [1, 5, 30]
    found = tr.consistency(
        {"one": ranks, "other": ranks[::-1]}, metric, tr.UniformSampling(replace=replace), sizes=sizes
    )
    means = [tr.risk(ranks, metric, design=tr.UniformSampling(m, replace)).mean for m in sizes]
    np.testing.assert_allclose(found.curves["one"], means, rtol=1e-10)
    assert found.orders() == [(1, "one = other")]


def many_ranks(rng: np.random.Generator) -> tr.Ranks:
    """Some hundred instances of several sizes with grades: an item with ties or not, and another one tied or below."""
    items = []
    for _ in range(400):
        above, tied = int(rng.integers(0, 30)), int(rng.choice([0, 0, 0, 1, 20]))
        other = [(above, tied), (above + tied + 3, 0)][int(rng.integers(0, 2))]
        items.append([(above, tied), *[other] * int(rng.integers(0, 2))])
    above, tied = np.array([item for instance in items for item in instance]).T
    indptr = np.cumsum([0, *map(len, items)])
    grades = np.repeat(rng.integers(1, 3, 400), np.diff(indptr))
    return tr.Ranks(
        above=above,
        tied=tied,
        n_candidates=rng.integers(60, 90, 400),
        indptr=indptr,
        grades=grades,
    )


@cache
def item_laws(above: int, tied: int, N: int, m: int, replace: bool) -> Floats:
    """The law of the sampled count of an item by SciPy, a row for each number of lost ties."""
    h, g = np.arange(m + 1), (above + np.arange(tied + 1))[:, None]
    return np.asarray(stats.binom.pmf(h, m, g / N) if replace else stats.hypergeom.pmf(h, N, g, m))


def expected_mean(metric: tr.Metric, ranks: tr.Ranks, m: int, replace: bool) -> float:
    """Item by item, over all numbers of lost ties and all sampled counts, with the laws of SciPy."""
    h, total = np.arange(m + 1), 0.0
    place, block = ranks.blocks()
    for terms in metric.terms(ranks):
        weights = np.ones(ranks.above.size) if terms.weight is None else terms.weight
        for at, weight in enumerate(weights):
            i, n_relevant, N = ranks.i[at], ranks.item_n_relevant[at], ranks.item_n[at] - ranks.item_n_relevant[at]
            lost = np.arange(ranks.tied[at] + 1)
            law = item_laws(int(ranks.above[at]), int(ranks.tied[at]), int(N), m, replace)
            sizes = np.full(m + 1, n_relevant)
            table = terms.term.term(h + i, np.full(m + 1, i), sizes, m + sizes)
            total += weight * (chance(lost, ranks.tied[at], place[at], block[at]) @ law @ table)
    return float(total / len(ranks))


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("metric", ["ap", "recall@3", "ndcg", "auc", "gndcg@10"])
def test_many_items_share_the_laws_of_the_sampled_counts(metric: str, replace: bool) -> None:
    ranks = many_ranks(np.random.default_rng(5))
    sizes = [1, 3, 33, 57]
    found = tr.consistency(
        {"one": ranks, "other": ranks[::-1]}, metric, tr.UniformSampling(replace=replace), sizes=sizes
    )
    expected = [expected_mean(tr.metric(metric), ranks, m, replace) for m in sizes]
    np.testing.assert_allclose(found.curves["one"], expected, rtol=1e-11)
    assert found.orders() == [(1, "one = other")]


SEVERAL = [
    "ap", "ap@30", "ndcg", "ndcg@5", "ndcg(original)@10", "recall@10", "recall@20", "rr", "hr@3", "rbp(0.9)", "dcg",
    "gndcg@10", "marp@2,5", "auc", "mean-rank", "r-precision",
]  # fmt: skip


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize("metric", ["ndcg", "recall@10"])
def test_smaller_samples_are_parts_of_larger_ones(metric: str, replace: bool) -> None:
    def curve(*sizes: int) -> list[float]:
        ranks = tr.Ranks(above=np.arange(300) % 83, tied=np.arange(300) % 7, n_candidates=90 + np.arange(300) % 4)
        found = tr.consistency({"A": ranks, "B": ranks}, metric, tr.UniformSampling(replace=replace), sizes=sizes)
        return found.curves["A"].tolist()

    sizes = 1, 3, 16, 70
    assert curve(*sizes) == pytest.approx([curve(m)[0] for m in sizes], rel=1e-12)


@pytest.mark.parametrize("replace", LAWS)
def test_several_relevant_items_of_many_instances(replace: bool) -> None:
    """Few counts stand for hundreds; without replacement some items tie, and the last size is nearly everything."""
    ranks = several_ranks(np.random.default_rng(7), ties=not replace)
    sizes = [2, 300, int(ranks.draws.min())]
    laws = {m: [shown_law(ranks, at, m, replace) for at in range(ranks.above.size)] for m in sizes}
    for metric in SEVERAL:
        both = {"one": ranks, "other": ranks[::-1]}
        found = tr.consistency(both, metric, tr.UniformSampling(replace=replace), sizes=sizes).curves["one"]
        expected = [sum_over(tr.metric(metric), ranks, laws[m], m) / len(ranks) for m in sizes]
        np.testing.assert_allclose(found, expected, rtol=1e-11, err_msg=metric)


def several_ranks(rng: np.random.Generator, ties: bool) -> tr.Ranks:
    sizes = rng.integers(1, 6, 130)
    indptr, n = np.append(0, np.cumsum(sizes)), rng.integers(600, 640, 130)
    above = np.concatenate([np.sort(np.minimum(rng.lognormal(4, 2, size), 580)) for size in sizes]).astype(np.int64)
    tied = np.zeros_like(above)
    tied[indptr[1:] - 1] = rng.integers(0, 2, 130) * 10 * ties
    grades = np.repeat(rng.integers(1, 4, 130), sizes)
    return tr.Ranks(above=above, tied=tied, n_candidates=n, indptr=indptr, grades=grades)


def shown_law(ranks: tr.Ranks, at: int, m: int, replace: bool) -> Floats:
    """The law of the sampled count of an item that ties alone."""
    N = int(ranks.item_n[at] - ranks.item_n_relevant[at])
    return np.asarray(item_laws(int(ranks.above[at]), int(ranks.tied[at]), N, m, replace).mean(axis=0))


def sum_over(metric: tr.Metric, ranks: tr.Ranks, laws: list[Floats], m: int) -> float:
    total = 0.0
    for terms in metric.terms(ranks):
        weights = np.ones(ranks.above.size) if terms.weight is None else terms.weight
        for law, weight, i, n_relevant in zip(laws, weights, ranks.i, ranks.item_n_relevant, strict=True):
            numbers = (np.full(m + 1, number) for number in (i, n_relevant, m + n_relevant))
            total += weight * (law @ terms.term.term(np.arange(m + 1) + i, *numbers))
    return total


def test_tied_relevant_items_of_different_grades_come_in_any_order() -> None:
    parts: dict[str, Any] = {"above": [0, 0, 5], "tied": [3, 3, 0], "n_candidates": [10], "indptr": [0, 3]}
    ranks = {
        name: tr.Ranks(**parts, grades=grades, same_score=[False, True, False])
        for name, grades in {"low": [1, 5, 2], "high": [5, 1, 2]}.items()
    }
    for metric in ("dcg@3", "gndcg", "weighted-recall@4"):
        curves = tr.consistency(ranks, metric, sizes=[3, 7]).curves
        assert curves["low"] == pytest.approx(curves["high"], rel=1e-13)
        assert curves["low"][-1] == pytest.approx(tr.estimate(ranks["low"], metric).mean, rel=1e-12)


def test_sizes_are_refined_where_orders_change() -> None:
    every = tr.consistency(RANKS, "ap", "uniform(replace)", sizes=range(1, 10_000))
    found = tr.consistency(RANKS, "ap", "uniform(replace)")
    assert found.flips == every.flips
    assert found.settled == every.settled
    assert found.sizes.size < 500


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("metric", ["recall@10~bv(0.1)", "ap~bv(0.01)", "ndcg~bv(1)"])
def test_the_curve_of_a_corrected_metric_is_its_risk_at_each_size(
    metric: str, pooled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed forms for many sizes at once, against the laws of all items at one size."""
    if not pooled:
        monkeypatch.setattr("truerank.estimators.bias_variance.LARGEST", 0)
    rng = np.random.default_rng(0)
    n = rng.integers(300, 400, 20)
    lists = [np.sort(rng.choice(300, size, replace=False) + 1) for size in rng.integers(1, 4, 20)]
    ranks = {name: tr.Ranks.from_ranks(lists[::step], n=n[::step]) for name, step in (("A", 1), ("B", -1))}
    # the last two are more than a third of the catalogue; of fewer sizes each would be computed on its own
    sizes = [1, 2, 3, 5, 10, 30, 97, 150, 250]
    found = tr.consistency(ranks, metric, sizes=sizes)
    for name, one in ranks.items():
        expected = [tr.risk(one, metric, design=m).mean for m in sizes]
        np.testing.assert_allclose(found.curves[name], expected, rtol=1e-11)


@pytest.mark.parametrize(
    ("metric", "pooled"), [("recall@10~bv(0.1)", True), ("ap~bv(0.01)", True), ("rr~bv(1)", False)]
)
def test_the_curve_of_a_corrected_metric_with_ties_is_its_risk_at_each_size(
    metric: str, pooled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not pooled:
        monkeypatch.setattr("truerank.estimators.bias_variance.LARGEST", 0)
    rng = np.random.default_rng(1)
    n, above = rng.integers(300, 400, 60), rng.integers(0, 100, 60)
    ranks = tr.Ranks(above=above, tied=rng.choice([0, 1, 30, 150], 60), n_candidates=n)
    pair = tr.Ranks(above=[5, 5], tied=[9, 9], n_candidates=[350], indptr=[0, 2])
    both = tr.Ranks.concatenate([ranks, pair])
    sizes = [1, 2, 3, 5, 10, 30, 60, 90, 290]
    found = tr.consistency({"A": both, "B": both[::2]}, metric, sizes=sizes)
    np.testing.assert_allclose(found.curves["A"], [tr.risk(both, metric, design=m).mean for m in sizes], rtol=1e-11)


@pytest.mark.parametrize(("metric", "replace"), [("ap~bv(0.1)", True), ("ap~ls", False), ("ap~ls", True)])
def test_curves_without_a_closed_form_are_those_of_each_size(metric: str, replace: bool) -> None:
    ranks = {name: tr.Ranks.from_ranks(own, n=15) for name, own in {"A": [1, 5, 9], "B": [2, 3, 15]}.items()}
    found = tr.consistency(ranks, metric, tr.UniformSampling(replace=replace), sizes=range(1, 11))
    for name, one in ranks.items():
        expected = [tr.risk(one, metric, design=tr.UniformSampling(m, replace)).mean for m in range(1, 11)]
        np.testing.assert_allclose(found.curves[name], expected, rtol=1e-12)


def test_the_order_after_a_tie_is_shown() -> None:
    """With m < 10 every recall@10 is 1; from m = 10 on the worse recommender is ahead, until it is not."""
    often = tr.Ranks.from_ranks([30] * 10, n=1_000)
    seldom = tr.Ranks.from_ranks([1] * 3 + [600] * 7, n=1_000)
    found = tr.consistency({"often": often, "seldom": seldom}, "recall@10", sizes=range(1, 999))
    assert [order for _, order in found.orders()] == ["often = seldom", "often > seldom", "seldom > often"]
    assert [start for start, _ in found.orders()][:2] == [1, 10]
