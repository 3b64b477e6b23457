"""Tests and intervals by bootstrap and by randomisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event

import numpy as np
from numpy.typing import NDArray

from truerank.core.checks import Floats, Ints, as_rng, check_whole, frozen
from truerank.core.csr import bounds
from truerank.core.ranks import Ranks
from truerank.core.samples import Rng
from truerank.core.threads import available_threads, progress_bar, share
from truerank.estimators.corrected import AnyMetric
from truerank.evaluation.intervals import Interval, check_level
from truerank.evaluation.paired_tests import (
    LikelihoodOutcome,
    Outcome,
    Pair,
    PairedSample,
    PairedTest,
    likelihood_outcome,
)
from truerank.evaluation.per_instance import Ties, values

# replicates and units whose weights are held at once by each thread: they stay in the cache, and their products are so
# small that BLAS does not start threads of its own, which would wait for each other
_REPLICATES = 64
_UNITS = 1 << 10
# random levels have 16 bits, which Poisson numbers beyond the largest hardly ever need
_LEVELS = 1 << 16
_LARGEST = 30
# Poisson counts add up to this many standard deviations less than is drawn
_DEVIATIONS = 6.0

Weights = NDArray[np.uint8]
"""How often each unit counts in each replicate: a row per replicate."""
Draw = Callable[[np.random.Generator, tuple[int, int]], Weights]
"""Draws weights of a shape."""


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
    How often units are drawn are first independent Poisson numbers, with a mean a little below what is needed; the
    missing draws are then made one by one. Together they have the multinomial law of draws with replacement, up to
    2^-16 in the Poisson probabilities, and take a fraction of the time of single draws.

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
    """Return the totals over units that are each taken with probability one half.

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


def _shared(
    replicates: int, run: Callable[[np.random.Generator, slice], Floats], rng: np.random.Generator, progress: bool
) -> Floats:
    """Run all replicates, some at a time; the same for any number of threads."""
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
    """Return levels: the number of those that a random level reaches is a Poisson number.

    Its mean is a little below the number of draws per unit, so that the numbers of all units add up to fewer.
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
    """

    replicates: Floats
    bias: float
    acceleration: float

    @classmethod
    def of(cls, replicates: Floats, difference: float, jackknife: Floats) -> BootstrapOutcome:
        """Return the outcome from resampled differences, and from those with one unit left out each."""
        from scipy.special import ndtri

        slack = _ROUNDING * np.abs(replicates).max(initial=abs(difference))
        below, upto = (replicates < difference - slack).sum(), (replicates <= difference + slack).sum()
        gaps = jackknife.mean() - jackknife
        squares = np.square(gaps).sum()
        acceleration = float((gaps * np.square(gaps)).sum() / (6 * squares**1.5)) if squares > 0 else 0.0
        return cls(frozen(np.sort(replicates)), float(ndtri((below + upto) / 2 / replicates.size)), acceleration)

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
        return min(2 * min(one_sided, 1 - one_sided), 1.0)

    def confidence_interval(self, level: float) -> Interval:
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
class Bootstrap(PairedTest):
    """Resampling of units with replacement: for few instances, or a few large differences among many zeros.

    All pairs and metrics see the same resamples, in memory that does not grow with their number.
    """

    replicates: int = 10_000
    rng: Rng = None
    progress: bool = False

    def __post_init__(self) -> None:
        check_replicates(self.replicates)

    def outcomes(self, sample: PairedSample, pairs: Sequence[Pair]) -> list[Outcome]:
        if sample.sizes.size < 2:
            return [BootstrapOutcome(np.zeros(0), 0.0, 0.0) for _ in pairs]
        means = self._resampled(sample)
        return [
            BootstrapOutcome.of(means[:, one] - means[:, other], *_around(sample, (one, other))) for one, other in pairs
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
        # units of size 1 where nothing was found, often most of them, need not be told apart
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
    """Share of random exchanges with a difference as large; the interval is by empirical likelihood."""

    likelihood: LikelihoodOutcome
    share: float

    @property
    def p_value(self) -> float:
        return self.share if self.likelihood.units.n > 1 else math.nan

    def confidence_interval(self, level: float) -> Interval:
        return self.likelihood.confidence_interval(level)


@dataclass(frozen=True)
class Randomisation(PairedTest):
    """Random exchange of the two recommenders within units: exact if it does not matter which of them is which.

    With at most `replicates` possible exchanges all of them are enumerated. Otherwise the p-value is one more than the
    number of random exchanges with a difference as large, over one more than their number (Phipson and Smyth, 2010).
    """

    replicates: int = 10_000
    rng: Rng = None
    progress: bool = False

    def __post_init__(self) -> None:
        check_replicates(self.replicates)

    def outcomes(self, sample: PairedSample, pairs: Sequence[Pair]) -> list[Outcome]:
        busy = sample.sums[sample.sums.any(axis=1)]
        every = len(busy) < 63 and 2 ** len(busy) <= self.replicates
        rng = as_rng(self.rng)
        if every:
            exchanged = _every(len(busy)) @ busy
        else:
            exchanged = exchange_totals(busy, self.replicates, rng, progress=self.progress)
        if sample.hidden is not None:
            # exchanges shift a difference by twice their own
            exchanged = exchanged + sample.hidden * sample.total / 2 * rng.standard_normal(exchanged.shape)
        return [
            RandomisationOutcome(likelihood_outcome(sample, pair), _share(busy, exchanged, pair, plus_one=not every))
            for pair in pairs
        ]


def _every(n: int) -> Floats:
    """Return all ways to exchange units."""
    return ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.float64)


def _share(sums: Floats, exchanged: Floats, pair: Pair, *, plus_one: bool) -> float:
    """Return the share of exchanges that make a difference at least as large as it is.

    Parameters
    ----------
    sums : array of shape (n_units, n_columns)
    exchanged : array of shape (n_exchanges, n_columns)
        Sums over the units that are exchanged.
    pair : pair of columns
    plus_one : bool
        Whether what was observed counts as one more exchange.
    """
    differences = sums[:, pair[0]] - sums[:, pair[1]]
    slack = _ROUNDING * np.abs(sums[:, pair]).sum()
    others = differences.sum() - 2 * (exchanged[:, pair[0]] - exchanged[:, pair[1]])
    extreme = int((np.abs(others) >= abs(differences.sum()) - slack).sum())
    return (extreme + plus_one) / (len(exchanged) + plus_one)


def check_replicates(replicates: int) -> None:
    """Refuse a number of replicates that gives no usable p-values."""
    check_whole("replicates", replicates, 100)
