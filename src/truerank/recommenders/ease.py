"""A linear model that predicts each item from all others, in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from truerank.data.interactions import Interactions
from truerank.recommenders.cooccurrence import map_blocks
from truerank.recommenders.inverse import invert
from truerank.recommenders.models import Recommender, SimilarityModel, check_number


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
        return SimilarityModel(weights, train, recommender=self)
