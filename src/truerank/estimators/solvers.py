"""Correction tables as least-squares problems over all true counts, solved one by one or many at once.

A problem is assembled from the law of the sampled count, and its solution is a table. With a uniform prior, cases that
share their number of sampled candidates are solved together: the law of any number of candidates is diagonal, or nearly
so, in the same polynomials.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from truerank.core.caching import cached
from truerank.core.checks import Floats, InputError, Ints, frozen, slices
from truerank.estimators.corrected import Case, CorrectionTable, CountTerm
from truerank.metrics.definitions import Term
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC
from truerank.sampling.laws import Law as Law
from truerank.sampling.sums import WeightedCounts, weighted_counts

# Along a direction of singular value s rounding errors of about 1e-16 grow to 1e-16 / s in the
# table. Directions below this tolerance would not be reproducible to 1e-8.
_RANK_TOLERANCE = 1e-8
# Weight of the variance in the constrained problem: it only chooses among tables that fit equally well.
_TIE_BREAK = 1e-14
# Probabilities held at once while a problem is assembled: 16 MB.
_ASSEMBLED = 2_000_000


@dataclass(frozen=True)
class Problem:
    """The least-squares problem of eq. 23 in the paper's letters.

    Attributes
    ----------
    A : ndarray, shape (rows, m + 1)
        sqrt(w_g) p(h | g), or fewer rows with the same A'A and A'b.
    b : ndarray, shape (rows,)
        sqrt(w_g) f(g), likewise.
    c : ndarray, shape (m + 1,)
        Probability of each sampled count under the prior.
    lowest : float
        Least value of f.
    direction : int
        1 if f only falls with g, -1 if it only rises, 0 otherwise.
    """

    A: Floats
    b: Floats
    c: Floats
    lowest: float
    direction: int

    @classmethod
    def of(cls, A: Floats, b: Floats, c: Floats, target: Floats) -> Problem:
        """Return the problem of an f with these values."""
        steps = np.diff(target)
        direction = 1 if np.all(steps <= 0) else -1 if np.all(steps >= 0) else 0
        return cls(A, b, c, float(target.min()), direction)

    def scaled(self) -> tuple[Floats, Floats]:
        """B, and the divisors sqrt(c) that turn a scaled solution into a table.

        A count h that the prior makes impossible has an infinite divisor: its column of B
        is zero and its table entry is not determined.
        """
        root = np.where(self.c > 0, np.sqrt(self.c), np.inf)
        return self.A / root, root


def problem(
    term: CountTerm,
    N: int,
    m: int,
    law: Law,
    *,
    prior: ArrayLike | None = None,
    breaks: Iterable[int] = (),
    smooth: bool = True,
) -> Problem:
    """Set up the least-squares problem for one contribution f.

    Parameters
    ----------
    term : callable
        f, vectorised over g. Called with real g where ``smooth`` allows it and N is large.
    N, m : int
        Irrelevant candidates, and how many are sampled.
    law : Law
        Law of sampling with or without replacement.
    prior : array_like of shape (N + 1,), optional
        Weights of g = 0..N; they need not sum to 1. Uniform unless given.
    breaks : iterable of int
        Counts at which f starts a new smooth piece; see `truerank.sampling.sums.weighted_counts`.
    smooth : bool
        False: use every integer count, for functions that are defined on integers only.
    """
    if prior is None:
        points = weighted_counts(N, m, law, breaks=breaks, compress=smooth)
    else:  # a prior learned from data may leave out most of a large N
        weights = np.asarray(prior, dtype=np.float64)
        allowed = np.flatnonzero(weights > 0)
        points = WeightedCounts(allowed.astype(np.float64), weights[allowed])
    target = np.asarray(term(points.g), dtype=np.float64)
    weight = points.weight / points.weight.sum()
    return Problem.of(*_assembled(points.g, weight, target, m, N, law), target)


def _assembled(g: Floats, weight: Floats, target: Floats, m: int, N: int, law: Law) -> tuple[Floats, Floats, Floats]:
    """A, b and c of eq. 25; rows of A are folded as they come if they far outnumber columns."""
    rows, c = np.empty((0, m + 2)), np.zeros(m + 1)
    for part in slices(len(g), max(_ASSEMBLED // (m + 1), m + 2)):
        rows_of = law.rows(g[part], m, N)
        c += weight[part] @ rows_of
        fresh = np.column_stack([rows_of, target[part]]) * np.sqrt(weight[part])[:, None]
        rows = _folded(np.concatenate([rows, fresh]))
    return rows[:, :-1], rows[:, -1], c


def _folded(rows: Floats) -> Floats:
    """Return rows with the same inner products of columns, at most as many as columns unless there are few."""
    if len(rows) <= 3 * rows.shape[1]:
        return rows
    triangle = linalg.qr(rows, mode="r", overwrite_a=True, check_finite=False)[0]
    return np.asarray(triangle[: rows.shape[1]], dtype=np.float64)


def unbiased_affine(term: CountTerm, N: int, m: int) -> CorrectionTable:
    """Table without any bias for an affine f: as h is m g / N on average, x_h = f(N h / m)."""
    start, end = np.asarray(term(np.array([0.0, float(N)])), dtype=np.float64)
    return CorrectionTable(start + (end - start) * (np.arange(m + 1) / m))


def minimal_bias(task: Problem) -> CorrectionTable:
    """Table of least squared bias (eqs. 21 to 23), by singular values.

    Directions whose singular value is below a tolerance cannot be distinguished from rounding; among
    the tables that fit equally well the one of least second moment under the prior is returned,
    and the result reports it.
    """
    matrix, root = task.scaled()
    left, singular, right = linalg.svd(matrix, full_matrices=False)
    determined = int(np.sum(singular > _RANK_TOLERANCE * singular[0]))
    solution = right[:determined].T @ ((left[:, :determined].T @ task.b) / singular[:determined])
    return CorrectionTable(_unscaled(solution, root), determined, float(singular[0] / singular[determined - 1]))


def bias_variance(task: Problem, gamma: float) -> CorrectionTable:
    """Table of least squared bias plus gamma times variance (eq. 25); eq. 26 for gamma = 1.

    Parameters
    ----------
    task : Problem
    gamma : float
        In (0, 1]. At 1 the table is the posterior mean of f given h.
    """
    if not 0 < gamma <= 1:
        raise InputError(f"`gamma` must lie in (0, 1], got {gamma!r}.")
    matrix, root = task.scaled()
    # ((1 - gamma) B'B + gamma I) x = B'y, by the smaller of the two equivalent systems
    if len(matrix) < matrix.shape[1]:
        solution = matrix.T @ _solve_shifted(matrix @ matrix.T, task.b, gamma)
    else:
        solution = _solve_shifted(matrix.T @ matrix, matrix.T @ task.b, gamma)
    return CorrectionTable(_unscaled(solution, root), condition=1 / gamma)


def _solve_shifted(gram: Floats, right: Floats, gamma: float) -> Floats:
    system = (1 - gamma) * gram
    system[np.diag_indices_from(system)] += gamma
    return linalg.solve(system, right, assume_a="pos", overwrite_a=True)


def _unscaled(solution: Floats, root: Floats) -> Floats:
    return np.where(np.isinf(root), np.nan, solution / root)


def constrained(task: Problem) -> CorrectionTable:
    """Table of least squared bias among those monotone in the direction of f and never below 0.

    For f falling with the rank, x_h = sum over j >= h of d_j with all d_j >= 0. The columns of
    the problem in d are the sampled cdfs P(H <= j | g): a constrained correction is a mixture of
    sampled hit rates. A metric with negative values is bounded by its own least value instead.
    Tables that fit equally well in double precision are distinguished by their second moment.
    """
    from scipy.optimize import nnls

    if task.direction == 0:
        needed = "a metric that only falls or only rises with the rank"
        raise InputError(f"a constrained correction needs {needed}; use the bias-variance correction instead.")
    order = slice(None, None, task.direction)
    floor = min(0.0, task.lowest)
    size = np.sqrt(_TIE_BREAK * task.c[order])
    matrix = np.empty((len(task.A) + len(size), len(size)))
    fit = np.cumsum(task.A[:, order], axis=1, out=matrix[: len(task.A)])
    np.multiply(size[:, None], _upper_triangle(len(size)), out=matrix[len(task.A) :])
    # The law's rows sum to 1, so a constant table has mean A 1 = the last partial sum.
    target = np.concatenate([task.b - floor * fit[:, -1], np.zeros(len(size))])
    # a sample of nearly everything takes more than the usual three steps per column
    steps, _ = nnls(matrix, target, maxiter=100 * len(size))
    values = (np.cumsum(steps[::-1])[::-1] + floor)[order]
    return CorrectionTable(np.where(task.c > 0, values, np.nan), condition=_TIE_BREAK**-0.5)


@cached
def _upper_triangle(size: int) -> Floats:
    return frozen(np.triu(np.ones((size, size))))


RowTerm = Callable[[Floats, Ints], Floats]
"""f(g, row): contribution at counts g for the given rows of a batch, vectorised over both."""

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


class Batch(NamedTuple):
    """Contributions f with the same m, one per row.

    Attributes
    ----------
    term : callable
        Exact contribution ``f(g, row)``; called with g of shape (rows, counts) and row of shape
        (rows, 1), so that each row may have its own n, number of relevant items and i.
    N : array of int, one per row
        Irrelevant candidates. Rows that would be equal are best given once.
    m : int
        Sampled candidates.
    last : array of int, one per row, optional
        Largest g with f(g) != 0 (cut-off metrics: k - i).
    smooth : bool
        Whether f may be evaluated between integers; see `truerank.sampling.sums`.
    made_of : tuple of Term and cases, optional
        What determines the contributions, so that results can be kept.
    """

    term: RowTerm
    N: Ints
    m: int
    last: Ints | None = None
    smooth: bool = True
    made_of: tuple[Term, tuple[Case, ...]] | None = None

    @classmethod
    def of(cls, term: Term, cases: list[Case], m: int) -> Batch:
        """Return some cases of a term, whatever their own m."""
        i, n_relevant, n, _ = (np.array(part) for part in zip(*cases, strict=True))
        cutoff = term.cutoff(n_relevant)

        def at(g: Floats, row: Ints) -> Floats:
            return term.term(cast("Ints", g + i[row]), i[row], n_relevant[row], n[row])

        last = None if cutoff is None else cutoff - i
        return cls(at, n - n_relevant, m, last, term.shape != "any", (term, tuple(cases)))

    @property
    def large(self) -> Ints:
        """Rows for which the sample is small compared with the catalogue."""
        return np.flatnonzero(_LEAST_RATIO * self.m <= self.N)

    def one(self, row: int) -> CountTerm:
        """Return the contribution of a row as a function of g alone."""
        return lambda g: self.term(g[None, :], np.array([[row]]))[0]

    def problem(self, row: int, law: Law) -> Problem:
        """Return the problem of a row, assembled from the law."""
        return problem(self.one(row), int(self.N[row]), self.m, law, breaks=self._breaks(row), smooth=self.smooth)

    def weighted_counts(self, row: int, law: Law) -> WeightedCounts:
        """Return weighted counts that represent all counts of a row."""
        return weighted_counts(int(self.N[row]), self.m, law, breaks=self._breaks(row), compress=self.smooth)

    def _breaks(self, row: int) -> tuple[int, ...]:
        return () if self.last is None else (int(self.last[row]) + 1,)

    def mass(self, rows: Ints, law: Law) -> tuple[Floats, Floats]:
        """Counts for each of the rows, and what each adds to the mean of f over all counts; rows are padded with 0."""
        g, weight = self._counts(rows, law)
        return g, weight * self.term(g, rows[:, None]) / (self.N[rows, None] + 1)

    def targets(self, rows: Ints) -> Iterator[Floats]:
        """Yield for each of the rows the values of f on few counts, which show whether it falls or rises."""
        if self.last is None or self.last[rows].max(initial=0) >= _FEW:
            yield from (self.one(row)(self.weighted_counts(row, HYPERGEOMETRIC).g) for row in rows.tolist())
            return
        # up to the first count at which all are 0
        counts = np.arange(self.last[rows].max(initial=0) + 2.0)
        for part in slices(rows.size, _CHUNK // counts.size):
            values = self.term(np.broadcast_to(counts, (rows[part].size, counts.size)), rows[part, None])
            yield from (own[counts <= N] for own, N in zip(values, self.N[rows[part]], strict=True))

    def _counts(self, rows: Ints, law: Law) -> tuple[Floats, Floats]:
        if self.last is not None and self.last[rows].max() < _FEW:
            # The metric is zero beyond: the same few counts serve every N.
            counts = np.arange(max(self.last[rows].max() + 1.0, 0.0))
            few = np.broadcast_to(counts, (len(rows), counts.size))
            return few, (few <= self.N[rows, None]).astype(np.float64)
        rules = [self.weighted_counts(row, law) for row in rows.tolist()]
        g, weight = np.zeros((2, len(rows), max(len(rule.g) for rule in rules)))
        for j, rule in enumerate(rules):
            g[j, : len(rule.g)], weight[j, : len(rule.g)] = rule
        return g, weight


def solved_together(term: Term, cases: list[Case], solve: Callable[[Batch], Iterable[Floats]]) -> list[Floats]:
    """Return the table of each case from a function that solves those with the same m at once."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, case in enumerate(cases):
        places[case.m].append(place)
    tables = [np.empty(0)] * len(cases)
    for m, group in places.items():
        solved = solve(Batch.of(term, [cases[place] for place in group], m))
        for place, table in zip(group, solved, strict=True):
            tables[place] = table
    return tables


