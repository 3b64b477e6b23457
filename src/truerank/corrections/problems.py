r"""The least-squares problems behind corrections, in a form that loses no digits.

A correction is a table of m + 1 values that turns a sampled count into an estimate of the metric.

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
from scipy import linalg

from truerank.arrays import Floats
from truerank.corrections.nodes import Nodes, nodes
from truerank.sampling.laws import Law

CountTerm = Callable[[Floats], Floats]
"""f(g): what a relevant item adds to the metric when g irrelevant candidates stand above it."""

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
