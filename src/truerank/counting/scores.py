"""Counts, or the best items, from scores of any source, computed for one block of users at a time."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import numpy as np

from truerank.arrays import AnyArray, Ints, refuse_masked
from truerank.compiled import library
from truerank.counting import reference
from truerank.counting.best import Best, BestBlock, best_of_blocks, search_rows
from truerank.counting.blocks import Block, Counts, Lists, Progress, count_blocks, refuse_score
from truerank.errors import InputError

SCORES_PER_BLOCK = 2**23  # 32 MB in float32, for each thread
USERS_PER_BLOCK = 1024  # at most


def count_scores(
    score: Callable[[Ints], AnyArray],
    n_items: int,
    train: Lists,
    test: Lists,
    *,
    threads: int = 1,
    progress: Progress | None = None,
    batch_size: int | None = None,
    concurrent: bool = True,
) -> Counts:
    """Return the counts of the scores that a function returns for blocks of users.

    Parameters
    ----------
    score : callable
        Takes the indices of users and returns their scores, of shape (users, n_items), in float32 or
        float64. Neither the blocks nor the counts depend on the number of threads. Training items may
        have any score, including minus infinity and NaN.
    n_items, train, test, threads, progress
        As in `count_factors`.
    batch_size : int, optional
        Users per block; `users_per_block` of them by default.
    concurrent : bool
        Whether several threads may call `score` at the same time; otherwise the calling thread does, block by block,
        while other threads count.

    Raises
    ------
    InputError
        If a candidate's score is not finite.

    Examples
    --------
    >>> train, test = Lists(np.array([0, 1]), np.array([3])), Lists(np.array([0, 2]), np.array([1, 2]))
    >>> scores = np.array([[4.0, 3.0, 1.0, 9.0, 1.0]])
    >>> count_scores(lambda users: scores[users], 5, train, test).above
    array([1, 1])
    """
    count_block = reference.count_block if library.load() is None else _count_block

    def scored(users: Ints) -> AnyArray:
        return _scored(score, users, n_items)

    def count(block: Block, stopped: Event, scores: AnyArray | None = None) -> None:
        if stopped.is_set():
            return
        scores = scored(block.users) if scores is None else scores
        _check_finite(count_block(block, scores), block.users, scores)

    # whole blocks, however few: a function that runs elsewhere wants many users at a time
    size, prepare = batch_size or users_per_block(n_items), None if concurrent else scored
    return count_blocks(count, size, n_items, train, test, threads, progress, prepare)


def best_scores(
    score: Callable[[Ints], AnyArray],
    n_items: int,
    users: Ints,
    excluded: Lists,
    k: int,
    *,
    threads: int = 1,
    progress: Progress | None = None,
    batch_size: int | None = None,
    concurrent: bool = True,
) -> Best:
    """Return the k best items of some users by the scores that a function returns for blocks of users.

    Parameters
    ----------
    score, n_items, threads, progress, batch_size, concurrent
        As in `count_scores`.
    users : array of int, ascending
    excluded : Lists
        Items of each user, chosen or not, that are left out.
    k : int

    Examples
    --------
    >>> scores, excluded = np.array([[4.0, 3.0, 1.0, 9.0, 3.0]]), Lists(np.array([0, 1]), np.array([3]))
    >>> best_scores(lambda users: scores[users], 5, np.array([0]), excluded, 2).items
    array([[0, 1]], dtype=int32)
    """
    search_block = search_rows if library.load() is None else _search_block

    def scored(chosen: Ints) -> AnyArray:
        return _scored(score, chosen, n_items)

    def search(chosen: Ints, stopped: Event, scores: AnyArray | None = None) -> BestBlock:
        if stopped.is_set():
            return BestBlock.of(chosen, excluded, k, np.dtype(np.float64))
        scores = scored(chosen) if scores is None else scores
        block = BestBlock.of(chosen, excluded, k, scores.dtype)
        _check_finite(search_block(block, scores), chosen, scores)
        return block

    size, prepare = batch_size or users_per_block(n_items), None if concurrent else scored
    return best_of_blocks(search, size, n_items, users, excluded, threads, progress, prepare)


def users_per_block(n_items: int) -> int:
    """Return the largest number of users per block in `count_scores`.

    Examples
    --------
    >>> users_per_block(3_706), users_per_block(100_000)
    (1024, 83)
    """
    return int(np.clip(SCORES_PER_BLOCK // max(n_items, 1), 1, USERS_PER_BLOCK))


def _scored(score: Callable[[Ints], AnyArray], users: Ints, n_items: int) -> AnyArray:
    """Return the scores of some users, checked to be complete."""
    refuse_masked(found := score(users), "scores")
    scores = np.ascontiguousarray(found)
    if scores.shape != (len(users), n_items) or scores.dtype not in (np.float32, np.float64):
        expected = f"float32 or float64 of shape {(len(users), n_items)}"
        raise InputError(f"`score` must return {expected}, got {scores.dtype} of shape {scores.shape}.")
    return scores


def _check_finite(bad: int, users: Ints, scores: AnyArray) -> None:
    """Refuse the score with this flat index, unless it is -1."""
    if bad >= 0:
        row, item = divmod(bad, scores.shape[1])
        refuse_score(users[row], item, scores[row, item])


def _search_block(block: BestBlock, scores: AnyArray) -> int:
    """Search with the compiled loop; return the flat index of a score that is not finite, or -1."""
    return library.call(f"best_scores_{scores.dtype}", library.Matrix.of(scores), block.as_argument())


def _count_block(block: Block, scores: AnyArray) -> int:
    """Count with the compiled loop; return the flat index of a score that is not finite, or -1."""
    targets = np.empty(len(block.test.items), scores.dtype)
    return library.call(f"count_scores_{scores.dtype}", library.Matrix.of(scores), block.as_argument(targets))
