r"""Few weighted counts that stand for all of them: sums over g = 0..N without N terms.

Corrections are least squares over every possible true count g = 0..N. Summing over all of them is
right for a catalogue of thousands and hopeless for one of 10^8. But all integrands are products
of the law p(h | g) and the metric, both smooth in g away from a few places, so the sum over a
block of consecutive counts can be replaced by a *discrete Gauss rule*: K points with positive
weights that sum every polynomial of degree 2 K - 1 over the integers of the block exactly. (It is
a rule for the sum, not for the integral: no Euler-Maclaurin error at the ends of a block.)

A compressed problem has the same form as the full one, with weights instead of ones, so all later
code is written once, for weighted counts.

What is assumed of a metric: between the ``breaks`` it is an analytic function of real g whose
only singularities are at rank <= 0 (1/r, 1/log2(r + 1), powers, exponentials, polynomials).
Otherwise ask for every count with ``compress=False``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import linalg

from truerank.arrays import Floats

# Points per block. With the two limits below, a block is summed to about 1e-14 of the total.
_POINTS = 16
# A block may be this many times as long as its distance from g = 0, where metrics are singular:
# the Gauss error is then below 3^-32 (Bernstein ellipse through the singularity).
_GROWTH = 3.0
# A block may be this many widths of the law long, in the angle 2 asin sqrt(g / N) in which the
# width is the same everywhere.
_WIDTHS = 3.5
# The top counts, where metrics vary most, are taken one by one: a block that needs no rule.
_TOP = _POINTS
# Block lengths are rounded down to this geometric ladder so that the rules can be cached.
_LADDER = 2 ** (1 / 4)


class Nodes(NamedTuple):
    """Counts g (real, increasing) and positive weights; a sum over 0..N is ``weight @ f(g)``."""

    g: Floats
    weight: Floats


def nodes(N: int, m: int, *, replace: bool, breaks: Iterable[int] = (), compress: bool = True) -> Nodes:
    """Weighted counts that stand for g = 0..N in sums of laws times a metric.

    Parameters
    ----------
    N : int
        Irrelevant candidates.
    m : int
        Sampled candidates.
    replace : bool
        Sampling with replacement or without.
    breaks : iterable of int
        Counts at which the metric starts a new smooth piece. A metric with cut-off k has one at
        g = k - i + 1 for its i-th relevant item.
    compress : bool
        False: every count with weight 1, whatever N.

    Returns
    -------
    Nodes
        At most about ``13 sqrt(m) + 13 log2(N / m) + 100`` of them. Weights sum to N + 1.

    Examples
    --------
    >>> few = nodes(10**8, 100, replace=True)
    >>> len(few.g) < 500, round(few.weight.sum())
    (True, 100000001)
    >>> nodes(3, 2, replace=True).g
    array([0., 1., 2., 3.])
    """
    if not compress:
        return _every_count(N)
    blocks = list(_blocks(N, m, replace, breaks))
    rules = [_rule(length) for _, length in blocks]
    if 2 * sum(len(rule.g) for rule in rules) > N:
        return _every_count(N)
    return Nodes(
        np.concatenate([start + rule.g for (start, _), rule in zip(blocks, rules, strict=True)]),
        np.concatenate([rule.weight for rule in rules]),
    )


def _every_count(N: int) -> Nodes:
    return Nodes(np.arange(N + 1, dtype=np.float64), np.ones(N + 1))


def _blocks(N: int, m: int, replace: bool, breaks: Iterable[int]) -> Iterator[tuple[int, int]]:
    """(first count, length) of consecutive blocks that cover 0..N and straddle no break."""
    stops = sorted({0, N + 1} | {b for b in (_TOP, *breaks) if 0 < b <= N})
    for first, stop in pairwise(stops):
        start = first
        while start < stop:
            length = _on_ladder(min(_longest(start, N, m, replace), stop - start))
            yield start, length
            start += length


def _longest(start: int, N: int, m: int, replace: bool) -> float:
    """Longest block from ``start`` on which both the law and the metric are well approximated."""
    if start < _TOP:
        return _TOP - start
    spread = (1 if replace else 1 - m / N) / m
    angle = math.asin(math.sqrt(start / N)) + _WIDTHS * math.sqrt(spread) / 2
    stop = N * math.sin(angle) ** 2 if angle < math.pi / 2 else N + 1
    return min(stop - start, _GROWTH * start)


def _on_ladder(length: float) -> int:
    """Largest ladder length not above ``length``; short blocks, taken whole, keep theirs."""
    if length <= _POINTS:
        return max(int(length), 1)
    step = math.floor(math.log(length / _POINTS) / math.log(_LADDER))
    return int(_POINTS * _LADDER**step)


@lru_cache(maxsize=4096)
def _rule(length: int) -> Nodes:
    """Gauss rule for sums over 0..length - 1.

    The three-term recurrence of the discrete Chebyshev (Gram) polynomials gives the Jacobi
    matrix whose eigenvalues are the points (Golub and Welsch, 1969).
    """
    if length <= _POINTS:
        return _every_count(length - 1)
    k = np.arange(1.0, _POINTS)
    # Centred at zero, and scaled, to keep the eigenvalues' relative accuracy.
    off = 0.5 * np.sqrt((1 - (k / length) ** 2) / (4 - 1 / k**2))
    points, vectors = linalg.eigh_tridiagonal(np.zeros(_POINTS), off)
    return Nodes(
        np.asarray(points * length + (length - 1) / 2, dtype=np.float64),
        np.asarray(length * vectors[0] ** 2, dtype=np.float64),
    )
