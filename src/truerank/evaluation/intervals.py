"""Confidence intervals for means: Student's t, its correction for skewness, and Wilson's for means of 0 and 1."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from truerank.errors import InputError

Assumption = Literal["nothing", "falling"]
"""What may be assumed of the exact ranks; "falling": a deeper rank is never more likely, among the top tenth of the
candidates, for the first relevant item of an instance."""


_HARDLY_SKEWED = 1e-6


class Interval(NamedTuple):
    """Lower and upper end of a confidence interval."""

    low: float
    high: float


def check_level(level: float) -> float:
    """Return a confidence level, or raise `InputError`."""
    if not 0.0 < level < 1.0:
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
    from scipy.special import stdtrit

    if n < 2:
        return Interval(math.nan, math.nan)
    reach = float(stdtrit(n - 1, 0.5 + check_level(level) / 2)) * standard_error
    return Interval(mean - reach, mean + reach)


# a larger skewness of the mean, times the quantile, says more about a few large values than about the mean
_MOST_SKEWED = 0.8


def skewed_interval(mean: float, standard_error: float, n: int, skewness: float, level: float) -> Interval:
    r"""Return the t interval for a mean over n independent units, corrected for the skewness of their values.

    By Hall's transformation (1992): with :math:`g` the skewness over :math:`\sqrt n`,
    :math:`T + g T^2 / 3 + g^2 T^3 / 27 + g / 6` is closer to Student's distribution than :math:`T` itself. Here
    :math:`g` is at most 0.8 over the quantile, i.e. 0.4 at the usual level.

    Parameters
    ----------
    mean, standard_error : float
    n : int
    skewness : float
        Of the values; 0 gives Student's interval.
    level : float

    Examples
    --------
    >>> low, high = skewed_interval(0.5, 0.1, 11, 0.0, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.277, 0.723)
    >>> low, high = skewed_interval(0.04, 0.015, 100, 3.0, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.015, 0.08)
    """
    if n < 2 or abs(skewness) < _HARDLY_SKEWED:
        return student_interval(mean, standard_error, n, level)
    quantile = student_interval(0.0, 1.0, n, level).high
    g = math.copysign(min(abs(skewness) / math.sqrt(n), _MOST_SKEWED / quantile), skewness)
    low, high = (mean - (math.cbrt(1 + g * (t - g / 6)) - 1) * 3 / g * standard_error for t in (quantile, -quantile))
    return Interval(low, high)


def wilson_interval(share: float, n: int, level: float) -> Interval:
    """Return Wilson's interval (1927) for a share among n, which stays inside 0..1 and has a width even at 0 hits.

    Examples
    --------
    >>> low, high = wilson_interval(0.0, 100, 0.95)
    >>> low, round(high, 3)
    (0.0, 0.037)
    """
    from scipy.special import ndtri

    if n < 1:
        return Interval(math.nan, math.nan)
    z = float(ndtri(0.5 + check_level(level) / 2)) ** 2 / n
    middle = (share + z / 2) / (1 + z)
    reach = math.sqrt(z * (share * (1 - share) + z / 4)) / (1 + z)
    return Interval(max(middle - reach, 0.0) if share > 0 else 0.0, min(middle + reach, 1.0) if share < 1 else 1.0)
