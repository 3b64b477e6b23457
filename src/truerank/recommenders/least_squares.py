"""One half of a sweep of alternating least squares: new factors for all rows of a matrix.

Each row is solved separately, so threads cannot change the result. In the compiled library every sum
also has a fixed order, so the result is the same on any machine. Without the library, NumPy solves the
same equations, several times slower and with results that are equal up to rounding.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from truerank.arrays import AnyArray, Floats, Ints
from truerank.compiled import library
from truerank.threads import share

_PAIRS = 1 << 14  # stored entries per task: a few milliseconds of work, so that threads end at about the same time
_ROWS = 1 << 12  # rows of factors per task
_WIDTH = 16  # the compiled loops need rows whose length is a multiple of this


def solve(matrix: sp.csr_array, factors: Floats, alpha: float, penalties: Floats, threads: int) -> Floats:
    """Return for each row the vector v with the least loss, given the `factors` of the columns.

    With sums over the columns j stored in the row, v solves
    ``(sum_j f_j f_j' + alpha * F'F + penalty * I) v = sum_j f_j``.

    Parameters
    ----------
    matrix : csr_array of shape (n, m)
        Only which entries are stored matters, not their values.
    factors : array F of shape (m, d)
    alpha : float
    penalties : array of shape (n,)
        Positive, so that the solution is unique.
    threads : int
        Has no influence on the result.

    Examples
    --------
    >>> matrix = sp.csr_array(np.array([[1.0, 1.0], [0.0, 0.0]]))
    >>> solve(matrix, np.array([[1.0], [2.0]]), 0.2, np.array([4.0, 4.0]), 1).tolist()
    [[0.3], [0.0]]
    """
    size = factors.shape[1]
    # padding with factors that are zero: they stay zero
    wide = np.pad(factors.astype(np.float32), ((0, 0), (0, -size % _WIDTH)))
    solutions = np.empty((matrix.shape[0], wide.shape[1]))
    gram, solve_rows = (_gram, _solve_rows) if library.load() is None else (_compiled_gram, _compiled_solve_rows)
    grams = share(lambda cut, _: gram(wide, *cut), _cuts(np.arange(len(wide) + 1), _ROWS), threads)
    shared_gram = alpha * np.sum(grams, axis=0)
    rows = library.Rows.of(matrix.indptr, matrix.indices)
    cuts = _cuts(matrix.indptr, _PAIRS)
    share(lambda cut, _: solve_rows(rows, *cut, wide, shared_gram, penalties, solutions), cuts, threads)
    return solutions[:, :size].copy()


def _cuts(indptr: Ints, size: int) -> list[tuple[int, int]]:
    """Cut rows into ranges with about `size` entries each."""
    task = indptr[:-1] // size
    bounds = [0, *(np.flatnonzero(np.diff(task)) + 1).tolist(), len(task)]
    return list(pairwise(bounds))


def _compiled_gram(factors: AnyArray, start: int, stop: int) -> Floats:
    width = factors.shape[1]
    total, products = np.empty((width, width)), np.empty((width, width), np.float32)
    library.call("sum_squares", factors, width, start, stop, total, products)
    return total


def _gram(factors: AnyArray, start: int, stop: int) -> Floats:
    chosen = factors[start:stop].astype(np.float64)
    return chosen.T @ chosen


def _compiled_solve_rows(rows: library.Rows, start: int, stop: int, factors: AnyArray, *arrays: Floats) -> None:
    library.call("solve_rows", rows, start, stop, library.Matrix.of(factors), *arrays)


def _solve_rows(rows: library.Rows, start: int, stop: int, factors: AnyArray, *arrays: Floats) -> None:
    (begin, columns), (shared_gram, penalties, solutions) = rows.arrays, arrays
    for row in range(start, stop):
        chosen = factors[columns[begin[row] : begin[row + 1]]].astype(np.float64)
        matrix = shared_gram + chosen.T @ chosen + penalties[row] * np.eye(factors.shape[1])
        solutions[row] = np.linalg.solve(matrix, chosen.sum(axis=0))
