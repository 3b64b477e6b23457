"""Totals over randomly weighted units, block by block: what resampling tests spend their time on."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Floats, Ints
from truerank.threads import available_threads, share

# weights held at once by each thread
_AT_ONCE = 1 << 20
# random numbers of 16 bits choose among so many entries of a table
_LEVELS = 1 << 16
# Poisson counts add up to so many standard deviations less than is drawn
_DEVIATIONS = 9.0
# from so many units on, single precision: rounding is then some thousand times smaller than the spread of the totals
_MANY = 1 << 13

Weights = NDArray[Any]
"""How often each unit counts in each replicate: a row per replicate, of single or double precision."""


def bootstrap_totals(values: Floats, draws: Ints, rng: np.random.Generator) -> Floats:
    """Return the totals over units that are drawn with replacement.

    Parameters
    ----------
    values : array of shape (n_units, n_columns)
    draws : array of length n_replicates
        How many units are drawn in each replicate.
    rng : numpy.random.Generator

    Returns
    -------
    array of shape (n_replicates, n_columns)

    Notes
    -----
    How often units are drawn are first independent Poisson numbers, with a mean a little below what is needed; the
    missing draws are then made one by one. Together they have the multinomial law of draws with replacement, up to
    2^-16 in the Poisson probabilities, and take a fraction of the time of single draws.

    Examples
    --------
    >>> totals = bootstrap_totals(np.array([[1.0], [2.0]]), np.full(1_000, 2), np.random.default_rng(0))
    >>> np.unique(totals).tolist(), bool(abs(totals.mean() - 3) < 0.1)
    ([2.0, 3.0, 4.0], True)
    """
    n = len(values)
    table = _poisson_counts(int(draws.min(initial=0)) / max(n, 1), n).astype(_precision(n))

    def weights(own: np.random.Generator, part: slice) -> Weights:
        return _times_drawn(own, draws[part], table, n)

    return _totals(values, draws.size, weights, rng)


def exchange_totals(values: Floats, replicates: int, rng: np.random.Generator) -> Floats:
    """Return the totals over units that are each taken with probability one half.

    Examples
    --------
    >>> np.unique(exchange_totals(np.array([[1.0], [2.0]]), 100, np.random.default_rng(0))).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    n = len(values)

    def weights(own: np.random.Generator, part: slice) -> Weights:
        bits = np.unpackbits(own.integers(256, size=(part.stop - part.start, -(-n // 8)), dtype=np.uint8), axis=1)
        return bits[:, :n].astype(_precision(n))

    return _totals(values, replicates, weights, rng)


def _precision(n: int) -> type[np.floating[Any]]:
    return np.float32 if n >= _MANY else np.float64


def _totals(
    values: Floats, replicates: int, weights: Callable[[np.random.Generator, slice], Weights], rng: np.random.Generator
) -> Floats:
    """Return weights times values, for all replicates; the same for any number of threads."""
    n, middle = len(values), values.mean(axis=0) if len(values) else np.zeros(values.shape[1])
    if n < _MANY:
        middle = np.zeros_like(middle)
    around = np.ascontiguousarray(values - middle, dtype=_precision(n))
    rows = max(_AT_ONCE // max(n, 1), 1)
    parts = [slice(start, min(start + rows, replicates)) for start in range(0, replicates, rows)]

    def run(task: tuple[slice, np.random.Generator], stopped: Event) -> Floats:
        if stopped.is_set():
            return np.empty((0, values.shape[1]))
        drawn = weights(task[1], task[0])
        return (drawn @ around).astype(np.float64) + np.outer(drawn.sum(axis=1, dtype=np.float64), middle)

    tasks = list(zip(parts, rng.spawn(len(parts)), strict=True))
    return np.concatenate(share(run, tasks, available_threads()))


def _poisson_counts(mean: float, n: int) -> Ints:
    """Return a table in which a random entry is a Poisson number, of a mean below the one that is needed."""
    from scipy.special import pdtr

    below = max(mean - _DEVIATIONS / max(n, 1) ** 0.5, 0.0)
    return np.searchsorted(pdtr(np.arange(30), below), (np.arange(_LEVELS) + 0.5) / _LEVELS)


def _times_drawn(rng: np.random.Generator, draws: Ints, table: Weights, n: int) -> Weights:
    """Return how often each of n units is drawn, a row for each number of draws."""
    times = np.take(table, rng.integers(_LEVELS, size=(draws.size, n), dtype=np.uint16))
    missing = np.maximum(draws - times.sum(axis=1, dtype=np.float64), 0).astype(np.int64)
    row = np.repeat(np.arange(draws.size), missing)
    np.add.at(times, (row, rng.integers(max(n, 1), size=row.size)), 1)
    return times
