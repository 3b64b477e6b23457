"""How many items a scorer has, when neither it nor the data tell."""

from __future__ import annotations

import numpy as np

from truerank.arrays import AnyArray, Ints
from truerank.counting.scores import users_per_block
from truerank.errors import InputError
from truerank.scoring.scorer import Scorer


def measured(scorer: Scorer, users: Ints, least: int) -> Scorer:
    """Return the scorer with its number of items, which the scores of its first users show.

    These are the users that are counted first. Their scores are kept, so no user is scored twice.

    Parameters
    ----------
    scorer : Scorer
        Which does not know its number of items.
    users : array of int
        All users that will be scored, ascending.
    least : int
        Items that there are at least. Were there no more, the first block is the one that
        `Scorer.count` asks for first.
    """
    if not users.size:
        return scorer.sized(least)
    first = users[: users_per_block(least)]
    return _Measured(scorer, first, scorer.scores(first))


class _Measured(Scorer):
    """A scorer that knows the scores of its first users."""

    def __init__(self, scorer: Scorer, users: Ints, scores: AnyArray) -> None:
        if scores.ndim != 2 or len(scores) != users.size:
            raise InputError(f"a scorer must return scores of shape ({users.size}, n_items), got {scores.shape}.")
        self.scorer, self.first, self.known = scorer, users, scores
        self.n_users, self.n_items = scorer.n_users, scores.shape[1]

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users, asking only for those that are not known."""
        known = np.isin(users, self.first)
        rows = self.known[np.searchsorted(self.first, users[known])]
        if known.all():
            return rows
        others = self.scorer.scores(users[~known])
        if not known.any() or others.shape[1:] != rows.shape[1:]:
            return others  # of another width, which the caller finds out
        scores = np.empty((users.size, self._width()), rows.dtype)
        scores[known], scores[~known] = rows, others
        return scores
