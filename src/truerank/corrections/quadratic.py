r"""Small convex quadratic programmes, by a primal-dual interior-point method.

Solves min c'x + x'Qx / 2 subject to Ax >= b for a dense A with some hundred rows and some ten columns, in some fifteen
steps (S. Mehrotra, 1992, "On the implementation of a primal-dual interior point method").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import lapack  # its functions cost a fifth of those that check their arguments

from truerank.arrays import Floats

_STEPS = 60
_CLOSE = 1e-10
_INSIDE = 0.99
# of the mean diagonal: keeps the factorisation positive definite when a column hardly matters
_RIDGE = 1e-13


class _Point(NamedTuple):
    """A solution on its way: x, the slacks Ax - b, and the multipliers."""

    x: Floats
    slack: Floats
    multiplier: Floats

    @property
    def gap(self) -> float:
        return float(self.slack @ self.multiplier) / self.slack.size

    def moved(self, by: _Point, length: float) -> _Point:
        return _Point(self.x + length * by.x, self.slack + length * by.slack, self.multiplier + length * by.multiplier)

    def longest(self, by: _Point) -> float:
        """How far it can move along a step before a slack or a multiplier becomes negative; at most 1."""
        # the fastest relative fall of any number, all of which are positive
        fall = max(float((-by.slack / self.slack).max()), float((-by.multiplier / self.multiplier).max()))
        return 1.0 if fall <= 1 else 1 / fall


def minimise(c: Floats, Q: Floats, A: Floats, b: Floats) -> Floats:
    """Return the x of least c'x + x'Qx / 2 with Ax >= b, up to about 1e-9.

    Examples
    --------
    The point of the half-plane x + y >= 2 that is nearest to the origin:

    >>> minimise(np.zeros(2), np.eye(2), np.array([[1.0, 1.0]]), np.array([2.0])).round(6)
    array([1., 1.])
    """
    x = np.zeros(c.size)
    point = _Point(x, np.maximum(A @ x - b, 1.0), np.ones(b.size))
    for _ in range(_STEPS):
        stationary = Q @ point.x + c - A.T @ point.multiplier
        primal = A @ point.x - b - point.slack
        if max(np.abs(stationary).max(), np.abs(primal).max(), point.gap) < _CLOSE:
            break
        point = _stepped(point, Q, A, stationary, primal)
    return point.x


def _stepped(point: _Point, Q: Floats, A: Floats, stationary: Floats, primal: Floats) -> _Point:
    """Predict by a Newton step towards the solution, then correct towards the central path."""
    _, slack, multiplier = point
    normal = Q + (A.T * (multiplier / slack)) @ A
    diagonal = normal.ravel()[:: normal.shape[0] + 1]  # a view
    diagonal += _RIDGE * diagonal.mean()
    factor, status = lapack.dpotrf(normal)
    if status:
        raise linalg.LinAlgError(f"the normal matrix is not positive definite ({status}).")

    def newton(complementary: Floats) -> _Point:
        right = -stationary - A.T @ ((multiplier * primal + complementary) / slack)
        x = lapack.dpotrs(factor, right)[0]
        moved = A @ x + primal
        return _Point(x, moved, -(complementary + multiplier * moved) / slack)

    predicted = newton(slack * multiplier)
    reached = point.moved(predicted, point.longest(predicted)).gap / point.gap
    centred = predicted.slack * predicted.multiplier - reached**3 * point.gap
    corrected = newton(slack * multiplier + centred)
    return point.moved(corrected, _INSIDE * point.longest(corrected))
