"""Cases of a correction that are solved together: those with the same number of sampled candidates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from truerank.core.caching import cached
from truerank.core.checks import Floats, InputError, Ints
from truerank.estimators.corrected import Case
from truerank.estimators.problems import Problem, bias_variance, direction, problem
from truerank.metrics.base import Term
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC, Law
from truerank.sampling.sums import nodes


class Batch(NamedTuple):
    """Cases with the same m, and their `places` among all; the other fields are arguments of `spectral`."""

    places: list[int]
    term: RowTerm
    N: Ints
    m: int
    last: Ints | None
    smooth: bool


def batches(term: Term, cases: list[Case]) -> Iterator[Batch]:
    """Yield all cases of a term, a batch for each m.

    Examples
    --------
    >>> from truerank.estimators.corrected import metric
    >>> reciprocal = metric("ap")
    >>> [batch.places for batch in batches(reciprocal, [Case(1, 1, 500, 9), Case(1, 1, 500, 5), Case(1, 1, 600, 9)])]
    [[0, 2], [1]]
    """
    places = defaultdict(list)
    for place, case in enumerate(cases):
        places[case.m].append(place)
    for m, group in places.items():
        yield _batch(term, m, group, [cases[place] for place in group])


def _batch(term: Term, m: int, places: list[int], cases: list[Case]) -> Batch:
    i, n_relevant, n, _ = (np.array(part) for part in zip(*cases, strict=True))
    cutoff = term.cutoff(n_relevant)

    def at(g: Floats, row: Ints) -> Floats:
        return term.term(cast("Ints", g + i[row]), i[row], n_relevant[row], n[row])

    return Batch(places, at, n - n_relevant, m, None if cutoff is None else cutoff - i, term.shape != "any")


# f(g, row): contribution at counts g for the given rows of the batch, vectorised over both.
RowTerm = Callable[[Floats, Ints], Floats]

# Directions less visible than this contribute less than rounding.
_INVISIBLE = 1e-18
# The polynomials' recurrence is stable for degrees up to about 2 sqrt(N). With N >= 3 m the
# degrees beyond are invisible; at 1.5 m they are not.
_LEAST_RATIO = 3
_INTERPOLATION_ERROR = 1e-11
# Counts that are cheaper to take one by one than to compress.
_FEW = 256
# Counts times sizes held at once: fits the second-level cache.
_CHUNK = 50_000


class Spectrum(ABC):
    """The polynomials in which a law is diagonal, or nearly so."""

    @abstractmethod
    def singular_values(self, N: ArrayLike, m: int) -> Floats:
        """lambda_0 = 1 > lambda_1 > .. > lambda_m for each N, in the last axis."""

    @abstractmethod
    def grid(self, N: Floats) -> tuple[Floats, Floats | float]:
        """Return by what 2 g - N is divided to lie in [-1, 1], and the width in the polynomials' recurrence."""

    @abstractmethod
    def combine(self, coefficients: Floats, sizes: Ints, m: int, gamma: float) -> Floats:
        """Return the tables, a row for each size, from the coefficients of the metric."""


class Gram(Spectrum):
    """Discrete Chebyshev (Gram) polynomials: sampling without replacement is diagonal in them.

    Examples
    --------
    >>> Gram().singular_values(1000, 2).round(4)
    array([1.    , 0.7078, 0.3172])
    >>> Gram().singular_values(2, 2)
    array([1., 1., 1.])
    """

    def singular_values(self, N: ArrayLike, m: int, *, most: int | None = None) -> Floats:
        j = np.arange(m if most is None else min(m, most - 1), dtype=np.float64)
        size = np.asarray(N, dtype=np.float64)[..., None]
        return _roots((size + j + 2) / (size - j) * (m - j) / (m + j + 2))

    def grid(self, N: Floats) -> tuple[Floats, Floats | float]:
        return N + 1, N + 1

    def combine(self, coefficients: Floats, sizes: Ints, m: int, gamma: float) -> Floats:
        degrees = coefficients.shape[1]
        visible = self.singular_values(sizes, m)[:, :degrees]
        gain = visible / ((1 - gamma) * visible**2 + gamma)
        return (gain * coefficients) @ sampled_polynomials(m)[:, :degrees].T


