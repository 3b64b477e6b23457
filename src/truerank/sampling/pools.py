"""What samples are drawn from: the candidates of each user, at random without repetition, or in a given order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from truerank.core.checks import AnyArray, Floats, Ints, slices
from truerank.core.csr import bounds, entries_of, owners
from truerank.kernels.draws import Seeds, Way, draw_items, mixed, user_seeds, words
from truerank.kernels.user_blocks import Lists
from truerank.scoring.scorers import Scorer

# proxy scores held at once: 32 MB
_NUMBERS_AT_ONCE = 4_000_000
# orders are computed this many times as far as they are needed
_AHEAD = 4


@dataclass(frozen=True, eq=False)
class ItemLists(Sequence[Ints]):
    """A list of items for each of some users, all in one array.

    Examples
    --------
    >>> import numpy as np
    >>> lists = ItemLists(np.array([0, 2, 3]), np.array([4, 7, 1]))
    >>> [own.tolist() for own in lists], lists[1:][0].tolist()
    ([[4, 7], [1]], [1])
    """

    indptr: Ints
    items: Ints

    @classmethod
    def of(cls, lists: Sequence[Ints]) -> ItemLists:
        """Return single lists in one array."""
        if isinstance(lists, ItemLists):
            return lists
        indptr = bounds([own.size for own in lists])
        return cls(indptr, np.concatenate([*lists, np.zeros(0, dtype=np.int64)]))

    def __len__(self) -> int:
        return self.indptr.size - 1

    def __getitem__(self, key: Any) -> Any:
        """Return the items of one user, or the lists of consecutive ones."""
        if not isinstance(key, slice):
            return self.items[self.indptr[key] : self.indptr[key + 1]]
        start, stop, _ = key.indices(len(self))
        ends = self.indptr[start : stop + 1]
        return ItemLists(ends - ends[0], self.items[ends[0] : ends[-1]])

    def ascending(self) -> ItemLists:
        """Return the lists, each sorted."""
        return ItemLists(self.indptr, self.items[np.lexsort((self.items, owners(self.indptr)))])

    def of_users(self, users: Ints) -> ItemLists:
        """Return the lists of some users."""
        entries, indptr = entries_of(self.indptr, users)
        return ItemLists(indptr, self.items[entries])


@dataclass(frozen=True)
class Pool:
    """The irrelevant candidates of some users: all items except those excluded.

    Attributes
    ----------
    n_items : int
        Size of the catalogue.
    excluded : sequence of arrays of int
        For each user its held-out and training items, ascending.
    popularity : array of int, one per item, optional
        Training interactions of each item.
    users : array of int, one per user, optional
        The numbers by which scorers know these users; None: 0, 1, ...
    proxies : tuple of Scorer
        Cheap scorers that decide which candidates are scored first, for designs that have them.
    seed : int, optional
        With a seed, what is drawn for a user depends only on the seed and the number of the user.
    nested : bool
        Whether what is drawn by the seed without repetition is a part of any larger sample.
    """

    n_items: int
    excluded: Sequence[Ints]
    popularity: Ints | None = None
    users: Ints | None = None
    proxies: tuple[Scorer, ...] = ()
    seed: int | None = None
    nested: bool = False

    def __len__(self) -> int:
        return len(self.excluded)

    @property
    def numbers(self) -> Ints:
        """The numbers by which scorers know these users."""
        return np.arange(len(self)) if self.users is None else self.users

    @property
    def sizes(self) -> Ints:
        """How many irrelevant candidates each user has."""
        return self.n_items - np.diff(self._lists.indptr)

    @cached_property
    def _lists(self) -> ItemLists:
        return ItemLists.of(self.excluded)

    def part(self, start: int, stop: int) -> Pool:
        """Return the pool of consecutive users."""
        return replace(self, excluded=self._lists[start:stop], users=self.numbers[start:stop])

    def seeds(self, users: Ints, rng: np.random.Generator) -> Seeds:
        """Return a seed for each of some users of the pool."""
        return user_seeds(int(rng.integers(2**63)) if self.seed is None else self.seed, self.numbers[users])

    def candidates(self, user: int) -> Ints:
        """Return all irrelevant candidates of a user, ascending.

        Examples
        --------
        >>> import numpy as np
        >>> Pool(6, [np.array([1, 4])]).candidates(0).tolist()
        [0, 2, 3, 5]
        """
        return np.delete(np.arange(self.n_items), self.excluded[user])

    def items_at(self, user: int, places: Ints) -> Ints:
        """Return the items at these positions (from 0) among a user's candidates.

        Examples
        --------
        >>> import numpy as np
        >>> Pool(6, [np.array([1, 4])]).items_at(0, np.array([3, 1])).tolist()
        [5, 2]
        """
        excluded = self.excluded[user]
        return places + np.searchsorted(excluded - np.arange(excluded.size), places, side="right")

    def repeated(self, m: int, rng: np.random.Generator) -> ItemLists:
        """Return m candidates of each user, each equally likely every time.

        Examples
        --------
        >>> import numpy as np
        >>> Pool(6, [np.array([1, 4]), np.array([0])]).repeated(4, np.random.default_rng(0)).items.tolist()
        [2, 2, 5, 2, 2, 1, 5, 4]
        """
        users = np.arange(len(self))
        return self._drawn(Way.REPEATED, users, np.full(users.size, m), rng)

    def _drawn(
        self, way: Way, users: Ints, counts: Ints, rng: np.random.Generator, taken: ItemLists | None = None
    ) -> ItemLists:
        before = ItemLists.of([np.zeros(0, np.int64)] * users.size) if taken is None else taken
        own = self._lists if users.size == len(self) else self._lists.of_users(users)
        lists = (Lists(each.indptr, each.items) for each in (own, before))
        return ItemLists(bounds(counts), draw_items(self.n_items, way, self.seeds(users, rng), counts, *lists))

    def distinct(
        self, users: Ints, counts: Ints, rng: np.random.Generator, taken: ItemLists | None = None
    ) -> ItemLists:
        """Return candidates of users, each equally likely, none twice; those of a user ascend.

        Parameters
        ----------
        users : array of int, ascending
            Which users of the pool.
        counts : array of int, one per user
            How many to draw, at most as many as are left.
        rng : numpy.random.Generator
        taken : ItemLists, one per user, optional
            Candidates that have been drawn before.

        Examples
        --------
        >>> import numpy as np
        >>> pool = Pool(6, [np.array([1, 4]), np.array([0])])
        >>> drawn = pool.distinct(np.array([0, 1]), np.array([4, 2]), np.random.default_rng(0))
        >>> drawn.indptr.tolist(), drawn[0].tolist()
        ([0, 4, 6], [0, 2, 3, 5])
        """
        way = Way.NESTED if self.nested else Way.DISTINCT
        return self._drawn(way, users, counts, rng, None if taken is None else taken.ascending()).ascending()


@dataclass(frozen=True)
class ListedPool(Pool):
    """The irrelevant candidates of some users, each of whom has a list of them; other items are excluded.

    Examples
    --------
    >>> import numpy as np
    >>> pool = ListedPool.of(6, ItemLists.of([np.array([2, 5])]))
    >>> pool.sizes.tolist(), pool.candidates(0).tolist(), pool.excluded[0].tolist()
    ([2], [2, 5], [0, 1, 3, 4])
    """

    listed: ItemLists = field(kw_only=True)

    @classmethod
    def of(cls, n_items: int, listed: ItemLists, *others: Any) -> ListedPool:
        """Return the pool; other arguments are those of `Pool`."""
        return cls(n_items, _Unlisted(n_items, listed), *others, listed=listed)

    @property
    def sizes(self) -> Ints:
        return np.diff(self.listed.indptr)

    def part(self, start: int, stop: int) -> ListedPool:
        listed, users = self.listed[start:stop], self.numbers[start:stop]
        return replace(self, excluded=_Unlisted(self.n_items, listed), listed=listed, users=users)

    def candidates(self, user: int) -> Ints:
        return self.listed[user]

    def items_at(self, user: int, places: Ints) -> Ints:
        return self.listed[user][places]

    def repeated(self, m: int, rng: np.random.Generator) -> ItemLists:
        own = zip(self.listed, self.seeds(np.arange(len(self)), rng), strict=True)
        return ItemLists.of([items[words(seed, 0, m) % np.uint64(items.size)] for items, seed in own])

    def distinct(
        self, users: Ints, counts: Ints, rng: np.random.Generator, taken: ItemLists | None = None
    ) -> ItemLists:
        left = [self.listed[user] for user in users.tolist()]
        if taken is not None:
            left = [np.setdiff1d(own, before) for own, before in zip(left, taken, strict=True)]
        each = zip(self.seeds(users, rng), left, counts.tolist(), strict=True)
        return ItemLists.of([_first_in_own_order(*own) for own in each])


def _first_in_own_order(seed: np.uint64, items: Ints, count: int) -> Ints:
    """Return the first items in an order that the seed determines; they ascend."""
    with np.errstate(over="ignore"):
        order = np.argsort(mixed(seed + items.astype(np.uint64)), kind="stable")
    return np.sort(items[order[:count]])


@dataclass(frozen=True, eq=False)
class _Unlisted(Sequence[Ints]):
    """For each user all items that are not listed, computed on demand: together they may be too many."""

    n_items: int
    listed: ItemLists

    def __len__(self) -> int:
        return len(self.listed)

    def __getitem__(self, user: Any) -> Any:
        return np.delete(np.arange(self.n_items), self.listed[user])


class Order(ABC):
    """An order of the candidates of each user of a pool."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    @abstractmethod
    def part(self, places: Ints, start: int, stop: int) -> list[Ints]:
        """Return the candidates from `start` to before `stop` of the users at these positions of the pool."""


