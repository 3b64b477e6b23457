"""Other libraries on random lists: equal to 1e-9 where definitions coincide, and where not, as documented.

They need older versions of NumPy and pandas than truerank, hence an environment of their own (`make test`).
"""

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from numba.core.errors import NumbaTypeSafetyWarning

import truerank as tr
from tests.arrays import Floats

irm = pytest.importorskip("ir_measures", reason="install the extra 'peers'")
ranx = pytest.importorskip("ranx", reason="install the extra 'peers'")
rectools = pytest.importorskip("rectools.metrics", reason="install the extra 'peers'")

N_USERS, N_ITEMS, DEPTH = 40, 60, 30


def users() -> list[str]:
    return [f"u{user:02d}" for user in range(N_USERS)]


def make_lists(depth: int) -> tuple[dict[str, dict[str, float]], dict[str, list[str]]]:
    """Return tie-free lists and 1 to 25 relevant items per user, listed or not."""
    rng = np.random.default_rng(11)
    run, truth = {}, {}
    for user in users():
        items = [f"i{item:02d}" for item in rng.permutation(N_ITEMS)[:depth]]
        # multiples of 1/16 are exact in single precision, in which the TREC tools compare
        scores = np.sort(rng.permutation(10_000)[:depth])[::-1] / 16.0
        run[user] = dict(zip(items, scores.tolist(), strict=True))
        relevant = rng.choice(N_ITEMS, size=rng.integers(1, 26), replace=False)
        truth[user] = [f"i{item:02d}" for item in relevant]
    return run, truth


RUN, TRUTH = make_lists(DEPTH)
FULL_RUN, FULL_TRUTH = make_lists(N_ITEMS)


def ours(metric: str) -> Floats:
    return tr.values(tr.read_lists(RUN, TRUTH), metric)


def ours_on_everything(metric: str) -> Floats:
    return tr.values(tr.read_lists(FULL_RUN, FULL_TRUTH, depth="all"), metric)


def grades(truth: dict[str, list[str]]) -> dict[str, dict[str, int]]:
    return {user: dict.fromkeys(items, 1) for user, items in truth.items()}


def by_ranx(metric: str, run: dict[str, dict[str, float]] = RUN, truth: dict[str, list[str]] = TRUTH) -> Floats:
    with warnings.catch_warnings():
        # numba tells of ranx's own mixing of signed and unsigned numbers
        warnings.simplefilter("ignore", category=NumbaTypeSafetyWarning)
        # one metric gives an array, several a dict of them; queries come back sorted, as ours are
        return np.asarray(ranx.evaluate(ranx.Qrels(grades(truth)), ranx.Run(run), metric, return_mean=False))


def by_ir_measures(measure: str, run: dict[str, dict[str, float]] = RUN, truth: dict[str, list[str]] = TRUTH) -> Floats:
    found = irm.iter_calc([irm.parse_measure(measure)], grades(truth), run)
    values = {result.query_id: result.value for result in found}
    return np.array([values[user] for user in users()])


def by_rectools(metric: object, run: dict[str, dict[str, float]] = RUN, truth: dict[str, list[str]] = TRUTH) -> Floats:
    lists = [(user, item, rank) for user, items in run.items() for rank, item in enumerate(items, start=1)]
    pairs = [(user, item) for user, items in truth.items() for item in items]
    recommended = pd.DataFrame(lists, columns=["user_id", "item_id", "rank"])
    values = metric.calc_per_user(recommended, pd.DataFrame(pairs, columns=["user_id", "item_id"]))  # type: ignore[attr-defined]
    return values.loc[users()].to_numpy(dtype=np.float64)


@pytest.mark.parametrize("k", [1, 5, 30])
@pytest.mark.parametrize(
    ("theirs", "metric"),
    [
        ("precision", "precision"),
        ("recall", "recall"),
        ("ndcg", "ndcg"),
        ("mrr", "rr"),
        ("hit_rate", "hr"),
        ("f1", "f1"),
    ],
)
def test_ranx(theirs: str, metric: str, k: int) -> None:
    np.testing.assert_allclose(by_ranx(f"{theirs}@{k}"), ours(f"{metric}@{k}"), atol=1e-9)


@pytest.mark.parametrize("k", [1, 5, 30])
@pytest.mark.parametrize(
    ("theirs", "metric"), [("P", "precision"), ("R", "recall"), ("nDCG", "ndcg"), ("RR", "rr"), ("Success", "hr")]
)
def test_ir_measures(theirs: str, metric: str, k: int) -> None:
    np.testing.assert_allclose(by_ir_measures(f"{theirs}@{k}"), ours(f"{metric}@{k}"), atol=1e-9)


