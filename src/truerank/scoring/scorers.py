"""`Scorer`, the interface that `rank` needs, and scorers from factors, matrices, item-item matrices and functions."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truerank.core.checks import (
    AnyArray,
    Bools,
    InputError,
    Ints,
    as_ids,
    check_pairs,
    check_whole,
    is_sparse,
    to_numpy,
)
from truerank.core.csr import bounds, entries_of, holds, owners
from truerank.core.matrices import Matrix, as_dense, as_matrix
from truerank.data.interactions import Interactions, PerUser
from truerank.kernels.draws import Draws
from truerank.kernels.factors import (
    FactorSamples,
    SampledCounts,
    best_factors,
    count_factors,
    count_sampled,
    score_pairs,
)
from truerank.kernels.histories import best_histories, count_histories, score_histories
from truerank.kernels.scores import Best, best_scores, count_scores, users_per_block
from truerank.kernels.tensors import FactorTensors
from truerank.kernels.user_blocks import Counts, Lists, Progress
from truerank.scoring.calls import Calls, Failure, Keep, failed, is_async

Ids = ArrayLike | None
"""Names of users or of items, one each, or None if they have none."""


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
        Largest number of users in one call of `scores`; None: as many as fit into 8 million scores, up to 1,024.
    concurrent : bool
        Whether several threads may call `scores` and `pairs` at the same time. By default the thread that called
        truerank makes all calls, one after another, while other threads count.
    cost_per_score : float, optional
        What a score costs, in any currency; the progress bar shows the money spent.

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
    cost_per_score: float | None = None
    takes_pairs: bool = False
    """Whether single pairs cost less to score than whole rows."""

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
        starts = np.flatnonzero(np.diff(users[order], prepend=-1))
        bounds = np.append(starts, users.size)
        for first in range(0, starts.size, size):
            ends = bounds[first : first + size + 1]
            chosen = order[ends[0] : ends[-1]]
            rows = np.repeat(np.arange(ends.size - 1), np.diff(ends))
            scores[chosen] = self._rows(users[order[ends[:-1]]])[rows, items[chosen]]
        return scores

    def for_samples(self, n_pairs: int) -> Callable[..., SampledCounts]:
        """Return a function that scores and counts samples, of about this many pairs in all.

        Its arguments are users, and two `Lists` with one list for each of them: relevant items, and sampled ones. It is
        valid as long as the scorer does not change.
        """
        return lambda *given: count_pairs(self, *given)[0]

    def count_drawn(
        self, train: Lists, test: Lists, draws: Draws, *, threads: int = 1, progress: Progress | None = None
    ) -> Counts | None:
        """Count items drawn at random as `count` counts all; None if it would be no faster than to score pairs."""
        return None

    def ask(self, users: Ints, items: Ints, keep: Keep) -> list[Failure]:
        """Pass the scores of pairs to ``keep(positions, scores)`` in parts; return the pairs that could not be scored.

        Unless a subclass overrides this, each part covers a block of users, and an exception ends everything.
        """
        order, size = np.argsort(users, kind="stable"), self.batch_size or users_per_block(self._width())
        starts = np.unique(users[order], return_index=True)[1][size::size]
        for part in np.split(order, starts):
            keep(part, to_numpy(self.pairs(users[part], items[part]), "scores"))
        return []

    def expect(self, number: int) -> None:  # noqa: B027
        """Take note of about how many more scores will be asked for; for scorers that show their progress."""

    def count(self, train: Lists, test: Lists, *, threads: int = 1, progress: Progress | None = None) -> Counts:
        """Count the irrelevant candidates above, and tied with, each item of `test`; items of `train` are excluded."""
        return count_scores(self.scores, self._width(), train, test, **self._options(threads, progress))

    def count_top(
        self, train: Lists, test: Lists, depth: int, *, threads: int = 1, progress: Progress | None = None
    ) -> Counts:
        """Count like `count`, but items with at least `depth` candidates above them may be counted no further."""
        return self.count(train, test, threads=threads, progress=progress)

    def named(self, user_ids: Ids = None, item_ids: Ids = None) -> Scorer:
        """Return a copy with other names for its users, its items, or both."""
        copied = copy.copy(self)
        copied.user_ids = self.user_ids if user_ids is None else as_ids("user_ids", user_ids, self.n_users)
        copied.item_ids = self.item_ids if item_ids is None else as_ids("item_ids", item_ids, self.n_items)
        return copied

    def best(self, users: Ints, excluded: Lists, k: int, *, threads: int = 1, progress: Progress | None = None) -> Best:
        """Return the k items with the highest scores of each of these ascending users, without the excluded ones."""
        return best_scores(self.scores, self._width(), users, excluded, k, **self._options(threads, progress))

    def sized(self, n_items: int) -> Scorer:
        """Return a copy with this number of items; only for a scorer that does not know it."""
        sized = copy.copy(self)
        sized.n_items = n_items
        return sized

    def aligned(self, user_ids: AnyArray, item_ids: AnyArray, users: Ints, items: Ints | None = None) -> Scorer:
        """Return an equivalent scorer whose users and items are numbered in the order of these names.

        Parameters
        ----------
        user_ids, item_ids : arrays
            Names of the users and items in the data.
        users, items : arrays of int
            The users and items that will be scored, all items by default; the scorer need not have the others.

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
        needed = np.arange(len(item_ids)) if items is None else items
        rows, columns = self._match("user", user_ids, users), self._match("item", item_ids, needed)
        if rows is None and columns is None:
            return self
        everyone = np.arange(len(user_ids)) if rows is None else rows
        return self._renumbered(everyone, np.arange(len(item_ids)) if columns is None else columns)

    def knows(self, role: str, names: AnyArray) -> Bools:
        """Return which of these users or items the scorer knows; all of them, if it has no names of its own."""
        found = self._match(role, names, np.zeros(0, dtype=np.int64))
        return np.ones(len(names), dtype=np.bool_) if found is None else found >= 0

    def _match(self, role: str, names: AnyArray, needed: Ints) -> Ints | None:
        """Return the scorer's number of each user or item of the data; None if all are the same."""
        own, size = (self.user_ids, self.n_users) if role == "user" else (self.item_ids, self.n_items)
        return None if own is None else match_names(names, as_ids(f"{role}_ids", own, size), needed, role)

    def _renumbered(self, users: Ints, items: Ints) -> Scorer:
        return Renumbered(self, users, items)

    def _options(self, threads: int, progress: Progress | None) -> dict[str, Any]:
        """Return how to compute and use blocks of scores."""
        return {"threads": threads, "progress": progress, "batch_size": self.batch_size, "concurrent": self.concurrent}

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


