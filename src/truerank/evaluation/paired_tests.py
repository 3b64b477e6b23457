"""Tests of paired differences: by empirical likelihood, by Student's t; adjusted for the number of tests.

A test is given a `PairedSample`, the sums of values over the instances of each independent unit (an instance, or a user
with several instances), and pairs of its columns. The difference of a pair is ``sum(d) / sum(sizes)``, where ``d`` is
the difference of the two columns and the sizes are the numbers of instances of the units.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from truerank.core.checks import Floats, InputError, Ints
from truerank.evaluation.intervals import Interval, Units, student_interval

# Cochran's rule: the mean of this many values times their squared skewness is close enough to normal
_PER_SKEWNESS = 25.0

Pair = tuple[int, int]
"""A column, and the column that is subtracted from it."""


@dataclass(frozen=True, eq=False)
class PairedSample:
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
        """Return the outcome of the same test on both parts of the instances, given `largest` difference of any."""
        raise InputError(f"a test of parts of the instances must be 'likelihood', got {type(self).__name__}.")


class PairedTest(ABC):
    """A way to test differences; subclass it to add one."""

    @abstractmethod
    def outcomes(self, sample: PairedSample, pairs: Sequence[Pair]) -> list[Outcome]:
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

    def merged(self, other: Outcome, largest: float) -> Outcome:
        if not isinstance(other, LikelihoodOutcome) or self.hidden or other.hidden:
            return super().merged(other, largest)
        return LikelihoodOutcome(self.units + other.units, largest)


@dataclass(frozen=True)
class LikelihoodTest(PairedTest):
    """Empirical likelihood that allows for differences which were not seen: good for any number of instances.

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


Adjustment = Literal["holm", "benjamini-hochberg", "none"]
"""How p-values allow for the number of tests."""


def adjusted(p_values: ArrayLike, how: Adjustment) -> Floats:
    """Return adjusted p-values; NaN stays NaN and does not count as a test.

    Parameters
    ----------
    p_values : array of float
    how : {"holm", "benjamini-hochberg", "none"}
        Holm (1979) bounds the chance of any false finding; Benjamini and Hochberg (1995) the expected share of false
        ones among the findings.

    Examples
    --------
    >>> adjusted([0.01, 0.04, 0.03], "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    >>> adjusted([0.01, 0.04, 0.03], "benjamini-hochberg").round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    if how not in get_args(Adjustment):
        raise InputError(f"`adjustment` must be one of {', '.join(map(repr, get_args(Adjustment)))}, got {how!r}.")
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
        Of the whole.

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
