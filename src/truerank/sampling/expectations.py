"""Expectations of terms over samples, and the law of the sampled count pooled over many items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truerank.core.checks import Floats, Ints, distinct_columns, slices
from truerank.sampling.laws import HYPERGEOMETRIC, Law

# items at once: what is computed for them fits into a processor's cache
_COUNTS_AT_ONCE = 50_000


def pooled_laws(law: Law, g: Floats, m: int, N: Ints, *, weight: Floats, group: Ints, n_groups: int) -> Floats:
    """Return the sum of the laws of the items of each group, times their weights.

    Walks outwards from each law's mode until the probabilities vanish, like `truerank.sampling.expectations.moments`.

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
    distinct, times = distinct[times != 0], times[times != 0]
    total = np.zeros(n_groups * (m + 1))
    for part in slices(distinct.size, _COUNTS_AT_ONCE):
        some = distinct[part]
        counts = g[some].astype(np.float64), np.full(some.size, float(m)), N[some].astype(np.float64)
        _add_laws(total, law, counts, times[part], group[some] * (m + 1))
    return total.reshape(n_groups, m + 1)


def _add_laws(total: Floats, law: Law, counts: tuple[Floats, Floats, Floats], times: Floats, first: Ints) -> None:
    """Add the law of each item, a given number of times, to the total, starting at the item's first position."""
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
    counts = np.concatenate([g + tied + 1, g]).astype(np.float64), m + 1, np.tile(N + 1, 2)
    weight = np.concatenate([share, -share])
    signed = pooled_laws(HYPERGEOMETRIC, *counts, weight=weight, group=np.tile(group, 2), n_groups=n_groups)
    return np.cumsum(signed[:, :0:-1], axis=1)[:, ::-1]


SampledTerm = Callable[[Floats, Floats], Floats]
Counts = tuple[Floats, Floats, Floats]
"""g, m and N of many laws."""
Steps = Iterator[tuple[Ints, Floats, Floats]]
"""Which laws go on, the h that each has reached, and its probability."""

# Probabilities held at once, with some five temporaries: 2 MB each.
_TERMS_AT_ONCE = 1 << 18
# Probabilities this far below the mode's change no double.
_NEGLIGIBLE = 2.0**-60


class ItemLaws:
    """The law of the sampled count of each of many relevant items, above which g of N candidates stand.

    Counts from `last` on, if it is given, are not told apart.
    """

    def __init__(self, law: Law, g: ArrayLike, m: int, N: ArrayLike, last: int | None = None) -> None:
        self.law, self.m, self.last = law, m, m if last is None else last
        self.g = np.asarray(g, dtype=np.float64).ravel()
        self.N = np.broadcast_to(np.asarray(N), self.g.shape)

    def __len__(self) -> int:
        return self.g.size

    def rows(self, part: slice) -> Floats:
        """Return the probabilities of h = 0..last, the last of which is of all larger h too, a row for each item."""
        return self.law.rows_to(self.last, self.g[part], self.m, self.N[part])

    def parts(self) -> Iterator[slice]:
        """Yield parts of the items whose laws can be held at once."""
        return slices(len(self), _TERMS_AT_ONCE // (self.last + 1))


def table_moments(table: ArrayLike, items: ItemLaws, *, which: ArrayLike = 0) -> tuple[Floats, Floats]:
    """Mean (eq. 16) and variance of ``table[h]`` for each item.

    There may be many tables, a row each; `which` is then the row of each item. NaN in a table counts only where it
    can be reached.

    Examples
    --------
    >>> from truerank.sampling.laws import HYPERGEOMETRIC
    >>> mean, variance = table_moments([1, 1/2, 1/3], ItemLaws(HYPERGEOMETRIC, [0, 3], m=2, N=3))
    >>> mean.round(3), variance
    (array([1.   , 0.333]), array([0., 0.]))
    """
    tables = np.atleast_2d(np.asarray(table, dtype=np.float64))
    chosen = np.broadcast_to(np.asarray(which), len(items))
    mean, variance = np.empty((2, len(items)))
    for part in items.parts():
        mean[part], variance[part] = moments_of(items.rows(part), tables[chosen[part]])
    return mean, variance


def moments(term: SampledTerm, g: ArrayLike, m: ArrayLike, N: ArrayLike, law: Law) -> tuple[Floats, Floats]:
    """Mean and variance of a sampled metric for many (g, m, N) at once.

    Walks outwards from each law's mode until the probabilities vanish: about 18 standard
    deviations of h instead of m + 1 terms, and no table. For one m and many g use
    `table_moments`.

    Parameters
    ----------
    term : callable
        Value ``term(h, m)`` of the sampled metric, vectorised.
    g, m, N : array_like
        Broadcast against each other.
    law : Law
    """
    arrays = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (g, m, N)))
    shape = arrays[0].shape
    g, m, N = (x.ravel() for x in arrays)
    start = law.mode(g, m, N)
    # Deviations from the value at the mode: no cancellation when h hardly varies.
    centre = np.asarray(term(start, m), dtype=np.float64)
    probability = law.pmf(start, g, m, N)

    first, second = np.zeros_like(g), np.zeros_like(g)
    for part, h, p in walk(law, start, probability, (g, m, N)):
        deviation = term(h, m[part]) - centre[part]
        first[part] += p * deviation
        second[part] += p * deviation**2
    return (centre + first).reshape(shape), np.maximum(second - first**2, 0).reshape(shape)


