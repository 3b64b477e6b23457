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
_WIDTH = 16  # compiled, rows have a multiple of so many numbers
_STEPS = 3  # of conjugate gradients: more come closer, but the next sweep changes the equations anyway
_SOLVED = 1e-20  # squared length of a residual that is rounding


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
    wide, rows = _widened(factors), library.Rows.of(matrix.indptr, matrix.indices)
    everywhere = alpha * _gram_of(wide, threads)
    solutions = np.empty((matrix.shape[0], wide.shape[1]))
    run = _solve_rows if library.load() is None else _compiled_solve_rows
    cuts = _cuts(matrix.indptr, _PAIRS)
    share(lambda cut, _: run(rows, *cut, wide, everywhere, penalties, solutions), cuts, threads)
    return solutions[:, : factors.shape[1]].copy()


def improve(
    matrix: sp.csr_array, factors: Floats, start: Floats, alpha: float, penalties: Floats, threads: int
) -> Floats:
    """Return for each row a vector of less loss than that of `start`, by three steps of conjugate gradients.

    With many factors this takes a fraction of the time of `solve`, and repeated it comes to the same
    solution. Rows without entries get the zero vector, which is their solution.

    Parameters
    ----------
    matrix, factors, alpha, penalties, threads
        As in `solve`.
    start : array of shape (n, d)

    Examples
    --------
    >>> matrix = sp.csr_array(np.array([[1.0, 1.0], [0.0, 0.0]]))
    >>> improve(matrix, np.array([[1.0], [2.0]]), np.ones((2, 1)), 0.2, np.array([4.0, 4.0]), 1).round(6).tolist()
    [[0.3], [0.0]]
    """
    wide, rows = _widened(factors), library.Rows.of(matrix.indptr, matrix.indices)
    upper = np.triu(alpha * _gram_of(wide, threads))
    everywhere = (upper + np.triu(upper, 1).T).astype(np.float32)
    solutions = _widened(start)
    run = _improve_rows if library.load() is None else _compiled_improve_rows
    cuts = _cuts(matrix.indptr, _PAIRS)
    share(lambda cut, _: run(rows, *cut, wide, everywhere, penalties, solutions), cuts, threads)
    return solutions[:, : factors.shape[1]].astype(np.float64)


def _widened(factors: Floats) -> AnyArray:
    """Return factors in float32, and as many more that are zero, and stay so, as the loops need."""
    return np.pad(factors.astype(np.float32), ((0, 0), (0, -factors.shape[1] % _WIDTH)))


def _gram_of(factors: AnyArray, threads: int) -> Floats:
    """Return the sum of the outer products of all rows with themselves."""
    gram = _gram if library.load() is None else _compiled_gram
    return np.sum(share(lambda cut, _: gram(factors, *cut), _cuts(np.arange(len(factors) + 1), _ROWS), threads), axis=0)


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


def _compiled_improve_rows(rows: library.Rows, start: int, stop: int, factors: AnyArray, *arrays: AnyArray) -> None:
    everywhere, penalties, solutions = arrays
    library.call(
        "improve_rows", rows, start, stop, library.Matrix.of(factors), everywhere, penalties, _STEPS, solutions
    )


def _improve_rows(rows: library.Rows, start: int, stop: int, factors: AnyArray, *arrays: AnyArray) -> None:
    (begin, columns), (everywhere, penalties, solutions) = rows.arrays, arrays
    for row in range(start, stop):
        chosen = factors[columns[begin[row] : begin[row + 1]]].astype(np.float64)
        matrix = everywhere + chosen.T @ chosen + penalties[row] * np.eye(factors.shape[1])
        solutions[row] = _gradients(matrix, chosen.sum(axis=0), solutions[row]) if len(chosen) else 0


def _gradients(matrix: Floats, right: Floats, x: AnyArray) -> Floats:
    """Go some steps from x towards the solution of ``matrix @ x = right``."""
    residual = direction = right - matrix @ x
    for _ in range(_STEPS):
        size = residual @ residual
        if size <= _SOLVED:
            break
        product = matrix @ direction
        length = size / (direction @ product)
        x, residual = x + length * direction, residual - length * product
        direction = residual + residual @ residual / size * direction
    return x