def count_pairs(scorer: Scorer, users: Ints, own: Lists, sampled: Lists) -> tuple[SampledCounts, AnyArray]:
    """Score the relevant and the sampled items of users, and count; return the counts and the scores of the latter."""
    sizes = np.concatenate([np.diff(own.indptr), np.diff(sampled.indptr)])
    rows, items = np.repeat(np.tile(users, 2), sizes), np.concatenate([own.indices, sampled.indices])
    scores = np.ascontiguousarray(to_numpy(scorer.pairs(rows, items), "scores"))
    check_pairs(scores, rows, items)
    of_own, of_sampled = scores[: own.indices.size], scores[own.indices.size :]
    return count_sampled(of_own, own.indptr, of_sampled, sampled.indptr), of_sampled


class ArrayScorer(Scorer):
    """A scorer from arrays: its numbers of users and items are known, and several threads may call it."""

    n_users: int
    n_items: int
    concurrent = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_users} users, {self.n_items} items)"

    def _set_shape(self, shape: tuple[int, int], user_ids: Ids, item_ids: Ids) -> None:
        self.n_users, self.n_items = shape
        self.user_ids = None if user_ids is None else as_ids("user_ids", user_ids, self.n_users)
        self.item_ids = None if item_ids is None else as_ids("item_ids", item_ids, self.n_items)


