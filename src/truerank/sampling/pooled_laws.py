"""The laws of the sampled counts of many items, summed: how many of the items show each count."""

from __future__ import annotations

import numpy as np

from truerank.arrays import Floats, Ints, distinct_columns
from truerank.sampling.expectations import walk
from truerank.sampling.laws import HYPERGEOMETRIC, Law

# items at once: what is computed for them fits into a processor's cache
_CHUNK = 50_000


def pooled_laws(law: Law, g: Floats, m: int, N: Ints, *, weight: Floats, group: Ints, n_groups: int) -> Floats:
    """Return the sum of the laws of the items of each group, times their weights.

    Walks outwards from each law's mode until the probabilities vanish, as `truerank.sampling.expectations.moments`.

    Parameters
    ----------
    law : Law
    g, N : arrays
        For each item, the candidates above it and all that are sampled from.
    m : int
        Sampled candidates.
    weight, group : arrays
        Of each item.
    n_groups : int

    Returns
    -------
    ndarray, shape (n_groups, m + 1)
        For h = 0..m.

    Examples
    --------
    >>> group = np.array([0, 0, 1])
    >>> pooled_laws(HYPERGEOMETRIC, np.array([0.0, 1.0, 1.0]), 2, np.array([4, 4, 4]), weight=np.ones(3), group=group,
    ...             n_groups=2).round(3)
    array([[1.5, 0.5, 0. ],
           [0.5, 0.5, 0. ]])
    """
    distinct, which = distinct_columns(group, N, g)  # in this order, so that the order of the items does not matter
    times = np.bincount(which, weights=weight, minlength=distinct.size).astype(np.float64)
    total = np.zeros(n_groups * (m + 1))
    for start in range(0, distinct.size, _CHUNK):
        some = distinct[start : start + _CHUNK]
        counts = g[some].astype(np.float64), np.full(some.size, float(m)), N[some].astype(np.float64)
        _add_laws(total, law, counts, times[start : start + _CHUNK], group[some] * (m + 1))
    return total.reshape(n_groups, m + 1)


def _add_laws(total: Floats, law: Law, counts: tuple[Floats, Floats, Floats], times: Floats, first: Ints) -> None:
    """Add the law of each item, so many times, to the total from the item's first place on."""
    mode = law.mode(*counts)
    probability = law.pmf(mode, *counts)
    np.add.at(total, first + mode.astype(np.int64), times * probability)
    for part, h, p in walk(law, mode, probability, counts):
        np.add.at(total, first[part] + h.astype(np.int64), times[part] * p)


def pooled_tied_laws(g: Ints, tied: Ints, m: int, N: Ints, *, weight: Floats, group: Ints, n_groups: int) -> Floats:
    """Return the same for items that tie with others in random order, without replacement.

    The laws are those of `Hypergeometric.tied_rows`: sums of laws of m + 1 of N + 1 candidates.

    Examples
    --------
    >>> one = np.ones(1)
    >>> pooled_tied_laws(np.array([0]), np.array([2]), 2, np.array([4]), weight=one, group=np.array([0]),
    ...                  n_groups=1).round(3)
    array([[0.556, 0.389, 0.056]])
    """
    share = weight * (N + 1) / ((m + 1) * (tied + 1))
    signed = pooled_laws(
        HYPERGEOMETRIC,
        np.concatenate([g + tied + 1, g]).astype(np.float64),
        m + 1,
        np.concatenate([N + 1, N + 1]),
        weight=np.concatenate([share, -share]),
        group=np.concatenate([group, group]),
        n_groups=n_groups,
    )
    return np.cumsum(signed[:, :0:-1], axis=1)[:, ::-1]
