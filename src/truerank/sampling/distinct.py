"""Draw distinct candidates for many users at once, by rejection."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from truerank.arrays import Ints
from truerank.compiled import library
from truerank.sampling.pools import ItemLists, Pool

# users for whom this part of the items is left out or drawn are drawn for one by one
_DENSE = 0.5


def distinct_items(
    pool: Pool, users: Ints, counts: Ints, rng: np.random.Generator, taken: ItemLists | None = None
) -> ItemLists:
    """Return candidates of users, each equally likely, none twice; those of a user ascend.

    Parameters
    ----------
    pool : Pool
    users : array of int, ascending
        Which users of the pool.
    counts : array of int, one per user
        How many to draw, at most as many as are left.
    rng : numpy.random.Generator
    taken : ItemLists, one per user, optional
        Candidates that have been drawn before.

    Examples
    --------
    >>> pool = Pool(6, [np.array([1, 4]), np.array([0])])
    >>> drawn = distinct_items(pool, np.array([0, 1]), np.array([4, 2]), np.random.default_rng(0))
    >>> drawn.indptr.tolist(), drawn[0].tolist()
    ([0, 4, 6], [0, 2, 3, 5])
    """
    before = ItemLists(np.zeros(users.size + 1, np.int64), np.zeros(0, np.int64)) if taken is None else taken
    drawn = _Drawn.of(pool.n_items, pool.excluded_of(users), before, counts)
    used = np.diff(drawn.excluded.indptr) + np.diff(before.indptr) + counts
    dense = np.flatnonzero(used > _DENSE * pool.n_items)
    drawn.found[dense] = counts[dense]  # the others come first
    add = _add_by_numpy if library.load() is None else _add
    while missing := int((counts - drawn.found).sum()):
        add(drawn, rng.integers(0, pool.n_items, missing))
    for user in dense.tolist():
        drawn.lists[user][:] = np.sort(rng.choice(drawn.left(user), counts[user], replace=False, shuffle=False))
    return drawn.lists


class _Drawn(NamedTuple):
    """Lists of items with room for those that are still to be found, of a catalogue from which some are blocked."""

    n_items: int
    excluded: ItemLists
    taken: ItemLists
    lists: ItemLists
    found: Ints

    @classmethod
    def of(cls, n_items: int, excluded: ItemLists, taken: ItemLists, counts: Ints) -> _Drawn:
        bounds = np.concatenate([[0], np.cumsum(counts)])
        return cls(n_items, excluded, taken, ItemLists(bounds, np.zeros(bounds[-1], np.int64)), np.zeros_like(counts))

    def left(self, user: int) -> Ints:
        """Return all items that may be drawn for a user."""
        is_left = np.ones(self.n_items, dtype=np.bool_)
        is_left[self.excluded[user]] = is_left[self.taken[user]] = False
        return np.flatnonzero(is_left)


def _add(drawn: _Drawn, draws: Ints) -> None:
    """Take the next draws of each user, as many as are missing, unless they are blocked or have been drawn."""
    excluded, taken = (library.Rows.of(lists.indptr, lists.items) for lists in (drawn.excluded, drawn.taken))
    room = library.Drawn.of(drawn.n_items, excluded, taken, drawn.lists.items, drawn.lists.indptr, drawn.found)
    library.call("add_draws", room, draws, len(draws))


def _add_by_numpy(drawn: _Drawn, draws: Ints) -> None:
    missing = np.diff(drawn.lists.indptr) - drawn.found
    for user in np.flatnonzero(missing):
        fresh, draws = draws[: missing[user]], draws[missing[user] :]
        known = drawn.lists[user][: drawn.found[user]]
        kept = np.union1d(known, np.setdiff1d(fresh, np.concatenate([drawn.excluded[user], drawn.taken[user]])))
        drawn.lists[user][: kept.size] = kept
        drawn.found[user] = kept.size
