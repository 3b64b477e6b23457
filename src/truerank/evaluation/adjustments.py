"""P-values of several tests -> p-values that allow for their number."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from truerank.arrays import Floats
from truerank.errors import InputError

Adjustment = Literal["holm", "benjamini-hochberg", "none"]
"""How p-values allow for the number of tests."""


def adjusted(p_values: ArrayLike, how: Adjustment) -> Floats:
    """Return adjusted p-values; NaN stays NaN and does not count as a test.

    Parameters
    ----------
    p_values : array of float
    how : {"holm", "benjamini-hochberg", "none"}
        Holm (1979) bounds the chance of any false finding; Benjamini and Hochberg (1995) the expected share of false
        ones among the findings.

    Examples
    --------
    >>> adjusted([0.01, 0.04, 0.03], "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    >>> adjusted([0.01, 0.04, 0.03], "benjamini-hochberg").round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    if how not in get_args(Adjustment):
        raise InputError(f"`adjustment` must be one of {', '.join(map(repr, get_args(Adjustment)))}, got {how!r}.")
    given = np.array(p_values, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(given))
    if how == "none" or tested.size == 0:
        return given
    order = tested[np.argsort(given[tested], kind="stable")]
    rising = given[order]
    position = np.arange(1, order.size + 1)
    if how == "holm":
        given[order] = np.minimum(np.maximum.accumulate(rising * (order.size + 1 - position)), 1.0)
    else:
        given[order] = np.minimum.accumulate((rising * order.size / position)[::-1])[::-1]
    return given
