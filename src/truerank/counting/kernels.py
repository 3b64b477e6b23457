"""From scores to counts: how many irrelevant candidates stand above, or tie with, each held-out item.

Users are taken in blocks, blocks are shared among threads, and no block holds more than a few
megabytes of scores. Factors are scored and counted in one compiled loop; any other source of scores
hands over one block at a time. Without numba the same counts come from numpy, several times slower.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Event, Lock
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError

Array = NDArray[Any]
Progress = Callable[[int], object]
USERS_PER_TILE = 6  # scored together; only speed depends on it
USERS_PER_BLOCK = 2040  # at most; packing the items then takes 1 % of the time
SCORES_PER_BLOCK = 2**23  # of a block of scores: 32 MB in float32, for each thread
FLOAT32_BELOW = 2.0**100  # float64 factors and scores that float32 comes close to
COMPARED_BY_FLOAT32 = 1024  # held-out items; from here a binary search among exact scores is faster
ITEMS_PER_CALL = 2**15  # compiled code cannot be interrupted: a call lasts some tenths of a second


class Lists(NamedTuple):
    """A list of items per user, as in a CSR matrix; each list ascends."""

    indptr: Array
    indices: Array


class Counts(NamedTuple):
    """Per held-out item, from the top of each user's list down.

    `above` and `tied` count irrelevant candidates with a higher and with an equal score. Entry j
    belongs to the held-out item ``test.indices[order[j]]``; users keep their places of `test`.
    `seen` tells, for each entry of `test` as it stands there, whether it is in `train` too.
    """

    above: NDArray[np.int64]
    tied: NDArray[np.int64]
    order: NDArray[np.int64]
    seen: NDArray[np.bool_]


class _Block(NamedTuple):
    """Users with held-out items, their two lists, and the part of the results they fill."""

    users: NDArray[np.int64]
    train: NDArray[np.int32]
    train_at: NDArray[np.int64]  # per user: next and end in `train`
    test: NDArray[np.int32]
    test_at: NDArray[np.int64]  # per user: first, next and end in `test`
    order: NDArray[np.int64]
    seen: NDArray[np.bool_]
    above: NDArray[np.int64]
    tied: NDArray[np.int64]

    def lists(self, row: int) -> tuple[NDArray[np.int32], slice]:
        """Return the user's training items, and where its held-out items stand."""
        return self.train[slice(*self.train_at[row])], slice(self.test_at[row, 0], self.test_at[row, 2])

    def reset(self, train_at: NDArray[np.int64]) -> None:
        """Undo what was counted; `train_at` is as it was before."""
        self.train_at[:] = train_at
        self.test_at[:, 1] = self.test_at[:, 0]
        self.above[:] = self.tied[:] = 0


