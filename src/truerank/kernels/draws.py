"""Items drawn at random for users: what is drawn for a user depends only on the user's seed."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.core.checks import AnyArray, Bools, Ints
from truerank.kernels import library
from truerank.kernels.user_blocks import Lists

Seeds = NDArray[np.uint64]

_DIGITS, _LEAST_SHARE, _SPARSE, _ABREAST, _SPARE = 6, 3, 4, 8, 8  # as in draws.c


class Way(IntEnum):
    """How items are drawn: each set equally likely, the same with larger sets that hold smaller ones, or each item."""

    DISTINCT = 0
    NESTED = 1
    REPEATED = 2


class Draws(NamedTuple):
    """How many items are drawn for each user of a catalogue, and how; one seed of `user_seeds` makes all of them."""

    n_items: int
    seed: int
    size: int
    way: Way

    def as_argument(self, users: Ints) -> library.DrawsArgument:
        """Return what a compiled loop needs to draw for users with these numbers."""
        sizes = np.full(users.size, self.size, np.int64)
        return library.DrawsArgument.of(self.n_items, self.way, user_seeds(self.seed, users), sizes)


def user_seeds(seed: int, users: Ints) -> Seeds:
    """Return a seed for each user number.

    Examples
    --------
    >>> [hex(one) for one in user_seeds(7, np.array([0, 1])).tolist()]
    ['0x6ff997b56cbcb922', '0x7a1f74a83d0e2a5a']
    """
    return mixed(np.uint64(seed) ^ mixed(users.astype(np.uint64)))


def mixed(numbers: Seeds) -> Seeds:
    """Return a pseudo-random number for each of these numbers (splitmix64).

    Examples
    --------
    >>> [hex(number) for number in mixed(np.arange(2, dtype=np.uint64)).tolist()]
    ['0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4']
    """
    with np.errstate(over="ignore"):
        mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def draw_items(n_items: int, way: Way, seeds: Seeds, sizes: Ints, excluded: Lists, taken: Lists) -> Ints:
    """Return random items of users, those of one after those of the other.

    Parameters
    ----------
    n_items : int
        Size of the catalogue.
    way : Way
    seeds, sizes : arrays, one entry per user
        A seed, and how many items; without repetition at most as many as are left.
    excluded, taken : Lists, one per user
        Items that are not drawn. In nested draws, those of former draws are `taken`: draws go on from there.

    Examples
    --------
    >>> nothing = Lists(np.array([0, 0]), np.zeros(0, np.int32))
    >>> draw_items(100, Way.DISTINCT, user_seeds(0, np.array([5])), np.array([4]), nothing, nothing)
    array([15, 23, 66, 16])
    """
    lists = excluded, taken
    if library.load() is None:
        rows = (np.split(each.indices, each.indptr[1:-1])[: sizes.size] for each in lists)
        drawn = [_draw(n_items, way, *each) for each in zip(seeds, sizes.tolist(), *rows, strict=True)]
        return np.concatenate([*drawn, np.zeros(0, np.int64)])
    items = np.empty(int(sizes.sum()) + _SPARE, np.int32)
    draws = library.DrawsArgument.of(n_items, way, seeds, np.ascontiguousarray(sizes, np.int64))
    library.call("draw_items", draws, *(library.ListsArgument.of_rows(*each) for each in lists), items)
    return items[: items.size - _SPARE].astype(np.int64)


def _draw(n_items: int, way: Way, seed: np.uint64, size: int, excluded: AnyArray, taken: AnyArray) -> Ints:
    """Return the items of one user; draws.c says how they come about."""
    is_free = np.ones(n_items, np.bool_)
    is_free[excluded] = False
    series = _Series.of(seed, is_free)
    is_free[taken] = False
    if way != Way.NESTED:
        series = _Series.of(seed, is_free)
    return series.first(size, is_free) if way == Way.REPEATED else _draw_distinct(series, way, size, is_free)


def _draw_distinct(series: _Series, way: Way, size: int, is_free: Bools) -> Ints:
    left = int(is_free.sum())
    is_rest = way == Way.DISTINCT and 2 * size > left
    wanted = left - size if is_rest else size
    share = (wanted << _DIGITS) // max(left, 1) if way == Way.DISTINCT else 0
    if share < _LEAST_SHARE and not is_rest:
        return series.first(size, is_free, distinct=True)
    chosen = is_free & _choose_some(series.seed, share if share >= _LEAST_SHARE else 0, is_free.size)
    surplus = int(chosen.sum()) - wanted
    changed = series.first(abs(surplus), chosen if surplus > 0 else is_free & ~chosen, distinct=True)
    chosen[changed] = surplus < 0
    return np.flatnonzero(is_free & ~chosen if is_rest else chosen)


def _n_words(n_items: int) -> int:
    return (n_items // 64 // _ABREAST + 1) * _ABREAST


def _choose_some(seed: np.uint64, share: int, n_items: int) -> Bools:
    """Return for each item whether it is chosen, with a chance of `share` in 2**_DIGITS."""
    bits = words(seed, 0, _DIGITS * _n_words(n_items)).reshape(-1, _DIGITS, _ABREAST)
    chosen = np.zeros(bits[:, 0].shape, np.uint64)
    for digit in range(_DIGITS):
        chosen = chosen | bits[:, digit] if share >> digit & 1 else chosen & bits[:, digit]
    return np.unpackbits(chosen.ravel().astype("<u8").view(np.uint8), bitorder="little")[:n_items].astype(np.bool_)


def words(seed: np.uint64, start: int, size: int) -> Seeds:
    """Return some of the random words that follow from a seed."""
    with np.errstate(over="ignore"):
        return mixed(seed + np.arange(start, start + size, dtype=np.uint64))


class _Series(NamedTuple):
    """An endless series of random items; if few are free, of these only."""

    seed: np.uint64
    n_items: int
    among: Ints | None

    @classmethod
    def of(cls, seed: np.uint64, is_free: Bools) -> _Series:
        left = int(is_free.sum())
        return cls(seed, is_free.size, np.flatnonzero(is_free) if left < is_free.size // _SPARSE else None)

    def items(self, n_words: int) -> Ints:
        """Return the items that the first words give, two from each, except for a few that are skipped."""
        drawn = words(self.seed, _DIGITS * _n_words(self.n_items), n_words)
        half, size = np.uint64(2**32 - 1), self.n_items if self.among is None else self.among.size
        products = np.column_stack([drawn & half, drawn >> np.uint64(32)]).ravel() * np.uint64(size)
        places = (products >> np.uint64(32))[products & half >= 2**32 % size].astype(np.int64)
        return places if self.among is None else self.among[places]

    def first(self, size: int, allowed: Bools, *, distinct: bool = False) -> Ints:
        """Return the first items that are allowed, if need be none twice."""
        n_words, found = size + 8, np.zeros(0, np.int64)
        while found.size < size:
            items = self.items(n_words)
            found = items[allowed[items]]
            if distinct:
                found = found[np.sort(np.unique(found, return_index=True)[1])]
            n_words *= 2
        return found[:size]
