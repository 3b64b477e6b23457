"""Moments of the differences between recommenders, which merge, so that instances may be in different processes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats
from truerank.evaluation.paired_tests import Pair, StudentOutcome


@dataclass(frozen=True, eq=False)
class PairedMoments:
    """Moments of the values of several recommenders, and of the differences of some pairs of them.

    Attributes
    ----------
    n : int
        Instances where the metric is defined for all recommenders.
    n_undefined : int
        Other instances.
    means : array of float, one per recommender
    centres, squares, cubes : arrays of float, one per pair
        Mean of the differences, and the sums of the squares and cubes of their deviations from it.
    largest : float
        The largest difference that an instance could have, either way; infinite if that is not known.

    Examples
    --------
    >>> values = np.array([[0.5, 0.1], [0.4, 0.3], [0.9, 0.2], [np.nan, 0.2]])
    >>> whole = PairedMoments.of(values, [(0, 1)])
    >>> parts = PairedMoments.of(values[:1], [(0, 1)]) + PairedMoments.of(values[1:], [(0, 1)])
    >>> parts.n, parts.n_undefined, round(parts.outcome(0).p_value, 4)
    (3, 1, 0.1472)
    >>> bool(np.isclose(parts.skewness(0), whole.skewness(0)))
    True
    """

    n: int
    n_undefined: int
    means: Floats
    centres: Floats
    squares: Floats
    cubes: Floats
    largest: float = math.inf

    @classmethod
    def of(cls, values: Floats, pairs: list[Pair], largest: float = math.inf) -> PairedMoments:
        """Return the moments of values with a row per instance and a column per recommender."""
        defined = values[~np.isnan(values).any(axis=1)]
        one, other = np.array(pairs).T
        differences = defined[:, one] - defined[:, other]
        n = len(defined)
        means, centres = (part.mean(axis=0) if n else np.zeros(part.shape[1]) for part in (defined, differences))
        deviations = differences - centres
        squares, cubes = ((deviations**power).sum(axis=0) for power in (2, 3))
        return cls(n, len(values) - n, means, centres, squares, cubes, largest)

    def __add__(self, other: PairedMoments) -> PairedMoments:
        n, gap = self.n + other.n, other.centres - self.centres
        share, product = other.n / max(n, 1), self.n * other.n / max(n, 1)
        crossed = 3 * gap * (self.n * other.squares - other.n * self.squares) / max(n, 1)
        return PairedMoments(
            n,
            self.n_undefined + other.n_undefined,
            self.means + (other.means - self.means) * share,
            self.centres + gap * share,
            self.squares + other.squares + gap**2 * product,
            self.cubes + other.cubes + gap**3 * product * (self.n - other.n) / max(n, 1) + crossed,
            max(self.largest, other.largest),
        )

    def standard_error(self, pair: int) -> float:
        """Return the standard error of a difference; NaN below two instances."""
        return math.sqrt(self.squares[pair] / (self.n - 1) / self.n) if self.n > 1 else math.nan

    def skewness(self, pair: int) -> float:
        """Return the skewness of the differences; 0 if they are all the same."""
        spread = math.sqrt(self.squares[pair] / self.n) if self.n else 0.0
        return float(self.cubes[pair] / self.n / spread**3) if spread > 0 else 0.0

    def outcome(self, pair: int) -> StudentOutcome:
        """Return the outcome of the paired t-test."""
        difference = float(self.centres[pair]) if self.n else math.nan
        return StudentOutcome(difference, self.standard_error(pair), self.n)
