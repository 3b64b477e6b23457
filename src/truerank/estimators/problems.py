"""Corrections as problems of least squares over all true counts, and their solutions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, optimize

from truerank.core.checks import Floats, InputError
from truerank.estimators.corrected import CorrectionTable, CountTerm
from truerank.sampling.laws import Law as Law
from truerank.sampling.sums import Nodes, nodes

# Along a direction of singular value s rounding errors of about 1e-16 grow to 1e-16 / s in the
# table. Directions below this tolerance would not be reproducible to 1e-8.
_RANK_TOLERANCE = 1e-8
# Weight of the variance in the constrained problem: it only chooses among tables that fit alike.
_TIE_BREAK = 1e-14


def unbiased_affine(term: CountTerm, N: int, m: int) -> CorrectionTable:
    """Table without any bias for an affine f: as h is m g / N on average, x_h = f(N h / m)."""
    start, end = np.asarray(term(np.array([0.0, float(N)])), dtype=np.float64)
    return CorrectionTable(start + (end - start) * (np.arange(m + 1) / m))


def minimal_bias(task: Problem, *, tolerance: float = _RANK_TOLERANCE) -> CorrectionTable:
    """Table of least squared bias (eqs. 21 to 23), by singular values.

    Directions whose singular value is below ``tolerance`` cannot be distinguished from rounding; among
    the tables that fit equally well the one of least second moment under the prior is returned,
    and the result says so.
    """
    matrix, root = task.scaled()
    left, singular, right = linalg.svd(matrix, full_matrices=False)
    determined = int(np.sum(singular > tolerance * singular[0]))
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
    return CorrectionTable(_unscaled(_ridge(matrix, task.b, gamma), root), condition=1 / gamma)


def constrained(task: Problem) -> CorrectionTable:
    """Table of least squared bias among those monotone in the direction of f and never below 0.

    For f falling with the rank, x_h = sum over j >= h of d_j with all d_j >= 0. The columns of
    the problem in d are the sampled cdfs P(H <= j | g): a constrained correction is a mixture of
    sampled hit rates. A metric with negative values is bounded by its own least value instead.
    Tables that fit equally well in double precision are distinguished by their second moment.
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
    # a sample of nearly everything takes more than the usual three steps per column
    steps, _ = optimize.nnls(matrix, target, maxiter=100 * len(size))
    values = (np.cumsum(steps[::-1])[::-1] + floor)[order]
    return CorrectionTable(np.where(task.c > 0, values, np.nan), condition=_TIE_BREAK**-0.5)


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
        Of sampling with or without replacement.
    prior : array_like of shape (N + 1,), optional
        Weights of g = 0..N; they need not sum to 1. Uniform unless given.
    breaks : iterable of int
        Counts at which f starts a new smooth piece; see `nodes.nodes`.
    smooth : bool
        False: use every integer count, for functions that are defined on integers only.
    """
    if prior is None:
        points = nodes(N, m, law, breaks=breaks, compress=smooth)
    else:
        points = _supported(np.asarray(prior, dtype=np.float64))
    target = np.asarray(term(points.g), dtype=np.float64)
    weight = points.weight / points.weight.sum()
    A, b, c = _assembled(points.g, weight, target, m, N, law)
    return Problem(A, b, c, float(target.min()), direction(target))


def _supported(prior: Floats) -> Nodes:
    """The counts a prior allows; a prior learned from data may leave out most of a large N."""
    g = np.flatnonzero(prior > 0)
    return Nodes(g.astype(np.float64), prior[g])


def _assembled(g: Floats, weight: Floats, target: Floats, m: int, N: int, law: Law) -> tuple[Floats, Floats, Floats]:
    """A, b and c of eq. 25; rows of A are folded as they come if they far outnumber columns."""
    rows, c = np.empty((0, m + 2)), np.zeros(m + 1)
    step = max(_CHUNK // (m + 1), m + 2)
    for j in range(0, len(g), step):
        part = slice(j, j + step)
        rows_of = law.rows(g[part], m, N)
        c += weight[part] @ rows_of
        fresh = np.column_stack([rows_of, target[part]]) * np.sqrt(weight[part])[:, None]
        rows = _folded(np.concatenate([rows, fresh]))
    return rows[:, :-1], rows[:, -1], c


def _folded(rows: Floats) -> Floats:
    """Rows with the same inner products of columns, no more than columns unless there are few."""
    if len(rows) <= 3 * rows.shape[1]:
        return rows
    triangle = linalg.qr(rows, mode="r", overwrite_a=True, check_finite=False)[0]
    return np.asarray(triangle[: rows.shape[1]], dtype=np.float64)


def direction(target: Floats) -> int:
    """Return 1 for values that only fall, -1 for values that only rise, and 0 for others."""
    steps = np.diff(target)
    if np.all(steps <= 0):
        return 1
    return -1 if np.all(steps >= 0) else 0
