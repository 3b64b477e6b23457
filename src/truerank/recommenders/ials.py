"""Matrix factorisation by implicit alternating least squares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from truerank.core.checks import AnyArray, Floats, InputError, Ints, as_rng, check_whole
from truerank.core.threads import progress_bar, share
from truerank.data.interactions import Interactions, PerUser
from truerank.kernels import library
from truerank.recommenders.models import FactorModel, Recommender, check_number, mirrored

# stored entries per task: a few milliseconds of work, so that threads end at about the same time
_PAIRS_PER_TASK = 1 << 14
_ROWS = 1 << 12  # rows of factors per task
_WIDTH = 16  # the compiled loops need rows whose length is a multiple of this
_STEPS = 3  # steps of conjugate gradients; more would come closer, but the next sweep changes the equations anyway
_SOLVED = 1e-20  # squared length of a residual that is only rounding error


def solve(matrix: sp.csr_array, factors: Floats, alpha: float, penalties: Floats, threads: int) -> Floats:
    """Return for each row the vector v with the least loss, given the `factors` of the columns.

    With sums over the columns j stored in the row, v solves
    ``(sum_j f_j f_j' + alpha * F'F + penalty * I) v = sum_j f_j``.

    Parameters
    ----------
    matrix : csr_array of shape (n, m)
        Only which entries are stored matters, not their values.
    factors : array F of shape (m, d)
    alpha : float
    penalties : array of shape (n,)
        Positive, so that the solution is unique.
    threads : int
        Has no influence on the result.

    Examples
    --------
    >>> matrix = sp.csr_array(np.array([[1.0, 1.0], [0.0, 0.0]]))
    >>> solve(matrix, np.array([[1.0], [2.0]]), 0.2, np.array([4.0, 4.0]), 1).tolist()
    [[0.3], [0.0]]
    """
    wide = _widened(factors)
    solutions = np.empty((matrix.shape[0], wide.shape[1]))
    _run_rows(_solve_rows, matrix, threads, wide, alpha * _gram_of(wide, threads), penalties, solutions)
    return solutions[:, : factors.shape[1]].copy()


def improve(
    matrix: sp.csr_array, factors: Floats, start: Floats, alpha: float, penalties: Floats, threads: int
) -> Floats:
    """Return for each row a vector with a smaller loss than that of `start`, by three steps of conjugate gradients.

    With many factors this takes a fraction of the time of `solve`; repeated, it converges to the same
    solution. Rows without entries get the zero vector, which is their solution.

    Parameters
    ----------
    matrix, factors, alpha, penalties, threads
        As in `solve`.
    start : array of shape (n, d)

    Examples
    --------
    >>> matrix = sp.csr_array(np.array([[1.0, 1.0], [0.0, 0.0]]))
    >>> improve(matrix, np.array([[1.0], [2.0]]), np.ones((2, 1)), 0.2, np.array([4.0, 4.0]), 1).round(6).tolist()
    [[0.3], [0.0]]
    """
    wide, solutions = _widened(factors), _widened(start)
    everywhere = mirrored(alpha * _gram_of(wide, threads)).astype(np.float32)
    _run_rows(_improve_rows, matrix, threads, wide, everywhere, penalties, solutions)
    return solutions[:, : factors.shape[1]].astype(np.float64)


def _run_rows(run: Callable[..., None], matrix: sp.csr_array, threads: int, *arrays: AnyArray) -> None:
    """Run a loop over ranges of rows, each of which takes some milliseconds."""
    rows = library.RowsArgument.of(matrix.indptr, matrix.indices)
    share(lambda cut, _: run(rows, *cut, *arrays), _cuts(matrix.indptr, _PAIRS_PER_TASK), threads)


def _widened(factors: Floats) -> AnyArray:
    """Return factors in float32, padded to the width that the loops need with zeros, which stay zero."""
    return np.pad(factors.astype(np.float32), ((0, 0), (0, -factors.shape[1] % _WIDTH)))


def _gram_of(factors: AnyArray, threads: int) -> Floats:
    """Return the sum of the outer products of all rows with themselves."""
    cuts = _cuts(np.arange(len(factors) + 1), _ROWS)
    return np.sum(share(lambda cut, _: _gram(factors, *cut), cuts, threads), axis=0)


def _cuts(indptr: Ints, size: int) -> list[tuple[int, int]]:
    """Cut rows into ranges with about `size` entries each."""
    task = indptr[:-1] // size
    bounds = [0, *(np.flatnonzero(np.diff(task)) + 1).tolist(), len(task)]
    return list(pairwise(bounds))


def _gram(factors: AnyArray, start: int, stop: int) -> Floats:
    if library.load() is None:
        chosen = factors[start:stop].astype(np.float64)
        return chosen.T @ chosen
    width = factors.shape[1]
    total, products = np.empty((width, width)), np.empty((width, width), np.float32)
    library.call("sum_squares", factors, width, start, stop, total, products)
    return total


def _solve_rows(rows: library.RowsArgument, start: int, stop: int, factors: AnyArray, *arrays: Floats) -> None:
    if library.load() is not None:
        library.call("solve_rows", rows, start, stop, library.MatrixArgument.of(factors), *arrays)
        return
    (begin, columns), (shared_gram, penalties, solutions) = rows.arrays, arrays
    for row in range(start, stop):
        chosen = factors[columns[begin[row] : begin[row + 1]]].astype(np.float64)
        matrix = shared_gram + chosen.T @ chosen + penalties[row] * np.eye(factors.shape[1])
        solutions[row] = np.linalg.solve(matrix, chosen.sum(axis=0))


def _improve_rows(rows: library.RowsArgument, start: int, stop: int, factors: AnyArray, *arrays: AnyArray) -> None:
    *given, solutions = arrays
    if library.load() is not None:
        library.call("improve_rows", rows, start, stop, library.MatrixArgument.of(factors), *given, _STEPS, solutions)
        return
    (begin, columns), (everywhere, penalties) = rows.arrays, given
    for row in range(start, stop):
        chosen = factors[columns[begin[row] : begin[row + 1]]].astype(np.float64)
        matrix = everywhere + chosen.T @ chosen + penalties[row] * np.eye(factors.shape[1])
        solutions[row] = _gradients(matrix, chosen.sum(axis=0), solutions[row]) if len(chosen) else 0


def _gradients(matrix: Floats, right: Floats, x: AnyArray) -> Floats:
    """Go some steps from x towards the solution of ``matrix @ x = right``."""
    residual = direction = right - matrix @ x
    for _ in range(_STEPS):
        size = residual @ residual
        if size <= _SOLVED:
            break
        product = matrix @ direction
        length = size / (direction @ product)
        x, residual = x + length * direction, residual - length * product
        direction = residual + residual @ residual / size * direction
    return x


# factors from which conjugate gradients reach the same loss in less time
_MANY = 64
# pairs whose scores are computed at a time: with 64 factors 64 MB for users and items together
_PAIRS = 1 << 16


@dataclass(frozen=True)
class IALS(Recommender[FactorModel]):
    r"""Factors that minimise the squared error on interactions, with all other pairs drawn towards zero.

    .. math:: \sum_{(u, i) \in H} (\hat y_{ui} - 1)^2 + \alpha \sum_u \sum_i \hat y_{ui}^2
              + \sum_u \lambda_u \|v_u\|^2 + \sum_i \lambda_i \|v_i\|^2, \quad \hat y_{ui} = v_u \cdot v_i

    With the items' factors given, each user's are the solution of linear equations, and vice versa. A
    sweep solves for all users, then for all items: exactly with fewer than 64 factors, otherwise by three
    steps of conjugate gradients from the factors of the sweep before, which reach the same loss sooner.

    Parameters
    ----------
    factors : int
        The length d of the vectors.
    alpha : float
        Weight of each user-item pair, interactions included.
    regularization : float
        Lambda.
    sweeps : int
        How many times to solve for users and items.
    init_scale : float
        Standard deviation of the normal distribution from which the initial item factors are drawn.
    frequency_exponent : float
        With exponent nu, a user with c of n items has ``lambda_u = lambda * (c + alpha * n) ** nu``,
        and likewise for items. 0 is the plain sum of squares of Krichene & Rendle (2020); 1 scales
        by frequency, which Rendle et al. (2022) found to be better.
    rng : int or numpy.random.Generator, optional
        Seed of the initial factors. With a seed, the result is the same for any number of threads.

    Notes
    -----
    Items, or users, without interactions get zero factors, hence the score 0. Products of factors
    are computed in float32. With fewer than 64 factors they are summed, and the equations solved, in float64.

    References
    ----------
    Y. Hu, Y. Koren, C. Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM 2008.
    W. Krichene, S. Rendle, "On Sampled Metrics for Item Recommendation", KDD 2020, section 9.
    S. Rendle, W. Krichene, L. Zhang, Y. Koren, "Revisiting the Performance of iALS on Item
    Recommendation Benchmarks", RecSys 2022.

    Examples
    --------
    >>> import numpy as np
    >>> import truerank as tr
    >>> ials = tr.IALS(factors=2, regularization=0.1, rng=0)
    >>> train = [[0, 1], [0, 1], [2, 3], [2]]
    >>> model = ials.fit(train)
    >>> (model.scores(np.array([3])) > 0.5).tolist()
    [[False, False, True, True]]
    >>> round(ials.loss(model, train), 2)
    1.89
    """

    factors: int = 16
    alpha: float = 0.2
    regularization: float = 10.0
    sweeps: int = 16
    init_scale: float = 0.1
    frequency_exponent: float = 0.0
    rng: int | np.random.Generator | None = None

    def __post_init__(self) -> None:
        check_whole("factors", self.factors)
        check_number("alpha", self.alpha, at_least=0.0)
        check_number("regularization", self.regularization, above=0.0)
        check_whole("sweeps", self.sweeps)
        check_number("init_scale", self.init_scale, above=0.0)
        check_number("frequency_exponent", self.frequency_exponent)

    def _learn(self, train: Interactions, threads: int, progress: bool) -> FactorModel:
        by_user, by_item = train.matrix, sp.csr_array(train.matrix.T)
        # users are solved for first, so they need no initial values
        items = self.init_scale * as_rng(self.rng).standard_normal((train.n_items, self.factors))
        users = np.zeros((train.n_users, self.factors))
        for _ in progress_bar("sweeps", progress, range(self.sweeps)):
            users = self._solve(by_user, items, users, threads)
            items = self._solve(by_item, users, items, threads)
        if not (np.isfinite(users).all() and np.isfinite(items).all()):
            raise InputError(f"`regularization` is too small for these data, got {self.regularization}; increase it.")
        return FactorModel(users, items, user_ids=train.user_ids, item_ids=train.item_ids).learnt_by(self)

    def _solve(self, matrix: sp.csr_array, factors: Floats, start: Floats, threads: int) -> Floats:
        """Return factors of the rows, given those of the columns."""
        if self.factors < _MANY:
            return solve(matrix, factors, self.alpha, self._penalties(matrix), threads)
        return improve(matrix, factors, start, self.alpha, self._penalties(matrix), threads)

    def loss(self, model: FactorModel, train: PerUser) -> float:
        """Return the loss, which training minimises, of a model on its training interactions."""
        matrix = Interactions.of(train, "train", n_users=model.n_users, n_items=model.n_items).matrix
        users, items = (np.asarray(part, np.float64) for part in (model.user_factors, model.item_factors))
        all_pairs = float(np.sum((users.T @ users) * (items.T @ items)))
        sides = ((matrix, users), (sp.csr_array(matrix.T), items))
        squares = (float(self._penalties(rows) @ np.einsum("ij,ij->i", part, part)) for rows, part in sides)
        return _error(matrix, users, items) + self.alpha * all_pairs + sum(squares)

    def _penalties(self, matrix: sp.csr_array) -> Floats:
        """Return lambda of each row."""
        weight = np.diff(matrix.indptr) + self.alpha * matrix.shape[1]
        return self.regularization * np.power(weight, self.frequency_exponent)


def _error(matrix: sp.csr_array, users: Floats, items: Floats) -> float:
    """Return the sum of the squared errors on the interactions."""
    pairs = sp.coo_array(matrix)
    total = 0.0
    for start in range(0, matrix.nnz, _PAIRS):
        part = slice(start, start + _PAIRS)
        scores = np.einsum("ij,ij->i", users[pairs.row[part]], items[pairs.col[part]])
        total += float(np.sum((scores - 1) ** 2))
    return total
