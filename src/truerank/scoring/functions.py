"""Scores that a function computes: for whole users, or for pairs of users and items."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truerank.arrays import AnyArray, Ints, as_ids, as_ints
from truerank.errors import InputError
from truerank.scoring.numbers import to_numpy
from truerank.scoring.scorer import Scorer


class FunctionScorer(Scorer):
    """Scores that a function computes for a block of users: ``function(users) -> (len(users), n_items)``.

    Parameters
    ----------
    function : callable
        Takes an array of user numbers; returns their scores for all items as an array or tensor.
        It is called only for users with held-out items.
    n_items, n_users : int, optional
        How many items and users there are; by default, as many as in the data. If the data are plain
        lists, the number of items is taken from the first block of scores.
    user_ids, item_ids : arrays, optional
        Names of the users and items, by which `truerank.rank` matches them with those of the data.
    batch_size : int, optional
        Users in one call, at most; by default as many as fit into 8 million scores, up to 1,024.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> scorer = tr.FunctionScorer(lambda users: np.outer(users + 1.0, [3, 1, 2]), n_items=3)
    >>> tr.rank(scorer, test=[[2], [1]]).rank.tolist()
    [2, 3]
    """

    def __init__(
        self,
        function: Callable[[Ints], Any],
        *,
        n_items: int | None = None,
        n_users: int | None = None,
        user_ids: ArrayLike | None = None,
        item_ids: ArrayLike | None = None,
        batch_size: int | None = None,
    ) -> None:
        self.function = function
        self.user_ids, self.n_users = _named("user", user_ids, n_users)
        self.item_ids, self.n_items = _named("item", item_ids, n_items)
        self.batch_size = _checked_size(batch_size)

    def __repr__(self) -> str:
        return f"FunctionScorer({self.function!r})"

    def scores(self, users: Ints) -> AnyArray:
        """Return the function's scores of these users."""
        return to_numpy(self.function(users), "scores")


class PairFunctionScorer(Scorer):
    """Scores that a function computes for pairs: ``function(users, items)``, two arrays of the same length.

    For slow scorers such as cross-encoders or language models: `truerank.rank_sampled`, and
    `truerank.rank` with `candidates`, score only the pairs they need.

    Parameters
    ----------
    function : callable
        Takes the user numbers and the item numbers of the pairs; returns one score for each.
    n_items, n_users, user_ids, item_ids
        As for `FunctionScorer`, except that `n_items` is required if the data are plain lists.
    batch_size : int, optional
        Pairs in one call, at most; by default all that are needed at a time.

    Examples
    --------
    >>> import truerank as tr
    >>> scorer = tr.PairFunctionScorer(lambda users, items: -abs(items - users), n_items=9)
    >>> tr.rank(scorer, test=[[1], [1]], candidates=[[0, 2, 8], [0, 2, 8]]).rank.tolist()
    [2, 1]
    """

    def __init__(
        self,
        function: Callable[[Ints, Ints], Any],
        *,
        n_items: int | None = None,
        n_users: int | None = None,
        user_ids: ArrayLike | None = None,
        item_ids: ArrayLike | None = None,
        batch_size: int | None = None,
    ) -> None:
        self.function = function
        self.user_ids, self.n_users = _named("user", user_ids, n_users)
        self.item_ids, self.n_items = _named("item", item_ids, n_items)
        self.pairs_per_call = _checked_size(batch_size)

    def __repr__(self) -> str:
        return f"PairFunctionScorer({self.function!r})"

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        """Return the function's scores of these pairs."""
        size = self.pairs_per_call or max(items.size, 1)
        parts = [slice(start, start + size) for start in range(0, max(items.size, 1), size)]
        return np.concatenate([self._scored(users[part], items[part]) for part in parts])

    def _scored(self, users: Ints, items: Ints) -> AnyArray:
        scores = to_numpy(self.function(users, items), "scores")
        if scores.shape != items.shape:
            raise InputError(f"the scorer must return one score per pair ({items.size}), got shape {scores.shape}.")
        return scores

    def scores(self, users: Ints) -> AnyArray:
        """Return the function's scores of each of these users paired with all items."""
        if self.n_items is None:
            raise InputError(
                "the number of items can't be inferred from a function of users and items; give a sparse `test`, "
                "or tr.PairFunctionScorer(function, n_items=...)."
            )
        all_items = np.arange(self.n_items)
        return self.pairs(np.repeat(users, self.n_items), np.tile(all_items, users.size)).reshape(users.size, -1)


def _named(role: str, ids: ArrayLike | None, size: int | None) -> tuple[AnyArray | None, int | None]:
    """Return the names and the number of users or items, each None if not given."""
    if size is not None:
        size = int(as_ints(f"n_{role}s", size)[0])
        if size < 0:
            raise InputError(f"`n_{role}s` must be at least 0, got {size}.")
    if ids is None:
        return None, size
    names = as_ids(f"{role}_ids", ids, size)
    return names, names.size


def _checked_size(size: Any) -> int | None:
    if size is not None and (isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1):
        raise InputError(f"`batch_size` must be a whole number from 1, got {size!r}.")
    return None if size is None else int(size)


def n_arguments(function: Callable[..., Any]) -> int:
    """Return how many arguments a function requires; 1 if it has no signature.

    Examples
    --------
    >>> n_arguments(lambda users, items=None: users)
    1
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some functions written in C
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in parameters if one.kind in positional and one.default is one.empty]
    if len(needed) > 2:
        names = ", ".join(one.name for one in needed)
        raise InputError(f"a scoring function must take users, or users and items, got one that takes {names}.")
    return len(needed)
