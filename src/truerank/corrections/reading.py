"""From text to metric: ``"nDCG@10"``, ``"map"``, ``"P_10"`` and ``"recall@10~bv(0.1)"`` are all recognised."""

from __future__ import annotations

from collections.abc import Iterable

from truerank.errors import InputError
from truerank.metrics.base import Metric, TermFunction
from truerank.metrics.plain import FunctionMetric
from truerank.metrics.registry import METRICS

AnyMetric = str | Metric | TermFunction
"""A metric, its text form, or the function of its term."""


def metric(text: AnyMetric) -> Metric:
    """Return the metric that a text names; metrics pass through, functions are wrapped.

    Upper and lower case, ``_`` and ``-`` are the same, and other names that the field uses are recognised:
    ``map``, ``mrr``, ``hit_rate@10``, ``hits@10``, ``success@5``, ``p@10``, ``r@10``, and trec_eval's
    ``P_10``, ``map_cut_10``, ``ndcg_cut_10``, ``recip_rank``. A correction of sampled ranks follows a ``~``.

    Examples
    --------
    >>> import truerank as tr
    >>> tr.metric("nDCG@10")
    NDCG(k=10, form='achievable')
    >>> str(tr.metric("P_10")), str(tr.metric("map")), str(tr.metric("RBP(0.80)"))
    ('precision@10', 'ap', 'rbp(0.8)')
    >>> tr.metric("MARp@5,10")
    MARp(k=(5, 10))
    >>> tr.metric("recall@10~bv(0.1)")
    Corrected(metric=Recall(k=10, divisor='relevant'), correction=BiasVariance(gamma=0.1, prior=None))
    >>> tr.metric("ndgc@10")
    Traceback (most recent call last):
    ...
    truerank.errors.InputError: unknown metric 'ndgc@10'; did you mean 'ndcg@10'?
    """
    if isinstance(text, Metric):
        return text
    if callable(text):
        return FunctionMetric.of(text)
    if not isinstance(text, str):
        raise InputError(f"a metric is a text such as 'ndcg@10', a Metric or a function, got {text!r}.")
    base, corrected, how = text.partition("~")
    if not corrected:
        return METRICS.read(text)
    from truerank.corrections.corrected import Corrected
    from truerank.corrections.registry import read_correction

    return Corrected(METRICS.read(base), read_correction(how))


def as_metrics(texts: AnyMetric | Iterable[AnyMetric]) -> tuple[Metric, ...]:
    """Return the metrics that one text, or each of several, names."""
    if isinstance(texts, str | Metric) or callable(texts):
        texts = [texts]
    return tuple(metric(text) for text in texts)