class RandomOrder(Order):
    """A uniformly random order, drawn as far as it is needed; repeated requests give the same order."""

    def __init__(self, pool: Pool, rng: np.random.Generator) -> None:
        super().__init__(pool)
        self.rng = rng
        self.drawn = [np.zeros(0, dtype=np.int64)] * len(pool)
        self.sizes = pool.sizes

    def part(self, places: Ints, start: int, stop: int) -> list[Ints]:
        known = np.array([self.drawn[place].size for place in places.tolist()], dtype=np.int64)
        missing = np.minimum(stop, self.sizes[places]) - known
        if np.any(missing > 0):
            self._extend(places[missing > 0], missing[missing > 0])
        return [self.drawn[place][start:stop] for place in places.tolist()]

    def _extend(self, places: Ints, missing: Ints) -> None:
        """Draw from the candidates that have not been drawn, and append them to the others in a random order."""
        taken = ItemLists.of([self.drawn[place] for place in places.tolist()])
        items = self.pool.distinct(places, missing, self.rng, taken).items
        shuffled = items[np.lexsort((self.rng.random(items.size), np.repeat(places, missing)))]
        for place, more in zip(places.tolist(), np.split(shuffled, np.cumsum(missing)[:-1]), strict=True):
            self.drawn[place] = np.concatenate([self.drawn[place], more])


