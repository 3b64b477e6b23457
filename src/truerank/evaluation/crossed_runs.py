"""Users crossed with runs: how much a difference would change with other seeds, estimated from several runs.

The value of a user in a run is the recommender's mean, plus an effect of the user, an effect of the run, and the rest.
The effect of the run is the same for all users, so their spread does not show it, and two equal recommenders seem to
differ if their runs happen to; the spread between runs shows it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truerank.core.checks import Floats
from truerank.evaluation.intervals import Interval
from truerank.evaluation.paired_tests import Outcome


@dataclass(frozen=True)
class RunVariance:
    """How much the mean over several runs varies because of the runs.

    Attributes
    ----------
    between : float
        Variance of a run's mean over users that comes from the run, estimated without bias: it may be below 0.
    within : float
        Variance of a user's value in a run beyond the effects of user and run, such as that due to sampled candidates.
    error : float
        Variance of the mean over all runs, estimated from those at hand; at least 0.
    spread : float
        The same before subtracting what chance adds within users; `freedom` refers to it.
    freedom : float
        Degrees of freedom of `spread`; infinite if nothing varies.
    """

    between: float = 0.0
    within: float = 0.0
    error: float = 0.0
    spread: float = 0.0
    freedom: float = math.inf

    @classmethod
    def of(cls, sums: Floats, sizes: Floats) -> RunVariance:
        """Return the variance, given the sums of independent units in each run; a single run says nothing about it.

        Parameters
        ----------
        sums : array of shape (n_runs, n_units)
        sizes : array of length n_units
            Instances of each unit, or their total weight.

        Examples
        --------
        >>> runs = np.array([[0.1, 0.3, 0.2], [0.4, 0.5, 0.6]])
        >>> found = RunVariance.of(runs, np.ones(3))
        >>> round(found.between, 4), round(found.within, 4)
        (0.0433, 0.005)
        """
        runs, units = sums.shape
        if runs < 2 or units < 2:
            return cls()
        total = float(sizes.sum())
        means = sums.sum(axis=1) / total
        rest = sums - sums.mean(axis=0) - np.outer(means - means.mean(), sizes)
        # variance of the mean of one run
        by_chance = float(np.square(rest).sum()) * units / (units - 1) / (runs - 1) / total**2
        spread = float(means.var(ddof=1))
        between = spread - by_chance
        if spread == 0:
            return cls(between, by_chance * total)
        return cls(between, by_chance * total, max(between, 0.0) / runs, spread / runs, runs - 1.0)

    def __add__(self, other: RunVariance) -> RunVariance:
        """Return the variance of the difference of two means with runs of their own (Satterthwaite, 1946)."""
        spread = self.spread + other.spread
        shares = sum(each.spread**2 / each.freedom for each in (self, other))
        between, within = self.between + other.between, self.within + other.within
        return RunVariance(
            between, within, self.error + other.error, spread, spread**2 / shares if shares > 0 else math.inf
        )


@dataclass(frozen=True)
class RunsOutcome(Outcome):
    r"""The outcome of a test of users, with an error for other runs.

    The interval of the users is widened: its half-width on either side, divided by Student's quantile, is an error
    :math:`\sqrt{U}`, and the new half-width is :math:`q \sqrt{U + B}` with the variance B of the runs. With few runs
    the quantile q matters. The quantile with the degrees of freedom of Satterthwaite (1946) is too small where one
    recommender has few runs and varies most; the mean of the quantiles of users and of runs, weighted by U and B
    (Cochran and Cox, 1957), is too large where both matter; q is the mean of the two.

    Attributes
    ----------
    users : Outcome
        Outcome of the test of the users' differences, which are means over runs.
    means : Interval
        Points from which the lower and upper ends of its interval are measured: the difference, or means of its bounds.
    n_units : int
    runs : RunVariance
        Variance of the difference over runs.

    Examples
    --------
    >>> from truerank.evaluation.paired_tests import StudentOutcome
    >>> users = StudentOutcome(difference=0.02, standard_error=0.005, n_units=1_000)
    >>> runs = RunVariance(error=0.01**2, spread=0.01**2, freedom=4.0)
    >>> found = RunsOutcome(users, Interval(0.02, 0.02), 1_000, runs)
    >>> round(users.p_value, 4), round(found.p_value, 2)
    (0.0001, 0.13)
    >>> low, high = found.confidence_interval(0.95)
    >>> round(low, 3), round(high, 3)
    (-0.008, 0.048)
    """

    users: Outcome
    means: Interval
    n_units: int
    runs: RunVariance

    @property
    def too_skewed(self) -> bool:
        return self.users.too_skewed

    @property
    def p_value(self) -> float:
        from scipy.special import stdtrit

        alone = self.users.p_value
        if self.runs.error == 0 or math.isnan(alone) or alone >= 1:
            return alone
        distance = max(self.means.low, -self.means.high)
        statistic = -float(stdtrit(self.n_units - 1, alone / 2))
        if distance <= 0 or statistic <= 0:
            return 1.0
        return _p_value(distance, (distance / statistic) ** 2, self.n_units - 1, self.runs)

    def confidence_interval(self, level: float) -> Interval:
        low, high = self.users.confidence_interval(level)
        if self.runs.error == 0 or math.isnan(low):
            return Interval(low, high)
        below, above = self._reach(self.means.low - low, level), self._reach(high - self.means.high, level)
        return Interval(self.means.low - below, self.means.high + above)

    def _reach(self, of_users: float, level: float) -> float:
        from scipy.special import stdtrit

        error = of_users / float(stdtrit(self.n_units - 1, 0.5 + level / 2))
        tail = 0.5 - level / 2
        return _quantile(tail, error**2, self.n_units - 1, self.runs) * math.hypot(error, math.sqrt(self.runs.error))


def with_runs(users: Outcome, means: Interval, n_units: int, runs: RunVariance) -> Outcome:
    """Return the outcome of a test of users with an error for other runs, if there is one."""
    return RunsOutcome(users, means, n_units, runs) if runs.error > 0 else users


def _quantile(tail: float, of_users: float, freedom: float, runs: RunVariance) -> float:
    """Return the mean of the two quantiles for an upper tail probability of `tail`."""
    from scipy.special import stdtrit

    total = of_users + runs.error
    by_users, by_runs = (-float(stdtrit(own, tail)) for own in (freedom, min(runs.freedom, 1e9)))
    squares = of_users**2 / freedom + runs.spread**2 / runs.freedom
    both = -float(stdtrit(max(total**2 / squares, 1.0), tail))
    return (both + (by_users * of_users + by_runs * runs.error) / total) / 2


def _p_value(distance: float, of_users: float, freedom: float, runs: RunVariance) -> float:
    """Return the two-sided p-value at which the quantile equals the statistic; by bisection of its logarithm."""
    statistic = distance / math.sqrt(of_users + runs.error)
    low, high = -700.0, math.log(0.5)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if _quantile(math.exp(middle), of_users, freedom, runs) > statistic else (low, middle)
        )
    return 2 * math.exp(high)
