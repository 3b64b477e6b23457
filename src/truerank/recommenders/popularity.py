"""The same list for everybody: what most users have had to do with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from truerank.recommenders.models import FactorModel, Recommender


@dataclass(frozen=True)
class Popularity(Recommender[FactorModel]):
    """Scores an item by its number of users; a baseline that any recommender should beat.

    Examples
    --------
    >>> import numpy as np
    >>> import truerank as tr
    >>> tr.Popularity().fit([[0, 1], [1]]).scores(np.array([0])).tolist()
    [[1.0, 2.0]]
    """

    def _learn(self, train: sp.csr_array, threads: int, progress: bool) -> FactorModel:
        counts = np.bincount(train.indices, minlength=train.shape[1]).astype(np.float64)
        # one factor, which is 1 for each user, takes the fastest way through `rank`
        return FactorModel(np.ones((train.shape[0], 1)), counts[:, np.newaxis], recommender=self)
