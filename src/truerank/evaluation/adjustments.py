"""P-values of several tests -> p-values and levels of intervals that allow for their number."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from truerank.arrays import Floats
from truerank.errors import InputError

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
    """Return how many p-values there are; NaN is none."""
    return int(np.count_nonzero(~np.isnan(np.asarray(p_values, dtype=np.float64))))
