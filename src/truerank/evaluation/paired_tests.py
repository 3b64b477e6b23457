"""Tests of paired differences: empirical likelihood, Student's t, bootstrap, randomisation; adjusted for their number.

A test is given a `PairedSample`, the sums of values over the instances of each independent unit (an instance, or a user
with several instances), and pairs of its columns. The difference of a pair is ``sum(d) / sum(sizes)``, where ``d`` is
the difference of the two columns and the sizes are the numbers of instances of the units.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truerank.core.checks import Floats, InputError, Ints, Rng, as_rng, check_choice, check_whole, frozen
from truerank.core.csr import bounds
from truerank.core.ranks import Ranks
from truerank.core.threads import available_threads, progress_bar, share
from truerank.estimators.corrected import AnyMetric
from truerank.evaluation.intervals import Interval, Units, check_level, student_interval
from truerank.evaluation.per_instance import Ties, values

# Cochran's rule: a mean is close enough to normal if there are this many values per unit of squared skewness
_PER_SKEWNESS = 25.0

Pair = tuple[int, int]
"""A column, and the column that is subtracted from it."""


@dataclass(frozen=True, eq=False)
class PairedSample:
    """Values measured on independent units.

    Attributes
    ----------
    sums : array of shape (n_units, n_columns)
        Sum of the values of each unit's instances.
    sizes : array of length n_units
        Number of instances of each unit, or their total weight; above 0.
    hidden : array of length n_columns, optional
        Error of each column's mean that its spread over the units does not show, as for estimators that pool them.
    largest : array of length n_columns, optional
        The largest difference that an instance could have, in either direction; by default that of any two values seen.
    """

    sums: Floats
    sizes: Floats
    hidden: Floats | None = None
    largest: Floats | None = None

    @classmethod
    def of(
        cls,
        values: Floats,
        weights: Floats | None = None,
        clusters: Ints | None = None,
        hidden: Floats | None = None,
        largest: Floats | None = None,
    ) -> PairedSample:
        """Return the sample of values, one row per instance; instances may have weights and belong to clusters.

        Examples
        --------
        >>> sample = PairedSample.of(np.array([[1.0], [2.0], [3.0]]), clusters=np.array([0, 1, 0]))
        >>> sample.sums.tolist(), sample.sizes.tolist()
        ([[4.0], [2.0]], [2.0, 1.0])
        """
        sizes = np.ones(len(values)) if weights is None else weights
        if clusters is None:
            return cls(np.asfortranarray(values), sizes, hidden, largest)
        _, which = np.unique(clusters, return_inverse=True)
        sums = np.column_stack([np.bincount(which, column) for column in values.T])
        sizes = np.bincount(which, sizes).astype(np.float64)
        return cls(np.asfortranarray(sums, dtype=np.float64), sizes, hidden, largest)

    @property
    def total(self) -> float:
        """Number of all instances, or their weight; NaN if there are none."""
        return float(self.sizes.sum()) or math.nan

    def deviations(self, pair: Pair) -> Floats:
        """Return the deviation of each unit from the mean difference; they sum to 0."""
        difference = self.sums[:, pair[0]] - self.sums[:, pair[1]]
        return difference - difference.sum() / self.total * self.sizes

    def difference(self, pair: Pair) -> float:
        """Return the mean difference of two columns."""
        return float((self.sums[:, pair[0]] - self.sums[:, pair[1]]).sum() / self.total)

    def better(self, pair: Pair) -> Floats:
        """Return for how many units either column has the larger value, up to rounding."""
        one, other = (self.sums[:, at] for at in pair)
        slack = 1e-12 * (np.abs(one) + np.abs(other))
        return np.array([(one > other + slack).sum(), (other > one + slack).sum()], dtype=np.float64)

    def units(self, pair: Pair) -> Units:
        """Return the differences of the units."""
        return Units.of(self.sums[:, pair[0]] - self.sums[:, pair[1]], self.sizes)

    def largest_difference(self, pair: Pair) -> float:
        """Return the largest difference that an instance could have, in either direction."""
        if self.largest is not None:
            return float(self.largest[pair[0]])
        return float(np.ptp(self.sums[:, pair] / self.sizes[:, None])) if self.sizes.size else 0.0

    def standard_error(self, pair: Pair) -> float:
        """Return the standard error of the difference; NaN below two units.

        With units of size 1 it is the standard deviation over the square root of their number; otherwise that of a
        ratio, by linearisation.
        """
        n = self.sizes.size
        if n < 2:
            return math.nan
        seen = math.sqrt(n / (n - 1) * np.square(self.deviations(pair)).sum()) / self.sizes.sum()
        return math.hypot(seen, self.hidden_error(pair))

    def hidden_error(self, pair: Pair) -> float:
        """Return the error of the difference that its spread over the units does not show."""
        return 0.0 if self.hidden is None else math.hypot(self.hidden[pair[0]], self.hidden[pair[1]])


class Outcome(ABC):
    """What a test says about one pair."""

    @property
    @abstractmethod
    def p_value(self) -> float:
        """Two-sided p-value of no difference."""

    @abstractmethod
    def confidence_interval(self, level: float) -> Interval:
        """Return an interval for the difference."""

    @property
    def too_skewed(self) -> bool:
        """Whether the test needs normal means, and the differences are too skewed for them."""
        return False

    def merged(self, other: Outcome, largest: float) -> Outcome:
        """Return the outcome of the same test on both parts; no instance can differ by more than `largest`."""
        raise InputError(f"a test of parts of the instances must be 'likelihood', got {type(self).__name__}.")


class PairedTest(ABC):
    """A way to test differences; subclass it to add one."""

    @abstractmethod
    def outcomes(self, sample: PairedSample, pairs: Sequence[Pair]) -> list[Outcome]:
        """Return the outcome for each pair of columns."""


@dataclass(frozen=True)
class Reversed(Outcome):
    """The same outcome with the two recommenders exchanged."""

    outcome: Outcome

    @property
    def p_value(self) -> float:
        return self.outcome.p_value

    @property
    def too_skewed(self) -> bool:
        return self.outcome.too_skewed

    def confidence_interval(self, level: float) -> Interval:
        low, high = self.outcome.confidence_interval(level)
        return Interval(-high, -low)


@dataclass(frozen=True)
class LikelihoodOutcome(Outcome):
    """The empirical likelihood of the mean difference.

    Attributes
    ----------
    units : Units
        The differences of the independent units.
    largest : float
        The largest difference that an instance could have, in either direction.
    hidden : float
        Error of the difference that its spread over the units does not show.
    """

    units: Units
    largest: float
    hidden: float = 0.0

    @property
    def p_value(self) -> float:
        above = self.units.p_above(0.0, -self.largest, self.hidden)
        return 2 * min(above, self.units.p_below(0.0, self.largest, self.hidden))

    def confidence_interval(self, level: float) -> Interval:
        return self.units.interval(level, Interval(-self.largest, self.largest), self.hidden)

    def merged(self, other: Outcome, largest: float) -> Outcome:
        if not isinstance(other, LikelihoodOutcome) or self.hidden or other.hidden:
            return super().merged(other, largest)
        return LikelihoodOutcome(self.units + other.units, largest)


@dataclass(frozen=True)
class LikelihoodTest(PairedTest):
    """Empirical likelihood that allows for unseen differences: good for any number of instances.

    Examples
    --------
    >>> sample = PairedSample(np.array([[1.0, 0.0]] * 2), np.ones(2), largest=np.ones(2))
    >>> [outcome] = LikelihoodTest().outcomes(sample, [(0, 1)])                             # 2 users, 1 against 0
    >>> round(outcome.p_value, 2)
    0.57
    """

    def outcomes(self, sample: PairedSample, pairs: Sequence[Pair]) -> list[Outcome]:
        return [likelihood_outcome(sample, pair) for pair in pairs]


def likelihood_outcome(sample: PairedSample, pair: Pair) -> LikelihoodOutcome:
    """Return the outcome of the test by empirical likelihood of one pair."""
    return LikelihoodOutcome(sample.units(pair), sample.largest_difference(pair), sample.hidden_error(pair))


@dataclass(frozen=True)
class StudentOutcome(Outcome):
    """Student's t distribution for the difference divided by its standard error."""

    difference: float
    standard_error: float
    n_units: int
    skewness: float = 0.0

    @property
    def too_skewed(self) -> bool:
        return self.n_units < _PER_SKEWNESS * self.skewness**2

    @property
    def p_value(self) -> float:
        from scipy.special import stdtr

        if self.n_units < 2:
            return math.nan
        if self.standard_error == 0:
            return 1.0 if self.difference == 0 else 0.0
        return float(2 * stdtr(self.n_units - 1, -abs(self.difference) / self.standard_error))

    def confidence_interval(self, level: float) -> Interval:
        return student_interval(self.difference, self.standard_error, self.n_units, level)


