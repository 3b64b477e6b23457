"""Counts from scores of any source, computed for one block of users at a time."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import numpy as np

from truerank.arrays import AnyArray, Ints
from truerank.compiled import library
from truerank.counting import reference
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

    def count(block: Block, stopped: Event) -> None:
        if stopped.is_set():
            return
        scores = np.ascontiguousarray(score(block.users))
        if scores.shape != (len(block.users), n_items) or scores.dtype not in (np.float32, np.float64):
            expected = f"float32 or float64 of shape {(len(block.users), n_items)}"
            raise InputError(f"`score` must return {expected}, got {scores.dtype} of shape {scores.shape}.")
        bad = count_block(block, scores)
        if bad >= 0:
            row, item = divmod(bad, n_items)
            refuse_score(block.users[row], item, scores[row, item])

    # whole blocks, however few: a function that runs elsewhere wants many users at a time
    return count_blocks(count, batch_size or users_per_block(n_items), n_items, train, test, threads, progress)


def users_per_block(n_items: int) -> int:
    """Return the largest number of users per block in `count_scores`.

    Examples
    --------
    >>> users_per_block(3_706), users_per_block(100_000)
    (1024, 83)
    """
    return int(np.clip(SCORES_PER_BLOCK // max(n_items, 1), 1, USERS_PER_BLOCK))


def _count_block(block: Block, scores: AnyArray) -> int:
    """Count with the compiled loop; return the flat index of a score that is not finite, or -1."""
    targets = np.empty(len(block.test.items), scores.dtype)
    return library.call(f"count_scores_{scores.dtype}", library.Matrix.of(scores), block.as_argument(targets))
