"""The difference of two exact metrics, bounded by what was sampled, whatever the distribution of the ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.corrections.assumptions import Assumption
from truerank.evaluation.exact_ranges import BoundValues, ExactRange, bound_values
from truerank.evaluation.intervals import Interval
from truerank.evaluation.moments import Moments
from truerank.evaluation.paired_tests import Outcome, Pair, Sample, StudentOutcome, student_outcome
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
    lower, upper : StudentOutcome
        Of values whose expectation is at most, and at least, the exact difference.
    largest : float
        The largest possible difference, either way; infinite if that is not known.
    """

    lower: StudentOutcome
    upper: StudentOutcome
    largest: float

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no exact difference: that of the end that is farther from 0."""
        if math.isnan(self.lower.p_value):
            return math.nan
        beyond = [self.lower.p_value] * (self.lower.difference > 0) + [self.upper.p_value] * (self.upper.difference < 0)
        return min(beyond, default=1.0)

    def confidence_interval(self, level: float) -> Interval:
        low, high = self.lower.confidence_interval(level).low, self.upper.confidence_interval(level).high
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
        return _own_values(np.mean([sums(run, metric.terms(run)) for run in runs], axis=0), assume)
    if any(run.design is None or (run.drawn is None and not run.design.keeps_unbiased) for run in runs):
        return None
    found = [bound_values(run, metric.estimated, assume) for run in runs]
    lower, upper, least, most, worst, best = np.mean([each[:6] for each in found], axis=0)
    return BoundValues(lower, upper, least, most, worst, best, assume)


def _own_values(values: Floats, assume: Assumption) -> BoundValues:
    least, most = (np.full(values.size, end(values, initial=0.0)) for end in (np.fmin.reduce, np.fmax.reduce))
    return BoundValues(values, values, least, most, least, most, assume)


def bounded_outcome(one: BoundValues | None, other: BoundValues | None, clusters: Ints | None) -> Outcome:
    """Return what is known of the exact metric of one recommender minus that of the other, on the same instances."""
    if one is None or other is None:
        return UnknownOutcome()
    gap = _gap(one, other)
    return BoundedOutcome(
        _with_one_more(gap.lower, float(np.min(gap.least, initial=0.0)), clusters),
        _with_one_more(gap.upper, float(np.max(gap.most, initial=0.0)), clusters),
        _reach([float(np.mean(each)) if each.size else math.nan for each in (*one[4:6], *other[4:6])]),
    )


def _gap(one: BoundValues, other: BoundValues) -> BoundValues:
    """Return bounds of the exact difference; those of all items first or last are not used."""
    ends = one.least - other.most, one.most - other.least
    return BoundValues(one.lower - other.upper, one.upper - other.lower, *ends, *ends, one.assumption)


def _with_one_more(differences: Floats, extreme: float, clusters: Ints | None) -> StudentOutcome:
    """Return the outcome with one more instance, as extreme as any could be; see `ExactRange.interval`."""
    if differences.size < 2:
        return StudentOutcome(math.nan, math.nan, differences.size)
    values = np.column_stack([np.append(differences, extreme), np.zeros(differences.size + 1)])
    return student_outcome(Sample.of(values, clusters=None if clusters is None else np.append(clusters, -1)), (0, 1))


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
        return BoundedOutcome(
            _outcome(gap.lower, min(gap.least, 0.0)),
            _outcome(gap.upper, max(gap.most, 0.0)),
            _reach([one.worst, one.best, other.worst, other.best]),
        )


def _merged(some: _Ranges, others: _Ranges) -> _Ranges:
    pairs = zip(some, others, strict=True)
    return tuple(None if one is None or other is None else one + other for one, other in pairs)


def _outcome(moments: Moments, extreme: float) -> StudentOutcome:
    if moments.n < 2:
        return StudentOutcome(math.nan, math.nan, int(moments.n))
    whole = moments.with_one(extreme)
    return StudentOutcome(whole.mean, whole.standard_error, int(whole.n))