class FixedOrder(Order):
    """One order of all items for every user; each user skips items that are not candidates."""

    def __init__(self, pool: Pool, items: Ints) -> None:
        super().__init__(pool)
        self.items = items
        self.place = np.argsort(items)

    def part(self, places: Ints, start: int, stop: int) -> list[Ints]:
        return [self._part(place, start, stop) for place in places.tolist()]

    def _part(self, user: int, start: int, stop: int) -> Ints:
        skipped = np.sort(self.place[self.pool.excluded[user]])
        ranks = np.arange(start, min(stop, self.items.size - skipped.size))
        return self.items[ranks + np.searchsorted(skipped - np.arange(skipped.size), ranks, side="right")]


class ScoreOrder(Order):
    """From the highest score of a proxy to the lowest; items with equal scores in a random order.

    The top of each order is kept, four times as deep as requested, and computed again when more is needed.
    """

    def __init__(self, pool: Pool, proxy: Scorer, rng: np.random.Generator) -> None:
        super().__init__(pool)
        self.proxy = proxy
        self.among_equal = rng.permutation(pool.n_items)
        self.sizes = pool.sizes
        self.kept: list[AnyArray] = [np.zeros(0, dtype=np.int32)] * len(pool)

    def part(self, places: Ints, start: int, stop: int) -> list[Ints]:
        ends = np.minimum(stop, self.sizes[places])
        known = np.array([self.kept[place].size for place in places.tolist()], dtype=np.int64)
        short = places[known < ends]
        for part in slices(short.size, _NUMBERS_AT_ONCE // max(self.pool.n_items, 1)):
            self._extend(short[part], _AHEAD * stop)
        return [self.kept[place][start:stop] for place in places.tolist()]

    def _extend(self, places: Ints, stop: int) -> None:
        scores = np.asarray(self.proxy.scores(self.pool.numbers[places]), dtype=np.float64)
        for place, own in zip(places.tolist(), scores, strict=True):
            own[self.pool.excluded[place]] = -np.inf
            best = _best(own[self.among_equal], min(stop, int(self.sizes[place])))
            self.kept[place] = self.among_equal[best].astype(np.int32)


def _best(scores: Floats, size: int) -> Ints:
    """Return the positions of the largest scores, at least one, from the top; of equal ones the first come first."""
    least = np.partition(scores, scores.size - size)[scores.size - size]
    higher, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    chosen = np.concatenate([higher, equal[: size - higher.size]])
    return chosen[np.argsort(-scores[chosen], kind="stable")]
