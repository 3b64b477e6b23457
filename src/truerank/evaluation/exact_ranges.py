"""The range that a sample leaves open for an exact metric, or for the difference of two, and what would narrow it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np

from truerank.core.checks import Floats, Ints
from truerank.core.ranks import Ranks
from truerank.estimators.bounds import Bound, best_gamma, enough_draws, is_determined
from truerank.estimators.corrected import (
    ASSUMPTIONS,
    Assumption,
    Case,
    Corrected,
    TableTerm,
    has_unbiased_form,
    strongest,
)
from truerank.evaluation.intervals import Interval, Units, attainable, attainable_with, mean_of, values_at_one_end
from truerank.evaluation.paired_tests import Outcome
from truerank.evaluation.per_instance import sums
from truerank.metrics.definitions import Metric, Term, Terms
from truerank.sampling.designs import as_design
from truerank.sampling.laws import Law


@dataclass(frozen=True)
class ExactRange:
    """A lower and an upper estimate of the exact metric over the instances; ranges add up like estimates.

    Attributes
    ----------
    lower, upper : Units
        Values whose expectation is at most, and at least, the exact metric of each instance.
    least, most : float
        The smallest value of `lower`, and the largest of `upper`, that any instance could have.
    worst, best : float
        Means of the exact metric if all relevant items came last, and first; NaN if it isn't known to be monotone.
    assumption : {"nothing", "falling", "smooth"}
        What is assumed about the exact ranks.
    remedy : str
        What would determine more, if this range is wide.
    """

    lower: Units = field(repr=False, compare=False)
    upper: Units = field(repr=False, compare=False)
    least: float
    most: float
    worst: float
    best: float
    assumption: Assumption
    remedy: str = ""

    @classmethod
    def of(cls, bounds: BoundValues, clusters: Ints | None = None) -> ExactRange:
        """Return the range of the mean over the instances, some of which may be of the same user."""
        return cls(
            Units.of(bounds.lower, clusters=clusters),
            Units.of(bounds.upper, clusters=clusters),
            float(np.fmin.reduce(bounds.least, initial=math.inf)),
            float(np.fmax.reduce(bounds.most, initial=-math.inf)),
            mean_of(bounds.worst),
            mean_of(bounds.best),
            bounds.assumption,
        )

    def interval(self, level: float) -> Interval:
        """Return the interval that covers the exact metric with at least this probability.

        Each end allows for half of the error, and for the most extreme values that are possible but were not seen; see
        `Units`.
        """
        low, high = self.lower.low(level, self.least), self.upper.high(level, self.most)
        if math.isnan(low):
            return Interval(low, high)
        return Interval(max(low, _least_of(self.worst, self.best)), min(high, _most_of(self.worst, self.best)))

    def __add__(self, other: ExactRange) -> ExactRange:
        mine, others = self.lower.total, other.lower.total
        return ExactRange(
            self.lower + other.lower,
            self.upper + other.upper,
            min(self.least, other.least),
            max(self.most, other.most),
            _mean((self.worst, mine), (other.worst, others)),
            _mean((self.best, mine), (other.best, others)),
            strongest(self.assumption, other.assumption),
            self.remedy or other.remedy,
        )


def _least_of(*ends: float) -> float:
    return -math.inf if any(map(math.isnan, ends)) else min(ends)


def _most_of(*ends: float) -> float:
    return math.inf if any(map(math.isnan, ends)) else max(ends)


def _mean(*parts: tuple[float, float]) -> float:
    filled = [(mean, n) for mean, n in parts if n]
    total = sum(n for _, n in filled)
    return sum(mean * n for mean, n in filled) / total if total else math.nan


class BoundValues(NamedTuple):
    """Values of each instance whose expectation is at most, and at least, the exact metric; and their limits."""

    lower: Floats
    upper: Floats
    least: Floats
    most: Floats
    worst: Floats
    best: Floats
    assumption: Assumption

    def take(self, instances: Ints) -> BoundValues:
        """Return the bounds of the given instances."""
        lower, upper, least, most, worst, best = (array[instances] for array in self[:6])
        return BoundValues(lower, upper, least, most, worst, best, self.assumption)


def exact_range(ranks: Ranks, metric: Metric, assumption: Assumption = "nothing") -> ExactRange:
    """Return the range of a metric of exact ranks, from sampled ones.

    Examples
    --------
    >>> import truerank as tr
    >>> sampled = tr.UniformSampling(1_000).draw(tr.Ranks.from_ranks([3, 17, 250, 900] * 500, n=3_000), rng=0)
    >>> low, high = exact_range(sampled, tr.metric("ap")).interval(0.95)
    >>> low < (1 / 3 + 1 / 17 + 1 / 250 + 1 / 900) / 4 < high
    True
    """
    return ExactRange.of(bound_values(ranks, metric, assumption), ranks.clusters)


def bound_values(ranks: Ranks, metric: Metric, assumption: Assumption = "nothing") -> BoundValues:
    """Return bounds of a metric of exact ranks for each instance, from sampled ones; NaN without relevant items.

    Single values mean little, as for any correction; their means over many instances bound the exact metric.
    """
    lower, upper = (_bound_terms(ranks, metric, upper, assumption) for upper in (False, True))
    least, most = _extremes(ranks, lower, upper=False), _extremes(ranks, upper, upper=True)
    whole = ranks.n_relevant, ranks.n_catalogue, metric, ranks.grades
    worst, best = (values_at_one_end(*whole, first=first) for first in (False, True))
    return BoundValues(sums(ranks, lower), sums(ranks, upper), least, most, worst, best, assumption)


def _bound_terms(ranks: Ranks, metric: Metric, upper: bool, assumption: Assumption) -> tuple[Terms, ...]:
    """Return terms that bound the metric; those with a negative weight are bounded from the other side."""

    def bounded(end: bool) -> tuple[Terms, ...]:
        return Corrected(metric, Bound(end, assumption)).terms(ranks)

    terms = bounded(upper)
    if all(part.weight is None or np.all(part.weight >= 0) for part in terms):
        return terms
    signs = ((terms, np.maximum), (bounded(not upper), np.minimum))
    return tuple(
        part._replace(weight=side(1.0 if part.weight is None else part.weight, 0.0) + np.zeros(ranks.above.size))
        for some, side in signs
        for part in some
    )


def _extremes(ranks: Ranks, terms: tuple[Terms, ...], *, upper: bool) -> Floats:
    """Return the most extreme value that each instance could have, in any sample."""
    total = np.zeros(len(ranks))
    for part in terms:
        tables = cast("TableTerm", part.term)
        weight = np.ones(ranks.above.size) if part.weight is None else part.weight
        largest, least = (tables.extremes(upper=end)[part.n] for end in (upper, not upper))
        added = np.where(weight >= 0, weight * largest, weight * least)
        total += np.bincount(ranks.instance, added, minlength=len(ranks))
    return np.where(ranks.n_relevant > 0, total, np.nan)


@dataclass(frozen=True)
class BoundedOutcome(Outcome):
    """What is known about the difference of exact metrics: one end is bounded from below, the other from above.

    Attributes
    ----------
    gap : ExactRange
        Range of the difference.
    ends : tuple of float
        Means of the exact metric of both recommenders if all relevant items came last, and first; NaN if not known.
    """

    gap: ExactRange
    ends: tuple[float, ...]

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no exact difference: that of the end that is farther from 0."""
        least, most = min(self.gap.least, 0.0), max(self.gap.most, 0.0)
        return 2 * min(self.gap.lower.p_above(0.0, least), self.gap.upper.p_below(0.0, most))

    @property
    def means(self) -> Interval:
        """Means of the lower and the upper bound of the difference."""
        return Interval(self.gap.lower.mean, self.gap.upper.mean)

    def confidence_interval(self, level: float) -> Interval:
        low = self.gap.lower.low(level, min(self.gap.least, 0.0))
        high = self.gap.upper.high(level, max(self.gap.most, 0.0))
        # all relevant items of one recommender first, and all of the other last
        largest = _most_of(*self.ends) - _least_of(*self.ends)
        return Interval(max(low, -largest), min(high, largest))

    def merged(self, other: Outcome, largest: float) -> Outcome:
        if not isinstance(other, BoundedOutcome):
            return other
        mine, others = self.gap.lower.total, other.gap.lower.total
        ends = tuple(_mean((a, mine), (b, others)) for a, b in zip(self.ends, other.ends, strict=True))
        return BoundedOutcome(self.gap + other.gap, ends)


