"""Which estimator a metric takes when none is named."""

from __future__ import annotations

from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks


def recommended(metric: Metric, ranks: Ranks) -> Metric:
    """Return the metric, with the recommended estimator where the sampled counts alone mean nothing.

    That is so under inverse sampling, where nearly every item has the same number above it. The estimator is the
    unbiased one if there is one, else the smooth one. Metrics of other ranks, and those that have an estimator, are
    returned as they came.

    Examples
    --------
    >>> import truerank as tr
    >>> sampled = tr.InverseSampling(2).draw(tr.Ranks.from_ranks([3, 40, 500], n=1_000), rng=1)
    >>> [str(recommended(tr.metric(name), sampled)) for name in ("ap", "ndcg@10", "ndcg@10~monotone")]
    ['ap~unbiased', 'ndcg@10~smooth', 'ndcg@10~monotone']
    """
    if ranks.design is None or not ranks.design.needs_estimator or metric.estimated is not metric:
        return metric
    from truerank.corrections.closed_form import Unbiased, has_unbiased_form
    from truerank.corrections.corrected import Corrected
    from truerank.corrections.pooled import Smooth

    return Corrected(metric, Unbiased() if has_unbiased_form(metric.terms(ranks), ranks) else Smooth())
