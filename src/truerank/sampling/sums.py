"""Sums of smooth functions over many consecutive whole numbers, from a few points.

A *discrete Gauss rule* is a set of K points with positive weights that sums every polynomial of degree 2 K - 1 over a
block of consecutive whole numbers exactly. (It is a rule for the sum, not for the integral: no error at the ends.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from truerank.core.caching import cached
from truerank.core.checks import Floats, Ints, frozen

if TYPE_CHECKING:
    from truerank.sampling.laws import Law

POINTS = 16
"""Points per block; a block of at most this many numbers is summed directly."""

GROWTH = 3.0
"""The largest ratio of a block's length to its distance from 0, where the function may be singular: the Gauss error is
then below 3^-32 (Bernstein ellipse through the singularity)."""

KEPT = 32
"""Counts that represent a block in `condensed`."""

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
    both = points * length + (length - 1) / 2, length * vectors[0] ** 2
    return Rule(*(np.asarray(each, dtype=np.float64) for each in both))


def rules(longest: Floats) -> tuple[Ints, Floats, Floats]:
    """Return lengths of blocks within their limits, and points and weights for each, padded to 16 with weight 0."""
    if (longest <= POINTS).all():  # short enough to take every number
        lengths = np.maximum(longest.astype(np.int64), 1)
        inside = np.arange(POINTS) < lengths[:, None]
        return lengths, np.where(inside, np.arange(float(POINTS)), 0.0), inside.astype(np.float64)
    steps = np.floor(np.log(np.maximum(longest, POINTS) / POINTS) / math.log(_LADDER))
    short = np.maximum(longest.astype(np.int64), 1)
    each = np.where(longest <= POINTS, short, (POINTS * _LADDER**steps).astype(np.int64))
    distinct, which = np.unique(each, return_inverse=True)
    table = np.zeros((2, distinct.size, POINTS))
    for row, length in enumerate(distinct.tolist()):
        points, weights = rule(length)
        table[0, row, : points.size], table[1, row, : points.size] = points, weights
    return each, table[0][which], table[1][which]


# A block may be this many widths of the law long, in the angle 2 asin sqrt(g / N) in which the
# width is the same everywhere.
_LONGEST_IN_WIDTHS = 3.5
# The top counts, where metrics vary most, are summed one by one: a block that needs no rule.
_TOP = POINTS


class WeightedCounts(NamedTuple):
    """Counts g (real, increasing) and positive weights; a sum over 0..N is ``weight @ f(g)``."""

    g: Floats
    weight: Floats


def weighted_counts(N: int, m: int, law: Law, *, breaks: Iterable[int] = (), compress: bool = True) -> WeightedCounts:
    """Weighted counts that stand for g = 0..N in sums of laws times a metric.

    Parameters
    ----------
    N : int
        Irrelevant candidates.
    m : int
        Sampled candidates.
    law : Law
        The law of sampling with or without replacement.
    breaks : iterable of int
        Counts at which the metric starts a new smooth piece. A metric with cut-off k has one at
        g = k - i + 1 for its i-th relevant item.
    compress : bool
        If False, every count with weight 1, whatever N is.

    Returns
    -------
    WeightedCounts
        At most about ``13 sqrt(m) + 13 log2(N / m) + 100`` of them. Weights sum to N + 1.

    Examples
    --------
    >>> from truerank.sampling.laws import BINOMIAL
    >>> few = weighted_counts(10**8, 100, BINOMIAL)
    >>> len(few.g) < 500, round(few.weight.sum())
    (True, 100000001)
    >>> weighted_counts(3, 2, BINOMIAL).g
    array([0., 1., 2., 3.])
    """
    if not compress:
        return _every_count(0, N)
    stops = sorted({0, N + 1} | {b for b in (_TOP, *breaks) if 0 < b <= N})
    return _between(tuple(stops), N, m, law)


def counts_between(first: int, last: int, N: int, m: int, law: Law, *, longest: float = math.inf) -> WeightedCounts:
    """Weighted counts that stand for g = first..last, in blocks of at most `longest`.

    Examples
    --------
    >>> from truerank.sampling.laws import BINOMIAL
    >>> few = counts_between(1_000, 90_000, 100_000, 50, BINOMIAL)
    >>> len(few.g) < 300, round(few.weight.sum())
    (True, 89001)
    """
    stops = sorted({first, last + 1} | {b for b in (_TOP,) if first < b <= last})
    return _between(tuple(stops), N, m, law, longest)


@cached
def _between(stops: tuple[int, ...], N: int, m: int, law: Law, longest: float = math.inf) -> WeightedCounts:
    """Counts of consecutive blocks from the first of the stops to the last, none of which straddles a stop."""
    blocks = list(_blocks(stops, N, m, law, longest))
    rules = [rule(length) for _, length in blocks]
    if 2 * sum(len(found.points) for found in rules) > stops[-1] - stops[0] - 1:
        return _every_count(stops[0], stops[-1] - 1)
    return WeightedCounts(
        frozen(np.concatenate([start + found.points for (start, _), found in zip(blocks, rules, strict=True)])),
        frozen(np.concatenate([found.weights for found in rules])),
    )


def _every_count(first: int, last: int) -> WeightedCounts:
    counts = np.arange(first, last + 1, dtype=np.float64)
    return WeightedCounts(frozen(counts), frozen(np.ones(counts.size)))


def _blocks(stops: tuple[int, ...], N: int, m: int, law: Law, longest: float) -> Iterator[tuple[int, int]]:
    """(first count, length) of consecutive blocks."""
    for first, stop in pairwise(stops):
        start = first
        while start < stop:
            length = on_ladder(min(_longest(start, N, m, law), stop - start, max(longest, POINTS)))
            yield start, length
            start += length


def _longest(start: int, N: int, m: int, law: Law) -> float:
    """Longest block from ``start`` on which both the law and the metric are well approximated."""
    if start < _TOP:
        return _TOP - start
    angle = math.asin(math.sqrt(start / N)) + _LONGEST_IN_WIDTHS * math.sqrt(law.spread(N, m)) / 2
    stop = N * math.sin(angle) ** 2 if angle < math.pi / 2 else N + 1
    return min(stop - start, GROWTH * start)


def condensed(weight: Floats, kept: Sequence[Ints]) -> Floats:
    """Return weights of the kept counts that replace the weights of all: (groups, kept) from (groups, N + 1).

    In each block of `kept_counts` the moments up to degree `KEPT` - 1 are those of the given weights, so sums of smooth
    functions of the count remain the same. Weights may become negative.

    Examples
    --------
    >>> kept = kept_counts(10_000, whole=16, growth=3.0)
    >>> few = condensed(np.ones((1, 10_001)), kept)
    >>> exact = sum(1 / (g + 1) for g in range(10_001))
    >>> few.shape, abs(few @ (1 / (np.concatenate(kept) + 1)) / exact - 1).item() < 1e-13
    ((1, 192), True)
    """
    stops = [*(int(block[0]) for block in kept), weight.shape[1]]
    parts = [weight[:, start:stop] for start, stop in pairwise(stops)]
    return np.concatenate([_condensed_block(*each) for each in zip(parts, kept, strict=True)], axis=1)


def _condensed_block(weight: Floats, kept: Ints) -> Floats:
    length = weight.shape[1]
    if kept.size == length:
        return weight
    moments = weight @ _polynomials(np.arange(length), length)
    return np.asarray(np.linalg.solve(_polynomials(kept - kept[0], length).T, moments.T).T, dtype=np.float64)


def kept_counts(N: int, *, whole: int, growth: float) -> list[Ints]:
    """Return few of the counts 0..N, block by block; the first of a block is always kept.

    Parameters
    ----------
    N : int
    whole : int
        Counts below this one are all kept.
    growth : float
        The length of a block relative to its first count.
    """
    blocks, start = [np.arange(min(whole, N + 1))], whole
    while start <= N:
        length = min(max(int(growth * start), 1), N + 1 - start)
        blocks.append(start + _kept(length))
        start += length
    return blocks


@cached
def _kept(length: int) -> Ints:
    """Return those of 0..length - 1 that determine a polynomial well: approximate Fekete points.

    A pivoted QR decomposition of the polynomials at many points selects them (Sommariva and Vianello, 2009). It begins
    with 0, where the polynomials are as large as they get.
    """
    if length <= 2 * KEPT:
        return np.arange(length)
    from scipy import linalg

    angles = np.linspace(0, np.pi, 8 * KEPT)
    points = np.unique(np.rint((length - 1) * (1 - np.cos(angles)) / 2)).astype(np.int64)
    _, _, order = linalg.qr(_polynomials(points, length).T, mode="economic", pivoting=True)
    return np.sort(points[order[:KEPT]])


def _polynomials(points: Ints, length: int) -> Floats:
    """Chebyshev polynomials up to degree `KEPT` - 1 on 0..length - 1, a row for each point."""
    return np.asarray(np.polynomial.chebyshev.chebvander(2 * points / (length - 1) - 1, KEPT - 1), dtype=np.float64)
