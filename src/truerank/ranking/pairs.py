"""Scored pairs of users and items -> ranks of the relevant ones among all pairs of their user."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from truerank.arrays import AnyArray, Bools, Floats, Ints
from truerank.counting.blocks import refuse_score
from truerank.ranking.ranks import Ranks


class PairCounts(NamedTuple):
    """Per relevant pair: user by user in ascending order, and from the highest score down.

    `above` and `tied` count irrelevant pairs of the user with a higher and with an equal score, `order` is the
    row that each entry belongs to, and `same_score` whether it has the score of the relevant pair before it.
    """

    above: Ints
    tied: Ints
    order: Ints
    same_score: Bools


def count_pairs(users: Ints, scores: AnyArray, relevant: Bools) -> PairCounts:
    """Count the irrelevant pairs above, and tied with, each relevant one.

    Parameters
    ----------
    users, scores, relevant : arrays, one entry per pair
        In any order. Scores are finite.

    Examples
    --------
    >>> scores, relevant = np.array([0.5, 0.9, 0.5, 0.1]), np.array([True, False, False, True])
    >>> count_pairs(np.zeros(4, dtype=int), scores, relevant)[:2]
    (array([1, 2]), array([1, 0]))
    """
    order = np.lexsort((-scores, users))
    user, score, hit = users[order], scores[order], relevant[order]
    new_user = np.diff(user, prepend=-1) != 0
    new_score = new_user | (np.diff(score, prepend=0) != 0)
    hits = np.flatnonzero(hit)
    top = np.flatnonzero(new_user)[np.cumsum(new_user)[hits] - 1]
    starts, block = np.append(np.flatnonzero(new_score), user.size), np.cumsum(new_score)[hits]
    irrelevant = np.concatenate([[0], np.cumsum(~hit)])
    higher, end = irrelevant[starts[block - 1]], irrelevant[starts[block]]
    return PairCounts(higher - irrelevant[top], end - higher, order[hits], np.diff(block, prepend=0) == 0)


def rank_pairs(users: Ints, items: Ints, scores: AnyArray, relevant: Bools, grades: Floats | None = None) -> Ranks:
    """Return the ranks of relevant pairs among all pairs of their user, one instance per user in ascending order.

    Parameters
    ----------
    users, items : arrays of int, one entry per pair
    scores : array, one entry per pair
        Refused if one is not finite.
    relevant : array of bool, one entry per pair
    grades : array, one entry per relevant pair, optional

    Examples
    --------
    >>> users, items = np.array([3, 3, 3]), np.array([0, 1, 2])
    >>> rank_pairs(users, items, np.array([0.1, 0.3, 0.2]), np.array([True, False, False])).rank.tolist()
    [3]
    """
    if not np.isfinite(scores).all():
        at = int(np.argmin(np.isfinite(scores)))
        refuse_score(users[at], items[at], scores[at])
    counts = count_pairs(users, scores, relevant)
    distinct, n_candidates = np.unique(users, return_counts=True)
    bounds = np.searchsorted(users[counts.order], distinct)
    return Ranks(
        above=counts.above,
        tied=counts.tied,
        n_candidates=n_candidates,
        indptr=np.append(bounds, counts.order.size),
        ids=distinct,
        grades=None if grades is None else grades[(np.cumsum(relevant) - 1)[counts.order]],
        same_score=None if grades is None else counts.same_score,
        items=items[counts.order],
    )
