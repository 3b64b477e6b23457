"""The work of an executor: a table of users and a catalogue of items, or of their lists -> ranks."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from truerank.core.checks import AnyArray, Bools, Floats, InputError, Ints, shown
from truerank.core.csr import bounds, owners
from truerank.core.ranks import Ranks
from truerank.data.interactions import Interactions
from truerank.engines.catalogues import Items, factor_rows
from truerank.formats.ids import as_names
from truerank.kernels import library
from truerank.kernels.factors import USERS_PER_BLOCK, count_factors
from truerank.kernels.user_blocks import Counts, Lists
from truerank.ranking.among_samples import rank_by_design
from truerank.ranking.exact import same_scores
from truerank.ranking.held_out import HeldOut
from truerank.ranking.ranks_from_lists import read_lists
from truerank.sampling.designs import SamplingDesign
from truerank.scoring.scorers import Factors, Scorer


def rank_users(table: pa.Table, items: Items) -> Ranks:
    """Return the exact ranks of the held-out items of some users among all items of a catalogue.

    Parameters
    ----------
    table : pyarrow.Table
        A row per user, with the columns that `UserRows.of` reads.
    items : Items
        An opened catalogue.

    Examples
    --------
    >>> items = Items(np.array(["ant", "bee", "cat"]), (np.array([[1.0], [3.0], [2.0]]),), np.array([0, 3]))
    >>> rows = [{"user": "ann", "features": [1.0], "seen": [], "held": ["ant", "cat"]},
    ...         {"user": "bob", "features": [-1.0], "seen": ["ant"], "held": ["bee"]}]
    >>> ranks = rank_users(pa.Table.from_pylist(rows), items)
    >>> ranks.rank.tolist(), ranks.n_candidates.tolist(), ranks.ids.tolist()
    ([2, 3, 2], [3, 2], ['ann', 'bob'])
    """
    rows = UserRows.of(table, items)
    _check_range(rows, items)
    counts = count_in_blocks(rows.factors, items, rows.train, rows.test)
    both = np.diff(bounds(counts.seen)[rows.test.indptr])
    return Ranks(
        above=counts.above,
        tied=counts.tied,
        n_candidates=items.ids.size - np.diff(rows.train.indptr) + both,
        indptr=rows.test.indptr,
        ids=rows.names,
        grades=None if rows.grades is None else rows.grades[counts.order],
        same_score=None if rows.grades is None else _same_scores(rows, items),
        items=items.ids[rows.test.indices[counts.order]],
    )


def sample_users(table: pa.Table, items: Items, design: SamplingDesign, seed: int) -> Ranks:
    """Return the ranks among sampled candidates, scoring no others; the sample depends on the seed and the users.

    Parameters
    ----------
    table, items
        As for `rank_users`.
    design : SamplingDesign
    seed : int

    Examples
    --------
    >>> import truerank as tr
    >>> items = Items(np.arange(50), (np.arange(50.0)[:, None],), np.array([0, 50]))
    >>> rows = [{"user": "ann", "features": [1.0], "seen": [], "held": [49]}]
    >>> sample_users(pa.Table.from_pylist(rows), items, tr.UniformSampling(10), seed=1)
    Ranks(1 instance, 1 relevant item, 11 of 50 candidates sampled, no ties)
    """
    rows = UserRows.of(table, items)
    rng = np.random.default_rng([seed, stable_hash(rows.names)])
    train = _interactions(rows.train, items.ids.size) if "seen" in table.column_names else None
    test = _interactions(rows.test, items.ids.size)
    held = HeldOut((_RowScorer(rows.factors, items),), train, test, rows.grades)
    (ranks,) = rank_by_design(design, held, held.scorers, rng, items.popularity)
    named = None if ranks.items is None else items.ids[ranks.items]
    return replace(ranks, ids=rows.names, items=named)


def stable_hash(names: AnyArray) -> int:
    """Return a number that depends on the names alone, on every machine.

    Examples
    --------
    >>> stable_hash(np.array(["ann", "bob"])) == stable_hash(np.array(["ann", "bob"]))
    True
    """
    return zlib.crc32("\n".join(map(str, names.tolist())).encode())


class _RowScorer(Scorer):
    """Scores pairs by rows of a catalogue in blocks."""

    def __init__(self, factors: AnyArray, items: Items) -> None:
        self.factors, self.items = factors, items
        self.n_users, self.n_items = len(factors), items.ids.size

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items."""
        return np.hstack([self.factors[users] @ block.T for block in self.items.blocks])

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        """Return the score of each pair; no others are computed."""
        distinct, which = np.unique(items, return_inverse=True)
        return np.einsum("ij,ij->i", self.factors[users], self.items.rows(distinct)[which])


