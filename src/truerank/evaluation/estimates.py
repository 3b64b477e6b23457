"""From values to an estimate: a mean, its error, and what to know before trusting it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from truerank.arrays import Bools, Floats, Ints
from truerank.corrections.assumptions import ASSUMING, Assumption, check_assumption
from truerank.corrections.reading import AnyMetric
from truerank.corrections.reading import metric as as_metric
from truerank.corrections.recommended import recommended
from truerank.errors import InputError
from truerank.evaluation.advice import advice, remedy
from truerank.evaluation.attainable_values import attainable, attainable_of_items, attainable_with
from truerank.evaluation.group_parts import Part
from truerank.evaluation.intervals import Interval, Units, check_level, student_interval
from truerank.evaluation.per_instance import Ties, values
from truerank.metrics.base import Metric
from truerank.notes import counted
from truerank.ranking.ranks import Ranks, check_ranks
from truerank.sampling.designs import Rng

if TYPE_CHECKING:
    from truerank.evaluation.exact_ranges import ExactRange

_TIED = {
    "expected": "metrics are averaged over all orders of tied items",
    "optimistic": "tied relevant items are put first",
    "pessimistic": "tied relevant items are put last",
    "random": "tied items are put in random order",
}
_FEW = 30
_MANY_TIES = 0.1  # as the note says


@dataclass(frozen=True)
class Estimate:
    """Mean of a metric over instances, with its standard error.

    Estimates of the same metric over different instances merge with ``+`` into the estimate over
    all of them.

    Attributes
    ----------
    metric : str
        Text form of the metric.
    mean : float
        Mean over the instances where the metric is defined (eq. 1); NaN if there are none.
    standard_error : float
        Standard deviation of the values over the square root of their number; NaN below two. For estimators that pool
        the instances, the error of the pooled estimate is added in quadrature. Of a corrected metric this is the error
        around its own expectation, without its bias; `confidence_interval` has the whole error.
    n : int
        Instances where the metric is defined.
    n_undefined : int
        Instances where it is not (NaN), which are left out of the mean.
    n_tied : int
        Instances, of all, whose relevant items tie with irrelevant ones.
    ties : str
        How ties were resolved.

    Examples
    --------
    >>> import truerank as tr
    >>> half = tr.estimate(tr.Ranks.from_ranks([1, 2, 4], n=10), "ap")
    >>> print(half)
    ap = 0.5833 ± 0.2205 (3 instances)
    >>> print(half + tr.estimate(tr.Ranks.from_ranks([5], n=10), "ap"))
    ap = 0.4875 ± 0.1830 (4 instances)
    >>> half.notes
    ('only 3 instances: expect a wide interval',)
    """

    metric: str
    mean: float
    standard_error: float
    n: int
    n_undefined: int = 0
    n_tied: int = 0
    ties: str = "expected"
    caveats: tuple[str, ...] = ()
    """What to know about the metric itself, on ranks like these."""
    weight: float | None = None
    """For groups of items: the sum of the instances' weights, whose weighted mean this is. None: all weigh 1."""
    n_users: int | None = None
    """Independent users, if some have several instances: the standard error is clustered by user. None: n."""
    units: Units | None = field(default=None, repr=False, compare=False)
    """The values of independent units, on which the interval rests. None: it rests on the standard error."""
    hidden_error: float = 0.0
    """The part of the standard error that the spread of the values does not show."""
    exact_range: ExactRange | None = None
    """Of a corrected metric: what is known of the exact one."""
    attainable: Interval | None = None
    """The least and the largest value that an instance could have; those that were seen, if that is not known."""

    @property
    def n_instances(self) -> int:
        """All instances, also those where the metric is undefined."""
        return self.n + self.n_undefined

    @property
    def tied_share(self) -> float:
        """Share of all instances in which ties matter."""
        return self.n_tied / self.n_instances if self.n_instances else 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """Reasons to distrust the numbers."""
        notes = [*self.caveats, *self._range_notes()]
        if self.n_undefined:
            notes.append(f"{self.metric} is undefined for {self.n_undefined} of {self.n_instances} instances")
        if self.n_users is not None:
            notes.append(f"{self.n} instances of {self.n_users} users: errors are clustered by user")
        if 0 < self.n < _FEW:
            few = counted(self.n, "instance", "instances")
            notes.append(f"only {few}: expect a wide interval")
        if self.tied_share > _MANY_TIES:
            notes.append(f"more than a tenth of the instances have ties; {_TIED[self.ties]}")
        return tuple(notes)

    def _range_notes(self) -> list[str]:
        if self.exact_range is None or self.n < 2:
            return []
        notes = [f"in brackets: 95 % interval of the exact metric, {ASSUMING[self.exact_range.assumption]}"]
        low, high = self.confidence_interval()
        if not self.determined:
            notes.append(f"{self.metric} is not determined by this sample{self.exact_range.remedy}")
        if not low <= self.mean <= high:
            notes.append(f"{self.metric} lies outside the interval of the exact metric: prefer another correction")
        return notes

    @property
    def determined(self) -> bool:
        """Whether the sample tells roughly how large the metric is: the 95 % interval is no wider than its midpoint.

        That is an upper end of at most three times the lower one. Metrics of exact ranks are always determined.
        """
        if self.exact_range is None or self.n < 2:
            return True
        low, high = self.confidence_interval()
        return high - low <= abs(high + low) / 2

    def confidence_interval(self, level: float = 0.95) -> Interval:
        """Return the interval that covers the metric of exact ranks, over instances like these, with this probability.

        For metrics of exact ranks it is by empirical likelihood, with two thirds of an instance of the most extreme
        value that is possible at each end, for rare values that were not seen. For corrected metrics it also allows for
        the candidates that happened to be sampled and for the bias of any correction, so it is far wider than a few
        standard errors where the sample tells little.

        Examples
        --------
        >>> import truerank as tr
        >>> low, high = tr.estimate(tr.Ranks.from_ranks([1, 2, 4] * 10, n=10), "ap").confidence_interval(0.9)
        >>> round(low, 3), round(high, 3)
        (0.481, 0.69)
        >>> ranks = tr.Ranks.from_ranks([1, 20, 300, 1_000, 2_500] * 200, n=3_000)          # recall@10 is 0.2
        >>> sampled = tr.UniformSampling(100).draw(ranks, rng=0)
        >>> corrected = tr.estimate(sampled, "recall@10~bv(0.1)")
        >>> low, high = corrected.confidence_interval()
        >>> round(corrected.mean, 2), low < 0.2 < high, corrected.determined
        (0.18, True, False)
        """
        if self.exact_range is not None:
            check_level(level)
            return self.exact_range.interval(level)
        return self.expectation_interval(level)

    def expectation_interval(self, level: float = 0.95) -> Interval:
        """Return the interval for the expectation of the values, whatever they estimate.

        The same as `confidence_interval` but for corrected metrics, of which it leaves out the bias.
        """
        check_level(level)
        if self.units is None or self.attainable is None:
            return student_interval(self.mean, self.standard_error, self.n_users or self.n, level)
        return self.units.interval(level, self.attainable, self.hidden_error)

    def __add__(self, other: Estimate) -> Estimate:
        if self.weight is not None or other.weight is not None:
            raise InputError("estimates for groups of items do not add up, since their instances have weights.")
        if self.n_users is not None or other.n_users is not None:
            raise InputError("estimates of users with several instances do not add up, since users may be in both.")
        if (self.metric, self.ties) != (other.metric, other.ties):
            raise InputError(
                f"only estimates of one metric and tie policy add up, got {self.metric!r} ({self.ties}) "
                f"and {other.metric!r} ({other.ties})."
            )
        if (self.exact_range is None) != (other.exact_range is None):
            raise InputError(f"only estimates with an exact range, or none, add up, got both for {self.metric!r}.")
        n = self.n + other.n
        mean, error = _merged_mean(self, other)
        return Estimate(
            self.metric,
            mean,
            error,
            n,
            self.n_undefined + other.n_undefined,
            self.n_tied + other.n_tied,
            self.ties,
            tuple(dict.fromkeys(self.caveats + other.caveats)),
            units=None if self.units is None or other.units is None else self.units + other.units,
            hidden_error=math.hypot(self.n * self.hidden_error, other.n * other.hidden_error) / max(n, 1),
            exact_range=(
                None if self.exact_range is None or other.exact_range is None else self.exact_range + other.exact_range
            ),
            attainable=_either(self, other),
        )

    def error_text(self) -> str:
        """Return what tables show behind the mean: the standard error, or for a corrected metric the interval."""
        if self.exact_range is None:
            return f"± {self.standard_error:.4f}"
        low, high = self.confidence_interval()
        return f"({low:.4f} to {high:.4f}{'' if self.determined else ', not determined'})"

    def __str__(self) -> str:
        return f"{self.metric} = {self.mean:.4f} {self.error_text()} ({self.n} instances)"


