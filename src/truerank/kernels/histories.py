"""Scores and counts of an item-item matrix: a score is the weighted sum of rows, one per item of a user's history."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

from truerank.core.checks import AnyArray, Ints, is_sparse, refuse_score
from truerank.kernels import library
from truerank.kernels.scores import Best, BestBlock, best_of_blocks, best_scores, count_scores, users_per_block
from truerank.kernels.user_blocks import Counts, Lists, Progress, UserBlock, count_blocks

BLOCKS = 8  # the number of blocks is a multiple of this, given enough users, so that threads end together

if TYPE_CHECKING:
    import scipy.sparse as sp


def score_histories(histories: sp.csr_array, similarity: AnyArray | sp.csr_array) -> AnyArray:
    """Return ``histories @ similarity`` as a dense array.

    In the compiled loops a score is the sum over the history in its order, with each step rounded once, whatever
    the other users are; entries that a sparse similarity does not store count as 0. This is several times faster
    than SciPy's product.

    Parameters
    ----------
    histories : csr_array of shape (n_users, n_items)
    similarity : array or csr_array of shape (n_items, n_items)
        Entry (j, i) is the amount that item j adds to the score of item i.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> score_histories(sp.csr_array([[1.0, 2.0]]), np.array([[0.0, 2.0], [1.0, 0.0]]))
    array([[2., 2.]])
    """
    if not _is_compiled(histories, similarity):
        product = histories @ similarity
        return product.toarray() if is_sparse(product) else product
    number, width = similarity.dtype, similarity.shape[1]
    scores = np.empty((histories.shape[0], width), number)
    if is_sparse(similarity):
        library.call(f"score_sparse_{number}", _as_rows(histories), _checked(similarity), width, scores)
    else:
        matrix = similarity if similarity.strides[1] == similarity.itemsize else np.ascontiguousarray(similarity)
        library.call(f"score_dense_{number}", _as_rows(histories), library.MatrixArgument.of(matrix), scores)
    return scores


def count_histories(
    histories: sp.csr_array,
    similarity: AnyArray | sp.csr_array,
    train: Lists,
    test: Lists,
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> Counts:
    """Return the counts of the scores ``histories @ similarity``.

    Parameters
    ----------
    histories, similarity
        As in `score_histories`.
    train, test, threads, progress
        As in `count_factors`.

    Raises
    ------
    InputError
        If a candidate's score is not finite.

    Examples
    --------
    >>> train, test = Lists(np.array([0, 1]), np.array([0])), Lists(np.array([0, 1]), np.array([2]))
    >>> import scipy.sparse as sp
    >>> similarity = sp.csr_array([[0.0, 2.0, 1.0], [2.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> count_histories(sp.csr_array([[1.0, 0.0, 0.0]]), similarity, train, test).above
    array([1])
    """
    n_items = similarity.shape[1]
    if not (is_sparse(similarity) and _is_compiled(histories, similarity)):
        score = _scorer(histories, similarity)
        return count_scores(score, n_items, train, test, threads=threads, progress=progress)
    entry, entries = f"count_sparse_{similarity.dtype}", _checked(similarity)

    def count(block: UserBlock, stopped: Event) -> None:
        if stopped.is_set():
            return
        chosen = histories[block.users]
        bad = library.call(entry, _as_rows(chosen), entries, n_items, block.as_argument(similarity.dtype))
        _check_finite(bad, block.users, chosen, similarity)

    size = _block_size(int(np.count_nonzero(np.diff(test.indptr))), n_items)
    return count_blocks(count, size, n_items, train, test, threads, progress)


def best_histories(
    histories: sp.csr_array,
    similarity: AnyArray | sp.csr_array,
    users: Ints,
    excluded: Lists,
    k: int,
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> Best:
    """Return the k best items of some users by the scores ``histories @ similarity``.

    Parameters
    ----------
    histories, similarity
        As in `score_histories`.
    users, excluded, k, threads, progress
        As in `best_factors`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> excluded, similarity = Lists(np.array([0, 1]), np.array([0])), sp.csr_array([[0.0, 1.0], [1.0, 0.0]])
    >>> best_histories(sp.csr_array([[1.0, 0.0]]), similarity, np.array([0]), excluded, 1).items
    array([[1]], dtype=int32)
    """
    n_items = similarity.shape[1]
    if not (is_sparse(similarity) and _is_compiled(histories, similarity)):
        score = _scorer(histories, similarity)
        return best_scores(score, n_items, users, excluded, k, threads=threads, progress=progress)
    entry, entries = f"best_sparse_{similarity.dtype}", _checked(similarity)

    def search(chosen: Ints, stopped: Event) -> BestBlock:
        block, rows = BestBlock.of(chosen, excluded, k, similarity.dtype), histories[chosen]
        if not stopped.is_set():
            bad = library.call(entry, _as_rows(rows), entries, n_items, block.as_argument())
            _check_finite(bad, chosen, rows, similarity)
        return block

    return best_of_blocks(search, _block_size(len(users), n_items), n_items, users, excluded, threads, progress)


def _scorer(histories: sp.csr_array, similarity: AnyArray | sp.csr_array) -> Callable[[Ints], AnyArray]:
    return lambda users: score_histories(histories[users], similarity)


def _check_finite(bad: int, users: Ints, rows: sp.csr_array, similarity: sp.csr_array) -> None:
    """Refuse the score with this flat index, unless it is -1."""
    if bad >= 0:
        row, item = divmod(bad, similarity.shape[1])
        refuse_score(users[row], item, score_histories(rows[[row]], similarity)[0, item])


def _block_size(users: int, n_items: int) -> int:
    """Return how many users a block has; it does not depend on the number of threads."""
    most = users_per_block(n_items)
    rounds = -(-users // (BLOCKS * most))
    return max(1, min(most, -(-users // (BLOCKS * max(rounds, 1)))))


def _is_compiled(histories: sp.csr_array, similarity: AnyArray | sp.csr_array) -> bool:
    return library.load() is not None and histories.dtype == similarity.dtype and similarity.dtype in ("f4", "f8")


def _as_rows(matrix: sp.csr_array) -> library.HistoriesArgument:
    return library.HistoriesArgument.of(matrix.indptr, matrix.indices, np.ascontiguousarray(matrix.data))


def _checked(similarity: sp.csr_array) -> library.HistoriesArgument:
    """Return a similarity whose rows list each column once and in order, which the loops rely on."""
    if not similarity.has_canonical_format:
        similarity = similarity.copy()
        similarity.sum_duplicates()
    entries = _as_rows(similarity)
    library.call("check_columns", entries.arrays[0], similarity.shape[1])
    return entries
