"""Blocks of tied items: their random orders, and the chance of each place in them.

A block holds b relevant and t irrelevant items of one score. The j-th relevant one, counted from the top of the block,
*loses* x ties if x of the irrelevant ones come before it.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.errors import InputError

TieBreak = Literal["optimistic", "pessimistic", "random"]

# up to so many relevant items in a block the chance is multiplied out factor by factor
_FEW = 32


def chance(lost: Floats | Ints, tied: Ints, place: Ints, block: Ints) -> Floats:
    """Return the chance that `lost` of the tied irrelevant items come before the relevant one at this place.

    With one relevant item in the block every order is equally likely. With b of them and t irrelevant ones, the j-th
    has x before it in C(x+j-1, x) C(t-x+b-j, t-x) of C(t+b, b) orders. Arguments broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> chance(np.arange(4), np.array([3]), np.array([1]), np.array([2])).round(12).tolist()
    [0.4, 0.3, 0.2, 0.1]
    """
    if (block > _FEW).all():
        return _by_law(lost, tied, place, block)  # not yet broadcast: what is the same for many is computed once
    x, t, j, b = np.broadcast_arrays(lost, tied, place, block)
    few = b <= _FEW
    if few.all():
        return _multiplied_out(x, t, j, b)
    result = np.empty(x.shape)
    result[few] = _multiplied_out(x[few], t[few], j[few], b[few])
    result[~few] = _by_law(x[~few], t[~few], j[~few], b[~few])
    return result


def _multiplied_out(x: Floats | Ints, t: Ints, j: Ints, b: Ints) -> Floats:
    """Multiply factor by factor, which loses no digits; the largest product is below 2 ** _FEW."""
    result = np.asarray(b / (t + b), dtype=np.float64)
    for s in range(1, int(b.max(initial=1))):
        at = b > s
        before = (x[at] + s) * (b[at] - s) / s
        after = t[at] - x[at] + s - j[at] + 1
        result[at] *= np.where(s < j[at], before, after) / (t[at] + s)
    return result


def _by_law(x: Floats | Ints, t: Ints, j: Ints, b: Ints) -> Floats:
    """Use that j of the first x + j items are relevant, and the last of these is, in j / (x + j) of the cases."""
    from truerank.sampling.laws import HYPERGEOMETRIC

    return j / (x + j) * HYPERGEOMETRIC.pmf(j, b, x + j, t + b)


def break_order(
    how: TieBreak, tied: Ints, place: Ints, block: Ints, grades: Floats | None, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return how many ties each relevant item loses, and the order in which grades and items are taken."""
    if how not in get_args(TieBreak):
        raise InputError(f"`how` must be 'optimistic', 'pessimistic' or 'random', got {how!r}.")
    if how == "random":
        lost = _random_losses(tied, place, block, rng)
    else:
        lost = np.zeros_like(tied) if how == "optimistic" else tied
    if how == "random" and np.any(block > 1):
        return lost, np.lexsort((rng.random(tied.size), np.cumsum(place == 1)))
    if grades is None:
        return lost, np.arange(tied.size)
    return lost, np.lexsort((-grades if how == "optimistic" else grades, np.cumsum(place == 1)))


def _random_losses(tied: Ints, place: Ints, block: Ints, rng: np.random.Generator) -> Ints:
    """Draw how many tied irrelevant items fall above each relevant one.

    Give every item of a block a uniform key on (0, 1). The keys of the b relevant ones, in order,
    cut the interval; each irrelevant one falls into a piece with probability its length, so the
    pieces fill up binomially, one relevant item after the other.
    """
    lost = np.zeros_like(tied)
    uniform: Floats = rng.random(tied.size)
    for j in range(1, int(block[tied > 0].max(initial=0)) + 1):
        at = np.flatnonzero((place == j) & (tied > 0))
        before = lost[at - 1] if j > 1 else np.zeros_like(at)
        # the smallest of the `left` keys that remain cuts off this share of what remains
        left = block[at] - j + 1
        share = 1.0 - uniform[at] ** (1.0 / left)
        lost[at] = before + rng.binomial(tied[at] - before, share)
    return lost
