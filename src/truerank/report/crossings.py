"""Expected sampled metrics at some sample sizes, and the exact sizes at which recommenders change places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from truerank.analysis.orders import Consistency, Flip, consistency
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks

_SIZES = 50


def crossings(ranks: Mapping[str, Ranks], metric: Metric) -> Consistency:
    """Return what `truerank.consistency` does, at few sizes; each change of places is located by bisection.

    Examples
    --------
    >>> import truerank as tr
    >>> toy = {
    ...     "A": tr.Ranks.from_ranks([100] * 5, n=10_000), "C": tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000)
    ... }
    >>> crossings(toy, tr.metric("ap")).flips
    (Flip(m=434, better='C', worse='A'),)
    """
    least = min(int(one.draws[one.n_relevant > 0].min()) for one in ranks.values())
    coarse = consistency(ranks, metric, sizes=np.geomspace(1, least, _SIZES).astype(np.int64).clip(1, least))
    return replace(coarse, flips=_located(coarse, ranks, metric))


def _located(coarse: Consistency, ranks: Mapping[str, Ranks], metric: Metric) -> tuple[Flip, ...]:
    """Return the flips, each at the smallest size at which the better one is ahead, above the size before."""
    high = np.array([flip.m for flip in coarse.flips], dtype=np.int64)
    low = coarse.sizes[np.searchsorted(coarse.sizes, high) - 1]
    while np.any(high - low > 1):
        middle = (low + high) // 2
        sizes, which = np.unique(middle, return_inverse=True)
        curves = consistency(ranks, metric, sizes=sizes).curves
        gains = [curves[flip.better][at] - curves[flip.worse][at] for flip, at in zip(coarse.flips, which, strict=True)]
        flipped = np.array(gains) * (-1 if metric.lower_is_better else 1) > 0
        low, high = np.where(flipped, low, middle), np.where(flipped, middle, high)
    found = (replace(flip, m=m) for flip, m in zip(coarse.flips, high.tolist(), strict=True))
    return tuple(sorted(found, key=lambda flip: flip.m))