def estimate(
    ranks: Ranks, metric: AnyMetric, *, ties: Ties = "expected", rng: Rng = None, assume: Assumption = "nothing"
) -> Estimate:
    """Return the mean of a metric over the instances, with its error.

    Parameters
    ----------
    ranks, metric, ties, rng
        Those of `truerank.values`.
    assume : {"nothing", "falling", "smooth"}
        What the interval of a corrected metric may assume of the exact ranks, among the top tenth of the candidates and
        for the first relevant item of an instance: nothing; that a deeper rank is never more likely; or that, besides,
        a rank twice as deep is at least a quarter as likely.

    Examples
    --------
    >>> import truerank as tr
    >>> result = tr.estimate(tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000), "auc")
    >>> round(result.mean, 3), round(result.standard_error, 3), result.n
    (0.843, 0.098, 5)
    """
    check_ranks(ranks)
    chosen = recommended(as_metric(metric), ranks)
    check_assumption(assume)
    broken = ranks if ties == "expected" else ranks.break_ties(ties, rng=rng)
    return summary(values(broken, chosen), ranks, chosen, ties, range_of_estimated(broken, chosen, assume))


def range_of_estimated(ranks: Ranks, metric: Metric, assume: Assumption) -> ExactRange | None:
    """Return what is known of the exact metric that a corrected one estimates.

    None for metrics that are not corrected, and for estimators without bias, whose own error is honest.
    """
    if metric.estimated is metric or metric.unbiased(ranks):
        return None
    from truerank.evaluation.exact_ranges import exact_range

    return exact_range(ranks, metric.estimated, assume)