def mean_up_to(term: SampledTerm, last: int, g: Floats, m: Floats, N: Floats, law: Law) -> Floats:
    """Mean of a sampled metric that is 0 for h > last, for many (g, m, N) at once, given as flat arrays.

    Walks over h = 0..last only.
    """
    if last < 0:
        return np.zeros(g.size)
    start = np.minimum(law.mode(g, m, N), last)
    probability = law.pmf(start, g, m, N)
    total = probability * term(start, m)
    for part, h, p in _walk_to(last, law, start, probability, (g, m, N)):
        total[part] += p * term(h, m[part])
    return total


def means_by_size(tables: Floats, g: Ints, sizes: Ints, N: int, law: Law) -> Floats:
    """Mean of ``tables[j, h]`` for each item j and each sample size, of shape (items, sizes).

    The values of h beyond the last column, if there are any, are 0.

    Examples
    --------
    >>> tables = np.array([[1, 1/2, 1/3], [1, 0, 0]])
    >>> means_by_size(tables, np.array([1, 3]), np.array([1, 2]), 4, HYPERGEOMETRIC).round(3)
    array([[0.875, 0.75 ],
           [0.25 , 0.   ]])
    """
    row, counts = np.repeat(np.arange(g.size), sizes.size), _crossed(g, sizes, N)
    last = tables.shape[1] - 1
    start = np.minimum(law.mode(*counts), last)
    probability = law.pmf(start, *counts)
    total = probability * tables[row, start.astype(np.int64)]
    inside = last >= min(sizes.max(initial=0), g.max(initial=0))
    steps = walk(law, start, probability, counts) if inside else _walk_to(last, law, start, probability, counts)
    for part, h, p in steps:
        total[part] += p * tables[row[part], h.astype(np.int64)]
    return total.reshape(g.size, sizes.size)


def _crossed(g: Ints, sizes: Ints, N: int) -> Counts:
    """Return g, m and N of every item at every size."""
    each = np.repeat(g.astype(np.float64), sizes.size), np.tile(sizes.astype(np.float64), g.size)
    return *each, np.full(each[0].size, float(N))


def mean_reciprocal(g: ArrayLike, m: ArrayLike, N: ArrayLike, law: Law, *, k: ArrayLike | None = None) -> Floats:
    r"""Expected 1 / (h + 1), or 0 when h + 1 > k: sampled AP, AP@k and RR for one relevant item.

    With replacement this is eq. 19, :math:`(1 - (1 - p)^{m + 1}) / (p (m + 1))`. Without,
    :math:`\binom{g}{h} / (h + 1) = \binom{g + 1}{h + 1} / (g + 1)` gives

    .. math::
        E = \frac{N + 1}{(m + 1)(g + 1)} \Pr(1 \le H' \le k),
        \quad H' \sim \mathrm{Hypergeometric}(N + 1, g + 1, m + 1).

    Examples
    --------
    >>> from truerank.sampling.laws import HYPERGEOMETRIC
    >>> mean_reciprocal([0, 99, 9999], 99, 9999, HYPERGEOMETRIC).round(4)
    array([1.    , 0.6358, 0.01  ])
    """
    g, m, N = (np.asarray(x, dtype=np.float64) for x in (g, m, N))
    biased, scale = law.size_biased(g, m, N)
    above = law.sf(0, *biased)
    mean = scale * (above if k is None else _between(above, np.asarray(k), biased, law))
    # Nothing above: always on top.
    return np.where(g > 0, mean, 1.0 if k is None else (np.asarray(k) >= 1) * 1.0)