def bias_variance_tables(batch: Batch, gamma: float, law: Law) -> Floats:
    """Return the tables of eq. 25 with a uniform prior, of shape (rows, m + 1).

    Agrees with `bias_variance` to about 1e-14 / gamma. The law is one of `SPECTRA`.

    Examples
    --------
    >>> batch = Batch(lambda g, row: 1 / (g + 1), np.array([900, 1000]), m=50)
    >>> bias_variance_tables(batch, 0.1, HYPERGEOMETRIC).shape
    (2, 51)
    """
    tables, large = np.empty((batch.N.size, batch.m + 1)), batch.large
    if large.size:
        tables[large] = SPECTRA[law].combine(_visible_part(batch, law), batch.N[large], batch.m, gamma)
    rest = np.setdiff1d(np.arange(batch.N.size), large)
    if rest.size and law is HYPERGEOMETRIC:
        tables[rest] = _from_laws(batch, rest, gamma)
        return tables
    for row in rest.tolist():
        tables[row] = bias_variance(batch.problem(row, law), gamma).values
    return tables


def _from_laws(batch: Batch, rows: Ints, gamma: float) -> Floats:
    """Return the tables of samples that are not small compared with the catalogue, without replacement.

    Degrees are then too high for the recurrence in g, but the metric's part can be summed over the law first: with
    b_h = mean_g p(h | g) f(g), x = Q ((1 - gamma) lambda^2 + gamma)^-1 Q' b.
    """
    right = np.empty((rows.size, batch.m + 1))
    for b, row in zip(right, rows.tolist(), strict=True):
        g, mass = batch.mass(np.array([row]), HYPERGEOMETRIC)
        inside = g <= batch.N[row]
        b[:] = mass[inside] @ HYPERGEOMETRIC.rows(g[inside], batch.m, batch.N[row])
    squares = Gram().singular_values(batch.N[rows], batch.m) ** 2
    polynomials = sampled_polynomials(batch.m)
    return (right @ polynomials / ((1 - gamma) * squares + gamma)) @ polynomials.T


