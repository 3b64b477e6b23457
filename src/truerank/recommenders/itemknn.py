"""Item neighbourhoods: recommend what is similar to the items in a user's history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp

from truerank.arrays import Floats
from truerank.data.interactions import Interactions
from truerank.errors import InputError
from truerank.recommenders.cooccurrence import keep_largest, map_blocks
from truerank.recommenders.models import Recommender, SimilarityModel, check_number

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
            check_number("neighbours", self.neighbours, at_least=1, whole=True)
        if self.keep not in get_args(Keep):
            raise InputError(f"`keep` must be one of {get_args(Keep)}, got {self.keep!r}.")

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
        return SimilarityModel(matrix, train, recommender=self)

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
