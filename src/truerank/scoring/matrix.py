"""Scores that have been computed already."""

from __future__ import annotations

import scipy.sparse as sp
from numpy.typing import ArrayLike

from truerank.arrays import AnyArray, Ints
from truerank.scoring.names import optional_ids
from truerank.scoring.numbers import Matrix, as_dense, as_matrix
from truerank.scoring.scorer import Scorer


class ScoreMatrix(Scorer):
    """Precomputed scores, as a matrix.

    Parameters
    ----------
    matrix : array or sparse matrix of shape (n_users, n_items)
        Dense, memory-mapped, a PyTorch tensor, or sparse; entries that are not stored are 0.
    user_ids, item_ids : arrays, optional
        Names of the rows and columns, by which `truerank.rank` matches them with those of the data.

    Examples
    --------
    >>> import truerank as tr
    >>> test = tr.read_interactions({0: ["y"], 1: ["x"]})
    >>> tr.rank(tr.ScoreMatrix([[0.9, 0.1], [0.2, 0.3]], item_ids=["x", "y"]), test=test).rank.tolist()
    [2, 2]
    """

    n_users: int
    n_items: int
    concurrent = True

    def __init__(self, matrix: Matrix, *, user_ids: ArrayLike | None = None, item_ids: ArrayLike | None = None) -> None:
        self.matrix = as_matrix(matrix, "`matrix`")
        self.n_users, self.n_items = self.matrix.shape
        self.user_ids = optional_ids("user_ids", user_ids, self.n_users)
        self.item_ids = optional_ids("item_ids", item_ids, self.n_items)

    def __repr__(self) -> str:
        return f"ScoreMatrix({self.n_users} users, {self.n_items} items)"

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items."""
        return as_dense(self.matrix[users])

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        """Return the score of each user-item pair; no others are looked up."""
        return super().pairs(users, items) if sp.issparse(self.matrix) else self.matrix[users, items]
