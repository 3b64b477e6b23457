"""The same list for everybody: the items that most users have interacted with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.data.interactions import Interactions
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

    def _learn(self, train: Interactions, threads: int, progress: bool) -> FactorModel:
        counts = np.bincount(train.items, minlength=train.n_items).astype(np.float64)
        # as a single factor, which is 1 for each user: `rank` is fastest for factors
        users, items = np.ones((train.n_users, 1)), counts[:, np.newaxis]
        return FactorModel(users, items, recommender=self, user_ids=train.user_ids, item_ids=train.item_ids)
