from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import truerank as tr
from tests.arrays import Floats, Ints
from truerank.metrics import (
    AP,
    AUC,
    F1,
    HR,
    NDCG,
    RBP,
    RR,
    Accuracy,
    GradedNDCG,
    MARp,
    MeanRank,
    Precision,
    Recall,
    RPrecision,
)


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("AUC", AUC()),
        ("p@10", Precision(10)),
        ("P_5", Precision(5)),
        ("prec@5", Precision(5)),
        ("R@10", Recall(10)),
        ("recall_1000", Recall(1000)),
        ("MAP", AP()),
        ("map@10", AP(10)),
        ("nDCG@10", NDCG(10)),
        ("ndcg_cut_20", GradedNDCG(k=20)),
        ("map_cut_20", AP(20, "relevant")),
        ("mrr", RR()),
        ("MRR@10", RR(10)),
        ("recip_rank", RR()),
        ("hit_rate@10", HR(10)),
        ("HitRatio@3", HR(3)),
        ("hits@10", HR(10)),
        ("success@5", HR(5)),
        ("success_5", HR(5)),
        ("acc", Accuracy()),
        ("F1@10", F1(10)),
        ("f1_score@10", F1(10)),
        ("Rprec", RPrecision()),
        ("R-Precision", RPrecision()),
        ("rbp( 0.95 )", RBP(0.95)),
        ("mean_rank", MeanRank()),
        ("rbp(p=0.8)", RBP(0.8)),
        ("RBP(P = 0.8)", RBP(0.8)),
        ("ndcg(k=10)", NDCG(10)),
        ("recall(divisor=achievable)@5", Recall(5, "achievable")),
        ("recall(achievable, k=5)", Recall(5, "achievable")),
        ("marp(k=5)", MARp((5,))),
    ],
)
def test_other_names(text: str, metric: tr.Metric) -> None:
    assert tr.metric(text) == metric


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndgc@10", r"unknown metric 'ndgc@10'; did you mean 'ndcg@10'\?"),
        ("recal@5", r"did you mean 'recall@5'\?"),
        ("rpb(0.8)", r"did you mean 'rbp\(0.8\)'\?"),
        ("zzzz", "choose from accuracy, amri, ap"),
        ("precision", "precision needs a cut-off, as in 'precision@10'"),
        ("auc@10", "auc is written 'auc', got 'auc@10'"),
        ("rbp", r"rbp is written 'rbp\(p\)'"),
        ("rbp(x)", r"rbp is written 'rbp\(p\)'"),
        ("rbp(1.5)", "the p of rbp.* must lie between 0 and 1, got 1.5"),
        ("err(0)", r"the p of err\(p\) must be above 0 and at most 1, got 0"),
        ("f-beta(0)@5", "must be a number above 0, got 0"),
        ("ndcg@0", "must be a whole number from 1, got 0"),
        ("ndcg@1.5", r"ndcg is written 'ndcg@k' or 'ndcg\(form\)@k'"),
        ("ndcg@", "can't read the metric 'ndcg@'"),
        ("", "can't read the metric ''"),
        ("rbp(q=0.8)", r"rbp is written 'rbp\(p\)', got 'rbp\(q=0.8\)'"),
        ("rbp(0.8, p=0.8)", r"rbp is written 'rbp\(p\)'"),
        ("ndcg(k=10)@10", r"ndcg is written 'ndcg@k'"),
        ("ndcg(k=ten)", r"ndcg is written 'ndcg@k'"),
        ("rbp(p=)", r"rbp is written 'rbp\(p\)'"),
        ("gauc", "unknown metric 'gauc'"),
        ("ap(all)@5", "the divisor of ap must be 'achievable' or 'relevant', got 'all'"),
        ("ndcg(fixed)", r"ndcg\(fixed\) needs a cut-off, as in 'ndcg\(fixed\)@10'"),
        ("marp@5 10", "can't read the metric|marp is written"),
        ("ndcg@9999999999999999999", "must be a whole number from 1"),
        ("marp@9999999999999999999", "marp"),
        ("a" * 32_000, "can't read the metric 'aaaaaaaaaaaaaaaaaaaa...'"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.metric(text)


def test_a_function_is_a_metric() -> None:
    @tr.register
    def top_half(rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return (rank <= n / 2) / n_relevant

    ranks = tr.Ranks(above=[0, 5], tied=[0, 2], n_candidates=10)
    assert str(top_half) == "top-half"
    assert tr.metric("TOP_HALF") == top_half
    np.testing.assert_array_equal(tr.values(ranks, "top-half"), [1.0, 0.0])
    assert tr.evaluate(ranks, ["top-half", "ap"])["top-half"].mean == 0.5


def test_a_function_needs_no_registration() -> None:
    def reciprocal(rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return i / rank / n_relevant

    ranks = tr.Ranks(above=[0, 1, 1], tied=[0, 3, 3], n_candidates=[8], indptr=[0, 3])
    np.testing.assert_allclose(tr.values(ranks, reciprocal), tr.values(ranks, "ap"), rtol=1e-14)


def test_a_class_is_a_metric() -> None:
    @tr.register
    @dataclass(frozen=True)
    class Window(tr.metrics.PlainMetric):
        name = "window"
        low: float
        k: int

        def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
            return ((rank >= self.low) & (rank <= self.k)).astype(np.float64)

    assert str(Window(2.0, 4)) == "window(2)@4"
    assert tr.metric("window(2)@4") == Window(2.0, 4)
    np.testing.assert_array_equal(tr.values(tr.Ranks.from_ranks([1, 2, 5], n=9), "window(2)@4"), [0, 1, 0])


def test_a_function_for_single_numbers_gets_a_hint() -> None:
    def scalar(rank: int, i: int, n_relevant: int, n: int) -> float:
        return 1.0 if rank <= 3 else 0.0

    with pytest.raises(tr.InputError, match=r"wrap it in numpy\.vectorize"):
        tr.values(tr.Ranks.from_ranks([1, 2], n=9), scalar)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["ndcg", "map"])
def test_built_in_names_are_taken(name: str) -> None:
    def metric(rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return rank / n

    metric.__name__ = name
    with pytest.raises(tr.InputError, match="is taken"):
        tr.register(metric)


@pytest.mark.parametrize("what", [5, None, "ndcg", int, tr.Ranks])
def test_what_can_be_registered(what: Any) -> None:
    with pytest.raises(tr.InputError, match="only metrics, corrections, sampling designs and functions"):
        tr.register(what)