def weighted_summary(
    values: Floats, weights: Floats, ranks: Ranks, metric: Metric, ties: Ties, part: Part | None = None
) -> Estimate:
    """Return an estimate whose instances have weights: the sum of what they add over the sum of their weights.

    Parameters
    ----------
    values : array of float
        What each instance adds: its value times its weight; or, of a part of the relevant items, what these add.
    weights : array of float
    ranks, metric, ties
        Those of `estimate`.
    part : Part, optional
        The part of the relevant items of the ranks that the values are about.
    """
    plain, defined = summary(values, ranks, metric, ties), ~np.isnan(values)
    own, clusters = values[defined], _clusters(ranks, defined)
    weight = float(weights[defined].sum())
    mean = float(own.sum() / weight) if plain.n else math.nan
    whole = attainable(ranks, metric)
    ends = whole if part is None else attainable_of_items(ranks, metric, part.counts, weights)
    return replace(
        plain,
        mean=mean,
        standard_error=_error_of_sums(_unit_sums(own - mean * weights[defined], clusters), weight),
        weight=weight,
        caveats=(*plain.caveats, *_part_caveats(metric, part, whole, ends)),
        units=Units.of(own, weights[defined], clusters),
        attainable=attainable_with(ends, own / weights[defined]),
    )


def _part_caveats(metric: Metric, part: Part | None, whole: Interval | None, own: Interval | None) -> list[str]:
    """Return what to know of a metric by groups of items."""
    if part is None:
        return []
    if metric.estimated is not metric:
        return [f"{metric} by groups of items: its errors leave out the bias of the correction"]
    if whole is not None and own is not None and own.high > whole.high:
        return [
            f"{metric} of a group is its share of {metric} over its share of the items: it can exceed {whole.high:g}"
        ]
    return []


def summary(
    per_instance: Floats, ranks: Ranks, metric: Metric, ties: Ties, exact_range: ExactRange | None = None
) -> Estimate:
    """Return the estimate from the values of the instances and what is known of the exact metric."""
    where = ~np.isnan(per_instance)
    defined, clusters = per_instance[where], _clusters(ranks, where)
    n, mean = defined.size, float(defined.mean()) if defined.size else math.nan
    units, hidden = Units.of(defined, clusters=clusters), metric.hidden_error(ranks)
    error = _error_of_sums(_unit_sums(defined - mean, clusters), n)
    found = Estimate(
        metric=str(metric),
        mean=mean,
        standard_error=math.hypot(error, hidden),
        n=n,
        n_undefined=per_instance.size - n,
        n_tied=int(ranks.tied_instances.sum()),
        ties=ties,
        caveats=(*metric.notes(ranks), *advice(metric, ranks)),
        n_users=None if clusters is None else units.n,
        units=units,
        hidden_error=hidden,
        exact_range=exact_range,
        attainable=attainable_with(attainable(ranks, metric), defined),
    )
    if found.determined or exact_range is None:
        return found
    remedied = replace(exact_range, remedy=remedy(metric.estimated, ranks, exact_range.assumption))
    return replace(found, exact_range=remedied)


def _merged_mean(one: Estimate, other: Estimate) -> tuple[float, float]:
    """Return mean and standard error over the instances of two estimates."""
    if not (one.n and other.n):
        filled = one if one.n else other
        return filled.mean, filled.standard_error
    n, gap = one.n + other.n, other.mean - one.mean
    own = [each.standard_error**2 * each.n * (each.n - 1) if each.n > 1 else 0.0 for each in (one, other)]
    squares = sum(own) + gap**2 * one.n * other.n / n
    return one.mean + gap * other.n / n, math.sqrt(squares / (n - 1) / n)


def _either(one: Estimate, other: Estimate) -> Interval | None:
    """Return what the instances of either estimate could attain."""
    filled = [each.attainable for each in (one, other) if each.n]
    known = [each for each in filled if each is not None]
    if not known or len(known) < len(filled):
        return None
    return Interval(min(each.low for each in known), max(each.high for each in known))


def _clusters(ranks: Ranks, where: Bools) -> Ints | None:
    """Return the user of each instance as a number, None if every one is a user of its own."""
    return None if ranks.clusters is None else ranks.clusters[where]


def _unit_sums(deviations: Floats, clusters: Ints | None) -> Floats:
    """Return the sum of the deviations of each independent user; None: each instance is a user of its own."""
    if clusters is None:
        return deviations
    _, which = np.unique(clusters, return_inverse=True)
    return np.bincount(which, deviations).astype(np.float64)


def _error_of_sums(sums: Floats, weight: float) -> float:
    """Return the standard error of a mean from the sums of the deviations of independent users."""
    n = sums.size
    return math.sqrt(n / (n - 1) * float(np.square(sums).sum())) / weight if n > 1 else math.nan
