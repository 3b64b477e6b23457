"""A table of users -> arrays: a row has the factors of a user, the training items and the held-out items.

Columns: `user`, `features` (a list of numbers), `held` (a list of item ids); if there are any, `seen` (a list of item
ids or null) and `grades` (a list of numbers, as long as `held`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from truerank.arrays import AnyArray, Bools, Floats, Ints
from truerank.counting.blocks import Lists
from truerank.engines.catalogues import Items, factor_rows
from truerank.errors import InputError
from truerank.formats.ids import as_names, shown


@dataclass(frozen=True, eq=False)
class UserRows:
    """Users with held-out items.

    Attributes
    ----------
    names : array
        Ids of the users.
    factors : array of shape (n_users, d)
    train, test : Lists
        Numbers of the training and held-out items of each user, ascending and distinct.
    grades : array of float, optional
        Grade of each held-out item.
    """

    names: AnyArray
    factors: AnyArray
    train: Lists
    test: Lists
    grades: Floats | None

    @classmethod
    def of(cls, table: pa.Table, items: Items) -> UserRows:
        """Read a table, or raise `InputError` naming a user; items with a grade of 0 or below are not held out.

        Examples
        --------
        >>> items = Items(np.array(["ant", "bee", "cat"]), (np.ones((3, 2)),), np.array([0, 3]))
        >>> row = {"user": 7, "features": [1.0, 2.0], "seen": ["ant"], "held": ["cat", "bee"]}
        >>> rows = UserRows.of(pa.Table.from_pylist([row]), items)
        >>> rows.train.indices.tolist(), rows.test.indices.tolist()
        ([0], [1, 2])
        """
        users, features = (table[name].combine_chunks() for name in ("user", "features"))
        test, grades = _held_out(table, users, items)
        some = np.diff(test.indptr) > 0
        factors = factor_rows(features.filter(pa.array(some)), "user", users.filter(pa.array(some)))
        _check_length(factors, items)
        train = _chosen(_training(table, users, items), some)
        return cls(as_names(users, "user")[some], factors, train, _chosen(test, some), grades)


def _held_out(table: pa.Table, users: pa.Array, items: Items) -> tuple[Lists, Floats | None]:
    """Return the relevant items of each user, and their grades if there are any."""
    found, grades = _items(table["held"].combine_chunks(), items, users), None
    if "grades" in table.column_names:
        grades = table["grades"].combine_chunks().flatten().to_numpy(zero_copy_only=False).astype(np.float64)
        found, grades = _relevant(found, grades, users, items)
    keys, first = np.unique(_keys(found, items), return_index=True)
    _refuse_repeats(keys, found, users, items)
    return _lists(keys, len(users), items), None if grades is None else grades[first]


def _training(table: pa.Table, users: pa.Array, items: Items) -> Lists:
    """Return the training items of each user; none without their column."""
    if "seen" not in table.column_names:
        return Lists(np.zeros(len(users) + 1, np.int64), np.zeros(0, np.int32))
    seen = _items(table["seen"].combine_chunks(), items, users)
    return _lists(np.unique(_keys(seen, items)), len(users), items)


def _items(lists: pa.Array, items: Items, users: pa.Array) -> Lists:
    """Return the numbers of the items in lists of ids."""
    ids, sizes = lists.flatten(), lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    if ids.null_count:
        raise InputError("item ids must not be null, but some are.")
    found = Lists(np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), items.numbers(ids))
    if np.any(unknown := found.indices < 0):
        at = int(np.argmax(unknown))
        user = users[int(np.searchsorted(found.indptr, at, side="right")) - 1].as_py()
        raise InputError(f"item {shown(ids[at].as_py())} of user {shown(user)} has no factors; leave it out.")
    return found


def _relevant(held: Lists, grades: Floats, users: pa.Array, items: Items) -> tuple[Lists, Floats]:
    """Return the items whose grade is above 0, and these grades."""
    if not np.isfinite(grades).all():
        at = int(np.argmin(np.isfinite(grades)))
        user, item = _named(int(_keys(held, items)[at]), users, items)
        raise InputError(f"grades must be finite, got {grades[at]} for user {user} and item {item}.")
    kept = grades > 0
    return Lists(np.concatenate([[0], np.cumsum(kept)])[held.indptr], held.indices[kept]), grades[kept]


def _keys(lists: Lists, items: Items) -> Ints:
    """Return a number for each pair of user and item; they are in the order of the users, then of the items."""
    return np.repeat(np.arange(len(lists.indptr) - 1), np.diff(lists.indptr)) * items.ids.size + lists.indices


def _lists(keys: Ints, n_users: int, items: Items) -> Lists:
    users, numbers = np.divmod(keys, max(items.ids.size, 1))
    return Lists(np.searchsorted(users, np.arange(n_users + 1)), numbers.astype(np.int32))


def _refuse_repeats(keys: Ints, held: Lists, users: pa.Array, items: Items) -> None:
    if keys.size < held.indices.size:
        given = np.sort(_keys(held, items))
        user, item = _named(int(given[1:][given[1:] == given[:-1]][0]), users, items)
        raise InputError(f"an item must be held out once, but item {item} of user {user} is twice.")


def _named(key: int, users: pa.Array, items: Items) -> tuple[str, str]:
    user, item = divmod(key, items.ids.size)
    return shown(users[user].as_py()), shown(items.ids[item].item())


def _check_length(factors: AnyArray, items: Items) -> None:
    if len(factors) and factors.shape[1] != items.n_factors:
        raise InputError(
            f"users and items must have factors of the same length, got {factors.shape[1]} and {items.n_factors}."
        )


def _chosen(lists: Lists, users: Bools) -> Lists:
    """Return the lists of some users."""
    sizes = np.diff(lists.indptr)
    ends = np.concatenate([[0], np.cumsum(sizes[users])])
    return Lists(ends, lists.indices[np.repeat(users, sizes)])
