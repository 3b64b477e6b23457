"""Scores from item-item similarities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from truerank.arrays import AnyArray, Ints, as_ids
from truerank.counting.best import Best
from truerank.counting.blocks import Counts, Lists, Progress
from truerank.counting.histories import best_histories, count_histories, score_histories
from truerank.data.interactions import Interactions, PerUser
from truerank.errors import InputError
from truerank.scoring.numbers import Matrix, as_matrix
from truerank.scoring.scorer import Scorer


class Similarity(Scorer):
    """Scores are a user's history times an item-item matrix.

    Parameters
    ----------
    similarity : array or sparse matrix of shape (n_items, n_items)
        Entry (j, i) is the amount that an interaction with item j adds to the score of item i.
    history : Interactions, sparse matrix or list of lists
        Items that each user has interacted with; the values of a sparse matrix are weights.
    user_ids, item_ids : arrays, optional
        Names of the users and items, by which `truerank.rank` matches them with those of the data;
        those of the history by default.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> tr.Similarity(np.array([[0.0, 2.0], [1.0, 0.0]]), [[0], [0, 1]]).scores(np.array([1])).tolist()
    [[1.0, 2.0]]
    """

    n_users: int
    n_items: int
    concurrent = True

    def __init__(
        self,
        similarity: Matrix,
        history: PerUser,
        *,
        user_ids: ArrayLike | None = None,
        item_ids: ArrayLike | None = None,
    ) -> None:
        matrix = as_matrix(similarity, "`similarity`")
        if matrix.shape[0] != matrix.shape[1]:
            raise InputError(f"`similarity` must have as many rows as columns, got shape {matrix.shape}.")
        past = Interactions.of(history, "history", n_items=matrix.shape[0])
        self.similarity = matrix
        self.history = past.matrix.astype(np.result_type(matrix.dtype, np.float32))
        self.n_users, self.n_items = past.shape
        self.user_ids = past.user_ids if user_ids is None else as_ids("user_ids", user_ids, self.n_users)
        self.item_ids = past.item_ids if item_ids is None else as_ids("item_ids", item_ids, self.n_items)

    def __repr__(self) -> str:
        return f"Similarity({self.n_users} users, {self.n_items} items)"

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items."""
        return score_histories(self.history[users], self.similarity)

    def count(self, train: Lists, test: Lists, *, threads: int = 1, progress: Progress | None = None) -> Counts:
        """Score and count in one pass, without holding the scores of a block."""
        return count_histories(self.history, self.similarity, train, test, threads=threads, progress=progress)

    def best(self, users: Ints, excluded: Lists, k: int, *, threads: int = 1, progress: Progress | None = None) -> Best:
        """Score and search in one pass, without holding the scores of a block."""
        return best_histories(self.history, self.similarity, users, excluded, k, threads=threads, progress=progress)
