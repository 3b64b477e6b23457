"""How many users each two items share, block by block, so that the whole matrix is never held in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from truerank.arrays import Bools, Floats
from truerank.compiled import library
from truerank.threads import share

Result = TypeVar("Result")

_ENTRIES = 1 << 21  # of a block of rows: 24 MB if all are stored, for each thread


def map_blocks(
    train: sp.csr_array, use: Callable[[int, sp.csr_array], Result], threads: int, progress: bool
) -> list[Result]:
    """Return ``use(first, rows)`` for each block of rows of the item-item co-occurrence matrix, in order.

    Entry (i, j) of the matrix is the exact number of users of both i and j; on the diagonal it is
    the number of users of i. `first` is the item of the first row of the block.

    Examples
    --------
    >>> train = sp.csr_array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    >>> map_blocks(train, lambda first, rows: rows.toarray().tolist(), 1, False)
    [[[1.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 1.0]]]
    """
    by_item, n_items = sp.csr_array(train.T), train.shape[1]
    size = max(_ENTRIES // n_items, 1)
    together = _multiplied(by_item, train) if library.load() is None else _counted(by_item, train)

    def run(first: int) -> Result:
        return use(first, together(first, min(first + size, n_items)))

    blocks = range(0, n_items, size)
    with tqdm(total=len(blocks), desc="items", disable=None if progress else True, delay=0.5) as bar:
        return share(lambda first, _: run(first), blocks, threads, lambda _: bar.update())


def keep_largest(rows: sp.csr_array, k: int) -> sp.csr_array:
    """Return the k largest stored values of each row, all positive; of equal ones the first.

    Examples
    --------
    >>> keep_largest(sp.csr_array([[1.0, 3.0, 0.0, 3.0, 3.0]]), 2).toarray().tolist()
    [[0.0, 3.0, 0.0, 3.0, 0.0]]
    """
    if library.load() is None:
        dense = rows.toarray()
        return sp.csr_array(np.where(_largest(dense, k), dense, 0.0)) if k < rows.shape[1] else rows
    begin, columns, values = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float64)
    library.call("keep_largest", rows.shape[0], begin, columns, values, len(values), k)
    return sp.csr_array((values[: begin[-1]], columns[: begin[-1]], begin), shape=rows.shape)


def _multiplied(by_item: sp.csr_array, train: sp.csr_array) -> Callable[[int, int], sp.csr_array]:
    return lambda start, stop: sp.csr_array(by_item[start:stop] @ train)


def _counted(by_item: sp.csr_array, train: sp.csr_array) -> Callable[[int, int], sp.csr_array]:
    """Return a function from a range of items to their rows, by compiled loops."""
    items, users = (library.Rows.of(matrix.indptr, matrix.indices) for matrix in (by_item, train))

    def together(start: int, stop: int) -> sp.csr_array:
        room = library.call("most_together", items, users, start, stop) + 1
        begin, columns, counts = np.empty(stop - start + 1, np.int64), np.empty(room, np.int32), np.empty(room)
        library.call("count_together", items, users, start, stop, begin, columns, counts)
        size = begin[-1]
        return sp.csr_array((counts[:size], columns[:size], begin), shape=(stop - start, train.shape[1]))

    return together


def _largest(values: Floats, k: int) -> Bools:
    """Return where the k largest values of each row are; of equal ones the first."""
    least = np.partition(values, -k, axis=1)[:, [-k]]
    above, equal = values > least, values == least
    missing = k - above.sum(axis=1, keepdims=True)
    return above | (equal & (np.cumsum(equal, axis=1) <= missing))
