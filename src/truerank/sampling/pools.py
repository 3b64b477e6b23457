"""What a design samples from: each user's irrelevant candidates, without listing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Ints
from truerank.scoring.scorer import Scorer


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
        Cheap scorers that tell which candidates to look at first, for designs that have them.
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
        return self.n_items - np.array([items.size for items in self.excluded], dtype=np.int64)

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
