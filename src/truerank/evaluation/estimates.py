"""`estimate`: the mean of a metric, its interval, what to know before trusting it, and its chance level."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.core.checks import Floats, InputError, Ints, Rng, counted
from truerank.core.ranks import Ranks, check_ranks
from truerank.core.tables import Cell, Record, Table, Tabular, measured
from truerank.estimators.corrected import ASSUMING, AnyMetric, Assumption, check_assumption, recommended
from truerank.estimators.corrected import metric as as_metric
from truerank.evaluation import intervals
from truerank.evaluation.intervals import Interval, Moments, Units
from truerank.evaluation.per_instance import Part, Ties, values
from truerank.metrics.definitions import Link, Metric, WholeMetric

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
# fields left out of records: the first is among the notes, the second a label, the others say how the interval was
# # found
_HIDDEN = (
    *("caveats", "weight", "n_users", "moments", "units", "hidden_error", "exact_range"),
    *("attainable", "chance", "by_propensity", "base", "link"),
)


@dataclass(frozen=True, repr=False)
class Estimate(Tabular[Record]):
    """Mean of a metric over instances, with its standard error.

    Estimates of the same metric over different instances merge with ``+`` into the estimate over all of them;
    ``float(estimate)`` is the mean.

    Attributes
    ----------
    metric : str
        Text form of the metric.
    mean : float
        Mean over the instances where the metric is defined (eq. 1); NaN if there are none.
    standard_error : float
        Standard deviation of the values over the square root of their number; NaN below two. For estimators that pool
        the instances, the error of the pooled estimate is added in quadrature. For a corrected metric this is the error
        around its own expectation, without its bias; `confidence_interval` covers the whole error.
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
    """For groups of items: the sum of the instances' weights in the mean, which is weighted. None: all weigh 1."""
    n_users: int | None = None
    """Independent users, if some have several instances: the standard error is clustered by user. None: n."""
    moments: Moments | None = field(default=None, repr=False, compare=False)
    """Moments of the values, so that estimates merge. None: they follow from the mean and the standard error."""
    units: Units | None = field(default=None, repr=False, compare=False)
    """The values of independent units, on which the interval rests. None: it rests on the standard error."""
    hidden_error: float = 0.0
    """The part of the standard error that the spread of the values does not show."""
    exact_range: ExactRange | None = None
    """For a corrected metric: what is known about the exact one."""
    attainable: Interval | None = None
    """The smallest and largest values that an instance could have; those that were seen, if that is not known."""
    chance: ChanceLevel | None = None
    """What a random order of the same candidates, and the best one, would score, if requested."""
    by_propensity: bool = False
    """Whether relevant items are weighted by 1 / propensity."""

    @property
    def n_effective(self) -> float:
        """Number of independent units of equal weight that would give a similar error: (sum of w)^2 / sum of w^2."""
        if self.units is None:
            return float(self.n_users or self.n)
        squares = float((self.units.sizes**2 / self.units.counts).sum())
        return self.units.total**2 / squares if squares else 0.0

    @property
    def n_instances(self) -> int:
        """All instances, including those where the metric is undefined."""
        return self.n + self.n_undefined

    @property
    def tied_share(self) -> float:
        """Share of all instances in which ties matter."""
        return self.n_tied / self.n_instances if self.n_instances else 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """Reasons to distrust the numbers."""
        notes = [*self.caveats, *self._range_notes()]
        if self.by_propensity:
            notes.append(f"weighted by 1 / propensity: effective sample size {self.n_effective:.0f} of {self.n}")
        if self.n_undefined:
            notes.append(f"{self.metric} is undefined for {self.n_undefined} of {self.n_instances} instances")
        if self.n_users is not None:
            notes.append(f"{self.n} instances of {self.n_users} users: errors are clustered by user")
        if 0 < (effective := round(self.n_effective)) < _FEW:
            units = self.n_users or self.n
            few = counted(units, "user", "users") if self.n_users else counted(units, "instance", "instances")
            size = f"{few} of unequal weight, worth only {effective}" if effective < units else f"only {few}"
            notes.append(f"{size}: {'expect a wide interval' if units > 1 else 'too few for an interval'}")
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
        """Whether the sample roughly determines the metric: the 95 % interval is no wider than its midpoint.

        In other words, its upper end is at most three times its lower one. Metrics of exact ranks are always
        determined.
        """
        if self.exact_range is None or self.n < 2:
            return True
        low, high = self.confidence_interval()
        return high - low <= abs(high + low) / 2

    def confidence_interval(self, level: float = 0.95) -> Interval:
        """Return the interval that covers the metric of exact ranks, over instances like these, with this probability.

        For metrics of exact ranks it is found by empirical likelihood, with two thirds of an instance with the most
        extreme possible value added at each end, for rare values that were not seen. For corrected metrics it also
        allows for the sampling of candidates and for the bias of any correction, so it is far wider than a few standard
        errors where the sample determines little.

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
            intervals.check_level(level)
            return self.exact_range.interval(level)
        return self.expectation_interval(level)

    def expectation_interval(self, level: float = 0.95) -> Interval:
        """Return the interval for the expectation of the values, whatever they estimate.

        The same as `confidence_interval`, except for corrected metrics, where it leaves out the bias.
        """
        intervals.check_level(level)
        if self.units is None or self.attainable is None:
            return intervals.student_interval(self.mean, self.standard_error, self.n_users or self.n, level)
        return self.units.interval(level, self.attainable, self.hidden_error)

    def __add__(self, other: Estimate) -> Estimate:
        if self.n_users is not None or other.n_users is not None:
            raise InputError("estimates of users with several instances can't be added, since users may be in both.")
        if (self.metric, self.ties) != (other.metric, other.ties):
            both = f"{self.metric!r} ({self.ties}) and {other.metric!r} ({other.ties})"
            raise InputError(f"only estimates of one metric and tie policy can be added, got {both}.")
        kinds = {
            "by propensity": (self.by_propensity, other.by_propensity),
            "with an exact range": (self.exact_range is None, other.exact_range is None),
            "of groups of items": (self.weight is None, other.weight is None),
        }
        for what, (own, its) in kinds.items():
            if own != its:
                raise InputError(f"estimates {what} can't be added to others, got both for {self.metric!r}.")
        n, moments = self.n + other.n, self._merging + other._merging
        hidden = math.hypot(self.n * self.hidden_error, other.n * other.hidden_error) / max(n, 1)
        return Estimate(
            self.metric,
            moments.mean,
            math.hypot(moments.standard_error, hidden),
            n,
            self.n_undefined + other.n_undefined,
            self.n_tied + other.n_tied,
            self.ties,
            tuple(dict.fromkeys(self.caveats + other.caveats)),
            weight=None if self.weight is None else moments.weight,
            moments=moments,
            units=_both(self.units, other.units),
            hidden_error=hidden,
            exact_range=_both(self.exact_range, other.exact_range),
            attainable=_either(self, other),
            chance=_both(self.chance, other.chance),
            by_propensity=self.by_propensity,
        )

    @property
    def _merging(self) -> Moments:
        """The moments; as if all instances weighed 1 if only the mean and its error are known."""
        squares = self.standard_error**2 * self.n * (self.n - 1) if self.n > 1 else 0.0
        return self.moments or Moments(self.n, self.mean, self.n, self.n, squares)

    def __float__(self) -> float:
        return self.mean

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return np.array(self.mean, dtype)  # a number, not a sequence of rows

    def error_text(self) -> str:
        """Return what tables show after the mean: the standard error, or for a corrected metric the interval."""
        if self.exact_range is None:
            return f"± {self.standard_error:.4f}"
        low, high = self.confidence_interval()
        return f"({low:.4f} to {high:.4f}{'' if self.determined else ', not determined'})"

    def __str__(self) -> str:
        return f"{self.metric} = {self.mean:.4f} {self.error_text()} ({self.n} instances)"

    def _in_short(self) -> str:
        return str(self)

    def record(self, level: float = 0.95) -> dict[str, Any]:
        """Return all numbers by name, with the ends of the interval."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _HIDDEN}
        derived = {"tied_share": self.tied_share, "determined": self.determined}
        if self.by_propensity:
            derived["n_effective"] = self.n_effective
        return own | derived | self.confidence_interval(level)._asdict()

    def cell(self, *, best: bool = False) -> Cell:
        """Return the mean and its error as tables show them."""
        if self.exact_range is None:
            return measured(self.mean, self.standard_error, best=best)
        return Cell(f"{self.mean:.4f} {self.error_text()}", best=best)

    def to_table(self) -> Table:
        """Return one row: the mean with its error, the instances, and how many of them have ties."""
        row = (Cell(self.metric), self.cell(), Cell(str(self.n_instances)), Cell(f"{self.tied_share:.1%}"))
        return Table(("metric", "mean", "instances", "tied"), (row,), (self.record(),), self.notes)

    def _names(self) -> list[tuple[str, ...]]:
        return [(self.metric,)]

    def _numbers(self) -> Iterator[tuple[tuple[str, ...], float]]:
        yield (self.metric,), self.mean
        yield (self.metric, "se"), self.standard_error