def joint_moments(tables: Sequence[ArrayLike], g: ArrayLike, N: int, law: Law) -> tuple[float, float]:
    """Mean and variance of an instance's metric when its relevant items share one sample.

    The i-th relevant item has g[i] candidates above it, h[i] of them sampled, and contributes
    ``tables[i][h[i]]``. The h[i] are dependent, but form a Markov chain: given h[i], the number of
    sampled candidates between item i and item i + 1 is again hypergeometric (or binomial) among
    the N - g[i] candidates below item i, of which m - h[i] are sampled. So one backward pass gives
    both moments exactly, in |R| products of matrices no larger than (m + 1)^2.

    Parameters
    ----------
    tables : sequence of array_like, each of shape (m + 1,)
    g : array_like of int
        Non-decreasing, one per relevant item.
    N : int
    law : Law
    """
    counts = np.asarray(g, dtype=np.float64)
    values = [np.asarray(table, dtype=np.float64) for table in tables]
    m = len(values[0]) - 1
    marginal = law.rows(counts, m, N)
    reach = [np.flatnonzero(row > _NEGLIGIBLE * row.max()) for row in marginal]
    mean = values[-1][reach[-1]]
    variance = np.zeros_like(mean)
    for j in range(len(counts) - 2, -1, -1):
        step = _transition(reach[j], reach[j + 1], counts[j], counts[j + 1], m, N, law)
        mean, variance = _one_step_back(step, mean, variance)
        mean = values[j][reach[j]] + mean
    mean, variance = _one_step_back(marginal[:1, reach[0]], mean, variance)
    return float(mean[0]), float(variance[0])


def moments_of(law: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of a row of values under each row of probabilities."""
    missing = np.isnan(values)
    is_complete = not missing.any()
    filled = values if is_complete else np.where(missing, 0.0, values)
    mean = np.einsum("gh,gh->g", law, filled)
    if not is_complete:
        mean[((law > 0) & missing).any(axis=1)] = np.nan
    squares = filled - mean[:, None]
    squares *= squares
    return mean, np.einsum("gh,gh->g", law, squares)


def walk(law: Law, start: Floats, probability: Floats, counts: Counts) -> Steps:
    """Walk away from the start of each law, up and then down, until its probabilities vanish.

    Each step yields the laws that are still walking, their h and its probability. `counts` are g, m and N; the start
    itself, which is best the mode, is not yielded.
    """
    g, m, N = counts
    yield from _walk_up(law, start, probability, (g, m, N))
    # seen from below, the walk down is a walk up
    for part, h, p in _walk_up(law, m - start, probability, (N - g, m, N)):
        yield part, m[part] - h, p


def _walk_to(last: int, law: Law, start: Floats, probability: Floats, counts: Counts) -> Steps:
    """Walk over all h = 0..last, from a start among them that is not yielded."""
    g, m, N = counts
    yield from _bounded_walk(law, start, probability, (g, m, N), np.minimum(last, m))
    for part, h, p in _bounded_walk(law, m - start, probability, (N - g, m, N), m):
        yield part, m[part] - h, p


def _bounded_walk(law: Law, h: Floats, p: Floats, counts: Counts, last: Floats) -> Steps:
    """Walk up to the last h of each law, or until its probabilities are 0."""
    part = np.arange(h.size)
    while True:
        keep = (h < last) & (p > 0)
        part, h, p, last = part[keep], h[keep], p[keep], last[keep]
        counts = counts[0][keep], counts[1][keep], counts[2][keep]
        if not part.size:
            return
        p, h = p * law.ratio_up(h, *counts), h + 1
        yield part, h, p


def _walk_up(law: Law, h: Floats, p: Floats, counts: Counts) -> Steps:
    part, floor = np.arange(h.size), _NEGLIGIBLE * p
    while part.size:
        p, h = p * law.ratio_up(h, *counts), h + 1
        keep = p > floor
        if not keep.all():
            part, h, p, floor = part[keep], h[keep], p[keep], floor[keep]
            counts = counts[0][keep], counts[1][keep], counts[2][keep]
        yield part, h, p


def _between(above: Floats, k: NDArray[Any], counts: Counts, law: Law) -> Floats:
    """P(1 <= H <= k) from whichever difference cancels less."""
    below = law.cdf(k, *counts)
    from_above = above - law.sf(k, *counts)
    from_below = below - law.pmf(0, *counts)
    return np.where(k < 1, 0.0, np.where(below < 0.5, from_below, from_above))


def _transition(here: Ints, there: Ints, first: float, second: float, m: int, N: int, law: Law) -> Floats:
    """P(h' at the next relevant item | h at this one) for h in ``here`` and h' in ``there``."""
    if first == second:
        same: Floats = (here[:, None] == there[None, :]).astype(np.float64)
        return same
    further = law.rows(second - first, m - here, N - first)
    between = there - here[:, None]
    inside = (between >= 0) & (between < further.shape[1])
    reached: Floats = np.take_along_axis(further, np.where(inside, between, 0), axis=1)
    return np.asarray(np.where(inside, reached, 0.0), dtype=np.float64)


def _one_step_back(step: Floats, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Law of total variance for one step of the chain."""
    average = step @ mean
    spread = np.einsum("ij,ij->i", step, (mean - average[:, None]) ** 2)
    return average, step @ variance + spread
