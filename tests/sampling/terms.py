"""The metrics that the tests of this folder look at, as functions of a count."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

import truerank as tr
from tests.arrays import AnyArray, Floats, Ints
from truerank.estimators import solvers
from truerank.metrics.definitions import PlainMetric
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC, Law

LAWS = [False, True]


def law_of(replace: bool) -> Law:
    return BINOMIAL if replace else HYPERGEOMETRIC


def plain(text: str) -> PlainMetric:
    """Return a metric that has one term."""
    metric = tr.metric(text)
    assert isinstance(metric, PlainMetric)
    return metric


METRICS = [plain(text) for text in ("auc", "ap", "ndcg", "rbp(0.9)", "recall@10", "ap@5", "ndcg@10", "recall@1")]


def term_of(metric: PlainMetric, i: int, n_relevant: int, n: int) -> Callable[[AnyArray], Floats]:
    """What the i-th relevant item adds, by the number g of irrelevant candidates above it."""
    numbers = (np.array([i]), np.array([n_relevant]), np.array([n]))

    def term(g: AnyArray) -> Floats:
        return metric.term(cast("Ints", np.asarray(g) + i), *numbers)

    return term


def problem_of(
    metric: PlainMetric, n: int, m: int, replace: bool, i: int = 1, n_relevant: int = 1, **options: Any
) -> solvers.Problem:
    cutoff = metric.cutoff(np.array([n_relevant]))
    breaks = () if cutoff is None else (int(cutoff[0]) - i + 1,)
    term = term_of(metric, i, n_relevant, n)
    return solvers.problem(term, n - n_relevant, m, law=law_of(replace), breaks=breaks, **options)


def sampled_table(metric: PlainMetric, m: int, i: int = 1, n_relevant: int = 1) -> Floats:
    """What the uncorrected sampled metric reads at h = 0..m."""
    return term_of(metric, i, n_relevant, m + n_relevant)(np.arange(m + 1))
