"""Scores of single pairs of factors, and counts of the scores that were sampled for each user."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from truerank.arrays import AnyArray, Ints
from truerank.compiled import library
from truerank.counting import reference


def score_pairs(
    user_factors: AnyArray, item_factors: AnyArray, users: Ints, items: Ints, *, item_bias: AnyArray | None = None
) -> AnyArray:
    """Return the scores of pairs of users and items: by the compiled loop, those that `count_factors` counts.

    Parameters
    ----------
    user_factors, item_factors, item_bias
        As in `count_factors`; scores are in float32 if both factors are, and in float64 otherwise.
    users, items : arrays of int, one entry per pair
        It is faster if pairs of the same user follow each other.

    Examples
    --------
    >>> score_pairs(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]]), np.array([0, 1, 1]), np.array([0, 0, 1]))
    array([3., 6., 8.])
    """
    number = np.result_type(user_factors, item_factors)
    if library.load() is None:
        return reference.score_pairs(user_factors, item_factors, users, items, item_bias)
    scores = np.empty(len(users), number)
    factors = [library.Matrix.of(np.ascontiguousarray(each, number)) for each in (user_factors, item_factors)]
    bias = None if item_bias is None else np.ascontiguousarray(item_bias, number)
    pairs = [np.ascontiguousarray(each, np.int64) for each in (users, items)]
    library.call(f"score_pairs_{number}", *factors, bias, *pairs, len(users), scores)
    return scores


class SampledCounts(NamedTuple):
    """Per relevant item, user by user, and from the highest score down.

    `above` and `tied` count sampled scores that are higher and equal, `scores` are those of the relevant items, and
    `order` is where each was given.
    """

    above: Ints
    tied: Ints
    order: Ints
    scores: AnyArray


def count_sampled(own: AnyArray, own_bounds: Ints, sampled: AnyArray, bounds: Ints) -> SampledCounts:
    """Count the sampled scores above, and equal to, each relevant one of the same user.

    Parameters
    ----------
    own, sampled : arrays of float, of the same type
        Finite scores of the relevant and of the sampled items, user by user.
    own_bounds, bounds : arrays of int
        Where the scores of each user begin, and where the last ones end.

    Examples
    --------
    >>> own, sampled = np.array([0.2, 0.7, 0.5]), np.array([0.5, 0.7, 0.9, 0.1])
    >>> counts = count_sampled(own, np.array([0, 2, 3]), sampled, np.array([0, 2, 4]))
    >>> counts.above.tolist(), counts.tied.tolist(), counts.order.tolist()
    ([0, 2, 1], [1, 0, 0], [1, 0, 2])
    """
    if library.load() is None:
        return SampledCounts(*reference.count_sampled(own, own_bounds, sampled, bounds))
    above, tied, order = np.zeros((3, own.size), np.int64)
    scores = np.empty_like(own)
    given = library.Sampled.of(own, own_bounds, sampled, bounds)
    library.call(f"count_sampled_{own.dtype}", given, scores, order, above, tied)
    return SampledCounts(above, tied, order, scores)
