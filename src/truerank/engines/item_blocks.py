"""Counts over a catalogue in blocks: the same, bit for bit, as over the whole catalogue at once.

A block of items can't compare its scores with those of held-out items that it does not own. So their factors join it,
and the same kernel scores all of them: a score depends on the two rows alone. Among the joined items there are held-out
items of other users, which must not count. Let E be the distinct held-out items of some users, and A(S) a count over a
set S of items. Block b counts over b and E without b, so the sum over n blocks is A(all) + (n - 1) A(E); one more
count, over E alone, is subtracted n - 1 times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from truerank.arrays import AnyArray, Bools, Ints
from truerank.compiled import library
from truerank.counting.blocks import Counts, Lists
from truerank.counting.factors import USERS_PER_BLOCK, count_factors
from truerank.engines.catalogues import Items

# held-out items of the users that are counted together, as a share of a block that they join
_JOINED = 1 / 16


def count_in_blocks(user_factors: AnyArray, items: Items, train: Lists, test: Lists) -> Counts:
    """Return the counts that `count_factors` returns for all items at once.

    Parameters
    ----------
    user_factors : array of shape (n_users, d)
    items : Items
        A catalogue in blocks; a block at a time is held in memory.
    train, test : Lists
        As for `count_factors`. Every user has an item in `test`.

    Examples
    --------
    >>> rows = np.array([[4.0], [3.0], [1.0], [9.0], [1.0]])
    >>> items = Items(np.arange(5), (rows[:2], rows[2:]), np.array([0, 2, 5]))
    >>> train, test = Lists(np.array([0, 1]), np.array([3])), Lists(np.array([0, 2]), np.array([1, 2]))
    >>> count_in_blocks(np.ones((1, 1)), items, train, test)
    Counts(above=array([1, 1]), tied=array([0, 1]), order=array([0, 1]), seen=array([False, False]))
    """
    if len(items.blocks) == 1:
        return count_factors(user_factors, items.blocks[0], train, test)
    if library.load() is None:  # a score by NumPy depends on the other items, so parts of a catalogue may contradict
        return count_factors(user_factors, np.concatenate(items.blocks), train, test)
    size = int(np.diff(items.starts).max())
    parts = [_Part.of(user_factors[rows], items, _cut(train, rows), _cut(test, rows)) for rows in _parts(test, size)]
    for start, rows in zip(items.starts[:-1], items.blocks, strict=True):
        # the joined items come behind the block, which is copied once for all users
        room = np.empty((len(rows) + max((len(part.held) for part in parts), default=0), items.n_factors), rows.dtype)
        room[: len(rows)] = rows
        for part in parts:
            part.add(int(start), len(rows), room)
    return _joined([part.counts(len(items.blocks)) for part in parts])


@dataclass(frozen=True, eq=False)
class _Part:
    """Users that are counted together, their distinct held-out items, and what has been counted so far."""

    users: AnyArray
    held: Ints
    rows: AnyArray
    train: Lists
    test: Lists
    alone: Counts
    """Counts over the held-out items alone."""
    above: Ints
    tied: Ints
    seen: Bools

    @classmethod
    def of(cls, users: AnyArray, items: Items, train: Lists, test: Lists) -> _Part:
        held = np.unique(test.indices).astype(np.int64)
        rows, nothing = items.rows(held), Lists(np.zeros_like(test.indptr), np.zeros(0, np.int32))
        alone = count_factors(users, rows, nothing, Lists(test.indptr, np.searchsorted(held, test.indices)))
        above, tied = np.zeros((2, len(test.indices)), np.int64)
        return cls(users, held, rows, train, test, alone, above, tied, np.zeros(above.size, np.bool_))

    def add(self, start: int, size: int, room: AnyArray) -> None:
        """Count over a block that begins at item `start` and fills the first rows of `room`."""
        is_own = (self.held >= start) & (self.held < start + size)
        joined = self.rows[~is_own]
        room[size : size + len(joined)] = joined
        number = np.where(is_own, self.held - start, size + np.cumsum(~is_own) - 1)
        test, order = _ascending(Lists(self.test.indptr, number[np.searchsorted(self.held, self.test.indices)]))
        found = count_factors(self.users, room[: size + len(joined)], _within(self.train, start, size), test)
        at = order[found.order]
        self.above[at] += found.above
        self.tied[at] += found.tied
        self.seen[order] |= found.seen

    def counts(self, n_blocks: int) -> Counts:
        """Return the counts over all blocks."""
        order, again = self.alone.order, n_blocks - 1
        above = self.above[order] - again * self.alone.above
        return Counts(above, self.tied[order] - again * self.alone.tied, order, self.seen)


def _parts(test: Lists, block_size: int) -> Iterator[slice]:
    """Yield consecutive users with few enough held-out items together, or a single one."""
    most, start, n_users = max(int(block_size * _JOINED), 1), 0, len(test.indptr) - 1
    while start < n_users:
        fitting = int(np.searchsorted(test.indptr, test.indptr[start] + most, side="right")) - 1
        end = max(start + 1, min(fitting, start + USERS_PER_BLOCK))
        yield slice(start, end)
        start = end


def _cut(lists: Lists, users: slice) -> Lists:
    ends = lists.indptr[users.start : users.stop + 1]
    return Lists(ends - ends[0], lists.indices[ends[0] : ends[-1]])


def _within(lists: Lists, start: int, size: int) -> Lists:
    """Return the items of a block, numbered from its start."""
    inside = (lists.indices >= start) & (lists.indices < start + size)
    ends = np.concatenate([[0], np.cumsum(inside)])[lists.indptr]
    return Lists(ends, (lists.indices[inside] - start).astype(np.int32))


def _ascending(lists: Lists) -> tuple[Lists, Ints]:
    """Return the lists with each in ascending order, and which entry each one was."""
    order = np.lexsort((lists.indices, np.repeat(np.arange(len(lists.indptr) - 1), np.diff(lists.indptr))))
    return Lists(lists.indptr, lists.indices[order].astype(np.int32)), order


def _joined(parts: list[Counts]) -> Counts:
    """Return the counts of all users; the entries of a part are numbered from its first."""
    sizes = [part.order.size for part in parts]
    first = np.repeat(np.cumsum([0, *sizes])[:-1], sizes)
    above, tied, order, seen = (
        np.concatenate([*(getattr(part, name) for part in parts), np.zeros(0, kind)])
        for name, kind in (("above", np.int64), ("tied", np.int64), ("order", np.int64), ("seen", np.bool_))
    )
    return Counts(above, tied, order + first, seen)
