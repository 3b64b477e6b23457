r"""Laws that fall, but to no less than a quarter at twice the rank, and the one among them that is worst for a table.

With r = g + 1 from 1 to R, a smooth law has

.. math:: p(r + 1) \le p(r) \quad \text{and} \quad p(2 r) \ge p(r) / 4.

Each of these linear conditions bounds one probability by a multiple of another, so a law at which as many of them as
possible are equations has probabilities that are 1, 1/4, 1/16, ... of the first: every smooth law is a mixture of
*staircases*, which fall to a quarter after the ranks b, b', b'', ... with b' >= 2 b, b'' >= 2 b' and so on. (If R is
odd, nothing bounds p(R) from below, and it may be 0.) A mean of some numbers e(g) is least for one of them. It is found
from the last rank to the first: what a staircase adds after a step at b depends on b alone, and its next step comes at
2 b or later, wherever that is best.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.corrections.assumptions import LEAST_AT_TWICE

# the mean of the worst law is found by dividing it by the sum of the law until that changes nothing
_ROUNDS = 50
_SAME = 1e-13
# staircases with their first step at ranks that grow by this factor
_APART = 1.6


def worst_law(numbers: Floats) -> Floats:
    """Return the smooth law on 0..G, as probabilities, under which the mean of the numbers is least.

    Examples
    --------
    >>> worst_law(np.array([-1.0, 0.0, 0.0, 0.0])).round(3)  # as steep as allowed: 1, 1/4, 1/16, 1/16
    array([0.727, 0.182, 0.045, 0.045])
    >>> worst_law(np.array([1.0, 0.0, 0.0])).round(3)
    array([0.333, 0.333, 0.333])
    """
    least = float(numbers.min(initial=0.0))
    law = _least_sum(numbers - float(numbers.mean()))
    for _ in range(_ROUNDS):
        mean = float(law @ numbers) / float(law.sum())
        law = _least_sum(numbers - mean)
        if float(law @ numbers) / float(law.sum()) > mean - _SAME * max(abs(mean), abs(least)):
            break
    return law / law.sum()


def starting_laws(size: int) -> Floats:
    """Return staircases with one step, and with as many steps as they can have; a row each."""
    first = np.unique(np.minimum(_APART ** np.arange(np.log(size) / np.log(_APART) + 1), size).astype(int))
    stairs = [[b] for b in first.tolist()] + [_doubled(b, size) for b in first.tolist()]
    laws = np.array([_staircase(np.array(steps), size) for steps in stairs])
    return laws / laws.sum(axis=1, keepdims=True)


def smooth_conditions(size: int, n: int) -> Any:
    """Return a sparse matrix whose product with n probabilities has no entry above 0 if the first `size` are smooth.

    Examples
    --------
    >>> conditions = smooth_conditions(3, 4)
    >>> [bool((conditions @ np.array(law)).max() <= 0) for law in ([4, 1, 1, 0], [4, 0.5, 0.5, 0], [1, 2, 2, 2])]
    [True, False, False]
    """
    from scipy import sparse

    here, after = (sparse.eye_array(size - 1, n, k=shift, format="csr") for shift in (0, 1))
    rank = np.arange(1, size // 2 + 1)
    ones, rows = np.ones(rank.size), rank - 1
    once, twice = (sparse.csr_array((ones, (rows, r - 1)), shape=(rank.size, n)) for r in (rank, 2 * rank))
    return sparse.vstack([after - here, LEAST_AT_TWICE * once - twice])


def _doubled(b: int, size: int) -> list[int]:
    """Return b, 2 b, 4 b, ... as far as there are ranks."""
    return [b << power for power in range((size // b).bit_length())]


def _staircase(steps: Ints, size: int) -> Floats:
    """Return 1 for the ranks up to the first step, and a quarter of it after each step."""
    return np.asarray(LEAST_AT_TWICE ** np.searchsorted(steps, np.arange(1, size + 1)))


def _least_sum(numbers: Floats) -> Floats:
    """Return the staircase that begins with 1 under which the sum of the numbers is least."""
    size = numbers.size
    if size > 1 and size % 2 and numbers[-1] > 0:
        return np.append(_least_sum(numbers[:-1]), 0.0)
    best, steps = _best_steps(np.append(0.0, np.cumsum(numbers))), []
    at = int(best[min(1, size)])
    while at < size:
        steps.append(at)
        at = int(best[min(2 * at, size)])
    return _staircase(np.array(steps, dtype=np.int64), size)


def _best_steps(sums: Floats) -> Ints:
    """Return the best step among each rank and all later ones; the last rank stands for no step."""
    size = sums.size - 1
    # what a staircase of height 1 that has a step after a rank adds in all, and the least of it from a rank on
    whole, least, best = sums.copy(), np.full(size + 1, sums[-1]), np.arange(size + 1)
    high = size
    while high > 1:
        low = (high + 1) // 2
        step = np.arange(low, high)
        whole[step] += LEAST_AT_TWICE * (least[np.minimum(2 * step, size)] - sums[step])
        _extend(whole, least, best, low, high)
        high = low
    return best


def _extend(whole: Floats, least: Floats, best: Ints, low: int, high: int) -> None:
    """Fill in the least of each place and all later ones, and where it is, for places from low to below high."""
    backwards = np.append(whole[low:high], least[high])[::-1]
    least[low:high] = np.minimum.accumulate(backwards)[:0:-1]
    new = np.append(True, backwards[1:] < np.minimum.accumulate(backwards)[:-1])
    place = np.append(np.arange(low, high), best[high])[::-1]
    last_new = np.maximum.accumulate(np.where(new, np.arange(new.size), 0))
    best[low:high] = place[last_new][:0:-1]
