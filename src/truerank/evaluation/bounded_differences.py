"""The difference of two exact metrics, bounded by what was sampled, whatever the distribution of the ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.corrections.assumptions import Assumption
from truerank.evaluation.exact_ranges import BoundValues, bound_values
from truerank.evaluation.intervals import Interval
from truerank.evaluation.paired_tests import Outcome, Sample, StudentOutcome, student_outcome
from truerank.evaluation.per_instance import sums
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks


def is_bounded(ranks: Ranks, metric: Metric) -> bool:
    """Whether values only bound the exact metric: they are biased, or corrected from a fixed number of draws."""
    fixed = ranks.design is not None and ranks.drawn is None
    return fixed and (metric.biased(ranks) or metric.estimated is not metric)


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
    if any(run.design is None or not run.design.keeps_unbiased for run in runs):
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
    reach = _reach(one, other)
    return BoundedOutcome(
        _with_one_more(one.lower - other.upper, float(np.min(one.least - other.most, initial=0.0)), clusters),
        _with_one_more(one.upper - other.lower, float(np.max(one.most - other.least, initial=0.0)), clusters),
        reach,
    )


def _with_one_more(differences: Floats, extreme: float, clusters: Ints | None) -> StudentOutcome:
    """Return the outcome with one more instance, as extreme as any could be; see `ExactRange.interval`."""
    if differences.size < 2:
        return StudentOutcome(math.nan, math.nan, differences.size)
    values = np.column_stack([np.append(differences, extreme), np.zeros(differences.size + 1)])
    return student_outcome(Sample.of(values, clusters=None if clusters is None else np.append(clusters, -1)), (0, 1))


def _reach(one: BoundValues, other: BoundValues) -> float:
    """The largest difference if all relevant items of one recommender stood first, and all of the other last."""
    ends = [float(np.mean(each)) if each.size else math.nan for each in (one.worst, one.best, other.worst, other.best)]
    return math.inf if any(map(math.isnan, ends)) else max(ends) - min(ends)