class Factors(ArrayScorer):
    """Scores are inner products: ``user_factors @ item_factors.T + item_bias``.

    Parameters
    ----------
    user_factors, item_factors : arrays of shape (n_users, d) and (n_items, d)
        NumPy arrays, memory-mapped or not, or tensors or embedding layers of PyTorch. Scores are computed in float32 if
        both are float32, and in float64 otherwise. Tensors on a device (a GPU) are multiplied and counted there.
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

    def __init__(
        self,
        user_factors: ArrayLike,
        item_factors: ArrayLike,
        item_bias: ArrayLike | None = None,
        *,
        user_ids: Ids = None,
        item_ids: Ids = None,
    ) -> None:
        self.tensors = FactorTensors.of(user_factors, item_factors, item_bias)
        self.user_factors = to_numpy(user_factors, "`user_factors`")
        self.item_factors = to_numpy(item_factors, "`item_factors`")
        self.item_bias = None if item_bias is None else to_numpy(item_bias, "`item_bias`")
        users, items = self.user_factors.shape, self.item_factors.shape
        if len(users) != 2 or len(items) != 2 or users[1] != items[1]:
            rule = "two-dimensional with the same number of columns"
            raise InputError(f"`user_factors` and `item_factors` must be {rule}, got shapes {users} and {items}.")
        if self.item_bias is not None and self.item_bias.shape != items[:1]:
            got = self.item_bias.shape
            raise InputError(f"`item_bias` must have one number for each of {items[0]} items, got shape {got}.")
        self._set_shape((users[0], items[0]), user_ids, item_ids)

    @classmethod
    def cosine(
        cls, user_factors: ArrayLike, item_factors: ArrayLike, *, user_ids: Ids = None, item_ids: Ids = None
    ) -> Factors:
        """Return a scorer by cosine similarity: all vectors are divided by their length, except those of length 0.

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
        cls, user_factors: ArrayLike, item_factors: ArrayLike, *, user_ids: Ids = None, item_ids: Ids = None
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

    def for_samples(self, n_pairs: int) -> Callable[..., SampledCounts]:
        """Return a function that scores and counts samples in one compiled loop."""
        samples = FactorSamples.of(self.user_factors, self.item_factors, self.item_bias, n_pairs)
        return super().for_samples(n_pairs) if samples is None else samples.counts

    def count_drawn(
        self, train: Lists, test: Lists, draws: Draws, *, threads: int = 1, progress: Progress | None = None
    ) -> Counts | None:
        """Draw, score and count in one compiled loop, unless scores may not be finite."""
        n_pairs = draws.size * int(np.count_nonzero(np.diff(test.indptr)))
        samples = FactorSamples.of(self.user_factors, self.item_factors, self.item_bias, n_pairs)
        return None if samples is None else samples.count_drawn(train, test, draws, threads, progress)

    def count(self, train: Lists, test: Lists, *, threads: int = 1, progress: Progress | None = None) -> Counts:
        """Count in one compiled loop that computes and compares scores, or on the device of the tensors."""
        if self.tensors is not None:
            return self.tensors.counts(train, test, progress)
        factors = (self.user_factors, self.item_factors)
        return count_factors(*factors, train, test, item_bias=self.item_bias, threads=threads, progress=progress)

    def count_top(
        self, train: Lists, test: Lists, depth: int, *, threads: int = 1, progress: Progress | None = None
    ) -> Counts:
        """Count from the longest item factors on, as far as needed to know who has `depth` candidates above."""
        if self.tensors is not None:
            return self.tensors.counts(train, test, progress)
        given = (self.user_factors, self.item_factors, train, test)
        return count_factors(*given, item_bias=self.item_bias, depth=depth, threads=threads, progress=progress)

    def best(self, users: Ints, excluded: Lists, k: int, *, threads: int = 1, progress: Progress | None = None) -> Best:
        """Score and search in one compiled loop."""
        given = (self.user_factors, self.item_factors, users, excluded, k)
        return best_factors(*given, item_bias=self.item_bias, threads=threads, progress=progress)

    def _renumbered(self, users: Ints, items: Ints) -> Factors:
        own, others, bias = self.tensors or (self.user_factors, self.item_factors, self.item_bias)
        return Factors(own[users], others[items], None if bias is None else bias[items])


def _of_length_1(vectors: AnyArray) -> AnyArray:
    """Return vectors divided by their lengths, computed in float64 so that multiples of a vector still tie."""
    exact = vectors.astype(np.float64)
    lengths = np.sqrt(np.square(exact).sum(axis=-1, keepdims=True))
    return (exact / np.where(lengths > 0, lengths, 1.0)).astype(vectors.dtype)