def bias_variance_sums(batch: Batch, counts: tuple[Floats, Floats], sizes: Ints, gamma: float) -> Floats:
    r"""Return the sum of the expected table values of many items at each sample size, without replacement.

    The expectation of the table of eq. 25 for an item at count g needs neither the table nor the law:

    .. math:: E[x_h \mid g] = \sum_d \frac{\lambda_d^2}{(1 - \gamma) \lambda_d^2 + \gamma} \, a_d \, v_d(g),

    in which only :math:`\lambda_d` depends on m. NaN where the sample is not small compared with the catalogue.

    Parameters
    ----------
    batch : Batch
        Its m does not matter.
    counts : tuple of two arrays of shape (rows, items)
        The counts above the items of each row, and their weights; rows are padded with 0.
    sizes : array of int
        Sample sizes, ascending.
    gamma : float
    """
    total, least = np.full(sizes.size, np.nan), batch.N.min()
    small = np.flatnonzero(_LEAST_RATIO * sizes <= least)
    if not small.size:
        return total
    spectrum, largest = Gram(), batch._replace(m=int(sizes[small[-1]]))
    metric = _coefficients(largest, np.arange(batch.N.size), HYPERGEOMETRIC)
    degrees = int(np.sum(spectrum.singular_values(least, largest.m)[: metric.shape[1]] ** 2 > _INVISIBLE))
    both = metric[:, :degrees] * _projections(counts[1], counts[0], batch.N, degrees, spectrum)
    for place in small.tolist():
        squares = spectrum.singular_values(batch.N, int(sizes[place]), most=degrees) ** 2
        total[place] = np.sum(squares / ((1 - gamma) * squares + gamma) * both[:, : squares.shape[1]])
    return total