@dataclass(frozen=True, repr=False)
class WholeEstimate(Estimate):
    """A metric of all instances together: a function applied to the mean of another metric and to its interval."""

    base: Estimate | None = None
    link: Link | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, metric: WholeMetric, base: Estimate, link: Link) -> WholeEstimate:
        """Return the estimate; its standard error is half the distance from one error below the mean to one above."""
        ends = [link(base.mean + sign * base.standard_error) for sign in (-1, 1)]
        return cls(
            metric=str(metric),
            mean=link(base.mean),
            standard_error=abs(ends[1] - ends[0]) / 2,
            n=base.n,
            n_undefined=base.n_undefined,
            n_tied=base.n_tied,
            ties=base.ties,
            n_users=base.n_users,
            base=base,
            link=link,
        )

    def expectation_interval(self, level: float = 0.95) -> Interval:
        """Return the interval, which is that of the other metric, transformed."""
        assert self.base is not None
        assert self.link is not None
        low, high = sorted(map(self.link, self.base.expectation_interval(level)))
        return Interval(low, high)

    def __add__(self, other: Estimate) -> Estimate:
        raise InputError(f"{self.metric} is not a mean over instances, so it can't be added: join the ranks.")


def whole_estimate(broken: Ranks, ranks: Ranks, metric: WholeMetric, ties: Ties) -> WholeEstimate:
    """Return the estimate of a metric of all instances together; `broken` are the ranks with resolved ties, if any."""
    metric.check(broken)
    base = metric.base(broken)
    return WholeEstimate.of(metric, summary(values(broken, base), ranks, base, ties), metric.link(broken))


