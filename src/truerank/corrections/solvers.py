"""Solutions of the least-squares problems: minimal bias, minimal bias under constraints, bias against variance."""

from __future__ import annotations

import numpy as np
from scipy import linalg, optimize

from truerank.arrays import Floats
from truerank.corrections.base import CorrectionTable
from truerank.corrections.problems import CountTerm, Problem
from truerank.errors import InputError

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

    Directions whose singular value is below ``tolerance`` cannot be told from rounding; among
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