class Legendre(Spectrum):
    """Legendre polynomials: sampling with replacement is diagonal in them in the limit of large N."""

    def singular_values(self, N: ArrayLike, m: int) -> Floats:
        j = np.arange(m, dtype=np.float64)
        size = np.asarray(N, dtype=np.float64)[..., None]
        return _roots(np.ones_like(size * j) * (m - j) / (m + j + 2))

    def grid(self, N: Floats) -> tuple[Floats, Floats | float]:
        return N, np.inf

    def combine(self, coefficients: Floats, sizes: Ints, m: int, gamma: float) -> Floats:
        degrees = coefficients.shape[1]
        points, inverses = _inverses(int(sizes.min()), int(sizes.max()), m, gamma, degrees)
        share = _lagrange(1 / points, 1 / sizes)
        table = np.zeros((len(sizes), m + 1))
        for part, inverse in zip(share.T, inverses, strict=True):
            table += (part[:, None] * coefficients) @ inverse.T
        return table


SPECTRA: dict[Law, Spectrum] = {HYPERGEOMETRIC: Gram(), BINOMIAL: Legendre()}
"""The laws that have one."""


def _roots(ratios: Floats) -> Floats:
    """Return 1 and the square roots of the running products of squared ratios, in the last axis."""
    squares = np.cumprod(ratios, axis=-1)
    return np.concatenate([np.ones_like(squares[..., :1]), np.sqrt(squares)], axis=-1)


@cached
def sampled_polynomials(m: int) -> Floats:
    """q_d(h) as a matrix with rows h = 0..m and columns d = 0..m; columns have mean square 1.

    Eigenvectors of the Jacobi matrix: the three-term recurrence is unstable for high degrees.
    """
    if m == 0:
        return np.ones((1, 1))
    off = _recurrence(np.arange(1.0, m + 1), m + 1.0)
    vectors = linalg.eigh_tridiagonal(np.zeros(m + 1), off)[1]
    matrix = np.asarray((vectors * np.sign(vectors[0]) * np.sqrt(m + 1)).T, dtype=np.float64)
    matrix.flags.writeable = False
    return matrix


def bias_variance_tables(
    term: RowTerm, N: ArrayLike, m: int, gamma: float, law: Law, *, last: ArrayLike | None = None, smooth: bool = True
) -> Floats:
    """Tables of eq. 25 for many contributions at once, uniform prior: row j is the table for N[j].

    Agrees with `solvers.bias_variance` to about 1e-14 / gamma.

    Parameters
    ----------
    term : callable
        Exact contribution ``f(g, row)``; called with g of shape (rows, counts) and row of shape
        (rows, 1), so that each row may have its own n, number of relevant items and i.
    N : array_like of int, shape (rows,)
        Irrelevant candidates. Rows that would be equal are best given once.
    m : int
    gamma : float
        In (0, 1].
    law : Law
        One of `SPECTRA`.
    last : array_like of int, shape (rows,) or a number, optional
        Largest g with f(g) != 0 (cut-off metrics: k - i).
    smooth : bool
        Whether f may be evaluated between integers; see `truerank.sampling.sums`.

    Returns
    -------
    ndarray, shape (rows, m + 1)

    Examples
    --------
    >>> def reciprocal(g, row):
    ...     return 1 / (g + 1)
    >>> bias_variance_tables(reciprocal, [900, 1000], 50, 0.1, HYPERGEOMETRIC).shape
    (2, 51)
    """
    if not 0 < gamma <= 1:
        raise InputError(f"`gamma` must lie in (0, 1], got {gamma!r}.")
    sizes = np.asarray(N, dtype=np.int64)
    ends = None if last is None else np.broadcast_to(np.asarray(last, dtype=np.int64), sizes.shape)
    table = np.empty((len(sizes), m + 1))
    large = np.flatnonzero(sizes >= _LEAST_RATIO * m)
    if large.size:
        coefficients = _coefficients(term, large, sizes, m, law, ends, smooth)
        table[large] = SPECTRA[law].combine(coefficients, sizes[large], m, gamma)
    rest = np.flatnonzero(sizes < _LEAST_RATIO * m)
    if rest.size and law is HYPERGEOMETRIC:
        table[rest] = _from_laws(term, rest, sizes, m, gamma, ends, smooth)
        return table
    for j in rest:
        table[j] = _one(term, int(j), int(sizes[j]), m, gamma, law, ends, smooth)
    return table