@pytest.mark.parametrize("k", [1, 5, 30])
@pytest.mark.parametrize(
    ("theirs", "metric"),
    [
        (lambda k: rectools.Precision(k=k), "precision"),
        (lambda k: rectools.Recall(k=k), "recall"),
        (lambda k: rectools.NDCG(k=k, divide_by_achievable=True), "ndcg"),
        (lambda k: rectools.MRR(k=k), "rr"),
        (lambda k: rectools.HitRate(k=k), "hr"),
        (lambda k: rectools.F1Beta(k=k, beta=1.0), "f1"),
        (lambda k: rectools.F1Beta(k=k, beta=2.0), "f-beta(2)"),
    ],
)
def test_rectools(theirs: Callable[[int], object], metric: str, k: int) -> None:
    np.testing.assert_allclose(by_rectools(theirs(k)), ours(f"{metric}@{k}"), atol=1e-9)


@pytest.mark.filterwarnings("ignore:Downcasting object dtype:FutureWarning")  # in RecTools
@pytest.mark.parametrize("k", [1, 5, 20])
def test_partial_auc(k: int) -> None:
    for theirs, metric in ((rectools.PartialAUC(k=k), f"pauc@{k}"), (rectools.PAP(k=k), f"pauc(top)@{k}")):
        np.testing.assert_allclose(by_rectools(theirs, FULL_RUN, FULL_TRUTH), ours_on_everything(metric), atol=1e-9)


def test_bpref_where_everything_is_judged() -> None:
    judged = {user: {item: int(item in FULL_TRUTH[user]) for item in items} for user, items in FULL_RUN.items()}
    found = {each.query_id: each.value for each in irm.iter_calc([irm.Bpref], judged, FULL_RUN)}
    np.testing.assert_allclose([found[user] for user in users()], ours_on_everything("bpref"), atol=1e-9)
    lists = tr.read_recommendations(RUN)
    judgements = {user: dict(list(own.items())[::3]) for user, own in judged.items()}
    theirs = np.mean([each.value for each in irm.iter_calc([irm.Judged @ 10], judgements, RUN)])
    assert tr.evaluate(lists, "judged@10", truth=judgements)["judged@10"].mean == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(
    ("theirs", "metric"),
    [("map", "ap"), ("ndcg", "ndcg"), ("mrr", "rr"), ("r-precision", "r-precision"), ("rbp.80", "rbp(0.8)")],
)
def test_ranx_on_whole_rankings(theirs: str, metric: str) -> None:
    np.testing.assert_allclose(by_ranx(theirs, FULL_RUN, FULL_TRUTH), ours_on_everything(metric), atol=1e-9)


@pytest.mark.parametrize(
    ("theirs", "metric"),
    [
        ("AP", "ap"),
        ("nDCG", "ndcg"),
        ("RR", "rr"),
        ("Rprec", "r-precision"),
        ("Accuracy", "auc"),
    ],
)
def test_ir_measures_on_whole_rankings(theirs: str, metric: str) -> None:
    np.testing.assert_allclose(by_ir_measures(theirs, FULL_RUN, FULL_TRUTH), ours_on_everything(metric), atol=1e-9)


@pytest.mark.parametrize("theirs", [lambda k: by_ranx(f"map@{k}"), lambda k: by_ir_measures(f"AP@{k}")])
@pytest.mark.parametrize("k", [5, 10])
def test_documented_difference_ap_at_k_is_divided_by_all_relevant_items(
    theirs: Callable[[int], Floats], k: int
) -> None:
    n_relevant = np.array([len(items) for items in TRUTH.values()])
    assert np.abs(theirs(k) - ours(f"ap@{k}")).max() > 0.01
    np.testing.assert_allclose(theirs(k), ours(f"ap@{k}") * np.minimum(n_relevant, k) / n_relevant, atol=1e-9)


@pytest.mark.parametrize("k", [5, 10])
def test_documented_difference_rectools(k: int) -> None:
    n_relevant = np.array([len(items) for items in TRUTH.values()])
    scaled = ours(f"ap@{k}") * np.minimum(n_relevant, k) / n_relevant
    np.testing.assert_allclose(by_rectools(rectools.MAP(k=k)), scaled, atol=1e-9)
    discounts = np.cumsum(1 / np.log2(np.arange(2, k + 2)))
    fixed = ours(f"ndcg@{k}") * discounts[np.minimum(n_relevant, k) - 1] / discounts[-1]
    np.testing.assert_allclose(by_rectools(rectools.NDCG(k=k)), fixed, atol=1e-9)


def test_documented_difference_hits_in_ranx_is_a_count() -> None:
    np.testing.assert_allclose(by_ranx("hits@10"), ours("precision@10") * 10, atol=1e-9)


def test_documented_difference_ties() -> None:
    """The first of three equally scored items: its expected reciprocal rank, or an accident."""
    run, truth = {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}, {"q": ["a"]}
    assert tr.values(tr.read_lists(run, truth), "rr@3")[0] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    found = irm.iter_calc([irm.RR], grades(truth), run)
    assert next(iter(found)).value == pytest.approx(1 / 3), "the TREC tools put the larger document id first"
