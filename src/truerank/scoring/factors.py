"""Scores that are inner products of factors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from truerank.arrays import AnyArray, Ints
from truerank.counting.best import Best
from truerank.counting.blocks import Counts, Lists, Progress
from truerank.counting.factors import best_factors, count_factors
from truerank.counting.pairs import score_pairs
from truerank.errors import InputError
from truerank.scoring.names import optional_ids
from truerank.scoring.numbers import to_numpy
from truerank.scoring.scorer import Scorer


class Factors(Scorer):
    """Scores are inner products: ``user_factors @ item_factors.T + item_bias``.

    Parameters
    ----------
    user_factors, item_factors : arrays of shape (n_users, d) and (n_items, d)
        NumPy arrays, memory-mapped or not, PyTorch tensors, or its embedding layers. Scores are computed in float32 if
        both are float32, and in float64 otherwise.
    item_bias : array of shape (n_items,), optional
    user_ids, item_ids : arrays, optional
        Names of the users and items, by which `truerank.rank` matches them with those of the data.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> factors = tr.Factors(np.array([[1.0, 0.0]]), np.array([[2.0, 9.0], [3.0, 9.0]]))
    >>> factors.scores(np.array([0])).tolist()
    [[2.0, 3.0]]
    """

    n_users: int
    n_items: int
    concurrent = True

    def __init__(
        self,
        user_factors: ArrayLike,
        item_factors: ArrayLike,
        item_bias: ArrayLike | None = None,
        *,
        user_ids: ArrayLike | None = None,
        item_ids: ArrayLike | None = None,
    ) -> None:
        self.user_factors = to_numpy(user_factors, "`user_factors`")
        self.item_factors = to_numpy(item_factors, "`item_factors`")
        self.item_bias = None if item_bias is None else to_numpy(item_bias, "`item_bias`")
        users, items = self.user_factors.shape, self.item_factors.shape
        if len(users) != 2 or len(items) != 2 or users[1] != items[1]:
            raise InputError(
                "`user_factors` and `item_factors` must be two-dimensional with the same number of columns, "
                f"got shapes {users} and {items}."
            )
        self.n_users, self.n_items = users[0], items[0]
        if self.item_bias is not None and self.item_bias.shape != items[:1]:
            got = self.item_bias.shape
            raise InputError(f"`item_bias` must have one number for each of {self.n_items} items, got shape {got}.")
        self.user_ids = optional_ids("user_ids", user_ids, self.n_users)
        self.item_ids = optional_ids("item_ids", item_ids, self.n_items)

    @classmethod
    def cosine(
        cls,
        user_factors: ArrayLike,
        item_factors: ArrayLike,
        *,
        user_ids: ArrayLike | None = None,
        item_ids: ArrayLike | None = None,
    ) -> Factors:
        """Return a scorer by cosine similarity: all vectors are divided by their length; those of length 0 stay.

        Examples
        --------
        >>> import numpy as np, truerank as tr
        >>> tr.Factors.cosine([[3.0, 4.0]], [[1.0, 0.0], [0.0, 9.0], [0.0, 0.0]]).scores(np.array([0])).tolist()
        [[0.6, 0.8, 0.0]]
        """
        users, items = to_numpy(user_factors, "`user_factors`"), to_numpy(item_factors, "`item_factors`")
        return cls(_of_length_1(users), _of_length_1(items), user_ids=user_ids, item_ids=item_ids)

    @classmethod
    def euclidean(
        cls,
        user_factors: ArrayLike,
        item_factors: ArrayLike,
        *,
        user_ids: ArrayLike | None = None,
        item_ids: ArrayLike | None = None,
    ) -> Factors:
        """Return a scorer by Euclidean distance, the nearest item first.

        Scores are u·v - |v|²/2, which order items as -|u - v|² does. They are computed in float64, because the two
        parts nearly cancel for items near the user but far from the origin.

        Examples
        --------
        >>> import numpy as np, truerank as tr
        >>> nearest = tr.Factors.euclidean([[1.0, 1.0]], [[2.0, 2.0], [0.0, 1.0], [5.0, 0.0]])
        >>> tr.rank(nearest, test=[[0, 2]]).rank.tolist()                                   # distances √2, 1, √17
        [2, 3]
        """
        users, items = to_numpy(user_factors, "`user_factors`"), to_numpy(item_factors, "`item_factors`")
        exact = items.astype(np.float64)
        bias = -0.5 * np.square(exact).sum(axis=-1)
        return cls(users.astype(np.float64), exact, bias, user_ids=user_ids, item_ids=item_ids)

    def __repr__(self) -> str:
        return f"Factors({self.n_users} users, {self.n_items} items, {self.item_factors.shape[1]} factors)"

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items."""
        products: AnyArray = self.user_factors[users] @ self.item_factors.T
        return products if self.item_bias is None else products + self.item_bias

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        """Return the score of each user-item pair; no others are computed."""
        return score_pairs(self.user_factors, self.item_factors, users, items, item_bias=self.item_bias)

    def count(self, train: Lists, test: Lists, *, threads: int = 1, progress: Progress | None = None) -> Counts:
        """Count in one compiled loop that computes and compares scores."""
        factors = (self.user_factors, self.item_factors)
        return count_factors(*factors, train, test, item_bias=self.item_bias, threads=threads, progress=progress)

    def best(self, users: Ints, excluded: Lists, k: int, *, threads: int = 1, progress: Progress | None = None) -> Best:
        """Score and search in one compiled loop."""
        given = (self.user_factors, self.item_factors, users, excluded, k)
        return best_factors(*given, item_bias=self.item_bias, threads=threads, progress=progress)

    def _renumbered(self, users: Ints, items: Ints) -> Factors:
        bias = None if self.item_bias is None else self.item_bias[items]
        return Factors(self.user_factors[users], self.item_factors[items], bias)


def _of_length_1(vectors: AnyArray) -> AnyArray:
    """Return vectors divided by their lengths, computed in float64 so that multiples of a vector stay ties."""
    exact = vectors.astype(np.float64)
    lengths = np.sqrt(np.square(exact).sum(axis=-1, keepdims=True))
    return (exact / np.where(lengths > 0, lengths, 1.0)).astype(vectors.dtype)
