"""The inverse of a large positive definite matrix, the same for any number of threads.

LAPACK is as fast, but its last digits depend on the number of threads, and so would the order of
items with close scores.
"""

from __future__ import annotations

import numpy as np

from truerank.arrays import Floats
from truerank.compiled import library
from truerank.threads import share


def invert(matrix: Floats, threads: int) -> Floats:
    """Return the inverse of a symmetric positive definite matrix.

    Without the compiled library, LAPACK computes it.

    Examples
    --------
    >>> invert(np.array([[2.0, 1.0], [1.0, 2.0]]), threads=1).round(3).tolist()
    [[0.667, -0.333], [-0.333, 0.667]]
    """
    if library.load() is None:
        return np.linalg.inv(matrix).astype(np.float64, copy=False)
    return _sweep(matrix, threads)


def _sweep(matrix: Floats, threads: int) -> Floats:
    """Sweep one block of rows and columns after another, which ends with minus the inverse.

    With the block K of rows, P the inverse of the square block M_KK, and all other rows I and
    columns J: M_IJ becomes M_IJ - M_IK P M_KJ, M_KJ becomes P M_KJ, and M_KK
    becomes -P. Only blocks on and above the diagonal are kept.
    """
    size, block = len(matrix), library.call("inverse_block")
    # padded with rows and columns of the identity, which do not mix with the others
    wide = np.eye(-(-size // block) * block)
    wide[:size, :size] = matrix
    scaled = np.empty((block, len(wide)))
    for first in range(0, len(wide), block):
        _sweep_block(wide, scaled, first, block, threads)
    return -_mirrored(wide[:size, :size])


def _sweep_block(wide: Floats, scaled: Floats, first: int, block: int, threads: int) -> None:
    last = first + block
    panel = np.hstack([wide[:first, first:last].T, wide[first:last, first:]])
    pivot = _mirrored(panel[:, first:last])
    library.call("invert_block", pivot)
    arrays = (wide, len(wide), panel, pivot, scaled)
    share(lambda start, _: library.call("sweep_columns", *arrays, start), range(0, len(wide), block), threads)
    wide[:first, first:last], wide[first:last, last:] = scaled[:, :first].T, scaled[:, last:]
    wide[first:last, first:last] = -pivot


def _mirrored(matrix: Floats) -> Floats:
    """Return a symmetric matrix from its upper triangle."""
    upper = np.triu(matrix)
    return upper + np.triu(upper, 1).T
