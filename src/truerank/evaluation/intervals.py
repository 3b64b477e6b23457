"""Means, their errors and confidence intervals, in partial results that add up with ``+``.

`Moments`, `Units`, `ExactRange`, `Estimate` and `PairedPart` are such partial results. A step makes them, by key, from
some instances of several recommenders. In this process there is one part, with all instances; an engine runs the same
step on each block of a dataframe and adds up the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import Floats, InputError, Ints, Rng, as_number, distinct_columns, places_among_distinct
from truerank.core.ranks import Ranks
from truerank.evaluation.groups import Groups
from truerank.evaluation.per_instance import item_terms, sums
from truerank.metrics.definitions import Metric

UNSEEN = 2 / 3
"""Instances with the most extreme value that are counted with those that were seen; see `Units`."""
_LEFT_OUT = np.uint64(42)
"""Bits of a number that are left out when it is put into a bin: 10 of the mantissa stay."""
_OFF_EDGES = 1 + 2.0**-20
"""Moves common values, such as 1/2, away from the edges of bins, so that rounding errors do not divide them."""
_STEPS = 100
_PRECISION = 1e-10
"""Precision of ends, as a part of the distance from the mean to the most extreme value."""
_ROUNDING = 1e-14
"""Means that differ by less, relative to their size, are the same."""
_LARGE = 20.0
"""From here on, the expansion of a ratio of gamma functions is exact to the last digit."""
_OF_MULTIPLIER = 1e-7
"""Precision of the multiplier, which is enough: the likelihood is flat where it is largest."""


class Interval(NamedTuple):
    """Lower and upper end of a confidence interval."""

    low: float
    high: float


def check_level(level: float) -> float:
    """Return a confidence level, or raise `InputError`."""
    if not 0.0 < as_number(level) < 1.0:
        raise InputError(f"`level` must lie between 0 and 1, got {level}.")
    return level


def student_interval(mean: float, standard_error: float, n: int, level: float) -> Interval:
    """Return Student's t interval for a mean over n independent units; NaN below two.

    Examples
    --------
    >>> low, high = student_interval(0.5, 0.1, 11, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.277, 0.723)
    """
    if n < 2:
        return Interval(math.nan, math.nan)
    reach = student_quantile(n - 1, check_level(level)) * standard_error
    return Interval(mean - reach, mean + reach)


def student_quantile(df: float, level: float) -> float:
    r"""Return the number that bounds the absolute value of Student's t with the given probability.

    SciPy has it as ``stdtrit(df, (1 + level) / 2)``, but takes longer to import than everything else that a table of
    metrics needs. The probability of larger values is a regularized incomplete beta function,
    :math:`I_x(\nu/2, 1/2)` with :math:`x = \nu / (\nu + t^2)`; this solves for t by Newton's method on a log scale.

    Examples
    --------
    >>> round(student_quantile(10, 0.95), 12), round(student_quantile(2 / 3, 0.99), 9)
    (2.228138851986, 491.753393757)
    """
    beyond, t = math.log1p(-level), 1.0
    for _ in range(_STEPS):
        log_tail, log_density = _student(df, t)
        # in log t, because tails are close to straight lines on that scale
        step = (log_tail - beyond) * math.exp(log_tail - log_density) / t
        t *= math.exp(max(-2.0, min(2.0, step)))
        if abs(step) < 1e-9:  # the next one would be below rounding errors
            break
    return t


def _student(df: float, t: float) -> tuple[float, float]:
    """Return logarithms: of the probability that the absolute value is above t, and of the density of that value."""
    log_density = (
        math.log(2 / math.sqrt(math.pi * df)) + _log_gamma_ratio(df / 2) - (df + 1) / 2 * math.log1p(t * t / df)
    )
    scale = t * math.exp(log_density)
    if df < 2 * _LARGE and t * t > 1:
        return math.log(scale / df * _beta_fraction(df / 2, 0.5, df / (df + t * t))), log_density
    return math.log1p(-scale * _beta_series(df / 2, t * t / (df + t * t))), log_density


def _beta_series(b: float, y: float) -> float:
    """Return the series of the incomplete beta function of 1/2 and b (DLMF 8.17.8), all of whose terms are positive."""
    part, total, n = 1.0, 1.0, 0
    while part >= 1e-17 * total:
        n += 1
        part *= (b + n - 0.5) * y / (n + 0.5)
        total += part
    return total


def _log_gamma_ratio(a: float) -> float:
    """Return log(Gamma(a + 1/2) / Gamma(a)): a difference of `lgamma` would cancel most digits of a large one."""
    total = 0.0
    while a < _LARGE:
        total += math.log(a / (a + 0.5))
        a += 1
    series = (-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432)
    return total + math.log(a) / 2 + sum(part / a ** (2 * at + 1) for at, part in enumerate(series))


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22), by the method of Lentz."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    total, change, m = d, math.inf, 0
    while abs(change) > 1e-15:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for part in (even, odd):
            d, c = 1 / (1 + part * d), 1 + part / c
            total *= c * d
        change = c * d - 1
    return total


@dataclass(frozen=True, eq=False)
class Units:
    r"""Values of independent units in fine bins that can be merged; they give intervals for the mean of bounded values.

    A unit is an instance, or a user with several. Its value is a sum divided by its size, and the mean is the total of
    all sums divided by the total of all sizes. Values whose first ten binary digits agree are in one bin, which keeps
    their sum, so that means are exact and spreads are exact to 1e-6; merging in any order gives the same bins.

    A few units may not include the rare ones that decide a mean: users who lose everything, say. So 2/3 of a unit with
    the most extreme possible value is added to those that were seen. With values :math:`x_i`, the least possible value
    e and :math:`N = n + 2/3`,

    .. math:: l(m) = \max_a \sum_i \log(1 + a (x_i - m)) + \tfrac23 \log(1 + a (e - m))

    is the empirical log likelihood ratio of a mean of m (Owen, 1988). If it were the ratio for normal values,
    :math:`\sqrt{(N - 1)(\exp(2 l / N) - 1)}` would be Student's statistic, so it is compared with Student's
    distribution with N - 1 degrees of freedom. For values of 0 and 1 the interval is close to that of Clopper
    and Pearson. The extreme unit is as large as the unit of the average instance.

    Examples
    --------
    >>> hits = Units.of(np.repeat([0.0, 1.0], [95, 5]))
    >>> low, high = hits.interval(0.95, Interval(0.0, 1.0))
    >>> round(low, 3), round(high, 3)                                 # Clopper and Pearson: 0.016 to 0.113
    (0.018, 0.113)
    >>> halves = Units.of(np.repeat([0.0, 1.0], [48, 2])) + Units.of(np.repeat([0.0, 1.0], [47, 3]))
    >>> halves.interval(0.95, Interval(0.0, 1.0)) == Interval(low, high)
    True
    >>> low, high = Units.of(np.zeros(5)).interval(0.95, Interval(-1.0, 1.0))     # five users without a difference
    >>> round(low, 2), round(high, 2)
    (-0.57, 0.57)
    """

    counts: Floats
    sums: Floats
    sizes: Floats

    @classmethod
    def of(cls, values: Floats, sizes: Floats | None = None, clusters: Ints | None = None) -> Units:
        """Return the units of values; values of a cluster form one unit. NaN values are left out.

        Parameters
        ----------
        values : array of float
            Value of each instance, times its size if it has one.
        sizes : array of float, optional
            Above 0; 1 by default.
        clusters : array of int, optional
            The user of each instance, if some have several.
        """
        if (undefined := np.isnan(values)).any():
            kept = ~undefined
            values, sizes = values[kept], None if sizes is None else sizes[kept]
            clusters = None if clusters is None else clusters[kept]
        if clusters is not None:
            _, which = np.unique(clusters, return_inverse=True)
            values, sizes = (np.bincount(which, each).astype(np.float64) for each in (values, sizes))
        if sizes is None:
            which = places_among_distinct(_leading_bits(values))
            counts = np.bincount(which).astype(np.float64)
            return cls(counts, np.bincount(which, values).astype(np.float64), counts)
        return _binned(np.ones(values.size), values, sizes)

    def __add__(self, other: Units) -> Units:
        mine, others = (self.counts, self.sums, self.sizes), (other.counts, other.sums, other.sizes)
        return _binned(*(np.concatenate(pair) for pair in zip(mine, others, strict=True)))

    def negative(self) -> Units:
        """Return the same with all values negated."""
        return Units(self.counts, -self.sums, self.sizes)

    @property
    def n(self) -> int:
        """Number of units."""
        return int(self.counts.sum())

    @property
    def total(self) -> float:
        """Size of all units."""
        return float(self.sizes.sum())

    @property
    def mean(self) -> float:
        """Sum of all sums divided by the total size; NaN without units."""
        return float(self.sums.sum()) / (self.total or math.nan)

    def interval(self, level: float, ends: Interval, hidden: float = 0.0) -> Interval:
        """Return the interval of the mean; NaN below two units.

        Parameters
        ----------
        level : float
        ends : Interval
            The smallest and largest values that a unit could have; observed values beyond them widen them.
        hidden : float
            Error of the mean that the spread over the units does not show.
        """
        return Interval(self.low(level, ends.low, hidden), self.high(level, ends.high, hidden))

    def low(self, level: float, least: float, hidden: float = 0.0) -> float:
        """Return the lower end of the interval; it is never below the least value."""
        return math.nan if self.n < 2 else max(_End.of(self, least).at(level, hidden), least)

    def high(self, level: float, most: float, hidden: float = 0.0) -> float:
        """Return the upper end of the interval; it is never above the largest value."""
        return -self.negative().low(level, -most, hidden)

    def p_above(self, m: float, least: float, hidden: float = 0.0) -> float:
        """Return the one-sided p-value of a mean of at most m; NaN below two units."""
        return math.nan if self.n < 2 else _End.of(self, least).p_value(m, hidden)

    def p_below(self, m: float, most: float, hidden: float = 0.0) -> float:
        """Return the one-sided p-value of a mean of at least m; NaN below two units."""
        return self.negative().p_above(-m, -most, hidden)


def _binned(counts: Floats, sums: Floats, sizes: Floats) -> Units:
    """Return units in bins by their values and sizes."""
    values, per_unit = (places_among_distinct(_leading_bits(each)) for each in (sums / sizes, sizes / counts))
    which = places_among_distinct(values * (per_unit.max(initial=0) + 1) + per_unit)
    return Units(*(np.bincount(which, each).astype(np.float64) for each in (counts, sums, sizes)))


def _leading_bits(numbers: Floats) -> Ints:
    """Return sign, exponent and the first ten binary digits of numbers as whole numbers."""
    # minus zero becomes zero
    return ((numbers * _OFF_EDGES + 0.0).view(np.uint64) >> _LEFT_OUT).astype(np.int64)


@dataclass(frozen=True, eq=False)
class _End:
    """The lower end of the interval of a mean: units, of which the last is the unseen one with the least value."""

    counts: Floats
    sums: Floats
    sizes: Floats
    seen: float
    least: float

    @classmethod
    def of(cls, units: Units, least: float) -> _End:
        per_unit, values = units.sizes / units.counts, units.sums / units.sizes
        least = min(least, float(values.min()))
        extreme = float(units.sizes @ per_unit) / units.total
        sums = np.append(units.sums / units.counts, least * extreme)
        return cls(np.append(units.counts, UNSEEN), sums, np.append(per_unit, extreme), units.mean, least)

    @property
    def n(self) -> float:
        return float(self.counts.sum())

    @property
    def mean(self) -> float:
        """Mean of all units, the unseen one included."""
        return float(self.counts @ self.sums) / float(self.counts @ self.sizes)

    def at(self, level: float, hidden: float) -> float:
        """Return where the one-sided p-value is half the error that the level allows."""
        if self.mean - self.least <= _ROUNDING * max(abs(self.mean), abs(self.least)):
            return self.least
        quantile = student_quantile(self.n - 1, level)
        end = self._where(quantile, self.n / 2 * math.log1p(quantile**2 / (self.n - 1)))
        return end if hidden == 0 else self.seen - math.hypot(self.seen - end, quantile * hidden)

    def p_value(self, m: float, hidden: float) -> float:
        """Return the one-sided p-value of a mean of at most m."""
        from scipy.special import stdtr

        if m >= self.mean - _ROUNDING * abs(self.mean):
            return 0.5
        if m <= self.least:
            return 0.0
        ratio = max(self._ratio(m, 0.0)[0], 0.0)  # rounding may make it negative where m is nearly the mean
        statistic = math.sqrt((self.n - 1) * math.expm1(2 * ratio / self.n))
        if hidden > 0:
            statistic /= math.hypot(1.0, statistic * hidden / (self.seen - m))
        return float(stdtr(self.n - 1, -statistic))

    def _where(self, quantile: float, target: float) -> float:
        """Return where the likelihood ratio is `target`, by Newton's method from the end of Student's interval."""
        low, high, slope = self.least, self.mean, 0.0
        precision = _PRECISION * (high - low)
        gaps = self.sums - high * self.sizes
        error = math.sqrt(float(self.counts @ gaps**2) / (self.n - 1)) / float(self.counts @ self.sizes)
        m = max(high - quantile * error * math.sqrt(self.n), low + (high - low) / 100)
        for _ in range(_STEPS):
            ratio, slope, steepness = self._ratio(m, slope)
            low, high = (m, high) if ratio > target else (low, m)
            step = m + (ratio - target) / steepness if steepness > 0 else math.nan
            if abs(step - m) <= precision:
                return step
            m = step if low < step < high else low + (high - low) / 2
        return m

    def _ratio(self, m: float, start: float) -> tuple[float, float, float]:
        """Return the log likelihood ratio of a mean of m, the multiplier a, and by how much it falls with m."""
        gaps = self.sums - m * self.sizes
        low, high = 0.0, -1 / float(gaps.min())
        a = start if start < high else 0.0
        for _ in range(_STEPS):
            part = gaps / (1 + a * gaps)
            gradient = float(self.counts @ part)
            low, high = (a, high) if gradient > 0 else (low, a)
            step = a + gradient / float(self.counts @ (part * part))
            if abs(step - a) <= _OF_MULTIPLIER * a:
                break
            a = step if low < step < high else low + (high - low) / 2
        steepness = a * float(self.counts @ (self.sizes / (1 + a * gaps)))
        return float(self.counts @ np.log1p(a * gaps)), a, steepness


def mean_of(values: Floats) -> float:
    """Return the mean of the values that are defined; NaN if none are."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else math.nan