@dataclass(frozen=True)
class StudentTest(PairedTest):
    """The paired t-test: exact if differences are normal, and good for hundreds of instances if none are rare.

    Examples
    --------
    >>> sample = PairedSample(np.array([[0.5, 0.1], [0.4, 0.3], [0.9, 0.2]]), np.ones(3))
    >>> [outcome] = StudentTest().outcomes(sample, [(0, 1)])
    >>> round(outcome.p_value, 4)
    0.1472
    """

    def outcomes(self, sample: PairedSample, pairs: Sequence[Pair]) -> list[Outcome]:
        return [student_outcome(sample, pair) for pair in pairs]


def student_outcome(sample: PairedSample, pair: Pair) -> StudentOutcome:
    """Return the outcome of the t-test of one pair."""
    n, gaps = sample.sizes.size, sample.deviations(pair)
    squares = float(np.square(gaps).sum())
    skewness = float((gaps**3).sum()) * math.sqrt(n) / squares**1.5 if squares > 0 else 0.0
    return StudentOutcome(sample.difference(pair), sample.standard_error(pair), n, skewness)


# replicates and units whose weights are held at once by each thread: they stay in the cache, and their products are so
# small that BLAS does not start threads of its own, which would wait for each other
_REPLICATES = 64
_UNITS = 1 << 10
# random levels have 16 bits, which Poisson numbers beyond the largest hardly ever need
_LEVELS = 1 << 16
_LARGEST = 30
# Poisson counts are expected to add up to this many standard deviations less than the number of draws
_DEVIATIONS = 6.0