class ScoreMatrix(ArrayScorer):
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

    def __init__(self, matrix: Matrix, *, user_ids: Ids = None, item_ids: Ids = None) -> None:
        self.matrix = as_matrix(matrix, "`matrix`")
        self._set_shape(self.matrix.shape, user_ids, item_ids)

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items."""
        return as_dense(self.matrix[users])

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        """Return the score of each user-item pair; no others are looked up."""
        return super().pairs(users, items) if is_sparse(self.matrix) else self.matrix[users, items]


class Similarity(ArrayScorer):
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

    def __init__(self, similarity: Matrix, history: PerUser, *, user_ids: Ids = None, item_ids: Ids = None) -> None:
        matrix = as_matrix(similarity, "`similarity`")
        if matrix.shape[0] != matrix.shape[1]:
            raise InputError(f"`similarity` must have as many rows as columns, got shape {matrix.shape}.")
        past = Interactions.of(history, "history", n_items=matrix.shape[0])
        self.similarity = matrix
        self.history = past.matrix.astype(np.result_type(matrix.dtype, np.float32))
        names = past.user_ids if user_ids is None else user_ids, past.item_ids if item_ids is None else item_ids
        self._set_shape(past.shape, *names)

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items."""
        return score_histories(self.history[users], self.similarity)

    def count(self, train: Lists, test: Lists, *, threads: int = 1, progress: Progress | None = None) -> Counts:
        """Score and count in one pass, without holding the scores of a block."""
        return count_histories(self.history, self.similarity, train, test, threads=threads, progress=progress)

    def best(self, users: Ints, excluded: Lists, k: int, *, threads: int = 1, progress: Progress | None = None) -> Best:
        """Score and search in one pass, without holding the scores of a block."""
        return best_histories(self.history, self.similarity, users, excluded, k, threads=threads, progress=progress)