Parts = dict[Any, Any]
"""Partial results, which add up with ``+``, by their subject: recommender, group, place of the metric, pair."""
Step = Callable[[Mapping[str, Ranks], Groups | None, Rng], Parts]
"""Makes partial results of some instances, in these groups; the seed is for random orders of ties."""


def added_up(parts: Iterable[Parts]) -> Parts:
    """Add up partial results with the same key.

    Examples
    --------
    >>> added_up([{"a": 1}, {"b": 2, "a": 3}])
    {'a': 4, 'b': 2}
    """
    total: Parts = {}
    for part in parts:
        for key, value in part.items():
            total[key] = total[key] + value if key in total else value
    return total


@dataclass(frozen=True)
class Moments:
    """The mean of independent values v with weights w, which is the sum of v divided by the sum of w, and its error.

    The error rests on the deviations e = v - mean w, which sum to 0.

    Attributes
    ----------
    n : int
    mean : float
        NaN if there are none.
    weight, ww, ee, ew : float
        Sums of w, w^2, e^2 and e w.

    Examples
    --------
    >>> v = np.array([0.5, 0.4, 0.9])
    >>> whole = Moments.of(v.mean(), v - v.mean())
    >>> parts = [Moments.of(own.mean(), own - own.mean()) for own in (v[:1], v[1:])]
    >>> bool(np.isclose((parts[0] + parts[1]).standard_error, whole.standard_error))
    True
    """

    n: int
    mean: float
    weight: float
    ww: float
    ee: float
    ew: float = 0.0

    @classmethod
    def of(cls, mean: float, deviations: Floats, weights: Floats | None = None) -> Moments:
        """Return the moments from the mean and the deviations; without weights all weigh 1."""
        n, ee = deviations.size, float(np.square(deviations).sum())
        if weights is None:
            return cls(n, mean, n, n, ee)
        return cls(n, mean, float(weights.sum()), float(weights @ weights), ee, float(deviations @ weights))

    def __add__(self, other: Moments) -> Moments:
        if not (self.n and other.n):
            return self if self.n else other
        weight = self.weight + other.weight
        mean = self.mean + (other.mean - self.mean) * other.weight / weight
        (ee, ew), (others_ee, others_ew) = self._around(mean), other._around(mean)
        return Moments(self.n + other.n, mean, weight, self.ww + other.ww, ee + others_ee, ew + others_ew)

    def _around(self, mean: float) -> tuple[float, float]:
        """Return the sums of e^2 and e w for the deviations from another mean."""
        step = mean - self.mean
        return self.ee - 2 * step * self.ew + step**2 * self.ww, self.ew - step * self.ww

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; NaN below two values."""
        if self.n < 2:
            return math.nan
        return math.sqrt(self.n / (self.n - 1) * max(self.ee, 0.0)) / self.weight


ENGINES = {"pyspark": "truerank.engines.spark_evaluation"}
"""Modules that make and add up partial results where the dataframes are, by the library of the dataframes.