def count_factors(
    user_factors: Array,
    item_factors: Array,
    train: Lists,
    test: Lists,
    *,
    item_bias: Array | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Counts:
    """Return the counts of the scores ``user_factors @ item_factors.T + item_bias``.

    Compiled, a score depends on its two rows alone, so items with equal rows always tie.

    Parameters
    ----------
    user_factors, item_factors : arrays of shape (n_users, d) and (n_items, d)
        Computed in float32 if both are, else in float64, where float32 cannot decide. May be
        memory-mapped.
    train, test : Lists
        Candidates of a user are all items but those in `train`. Items in `test` are relevant,
        also when they are in `train` as well, and are never counted.
    item_bias : array of shape (n_items,), optional
    threads : int
        Blocks counted at a time. Has no influence on the result.
    progress : callable, optional
        Is told, after each block, how many users it had.

    Raises
    ------
    InputError
        If a candidate's score is not finite, or so large that a partial sum could overflow.

    Examples
    --------
    >>> train, test = Lists(np.array([0, 1]), np.array([3])), Lists(np.array([0, 2]), np.array([1, 2]))
    >>> items = np.array([[4.0], [3.0], [1.0], [9.0], [1.0]])
    >>> count_factors(np.ones((1, 1)), items, train, test)
    Counts(above=array([1, 1]), tied=array([0, 1]), order=array([0, 1]), seen=array([False, False]))
    """
    number = np.dtype(np.float32 if user_factors.dtype == item_factors.dtype == np.float32 else np.float64)
    items = np.asarray(item_factors, number)
    bias = np.ascontiguousarray([] if item_bias is None else item_bias, number)
    compiled = load_compiled()
    if compiled is None:
        score = _numpy_scores(user_factors, items, bias)
        return count_scores(score, len(items), train, test, threads=threads, progress=progress)
    largest, limit = max(_largest(items), _largest(bias)), float(np.finfo(items.dtype).max)
    exact = getattr(compiled, f"factors_{number}")
    quick = _narrow_loop() if number == np.float64 else exact
    compiled.compiled(quick)  # now, lest every thread does it
    crowded = Event()  # so many scores so close to each other that float32 does not help

    def count(block: _Block, stopped: Event) -> None:
        users = _user_rows(user_factors, block.users, number, bias.size > 0)
        most = _largest(users)
        product = users.shape[1] * most * largest
        # The negation also catches NaN.
        if not product < limit:
            _check_factors(block, users, items, bias)
        factors = users, items, bias
        if quick is not exact and not crowded.is_set() and _suits_float32(block, most, largest, product):
            train_at = block.train_at.copy()
            if _sweep(compiled.compiled(quick), block, factors, stopped):
                return
            crowded.set()
            block.reset(train_at)
        _sweep(compiled.compiled(exact), block, factors, stopped)

    size = _fair_size(int(np.count_nonzero(np.diff(test.indptr))), threads)
    return _count_blocks(count, size, len(items), train, test, threads, progress)


def count_scores(
    score: Callable[[NDArray[np.int64]], Array],
    n_items: int,
    train: Lists,
    test: Lists,
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> Counts:
    """Return the counts of the scores that a function gives for a block of users.

    Parameters
    ----------
    score : callable
        Takes the indices of users, returns their scores of shape (users, n_items) in float32 or
        float64. The blocks depend on `n_items` alone, so the numbers cannot change with the
        threads. Training items may have any score, minus infinity and NaN included.
    n_items, train, test, threads, progress
        As in `count_factors`.

    Raises
    ------
    InputError
        If a candidate's score is not finite.
    """
    compiled = load_compiled()

    def count(block: _Block, stopped: Event) -> None:
        if stopped.is_set():
            return
        scores = np.ascontiguousarray(score(block.users))
        if scores.shape != (len(block.users), n_items) or scores.dtype not in (np.float32, np.float64):
            expected = f"float32 or float64 of shape {(len(block.users), n_items)}"
            raise InputError(f"`score` must return {expected}, got {scores.dtype} of shape {scores.shape}.")
        if compiled is None:
            bad = _count_numpy(block, scores)
        else:
            kernel = compiled.compiled(getattr(compiled, f"scores_{scores.dtype}"))
            bad = kernel(scores, *block[1:5], np.empty(len(block.test), scores.dtype), *block[5:])
        if bad >= 0:
            row, item = divmod(bad, n_items)
            _refuse(block.users[row], item, scores[row, item])

    return _count_blocks(count, users_per_block(n_items), n_items, train, test, threads, progress)


def users_per_block(n_items: int) -> int:
    """Return for how many users `count_scores` asks at a time.

    Examples
    --------
    >>> users_per_block(3_706), users_per_block(100_000)
    (512, 83)
    """
    return int(np.clip(SCORES_PER_BLOCK // max(n_items, 1), 1, 512))


@cache
def load_compiled() -> ModuleType | None:
    """Return the module of compiled loops, or None where numba is missing."""
    try:
        from truerank.compiled import counting
    except ImportError:
        return None
    return counting


def _fair_size(users: int, threads: int) -> int:
    """Return a block size, in whole tiles, with which every thread gets as many blocks as the others."""
    rounds = -(-users // (threads * USERS_PER_BLOCK))
    tiles = -(-users // (threads * max(rounds, 1) * USERS_PER_TILE))
    return max(tiles, 1) * USERS_PER_TILE


def _count_blocks(
    count: Callable[[_Block, Event], None],
    size: int,
    n_items: int,
    train: Lists,
    test: Lists,
    threads: int,
    progress: Progress | None,
) -> Counts:
    """Run `count` on blocks of `size` users, and return what they have filled in."""
    if len(test.indices) and not 0 <= test.indices.min() <= test.indices.max() < n_items:
        got = f"{test.indices.min()}..{test.indices.max()}"
        raise InputError(f"`test` must hold items 0..{n_items - 1}, got {got}.")
    above, tied, order = np.zeros((3, len(test.indices)), np.int64)
    counts = Counts(above, tied, order, np.zeros(len(test.indices), np.bool_))
    stopped = Event()
    everyone = np.flatnonzero(np.diff(test.indptr))

    def run(start: int) -> int:
        users = everyone[start : start + size]
        block = _cut(users, train, test, counts)
        count(block, stopped)
        if not stopped.is_set():
            _check_used(block)
        block.order[:] += test.indptr[users[0]]
        return len(users)

    _share(run, range(0, len(everyone), size), threads, stopped, progress)
    return counts


def _share(
    run: Callable[[int], int], starts: Sequence[int], threads: int, stopped: Event, progress: Progress | None
) -> None:
    """Run on every start, in this thread and in others; of several errors raise that of the first start."""
    waiting, one_at_a_time = deque(starts), Lock()
    errors: dict[int, Exception] = {}

    def work() -> None:
        while waiting:
            try:
                start = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                done = run(start)
            except Exception as error:
                waiting.clear()  # those before it go on
                errors[start] = error
                return
            if progress:
                with one_at_a_time:
                    progress(done)

    with ThreadPoolExecutor(threads) as pool:  # which starts no thread until it has to
        try:
            others = [pool.submit(work) for _ in range(min(threads, len(starts)) - 1)]
            work()
            for other in others:
                other.result()
        finally:  # after Ctrl-C the other threads end within one call
            waiting.clear()
            stopped.set()
    if errors:
        raise errors[min(errors)]


def _cut(users: NDArray[np.int64], train: Lists, test: Lists, counts: Counts) -> _Block:
    """Return the block of ascending `users`, all with held-out items."""
    train_from, test_from = int(train.indptr[users[0]]), int(test.indptr[users[0]])
    test_part = slice(test_from, int(test.indptr[users[-1] + 1]))
    train_part = slice(train_from, int(train.indptr[users[-1] + 1]))
    spans = [lists.indptr[users + side].astype(np.int64) for lists in (train, test) for side in (0, 1)]
    return _Block(
        users,
        np.ascontiguousarray(train.indices[train_part], np.int32),
        np.stack(spans[:2], axis=1) - train_from,
        np.ascontiguousarray(test.indices[test_part], np.int32),
        np.stack([spans[2], spans[2], spans[3]], axis=1) - test_from,
        counts.order[test_part],
        counts.seen[test_part],
        counts.above[test_part],
        counts.tied[test_part],
    )


def _check_used(block: _Block) -> None:
    """Check that every list was read to its end: reading stops at an item out of order or range."""
    for name, at in (("train", block.train_at), ("test", block.test_at)):
        unread = np.flatnonzero(at[:, -2] < at[:, -1])
        if len(unread):
            _refuse_list(name, block.users[unread[0]])


def _refuse_list(name: str, user: int) -> None:
    raise InputError(f"`{name}` must list items of the catalogue in ascending order, not so for user {user}.")


def _suits_float32(block: _Block, *sizes: float) -> bool:
    """Whether float32 holds numbers of these sizes, and held-out items are not too many to compare with each."""
    many = np.maximum(block.test_at[:, 2] - block.test_at[:, 0] - COMPARED_BY_FLOAT32, 0).mean()
    return bool(many <= 2) and all(size < FLOAT32_BELOW for size in sizes)


def _narrow_loop() -> Callable[..., bool]:
    from truerank.compiled.narrow import narrow_float64

    return narrow_float64


def _sweep(kernel: Callable[..., bool], block: _Block, factors: tuple[Array, ...], stopped: Event) -> bool:
    """Count all items for the block, unless the kernel gives up; return whether it has not."""
    n_items, number = len(factors[1]), factors[1].dtype
    targets = np.empty(len(block.test), number)
    for start in range(0, n_items, ITEMS_PER_CALL):
        stop = min(start + ITEMS_PER_CALL, n_items)
        if not stopped.is_set() and not kernel(*factors, start, stop, *block[1:5], targets, *block[5:]):
            return False
    return True


def _user_rows(user_factors: Array, users: NDArray[np.int64], number: np.dtype[Any], biased: bool) -> Array:
    """Return the users' factors, and for the items' bias one factor more that is 1."""
    factors = user_factors.shape[1]
    rows = np.ones((len(users), factors + biased), number)
    rows[:, :factors] = user_factors[users]
    return rows


def _largest(values: Array) -> float:
    """Return the largest absolute value, NaN if there is any, without a copy of the values."""
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def _check_factors(block: _Block, users: Array, items: Array, bias: Array) -> None:
    """Refuse factors whose products do not add up to a finite score in every order."""
    size = max(1, SCORES_PER_BLOCK // len(users))
    for start in range(0, len(items), size):
        chosen = slice(start, start + size)
        part = np.column_stack([items[chosen], bias[chosen]]) if bias.size else items[chosen]
        with np.errstate(all="ignore"):
            scores = np.abs(users) @ np.abs(part).T
        for row, column in np.argwhere(~np.isfinite(scores)):
            listed, held = block.lists(row)
            if start + column not in listed or start + column in block.test[held]:
                _refuse(block.users[row], start + column, scores[row, column])


def _refuse(user: int, item: int, score: float) -> None:
    raise InputError(f"scores must be finite, got {score} for user {user} and item {item}.")


def _numpy_scores(user_factors: Array, items: Array, bias: Array) -> Callable[[NDArray[np.int64]], Array]:
    """Return a function from users to scores by BLAS, in which equal items have equal scores.

    BLAS computes the edges of a matrix in another order than its middle, which would break true
    ties; so each distinct item is scored once.
    """
    rows = np.column_stack([items, bias]) if bias.size else items
    distinct, places = np.unique(rows, axis=0, return_inverse=True)

    def score(users: NDArray[np.int64]) -> Array:
        with np.errstate(all="ignore"):  # what is not finite is found, and named, when counting
            return (_user_rows(user_factors, users, items.dtype, bias.size > 0) @ distinct.T)[:, places]

    return score


def _count_numpy(block: _Block, scores: Array) -> int:
    """Count as the compiled loop does; return the flat place of a bad score, or -1."""
    for row, values in enumerate(scores):
        train, held = block.lists(row)
        test = block.test[held]
        for name, items in (("train", train), ("test", test)):
            if not _ascends(items, len(values)):
                _refuse_list(name, block.users[row])
        targets = values[test]
        order = np.argsort(-targets, kind="stable")
        others = values.copy()
        others[train] = 0
        others[test] = targets
        if not np.isfinite(others).all():
            return row * len(values) + int(np.argmin(np.isfinite(others)))
        others[train] = others[test] = np.nan
        block.order[held] = order + held.start
        block.seen[held] = np.isin(test, train)
        block.above[held], block.tied[held] = _places(others, targets[order])
    block.train_at[:, 0], block.test_at[:, 1] = block.train_at[:, 1], block.test_at[:, 2]
    return -1


def _places(others: Array, targets: Array) -> tuple[Any, Any]:
    """Return how many of the other scores, NaN left out, are above and equal to each target."""
    if len(targets) <= 8:  # comparing is then faster than sorting
        return [np.count_nonzero(others > t) for t in targets], [np.count_nonzero(others == t) for t in targets]
    others = np.sort(others[~np.isnan(others)])
    low, high = (np.searchsorted(others, targets, side) for side in ("left", "right"))
    return len(others) - high, high - low


def _ascends(items: NDArray[np.int32], n_items: int) -> bool:
    return not len(items) or bool(items[0] >= 0 and items[-1] < n_items and (np.diff(items) >= 0).all())
