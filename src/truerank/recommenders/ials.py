"""Matrix factorisation for implicit feedback, by alternating least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from truerank.arrays import Floats
from truerank.data.interactions import Interactions, PerUser
from truerank.errors import InputError
from truerank.recommenders.least_squares import improve, solve
from truerank.recommenders.models import FactorModel, Recommender, check_number

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
        check_number("factors", self.factors, at_least=1, whole=True)
        check_number("alpha", self.alpha, at_least=0.0)
        check_number("regularization", self.regularization, above=0.0)
        check_number("sweeps", self.sweeps, at_least=1, whole=True)
        check_number("init_scale", self.init_scale, above=0.0)
        check_number("frequency_exponent", self.frequency_exponent)

    def _learn(self, train: Interactions, threads: int, progress: bool) -> FactorModel:
        by_user, by_item = train.matrix, sp.csr_array(train.matrix.T)
        # users are solved for first, so they need no initial values
        items = self.init_scale * np.random.default_rng(self.rng).standard_normal((train.n_items, self.factors))
        users = np.zeros((train.n_users, self.factors))
        for _ in tqdm(range(self.sweeps), desc="sweeps", disable=None if progress else True, delay=0.5):
            users = self._solve(by_user, items, users, threads)
            items = self._solve(by_item, users, items, threads)
        if not (np.isfinite(users).all() and np.isfinite(items).all()):
            raise InputError(f"`regularization` is too small for these data, got {self.regularization}; increase it.")
        return FactorModel(users, items, recommender=self, user_ids=train.user_ids, item_ids=train.item_ids)

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
        squares = [
            float(self._penalties(rows) @ np.einsum("ij,ij->i", part, part))
            for rows, part in ((matrix, users), (sp.csr_array(matrix.T), items))
        ]
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
