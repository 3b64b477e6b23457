"""Users in blocks: their lists are checked and cut, blocks are shared among threads, and counts are combined."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from truerank.core.checks import AnyArray, Bools, InputError, Ints, first_true
from truerank.core.threads import share
from truerank.kernels import library

Progress = Callable[[int], object]
Prepare = Callable[[Ints], AnyArray]
"""A result computed for some users in the calling thread, before another thread processes them."""
Result = TypeVar("Result")
_MOST_ITEMS = 2**31 - 1  # item numbers are int32 in the compiled loops


class Lists(NamedTuple):
    """A list of items per user, as in a CSR matrix; each list ascends."""

    indptr: AnyArray
    indices: AnyArray


class Counts(NamedTuple):
    """One entry per held-out item, from the top of each user's list down.

    `above` and `tied` count irrelevant candidates with a higher and with an equal score. Entry j
    belongs to the held-out item ``test.indices[order[j]]``; users are in the order of `test`.
    `seen`, in the order of `test`, is True for held-out items that are also in `train`.
    """

    above: Ints
    tied: Ints
    order: Ints
    seen: Bools


class Spans(NamedTuple):
    """The range of each user's list in `items`, and where to continue reading."""

    items: NDArray[np.int32]
    begin: Ints
    end: Ints
    next: Ints

    @classmethod
    def cut(cls, lists: Lists, users: Ints) -> Spans:
        """Return the lists of ascending users."""
        first, last = int(lists.indptr[users[0]]), int(lists.indptr[users[-1] + 1])
        begin, end = (lists.indptr[users + side].astype(np.int64) - first for side in (0, 1))
        return cls(np.ascontiguousarray(lists.indices[first:last], np.int32), begin, end, begin.copy())

    @classmethod
    def of_lists(cls, lists: Lists) -> Spans:
        """Return the lists of all users."""
        begin, end = (np.ascontiguousarray(each, np.int64) for each in (lists.indptr[:-1], lists.indptr[1:]))
        return cls(np.ascontiguousarray(lists.indices, np.int32), begin, end, begin.copy())

    def of(self, row: int) -> NDArray[np.int32]:
        """Return one user's list."""
        return self.items[self.begin[row] : self.end[row]]


class UserBlock(NamedTuple):
    """Users with held-out items, their two lists, and the part of the results they fill."""

    users: Ints
    train: Spans
    test: Spans
    order: Ints
    seen: Bools
    above: Ints
    tied: Ints

    def is_candidate(self, row: int, item: int) -> bool:
        """Whether an item is ranked for the user in this row."""
        return item not in self.train.of(row) or item in self.test.of(row)

    def reset(self) -> None:
        """Discard the counts."""
        for spans in (self.train, self.test):
            spans.next[:] = spans.begin
        self.above[:] = self.tied[:] = 0

    def as_argument(self, number: Any) -> library.BlockArgument:
        """Return the block for a compiled loop, which also writes the held-out items' scores, of this data type."""
        scores = np.empty(len(self.test.items), number)
        return library.BlockArgument.of(self.train, self.test, scores, self.order, self.seen, self.above, self.tied)


def count_blocks(
    count: Callable[..., None],
    size: int,
    n_items: int,
    train: Lists,
    test: Lists,
    threads: int,
    progress: Progress | None,
    prepare: Prepare | None = None,
) -> Counts:
    """Run `count` on blocks of `size` users, and return the combined counts.

    It takes a block, an event that is set once the result is no longer needed, and what `prepare` returned.
    """
    for name, lists in (("train", train), ("test", test)):
        check_lists(name, lists, len(test.indptr) - 1, n_items)
    above, tied, order = np.zeros((3, len(test.indices)), np.int64)
    counts = Counts(above, tied, order, np.zeros(len(test.indices), np.bool_))
    everyone = np.flatnonzero(np.diff(test.indptr))

    def run(users: Ints, stopped: Event, *prepared: AnyArray) -> int:
        block = _cut(users, train, test, counts)
        count(block, stopped, *prepared)
        if not stopped.is_set():
            check_read(users, train=block.train, test=block.test)
        block.order[:] += test.indptr[users[0]]
        return len(users)

    share_users(run, everyone, size, threads, progress, prepare)
    return counts


def share_users(
    run: Callable[..., Result],
    users: Ints,
    size: int,
    threads: int,
    done: Callable[[Result], object] | None,
    prepare: Prepare | None,
) -> list[Result]:
    """Run ``run(some, stopped)`` on `size` users at a time, or ``run(some, stopped, prepare(some))``; see `share`."""
    parts = [users[start : start + size] for start in range(0, len(users), size)]
    if prepare is None:
        return share(run, parts, threads, done)
    return share(
        lambda task, stopped: run(task[0], stopped, task[1]), parts, threads, done, lambda some: (some, prepare(some))
    )


def refuse_list(name: str, user: int) -> None:
    """Raise the error for a list out of order or range."""
    raise InputError(f"`{name}` must list items of the catalogue in ascending order, but does not for user {user}.")


def check_lists(name: str, lists: Lists, n_users: int, n_items: int) -> None:
    """Refuse lists that don't lie within `indices`, and item numbers that int32 can't hold.

    Held-out items must be in the catalogue, because their scores are read first. Whether lists ascend within
    the catalogue is checked when they are read.
    """
    if n_items > _MOST_ITEMS:
        raise InputError(f"a catalogue must have at most {_MOST_ITEMS} items, got {n_items}.")
    ends, size = lists.indptr, len(lists.indices)
    if len(ends) != n_users + 1 or ends[0] < 0 or ends[-1] > size or np.any(ends[1:] < ends[:-1]):
        raise InputError(f"`{name}` must have {n_users} lists, in order and within its {size} items.")
    if size and (name == "test" or lists.indices.dtype != np.int32):
        least, most = lists.indices.min(), lists.indices.max()
        if not 0 <= least <= most < n_items:
            raise InputError(f"`{name}` must hold items 0..{n_items - 1}, got {least}..{most}.")


def _cut(users: Ints, train: Lists, test: Lists, counts: Counts) -> UserBlock:
    """Return the block of ascending `users`, all with held-out items."""
    part = slice(int(test.indptr[users[0]]), int(test.indptr[users[-1] + 1]))
    results = (counts.order[part], counts.seen[part], counts.above[part], counts.tied[part])
    return UserBlock(users, Spans.cut(train, users), Spans.cut(test, users), *results)


def check_read(users: Ints, **lists: Spans) -> None:
    """Check that every list was read to its end: reading stops at an item out of order or range."""
    for name, spans in lists.items():
        if (row := first_true(spans.next < spans.end)) is not None:
            refuse_list(name, users[row])