def _interactions(lists: Lists, n_items: int) -> Interactions:
    shape = (len(lists.indptr) - 1, n_items)
    return Interactions(sp.csr_array((np.ones(len(lists.indices), np.float32), lists.indices, lists.indptr), shape))


def _check_range(rows: UserRows, items: Items) -> None:
    """Refuse users whose scores might overflow, while their names are at hand."""
    number = np.result_type(rows.factors.dtype, items.blocks[0].dtype)
    with np.errstate(over="ignore"):
        highest = np.abs(rows.factors).max(axis=1, initial=0) * number.type(items.largest * items.n_factors)
    if not np.isfinite(highest).all():
        name = shown(rows.names[~np.isfinite(highest)].tolist()[0])
        raise InputError(f"scores must be finite in {number}, but the factors of user {name} are too large for that.")


def _same_scores(rows: UserRows, items: Items) -> Bools:
    """Return whether held-out items have the scores of those before them, which needs no other items."""
    held = np.unique(rows.test.indices).astype(np.int64)
    scorer = Factors(rows.factors, items.rows(held))
    numbers = np.searchsorted(held, rows.test.indices).astype(np.int32)
    test = _interactions(Lists(rows.test.indptr, numbers), held.size)
    nothing = _interactions(Lists(np.zeros_like(rows.test.indptr), numbers[:0]), held.size)
    counts = scorer.count(Lists(nothing.indptr, nothing.items), Lists(test.indptr, test.items))
    return same_scores(scorer, nothing, test, counts, threads=1)


def rank_listed(table: pa.Table, depth: int | Literal["all"]) -> Ranks:
    """Return the ranks of the relevant items of some users in their lists.

    Parameters
    ----------
    table : pyarrow.Table
        A row per user: `user`, `held` (a list of relevant items), perhaps `grades`, and the list itself in `item` and
        `score` or `rank`; these are null for a user without a list.
    depth : int or "all"
        As for `truerank.read_lists`.

    Examples
    --------
    >>> rows = [{"user": "ann", "held": ["a"], "item": ["b", "a"], "score": [2.0, 1.0]},
    ...         {"user": "bob", "held": ["a"], "item": None, "score": None}]
    >>> ranks = rank_listed(pa.Table.from_pylist(rows), depth=2)
    >>> ranks.ids.tolist(), ranks.rank.tolist()
    (['ann', 'bob'], [2, 3])
    """
    value = "score" if "score" in table.column_names else "rank"
    run = _flat(table, {"item": "item", value: value})
    truth = _flat(table, {"held": "item", "grades": "relevance"})
    if any(column.null_count for part in (run, truth) for column in part.columns):
        raise InputError("lists and relevant items must not hold nulls, but some do.")
    # Only all users together show whether any id matches. One more user, whose list does, lets every batch pass.
    extra = pa.table({"user": [len(table)], "item": truth["item"].slice(0, 1), value: [1.0], "relevance": [1.0]})
    both = [pa.concat_tables([part, extra.select(part.column_names)]) for part in (run, truth)]
    ranks = read_lists(*both, depth=depth, user="user", item="item", **{value: value})  # type: ignore[arg-type]
    assert ranks.ids is not None
    ranks = ranks[ranks.ids < len(table)]
    return replace(ranks, ids=as_names(table["user"].combine_chunks(), "user")[ranks.ids], notes=())


