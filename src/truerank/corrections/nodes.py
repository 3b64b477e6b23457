r"""Few weighted counts that stand for all of them: sums over g = 0..N without N terms.

Corrections are least squares over every possible true count g = 0..N. Summing over all of them is
right for a catalogue of thousands and hopeless for one of 10^8. But all integrands are products
of the law p(h | g) and the metric, both smooth in g away from a few places, so the sum over a
block of consecutive counts can be replaced by a discrete Gauss rule (`truerank.sums`): few points
with positive weights. With the limits below, a block is summed to about 1e-14 of the total.

A compressed problem has the same form as the full one, with weights instead of ones, so all later
code is written once, for weighted counts.

What is assumed of a metric: between the ``breaks`` it is an analytic function of real g whose
only singularities are at rank <= 0 (1/r, 1/log2(r + 1), powers, exponentials, polynomials).
Otherwise ask for every count with ``compress=False``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from truerank.arrays import Floats
from truerank.sums import GROWTH, POINTS, on_ladder, rule

# A block may be this many widths of the law long, in the angle 2 asin sqrt(g / N) in which the
# width is the same everywhere.
_WIDTHS = 3.5
# The top counts, where metrics vary most, are taken one by one: a block that needs no rule.
_TOP = POINTS


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
    rules = [rule(length) for _, length in blocks]
    if 2 * sum(len(found.points) for found in rules) > N:
        return _every_count(N)
    return Nodes(
        np.concatenate([start + found.points for (start, _), found in zip(blocks, rules, strict=True)]),
        np.concatenate([found.weights for found in rules]),
    )


def _every_count(N: int) -> Nodes:
    return Nodes(np.arange(N + 1, dtype=np.float64), np.ones(N + 1))


def _blocks(N: int, m: int, replace: bool, breaks: Iterable[int]) -> Iterator[tuple[int, int]]:
    """(first count, length) of consecutive blocks that cover 0..N and straddle no break."""
    stops = sorted({0, N + 1} | {b for b in (_TOP, *breaks) if 0 < b <= N})
    for first, stop in pairwise(stops):
        start = first
        while start < stop:
            length = on_ladder(min(_longest(start, N, m, replace), stop - start))
            yield start, length
            start += length


def _longest(start: int, N: int, m: int, replace: bool) -> float:
    """Longest block from ``start`` on which both the law and the metric are well approximated."""
    if start < _TOP:
        return _TOP - start
    spread = (1 if replace else 1 - m / N) / m
    angle = math.asin(math.sqrt(start / N)) + _WIDTHS * math.sqrt(spread) / 2
    stop = N * math.sin(angle) ** 2 if angle < math.pi / 2 else N + 1
    return min(stop - start, GROWTH * start)
