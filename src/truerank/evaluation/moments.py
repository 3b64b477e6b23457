"""Mean and spread of values, which merge exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats


@dataclass(frozen=True)
class Moments:
    """Number, mean, and sums of squared and cubed deviations of some values.

    The number need not be whole, because a part of a value may be added.

    Examples
    --------
    >>> import numpy as np
    >>> both = Moments.of(np.array([1.0, 2.0])) + Moments.of(np.array([6.0, np.nan]))
    >>> both
    Moments(n=3, mean=3.0, squares=14.0, cubes=18.0)
    >>> round(both.standard_error, 3)
    1.528
    """

    n: float
    mean: float
    squares: float
    cubes: float = 0.0

    @classmethod
    def of(cls, values: Floats) -> Moments:
        """Return those of the values that are not NaN."""
        defined = values[~np.isnan(values)]
        mean = float(defined.mean()) if defined.size else math.nan
        gaps = defined - mean
        squares = np.square(gaps)
        return cls(defined.size, mean, float(squares.sum()), float((squares * gaps).sum()))

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; NaN below two values."""
        return math.sqrt(self.squares / (self.n - 1) / self.n) if self.n > 1 else math.nan

    @property
    def skewness(self) -> float:
        """Third standardised moment; 0 if the values are all the same."""
        return self.cubes * math.sqrt(self.n) / self.squares**1.5 if self.squares > 0 else 0.0

    def with_one(self, value: float, weight: float = 1.0) -> Moments:
        """Return the moments with one more value, or a part of one."""
        return self + Moments(weight, value, 0.0)

    def reach(self, level: float, sign: int) -> float:
        """Return the upper (1) or lower (-1) end of Student's t interval for the mean."""
        return self.mean + sign * self.quantile(level) * self.standard_error

    def quantile(self, level: float) -> float:
        """Return the quantile of Student's t distribution for a two-sided interval."""
        from scipy.special import stdtrit

        return float(stdtrit(self.n - 1, 0.5 + level / 2))

    def __add__(self, other: Moments) -> Moments:
        if not (self.n and other.n):
            return self if self.n else other
        n = self.n + other.n
        gap = other.mean - self.mean
        return Moments(
            n,
            self.mean + gap * other.n / n,
            self.squares + other.squares + gap**2 * self.n * other.n / n,
            self.cubes
            + other.cubes
            + gap**3 * self.n * other.n * (self.n - other.n) / n**2
            + 3 * gap * (self.n * other.squares - other.n * self.squares) / n,
        )
