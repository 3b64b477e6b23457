"""Items that a library leaves without a score, and never recommends."""

from __future__ import annotations

import numpy as np

from truerank.arrays import AnyArray


def below_others(scores: AnyArray) -> AnyArray:
    """Return the scores with NaN replaced by one value for each user, just below all of the user's scores.

    Examples
    --------
    >>> below_others(np.array([[2.0, np.nan, 1.0, np.nan]])).round(9).tolist()
    [[2.0, 1.0, 1.0, 1.0]]
    """
    lowest = np.min(scores, axis=1, keepdims=True, initial=np.inf, where=~np.isnan(scores))
    floor = np.nextafter(np.where(np.isinf(lowest), 0, lowest), -np.inf, dtype=scores.dtype)
    return np.where(np.isnan(scores), floor, scores)
