"""Counts by NumPy: the reference for testing the compiled loops, and the fallback without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from truerank.arrays import AnyArray, Ints
from truerank.counting.blocks import Block, refuse_list

_PAIRS = 1 << 14  # whose factors are gathered at once: a part of the cache
_FEW = 8  # up to this many held-out items, comparing is faster than sorting


def scores_of_factors(user_rows: Callable[[Ints], AnyArray], items: AnyArray) -> Callable[[Ints], AnyArray]:
    """Return a function that computes scores of users by BLAS, with equal scores for equal items.

    BLAS sums in a different order at the edges of a matrix, which would break true ties, so each
    distinct item is scored once.
    """
    distinct, inverse = np.unique(items, axis=0, return_inverse=True)

    def score(users: Ints) -> AnyArray:
        with np.errstate(all="ignore"):  # scores that are not finite are reported when counting
            return (user_rows(users) @ distinct.T)[:, inverse]

    return score


def score_pairs(
    user_factors: AnyArray, item_factors: AnyArray, users: Ints, items: Ints, item_bias: AnyArray | None
) -> AnyArray:
    """Return the scores of pairs, which may differ from those of the compiled loop in the last bits."""
    scores = np.empty(users.size, np.result_type(user_factors, item_factors))
    for start in range(0, users.size, _PAIRS):
        some = slice(start, start + _PAIRS)
        np.einsum("ij,ij->i", user_factors[users[some]], item_factors[items[some]], out=scores[some])
    return scores if item_bias is None else scores + item_bias[items].astype(scores.dtype)


def count_sampled(
    own: AnyArray, own_bounds: Ints, sampled: AnyArray, bounds: Ints
) -> tuple[Ints, Ints, Ints, AnyArray]:
    """Return, from the top of each user down, the counts above and tied, the order, and the scores of own items."""
    order = np.lexsort((-own, np.repeat(np.arange(len(own_bounds) - 1), np.diff(own_bounds))))
    scores, (above, tied) = own[order], np.zeros((2, own.size), np.int64)
    for user in np.flatnonzero(np.diff(own_bounds)):
        held, others = slice(*own_bounds[user : user + 2]), sampled[slice(*bounds[user : user + 2])]
        above[held], tied[held] = _above_and_tied(others, scores[held])
    return above, tied, order, scores


def count_block(block: Block, scores: AnyArray) -> int:
    """Count like the compiled loop; return the flat index of a score that is not finite, or -1."""
    for row, values in enumerate(scores):
        bad = _count_row(block, row, values)
        if bad >= 0:
            return row * len(values) + bad
    for spans in (block.train, block.test):
        spans.next[:] = spans.end
    return -1


def _count_row(block: Block, row: int, values: AnyArray) -> int:
    """Count one user's scores; return the item whose score is not finite, or -1."""
    train, test = block.train.of(row), block.test.of(row)
    for name, items in (("train", train), ("test", test)):
        if not _ascends(items, len(values)):
            refuse_list(name, block.users[row])
    held = slice(block.test.begin[row], block.test.end[row])
    targets, others = values[test], values.copy()
    others[train] = 0
    others[test] = targets
    if not np.isfinite(others).all():
        return int(np.argmin(np.isfinite(others)))
    others[train] = others[test] = np.nan
    order = np.argsort(-targets, kind="stable")
    block.order[held] = order + held.start
    block.seen[held] = np.isin(test, train)
    block.above[held], block.tied[held] = _above_and_tied(others, targets[order])
    return -1


def _above_and_tied(others: AnyArray, targets: AnyArray) -> tuple[Any, Any]:
    """Return how many of the other scores, ignoring NaN, are above and equal to each target."""
    if len(targets) <= _FEW:
        return [np.count_nonzero(others > t) for t in targets], [np.count_nonzero(others == t) for t in targets]
    others = np.sort(others[~np.isnan(others)])
    low, high = (np.searchsorted(others, targets, side) for side in ("left", "right"))
    return len(others) - high, high - low


def _ascends(items: AnyArray, n_items: int) -> bool:
    return not len(items) or bool(items[0] >= 0 and items[-1] < n_items and (np.diff(items) >= 0).all())
