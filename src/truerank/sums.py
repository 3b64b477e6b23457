"""Sums of smooth functions over many consecutive whole numbers, from a few points.

A *discrete Gauss rule* is a set of K points with positive weights that sums every polynomial of degree 2 K - 1 over a
block of consecutive whole numbers exactly. (It is a rule for the sum, not for the integral: no error at the ends.)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from truerank.arrays import Floats
from truerank.caching import cached

POINTS = 16
"""Points per block; a block of at most this many numbers is summed directly."""

GROWTH = 3.0
"""The largest ratio of a block's length to its distance from 0, where the function may be singular: the Gauss error is
then below 3^-32 (Bernstein ellipse through the singularity)."""

# block lengths are rounded down to this geometric ladder, so that a few rules suffice
_LADDER = 2 ** (1 / 4)


class Rule(NamedTuple):
    """Points in 0..length - 1, not always whole, and their positive weights, which sum to the length."""

    points: Floats
    weights: Floats


def on_ladder(length: float) -> int:
    """Return the largest ladder length not above `length`; short blocks, summed directly, keep their length."""
    if length <= POINTS:
        return max(int(length), 1)
    return int(POINTS * _LADDER ** math.floor(math.log(length / POINTS) / math.log(_LADDER)))


@cached
def rule(length: int) -> Rule:
    """Return the rule for sums over 0..length - 1.

    The three-term recurrence of the discrete Chebyshev (Gram) polynomials gives the Jacobi matrix whose eigenvalues are
    the points (Golub and Welsch, 1969).

    Examples
    --------
    >>> points, weights = rule(1_000_000)
    >>> exact = sum(x**2 for x in range(1_000_000))
    >>> len(points), bool(abs(weights @ points**2 / exact - 1) < 1e-13)
    (16, True)
    """
    if length <= POINTS:
        return Rule(np.arange(length, dtype=np.float64), np.ones(length))
    from scipy import linalg

    k = np.arange(1.0, POINTS)
    # centred at zero and scaled, to keep the relative accuracy of the eigenvalues
    off = 0.5 * np.sqrt((1 - (k / length) ** 2) / (4 - 1 / k**2))
    points, vectors = linalg.eigh_tridiagonal(np.zeros(POINTS), off)
    return Rule(
        np.asarray(points * length + (length - 1) / 2, dtype=np.float64),
        np.asarray(length * vectors[0] ** 2, dtype=np.float64),
    )
