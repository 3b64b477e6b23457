"""The least and the largest value that a metric can have."""

from __future__ import annotations

import numpy as np

from truerank.arrays import Floats, Ints, distinct_columns
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
    kinds = ranks if ranks.grades is not None else _one_of_each_kind(ranks)
    # what is below the depth of cut lists is not counted among the candidates
    n = kinds.n_candidates + (0 if ranks.depth is None else ranks.depth)
    ends = [values_at_one_end(kinds, metric, n, _ordered(kinds, best=first), first=first) for first in (False, True)]
    defined = np.concatenate(ends)
    defined = defined[~np.isnan(defined)]
    return Interval(float(defined.min()), float(defined.max())) if defined.size else None


def _one_of_each_kind(ranks: Ranks) -> Ranks:
    """Return one instance for each pair of numbers of relevant items and candidates."""
    return ranks[distinct_columns(ranks.n_relevant, ranks.n_candidates)[0]]


def _ordered(ranks: Ranks, *, best: bool) -> Floats | None:
    """Return the grades of each instance in falling order, which is the best one, or in rising order."""
    if ranks.grades is None:
        return None
    falling = ranks.grades[ranks.by_grade]
    return falling if best else falling[ranks.indptr[ranks.instance] + ranks.item_n_relevant - ranks.i]


def values_at_one_end(ranks: Ranks, metric: Metric, n: Ints, grades: Floats | None, *, first: bool) -> Floats:
    """Return the metric of each instance if its relevant items, in this order, stood first among n candidates, or last.

    NaN if it may not be monotone.
    """
    above = np.repeat(np.zeros_like(n) if first else n - ranks.n_relevant, ranks.n_relevant)
    there = Ranks(above=above, n_candidates=n, indptr=ranks.indptr, grades=grades)
    terms = metric.terms(there)
    if any(part.term.shape == "any" for part in terms):
        return np.full(len(ranks), np.nan)
    return sums(there, terms)