def bias_variance_sums(
    term: RowTerm,
    N: ArrayLike,
    counts: tuple[Floats, Floats],
    sizes: Ints,
    *,
    gamma: float,
    last: ArrayLike | None = None,
    smooth: bool = True,
) -> Floats:
    r"""Return the sum of the expected table values of many items at each sample size, without replacement.

    The expectation of the table of eq. 25 for an item at count g needs neither the table nor the law:

    .. math:: E[x_h \mid g] = \sum_d \frac{\lambda_d^2}{(1 - \gamma) \lambda_d^2 + \gamma} \, a_d \, v_d(g),

    in which only :math:`\lambda_d` depends on m. NaN where the sample is not small against the catalogue.

    Parameters
    ----------
    term, N, gamma, last, smooth
        As in `bias_variance_tables`.
    counts : tuple of two arrays of shape (rows, items)
        The counts above the items of each row, and their weights; 0 fills up rows.
    sizes : array of int
        Ascending.
    """
    catalogue = np.asarray(N, dtype=np.int64)
    total = np.full(sizes.size, np.nan)
    small = np.flatnonzero(_LEAST_RATIO * sizes <= catalogue.min())
    if not small.size:
        return total
    ends = None if last is None else np.broadcast_to(np.asarray(last, dtype=np.int64), catalogue.shape)
    m, spectrum = int(sizes[small[-1]]), Gram()
    metric = _coefficients(term, np.arange(catalogue.size), catalogue, m, HYPERGEOMETRIC, ends, smooth)
    degrees = int(np.sum(spectrum.singular_values(catalogue.min(), m)[: metric.shape[1]] ** 2 > _INVISIBLE))
    both = metric[:, :degrees] * _projections(counts[1], counts[0], catalogue, degrees, spectrum)
    for place in small.tolist():
        squares = spectrum.singular_values(catalogue, int(sizes[place]), most=degrees) ** 2
        total[place] = np.sum(squares / ((1 - gamma) * squares + gamma) * both[:, : squares.shape[1]])
    return total


def least_squares_problems(
    term: RowTerm, N: ArrayLike, m: int, *, last: ArrayLike | None = None, smooth: bool = True
) -> list[Problem | None]:
    """Return the problems of eq. 23 for many contributions at once, sampling without replacement; uniform prior.

    In the polynomials, the law of any N is a diagonal matrix times one that depends on m alone. So there is nothing
    to assemble for each N. Parameters as in `bias_variance_tables`; where the sample is not small against
    the catalogue, the problem is None.
    """
    sizes = np.asarray(N, dtype=np.int64)
    ends = None if last is None else np.broadcast_to(np.asarray(last, dtype=np.int64), sizes.shape)
    found: list[Problem | None] = [None] * len(sizes)
    large = np.flatnonzero(sizes >= _LEAST_RATIO * m)
    if not large.size:
        return found
    coefficients = _coefficients(term, large, sizes, m, HYPERGEOMETRIC, ends, smooth)
    visible = SPECTRA[HYPERGEOMETRIC].singular_values(sizes[large], m)[:, : coefficients.shape[1]]
    common, c = sampled_polynomials(m)[:, : coefficients.shape[1]].T / (m + 1), np.full(m + 1, 1 / (m + 1))
    for row, b, values in zip(large.tolist(), coefficients, visible, strict=True):
        g = nodes(int(sizes[row]), m, HYPERGEOMETRIC, breaks=_breaks(ends, row), compress=smooth).g
        target = term(g[None, :], np.array([[row]]))[0]
        found[row] = Problem(values[:, None] * common, b, c, float(target.min()), direction(target))
    return found


