"""How many items a scorer has, if neither the scorer nor the data state it."""

from __future__ import annotations

import numpy as np

from truerank.arrays import AnyArray, Ints
from truerank.counting.scores import users_per_block
from truerank.errors import InputError
from truerank.scoring.scorer import Scorer


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
        The least possible number of items. If there are no more, the first block is the same as
        the first one of `Scorer.count`.
    """
    if not users.size:
        return scorer.sized(least)
    first = users[: scorer.batch_size or users_per_block(least)]
    return _Measured(scorer, first, scorer.scores(first))


class _Measured(Scorer):
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
            return others  # if of another width, the caller raises an error
        scores = np.empty((users.size, self._width()), rows.dtype)
        scores[is_kept], scores[~is_kept] = rows, others
        return scores
