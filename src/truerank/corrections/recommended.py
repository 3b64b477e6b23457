"""Which estimator a metric takes when none is named."""

from __future__ import annotations

import numpy as np

from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks

# a cap below this part of the candidates leaves the top to be extrapolated; seen on MovieLens 1M and Gowalla
_SHALLOW = 16


def recommended(metric: Metric, ranks: Ranks) -> Metric:
    """Return the metric, with the recommended estimator where the sampled counts alone mean nothing.

    That is so under inverse sampling, where nearly every item has the same number above it. The estimator is the
    unbiased one if there is one, else the smooth one. But where a cap ended draws below a sixteenth of the candidates,
    the top is extrapolated, and a monotone law does that better. Metrics of other ranks, and those that have an
    estimator, are returned as they came.

    Examples
    --------
    >>> import truerank as tr
    >>> sampled = tr.InverseSampling(2).draw(tr.Ranks.from_ranks([3, 40, 500], n=1_000), rng=1)
    >>> [str(recommended(tr.metric(name), sampled)) for name in ("ap", "ndcg@10", "ndcg@10~monotone")]
    ['ap~unbiased', 'ndcg@10~smooth', 'ndcg@10~monotone']
    >>> sampled = tr.InverseSampling(2, most=50).draw(tr.Ranks.from_ranks([3, 40, 500], n=1_000), rng=1)
    >>> str(recommended(tr.metric("ap"), sampled))
    'ap~monotone'
    """
    if ranks.design is None or not ranks.design.needs_estimator or metric.estimated is not metric:
        return metric
    from truerank.corrections.closed_form import Unbiased, capped, has_unbiased_form
    from truerank.corrections.corrected import Corrected
    from truerank.corrections.pooled import Monotone, Smooth

    if has_unbiased_form(metric.terms(ranks), ranks):
        return Corrected(metric, Unbiased())
    ended = capped(ranks)
    deepest = int(ranks.item_draws[ended].max(initial=0))
    shallow = ended.any() and _SHALLOW * deepest < np.median(ranks.item_irrelevant)
    return Corrected(metric, Monotone() if shallow else Smooth())
