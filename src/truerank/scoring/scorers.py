"""What can be ranked: anything that gives each user a score for each item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from truerank.arrays import AnyArray, Ints
from truerank.counting.histories import score_histories
from truerank.data.interactions import Interactions
from truerank.errors import InputError


@runtime_checkable
class Scorer(Protocol):
    """Gives scores, the higher the better."""

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items: an array of shape (len(users), n_items)."""


@dataclass(frozen=True, eq=False, repr=False)
class Factors:
    """Scores are inner products: ``user_factors @ item_factors.T + item_bias``.

    Parameters
    ----------
    user_factors, item_factors : arrays of shape (n_users, d) and (n_items, d)
        NumPy arrays, memory-mapped or not, or PyTorch tensors. Scores are computed in float32 if
        both are float32, else in float64.
    item_bias : array of shape (n_items,), optional

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> factors = tr.Factors(np.array([[1.0, 0.0]]), np.array([[2.0, 9.0], [3.0, 9.0]]))
    >>> factors.scores(np.array([0])).tolist()
    [[2.0, 3.0]]
    """

    user_factors: AnyArray
    item_factors: AnyArray
    item_bias: AnyArray | None = None

    def __post_init__(self) -> None:
        users, items = to_numpy(self.user_factors), to_numpy(self.item_factors)
        bias = None if self.item_bias is None else to_numpy(self.item_bias)
        if users.ndim != 2 or items.ndim != 2 or users.shape[1] != items.shape[1]:
            raise InputError(
                "`user_factors` and `item_factors` must be two-dimensional with equally many columns, "
                f"got shapes {users.shape} and {items.shape}."
            )
        if bias is not None and bias.shape != items.shape[:1]:
            raise InputError(
                f"`item_bias` must have one number for each of {len(items)} items, got shape {bias.shape}."
            )
        for name, array in (("user_factors", users), ("item_factors", items), ("item_bias", bias)):
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        return f"Factors({self.n_users} users, {self.n_items} items, {self.item_factors.shape[1]} factors)"

    @property
    def n_users(self) -> int:
        """Rows of the user factors."""
        return len(self.user_factors)

    @property
    def n_items(self) -> int:
        """Rows of the item factors."""
        return len(self.item_factors)

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items."""
        products: AnyArray = self.user_factors[users] @ self.item_factors.T
        return products if self.item_bias is None else products + self.item_bias


@dataclass(frozen=True, eq=False, repr=False)
class Similarity:
    """Scores are a user's history times an item-item matrix.

    Parameters
    ----------
    similarity : array or sparse matrix of shape (n_items, n_items)
        Entry (j, i) is what an interaction with item j adds to the score of item i.
    history : Interactions, sparse matrix or list of lists
        What each user has had to do with; the values of a sparse matrix are its weights.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> tr.Similarity(np.array([[0.0, 2.0], [1.0, 0.0]]), [[0], [0, 1]]).scores(np.array([1])).tolist()
    [[1.0, 2.0]]
    """

    similarity: Any
    history: Any

    def __post_init__(self) -> None:
        matrix = self.similarity if sp.issparse(self.similarity) else to_numpy(self.similarity)
        history = Interactions.of(self.history, "history", n_items=matrix.shape[0]).matrix
        object.__setattr__(self, "similarity", sp.csr_array(matrix) if sp.issparse(matrix) else matrix)
        object.__setattr__(self, "history", history.astype(np.result_type(matrix.dtype, np.float32)))

    def __repr__(self) -> str:
        return f"Similarity({self.n_users} users, {self.n_items} items)"

    @property
    def n_users(self) -> int:
        """Users whose history is known."""
        return int(self.history.shape[0])

    @property
    def n_items(self) -> int:
        """Items that can be recommended."""
        return int(self.history.shape[1])

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items."""
        return score_histories(self.history[users], self.similarity)


@dataclass(frozen=True, eq=False, repr=False)
class ScoreMatrix:
    """Scores that exist already.

    Parameters
    ----------
    matrix : array or sparse matrix of shape (n_users, n_items)
        Dense, memory-mapped, a PyTorch tensor, or sparse; what a sparse one does not store is 0.
    """

    matrix: Any

    def __post_init__(self) -> None:
        matrix = sp.csr_array(self.matrix) if sp.issparse(self.matrix) else to_numpy(self.matrix)
        object.__setattr__(self, "matrix", matrix)

    def __repr__(self) -> str:
        return f"ScoreMatrix({self.matrix.shape[0]} users, {self.matrix.shape[1]} items)"

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items."""
        rows = self.matrix[users]
        return rows.toarray() if sp.issparse(rows) else rows


@dataclass(frozen=True, eq=False)
class FunctionScorer:
    """Scores that a function computes: ``function(users) -> (len(users), n_items)``."""

    function: Callable[[Ints], Any]

    def scores(self, users: Ints) -> AnyArray:
        """Return what the function gives for these users."""
        return to_numpy(self.function(users))


def as_scorer(given: Any) -> Scorer:
    """Return a scorer from a scorer, a score matrix, a function, or a model that has factors.

    A model with `user_factors` and `item_factors`, as those of implicit have, becomes `Factors`.
    """
    if isinstance(given, Factors):
        return given
    if hasattr(given, "user_factors") and hasattr(given, "item_factors"):
        return Factors(given.user_factors, given.item_factors)
    if isinstance(given, Scorer):
        return given
    if sp.issparse(given) or hasattr(given, "__array__"):
        return ScoreMatrix(given)
    if callable(given):
        return FunctionScorer(given)
    raise InputError(
        f"can't get scores from {type(given).__name__}; give factors, a similarity, a score matrix or a function."
    )


def score_pairs(scorer: Scorer, users: Ints, items: Ints) -> AnyArray:
    """Return the score of each pair of a user and an item; users come in runs.

    Factors and stored scores touch the pairs alone; other scorers score whole rows and pick.
    """
    if isinstance(scorer, Factors):
        scores = np.einsum("ij,ij->i", scorer.user_factors[users], scorer.item_factors[items])
        return scores if scorer.item_bias is None else scores + scorer.item_bias[items]
    if isinstance(scorer, ScoreMatrix) and not sp.issparse(scorer.matrix):
        return scorer.matrix[users, items]
    distinct, starts = np.unique(users, return_index=True)
    ends = np.append(starts[1:], users.size)
    picked = [
        scorer.scores(distinct[row : row + 1])[0, items[start:end]]
        for row, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]
    return np.concatenate(picked) if picked else np.zeros(0)


def to_numpy(array: Any) -> AnyArray:
    """Return a NumPy array of a float type that can be compared: half precision and integers widen."""
    if hasattr(array, "detach"):
        tensor = array.detach().cpu()
        array = tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor
    plain = array if isinstance(array, np.ndarray) else np.asarray(array)
    if plain.dtype in (np.float32, np.float64):
        return plain
    return plain.astype(np.float32 if plain.dtype == np.float16 else np.float64)