Weights = NDArray[np.uint8]
"""How often each unit counts in each replicate: a row per replicate."""
Draw = Callable[[np.random.Generator, tuple[int, int]], Weights]
"""Draws weights of a given shape."""


def bootstrap_totals(values: Floats, draws: Ints, rng: np.random.Generator, *, progress: bool = False) -> Floats:
    """Return the totals over units that are drawn with replacement.

    Parameters
    ----------
    values : array of shape (n_units, n_columns)
    draws : array of length n_replicates
        How many units are drawn in each replicate.
    rng : numpy.random.Generator
    progress : bool
        Whether to show a progress bar, on a terminal only, when it takes more than a second.

    Returns
    -------
    array of shape (n_replicates, n_columns)

    Notes
    -----
    The numbers of draws of the units are first independent Poisson numbers, with a mean a little below what is needed;
    the missing draws are then made one by one. Together they have the multinomial law of draws with replacement, up to
    2^-16 in the Poisson probabilities, in a fraction of the time of single draws.

    Examples
    --------
    >>> totals = bootstrap_totals(np.array([[1.0], [2.0]]), np.full(1_000, 2), np.random.default_rng(0))
    >>> np.unique(totals).tolist(), bool(abs(totals.mean() - 3) < 0.1)
    ([2.0, 3.0, 4.0], True)
    """
    thresholds = _poisson_thresholds(int(draws.min()), len(values))

    def counts(own: np.random.Generator, shape: tuple[int, int]) -> Weights:
        level, found = own.integers(_LEVELS, size=shape, dtype=np.uint16), np.zeros(shape, dtype=np.uint8)
        for threshold in thresholds:
            found += level >= threshold
        return found

    def run(own: np.random.Generator, part: slice) -> Floats:
        totals = _weighted(own, values, part, counts)
        missing = np.maximum(draws[part] - totals[:, -1], 0).astype(np.int64)
        return totals[:, :-1] + _drawn_totals(own, values, missing)

    return _shared(draws.size, run, rng, progress)


