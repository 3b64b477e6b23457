"""Scorers: anything that gives each user a score for each item."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truerank.arrays import AnyArray, Ints, as_ids
from truerank.counting.best import Best
from truerank.counting.blocks import Counts, Lists, Progress
from truerank.counting.scores import best_scores, count_scores, users_per_block
from truerank.errors import InputError
from truerank.scoring.names import match_names
from truerank.scoring.numbers import to_numpy


class Scorer(ABC):
    """Gives each user a score for each item; higher is better.

    A subclass sets `n_users` and `n_items` and defines `scores`. It may override `pairs`, `count`
    and `best` if it has a faster way, and set `user_ids` and `item_ids` so that `truerank.rank` matches its
    users and items with those of the data by name.

    Attributes
    ----------
    n_users, n_items : int, optional
        None if the scorer does not know them; they are then taken from the data.
    user_ids, item_ids : arrays of length n_users and n_items, optional
        Names of its users and items. Without them, user u and item i are row u and column i of the data.
    batch_size : int, optional
        Users in one call of `scores`, at most; None: as many as fit into 8 million scores, up to 1,024.
    concurrent : bool
        Whether several threads may call `scores` and `pairs` at the same time. By default the thread that called
        truerank makes all calls, one after another, while other threads count.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> class Newest(tr.Scorer):
    ...     n_users, n_items = 2, 4
    ...     def scores(self, users):
    ...         return np.tile(np.arange(4.0), (len(users), 1))
    >>> tr.rank(Newest(), test=[[3], [1]]).rank.tolist()
    [1, 3]
    """

    n_users: int | None = None
    n_items: int | None = None
    user_ids: AnyArray | None = None
    item_ids: AnyArray | None = None
    batch_size: int | None = None
    concurrent: bool = False

    @abstractmethod
    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items: floats of shape (len(users), n_items)."""

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        """Return the score of each user-item pair.

        Unless a subclass overrides this, whole rows are scored, a block of users at a time, and the
        pairs are picked from them.
        """
        scores, size = np.empty(users.size), self.batch_size or users_per_block(self._width())
        order = np.argsort(users, kind="stable")
        distinct, starts = np.unique(users[order], return_index=True)
        bounds = np.append(starts, users.size)
        for first in range(0, distinct.size, size):
            block = distinct[first : first + size]
            chosen = order[bounds[first] : bounds[first + block.size]]
            scores[chosen] = self._rows(block)[np.searchsorted(block, users[chosen]), items[chosen]]
        return scores

    def count(self, train: Lists, test: Lists, *, threads: int = 1, progress: Progress | None = None) -> Counts:
        """Count the irrelevant candidates above, and tied with, each item of `test`; items of `train` are excluded."""
        return count_scores(self.scores, self._width(), train, test, **self._options(threads, progress))

    def named(self, user_ids: ArrayLike | None = None, item_ids: ArrayLike | None = None) -> Scorer:
        """Return a copy with other names of its users, of its items, or of both."""
        copied = copy.copy(self)
        copied.user_ids = self.user_ids if user_ids is None else as_ids("user_ids", user_ids, self.n_users)
        copied.item_ids = self.item_ids if item_ids is None else as_ids("item_ids", item_ids, self.n_items)
        return copied

    def best(self, users: Ints, excluded: Lists, k: int, *, threads: int = 1, progress: Progress | None = None) -> Best:
        """Return the k items with the highest scores of each of these users, who ascend, without the excluded ones."""
        return best_scores(self.scores, self._width(), users, excluded, k, **self._options(threads, progress))

    def sized(self, n_items: int) -> Scorer:
        """Return a copy with this number of items; only for a scorer that does not know it."""
        sized = copy.copy(self)
        sized.n_items = n_items
        return sized

    def aligned(self, user_ids: AnyArray, item_ids: AnyArray, users: Ints) -> Scorer:
        """Return an equivalent scorer whose users and items are numbered in the order of these names.

        Parameters
        ----------
        user_ids, item_ids : arrays
            Names of the users and items in the data.
        users : array of int
            The users that will be scored; the scorer need not have the others.

        Raises
        ------
        InputError
            If the scorer has names, and one of these items or users is not among them.

        Examples
        --------
        >>> import numpy as np, truerank as tr
        >>> factors = tr.Factors(np.ones((1, 1)), np.array([[1.0], [2.0]]), item_ids=["a", "b"])
        >>> factors.aligned(np.array([0]), np.array(["b", "a"]), np.array([0])).scores(np.array([0])).tolist()
        [[2.0, 1.0]]
        """
        rows, columns = self._match("user", user_ids, users), self._match("item", item_ids, np.arange(len(item_ids)))
        if rows is None and columns is None:
            return self
        everyone = np.arange(len(user_ids)) if rows is None else rows
        return self._renumbered(everyone, np.arange(len(item_ids)) if columns is None else columns)

    def _match(self, role: str, names: AnyArray, needed: Ints) -> Ints | None:
        """Return the scorer's number of each user or item of the data; None if all are the same."""
        own, size = (self.user_ids, self.n_users) if role == "user" else (self.item_ids, self.n_items)
        return None if own is None else match_names(names, as_ids(f"{role}_ids", own, size), needed, role)

    def _renumbered(self, users: Ints, items: Ints) -> Scorer:
        return Renumbered(self, users, items)

    def _options(self, threads: int, progress: Progress | None) -> dict[str, Any]:
        """Return how to compute and use blocks of scores."""
        return {
            "threads": threads,
            "progress": progress,
            "batch_size": self.batch_size,
            "concurrent": self.concurrent,
        }

    def _rows(self, users: Ints) -> AnyArray:
        """Return the scores of a block of users, checked to cover all items."""
        scores, shape = to_numpy(self.scores(users), "scores"), (users.size, self._width())
        if scores.shape != shape:
            raise InputError(f"{type(self).__name__} must return scores of shape {shape}, got {scores.shape}.")
        return scores

    def _width(self) -> int:
        if self.n_items is None:
            raise InputError(f"{type(self).__name__} must set its number of items (`n_items`).")
        return self.n_items


class Renumbered(Scorer):
    """Another scorer, with its users and items in another order."""

    def __init__(self, scorer: Scorer, users: Ints, items: Ints) -> None:
        self.scorer, self.users, self.items = scorer, users, items
        self.n_users, self.n_items = users.size, items.size
        self.batch_size, self.concurrent = scorer.batch_size, scorer.concurrent

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items in the new order."""
        return self.scorer._rows(self.users[users])[:, self.items]

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        """Return the score of each user-item pair in the new order."""
        return self.scorer.pairs(self.users[users], self.items[items])
