"""Tests of paired differences that resample: the BCa bootstrap, and randomisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats, frozen
from truerank.errors import InputError
from truerank.evaluation.intervals import Interval
from truerank.evaluation.paired_tests import LikelihoodOutcome, Outcome, Pair, PairedTest, Sample, likelihood_outcome
from truerank.evaluation.resampled_totals import bootstrap_totals, exchange_totals
from truerank.sampling.designs import Rng

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

    def outcomes(self, sample: Sample, pairs: Sequence[Pair]) -> list[Outcome]:
        if sample.sizes.size < 2:
            return [BootstrapOutcome(np.zeros(0), 0.0, 0.0) for _ in pairs]
        means = self._resampled(sample)
        return [
            BootstrapOutcome.of(means[:, one] - means[:, other], *_around(sample, (one, other))) for one, other in pairs
        ]

    def _resampled(self, sample: Sample) -> Floats:
        """Return the mean of each column in each resample."""
        rng, n = np.random.default_rng(self.rng), sample.sizes.size
        busy = sample.sums.any(axis=1) | (sample.sizes != 1)
        both = np.column_stack([sample.sums, sample.sizes])[busy]
        # units of size 1 where nothing was found, often most of them, need not be told apart
        draws = rng.binomial(n, len(both) / n, size=self.replicates)
        totals = bootstrap_totals(both, draws, rng, progress=self.progress)
        means = totals[:, :-1] / (totals[:, -1] + n - draws)[:, None]
        return means if sample.hidden is None else means + sample.hidden * rng.standard_normal(means.shape)


def _around(sample: Sample, pair: Pair) -> tuple[float, Floats]:
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

    def outcomes(self, sample: Sample, pairs: Sequence[Pair]) -> list[Outcome]:
        busy = sample.sums[sample.sums.any(axis=1)]
        every = len(busy) < 63 and 2 ** len(busy) <= self.replicates
        rng = np.random.default_rng(self.rng)
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
    if replicates < 100:
        raise InputError(f"`replicates` must be at least 100, got {replicates}.")
