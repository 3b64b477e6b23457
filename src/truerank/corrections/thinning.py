"""Tables for fewer draws, or for more candidates, read at the counts of a sample with more draws or fewer candidates.

Leave out some of the m draws at random, and what remains is a smaller sample. Replace each draw, with the right chance,
by a candidate below all others, and what remains is a sample from a larger catalogue in which the same candidates stand
above the relevant item. The mean over this randomness turns a table for few draws from many candidates into one for the
sample at hand, *with the same expectation for every true count*. So a table for one size serves all sizes nearby.
"""

from __future__ import annotations

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.sampling.laws import Law

_NEGLIGIBLE = 1e-17


def rounded_up(numbers: Ints, bits: int) -> Ints:
    """Return the next numbers with so many significant bits.

    Examples
    --------
    >>> rounded_up(np.array([31, 33, 3_540]), 5).tolist()
    [31, 34, 3584]
    """
    unit = _unit(numbers, bits)
    return -(-numbers // unit) * unit


def rounded_down(numbers: Ints, bits: int) -> Ints:
    """Return the numbers below with so many significant bits.

    Examples
    --------
    >>> rounded_down(np.array([100, 999, 1_000]), 7).tolist()
    [100, 992, 1000]
    """
    unit = _unit(numbers, bits)
    return numbers // unit * unit


def _unit(numbers: Ints, bits: int) -> Ints:
    return np.left_shift(1, np.maximum(np.frexp(numbers)[1].astype(np.int64) - bits, 0))


def thinned(table: Floats, m: int, sizes: Ints, N: int, law: Law) -> Floats:
    """Return tables for m draws from each of several numbers of candidates, from one for fewer draws from more.

    Parameters
    ----------
    table : ndarray, shape (m' + 1,)
        For m' <= m draws from N candidates.
    m : int
        Draws of the sample.
    sizes : array of int
        Candidates, at most N.
    N : int
        Candidates that the table is for.
    law : Law
        Of sampling with or without replacement.

    Returns
    -------
    ndarray, shape (len(sizes), m + 1)
        Tables with the expectation of the given one, whatever the number of candidates above.

    Examples
    --------
    >>> from truerank.sampling.laws import HYPERGEOMETRIC
    >>> table = np.array([3.0, 1.0, 0.0])
    >>> few = thinned(table, 3, np.array([5]), 6, HYPERGEOMETRIC)[0]
    >>> (HYPERGEOMETRIC.rows([0, 1, 4], 3, 5) @ few).round(3), (HYPERGEOMETRIC.rows([0, 1, 4], 2, 6) @ table).round(3)
    (array([3.   , 2.333, 0.733]), array([3.   , 2.333, 0.733]))
    """
    kept = table.size - 1
    replaced = law.rows(N - sizes, kept, N)
    most = int(np.flatnonzero(replaced.max(axis=0) > _NEGLIGIBLE).max())
    # the mean over which draws are left out, one by one from the last: as in Horner's scheme
    total = replaced[:, most, None] * table[: kept - most + 1]
    for left_out in range(most - 1, -1, -1):
        total = _one_draw_more(total) + replaced[:, left_out, None] * table[: kept - left_out + 1]
    for _ in range(m - kept):
        total = _one_draw_more(total)
    return total


def _one_draw_more(tables: Floats) -> Floats:
    """Tables for one draw more, of which one that is chosen at random is left out before reading."""
    h = np.arange(tables.shape[1] + 1)
    above = h / (tables.shape[1])
    more = np.zeros((len(tables), h.size))
    more[:, :-1] = tables * (1 - above[:-1])
    more[:, 1:] += tables * above[1:]
    return more
