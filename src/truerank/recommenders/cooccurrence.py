"""How many users each two items share, block by block, so that the whole matrix is never held in memory."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import scipy.sparse as sp
from tqdm import tqdm

Result = TypeVar("Result")

_ENTRIES = 1 << 22  # entries per block of rows: 32 MB for each thread if all are stored


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

    def run(first: int) -> Result:
        return use(first, sp.csr_array(by_item[first : first + size] @ train))

    blocks = range(0, n_items, size)
    with ThreadPoolExecutor(threads) as pool:
        results = pool.map(run, blocks)
        return list(tqdm(results, "items", len(blocks), disable=None if progress else True, delay=0.5))