def least_squares_problems(batch: Batch) -> Iterator[Problem]:
    """Yield the problems of eq. 23, sampling without replacement, with a uniform prior.

    In the polynomials, the law of any N is a diagonal matrix times one that depends on m alone. So there is nothing
    to assemble for each N, unless the sample is not small compared with the catalogue.
    """
    large, m, c = batch.large, batch.m, np.full(batch.m + 1, 1 / (batch.m + 1))
    coefficients = _visible_part(batch, HYPERGEOMETRIC)
    degrees = coefficients.shape[1]
    common = sampled_polynomials(m)[:, :degrees].T / (m + 1)
    visible = Gram().singular_values(batch.N[large], m)[:, :degrees, None]
    solved = dict(zip(large.tolist(), zip(visible, coefficients, batch.targets(large), strict=True), strict=True))
    for row in range(batch.N.size):
        if row not in solved:
            yield batch.problem(row, HYPERGEOMETRIC)
            continue
        gain, b, target = solved[row]
        yield Problem.of(gain * common, b, c, target)


class Gram:
    """Discrete Chebyshev (Gram) polynomials: sampling without replacement is diagonal in them.

    Examples
    --------
    >>> Gram().singular_values(1000, 2).round(4)
    array([1.    , 0.7078, 0.3172])
    >>> Gram().singular_values(2, 2)
    array([1., 1., 1.])
    """

    def singular_values(self, N: ArrayLike, m: int, *, most: int | None = None) -> Floats:
        """lambda_0 = 1 > lambda_1 > .. > lambda_m for each N, in the last axis; of these, `most` at most."""
        j = np.arange(m if most is None else min(m, most - 1), dtype=np.float64)
        size = np.asarray(N, dtype=np.float64)[..., None]
        return _roots((size + j + 2) / (size - j) * (m - j) / (m + j + 2))

    def grid(self, N: Floats) -> tuple[Floats, Floats | float]:
        """Return the divisor that brings 2 g - N into [-1, 1], and the width in the polynomials' recurrence."""
        return N + 1, N + 1

    def combine(self, coefficients: Floats, sizes: Ints, m: int, gamma: float) -> Floats:
        """Return the tables, a row for each size, from the coefficients of the metric."""
        degrees = coefficients.shape[1]
        visible = self.singular_values(sizes, m)[:, :degrees]
        gain = visible / ((1 - gamma) * visible**2 + gamma)
        return (gain * coefficients) @ sampled_polynomials(m)[:, :degrees].T


