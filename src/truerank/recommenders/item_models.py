"""Recommenders from an item-item matrix: EASE and item-based nearest neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Literal, TypeVar, get_args

import numpy as np
import scipy.sparse as sp

from truerank.core.checks import Bools, Floats, check_choice, check_whole
from truerank.core.threads import progress_bar, share
from truerank.data.interactions import Interactions
from truerank.kernels import library
from truerank.recommenders.models import Recommender, SimilarityModel, check_number, mirrored

Result = TypeVar("Result")

_ENTRIES = 1 << 21  # entries of a block of rows: 24 MB per thread if all are stored


def map_blocks(
    train: sp.csr_array, use: Callable[[int, sp.csr_array], Result], threads: int, progress: bool
) -> list[Result]:
    """Return ``use(first, rows)`` for each block of rows of the item-item co-occurrence matrix, in order.

    Entry (i, j) of the matrix is the exact number of users of both i and j; on the diagonal it is
    the number of users of i. `first` is the item of the first row of the block.

    Examples
    --------
    >>> train = sp.csr_array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    >>> map_blocks(train, lambda first, rows: rows.toarray().tolist(), 1, False)
    [[[1.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 1.0]]]
    """
    by_item, n_items = sp.csr_array(train.T), train.shape[1]
    size = max(_ENTRIES // n_items, 1)
    counted = None if library.load() is None else _counted(by_item, train)

    def run(first: int, stopped: Event) -> Result:
        last = min(first + size, n_items)
        return use(first, counted(first, last) if counted else sp.csr_array(by_item[first:last] @ train))

    blocks = range(0, n_items, size)
    with progress_bar("items", progress, total=len(blocks)) as bar:
        return share(run, blocks, threads, lambda _: bar.update())


def keep_largest(rows: sp.csr_array, k: int) -> sp.csr_array:
    """Return the k largest stored values of each row, all positive; of equal ones the first.

    Examples
    --------
    >>> keep_largest(sp.csr_array([[1.0, 3.0, 0.0, 3.0, 3.0]]), 2).toarray().tolist()
    [[0.0, 3.0, 0.0, 3.0, 0.0]]
    """
    if library.load() is None:
        dense = rows.toarray()
        return sp.csr_array(np.where(_largest(dense, k), dense, 0.0)) if k < rows.shape[1] else rows
    begin, columns, values = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float64)
    library.call("keep_largest", rows.shape[0], begin, columns, values, len(values), k)
    return sp.csr_array((values[: begin[-1]], columns[: begin[-1]], begin), shape=rows.shape)


def _counted(by_item: sp.csr_array, train: sp.csr_array) -> Callable[[int, int], sp.csr_array]:
    """Return a function from a range of items to their rows, by compiled loops."""
    items, users = (library.RowsArgument.of(matrix.indptr, matrix.indices) for matrix in (by_item, train))

    def together(start: int, stop: int) -> sp.csr_array:
        room = library.call("most_together", items, users, start, stop) + 1
        begin, columns, counts = np.empty(stop - start + 1, np.int64), np.empty(room, np.int32), np.empty(room)
        library.call("count_together", items, users, start, stop, begin, columns, counts)
        size = begin[-1]
        return sp.csr_array((counts[:size], columns[:size], begin), shape=(stop - start, train.shape[1]))

    return together


def _largest(values: Floats, k: int) -> Bools:
    """Return where the k largest values of each row are; of equal ones the first."""
    least = np.partition(values, -k, axis=1)[:, [-k]]
    above, equal = values > least, values == least
    missing = k - above.sum(axis=1, keepdims=True)
    return above | (equal & (np.cumsum(equal, axis=1) <= missing))


def invert(matrix: Floats, threads: int) -> Floats:
    """Return the inverse of a symmetric positive definite matrix.

    Without the compiled library, LAPACK computes it.

    Examples
    --------
    >>> invert(np.array([[2.0, 1.0], [1.0, 2.0]]), threads=1).round(3).tolist()
    [[0.667, -0.333], [-0.333, 0.667]]
    """
    if library.load() is None:
        return np.linalg.inv(matrix).astype(np.float64, copy=False)
    return _sweep(matrix, threads)


def _sweep(matrix: Floats, threads: int) -> Floats:
    """Sweep one block of rows and columns after another, which ends with minus the inverse.

    With the block K of rows, P the inverse of the square block M_KK, and all other rows I and
    columns J: M_IJ becomes M_IJ - M_IK P M_KJ, M_KJ becomes P M_KJ, and M_KK
    becomes -P. Only blocks on and above the diagonal are kept.
    """
    size, block = len(matrix), library.call("inverse_block")
    # padded with rows and columns of the identity, which do not mix with the others
    wide = np.eye(-(-size // block) * block)
    wide[:size, :size] = matrix
    scaled = np.empty((block, len(wide)))
    for first in range(0, len(wide), block):
        _sweep_block(wide, scaled, first, block, threads)
    return -mirrored(wide[:size, :size])


def _sweep_block(wide: Floats, scaled: Floats, first: int, block: int, threads: int) -> None:
    last = first + block
    panel = np.hstack([wide[:first, first:last].T, wide[first:last, first:]])
    pivot = mirrored(panel[:, first:last])
    library.call("invert_block", pivot)
    arrays = (wide, len(wide), panel, pivot, scaled)
    share(lambda start, _: library.call("sweep_columns", *arrays, start), range(0, len(wide), block), threads)
    wide[:first, first:last], wide[first:last, last:] = scaled[:, :first].T, scaled[:, last:]
    wide[first:last, first:last] = -pivot


@dataclass(frozen=True)
class EASE(Recommender[SimilarityModel]):
    r"""Scores ``X @ B`` where B minimises :math:`\|X - XB\|^2 + \lambda \|B\|^2` with a zero diagonal.

    With :math:`P = (X'X + \lambda I)^{-1}` the solution is :math:`B_{ij} = -P_{ij} / P_{jj}` off the
    diagonal.

    Parameters
    ----------
    regularization : float
        Lambda.

    Notes
    -----
    Simple, deterministic, and hard to beat. It needs memory for about five dense matrices of shape
    (n_items, n_items), and time that grows with the cube of n_items.

    References
    ----------
    H. Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019.

    Examples
    --------
    >>> import numpy as np
    >>> import truerank as tr
    >>> print(tr.EASE(regularization=1.0).fit([[0, 1], [0, 1], [0, 2]]).scores(np.array([2])).round(2))
    [[0.5  0.29 0.38]]
    """

    regularization: float = 500.0

    def __post_init__(self) -> None:
        check_number("regularization", self.regularization, above=0.0)

    def _learn(self, train: Interactions, threads: int, progress: bool) -> SimilarityModel:
        gram = np.empty((train.n_items, train.n_items))

        def fill(first: int, rows: sp.csr_array) -> None:
            gram[first : first + rows.shape[0]] = rows.toarray()

        map_blocks(train.matrix, fill, threads, progress)
        gram[np.diag_indices_from(gram)] += self.regularization
        inverse = invert(gram, threads)
        weights = (inverse / -np.diag(inverse)).astype(np.float32)
        np.fill_diagonal(weights, 0.0)
        return SimilarityModel(weights, train).learnt_by(self)


Keep = Literal["column", "row"]

_DENSE = 0.25  # share of stored entries from which a dense matrix is smaller and multiplies faster


@dataclass(frozen=True)
class ItemKNN(Recommender[SimilarityModel]):
    r"""Scores an item i by its similarity to the items j of the user: the cosine between their sets of users.

    .. math:: s_{ij} = \left(\frac{|U_i \cap U_j|}{\sqrt{|U_i|\,|U_j|}}\right)^q, \qquad
              \hat y_{ui} = \frac{1}{z_i} \sum_{j \in H_u} s'_{ij}

    where s' is s for neighbours and 0 otherwise, and z_i is the norm of row i of s', its sum, or 1.

    Parameters
    ----------
    power : float
        The exponent q; a larger one gives more weight to the most similar items.
    neighbours : int, optional
        How many neighbours to keep; all by default. Among equally similar items, the first are kept.
    keep : {"column", "row"}
        Whose neighbours: each item j of a user's history adds to the scores of the items most
        similar to j ("column"), or each item i is scored by the items most similar to i ("row").
    keep_self : bool
        Whether an item is its own neighbour. Training items are not candidates, so this matters
        only through the norm, and because the item takes up one of its `neighbours`.
    row_norm : bool
        Whether to divide the row of each item by its Euclidean norm (eq. 29).
    divide : bool
        Whether to divide the prediction by the sum of the item's row (eq. 30); the norm then has
        no effect.

    Notes
    -----
    Equally similar pairs get bit-equal similarities. An item without interactions, or without
    neighbours, has the score 0; with few neighbours many items tie at 0.

    The published numbers of Krichene & Rendle's recommenders Y and Z come from
    ``ItemKNN(power=3, keep_self=True)`` and ``ItemKNN(neighbours=10)``: they do not include the
    denominator of eq. 30, and the ten neighbours are those of each column.

    References
    ----------
    B. Sarwar, G. Karypis, J. Konstan, J. Riedl, "Item-Based Collaborative Filtering Recommendation
    Algorithms", WWW 2001.
    W. Krichene, S. Rendle, "On Sampled Metrics for Item Recommendation", KDD 2020, section 9.

    Examples
    --------
    >>> import numpy as np
    >>> import truerank as tr
    >>> train = [[0, 1], [0, 1], [0, 2], [2]]
    >>> print(tr.ItemKNN(power=2, row_norm=False).fit(train).scores(np.array([3])).round(2))
    [[0.17 0.   0.  ]]
    """

    power: float = 1.0
    neighbours: int | None = None
    keep: Keep = "column"
    keep_self: bool = False
    row_norm: bool = True
    divide: bool = False

    def __post_init__(self) -> None:
        check_number("power", self.power, above=0.0)
        if self.neighbours is not None:
            check_whole("neighbours", self.neighbours)
        check_choice("keep", self.keep, get_args(Keep))

    def _learn(self, train: Interactions, threads: int, progress: bool) -> SimilarityModel:
        users = np.bincount(train.items, minlength=train.n_items).astype(np.float64)
        blocks = map_blocks(train.matrix, lambda first, rows: self._similar(first, rows, users), threads, progress)
        stacked = sp.vstack(blocks, format="csr")
        # row j of a model's matrix holds what item j adds to the scores of the others
        adds = stacked if self.keep == "column" else sp.csr_array(stacked.T)
        adds.data *= self._scales(adds)[adds.indices]
        share = adds.nnz / adds.shape[0] ** 2
        # a dense product is limited by memory bandwidth, so half as many bytes take half the time
        matrix = adds.astype(np.float32).toarray() if share > _DENSE else adds
        return SimilarityModel(matrix, train).learnt_by(self)

    def _similar(self, first: int, together: sp.csr_array, users: Floats) -> sp.csr_array:
        """Return a block of rows of similarities, those of neighbours only."""
        items, sizes = np.arange(first, first + together.shape[0]), np.diff(together.indptr)
        # exact integers are squared, multiplied and divided, so equal similarities are bit-equal
        together.data *= together.data
        together.data /= np.repeat(users[items], sizes) * users[together.indices]
        if not self.keep_self:
            together.data[together.indices == np.repeat(items, sizes)] = 0.0
            together.eliminate_zeros()
        if self.neighbours is not None:
            together = keep_largest(together, self.neighbours)
        together.data **= self.power / 2
        return together

    def _scales(self, adds: sp.csr_array) -> Floats:
        """Return the factor that multiplies the score of each item."""
        size = np.ones(adds.shape[1])
        if self.divide:
            size[:] = np.bincount(adds.indices, adds.data, minlength=size.size)
        elif self.row_norm:
            size[:] = np.sqrt(np.bincount(adds.indices, adds.data**2, minlength=size.size))
        return np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
