r"""Laws that fall, but no faster than a power of the rank, and the one among them that is worst for a table.

With r = g + 1, a smooth law has

.. math:: \left(\frac{r}{r + 1}\right)^2 \le \frac{p(g + 1)}{p(g)} \le 1 \quad \text{for } g = 0..G - 1.

These are linear conditions. A mean of some numbers e(g) over such laws is least for one whose ratios are all at one of
their two ends. There are :math:`2^G` of them, but the worst is found in one pass from the last count to the first: what
comes after g adds less than nothing, and should be as likely as possible, or more, and should be as unlikely as
possible.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.arrays import Floats
from truerank.corrections.assumptions import STEEPEST

# the mean of the worst law is found by dividing it by the sum of the law until that changes nothing
_ROUNDS = 50
_SAME = 1e-13
# laws that bend once, at counts that grow by this factor
_BEND = 1.6


def worst_law(numbers: Floats) -> Floats:
    """Return the smooth law on 0..G, as probabilities, under which the mean of the numbers is least.

    Examples
    --------
    >>> worst_law(np.array([-1.0, 0.0, 0.0])).round(3)  # as steep as allowed: 1, 1/4, 1/9
    array([0.735, 0.184, 0.082])
    >>> worst_law(np.array([1.0, 0.0, 0.0])).round(3)
    array([0.333, 0.333, 0.333])
    """
    ratios = _least_ratios(numbers.size)
    least = float(numbers.min(initial=0.0))
    law = _least_sum(numbers - float(numbers.mean()), ratios)
    for _ in range(_ROUNDS):
        mean = float(law @ numbers) / float(law.sum())
        law = _least_sum(numbers - mean, ratios)
        if float(law @ numbers) / float(law.sum()) > mean - _SAME * max(abs(mean), abs(least)):
            break
    return law / law.sum()


def starting_laws(size: int) -> Floats:
    """Return smooth laws that bend at most once: flat and then steep, or steep and then flat; a row each."""
    r = np.arange(1.0, size + 1)
    bends = np.unique(np.minimum(_BEND ** np.arange(np.log(size) / np.log(_BEND) + 1), size).astype(int))[:, None]
    steep = np.concatenate([np.maximum(r, bends) ** -STEEPEST, np.minimum(r, bends) ** -STEEPEST])
    return steep / steep.sum(axis=1, keepdims=True)


def smooth_conditions(size: int, n: int) -> Any:
    """Return a sparse matrix whose product with n probabilities has no entry above 0 if the first `size` are smooth.

    Examples
    --------
    >>> conditions = smooth_conditions(3, 4)
    >>> [bool((conditions @ np.array(law)).max() <= 0) for law in ([4, 4, 2, 0], [4, 0.5, 0.5, 0], [1, 2, 2, 2])]
    [True, False, False]
    """
    from scipy import sparse

    here, after = (sparse.eye_array(size - 1, n, k=shift, format="csr") for shift in (0, 1))
    return sparse.vstack([after - here, sparse.diags_array(_least_ratios(size)) @ here - after])


def _least_ratios(size: int) -> Floats:
    r = np.arange(1.0, size)
    return (r / (r + 1)) ** STEEPEST


def _least_sum(numbers: Floats, ratios: Floats) -> Floats:
    """Return the smooth law with p(0) = 1 under which the sum of the numbers is least."""
    rest, steep = 0.0, []
    for number, ratio in zip(numbers[:0:-1].tolist(), ratios[::-1].tolist(), strict=True):
        # what the counts from here on add, per unit of the probability at the first of them, and then at the one before
        rest += number
        steep.append(rest > 0)
        rest *= ratio if rest > 0 else 1.0
    return np.cumprod(np.concatenate([[1.0], np.where(steep[::-1], ratios, 1.0)]))