def _from_laws(term: RowTerm, rows: Ints, sizes: Ints, m: int, gamma: float, ends: Ints | None, smooth: bool) -> Floats:
    """Return the tables of samples that are not small against the catalogue, without replacement.

    Degrees are then too high for the recurrence in g, but the metric's part can be summed over the law first: with
    b_h = mean_g p(h | g) f(g), x = Q ((1 - gamma) lambda^2 + gamma)^-1 Q' b.
    """
    right = np.empty((rows.size, m + 1))
    for b, row in zip(right, rows.tolist(), strict=True):
        counts, weights = counts_of(np.array([row]), sizes, m, HYPERGEOMETRIC, ends, smooth)
        g = counts[weights > 0]
        mass = weights[weights > 0] * term(g[None, :], np.array([[row]]))[0] / (sizes[row] + 1)
        b[:] = mass @ HYPERGEOMETRIC.rows(g, m, sizes[row])
    squares = SPECTRA[HYPERGEOMETRIC].singular_values(sizes[rows], m) ** 2
    polynomials = sampled_polynomials(m)
    return (right @ polynomials / ((1 - gamma) * squares + gamma)) @ polynomials.T


def _one(term: RowTerm, row: int, N: int, m: int, gamma: float, law: Law, ends: Ints | None, smooth: bool) -> Floats:
    """Direct solution, for a sample that is not small against the catalogue."""
    task = problem(
        lambda g: term(g[None, :], np.array([[row]]))[0], N, m, law, breaks=_breaks(ends, row), smooth=smooth
    )
    return bias_variance(task, gamma).values


def _breaks(ends: Ints | None, row: int) -> tuple[int, ...]:
    return () if ends is None else (int(ends[row]) + 1,)


@cached
def _inverses(low: int, high: int, m: int, gamma: float, degrees: int) -> tuple[Ints, Floats]:
    """Points N, enough to interpolate, and at each the matrix from coefficients to the table."""
    if high - low < 8:
        points = np.arange(low, high + 1)
        return points, np.stack([_inverse(int(N), m, gamma, degrees) for N in points])
    count, computed = 8, dict[int, Floats]()
    while True:
        points = _chebyshev_sizes(low, high, count)
        finer = _chebyshev_sizes(low, high, 2 * count)
        for N in np.union1d(points, finer):
            computed.setdefault(int(N), _inverse(int(N), m, gamma, degrees))
        exact = np.stack([computed[int(N)] for N in points])
        unseen = np.stack([computed[int(N)] for N in finer])
        predicted = np.tensordot(_lagrange(1 / points, 1 / finer), exact, axes=1)
        error = np.abs(predicted - unseen).max() / np.abs(unseen).max()
        if error < _INTERPOLATION_ERROR or len(finer) > (high - low) // 2:
            return finer, unseen
        count *= 2


def _inverse(N: int, m: int, gamma: float, degrees: int) -> Floats:
    task = problem(np.zeros_like, N, m, BINOMIAL)
    matrix, root = task.scaled()
    system = (1 - gamma) * (matrix.T @ matrix)
    system[np.diag_indices_from(system)] += gamma
    visible = SPECTRA[BINOMIAL].singular_values(N, m)[:degrees]
    right = sampled_polynomials(m)[:, :degrees] * visible / (m + 1)
    return linalg.solve(system, right / root[:, None], assume_a="pos") / root[:, None]


