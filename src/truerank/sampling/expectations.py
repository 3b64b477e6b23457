"""What a sampled metric is on average, how much it varies, and how far that is from the exact one.

Notation as in `truerank.sampling.laws`: of N irrelevant candidates g stand above the relevant item, and h of
the m sampled ones. A *table* holds the value read at h = 0..m: the uncorrected sampled metric
(``metric.term(h + i, i, n_relevant, m + n_relevant)``) or a correction. Everything here is exact:
no normal approximation, no simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truerank.arrays import Floats
from truerank.sampling import laws

SampledTerm = Callable[[Floats, Floats], Floats]

# Probabilities held at once, with some five temporaries: 2 MB each.
_CHUNK = 1 << 18
# Probabilities this far below the mode's change no double.
_NEGLIGIBLE = 2.0**-60


def table_moments(
    table: ArrayLike, g: ArrayLike, N: ArrayLike, *, replace: bool, which: ArrayLike = 0
) -> tuple[Floats, Floats]:
    """Mean (eq. 16) and variance of ``table[h]`` at each count g.

    There may be many tables, a row each; `which` is then the row for each g. `N` is one number or
    one for each g. NaN in a table counts only where it can be reached.

    Examples
    --------
    >>> mean, variance = table_moments([1, 1/2, 1/3], [0, 3], N=3, replace=False)
    >>> mean.round(3), variance
    (array([1.   , 0.333]), array([0., 0.]))
    """
    tables = np.atleast_2d(np.asarray(table, dtype=np.float64))
    counts = np.asarray(g, dtype=np.float64).ravel()
    m = tables.shape[1] - 1
    rows, sizes = (np.broadcast_to(np.asarray(x), counts.shape) for x in (which, N))
    mean, variance = np.empty((2, counts.size))
    step = max(1, _CHUNK // (m + 1))
    for start in range(0, counts.size, step):
        part = slice(start, start + step)
        law = laws.rows(counts[part], m, sizes[part], replace=replace)
        mean[part], variance[part] = _moments_of(law, tables[rows[part]])
    return mean.reshape(np.shape(g)), variance.reshape(np.shape(g))


def moments(term: SampledTerm, g: ArrayLike, m: ArrayLike, N: ArrayLike, *, replace: bool) -> tuple[Floats, Floats]:
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
    replace : bool
    """
    arrays = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (g, m, N)))
    shape = arrays[0].shape
    g, m, N = (x.ravel() for x in arrays)
    start = laws.mode(g, m, N, replace=replace)
    # Deviations from the value at the mode: no cancellation when h hardly varies.
    centre = np.asarray(term(start, m), dtype=np.float64)
    probability = laws.pmf(start, g, m, N, replace=replace)

    def mirrored(h: Floats, size: Floats) -> Floats:
        return term(size - h, size)

    first, second = np.zeros_like(g), np.zeros_like(g)
    _walk_up(term, start, probability, centre, (g, m, N), replace, first, second)
    # Seen from below, the walk down is a walk up.
    _walk_up(mirrored, m - start, probability, centre, (N - g, m, N), replace, first, second)
    return (centre + first).reshape(shape), np.maximum(second - first**2, 0).reshape(shape)


def mean_reciprocal(g: ArrayLike, m: ArrayLike, N: ArrayLike, *, replace: bool, k: ArrayLike | None = None) -> Floats:
    r"""Expected 1 / (h + 1), or 0 when h + 1 > k: sampled AP, AP@k and RR for one relevant item.

    With replacement this is eq. 19, :math:`(1 - (1 - p)^{m + 1}) / (p (m + 1))`. Without,
    :math:`\binom{g}{h} / (h + 1) = \binom{g + 1}{h + 1} / (g + 1)` gives

    .. math::
        E = \frac{N + 1}{(m + 1)(g + 1)} \Pr(1 \le H' \le k),
        \quad H' \sim \mathrm{Hypergeometric}(N + 1, g + 1, m + 1).

    Examples
    --------
    >>> mean_reciprocal([0, 99, 9999], 99, 9999, replace=False).round(4)
    array([1.    , 0.6358, 0.01  ])
    """
    g, m, N = (np.asarray(x, dtype=np.float64) for x in (g, m, N))
    if replace:
        law, scale = (g, m + 1, N), np.where(g > 0, N / (np.where(g > 0, g, 1) * (m + 1)), np.nan)
    else:
        law, scale = (g + 1, m + 1, N + 1), (N + 1) / ((m + 1) * (g + 1))
    above = laws.sf(0, *law, replace=replace)
    mean = scale * (above if k is None else _between(above, np.asarray(k), law, replace))
    # Nothing above: always on top.
    return np.where(g > 0, mean, 1.0 if k is None else (np.asarray(k) >= 1) * 1.0)


