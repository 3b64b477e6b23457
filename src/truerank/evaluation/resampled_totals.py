"""Totals over randomly weighted units, block by block: what resampling tests spend their time on."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from truerank.arrays import Floats, Ints
from truerank.threads import available_threads, share

# replicates and units whose weights are held at once by each thread: they stay in the cache, and their products are so
# small that BLAS does not start threads of its own, which would wait for each other
_REPLICATES = 64
_UNITS = 1 << 10
# random levels have 16 bits, which Poisson numbers beyond the largest hardly ever need
_LEVELS = 1 << 16
_LARGEST = 30
# Poisson counts add up to so many standard deviations less than is drawn
_DEVIATIONS = 6.0

Weights = NDArray[np.uint8]
"""How often each unit counts in each replicate: a row per replicate."""
Draw = Callable[[np.random.Generator, tuple[int, int]], Weights]
"""Draws weights of a shape."""


def bootstrap_totals(values: Floats, draws: Ints, rng: np.random.Generator, *, progress: bool = False) -> Floats:
    """Return the totals over units that are drawn with replacement.

    Parameters
    ----------
    values : array of shape (n_units, n_columns)
    draws : array of length n_replicates
        How many units are drawn in each replicate.
    rng : numpy.random.Generator
    progress : bool
        Whether to show a progress bar, on a terminal only, when it takes more than a second.

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
    thresholds = _poisson_thresholds(int(draws.min()), len(values))

    def counts(own: np.random.Generator, shape: tuple[int, int]) -> Weights:
        level, found = own.integers(_LEVELS, size=shape, dtype=np.uint16), np.zeros(shape, dtype=np.uint8)
        for threshold in thresholds:
            found += level >= threshold
        return found

    def run(own: np.random.Generator, part: slice) -> Floats:
        totals = _weighted(own, values, part, counts)
        missing = np.maximum(draws[part] - totals[:, -1], 0).astype(np.int64)
        return totals[:, :-1] + _drawn_totals(own, values, missing)

    return _shared(draws.size, run, rng, progress)


def exchange_totals(values: Floats, replicates: int, rng: np.random.Generator, *, progress: bool = False) -> Floats:
    """Return the totals over units that are each taken with probability one half.

    Examples
    --------
    >>> np.unique(exchange_totals(np.array([[1.0], [2.0]]), 100, np.random.default_rng(0))).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """

    def coins(own: np.random.Generator, shape: tuple[int, int]) -> Weights:
        bits = np.unpackbits(own.integers(256, size=(shape[0], -(-shape[1] // 8)), dtype=np.uint8), axis=1)
        return bits[:, : shape[1]]

    def run(own: np.random.Generator, part: slice) -> Floats:
        return _weighted(own, values, part, coins)[:, :-1]

    return _shared(replicates, run, rng, progress)


def _shared(
    replicates: int, run: Callable[[np.random.Generator, slice], Floats], rng: np.random.Generator, progress: bool
) -> Floats:
    """Run all replicates, some at a time; the same for any number of threads."""
    parts = [slice(at, min(at + _REPLICATES, replicates)) for at in range(0, replicates, _REPLICATES)]

    def one(task: tuple[np.random.Generator, slice], stopped: Event) -> Floats:
        return np.empty(0) if stopped.is_set() else run(*task)

    tasks = list(zip(rng.spawn(len(parts)), parts, strict=True))
    with tqdm(total=replicates, desc="resamples", disable=None if progress else True, delay=1.0, leave=False) as bar:
        return np.concatenate(share(one, tasks, available_threads(), lambda totals: bar.update(len(totals))))


def _weighted(rng: np.random.Generator, values: Floats, part: slice, draw: Draw) -> Floats:
    """Return the totals of some replicates, and in a last column those of the weights."""
    count = part.stop - part.start
    totals = np.zeros((count, values.shape[1] + 1))
    for start in range(0, len(values), _UNITS):
        block = values[start : start + _UNITS]
        weights = draw(rng, (count, len(block))).astype(np.float64)
        totals[:, :-1] += weights @ block
        totals[:, -1] += weights.sum(axis=1)
    return totals


def _poisson_thresholds(draws: int, n: int) -> NDArray[np.uint16]:
    """Return levels: the number of those that a random level reaches is a Poisson number.

    Its mean is a little below the number of draws per unit, so that the numbers of all units add up to fewer.
    """
    from scipy.special import pdtr

    mean = max(draws - _DEVIATIONS * draws**0.5, 0.0) / max(n, 1)
    levels = np.round(pdtr(np.arange(_LARGEST), mean) * _LEVELS)
    return levels[levels < _LEVELS].astype(np.uint16)


def _drawn_totals(rng: np.random.Generator, values: Floats, draws: Ints) -> Floats:
    """Return the totals over units that are drawn one by one, so many for each replicate."""
    from scipy.sparse import csr_array

    n, bounds = len(values), np.concatenate([[0], np.cumsum(draws)])
    drawn = rng.integers(max(n, 1), size=bounds[-1])
    return np.asarray(csr_array((np.ones(drawn.size), drawn, bounds), shape=(draws.size, n)) @ values)
