"""Tests that remain valid if looked at after every user, by the capital that a bet against equality would have won.

An ordinary test that is looked at again and again finds a difference in the end, even between equals. Here a gambler
bets on each user's difference before seeing it. If the recommenders are equal, or the first one is worse, the bets are
fair or unfavourable, and the capital, 1 at first, ever reaches x with a probability of at most 1/x (Ville, 1939),
whenever one stops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truerank.core.checks import Floats, InputError
from truerank.evaluation.intervals import Interval
from truerank.evaluation.paired_tests import Outcome, Pair, PairedSample, PairedTest

# bets are sized for a decision at this error, after 1/64, 1/32, ... of the users; any other one is valid, too
_ERROR = 0.05
_HORIZONS = 7
# horizons without a known number of users
_OPEN = tuple(2.0**power for power in range(6, 21, 2))
# the share of the capital that a bet can lose at most
_MOST = 0.75
_PRECISION = 1e-7
# remaining means this close to 0 are rounding
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Bets:
    r"""Bets on the mean of values from 0 to 1, seen one by one in an order that does not depend on them.

    The bet that the mean exceeds m multiplies the capital by :math:`1 + b_t (z_t - m_t)` at each value. If all N values
    are drawn without replacement, :math:`m_t = (N m - \sum_{i<t} z_i) / (N - t + 1)` is the mean of the remaining ones
    if the overall mean is m; otherwise it is m. The capital is divided among several b that suit different horizons T,
    :math:`b_t = \min(\sqrt{2 \log(2 / 0.05) / (v_{t-1} T)}, 0.75 / m_t)` with the variance v so far (Waudby-Smith and
    Ramdas, 2024).

    Attributes
    ----------
    values : array of float
    population : int or None
        The number of all values; None: there is no limit.

    Examples
    --------
    >>> bets = Bets(np.random.default_rng(0).beta(3, 2, size=300), None)                        # their mean is 0.6
    >>> bets.p_above(0.5) < 0.05, bets.p_above(0.6) > 0.05
    (True, True)
    >>> round(bets.low(0.05), 2)
    0.56
    """

    values: Floats
    population: int | None

    @cached_property
    def _before(self) -> tuple[Floats, Floats]:
        """The sum and the variance of the values seen before each one."""
        count = np.arange(1, self.values.size + 1)
        sums = np.cumsum(self.values)
        squares = np.cumsum(np.square(self.values - (0.5 + sums) / (count + 1)))
        return np.append(0.0, sums[:-1]), np.append(0.25, (0.25 + squares) / (count + 1))[:-1]

    def _horizons(self) -> Floats:
        if self.population is None:
            return np.array(_OPEN)
        return np.maximum(self.population / 2.0 ** np.arange(_HORIZONS), 1.0)

    def log_capital(self, m: float) -> Floats:
        """Return the logarithm of the capital, after each value, of a gambler who bets that the mean exceeds m."""
        sums, variances = self._before
        means = np.full(sums.size, m)
        if self.population is not None:
            means = (self.population * m - sums) / (self.population - np.arange(sums.size))
        sizes = np.sqrt(2 * math.log(2 / _ERROR) / np.outer(self._horizons(), variances))
        with np.errstate(divide="ignore", invalid="ignore"):
            bets = np.where(means < 1, np.minimum(sizes, _MOST / means), 0.0)
            won = np.log1p(bets * (self.values - means))
        won[:, means <= _ROUNDING] = 0.0
        if self.population is not None:
            # if not even zeros can bring the mean down to m, it does exceed m
            won[:, sums + self.values > self.population * (m + _ROUNDING)] = np.inf
        capitals = np.cumsum(won, axis=1)
        return np.asarray(np.logaddexp.reduce(capitals, axis=0) - math.log(len(capitals)))

    def p_above(self, m: float) -> float:
        """Return the one-sided p-value of a mean of at most m, valid whenever one stops."""
        return math.exp(-max(float(self.log_capital(m).max(initial=0.0)), 0.0))

    def low(self, error: float) -> float:
        """Return the largest m whose p-value is at most `error`, or 0."""
        low, high = 0.0, 1.0
        while high - low > _PRECISION:
            middle = (low + high) / 2
            low, high = (middle, high) if self.p_above(middle) <= error else (low, middle)
        return low


@dataclass(frozen=True, eq=False)
class AnytimeOutcome(Outcome):
    """The outcome of bets on the differences of users.

    Attributes
    ----------
    differences : array of float
        In the order in which users were seen.
    largest : float
        The largest difference that a user could have, in either direction.
    population : int or None
        The number of all users, if the difference is about them; None: it is about all conceivable users.
    """

    differences: Floats
    largest: float
    population: int | None

    @cached_property
    def _bets(self) -> tuple[Bets, Bets]:
        """Bets that the mean is above a value, and below."""
        scaled = np.clip(self.differences / (2 * self.largest), -0.5, 0.5)
        return Bets(0.5 + scaled, self.population), Bets(0.5 - scaled, self.population)

    @cached_property
    def _p_value(self) -> float:
        if not self.differences.size:
            return math.nan
        if self.largest == 0:
            return 1.0
        return min(2 * min(own.p_above(0.5) for own in self._bets), 1.0)

    @property
    def p_value(self) -> float:
        return self._p_value

    def confidence_interval(self, level: float) -> Interval:
        if not self.differences.size:
            return Interval(math.nan, math.nan)
        if self.largest == 0:
            return Interval(0.0, 0.0)
        above, below = (own.low((1 - level) / 2) for own in self._bets)
        return Interval((2 * above - 1) * self.largest, (1 - 2 * below) * self.largest)


@dataclass(frozen=True)
class AnytimeTest(PairedTest):
    """Betting on each user's difference before it is seen: valid after any number of users, whenever one stops.

    Attributes
    ----------
    population : int or None
        The number of all users, of whom those at hand are the first in random order; verdicts are then about all of
        them. By default verdicts are about all conceivable users.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sample = PairedSample(rng.beta([3, 2], [2, 3], size=(400, 2)), np.ones(400), largest=np.ones(2))
    >>> [outcome] = AnytimeTest().outcomes(sample, [(0, 1)])
    >>> outcome.p_value < 0.001
    True
    """

    population: int | None = None

    def outcomes(self, sample: PairedSample, pairs: Sequence[Pair]) -> list[Outcome]:
        if sample.hidden is not None and sample.hidden.any():
            raise InputError("test='anytime' needs values of each instance, which fitted metrics do not have.")
        if (sample.sizes != 1).any():
            raise InputError("test='anytime' needs one instance, of weight 1, for each user.")
        return [
            AnytimeOutcome(
                sample.sums[:, one] - sample.sums[:, other], sample.largest_difference((one, other)), self.population
            )
            for one, other in pairs
        ]
