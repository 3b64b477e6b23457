"""What a design samples from: each user's irrelevant candidates, without listing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from truerank.arrays import Ints
from truerank.scoring.scorer import Scorer


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
        indptr = np.concatenate([[0], np.cumsum([own.size for own in lists])]).astype(np.int64)
        return cls(indptr, np.concatenate([*lists, np.zeros(0, dtype=np.int64)]))

    def __len__(self) -> int:
        return self.indptr.size - 1

    def __getitem__(self, key: Any) -> Any:
        """Return the items of one user, or the lists of consecutive ones."""
        if not isinstance(key, slice):
            return self.items[self.indptr[key] : self.indptr[key + 1]]
        start, stop, _ = key.indices(len(self))
        bounds = self.indptr[start : stop + 1]
        return ItemLists(bounds - bounds[0], self.items[bounds[0] : bounds[-1]])

    def of_users(self, users: Ints) -> ItemLists:
        """Return the lists of some users."""
        sizes = np.diff(self.indptr)[users]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        return ItemLists(bounds, self.items[np.arange(bounds[-1]) + np.repeat(self.indptr[users] - bounds[:-1], sizes)])


@dataclass(frozen=True)
class Pool:
    """The irrelevant candidates of some users: all items but those excluded.

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
    """

    n_items: int
    excluded: Sequence[Ints]
    popularity: Ints | None = None
    users: Ints | None = None
    proxies: tuple[Scorer, ...] = ()

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

    def excluded_of(self, users: Ints) -> ItemLists:
        """Return the items of some users that are no candidates."""
        return self._lists.of_users(users)

    def part(self, start: int, stop: int) -> Pool:
        """Return the pool of consecutive users."""
        users = self.numbers[start:stop]
        return Pool(self.n_items, self._lists[start:stop], self.popularity, users, self.proxies)

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
        """Return which items stand at these places (from 0) among a user's candidates.

        Examples
        --------
        >>> import numpy as np
        >>> Pool(6, [np.array([1, 4])]).items_at(0, np.array([3, 1])).tolist()
        [5, 2]
        """
        excluded = self.excluded[user]
        return places + np.searchsorted(excluded - np.arange(excluded.size), places, side="right")