class FunctionScorer(Scorer):
    """Scores that a function computes: ``function(users)`` for all items, or ``function(users, items)`` for pairs.

    Parameters
    ----------
    function : callable
        Takes an array of user numbers; returns their scores for all items as an array or tensor of shape
        (len(users), n_items). It is called only for users with held-out items.
    pairs : bool
        Whether the function takes two arrays of the same length instead, users and items, and returns one score per
        pair. For slow scorers such as cross-encoders or language models: `truerank.rank_sampled`, and `truerank.rank`
        with `candidates`, score only the pairs they need.
    n_items, n_users : int, optional
        How many items and users there are; by default, as many as in the data. If the data are plain lists, the number
        of items is taken from the first block of scores; for a function of pairs it must be given.
    user_ids, item_ids : arrays, optional
        Names of the users and items, by which `truerank.rank` matches them with those of the data.
    batch_size : int, optional
        Largest length of the arrays that the function gets in one call. By default, an array of users is as long as
        fits into 8 million scores, up to 1,024, and arrays of pairs hold all that are needed at a time, or 100 if
        several calls run at a time, scores are stored, or progress is shown.
    concurrency : int, optional
        Number of calls that run at a time, in separate threads. By default 16 for an async function, otherwise 1, made
        by the calling thread. This and the parameters below are for functions of pairs.
    retries : int
        How often a call that raised an exception is repeated, after pauses of 0.5, 1, 2, ... seconds. Then its pairs
        are asked for one by one, and those that fail are put aside until the others are scored; finally, `ScoringError`
        names them. By default an exception ends the evaluation.
    timeout : float, optional
        Seconds after which a call counts as failed.
    cost_per_score : float, optional
        What a score costs, in any currency; the progress bar shows the money spent.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> scorer = tr.FunctionScorer(lambda users: np.outer(users + 1.0, [3, 1, 2]), n_items=3)
    >>> tr.rank(scorer, test=[[2], [1]]).rank.tolist()
    [2, 3]
    >>> scorer = tr.FunctionScorer(lambda users, items: -abs(items - users), pairs=True, n_items=9)
    >>> tr.rank(scorer, test=[[1], [1]], candidates=[[0, 2, 8], [0, 2, 8]]).rank.tolist()
    [2, 1]

    A function that waits for a server may be async:

    >>> async def ask(users, items):
    ...     return -abs(items - users)
    >>> scorer = tr.FunctionScorer(ask, pairs=True, n_items=9, batch_size=1, concurrency=8, retries=3, timeout=10)
    >>> tr.rank(scorer, test=[[1], [1]], candidates=[[0, 2, 8], [0, 2, 8]]).rank.tolist()
    [2, 1]
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        pairs: bool = False,
        n_items: int | None = None,
        n_users: int | None = None,
        user_ids: Ids = None,
        item_ids: Ids = None,
        batch_size: int | None = None,
        concurrency: int | None = None,
        retries: int = 0,
        timeout: float | None = None,
        cost_per_score: float | None = None,
    ) -> None:
        self.function, self.takes_pairs, self.cost_per_score = function, pairs, cost_per_score
        self.calls = Calls(function, batch_size, concurrency, retries, timeout)
        if not pairs and (concurrency, retries, timeout, cost_per_score) != (None, 0, None, None):
            raise InputError("`concurrency`, `retries`, `timeout` and `cost_per_score` need a function of `pairs`.")
        if not pairs and is_async(function):
            raise InputError("an async scoring function must take users and items; give `pairs=True`.")
        self.user_ids, self.n_users = _named("user", user_ids, n_users)
        self.item_ids, self.n_items = _named("item", item_ids, n_items)
        self.batch_size = None if pairs else batch_size

    def __repr__(self) -> str:
        return f"FunctionScorer({self.function!r}{', pairs=True' if self.takes_pairs else ''})"

    def scores(self, users: Ints) -> AnyArray:
        """Return the function's scores of these users for all items."""
        if not self.takes_pairs:
            return to_numpy(self.function(users), "scores")
        if self.n_items is None:
            raise InputError(
                "the number of items can't be inferred from a function of users and items; give a sparse `test`, "
                "or tr.FunctionScorer(function, pairs=True, n_items=...)."
            )
        return _by_pairs(self, users)

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        """Return the function's scores of these pairs."""
        if not self.takes_pairs:
            return super().pairs(users, items)
        scores, failures = self.calls.run(users, items, None)
        if failures:
            raise failed(failures, *self._names(users, items), "give `store` to keep the others.")
        return scores

    def ask(self, users: Ints, items: Ints, keep: Keep) -> list[Failure]:
        """Pass the scores of each call to `keep`; return the pairs that failed after all repetitions."""
        return self.calls.run(users, items, keep)[1] if self.takes_pairs else super().ask(users, items, keep)

    def _names(self, users: Ints, items: Ints) -> tuple[AnyArray, AnyArray]:
        own = (self.user_ids, users), (self.item_ids, items)
        first, second = (numbers if ids is None else ids[numbers] for ids, numbers in own)
        return first, second


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


def _named(role: str, ids: Ids, size: int | None) -> tuple[AnyArray | None, int | None]:
    """Return the names and the number of users or items, each None if not given."""
    if size is not None:
        check_whole(f"n_{role}s", size, 0, floats=True)
        size = int(size)
    if ids is None:
        return None, size
    names = as_ids(f"{role}_ids", ids, size)
    return names, names.size


