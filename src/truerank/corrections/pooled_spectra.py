r"""Expected bias-variance corrections at many sample sizes, from what the largest of the samples shows.

Let :math:`P_h` be how many of the items with N candidates have h of the M sampled ones above them, on average over all
samples, and :math:`B_h` the mean over g = 0..N of :math:`f(g) p(h \mid g)`. In the polynomials of
`truerank.corrections.spectral` for M draws, the law of fewer draws m is theirs times :math:`\lambda_d(m; M)`, whatever
N. So the sum of the expected tables of eq. 25 over the items is

.. math:: \sum_d \frac{\lambda_d(m; M)^2}{(1 - \gamma) \lambda_d(m; N)^2 + \gamma}
    \Bigl(\sum_h P_h q_d(h)\Bigr) \Bigl(\sum_h B_h q_d(h)\Bigr), \qquad
    \lambda_d(m; N) = \lambda_d(m; M) \lambda_d(M; N).

Unlike the recurrence in g this is stable however large the sample is against the catalogue. It takes the M + 1
polynomials, hence M of some thousand at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.corrections.spectral import Gram, RowTerm, counts_of, sampled_polynomials
from truerank.sampling.laws import HYPERGEOMETRIC
from truerank.sampling.pooled_laws import pooled_laws

LARGEST = 4_096
"""Most draws for which the polynomials are computed: within some three seconds."""


@dataclass(frozen=True, eq=False)
class PooledSpectrum:
    """What the largest samples show of many items and of a metric, in polynomials.

    Attributes
    ----------
    both : array of shape (rows, M + 1)
        The products of the sums over P and B, for d = 0..M.
    to_all : array of shape (rows, M + 1)
        Squares of lambda_d(M; N) for the N of each row.
    gamma : float
    """

    both: Floats
    to_all: Floats
    gamma: float

    @classmethod
    def of(cls, shown: Floats, metric: Floats, N: Ints, gamma: float) -> PooledSpectrum:
        """Combine P and B (by `metric_shown`), each of shape (rows, M + 1)."""
        M = shown.shape[1] - 1
        polynomials = sampled_polynomials(M)
        return cls((shown @ polynomials) * (metric @ polynomials), Gram().singular_values(N, M) ** 2, gamma)

    def sums(self, sizes: Ints) -> Floats:
        """Return the sum of the expected table values of all items at each sample size, at most M."""
        return np.array([self._sum(m) for m in sizes.tolist()])

    def _sum(self, m: int) -> float:
        squares = Gram().singular_values(self.both.shape[1] - 1, m) ** 2
        own = self.to_all[:, : m + 1] * squares
        return float(np.sum(self.both[:, : m + 1] * squares / ((1 - self.gamma) * own + self.gamma)))


def metric_shown(term: RowTerm, N: Ints, M: int, last: Ints | None, smooth: bool) -> Floats:
    """Return B; parameters as in `truerank.corrections.spectral.bias_variance_tables`."""
    rows = np.arange(N.size)
    g, weight = counts_of(rows, N, M, HYPERGEOMETRIC, last, smooth)
    mass = weight * term(g, rows[:, None]) / (N[:, None] + 1)
    row, place = np.nonzero(mass)
    return pooled_laws(HYPERGEOMETRIC, g[row, place], M, N[row], weight=mass[row, place], group=row, n_groups=N.size)
