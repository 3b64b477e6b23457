r"""Corrections: tables of m + 1 values that turn a sampled count into an estimate of the metric.

A relevant item has g of N irrelevant candidates above it, of which h are in the sample. Its exact
contribution to the metric is f(g); a correction is a table x_0..x_m read at h. With the law
p(h | g) and a prior weight w_g on each count (sections 5.1 to 5.3 of Krichene and Rendle, 2020):

=================  ==================================================================
rank estimate      x_h = f(N h / m)                                          (eq. 20)
minimal bias       least sum_g w_g (sum_h p(h|g) x_h - f(g))^2            (eqs. 21-23)
constrained        the same, x monotone as f is, and no lower than 0
bias-variance      the same plus gamma times sum_g w_g Var[x_h | g]       (eqs. 24-26)
=================  ==================================================================

All three least-squares problems are solved in *scaled* form. With c_h = sum_g w_g p(h | g), the
probability of h under the prior, the matrix ``B[g, h] = sqrt(w_g) p(h | g) / sqrt(c_h)`` has
singular values in [0, 1], the largest exactly 1: they are the correlations between what can be
known from h and from g. Hence the system of eq. 25 becomes ``(1 - gamma) B'B + gamma I`` with a
condition number of at most 1 / gamma. The nearly singular normal matrix of eq. 22 is never met:
with gamma >= 0.001 no more than three digits can be lost, whatever m and N. (1 / gamma is also how
strongly x depends on errors in the law itself, so no other factorisation does better.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, optimize

from truerank.arrays import Floats
from truerank.corrections.nodes import Nodes, nodes
from truerank.errors import InputError
from truerank.sampling import laws

Term = Callable[[Floats], Floats]

# Along a direction of singular value s rounding errors of about 1e-16 grow to 1e-16 / s in the
# table. Directions below this tolerance would not be reproducible to 1e-8.
_RANK_TOLERANCE = 1e-8
_ILL_CONDITIONED = 1e8
# Weight of the variance in the constrained problem: it only chooses among tables that fit alike.
_TIE_BREAK = 1e-14
# Probabilities held at once while a problem is assembled: 16 MB.
_CHUNK = 2_000_000


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

    def scaled(self) -> tuple[Floats, Floats]:
        """B, and the divisors sqrt(c) that turn a scaled solution into a table.

        A count h that the prior makes impossible has an infinite divisor: its column of B
        is zero and its table entry is not determined.
        """
        root = np.where(self.c > 0, np.sqrt(self.c), np.inf)
        return self.A / root, root


@dataclass(frozen=True)
class Table:
    """A correction table and how far to trust it.

    Attributes
    ----------
    values : ndarray, shape (m + 1,)
        Corrected contribution for h = 0..m. NaN where the prior makes h impossible.
    rank : int
        Directions of the table that the data determine; m + 1 if all.
    condition : float
        Factor by which relative errors in the law may be magnified.
    """

    values: Floats
    rank: int
    condition: float

    @property
    def ill_conditioned(self) -> bool:
        """Whether many tables fit equally well in double precision, this being the smallest."""
        return self.rank < len(self.values) or self.condition > _ILL_CONDITIONED


def problem(
    term: Term,
    N: int,
    m: int,
    *,
    replace: bool,
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
    replace : bool
        Sampling with replacement (binomial law) or without (hypergeometric).
    prior : array_like of shape (N + 1,), optional
        Weights of g = 0..N; they need not sum to 1. Uniform unless given.
    breaks : iterable of int
        Counts at which f starts a new smooth piece; see `nodes.nodes`.
    smooth : bool
        False: use every integer count, for functions that are defined on integers only.
    """
    if prior is None:
        points = nodes(N, m, replace=replace, breaks=breaks, compress=smooth)
    else:
        points = _supported(np.asarray(prior, dtype=np.float64))
    target = np.asarray(term(points.g), dtype=np.float64)
    weight = points.weight / points.weight.sum()
    A, b, c = _assembled(points.g, weight, target, m, N, replace)
    return Problem(A, b, c, float(target.min()), _direction(target))


def rank_estimate(term: Term, N: int, m: int, *, interpolate: bool = False) -> Floats:
    """Metric at the unbiased estimate N h / m of the count (eq. 20).

    The estimate is rounded down, as in the paper, or f is interpolated linearly between its
    neighbours.

    Examples
    --------
    >>> rank_estimate(lambda g: 1 / (g + 1), N=9, m=2)
    array([1. , 0.2, 0.1])
    >>> rank_estimate(lambda g: 1 / (g + 1), N=9, m=2, interpolate=True).round(4)
    array([1.    , 0.1833, 0.1   ])
    """
    # Whole-number division: N h / m in floating point could fall just below an integer.
    below, remainder = np.divmod(N * np.arange(m + 1, dtype=np.int64), m)
    values = np.asarray(term(below.astype(np.float64)), dtype=np.float64)
    if not interpolate:
        return values
    above = np.asarray(term(np.minimum(below + 1, N).astype(np.float64)), dtype=np.float64)
    return values + remainder / m * (above - values)