class Renumbered(Scorer):
    """Another scorer, with its users and items in another order."""

    def __init__(self, scorer: Scorer, users: Ints, items: Ints) -> None:
        self.scorer, self.users, self.items = scorer, users, items
        self.n_users, self.n_items = users.size, items.size
        self.batch_size, self.concurrent = scorer.batch_size, scorer.concurrent
        self.takes_pairs, self.cost_per_score = scorer.takes_pairs, scorer.cost_per_score

    def ask(self, users: Ints, items: Ints, keep: Keep) -> list[Failure]:
        """Pass the scores of pairs in the new order to `keep`, as the scorer does."""
        return self.scorer.ask(self.users[users], self.items[items], keep)

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items in the new order, asking for no others if it takes pairs."""
        if self.takes_pairs:
            return _by_pairs(self, users)
        return self.scorer._rows(self.users[users])[:, self.items]

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        """Return the score of each user-item pair in the new order."""
        return self.scorer.pairs(self.users[users], self.items[items])


_FIRST = 64

# finite in float32, and below what any model computes
_LOW, _LOWEST = -1e38, -2e38


class UnknownLast(Scorer):
    """Another scorer, for users and items of which it knows only some: unknown items rank below, held-out ones last.

    Parameters
    ----------
    scorer : Scorer
        Numbered as the data.
    users, items : arrays of bool
        Which ones it knows.
    held : Interactions
        Held-out items, which rank below other items that the scorer does not know.
    """

    def __init__(self, scorer: Scorer, users: Bools, items: Bools, held: Interactions) -> None:
        self.scorer, self.known_users, self.known_items, self.held = scorer, users, items, held
        self.n_users, self.n_items = users.size, items.size
        self.batch_size, self.concurrent = scorer.batch_size, scorer.concurrent
        self.takes_pairs, self.cost_per_score = scorer.takes_pairs, scorer.cost_per_score

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items."""
        if self.takes_pairs:
            return _by_pairs(self, users)
        known = self.known_users[users]
        own = self.scorer._rows(users[known]) if known.any() else np.zeros((0, self._width()), np.float32)
        scores = np.full((users.size, self._width()), _LOW, own.dtype)
        scores[np.ix_(known, self.known_items)] = own[:, self.known_items]
        places, within = entries_of(self.held.indptr, users)
        rows, items = owners(within), self.held.items[places]
        last = ~(known[rows] & self.known_items[items])
        scores[rows[last], items[last]] = _LOWEST
        return scores

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        """Return the score of each pair, asking only for known ones."""
        known = self.known_users[users] & self.known_items[items]
        own = to_numpy(self.scorer.pairs(users[known], items[known]), "scores")
        scores = np.full(users.size, _LOW, own.dtype)
        scores[known] = own
        last = np.flatnonzero(~known)
        scores[last[self.held.has(users[last], items[last])]] = _LOWEST
        return scores

    def count(self, train: Lists, test: Lists, *, threads: int = 1, progress: Progress | None = None) -> Counts:
        """Count among the items that the scorer knows, as it does; all others are below."""

        def count(own: Scorer, train: Lists, test: Lists) -> Counts:
            return own.count(train, test, threads=threads, progress=progress)

        return self._counted(train, test, count)

    def count_top(
        self, train: Lists, test: Lists, depth: int, *, threads: int = 1, progress: Progress | None = None
    ) -> Counts:
        """Count down to a depth among the items that the scorer knows, as it does; all others are below."""

        def count(own: Scorer, train: Lists, test: Lists) -> Counts:
            return own.count_top(train, test, depth, threads=threads, progress=progress)

        return self._counted(train, test, count)

    def _counted(self, train: Lists, test: Lists, count: Callable[..., Counts]) -> Counts:
        user, number = owners(test.indptr), np.full(self.known_items.size, -1, np.int32)
        number[self.known_items] = np.arange(np.count_nonzero(self.known_items))
        trained, relevant = number[train.indices], number[test.indices]
        known = self.known_users[user] & (relevant >= 0)
        own = self.scorer._renumbered(np.arange(self.known_users.size), np.flatnonzero(self.known_items))
        found = count(own, _chosen(train.indptr, trained, trained >= 0), _chosen(test.indptr, relevant, known))
        last, seen = np.flatnonzero(~known), known.copy()
        seen[known] = found.seen
        seen[last] = holds(train.indptr, train.indices, user[last], test.indices[last])
        listed = np.diff(train.indptr) + np.diff(test.indptr) - np.diff(bounds(seen)[test.indptr])
        equal = self._other_last_ones(train, test)
        entries = np.concatenate([np.flatnonzero(known)[found.order], last])
        order = np.argsort(user[entries], kind="stable")  # known ones of a user stay before the others
        above = np.concatenate([found.above, (self._width() - listed - equal)[user[last]]])[order]
        return Counts(above, np.concatenate([found.tied, equal[user[last]]])[order], entries[order], seen)

    def _other_last_ones(self, train: Lists, test: Lists) -> Ints:
        """Count the candidates of each user that are last because they are held out, but not in this `test`."""
        users, items = self.held.users, self.held.items
        last = np.flatnonzero(~(self.known_users[users] & self.known_items[items]))
        pairs = users[last], items[last]
        others = ~(holds(test.indptr, test.indices, *pairs) | holds(train.indptr, train.indices, *pairs))
        return np.bincount(pairs[0][others], minlength=self.known_users.size)

    def expect(self, number: int) -> None:
        """Pass on how many more pairs will be asked for."""
        self.scorer.expect(number)