class Legendre:
    """Legendre polynomials: sampling with replacement is diagonal in them in the limit of large N."""

    def singular_values(self, N: ArrayLike, m: int) -> Floats:
        j = np.arange(m, dtype=np.float64)
        size = np.asarray(N, dtype=np.float64)[..., None]
        return _roots(np.ones_like(size * j) * (m - j) / (m + j + 2))

    def grid(self, N: Floats) -> tuple[Floats, Floats | float]:
        return N, np.inf

    def combine(self, coefficients: Floats, sizes: Ints, m: int, gamma: float) -> Floats:
        points, inverses = _inverses(int(sizes.min()), int(sizes.max()), m, gamma, coefficients.shape[1])
        share = _lagrange(1 / points, 1 / sizes)
        table = np.zeros((len(sizes), m + 1))
        for part, inverse in zip(share.T, inverses, strict=True):
            table += (part[:, None] * coefficients) @ inverse.T
        return table


SPECTRA: dict[Law, Gram | Legendre] = {HYPERGEOMETRIC: Gram(), BINOMIAL: Legendre()}
"""The polynomials in which each law is diagonal, or nearly so."""


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
    return frozen(np.asarray((vectors * np.sign(vectors[0]) * np.sqrt(m + 1)).T, dtype=np.float64))