def _chebyshev_sizes(low: int, high: int, count: int) -> Ints:
    """Whole numbers next to the Chebyshev points of [1 / high, 1 / low]."""
    middle, half = (1 / low + 1 / high) / 2, (1 / low - 1 / high) / 2
    points = middle + half * np.cos((np.arange(count) + 0.5) * np.pi / count)
    return np.unique(np.rint(1 / points).astype(np.int64))


def _lagrange(points: Floats, at: Floats) -> Floats:
    """Matrix that turns values at ``points`` into values of the interpolant ``at``."""
    return np.stack(
        [
            np.prod((at[:, None] - rest) / (point - rest), axis=1)
            for point, rest in ((p, np.delete(points, j)) for j, p in enumerate(points))
        ],
        axis=1,
    )


def _coefficients(term: RowTerm, rows: Ints, sizes: Ints, m: int, law: Law, ends: Ints | None, smooth: bool) -> Floats:
    """a_d = mean over g of f(g) v_d(g) for the visible degrees d, for each of the rows."""
    degrees = int(np.sum(SPECTRA[law].singular_values(sizes[rows].min(), m) > _INVISIBLE))
    result = np.empty((len(rows), degrees))
    step = max(1, _CHUNK // (_FEW if smooth else int(sizes.max()) + 1))
    for j in range(0, len(rows), step):
        part = rows[j : j + step]
        g, weight = counts_of(part, sizes, m, law, ends, smooth)
        mass = weight * term(g, part[:, None]) / (sizes[part, None] + 1)
        result[j : j + step] = _projections(mass, g, sizes[part], degrees, SPECTRA[law])
    return result


def counts_of(rows: Ints, sizes: Ints, m: int, law: Law, ends: Ints | None, smooth: bool) -> tuple[Floats, Floats]:
    """Counts and weights for each row, padded with weight zero to one length."""
    if ends is not None and ends[rows].max() < _FEW:
        # The metric is zero beyond: the same few counts do for every N.
        counts = np.arange(max(ends[rows].max() + 1.0, 0.0))
        g = np.broadcast_to(counts, (len(rows), counts.size))
        return g, (g <= sizes[rows, None]).astype(np.float64)
    rules = [nodes(int(sizes[row]), m, law, breaks=_breaks(ends, row), compress=smooth) for row in rows]
    longest = max(len(rule.g) for rule in rules)
    g, weight = np.zeros((len(rows), longest)), np.zeros((len(rows), longest))
    for j, rule in enumerate(rules):
        g[j, : len(rule.g)], weight[j, : len(rule.g)] = rule
    return g, weight


def _projections(mass: Floats, g: Floats, sizes: Ints, degrees: int, spectrum: Spectrum) -> Floats:
    """sum_g mass v_d for d = 0, 1, ..., walking up the degrees of v_d by their recurrence."""
    size = sizes[:, None].astype(np.float64)
    half, width = spectrum.grid(size)
    x = (2 * g - size) / half
    off = np.broadcast_to(_recurrence(np.arange(1.0, degrees + 1), width), (len(sizes), degrees))
    below, current = np.zeros_like(x), np.ones_like(x)
    result = np.empty((len(sizes), degrees))
    for d in range(degrees):
        result[:, d] = np.einsum("sg,sg->s", mass, current)
        previous = off[:, d - 1, None] * below if d else 0.0
        below, current = current, (x * current - previous) / off[:, d, None]
    return result


def _recurrence(order: Floats, width: Floats | float) -> Floats:
    """Off-diagonal of the Jacobi matrix of Gram (on ``width`` points) or Legendre polynomials."""
    return np.asarray(np.sqrt((1 - (order / width) ** 2) / (4 - 1 / order**2)), dtype=np.float64)