def estimate(
    ranks: Ranks,
    metric: AnyMetric,
    *,
    ties: Ties = "expected",
    rng: Rng = None,
    assume: Assumption = "nothing",
    chance: bool = False,
) -> Estimate:
    """Return the mean of a metric over the instances, with its error.

    Parameters
    ----------
    ranks, metric, ties, rng
        As for `truerank.values`.
    assume : {"nothing", "falling", "smooth"}
        What the interval of a corrected metric may assume about the exact ranks, among the top tenth of the candidates
        and for the first relevant item of an instance: nothing; that a deeper rank is never more likely; or, in
        addition, that a rank twice as deep is at least a quarter as likely.
    chance : bool
        Whether to compute, as `Estimate.chance`, what a random order scores for these numbers of candidates and
        relevant items. It needs whole rankings: the number of candidates of cut lists is unknown.

    Examples
    --------
    >>> import truerank as tr
    >>> result = tr.estimate(tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000), "auc")
    >>> round(result.mean, 3), round(result.standard_error, 3), result.n
    (0.843, 0.098, 5)

    The reciprocal rank of one relevant item among four is 1, 1/2, 1/3 or 1/4:

    >>> chance = tr.estimate(tr.Ranks.from_ranks([2, 2], n=4), "rr", chance=True).chance
    >>> round(chance.random, 4), chance.best, round(chance.adjusted, 4)
    (0.5208, 1.0, -0.0435)
    """
    check_ranks(ranks)
    if chance and ranks.depth is not None:
        raise InputError("the chance level needs the number of candidates, which is unknown for ranks that are cut.")
    asked = as_metric(metric)
    chosen = recommended(asked, ranks)
    check_assumption(assume)
    broken = ranks if ties == "expected" else ranks.break_ties(ties, rng=rng)
    if isinstance(chosen, WholeMetric):
        return whole_estimate(broken, ranks, chosen, ties)
    found = values(broken, chosen)
    result = summary(found, ranks, chosen, ties, _exact_range(broken, chosen, assume))
    return replace(result, chance=chance_level(ranks, asked, result)) if chance else result


def _exact_range(ranks: Ranks, metric: Metric, assume: Assumption) -> ExactRange | None:
    if not only_bounds(ranks, metric):
        return None
    from truerank.evaluation.exact_ranges import exact_range  # imports all corrections

    return exact_range(ranks, metric.estimated, assume)


