"""`convention=` gives the numbers that the tools themselves print, on lists with ties, short and missing ones."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from numba.core.errors import NumbaTypeSafetyWarning

import truerank as tr
from tests.arrays import Floats
from truerank.core.conventions import CONVENTIONS
from truerank.evaluation.per_instance import Ties

irm = pytest.importorskip("ir_measures", reason="install the extra 'peers'")
ranx = pytest.importorskip("ranx", reason="install the extra 'peers'")
rectools = pytest.importorskip("rectools.metrics", reason="install the extra 'peers'")
sklearn = pytest.importorskip("sklearn.metrics", reason="install the extra 'peers'")

Run = dict[str, dict[str, float]]
Truth = dict[str, dict[str, int]]
N_USERS, N_ITEMS, DEPTH = 60, 40, 20
BOUNDS: tuple[Ties, Ties] = ("pessimistic", "optimistic")


def make(*, ties: bool = True) -> tuple[Run, Truth]:
    """Return lists with or without equal scores, some short, and grades of 1 to 3; three users have no list."""
    rng = np.random.default_rng(0)
    run, truth = {}, {}
    for user in (f"u{user:02d}" for user in range(N_USERS)):
        items = [f"i{item:02d}" for item in rng.permutation(N_ITEMS)]
        size = DEPTH if rng.random() < 0.7 else int(rng.integers(1, DEPTH))
        # few different scores, exact in single precision, in which the TREC tools compare
        scores = rng.integers(0, 8, size) if ties else rng.permutation(1_000)[:size]
        run[user] = dict(zip(items[:size], (scores / 4.0).tolist(), strict=True))
        truth[user] = {item: int(rng.integers(1, 4)) for item in rng.permutation(items)[: rng.integers(1, 16)]}
    truth["u00"] = {"i00": 0, "i01": 0}  # nothing relevant
    for user in ("u57", "u58", "u59"):
        del run[user]
    return run, truth


def ours(convention: str, text: str, run: Run, truth: Truth) -> float:
    ranks = tr.read_lists(run, truth, depth=DEPTH, convention=convention)
    return tr.evaluate(ranks, text, convention=convention)[text].mean


def filled(name: str, k: int) -> str:
    return name.replace("_k", f"_{k}").replace("@k", f"@{k}")


def cases(convention: str) -> list[tuple[str, str]]:
    """Return every metric of a convention, in their words and in ours, at several cut-offs."""
    metrics = CONVENTIONS[convention].metrics.items()
    both = [(filled(one.theirs, k), filled(text, k)) for text, one in metrics for k in (1, 5, 20)]
    return list(dict.fromkeys(both))


@pytest.mark.parametrize(("theirs", "text"), cases("trec_eval"))
def test_trec_eval(theirs: str, text: str) -> None:
    run, truth = make()
    found = pytrec_eval.RelevanceEvaluator(truth, {theirs}).evaluate(run)
    assert ours("trec_eval", text, run, truth) == pytest.approx(np.mean([one[theirs] for one in found.values()]))


@pytest.mark.parametrize(("theirs", "text"), cases("ir-measures"))
def test_ir_measures(theirs: str, text: str) -> None:
    run, truth = make()
    measure = irm.parse_measure(theirs)
    assert ours("ir-measures", text, run, truth) == pytest.approx(irm.calc_aggregate([measure], truth, run)[measure])


def by_ranx(metrics: list[str], run: Run, truth: Truth) -> dict[str, float]:
    with warnings.catch_warnings():
        # numba tells of ranx's own mixing of signed and unsigned numbers
        warnings.simplefilter("ignore", category=NumbaTypeSafetyWarning)
        return dict(ranx.evaluate(ranx.Qrels(truth), ranx.Run(run), metrics, make_comparable=True))


def test_ranx() -> None:
    run, truth = make(ties=False)
    found = by_ranx([theirs for theirs, _ in cases("ranx")], run, truth)
    assert {theirs: ours("ranx", text, run, truth) for theirs, text in cases("ranx")} == pytest.approx(found)


def test_ranx_orders_ties_by_accident_of_its_sort() -> None:
    run, truth = make()
    ranks = tr.read_lists(run, truth, depth=DEPTH, convention="ranx")
    low, high = (tr.evaluate(ranks, "rr@5", ties=how, convention="ranx")["rr@5"].mean for how in BOUNDS)
    assert low < by_ranx(["mrr@5", "mrr"], run, truth)["mrr@5"] < high
    assert any(
        "ranx orders equal scores arbitrarily" in note for note in tr.evaluate(ranks, "rr", convention="ranx").notes
    )


def by_rectools(name: str, k: int, run: Run, truth: Truth) -> float:
    ordered = {user: sorted(items, key=lambda item: -items[item]) for user, items in run.items()}
    lists = [(user, item, rank) for user, items in ordered.items() for rank, item in enumerate(items, start=1)]
    pairs = [(user, item) for user, items in truth.items() for item, grade in items.items() if grade]
    recommended = pd.DataFrame(lists, columns=["user_id", "item_id", "rank"])
    settings: dict[str, Any] = {"beta": 1.0} if name == "F1Beta" else {}
    metric = getattr(rectools, name)(k=k, **settings)
    return float(metric.calc(recommended, pd.DataFrame(pairs, columns=["user_id", "item_id"])))


@pytest.mark.parametrize("k", [1, 5, 20])
@pytest.mark.parametrize("text", CONVENTIONS["rectools"].metrics)
def test_rectools(text: str, k: int) -> None:
    run, truth = make()
    theirs = by_rectools(CONVENTIONS["rectools"].metrics[text].theirs, k, run, truth)
    assert ours("rectools", filled(text, k), run, truth) == pytest.approx(theirs)


def whole(seed: int) -> tuple[Floats, Floats]:
    """Return grades and scores of all items, with ties, and a user without relevant items."""
    rng = np.random.default_rng(seed)
    grades = rng.choice([0.0, 0.0, 0.0, 1.0, 2.0, 3.0], size=(30, 25))
    grades[3] = 0.0
    return grades, rng.integers(0, 9, size=grades.shape) / 2.0


@pytest.mark.parametrize("k", [None, 1, 5, 20])
@pytest.mark.parametrize("name", ["ndcg", "dcg"])
def test_scikit_learn(name: str, k: int | None) -> None:
    grades, scores = whole(1)
    truth, run = (
        {str(user): dict(zip(map(str, range(25)), row.tolist(), strict=True)) for user, row in enumerate(table)}
        for table in (grades, scores)
    )
    text = name if k is None else f"{name}@{k}"
    ranks = tr.read_lists(run, truth, depth="all", convention="scikit-learn")
    theirs = getattr(sklearn, f"{name}_score")(grades, scores, k=k)
    assert tr.evaluate(ranks, text, convention="scikit-learn")[text].mean == pytest.approx(theirs)


def test_single_precision() -> None:
    """The TREC tools take scores that differ by less than single precision for equal."""
    run, truth = {"q": {"a": 1.0 + 1e-9, "b": 1.0}}, {"q": {"a": 1}}
    found = pytrec_eval.RelevanceEvaluator(truth, {"recip_rank"}).evaluate(run)["q"]["recip_rank"]
    assert ours("trec_eval", "rr", run, truth) == found
