"""Counts and best items from blocks of scores."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.core.checks import AnyArray, InputError, Ints, refuse_masked, refuse_score
from truerank.core.threads import fitting
from truerank.kernels import library
from truerank.kernels.user_blocks import (
    Counts,
    Lists,
    Prepare,
    Progress,
    Spans,
    UserBlock,
    check_lists,
    check_read,
    count_blocks,
    refuse_list,
    share_users,
)


class Best(NamedTuple):
    """The best items of each user, row by row.

    Row r begins with ``found[r]`` items, from the highest score down, of equal scores the lower item number first;
    what follows is undefined.
    """

    items: NDArray[np.int32]
    scores: AnyArray
    found: Ints


class BestBlock(NamedTuple):
    """Users, the items to leave out for each, and room for the best k of the others."""

    users: Ints
    excluded: Spans
    best: Best

    @classmethod
    def of(cls, users: Ints, excluded: Lists, k: int, number: np.dtype[Any]) -> BestBlock:
        """Return the block of ascending users, with scores of this type."""
        shape = (len(users), k)
        room = Best(np.empty(shape, np.int32), np.empty(shape, number), np.zeros(len(users), np.int64))
        return cls(users, Spans.cut(excluded, users), room)

    def is_candidate(self, row: int, item: int) -> bool:
        """Whether an item may be among the best of the user in this row."""
        return item not in self.excluded.of(row)

    def reset(self) -> None:
        """Discard what was found."""
        self.excluded.next[:] = self.excluded.begin
        self.best.found[:] = 0

    def as_user_block(self) -> UserBlock:
        """Return the users and their lists as a block without held-out items."""
        nothing, none = np.zeros(len(self.users), np.int64), np.zeros(0, np.int64)
        held_out = Spans(none.astype(np.int32), nothing, nothing, nothing)
        return UserBlock(self.users, self.excluded, held_out, none, none.astype(np.bool_), none, none)

    def as_argument(self) -> library.BestArgument:
        """Return the block for a compiled loop."""
        return library.BestArgument.of(self.excluded, *self.best)


Search = Callable[..., BestBlock]
"""Takes users, an event that is set once the result is no longer needed, and what was prepared for these users;
returns their completed block."""


def best_of_blocks(
    search: Search,
    size: int,
    n_items: int,
    users: Ints,
    excluded: Lists,
    threads: int,
    progress: Progress | None,
    prepare: Prepare | None = None,
) -> Best:
    """Run `search` on blocks of `size` users, and return the best items of all of them."""
    check_lists("train", excluded, len(excluded.indptr) - 1, n_items)

    def run(some: Ints, stopped: Event, *prepared: AnyArray) -> Best:
        block = search(some, stopped, *prepared)
        if not stopped.is_set():
            check_read(block.users, train=block.excluded)
        return block.best

    done = None if progress is None else lambda best: progress(len(best.found))
    parts = share_users(run, users, size, threads, done, prepare)
    return Best(*map(np.concatenate, zip(*parts, strict=True)))


def search_rows(block: BestBlock, scores: AnyArray) -> int:
    """Search by NumPy, as the compiled loop does; return the flat index of a score that is not finite, or -1."""
    for row, values in enumerate(scores):
        bad = _search_row(block, row, values)
        if bad >= 0:
            return row * len(values) + bad
    block.excluded.next[:] = block.excluded.end
    return -1


def _search_row(block: BestBlock, row: int, values: AnyArray) -> int:
    excluded = block.excluded.of(row)
    if not _ascends(excluded, len(values)):
        refuse_list("train", block.users[row])
    is_candidate = np.ones(len(values), np.bool_)
    is_candidate[excluded] = False
    items = np.flatnonzero(is_candidate)
    if not np.isfinite(values[items]).all():
        return int(items[np.argmin(np.isfinite(values[items]))])
    chosen = _first(values[items], block.best.items.shape[1])
    block.best.items[row, : len(chosen)] = items[chosen]
    block.best.scores[row, : len(chosen)] = values[items[chosen]]
    block.best.found[row] = len(chosen)
    return -1


def _first(values: AnyArray, k: int) -> Ints:
    """Return the positions of the k largest values, from the largest down, of equal ones the first."""
    if k < len(values):
        least = -np.partition(-values, k - 1)[k - 1]
        high = np.flatnonzero(values >= least)
    else:
        high = np.arange(len(values))
    return high[np.argsort(-values[high], kind="stable")][:k]


SCORES_PER_BLOCK = 2**23  # 32 MB in float32, for each thread
USERS_PER_BLOCK = 1024  # at most
_BYTES_PER_SCORE = 16  # a score in float64, and a copy


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
    count_block = count_rows if library.load() is None else _count_block

    def scored(users: Ints) -> AnyArray:
        return _scored(score, users, n_items)

    def count(block: UserBlock, stopped: Event, scores: AnyArray | None = None) -> None:
        if stopped.is_set():
            return
        scores = scored(block.users) if scores is None else scores
        _check_finite(count_block(block, scores), block.users, scores)

    # whole blocks, however few: a function that runs elsewhere wants many users at a time
    size, prepare = batch_size or users_per_block(n_items), None if concurrent else scored
    return count_blocks(count, size, n_items, train, test, _fewer(threads, size * n_items), progress, prepare)


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
    fewer = _fewer(threads, size * n_items)
    return best_of_blocks(search, size, n_items, users, excluded, fewer, progress, prepare)


def _fewer(threads: int, n_scores: int) -> int:
    """Return how many threads may each hold a block of scores; one more block waits for them.

    Blocks don't depend on memory, so results and the kept parts of an earlier run don't either.
    """
    return max(fitting(threads + 1, _BYTES_PER_SCORE * n_scores) - 1, 1)


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
    return library.call(f"best_scores_{scores.dtype}", library.MatrixArgument.of(scores), block.as_argument())


def _count_block(block: UserBlock, scores: AnyArray) -> int:
    """Count with the compiled loop; return the flat index of a score that is not finite, or -1."""
    argument = block.as_argument(scores.dtype)
    return library.call(f"count_scores_{scores.dtype}", library.MatrixArgument.of(scores), argument)


_FEW = 8  # up to this many held-out items, comparing is faster than sorting


def count_rows(block: UserBlock, scores: AnyArray) -> int:
    """Count by NumPy, as the compiled loop does; return the flat index of a score that is not finite, or -1."""
    for row, values in enumerate(scores):
        bad = _count_row(block, row, values)
        if bad >= 0:
            return row * len(values) + bad
    for spans in (block.train, block.test):
        spans.next[:] = spans.end
    return -1


def _count_row(block: UserBlock, row: int, values: AnyArray) -> int:
    """Count one user's scores; return the item whose score is not finite, or -1."""
    train, test = block.train.of(row), block.test.of(row)
    for name, items in (("train", train), ("test", test)):
        if not _ascends(items, len(values)):
            refuse_list(name, block.users[row])
    held = slice(block.test.begin[row], block.test.end[row])
    targets, others = values[test], values.copy()
    others[train] = 0
    others[test] = targets
    if not np.isfinite(others).all():
        return int(np.argmin(np.isfinite(others)))
    others[train] = others[test] = np.nan
    order = np.argsort(-targets, kind="stable")
    block.order[held] = order + held.start
    block.seen[held] = np.isin(test, train)
    block.above[held], block.tied[held] = above_and_tied(others, targets[order])
    return -1


def above_and_tied(others: AnyArray, targets: AnyArray) -> tuple[Any, Any]:
    """Return how many of the other scores, ignoring NaN, are above and equal to each target."""
    if len(targets) <= _FEW:
        return [np.count_nonzero(others > t) for t in targets], [np.count_nonzero(others == t) for t in targets]
    others = np.sort(others[~np.isnan(others)])
    low, high = (np.searchsorted(others, targets, side) for side in ("left", "right"))
    return len(others) - high, high - low


def _ascends(items: AnyArray, n_items: int) -> bool:
    return not len(items) or bool(items[0] >= 0 and items[-1] < n_items and (np.diff(items) >= 0).all())