@dataclass(frozen=True)
class UnknownOutcome(Outcome):
    """Nothing is known about the difference of exact metrics."""

    @property
    def p_value(self) -> float:
        return math.nan

    @property
    def means(self) -> Interval:
        """Means of the bounds of the difference, which are not known."""
        return Interval(math.nan, math.nan)

    def confidence_interval(self, level: float) -> Interval:
        return Interval(math.nan, math.nan)

    def merged(self, other: Outcome, largest: float) -> Outcome:
        return self


def bounded_outcome(
    one: BoundValues | None, other: BoundValues | None, clusters: Ints | None
) -> BoundedOutcome | UnknownOutcome:
    """Return what is known about the exact metric of one recommender minus that of the other, on the same instances."""
    if one is None or other is None:
        return UnknownOutcome()
    # values with all items first or last are not used
    far = one.least - other.most, one.most - other.least
    gap = BoundValues(one.lower - other.upper, one.upper - other.lower, *far, *far, one.assumption)
    ends = (float(np.mean(each)) if each.size else math.nan for each in (*one[4:6], *other[4:6]))
    return BoundedOutcome(ExactRange.of(gap, clusters), tuple(ends))


def bounds_of_runs(runs: tuple[Ranks, ...], metric: Metric, assume: Assumption) -> BoundValues:
    """Return bounds of the exact metric for each instance: the means of the bounds of several runs of a recommender."""
    found = [bound_values(run, metric.estimated, assume) for run in runs]
    lower, upper, least, most, worst, best = np.mean([each[:6] for each in found], axis=0)
    return BoundValues(lower, upper, least, most, worst, best, assume)


