"""One half of a sweep of alternating least squares: new factors for all rows of a matrix.

Each row is solved for on its own, so threads cannot change the result. Compiled, every sum has a
fixed order too, and the result is the same on any machine. Without numba the same equations are
solved by numpy, several times slower and equal up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from truerank.arrays import AnyArray, Floats, Ints

_PAIRS = 1 << 14  # stored entries per task: some milliseconds, so that threads end at the same time
_ROWS = 1 << 12  # rows of factors per task
_WIDTH = 16  # compiled, rows have a multiple of so many numbers


class _Loops(NamedTuple):
    """The two inner loops, compiled or not; both work on a run of rows."""

    gram: Callable[..., Floats]
    solve_rows: Callable[..., None]


def solve(matrix: sp.csr_array, factors: Floats, alpha: float, penalties: Floats, threads: int) -> Floats:
    """Return for each row the vector v of least loss, given the columns' `factors`.

    With sums over the columns j that are stored in the row, v solves
    ``(sum_j f_j f_j' + alpha * F'F + penalty * I) v = sum_j f_j``.

    Parameters
    ----------
    matrix : csr_array of shape (n, m)
        Only what is stored counts, not its value.
    factors : array F of shape (m, d)
    alpha : float
    penalties : array of shape (n,)
        Positive, so that there is one solution.
    threads : int
        Has no influence on the result.

    Examples
    --------
    >>> matrix = sp.csr_array(np.array([[1.0, 1.0], [0.0, 0.0]]))
    >>> solve(matrix, np.array([[1.0], [2.0]]), 0.2, np.array([4.0, 4.0]), 1).tolist()
    [[0.3], [0.0]]
    """
    loops, (n_rows, size) = load_loops(), (matrix.shape[0], factors.shape[1])
    # further factors that are zero stay zero
    wide = np.pad(factors.astype(np.float32), ((0, 0), (0, -size % _WIDTH)))
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    solutions = np.empty((n_rows, wide.shape[1]))
    with ThreadPoolExecutor(threads) as pool:
        grams = pool.map(lambda cut: loops.gram(wide, *cut), _cuts(np.arange(len(wide) + 1), _ROWS))
        everywhere = alpha * sum(grams)
        arrays = (wide, everywhere, penalties, solutions)
        list(pool.map(lambda cut: loops.solve_rows(indptr, indices, *cut, *arrays), _cuts(indptr, _PAIRS)))
    return solutions[:, :size].copy()


def _cuts(indptr: Ints, size: int) -> list[tuple[int, int]]:
    """Cut rows into runs with about `size` entries."""
    task = indptr[:-1] // size
    bounds = [0, *(np.flatnonzero(np.diff(task)) + 1).tolist(), len(task)]
    return list(pairwise(bounds))


@cache
def load_loops() -> _Loops:
    """Return the compiled loops, or those of numpy where numba is missing."""
    try:
        from truerank.compiled import algebra as fast
    except ImportError:
        return _Loops(_gram, _solve_rows)
    return _Loops(fast.compiled(fast.gram), fast.compiled(fast.solve_rows))


def _gram(factors: AnyArray, start: int, stop: int) -> Floats:
    chosen = factors[start:stop].astype(np.float64)
    return chosen.T @ chosen


def _solve_rows(indptr: Ints, indices: AnyArray, start: int, stop: int, factors: AnyArray, *arrays: Floats) -> None:
    everywhere, penalties, solutions = arrays
    for row in range(start, stop):
        chosen = factors[indices[indptr[row] : indptr[row + 1]]].astype(np.float64)
        matrix = everywhere + chosen.T @ chosen + penalties[row] * np.eye(factors.shape[1])
        solutions[row] = np.linalg.solve(matrix, chosen.sum(axis=0))