def minimal_bias(task: Problem, *, tolerance: float = _RANK_TOLERANCE) -> Table:
    """Table of least squared bias (eqs. 21 to 23), by singular values.

    Directions whose singular value is below ``tolerance`` cannot be told from rounding; among
    the tables that fit equally well the one of least second moment under the prior is returned,
    and the result says so.
    """
    matrix, root = task.scaled()
    left, singular, right = linalg.svd(matrix, full_matrices=False)
    rank = int(np.sum(singular > tolerance * singular[0]))
    solution = right[:rank].T @ ((left[:, :rank].T @ task.b) / singular[:rank])
    return Table(_unscaled(solution, root), rank, float(singular[0] / singular[rank - 1]))


def bias_variance(task: Problem, gamma: float) -> Table:
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
    return Table(_unscaled(_ridge(matrix, task.b, gamma), root), len(root), 1 / gamma)


def constrained(task: Problem) -> Table:
    """Table of least squared bias among those monotone in the direction of f and never below 0.

    For f falling with the rank, x_h = sum over j >= h of d_j with all d_j >= 0. The columns of
    the problem in d are the sampled cdfs P(H <= j | g): a constrained correction is a mixture of
    sampled hit rates. A metric with negative values is bounded by its own least value instead.
    Tables that fit equally well in double precision are told apart by their second moment.
    """
    if task.direction == 0:
        raise InputError(
            "a constrained correction needs a metric that only falls or only rises with the rank; "
            "use the bias-variance correction instead."
        )
    order = slice(None, None, task.direction)
    floor = min(0.0, task.lowest)
    size = np.sqrt(_TIE_BREAK * task.c[order])
    fit = np.cumsum(task.A[:, order], axis=1)
    # The law's rows sum to 1, so a constant table has mean A 1 = the last partial sum.
    matrix = np.concatenate([fit, np.triu(np.repeat(size[:, None], len(size), axis=1))])
    target = np.concatenate([task.b - floor * fit[:, -1], np.zeros(len(size))])
    steps, _ = optimize.nnls(matrix, target)
    values = (np.cumsum(steps[::-1])[::-1] + floor)[order]
    return Table(np.where(task.c > 0, values, np.nan), len(values), _TIE_BREAK**-0.5)


def _supported(prior: Floats) -> Nodes:
    """The counts a prior allows; a prior learned from data may leave out most of a large N."""
    g = np.flatnonzero(prior > 0)
    return Nodes(g.astype(np.float64), prior[g])


def _ridge(matrix: Floats, target: Floats, gamma: float) -> Floats:
    """Solve ((1 - gamma) B'B + gamma I) x = B'y by the smaller of the two equivalent systems."""
    rows, columns = matrix.shape
    if rows < columns:
        return matrix.T @ _solve_shifted(matrix @ matrix.T, target, gamma)
    return _solve_shifted(matrix.T @ matrix, matrix.T @ target, gamma)


def _solve_shifted(gram: Floats, right: Floats, gamma: float) -> Floats:
    system = (1 - gamma) * gram
    system[np.diag_indices_from(system)] += gamma
    return linalg.solve(system, right, assume_a="pos", overwrite_a=True)


def _unscaled(solution: Floats, root: Floats) -> Floats:
    return np.where(np.isinf(root), np.nan, solution / root)


def _assembled(
    g: Floats, weight: Floats, target: Floats, m: int, N: int, replace: bool
) -> tuple[Floats, Floats, Floats]:
    """A, b and c of eq. 25; rows of A are folded as they come if they far outnumber columns."""
    rows, c = np.empty((0, m + 2)), np.zeros(m + 1)
    step = max(_CHUNK // (m + 1), m + 2)
    for j in range(0, len(g), step):
        part = slice(j, j + step)
        law = laws.rows(g[part], m, N, replace=replace)
        c += weight[part] @ law
        fresh = np.column_stack([law, target[part]]) * np.sqrt(weight[part])[:, None]
        rows = _folded(np.concatenate([rows, fresh]))
    return rows[:, :-1], rows[:, -1], c


def _folded(rows: Floats) -> Floats:
    """Rows with the same inner products of columns, no more than columns unless there are few."""
    if len(rows) <= 3 * rows.shape[1]:
        return rows
    triangle = linalg.qr(rows, mode="r", overwrite_a=True, check_finite=False)[0]
    return np.asarray(triangle[: rows.shape[1]], dtype=np.float64)


def _direction(target: Floats) -> int:
    steps = np.diff(target)
    if np.all(steps <= 0):
        return 1
    return -1 if np.all(steps >= 0) else 0