def only_bounds(ranks: Ranks, metric: Metric) -> bool:
    """Whether values only bound the exact metric: it is corrected, and not by an estimator without bias."""
    return metric.estimated is not metric and not metric.unbiased(ranks)


def summary(
    values: Floats,
    ranks: Ranks,
    metric: Metric,
    ties: Ties,
    exact_range: ExactRange | None = None,
    *,
    weights: Floats | None = None,
    part: Part | None = None,
) -> Estimate:
    """Return the estimate from what each instance adds: its sum divided by the sum of the weights.

    Parameters
    ----------
    values : array of float
        The value of each instance, times its weight; or, for a part of the relevant items, what these add.
    ranks, metric, ties
        As for `estimate`.
    exact_range : ExactRange, optional
        What is known about the exact metric.
    weights : array of float, optional
        1 by default, or those of the part.
    part : Part, optional
        The part of the relevant items of the ranks that the values are about.
    """
    weights = weights if part is None else part.weights
    where = ~np.isnan(values)
    own, sizes = values[where], None if weights is None else weights[where]
    clusters = None if ranks.clusters is None else ranks.clusters[where]
    n, units, hidden = own.size, Units.of(own, sizes, clusters), metric.hidden_error(ranks)
    mean = math.nan if not n else float(own.mean() if sizes is None else own.sum() / sizes.sum())
    deviations = own - (mean if sizes is None else mean * sizes)
    moments = Moments.of(mean, deviations, sizes)
    error = moments.standard_error if clusters is None else _clustered_error(deviations, clusters, moments.weight)
    whole = intervals.attainable(ranks, metric)
    ends = whole if part is None else intervals.attainable_of_items(ranks, metric, *part.extremes)
    found = Estimate(
        metric=str(metric),
        mean=mean,
        standard_error=math.hypot(error, hidden) if part is None else error,
        n=n,
        n_undefined=values.size - n,
        n_tied=int(ranks.tied_instances.sum()),
        ties=ties,
        caveats=(*metric.notes(ranks), *_advice(metric, ranks), *_part_caveats(metric, ranks, part, whole, ends)),
        weight=None if weights is None else moments.weight,
        n_users=None if clusters is None else units.n,
        moments=moments,
        units=units,
        hidden_error=hidden,
        exact_range=exact_range,
        attainable=intervals.attainable_with(ends, own if sizes is None else own / sizes),
        by_propensity=part is not None and part.inverse is not None,
    )
    if found.determined or exact_range is None:
        return found
    from truerank.evaluation.exact_ranges import remedy

    remedied = replace(exact_range, remedy=remedy(metric.estimated, ranks, exact_range.assumption))
    return replace(found, exact_range=remedied)


def _advice(metric: Metric, ranks: Ranks) -> list[str]:
    if not metric.biased(ranks):
        return []
    from truerank.evaluation.exact_ranges import advice

    return [advice(metric, ranks)]


def _part_caveats(
    metric: Metric, ranks: Ranks, part: Part | None, whole: Interval | None, own: Interval | None
) -> list[str]:
    """Return what to know about a metric by groups of items."""
    if part is None:
        return []
    if metric.estimated is not metric and not metric.unbiased(ranks):
        return [f"{metric} by groups of items: its errors leave out the bias of the correction"]
    if part.inverse is None and whole is not None and own is not None and own.high > whole.high:
        share = f"its share of {metric} over its share of the items"
        return [f"{metric} of a group is {share}: it can exceed {whole.high:g}"]
    return []


def _clustered_error(deviations: Floats, clusters: Ints, weight: float) -> float:
    """Return the standard error of a mean if the deviations of a user's instances belong together."""
    _, which = np.unique(clusters, return_inverse=True)
    sums = np.bincount(which, deviations).astype(np.float64)
    return replace(Moments.of(math.nan, sums), weight=weight).standard_error


def _both(one: Any, other: Any) -> Any:
    """Return the sum of a field of two estimates; None if one lacks it."""
    return None if one is None or other is None else one + other


def _either(one: Estimate, other: Estimate) -> Interval | None:
    """Return what the instances of either estimate could attain."""
    filled = [each.attainable for each in (one, other) if each.n]
    known = [each for each in filled if each is not None]
    if not known or len(known) < len(filled):
        return None
    return Interval(min(each.low for each in known), max(each.high for each in known))