def joint_moments(tables: Sequence[ArrayLike], g: ArrayLike, N: int, *, replace: bool) -> tuple[float, float]:
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
    replace : bool
    """
    counts = np.asarray(g, dtype=np.float64)
    values = [np.asarray(table, dtype=np.float64) for table in tables]
    m = len(values[0]) - 1
    marginal = laws.rows(counts, m, N, replace=replace)
    reach = [np.flatnonzero(row > _NEGLIGIBLE * row.max()) for row in marginal]
    mean = values[-1][reach[-1]]
    variance = np.zeros_like(mean)
    for j in range(len(counts) - 2, -1, -1):
        step = _transition(reach[j], reach[j + 1], (counts[j], counts[j + 1]), m, N, replace)
        mean, variance = _one_step_back(step, mean, variance)
        mean = values[j][reach[j]] + mean
    mean, variance = _one_step_back(marginal[:1, reach[0]], mean, variance)
    return float(mean[0]), float(variance[0])


def _moments_of(law: Floats, values: Floats) -> tuple[Floats, Floats]:
    unknown = np.isnan(values)
    known = np.where(unknown, 0.0, values)
    mean = np.einsum("gh,gh->g", law, known)
    mean[((law > 0) & unknown).any(axis=1)] = np.nan
    return mean, np.einsum("gh,gh->g", law, (known - mean[:, None]) ** 2)


def _walk_up(
    term: SampledTerm,
    start: Floats,
    probability: Floats,
    centre: Floats,
    law: tuple[Floats, Floats, Floats],
    replace: bool,
    first: Floats,
    second: Floats,
) -> None:
    """Add p(h) (term - centre) and its square to ``first`` and ``second`` for all h > start."""
    live = np.arange(len(start))
    at, p, floor = start, probability, _NEGLIGIBLE * probability
    while live.size:
        g, m, N = (x[live] for x in law)
        p = p * laws.ratio_up(at, g, m, N, replace=replace)
        keep = p > floor[live]
        live, at, p = live[keep], at[keep] + 1, p[keep]
        deviation = term(at, law[1][live]) - centre[live]
        first[live] += p * deviation
        second[live] += p * deviation**2


def _between(above: Floats, k: NDArray[Any], law: tuple[Floats, Floats, Floats], replace: bool) -> Floats:
    """P(1 <= H <= k) from whichever difference cancels less."""
    below = laws.cdf(k, *law, replace=replace)
    from_above = above - laws.sf(k, *law, replace=replace)
    from_below = below - laws.pmf(0, *law, replace=replace)
    return np.where(k < 1, 0.0, np.where(below < 0.5, from_below, from_above))


def _transition(
    here: NDArray[np.intp],
    there: NDArray[np.intp],
    counts: tuple[float, float],
    m: int,
    N: int,
    replace: bool,
) -> Floats:
    """P(h' at the next relevant item | h at this one) for h in ``here`` and h' in ``there``."""
    first, second = counts
    if first == second:
        same: Floats = (here[:, None] == there[None, :]).astype(np.float64)
        return same
    law = laws.rows(second - first, m - here, N - first, replace=replace)
    between = there - here[:, None]
    inside = (between >= 0) & (between < law.shape[1])
    reached: Floats = np.take_along_axis(law, np.where(inside, between, 0), axis=1)
    return np.asarray(np.where(inside, reached, 0.0), dtype=np.float64)


def _one_step_back(step: Floats, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Law of total variance for one step of the chain."""
    average = step @ mean
    spread = np.einsum("ij,ij->i", step, (mean - average[:, None]) ** 2)
    return average, step @ variance + spread