@cached
def _inverses(low: int, high: int, m: int, gamma: float, degrees: int) -> tuple[Ints, Floats]:
    """Points N, enough to interpolate, and at each the matrix from coefficients to the table."""
    if high - low < 8:
        points = np.arange(low, high + 1)
        return points, np.stack([_inverse(N, m, gamma, degrees) for N in points.tolist()])
    count, computed = 8, dict[int, Floats]()
    while True:
        points, finer = (_chebyshev_sizes(low, high, size) for size in (count, 2 * count))
        for N in {*points.tolist(), *finer.tolist()} - computed.keys():
            computed[N] = _inverse(N, m, gamma, degrees)
        exact, unseen = (np.stack([computed[N] for N in sizes.tolist()]) for sizes in (points, finer))
        predicted = np.tensordot(_lagrange(1 / points, 1 / finer), exact, axes=1)
        error = np.abs(predicted - unseen).max() / np.abs(unseen).max()
        if error < _INTERPOLATION_ERROR or len(finer) > (high - low) // 2:
            return finer, unseen
        count *= 2


def _inverse(N: int, m: int, gamma: float, degrees: int) -> Floats:
    matrix, root = problem(np.zeros_like, N, m, BINOMIAL).scaled()
    right = sampled_polynomials(m)[:, :degrees] * Legendre().singular_values(N, m)[:degrees] / (m + 1)
    return _solve_shifted(matrix.T @ matrix, right / root[:, None], gamma) / root[:, None]


def _chebyshev_sizes(low: int, high: int, count: int) -> Ints:
    """Whole numbers next to the Chebyshev points of [1 / high, 1 / low]."""
    middle, half = (1 / low + 1 / high) / 2, (1 / low - 1 / high) / 2
    points = middle + half * np.cos((np.arange(count) + 0.5) * np.pi / count)
    return np.unique(np.rint(1 / points).astype(np.int64))


def _lagrange(points: Floats, at: Floats) -> Floats:
    """Matrix that turns values at ``points`` into values of the interpolant ``at``."""
    others = [(point, np.delete(points, j)) for j, point in enumerate(points)]
    return np.stack([np.prod((at[:, None] - rest) / (point - rest), axis=1) for point, rest in others], axis=1)


def _visible_part(batch: Batch, law: Law) -> Floats:
    """Return the coefficients of the large rows, which all corrections of the same cases share."""
    return _coefficients(batch, batch.large, law) if batch.made_of is None else _kept(*batch.made_of, batch.m, law)


@cached
def _kept(term: Term, cases: tuple[Case, ...], m: int, law: Law) -> Floats:
    batch = Batch.of(term, list(cases), m)
    return frozen(_coefficients(batch, batch.large, law))


def _coefficients(batch: Batch, rows: Ints, law: Law) -> Floats:
    """a_d = mean over g of f(g) v_d(g) for the visible degrees d, for each of the rows."""
    degrees = int(np.sum(SPECTRA[law].singular_values(batch.N[rows].min(initial=batch.N.max()), batch.m) > _INVISIBLE))
    result = np.empty((len(rows), degrees))
    for part in slices(len(rows), _CHUNK // (_FEW if batch.smooth else int(batch.N.max()) + 1)):
        g, mass = batch.mass(rows[part], law)
        result[part] = _projections(mass, g, batch.N[rows[part]], degrees, SPECTRA[law])
    return result


def _projections(mass: Floats, g: Floats, sizes: Ints, degrees: int, spectrum: Gram | Legendre) -> Floats:
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
