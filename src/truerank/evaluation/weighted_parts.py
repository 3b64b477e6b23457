"""Estimates for groups of items that merge, so that instances may be in different processes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from truerank.arrays import Floats
from truerank.evaluation.estimates import Estimate, weighted_summary
from truerank.evaluation.group_parts import Part
from truerank.evaluation.per_instance import Ties
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks


@dataclass(frozen=True, eq=False)
class WeightedPart:
    """What some instances tell of a group of items: the mean of a metric is the sum of values over that of weights.

    Attributes
    ----------
    plain : Estimate
        Of the same instances, as if all weighed 1; it merges, and knows how many there are and how many tie.
    sums : array of float
        Sums of the weights w and of the values v, and of their products ww, vw and vv.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks, weights = tr.Ranks.from_ranks([1, 2, 4, 8], n=9), np.array([1.0, 0.5, 0.5, 1.0])
    >>> values, metric = tr.values(ranks, "rr") * weights, tr.metric("rr")
    >>> whole = weighted_summary(values, weights, ranks, metric, "expected")
    >>> parts = [WeightedPart.of(values[at], weights[at], ranks[at], metric, "expected") for at in ([0], [1, 2, 3])]
    >>> merged = (parts[0] + parts[1]).estimate()
    >>> np.allclose(merged.confidence_interval(), whole.confidence_interval()), merged.weight
    (True, 3.0)
    """

    plain: Estimate
    sums: Floats

    @classmethod
    def of(
        cls, values: Floats, weights: Floats, ranks: Ranks, metric: Metric, ties: Ties, part: Part | None = None
    ) -> WeightedPart:
        """Return the part of these instances; `values` are what the items of the group add to the metric."""
        defined = ~np.isnan(values)
        v, w = values[defined], weights[defined]
        plain = replace(weighted_summary(values, weights, ranks, metric, ties, part), weight=None)
        products = (w, v, w * w, v * w, v * v)
        return cls(plain, np.array([product.sum() for product in products]))

    def __add__(self, other: WeightedPart) -> WeightedPart:
        return WeightedPart(self.plain + other.plain, self.sums + other.sums)

    def estimate(self) -> Estimate:
        """Return the estimate over all instances."""
        w, v, ww, vw, vv = self.sums.tolist()
        n, mean = self.plain.n, v / w if w else math.nan
        # of the deviations v - mean w, whose sum is 0
        squares = max(vv - 2 * mean * vw + mean**2 * ww, 0.0)
        error = math.sqrt(n / (n - 1) * squares) / w if n > 1 else math.nan
        return replace(self.plain, mean=mean, standard_error=error, weight=w)