def _chosen(indptr: AnyArray, entries: AnyArray, chosen: Bools) -> Lists:
    left_out = np.flatnonzero(~chosen)
    return Lists(indptr - np.searchsorted(left_out, indptr), entries[chosen])


def _by_pairs(scorer: Scorer, users: Ints) -> AnyArray:
    """Return the scores of these users for all items, asked for as pairs."""
    items = np.arange(scorer._width())
    return scorer.pairs(np.repeat(users, items.size), np.tile(items, users.size)).reshape(users.size, -1)


def measured(scorer: Scorer, users: Ints, least: int) -> Scorer:
    """Return the scorer with its number of items, taken from the scores of its first users.

    These are the users that are counted first. Their scores are kept, so no user is scored twice.

    Parameters
    ----------
    scorer : Scorer
        One that does not know its number of items.
    users : array of int
        All users that will be scored, ascending.
    least : int
        The least possible number of items.
    """
    if not users.size:
        return scorer.sized(least)
    # few, because there may be far more items than the data show
    first = users[: scorer.batch_size or min(users_per_block(least), _FIRST)]
    return _FirstKept(scorer, first, scorer.scores(first))


class _FirstKept(Scorer):
    """A scorer that keeps the scores of its first users."""

    def __init__(self, scorer: Scorer, users: Ints, scores: AnyArray) -> None:
        if scores.ndim != 2 or len(scores) != users.size:
            raise InputError(f"a scorer must return scores of shape ({users.size}, n_items), got {scores.shape}.")
        self.scorer, self.first, self.kept = scorer, users, scores
        self.n_users, self.n_items = scorer.n_users, scores.shape[1]
        self.batch_size, self.concurrent = scorer.batch_size, scorer.concurrent

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users, computing only those that are not kept."""
        is_kept = np.isin(users, self.first)
        rows = self.kept[np.searchsorted(self.first, users[is_kept])]
        if is_kept.all():
            return rows
        others = self.scorer.scores(users[~is_kept])
        if not is_kept.any() or others.shape[1:] != rows.shape[1:]:
            return others  # if the width differs, the caller raises an error
        scores = np.empty((users.size, self._width()), rows.dtype)
        scores[is_kept], scores[~is_kept] = rows, others
        return scores


def match_names(names: AnyArray, own: AnyArray, needed: Ints, role: str) -> Ints | None:
    """Return the position of each name among the scorer's own names, -1 if it is not there.

    Parameters
    ----------
    names, own : arrays
        Names in the data, and names of the scorer.
    needed : array of int
        Positions of the names that the scorer must have.
    role : {"user", "item"}

    Returns
    -------
    array of int, or None if all names are the same

    Raises
    ------
    InputError
        If a needed name is missing, or the scorer has a name twice.

    Examples
    --------
    >>> import numpy as np
    >>> match_names(np.array(["b", "x", "a"]), np.array(["a", "b"]), np.array([0, 2]), "item").tolist()
    [1, -1, 0]
    """
    if np.array_equal(names, own):
        return None
    order = np.argsort(own, kind="stable")
    ascending = own[order]
    if np.any(twice := ascending[1:] == ascending[:-1]):
        first = ascending.tolist()[int(np.argmax(twice))]
        raise InputError(f"the scorer's `{role}_ids` must be distinct, got {first!r} twice.")
    if (names.dtype.kind in "US") != (own.dtype.kind in "US"):
        raise InputError(f"the scorer's `{role}_ids` are {_kind(own)}, but the data have {_kind(names)}.")
    nearest = np.minimum(np.searchsorted(ascending, names), max(own.size - 1, 0))
    found = ascending[nearest] == names if own.size else np.zeros(names.size, dtype=np.bool_)
    if not found[needed].all():
        missing = names.tolist()[int(needed[np.argmin(found[needed])])]
        raise InputError(f"the scorer does not know {role} {missing!r}: it is not among its `{role}_ids`.")
    return np.where(found, order[nearest], -1)


def _kind(ids: AnyArray) -> str:
    kind = "text" if ids.dtype.kind in "US" else "numbers"
    return f"{kind}, such as {ids.tolist()[0]!r}" if ids.size else kind
