"""The least and the largest value that a metric can have."""

from __future__ import annotations

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.evaluation.intervals import Interval
from truerank.evaluation.per_instance import sums
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks


def attainable(ranks: Ranks, metric: Metric) -> Interval | None:
    """Return the least and the largest value that any of the instances could have, in any order of the candidates.

    None if they are not known: for corrected metrics, and those that may not be monotone in the rank.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([[3, 7], [2]], n=[20, 10])
    >>> attainable(ranks, tr.metric("precision@10")), attainable(ranks, tr.metric("mean-rank"))
    (Interval(low=0.0, high=0.2), Interval(low=1.0, high=19.5))
    """
    if metric.estimated is not metric:
        return None
    sizes, n = (ranks.n_relevant, ranks.n_candidates) if ranks.grades is not None else _extreme_kinds(ranks)
    # what is below the depth of cut lists is not counted among the candidates
    n = n + (0 if ranks.depth is None else ranks.depth)
    ends = [values_at_one_end(sizes, n, metric, _ordered(ranks, best=first), first=first) for first in (False, True)]
    defined = np.concatenate(ends)
    defined = defined[~np.isnan(defined)]
    return Interval(float(defined.min()), float(defined.max())) if defined.size else None


def _extreme_kinds(ranks: Ranks) -> tuple[Ints, Ints]:
    """Return each number of relevant items twice, with the fewest and the most candidates of such instances."""
    sizes, n = ranks.n_relevant, ranks.n_candidates
    fewest, most = np.full(sizes.max(initial=-1) + 1, n.max(initial=0)), np.full(sizes.max(initial=-1) + 1, -1)
    np.minimum.at(fewest, sizes, n)
    np.maximum.at(most, sizes, n)
    there = np.flatnonzero(most >= 0)
    return np.tile(there, 2), np.concatenate([fewest[there], most[there]])


def _ordered(ranks: Ranks, *, best: bool) -> Floats | None:
    """Return the grades of each instance in falling order, which is the best one, or in rising order."""
    if ranks.grades is None:
        return None
    falling = ranks.grades[ranks.by_grade]
    return falling if best else falling[ranks.indptr[ranks.instance] + ranks.item_n_relevant - ranks.i]


def values_at_one_end(n_relevant: Ints, n: Ints, metric: Metric, grades: Floats | None, *, first: bool) -> Floats:
    """Return the metric of instances whose relevant items, in this order, stand first among n candidates, or last.

    NaN if it may not be monotone.
    """
    above = np.repeat(np.zeros_like(n) if first else n - n_relevant, n_relevant)
    there = Ranks(above=above, n_candidates=n, indptr=np.append(0, np.cumsum(n_relevant)), grades=grades)
    terms = metric.terms(there)
    if any(part.term.shape == "any" for part in terms):
        return np.full(n.size, np.nan)
    return sums(there, terms)