def unbiased_bounds(runs: tuple[Ranks, ...], metric: Metric, assume: Assumption) -> BoundValues:
    """Return the values of each instance as both bounds, for a metric without bias on these runs."""
    values = np.mean([sums(run, metric.terms(run)) for run in runs], axis=0)
    ends = attainable_with(attainable(runs[0], metric), values[~np.isnan(values)]) or Interval(0.0, 0.0)
    least, most = (np.full(values.size, end) for end in ends)
    return BoundValues(values, values, least, most, least, most, assume)


def advice(metric: Metric, ranks: Ranks) -> str:
    """Return a note on a metric that is biased on sampled ranks, with a better choice for these numbers of candidates.

    Examples
    --------
    >>> import truerank as tr
    >>> advice(tr.metric("recall@10"), tr.Ranks.from_sampled([1, 5], m=100, n=40_000))  # doctest: +ELLIPSIS
    'recall@10 among 100 sampled candidates is not recall@10: ... 100 of 39999 candidates are too few for any ...'
    """
    draws = np.unique(ranks.draws[ranks.n_relevant > 0])
    spread = " to ".join(map(str, draws[[0, -1]] if draws.size > 1 else draws))
    note = f"{metric} among {spread} sampled candidates is not {metric}"
    return f"{note}: its bias differs between recommenders; {_better(metric, ranks)}"


def _better(metric: Metric, ranks: Ranks) -> str:
    """Return what to use instead of an uncorrected metric."""
    case = _typical(ranks)
    if case is not None and ranks.design is not None and ranks.design.unequal_chances:
        unbiased = all(has_unbiased_form(part.term, ranks) for part in metric.terms(ranks))
        return f"rank all candidates, or use {metric}~{'unbiased' if unbiased else 'possible'}"
    if case is None or ranks.design is None or not ranks.design.keeps_unbiased:
        return "rank all candidates"
    term, law = metric.terms(ranks)[0].term, as_design(ranks.design).law("advice")
    if is_determined(term, law, case):
        return f"rank all candidates, or use {metric}~bv({best_gamma(term, law, case, len(ranks)):g}) and its interval"
    few = f"{case.m} of {case.N} candidates are too few for any correction, whatever the distribution of the ranks"
    return f"{few}; {_more(term, law, case)}"


def remedy(metric: Metric, ranks: Ranks, assumption: Assumption) -> str:
    """Return what would determine a metric that the sample leaves open, as the end of a sentence.

    Examples
    --------
    >>> import truerank as tr
    >>> sampled = tr.Ranks.from_sampled([1, 5], m=100, n=3_541)
    >>> remedy(tr.metric("recall@10"), sampled, "falling")
    "; rank all candidates, or sample at least about 1600, or try assume='smooth'"
    """
    case = _typical(ranks)
    if case is None or ranks.design is None:
        return ""
    design = as_design(ranks.design)
    term = metric.terms(ranks)[0].term
    fixed = ranks.drawn is None and not design.unequal_chances
    more = _more(term, design.law("advice"), case) if fixed else _more_hits(term, ranks)
    stronger = ASSUMPTIONS[ASSUMPTIONS.index(assumption) + 1 :]
    helps = stronger and (fixed or design.stops(ranks) is not None)
    return f"; {more}" + (f", or try assume={stronger[0]!r}" if helps else "")


def _more(term: Term, law: Law, case: Case) -> str:
    enough = enough_draws(term, law, case)
    return "rank all candidates" if enough is None else f"rank all candidates, or sample at least about {enough}"


def _more_hits(term: Term, ranks: Ranks) -> str:
    """Return what would determine more than draws that ended early do."""
    deepest = term.cutoff(ranks.n_relevant)
    if deepest is None:
        return "rank all candidates"
    return f"rank all candidates, or draw by inverse({int(deepest.max())}), which determines it"


def _typical(ranks: Ranks) -> Case | None:
    """Return the case of one relevant item with the median numbers of candidates and draws; None if there is none."""
    filled = ranks.n_relevant > 0
    if not filled.any() or ranks.sample is None:
        return None
    N = int(np.median((ranks.n_catalogue - ranks.n_relevant)[filled]))
    return Case(1, 1, N + 1, min(int(np.median(ranks.draws[filled])), N))
