"""The k best items of each user, searched for in blocks of users without sorting the others."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import AnyArray, Ints
from truerank.compiled import library
from truerank.counting.blocks import Lists, Prepare, Progress, Spans, check_lists, check_read, refuse_list, share_users


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

    def as_argument(self) -> library.Best:
        """Return the block for a compiled loop."""
        lists, number = library.Lists.of(*self.excluded), self.best.scores.dtype
        items, found = library.address(self.best.items, np.int32), library.address(self.best.found, np.int64)
        argument = library.Best(*self.best.items.shape, lists, library.address(self.best.scores, number), items, found)
        argument.arrays = lists, self.best  # kept alive as long as the pointers
        return argument


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
    if len(excluded) and (excluded[0] < 0 or excluded[-1] >= len(values) or (np.diff(excluded) < 0).any()):
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