def _flat(table: pa.Table, columns: dict[str, str]) -> pa.Table:
    """Return a row per entry of the lists, with the number of the row that it came from.

    They are in the order of the items, so that ties don't depend on the order of a list, which Spark leaves open.
    """
    lists = {new: table[old].combine_chunks() for old, new in columns.items() if old in table.column_names}
    sizes = lists["item"].value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    users = {"user": np.repeat(np.arange(len(table)), sizes)}
    flat = pa.table(users | {name: column.flatten() for name, column in lists.items()})
    return flat.sort_by([("user", "ascending"), ("item", "ascending")])


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
    found = Lists(bounds(sizes), items.numbers(ids))
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
    return Lists(bounds(kept)[held.indptr], held.indices[kept]), grades[kept]


def _keys(lists: Lists, items: Items) -> Ints:
    """Return a number for each pair of user and item; they are in the order of the users, then of the items."""
    return owners(lists.indptr) * items.ids.size + lists.indices


def _lists(keys: Ints, n_users: int, items: Items) -> Lists:
    users, numbers = np.divmod(keys, max(items.ids.size, 1))
    return Lists(np.searchsorted(users, np.arange(n_users + 1)), numbers.astype(np.int32))


def _refuse_repeats(keys: Ints, held: Lists, users: pa.Array, items: Items) -> None:
    if keys.size < held.indices.size:
        given = np.sort(_keys(held, items))
        user, item = _named(int(given[1:][given[1:] == given[:-1]][0]), users, items)
        raise InputError(f"an item must be held out once, but item {item} of user {user} is held out twice.")


def _named(key: int, users: pa.Array, items: Items) -> tuple[str, str]:
    user, item = divmod(key, items.ids.size)
    return shown(users[user].as_py()), shown(items.ids[item].item())


def _check_length(factors: AnyArray, items: Items) -> None:
    if len(factors) and factors.shape[1] != items.n_factors:
        both = f"{factors.shape[1]} and {items.n_factors}"
        raise InputError(f"users and items must have factors of the same length, got {both}.")


def _chosen(lists: Lists, users: Bools) -> Lists:
    """Return the lists of some users."""
    sizes = np.diff(lists.indptr)
    return Lists(bounds(sizes[users]), lists.indices[np.repeat(users, sizes)])


# held-out items of the users that are counted together, as a share of the block that they are added to
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
    if len(items.blocks) == 1 or not len(user_factors):
        return count_factors(user_factors, items.blocks[0], train, test)
    if library.load() is None:  # NumPy's scores depend on the other items, so parts of a catalogue may disagree
        return count_factors(user_factors, np.concatenate(items.blocks), train, test)
    size = int(np.diff(items.starts).max())
    parts = [_Part.of(user_factors[rows], items, _cut(train, rows), _cut(test, rows)) for rows in _parts(test, size)]
    for start, rows in zip(items.starts[:-1], items.blocks, strict=True):
        # the added items come after the block, which is copied once for all users
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
    ends = bounds(inside)[lists.indptr]
    return Lists(ends, (lists.indices[inside] - start).astype(np.int32))


def _ascending(lists: Lists) -> tuple[Lists, Ints]:
    """Return the lists, each in ascending order, and which entry each one was."""
    order = np.lexsort((lists.indices, owners(lists.indptr)))
    return Lists(lists.indptr, lists.indices[order].astype(np.int32)), order


def _joined(parts: list[Counts]) -> Counts:
    """Return the counts of all users; the entries of a part are numbered from its first."""
    sizes = [part.order.size for part in parts]
    first = np.repeat(bounds(sizes)[:-1], sizes)
    above, tied, order, seen = map(np.concatenate, zip(*parts, strict=True))
    return Counts(above, tied, order + first, seen)
