"""Corrected metrics: ``recall@10~bv(0.1)`` estimates the metric of the exact rank from a sampled rank.

Because a metric is a sum over its relevant items, correcting each term corrects the metric, whatever their dependence
(for one relevant item this is section 5 of Krichene & Rendle).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.corrections.base import Estimator
from truerank.metrics.base import Metric, Terms
from truerank.ranking.ranks import Ranks


@dataclass(frozen=True)
class Corrected(Metric):
    """A metric, estimated from sampled ranks by a correction; written ``metric~correction``.

    Its values are estimates: single ones may be negative or above 1; their mean is what matters.
    """

    metric: Metric
    correction: Estimator

    @property
    def lower_is_better(self) -> bool:
        return self.metric.lower_is_better

    @property
    def estimated(self) -> Metric:
        return self.metric

    def biased(self, ranks: Ranks) -> bool:
        return False

    def unbiased(self, ranks: Ranks) -> bool:
        return self.correction.unbiased(ranks)

    @property
    def pools_instances(self) -> bool:
        return self.correction.pools_instances

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        return self.correction.terms(self.metric.terms(ranks), ranks, str(self))

    def hidden_error(self, ranks: Ranks) -> float:
        return self.correction.hidden_error(self.metric.terms(ranks), ranks)

    def notes(self, ranks: Ranks) -> tuple[str, ...]:
        if not np.any(ranks.n_relevant):
            return ()
        return self.correction.caveats(self.metric.terms(ranks), ranks, str(self))

    def __str__(self) -> str:
        return f"{self.metric}~{self.correction}"