`evaluated` does so for each recommender alone; `compared` for all of them on their common instances.
"""


def engine_of(ranks: Mapping[str, Any]) -> ModuleType | None:
    """Return the engine for these ranks; None if they are in this process.

    Examples
    --------
    >>> import truerank as tr
    >>> engine_of({"A": tr.Ranks.from_ranks([1], n=5)}) is None
    True
    """
    each = [run for one in ranks.values() for run in (one if isinstance(one, list | tuple) else [one])]
    libraries = {type(one).__module__.partition(".")[0] for one in each}
    names = libraries & set(ENGINES)
    return import_module(ENGINES[names.pop()]) if names else None


def attainable(ranks: Ranks, metric: Metric) -> Interval | None:
    """Return the smallest and largest values that any of the instances could have, in any order of the candidates.

    None if they are not known, for metrics that may not be monotone in the rank. For a corrected metric they are those
    of the exact one, unless the correction knows its own; single corrected values may lie beyond them.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([[3, 7], [2]], n=[20, 10])
    >>> attainable(ranks, tr.metric("precision@10")), attainable(ranks, tr.metric("mean-rank"))
    (Interval(low=0.0, high=0.2), Interval(low=1.0, high=19.5))
    """
    if (own := metric.attainable(ranks)) is not None:
        return Interval(*own)
    exact = metric.estimated
    graded = ranks.grades is not None
    sizes, n = (ranks.n_relevant, _candidates(ranks, metric)) if graded else _extreme_kinds(ranks, metric)
    ends = [values_at_one_end(sizes, n, exact, _ordered(ranks, best=first), first=first) for first in (False, True)]
    defined = np.concatenate(ends)
    defined = defined[~np.isnan(defined)]
    return Interval(float(defined.min()), float(defined.max())) if defined.size else None


def attainable_with(ends: Interval | None, seen: Floats) -> Interval | None:
    """Return the attainable range, None if not known, widened to observed values, such as 0 without relevant items."""
    if not seen.size:
        return ends
    hull = Interval(float(seen.min()), float(seen.max()))
    return hull if ends is None else Interval(min(ends.low, hull.low), max(ends.high, hull.high))


def attainable_of_items(ranks: Ranks, metric: Metric, counts: Ints, weights: Floats) -> Interval | None:
    """Return the smallest and largest values per weight that some of the relevant items of instances could add.

    Parameters
    ----------
    ranks : Ranks
    metric : Metric
    counts : array of int
        How many relevant items of each instance these are.
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
    found = [_extreme_shares(some, metric, counts, *ends) for ends in product((False, True), repeat=2)]
    ends = np.concatenate([shares / weights for shares in found])
    return None if np.isnan(ends).any() else Interval(float(ends.min()), float(ends.max()))


def _extreme_shares(ranks: Ranks, metric: Metric, counts: Ints, first: bool, largest: bool) -> Floats:
    """Return the largest or the least that this many items add if all come first, or last; NaN if not monotone."""
    there = _at_one_end(ranks.n_relevant, _candidates(ranks, metric), _ordered(ranks, best=first), first=first)
    terms = metric.estimated.terms(there)
    if any(part.term.shape == "any" for part in terms):
        return np.full(len(ranks), np.nan)
    added = item_terms(there, terms)
    order = np.lexsort((-added if largest else added, there.instance))
    within = np.arange(added.size) - there.indptr[there.instance]
    kept = within < counts[there.instance]
    return np.bincount(there.instance[kept], added[order][kept], minlength=len(ranks)).astype(np.float64)


def _candidates(ranks: Ranks, metric: Metric) -> Ints:
    """Return the number of candidates that the metric, or the metric it estimates, is about."""
    n = ranks.n_candidates if metric.estimated is metric else ranks.n_catalogue
    # items below the depth of cut lists are not counted among the candidates
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
