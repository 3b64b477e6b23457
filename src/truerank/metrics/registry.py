"""Metrics by name: the built-in ones, those that users register, and the other names that the field uses."""

from __future__ import annotations

from typing import TypeVar, cast, overload

from truerank.metrics.base import PlainMetric, TermFunction
from truerank.metrics.graded import GRADED, GradedMetric
from truerank.metrics.plain import BUILT_IN, FunctionMetric
from truerank.text_forms import Registry

M = TypeVar("M", bound=type[PlainMetric] | type[GradedMetric])

METRICS: Registry[PlainMetric | GradedMetric] = Registry(
    "metric",
    "'ap', 'ndcg@10' or 'rbp(0.8)'",
    aliases={
        "roc-auc": "auc", "auroc": "auc",
        "p": "precision", "prec": "precision",
        "r": "recall",
        "map": "ap", "map-cut": "ap(relevant)", "average-precision": "ap", "mean-average-precision": "ap",
        "mean-ndcg": "ndcg", "ndcg-cut": "gndcg",
        "mrr": "rr", "recip-rank": "rr", "reciprocal-rank": "rr", "mean-reciprocal-rank": "rr",
        "hit": "hr", "hits": "hr", "hit-rate": "hr", "hit-ratio": "hr", "hitrate": "hr", "hitratio": "hr",
        "success": "hr",
        "acc": "accuracy",
        "f": "f1", "f-score": "f1", "f1-score": "f1",
        "rprec": "r-precision", "r-prec": "r-precision", "rprecision": "r-precision",
        "mr": "mean-rank", "meanrank": "mean-rank", "average-rank": "mean-rank",
        "avgrp": "marp", "mean-average-r-precision": "marp",
        "graded-ndcg": "gndcg", "wrecall": "weighted-recall",
    },
    elsewhere=dict.fromkeys(
        ("coverage", "gini", "entropy", "popularity", "tail-share", "novelty", "intra-list-distance", "overlap"),
        "a metric of recommended lists, not of ranks: evaluate what `truerank.recommend` returns",
    ),
)  # fmt: skip
METRICS.add_built_in(*BUILT_IN, *GRADED)


@overload
def register_metric(new: M) -> M: ...
@overload
def register_metric(new: TermFunction) -> FunctionMetric: ...
def register_metric(new: M | TermFunction) -> M | FunctionMetric:
    """Register a metric by its name; a decorator for a `PlainMetric` or `GradedMetric` class or for a function.

    The function is f(rank, i, n_relevant, n): what the i-th relevant item from the top adds at that
    rank. It gets and returns NumPy arrays, and its name becomes the metric's.

    Examples
    --------
    >>> import truerank as tr
    >>> @tr.register_metric
    ... def inverse_square(rank, i, n_relevant, n):
    ...     return 1 / rank**2 / n_relevant
    >>> tr.values(tr.Ranks.from_ranks([1, 2], n=9), "inverse-square").tolist()
    [1.0, 0.25]
    """
    entry = cast("M | FunctionMetric", new if isinstance(new, type) else FunctionMetric.of(new))
    METRICS.add(entry)
    return entry
