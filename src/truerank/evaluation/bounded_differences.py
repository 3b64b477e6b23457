"""The difference of two exact metrics, bounded by what was sampled, whatever the distribution of the ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Ints
from truerank.corrections.assumptions import Assumption
from truerank.evaluation.attainable_values import attainable, attainable_with
from truerank.evaluation.exact_ranges import BoundValues, ExactRange, bound_values
from truerank.evaluation.intervals import Interval, Units
from truerank.evaluation.paired_tests import Outcome, Pair
from truerank.evaluation.per_instance import sums
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks


def is_bounded(ranks: Ranks, metric: Metric) -> bool:
    """Whether values are of sampled ranks and don't have the exact metric as their expectation: bounds tell of it."""
    return ranks.design is not None and not metric.unbiased(ranks)


@dataclass(frozen=True)
class BoundedOutcome(Outcome):
    """What is known of the difference of exact metrics: one end is bounded from below, the other from above.

    Attributes
    ----------
    lower, upper : Units
        Values whose expectation is at most, and at least, the exact difference.
    least, most : float
        The least value of `lower`, and the largest of `upper`, that any instance could have.
    largest : float
        The largest possible difference, either way; infinite if that is not known.
    """

    lower: Units
    upper: Units
    least: float
    most: float
    largest: float

    @classmethod
    def of(cls, gap: ExactRange, largest: float) -> BoundedOutcome:
        """Return the outcome from the range of the exact difference."""
        return cls(gap.lower, gap.upper, min(gap.least, 0.0), max(gap.most, 0.0), largest)

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no exact difference: that of the end that is farther from 0."""
        return 2 * min(self.lower.p_above(0.0, self.least), self.upper.p_below(0.0, self.most))

    def confidence_interval(self, level: float) -> Interval:
        low, high = self.lower.low(level, self.least), self.upper.high(level, self.most)
        return Interval(max(low, -self.largest), min(high, self.largest))


@dataclass(frozen=True)
class UnknownOutcome(Outcome):
    """Nothing is known of the difference of exact metrics."""

    @property
    def p_value(self) -> float:
        return math.nan

    def confidence_interval(self, level: float) -> Interval:
        return Interval(math.nan, math.nan)


def bounds_of_runs(runs: tuple[Ranks, ...], metric: Metric, assume: Assumption) -> BoundValues | None:
    """Return bounds of the exact metric for each instance, from all runs; None if the design allows for none.

    Parameters
    ----------
    runs : tuple of Ranks
        Of one recommender.
    metric : Metric
        As it is evaluated on them. If it needs no bounds, its values are both bounds.
    assume : {"nothing", "falling", "smooth"}
    """
    if not is_bounded(runs[0], metric):
        return _own_values(runs, metric, assume)
    if any(run.design is None or (run.drawn is None and not run.design.keeps_unbiased) for run in runs):
        return None
    found = [bound_values(run, metric.estimated, assume) for run in runs]
    lower, upper, least, most, worst, best = np.mean([each[:6] for each in found], axis=0)
    return BoundValues(lower, upper, least, most, worst, best, assume)


def _own_values(runs: tuple[Ranks, ...], metric: Metric, assume: Assumption) -> BoundValues:
    values = np.mean([sums(run, metric.terms(run)) for run in runs], axis=0)
    ends = attainable_with(attainable(runs[0], metric), values[~np.isnan(values)]) or Interval(0.0, 0.0)
    least, most = (np.full(values.size, end) for end in ends)
    return BoundValues(values, values, least, most, least, most, assume)


def bounded_outcome(one: BoundValues | None, other: BoundValues | None, clusters: Ints | None) -> Outcome:
    """Return what is known of the exact metric of one recommender minus that of the other, on the same instances."""
    if one is None or other is None:
        return UnknownOutcome()
    ends = [float(np.mean(each)) if each.size else math.nan for each in (*one[4:6], *other[4:6])]
    return BoundedOutcome.of(ExactRange.of(_gap(one, other), clusters), _reach(ends))


def _gap(one: BoundValues, other: BoundValues) -> BoundValues:
    """Return bounds of the exact difference; those of all items first or last are not used."""
    ends = one.least - other.most, one.most - other.least
    return BoundValues(one.lower - other.upper, one.upper - other.lower, *ends, *ends, one.assumption)


def _reach(ends: Sequence[float]) -> float:
    """The largest difference if all relevant items of one recommender stood first, and all of the other last."""
    return math.inf if any(map(math.isnan, ends)) else max(ends) - min(ends)


_Ranges = tuple[ExactRange | None, ...]


@dataclass(frozen=True)
class PairedBounds:
    """What `bounded_outcome` rests on, for pairs of recommenders, in a form that merges.

    Attributes
    ----------
    alone : tuple of ExactRange or None
        Of each recommender; None where the design allows for none.
    gaps : tuple of ExactRange or None
        Of the difference of each pair.

    Examples
    --------
    >>> import truerank as tr
    >>> sampled = tr.Ranks.from_sampled([1, 5, 2, 9, 30], m=100, n=1_000)
    >>> bounds = bound_values(sampled, tr.metric("ap"))
    >>> parts = [PairedBounds.of((bounds.take(at), bounds.take(at[::-1])), [(0, 1)]) for at in ([0, 1], [2, 3, 4])]
    >>> merged = (parts[0] + parts[1]).outcome(0, (0, 1)).confidence_interval(0.95)
    >>> whole = bounded_outcome(bounds, bounds.take([1, 0, 4, 3, 2]), None).confidence_interval(0.95)
    >>> np.allclose(merged, whole)
    True
    """

    alone: _Ranges
    gaps: _Ranges

    @classmethod
    def of(cls, bounds: Sequence[BoundValues | None], pairs: Sequence[Pair]) -> PairedBounds:
        """Return the bounds of some instances; `bounds` are those of each recommender."""
        both = [(bounds[one], bounds[other]) for one, other in pairs]
        gaps = [None if one is None or other is None else ExactRange.of(_gap(one, other)) for one, other in both]
        return cls(tuple(None if each is None else ExactRange.of(each) for each in bounds), tuple(gaps))

    def __add__(self, other: PairedBounds) -> PairedBounds:
        return PairedBounds(_merged(self.alone, other.alone), _merged(self.gaps, other.gaps))

    def outcome(self, place: int, pair: Pair) -> Outcome:
        """Return what is known of the exact difference of a pair, which is at this place."""
        gap, one, other = self.gaps[place], self.alone[pair[0]], self.alone[pair[1]]
        if gap is None or one is None or other is None:
            return UnknownOutcome()
        return BoundedOutcome.of(gap, _reach([one.worst, one.best, other.worst, other.best]))


def _merged(some: _Ranges, others: _Ranges) -> _Ranges:
    pairs = zip(some, others, strict=True)
    return tuple(None if one is None or other is None else one + other for one, other in pairs)
