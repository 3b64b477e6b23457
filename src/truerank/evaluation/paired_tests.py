"""The input and output of tests of paired differences; the tests by empirical likelihood and by Student's t.

A test is given a `Sample`, the sums of values over the instances of each independent unit (an instance, or a user with
several instances), and pairs of its columns. The difference of a pair is ``sum(d) / sum(sizes)``, where ``d`` is the
difference of the two columns and the sizes are the numbers of instances of the units.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.evaluation.intervals import Interval, Units, student_interval

# Cochran's rule: the mean of so many values times their squared skewness is close enough to normal
_PER_SKEWNESS = 25.0

Pair = tuple[int, int]
"""A column, and the column that is subtracted from it."""


@dataclass(frozen=True, eq=False)
class Sample:
    """What was measured on independent units.

    Attributes
    ----------
    sums : array of shape (n_units, n_columns)
        Sum of the values of each unit's instances.
    sizes : array of length n_units
        Number of instances of each unit, or their total weight; above 0.
    hidden : array of length n_columns, optional
        Error of each column's mean that its spread over the units does not show, as of estimators that pool them.
    largest : array of length n_columns, optional
        The largest difference that an instance could have, either way; by default that of any two values seen.
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
    ) -> Sample:
        """Return the sample of values, one row per instance; instances may have weights and belong to clusters.

        Examples
        --------
        >>> sample = Sample.of(np.array([[1.0], [2.0], [3.0]]), clusters=np.array([0, 1, 0]))
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

    def means(self) -> Floats:
        """Return the mean over all instances of each column."""
        return self.sums.sum(axis=0) / self.total

    def deviations(self, pair: Pair) -> Floats:
        """Return each unit's part in how far the difference is from its mean: they sum to 0."""
        difference = self.sums[:, pair[0]] - self.sums[:, pair[1]]
        return difference - difference.sum() / self.total * self.sizes

    def difference(self, pair: Pair) -> float:
        """Return the mean difference of two columns."""
        return float((self.sums[:, pair[0]] - self.sums[:, pair[1]]).sum() / self.total)

    def units(self, pair: Pair) -> Units:
        """Return the differences of the units."""
        return Units.of(self.sums[:, pair[0]] - self.sums[:, pair[1]], self.sizes)

    def largest_difference(self, pair: Pair) -> float:
        """Return the largest difference that an instance could have, either way."""
        if self.largest is not None:
            return float(self.largest[pair[0]])
        return float(np.ptp(self.sums[:, pair] / self.sizes[:, None])) if self.sizes.size else 0.0

    def standard_error(self, pair: Pair) -> float:
        """Return the standard error of the difference; NaN below two units.

        With units of size 1 it is the standard deviation over the root of their number; otherwise that of a ratio, by
        linearisation.
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
    """What a test says of one pair."""

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


class PairedTest(ABC):
    """A way to test differences; subclass it to add one."""

    @abstractmethod
    def outcomes(self, sample: Sample, pairs: Sequence[Pair]) -> list[Outcome]:
        """Return the outcome for each pair of columns."""


@dataclass(frozen=True)
class Reversed(Outcome):
    """The same outcome with the pair exchanged."""

    outcome: Outcome

    @property
    def p_value(self) -> float:
        return self.outcome.p_value

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
        The largest difference that an instance could have, either way.
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


@dataclass(frozen=True)
class LikelihoodTest(PairedTest):
    """Empirical likelihood that allows for differences which were not seen: good for any number of instances.

    Examples
    --------
    >>> sample = Sample(np.array([[1.0, 0.0]] * 2), np.ones(2), largest=np.ones(2))
    >>> [outcome] = LikelihoodTest().outcomes(sample, [(0, 1)])                             # 2 users, 1 against 0
    >>> round(outcome.p_value, 2)
    0.57
    """

    def outcomes(self, sample: Sample, pairs: Sequence[Pair]) -> list[Outcome]:
        return [likelihood_outcome(sample, pair) for pair in pairs]


def likelihood_outcome(sample: Sample, pair: Pair) -> LikelihoodOutcome:
    """Return the outcome of the test by empirical likelihood of one pair."""
    return LikelihoodOutcome(sample.units(pair), sample.largest_difference(pair), sample.hidden_error(pair))


@dataclass(frozen=True)
class StudentOutcome(Outcome):
    """Student's t distribution of the difference over its standard error."""

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
    >>> sample = Sample(np.array([[0.5, 0.1], [0.4, 0.3], [0.9, 0.2]]), np.ones(3))
    >>> [outcome] = StudentTest().outcomes(sample, [(0, 1)])
    >>> round(outcome.p_value, 4)
    0.1472
    """

    def outcomes(self, sample: Sample, pairs: Sequence[Pair]) -> list[Outcome]:
        return [student_outcome(sample, pair) for pair in pairs]


def student_outcome(sample: Sample, pair: Pair) -> StudentOutcome:
    """Return the outcome of the t-test of one pair."""
    n, gaps = sample.sizes.size, sample.deviations(pair)
    squares = float(np.square(gaps).sum())
    skewness = float((gaps**3).sum()) * math.sqrt(n) / squares**1.5 if squares > 0 else 0.0
    return StudentOutcome(sample.difference(pair), sample.standard_error(pair), n, skewness)
