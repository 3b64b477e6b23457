"""The least and the largest value that a metric, or a part of it, can have."""

from __future__ import annotations

import numpy as np

from truerank.arrays import Floats, Ints, distinct_columns
from truerank.evaluation.intervals import Interval
from truerank.evaluation.per_instance import item_terms, sums
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks


def attainable(ranks: Ranks, metric: Metric) -> Interval | None:
    """Return the least and the largest value that any of the instances could have, in any order of the candidates.

    None if they are not known, for metrics that may not be monotone in the rank. Of a corrected metric they are those
    of the exact one; single values of it may lie beyond them.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([[3, 7], [2]], n=[20, 10])
    >>> attainable(ranks, tr.metric("precision@10")), attainable(ranks, tr.metric("mean-rank"))
    (Interval(low=0.0, high=0.2), Interval(low=1.0, high=19.5))
    """
    exact = metric.estimated
    sizes, n = (
        (ranks.n_relevant, _candidates(ranks, metric)) if ranks.grades is not None else _extreme_kinds(ranks, metric)
    )
    ends = [values_at_one_end(sizes, n, exact, _ordered(ranks, best=first), first=first) for first in (False, True)]
    defined = np.concatenate(ends)
    defined = defined[~np.isnan(defined)]
    return Interval(float(defined.min()), float(defined.max())) if defined.size else None


def attainable_with(ends: Interval | None, seen: Floats) -> Interval | None:
    """Return what is attainable, None if not known, with values that were seen, such as 0 without relevant items."""
    if not seen.size:
        return ends
    hull = Interval(float(seen.min()), float(seen.max()))
    return hull if ends is None else Interval(min(ends.low, hull.low), max(ends.high, hull.high))


def attainable_of_items(ranks: Ranks, metric: Metric, counts: Ints, weights: Floats) -> Interval | None:
    """Return the least and the largest value per weight that some of the relevant items of instances could add.

    Parameters
    ----------
    ranks : Ranks
    metric : Metric
    counts : array of int
        How many of the relevant items of each instance.
    weights : array of float
        What they weigh in the mean.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([[3, 7], [2, 4]], n=20)
    >>> attainable_of_items(ranks, tr.metric("rr"), np.array([1, 1]), np.array([0.5, 0.5]))
    Interval(low=0.0, high=2.0)
    """
    if not counts.size:
        return None
    kinds = np.arange(len(ranks))
    if ranks.grades is None:
        kinds, _ = distinct_columns(ranks.n_relevant, ranks.n_candidates, counts, weights)
    some, counts, weights = ranks[kinds], counts[kinds], weights[kinds]
    low, high = (_extreme_shares(some, metric, counts, best=best) for best in (False, True))
    ends = np.concatenate([low / weights, high / weights])
    return None if np.isnan(ends).any() else Interval(float(ends.min()), float(ends.max()))


def _extreme_shares(ranks: Ranks, metric: Metric, counts: Ints, *, best: bool) -> Floats:
    """Return the largest or the least that so many relevant items could add; NaN if it may not be monotone."""
    there = _at_one_end(ranks.n_relevant, _candidates(ranks, metric), _ordered(ranks, best=best), first=best)
    terms = metric.estimated.terms(there)
    if any(part.term.shape == "any" for part in terms):
        return np.full(len(ranks), np.nan)
    added = item_terms(there, terms)
    order = np.lexsort((-added if best else added, there.instance))
    within = np.arange(added.size) - there.indptr[there.instance]
    kept = within < counts[there.instance]
    return np.bincount(there.instance[kept], added[order][kept], minlength=len(ranks)).astype(np.float64)


def _candidates(ranks: Ranks, metric: Metric) -> Ints:
    """Return the number of candidates that the metric, or the one that it estimates, is about."""
    n = ranks.n_candidates if metric.estimated is metric or ranks.n_catalogue is None else ranks.n_catalogue
    # what is below the depth of cut lists is not counted among the candidates
    return n if ranks.depth is None else n + ranks.depth


def _extreme_kinds(ranks: Ranks, metric: Metric) -> tuple[Ints, Ints]:
    """Return each number of relevant items twice, with the fewest and the most candidates of such instances."""
    sizes, n = ranks.n_relevant, _candidates(ranks, metric)
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
    there = _at_one_end(n_relevant, n, grades, first=first)
    terms = metric.terms(there)
    if any(part.term.shape == "any" for part in terms):
        return np.full(n.size, np.nan)
    return sums(there, terms)


def _at_one_end(n_relevant: Ints, n: Ints, grades: Floats | None, *, first: bool) -> Ranks:
    above = np.repeat(np.zeros_like(n) if first else n - n_relevant, n_relevant)
    return Ranks(above=above, n_candidates=n, indptr=np.append(0, np.cumsum(n_relevant)), grades=grades)