def exchange_totals(values: Floats, replicates: int, rng: np.random.Generator, *, progress: bool = False) -> Floats:
    """Return the totals over units that are each included with probability one half.

    Examples
    --------
    >>> np.unique(exchange_totals(np.array([[1.0], [2.0]]), 100, np.random.default_rng(0))).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """

    def coins(own: np.random.Generator, shape: tuple[int, int]) -> Weights:
        bits = np.unpackbits(own.integers(256, size=(shape[0], -(-shape[1] // 8)), dtype=np.uint8), axis=1)
        return bits[:, : shape[1]]

    def run(own: np.random.Generator, part: slice) -> Floats:
        return _weighted(own, values, part, coins)[:, :-1]

    return _shared(replicates, run, rng, progress)


def permuted_ranges(values: Floats, replicates: int, rng: np.random.Generator, *, progress: bool = False) -> Floats:
    """Return by how much the largest column total exceeds the smallest if each unit's values are permuted.

    Examples
    --------
    >>> np.unique(permuted_ranges(np.array([[1.0, 0.0], [2.0, 0.0]]), 100, np.random.default_rng(0))).tolist()
    [1.0, 3.0]
    """
    busy = np.ascontiguousarray(values[np.ptp(values, axis=1) > 0])

    def run(own: np.random.Generator, part: slice) -> Floats:
        totals = (own.permuted(busy, axis=1).sum(axis=0) for _ in range(part.start, part.stop))
        return np.array([np.ptp(each) for each in totals])

    return _shared(replicates, run, rng, progress)


def _shared(
    replicates: int, run: Callable[[np.random.Generator, slice], Floats], rng: np.random.Generator, progress: bool
) -> Floats:
    """Run all replicates, some at a time; the results are the same for any number of threads."""
    parts = [slice(at, min(at + _REPLICATES, replicates)) for at in range(0, replicates, _REPLICATES)]

    def one(task: tuple[np.random.Generator, slice], stopped: Event) -> Floats:
        return np.empty(0) if stopped.is_set() else run(*task)

    tasks = list(zip(rng.spawn(len(parts)), parts, strict=True))
    with progress_bar("resamples", progress, total=replicates, delay=1.0, leave=False) as bar:
        return np.concatenate(share(one, tasks, available_threads(), lambda totals: bar.update(len(totals))))


def _weighted(rng: np.random.Generator, values: Floats, part: slice, draw: Draw) -> Floats:
    """Return the totals of some replicates, and in a last column those of the weights."""
    count = part.stop - part.start
    totals = np.zeros((count, values.shape[1] + 1))
    for start in range(0, len(values), _UNITS):
        block = values[start : start + _UNITS]
        weights = draw(rng, (count, len(block))).astype(np.float64)
        totals[:, :-1] += weights @ block
        totals[:, -1] += weights.sum(axis=1)
    return totals


def _poisson_thresholds(draws: int, n: int) -> NDArray[np.uint16]:
    """Return thresholds: the number of them that a random level reaches is a Poisson number.

    Its mean is a little below the number of draws per unit, so that the numbers of all units add up to less.
    """
    from scipy.special import pdtr

    mean = max(draws - _DEVIATIONS * draws**0.5, 0.0) / max(n, 1)
    levels = np.round(pdtr(np.arange(_LARGEST), mean) * _LEVELS)
    return levels[levels < _LEVELS].astype(np.uint16)


def _drawn_totals(rng: np.random.Generator, values: Floats, draws: Ints) -> Floats:
    """Return the totals over units that are drawn one by one, a given number for each replicate."""
    from scipy.sparse import csr_array

    n, indptr = len(values), bounds(draws)
    drawn = rng.integers(max(n, 1), size=indptr[-1])
    return np.asarray(csr_array((np.ones(drawn.size), drawn, indptr), shape=(draws.size, n)) @ values)


# differences of means this small, relative to the largest, are rounding
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class BootstrapOutcome(Outcome):
    """Differences of resampled units, corrected for bias and skewness (BCa; Efron, 1987).

    Attributes
    ----------
    replicates : array of float, ascending
        The difference in each resample.
    bias : float
        Normal quantile of the share of replicates below the difference (z0).
    acceleration : float
        A sixth of the skewness of the jackknife values (a).
    least : float
        Smallest p-value. Resamples of a few units may never change the sign, although it could be due to chance: k
        differences all have the same sign with a probability of 2 / 2^k.
    """

    replicates: Floats
    bias: float
    acceleration: float
    least: float = 0.0

    @classmethod
    def of(cls, replicates: Floats, difference: float, jackknife: Floats, least: float = 0.0) -> BootstrapOutcome:
        """Return the outcome from resampled differences, and from the differences with one unit left out."""
        from scipy.special import ndtri

        slack = _ROUNDING * np.abs(replicates).max(initial=abs(difference))
        below, upto = (replicates < difference - slack).sum(), (replicates <= difference + slack).sum()
        gaps = jackknife.mean() - jackknife
        squares = np.square(gaps).sum()
        acceleration = float((gaps * np.square(gaps)).sum() / (6 * squares**1.5)) if squares > 0 else 0.0
        return cls(frozen(np.sort(replicates)), float(ndtri((below + upto) / 2 / replicates.size)), acceleration, least)

    @property
    def p_value(self) -> float:
        """Twice the smallest one-sided level at which the interval leaves out 0; never 0 itself."""
        from scipy.special import ndtr, ndtri

        count = self.replicates.size
        if count == 0:
            return math.nan
        slack = _ROUNDING * np.abs(self.replicates).max()
        if slack == 0:
            return 1.0
        below = ((self.replicates < -slack).sum() + (self.replicates <= slack).sum()) / 2
        share = (np.clip(below, 0.5, count - 0.5) + 0.5) / (count + 1)
        # the level whose BCa interval ends at 0: the BCa formula solved for its normal quantile
        gap = ndtri(share) - self.bias
        one_sided = float(ndtr(gap / (1 + self.acceleration * gap) - self.bias))
        return min(max(2 * min(one_sided, 1 - one_sided), self.least), 1.0)

    def confidence_interval(self, level: float) -> Interval:
        """Return the BCa interval, widened to include 0 where the smallest p-value exceeds the error."""
        low, high = self._bca_interval(level)
        return Interval(min(low, 0.0), max(high, 0.0)) if self.least > 1 - level else Interval(low, high)

    def _bca_interval(self, level: float) -> Interval:
        from scipy.special import ndtr, ndtri

        if self.replicates.size == 0:
            return Interval(math.nan, math.nan)
        if self.replicates[0] == self.replicates[-1]:
            return Interval(float(self.replicates[0]), float(self.replicates[0]))
        moved = self.bias + ndtri(np.array([0.5 - level / 2, 0.5 + level / 2]))
        shares = ndtr(self.bias + moved / (1 - self.acceleration * moved))
        low, high = np.quantile(self.replicates, shares)
        return Interval(float(low), float(high))


@dataclass(frozen=True)
class _Resampling(PairedTest):
    """A test by random replicates of the sample."""

    replicates: int = 10_000
    rng: Rng = None
    progress: bool = False

    def __post_init__(self) -> None:
        check_whole("replicates", self.replicates, 100)  # fewer give no usable p-values


@dataclass(frozen=True)
class Bootstrap(_Resampling):
    """Resampling of units with replacement: for few instances, or a few large differences among many zeros.

    All pairs and metrics see the same resamples, in memory that does not grow with their number.
    """

    def outcomes(self, sample: PairedSample, pairs: Sequence[Pair]) -> list[Outcome]:
        if sample.sizes.size < 2:
            return [BootstrapOutcome(np.zeros(0), 0.0, 0.0) for _ in pairs]
        means = self._resampled(sample)
        return [
            BootstrapOutcome.of(means[:, one] - means[:, other], *_around(sample, (one, other)), least)
            for one, other in pairs
            for least in [2.0 ** (1 - sample.better((one, other)).sum())]
        ]

    def interval(self, ranks: Ranks, metric: AnyMetric, level: float = 0.95, *, ties: Ties = "expected") -> Interval:
        """Return the BCa interval for the mean of a metric, for few instances or skewed values.

        Users are resampled, with all their instances if they have several. Instances where the metric is undefined are
        left out.

        Parameters
        ----------
        ranks : Ranks
        metric : str, Metric or function
        level : float
            Confidence level.
        ties : {"expected", "optimistic", "pessimistic", "random"}
            See `truerank.values`; the seed of the resamples is also that of ``"random"``.

        Examples
        --------
        >>> import truerank as tr
        >>> ranks = tr.Ranks.from_ranks([1] * 3 + [50] * 57, n=100)
        >>> low, high = tr.Bootstrap(rng=0).interval(ranks, "rr")
        >>> round(low, 2), round(high, 2)
        (0.04, 0.15)
        """
        check_level(level)
        found = values(ranks, metric, ties=ties, rng=self.rng)
        defined = ~np.isnan(found)
        if not defined.any():
            return Interval(math.nan, math.nan)
        columns = np.column_stack([found, np.zeros_like(found)])[defined]
        sample = PairedSample.of(columns, clusters=None if ranks.clusters is None else ranks.clusters[defined])
        return self.outcomes(sample, [(0, 1)])[0].confidence_interval(level)

    def _resampled(self, sample: PairedSample) -> Floats:
        """Return the mean of each column in each resample."""
        rng, n = as_rng(self.rng), sample.sizes.size
        busy = sample.sums.any(axis=1) | (sample.sizes != 1)
        both = np.column_stack([sample.sums, sample.sizes])[busy]
        # units of size 1 with all values 0, often most of them, need not be distinguished
        draws = rng.binomial(n, len(both) / n, size=self.replicates)
        totals = bootstrap_totals(both, draws, rng, progress=self.progress)
        means = totals[:, :-1] / (totals[:, -1] + n - draws)[:, None]
        return means if sample.hidden is None else means + sample.hidden * rng.standard_normal(means.shape)


def _around(sample: PairedSample, pair: Pair) -> tuple[float, Floats]:
    """Return the difference, and the difference without each of the units."""
    difference = sample.sums[:, pair[0]] - sample.sums[:, pair[1]]
    return sample.difference(pair), (difference.sum() - difference) / (sample.sizes.sum() - sample.sizes)


@dataclass(frozen=True)
class RandomisationOutcome(Outcome):
    """Share of random exchanges with a difference at least as large; the interval is by empirical likelihood."""

    likelihood: LikelihoodOutcome
    share: float

    @property
    def p_value(self) -> float:
        return self.share if self.likelihood.units.n > 1 else math.nan

    def confidence_interval(self, level: float) -> Interval:
        return self.likelihood.confidence_interval(level)


@dataclass(frozen=True)
class Randomisation(_Resampling):
    """Random exchange of the two recommenders within units: exact if they are exchangeable.

    If there are at most `replicates` possible exchanges, all are enumerated. Otherwise the p-value is one more than the
    number of random exchanges with a difference at least as large, over one more than their number (Phipson and Smyth,
    2010).
    """

    def outcomes(self, sample: PairedSample, pairs: Sequence[Pair]) -> list[Outcome]:
        busy = sample.sums[sample.sums.any(axis=1)]
        every = len(busy) < 63 and 2 ** len(busy) <= self.replicates
        rng = as_rng(self.rng)
        if every:
            exchanged = _every(len(busy)) @ busy
        else:
            exchanged = exchange_totals(busy, self.replicates, rng, progress=self.progress)
        if sample.hidden is not None:
            # exchanges shift a difference by twice the exchanged part of it
            exchanged = exchanged + sample.hidden * sample.total / 2 * rng.standard_normal(exchanged.shape)
        return [
            RandomisationOutcome(likelihood_outcome(sample, pair), _share(busy, exchanged, pair, plus_one=not every))
            for pair in pairs
        ]


def _every(n: int) -> Floats:
    """Return all ways to exchange units."""
    return ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.float64)


def _share(sums: Floats, exchanged: Floats, pair: Pair, *, plus_one: bool) -> float:
    """Return the share of exchanges with a difference at least as large as the observed one.

    Parameters
    ----------
    sums : array of shape (n_units, n_columns)
    exchanged : array of shape (n_exchanges, n_columns)
        Sums over the units that are exchanged.
    pair : pair of columns
    plus_one : bool
        Whether the observed difference counts as one more exchange.
    """
    differences = sums[:, pair[0]] - sums[:, pair[1]]
    slack = _ROUNDING * np.abs(sums[:, pair]).sum()
    others = differences.sum() - 2 * (exchanged[:, pair[0]] - exchanged[:, pair[1]])
    extreme = int((np.abs(others) >= abs(differences.sum()) - slack).sum())
    return (extreme + plus_one) / (len(exchanged) + plus_one)


TestName = Literal["likelihood", "t", "bootstrap", "randomisation", "anytime"]
"""The tests by name."""

_NOT_OFFERED = " (which is not offered, since it does not test the means: see docs/comparing.md)"


def as_test(test: TestName | PairedTest, replicates: int, rng: Rng, progress: bool) -> PairedTest:
    """Return the test with a name; resampling tests get the other arguments."""
    if isinstance(test, PairedTest):
        return test
    hint = _NOT_OFFERED if str(test) in ("wilcoxon", "sign") else ""
    check_choice("test", test, get_args(TestName), hint=hint)
    if test in ("likelihood", "t"):
        return LikelihoodTest() if test == "likelihood" else StudentTest()
    return (Bootstrap if test == "bootstrap" else Randomisation)(replicates, rng, progress)


Adjustment = Literal["holm", "max-t", "tukey", "benjamini-hochberg", "none"]
"""How p-values allow for the number of tests; "max-t" and "tukey" take the dependence between pairs into account."""


def adjusted(p_values: ArrayLike, how: Adjustment) -> Floats:
    """Return adjusted p-values; NaN stays NaN and does not count as a test.

    Parameters
    ----------
    p_values : array of float
    how : {"holm", "benjamini-hochberg", "none"}
        Holm (1979) bounds the chance of any false finding; Benjamini and Hochberg (1995) bound the expected share of
        false ones among the findings.

    Examples
    --------
    >>> adjusted([0.01, 0.04, 0.03], "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    >>> adjusted([0.01, 0.04, 0.03], "benjamini-hochberg").round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    check_choice("adjustment", how, get_args(Adjustment))
    given = np.array(p_values, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(given))
    if how == "none" or tested.size == 0:
        return given
    order = tested[np.argsort(given[tested], kind="stable")]
    rising = given[order]
    position = np.arange(1, order.size + 1)
    if how == "holm":
        given[order] = np.minimum(np.maximum.accumulate(rising * (order.size + 1 - position)), 1.0)
    else:
        given[order] = np.minimum.accumulate((rising * order.size / position)[::-1])[::-1]
    return given


def adjusted_levels(p_values: ArrayLike, how: Adjustment, level: float) -> Floats:
    r"""Return the level of each test's interval: it excludes 0 exactly where the adjusted p-value is at most 1 - level.

    With an error of :math:`\alpha`, m tests and R findings, by Holm the i-th smallest p-value has an interval with an
    error of :math:`\alpha / (m - i + 1)` if it is a finding, and of :math:`\alpha / (m - R)` otherwise. By Benjamini
    and Hochberg all have :math:`\alpha \max(R, 1) / m`, which bounds the expected share of intervals of findings that
    miss (Benjamini and Yekutieli, 2005).

    Parameters
    ----------
    p_values : array of float
        NaN does not count as a test.
    how : {"holm", "benjamini-hochberg", "none"}
    level : float
        Confidence level of the whole comparison.

    Examples
    --------
    >>> (1 - adjusted_levels([0.01, 0.4, 0.3], "holm", 0.95)).round(4).tolist()
    [0.0167, 0.025, 0.025]
    >>> (1 - adjusted_levels([0.01, 0.4, 0.03], "benjamini-hochberg", 0.95)).round(4).tolist()
    [0.0333, 0.0333, 0.0333]
    """
    given, found = np.asarray(p_values, dtype=np.float64), adjusted(p_values, how) <= 1 - level
    tests, findings = number_of_tests(given), int(found.sum())
    if how == "none" or tests == 0:
        return np.full(given.size, level)
    if how == "benjamini-hochberg":
        return np.full(given.size, 1 - (1 - level) * max(findings, 1) / tests)
    shares = np.full(given.size, max(tests - findings, 1))
    order = np.argsort(given, kind="stable")[:findings]
    shares[order] = tests - np.arange(findings)
    return 1 - (1 - level) / shares


def number_of_tests(p_values: ArrayLike) -> int:
    """Return how many p-values there are; NaN does not count."""
    return int(np.count_nonzero(~np.isnan(np.asarray(p_values, dtype=np.float64))))