@dataclass(frozen=True)
class ChanceLevel:
    """What a random order of the same candidates, and the best one, would score.

    Attributes
    ----------
    mean : float
        Mean of the metric over the instances where it is defined.
    random : float
        Its exact expectation if all candidates were in random order.
    best : float
        Its mean if all relevant items came first, those of the highest grade at the top.
    n : int
        Instances where it is defined.
    """

    mean: float
    random: float
    best: float
    n: int

    @property
    def adjusted(self) -> float:
        """How far the mean is from chance (0) to the best (1); below 0 if it is worse than chance."""
        reach = self.best - self.random
        return (self.mean - self.random) / reach if reach else math.nan

    def __add__(self, other: ChanceLevel) -> ChanceLevel:
        if not (self.n and other.n):
            return self if self.n else other
        n = self.n + other.n
        pairs = ((self.mean, other.mean), (self.random, other.random), (self.best, other.best))
        mean, random, best = ((mine * self.n + his * other.n) / n for mine, his in pairs)
        return ChanceLevel(mean, random, best, n)


def chance_level(ranks: Ranks, metric: Metric, found: Estimate) -> ChanceLevel:
    """Return what chance would give in place of an estimate, for whole rankings."""
    first = np.zeros_like(ranks.above)
    one_block = None if ranks.grades is None else ranks.i > 1
    # a random order is one in which everything ties; it may need another estimator, which `values` chooses
    random = replace(ranks, above=first, tied=np.repeat(ranks.draws, ranks.n_relevant), same_score=one_block)
    best = random.break_ties("optimistic")
    at_random, at_best = (intervals.mean_of(values(each, metric)) for each in (random, best))
    return ChanceLevel(found.mean, at_random, at_best, found.n)


# fewer instances rarely distinguish a weak recommender from chance
_ENOUGH = 30
# on average, relevant items of a recommender that works are above this share of the candidates
_SUSPICIOUS = 0.2
# instances from which the chance level is computed; enough for the comparison
_SOME = 500


def chance_notes(ranks: Ranks, metrics: Sequence[Metric], estimates: Sequence[Estimate]) -> tuple[str, ...]:
    """Return a note on metrics that are no better than those of a random order, with the usual cause.

    The interval of such a metric begins at its chance level or below, and ends below twice that level and before a
    tenth of the way from it to the best. There is no note if another metric is clearly better than chance, if there are
    fewer than 30 instances, or where the number of candidates is unknown.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks(range(1, 1001), n=1000)
    >>> chance_notes(ranks, [tr.metric("auc")], [tr.estimate(ranks, "auc")])[0]
    'auc is no better than chance (0.5): if it should be, check that scores and data number users and items alike'
    """
    if ranks.depth is not None or ranks.drawn is not None or len(ranks) < _ENOUGH or _mean_place(ranks) < _SUSPICIOUS:
        return ()
    some = ranks[np.unique(np.linspace(0, len(ranks) - 1, _SOME).astype(np.int64))]
    levels = {
        str(metric): (chance_level(some, metric, cell), cell.confidence_interval())
        for metric, cell in zip(metrics, estimates, strict=True)
        if _may_show_chance(metric) and cell.n >= _ENOUGH
    }
    if any(low > 2 * level.random for level, (low, _) in levels.values()):
        return ()
    poor = {name: level.random for name, (level, ends) in levels.items() if _is_at_chance(level, *ends)}
    if not poor:
        return ()
    names, numbers = ", ".join(poor), ", ".join(f"{chance:.3g}" for chance in poor.values())
    are, they = ("is", "it") if len(poor) == 1 else ("are", "they")
    cause = f"if {they} should be, check that scores and data number users and items alike"
    return (f"{names} {are} no better than chance ({numbers}): {cause}",)


def _may_show_chance(metric: Metric) -> bool:
    return metric.estimated is metric and not metric.lower_is_better and not metric.of_all_instances


def _mean_place(ranks: Ranks) -> float:
    """Return the mean share of irrelevant candidates above a relevant item: 0 at best, 1/2 by chance."""
    irrelevant = np.repeat(ranks.draws, ranks.n_relevant)
    counted = irrelevant > 0
    places = (ranks.above[counted] + ranks.tied[counted] / 2) / irrelevant[counted]
    return float(places.mean()) if places.size else 0.0


def _is_at_chance(level: ChanceLevel, low: float, high: float) -> bool:
    reach = min(level.random, (level.best - level.random) / 10)
    return low <= level.random and high <= level.random + reach
