"""Where the exact metric lies, given sampled ranks: for any distribution of the ranks, or under an assumption."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.corrections.assumptions import Assumption, strongest
from truerank.corrections.bounds import Bound
from truerank.corrections.corrected import Corrected
from truerank.evaluation.attainable_values import values_at_one_end
from truerank.evaluation.intervals import Interval, Units
from truerank.evaluation.per_instance import sums
from truerank.metrics.base import Metric, Terms
from truerank.ranking.ranks import Ranks

if TYPE_CHECKING:
    from truerank.corrections.base import TableTerm


@dataclass(frozen=True)
class ExactRange:
    """A lower and an upper estimate of the exact metric over the instances; they add up like estimates.

    Attributes
    ----------
    lower, upper : Units
        Values whose expectation is at most, and at least, the exact metric of each instance.
    least, most : float
        The least value of `lower`, and the largest of `upper`, that any instance could have.
    worst, best : float
        Means of the exact metric if every relevant item stood last, and first; NaN if it isn't known to be monotone.
    assumption : {"nothing", "falling", "smooth"}
        What is assumed of the exact ranks.
    remedy : str
        What would tell more, if this tells little.
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
            _mean_of(bounds.worst),
            _mean_of(bounds.best),
            bounds.assumption,
        )

    def interval(self, level: float) -> Interval:
        """Return the interval that covers the exact metric with at least this probability.

        Each end allows for half of the error, and for values as extreme as any could be that were not seen; see
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


def _mean_of(values: Floats) -> float:
    """Return the mean of what is defined; NaN if nothing is."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else math.nan


def _least_of(*ends: float) -> float:
    return -math.inf if any(map(math.isnan, ends)) else min(ends)


def _most_of(*ends: float) -> float:
    return math.inf if any(map(math.isnan, ends)) else max(ends)


def _mean(*parts: tuple[float, float]) -> float:
    filled = [(mean, n) for mean, n in parts if n]
    total = sum(n for _, n in filled)
    return sum(mean * n for mean, n in filled) / total if total else math.nan


class BoundValues(NamedTuple):
    """Values of each instance whose expectation is at most, and at least, the exact metric; and how far they can go."""

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

    Single values mean little, as those of any correction; their means over many instances bound the exact metric.
    """
    lower, upper = (_bound_terms(ranks, metric, upper, assumption) for upper in (False, True))
    catalogue = ranks.n_candidates if ranks.n_catalogue is None else ranks.n_catalogue
    worst, best = (
        values_at_one_end(ranks.n_relevant, catalogue, metric, ranks.grades, first=first) for first in (False, True)
    )
    return BoundValues(
        sums(ranks, lower),
        sums(ranks, upper),
        _extremes(ranks, lower, upper=False),
        _extremes(ranks, upper, upper=True),
        worst,
        best,
        assumption,
    )


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
