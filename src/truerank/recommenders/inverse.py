"""The inverse of a large positive definite matrix, the same for any number of threads.

LAPACK's is as fast, but its last digits change with the number of threads, and with them the order
of items whose scores are close.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from truerank.arrays import Floats


def invert(matrix: Floats, threads: int) -> Floats:
    """Return the inverse of a symmetric positive definite matrix.

    Where numba is missing, LAPACK does it.

    Examples
    --------
    >>> invert(np.array([[2.0, 1.0], [1.0, 2.0]]), threads=1).round(3).tolist()
    [[0.667, -0.333], [-0.333, 0.667]]
    """
    try:
        from truerank.compiled import algebra as fast
    except ImportError:
        return np.linalg.inv(matrix).astype(np.float64, copy=False)
    return _sweep(matrix, fast, threads)


def _sweep(matrix: Floats, fast: Any, threads: int) -> Floats:
    """Sweep one block of rows and columns after the other, which ends at minus the inverse.

    With the block K of rows, P the inverse of the square where they meet their own columns, and all
    other rows and columns I, J: M_IJ becomes M_IJ - M_IK P M_KJ, M_KJ becomes P M_KJ, and M_KK
    becomes -P. Only blocks on and above the diagonal are kept.
    """
    size, block = len(matrix), fast.BLOCK
    # further rows and columns, those of the identity, stay apart from the others
    wide = np.eye(-(-size // block) * block)
    wide[:size, :size] = matrix
    scaled = np.empty((block, len(wide)))
    starts = range(0, len(wide), block)
    invert_block, sweep_columns = fast.compiled(fast.invert_block), fast.compiled(fast.sweep_columns)
    with ThreadPoolExecutor(threads) as pool:
        for first in starts:
            last = first + block
            panel = np.hstack([wide[:first, first:last].T, wide[first:last, first:]])
            pivot = _mirrored(panel[:, first:last])
            invert_block(pivot)
            list(pool.map(partial(sweep_columns, wide, panel, pivot, scaled), starts))
            wide[:first, first:last], wide[first:last, last:] = scaled[:, :first].T, scaled[:, last:]
            wide[first:last, first:last] = -pivot
    return -_mirrored(wide[:size, :size])


def _mirrored(matrix: Floats) -> Floats:
    """Return a symmetric matrix from its upper triangle."""
    upper = np.triu(matrix)
    return upper + np.triu(upper, 1).T
