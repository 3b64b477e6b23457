"""Every irrelevant candidate is equally likely to be sampled: the design with a known law, and so with corrections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from truerank.arrays import AnyArray, Floats, Ints
from truerank.errors import InputError
from truerank.sampling import likelihoods
from truerank.sampling.designs import DESIGNS, Counts, SamplingDesign
from truerank.sampling.distinct import distinct_items
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC, Law
from truerank.sampling.pools import Pool


@dataclass(frozen=True)
class UniformSampling(SamplingDesign):
    """Rank the relevant items among m irrelevant candidates that are sampled uniformly.

    Parameters
    ----------
    m : int, optional
        Irrelevant candidates sampled for each instance. None: each instance has a number of its own.
    replace : bool
        Whether a candidate may be sampled more than once.

    Examples
    --------
    The chance that an item at rank 100 of 10,000 comes out first among 99 sampled ones:

    >>> import truerank as tr
    >>> float(tr.UniformSampling(99).pmf(1, rank=100, n=10_000).round(4))
    0.3716

    Exact ranks become sampled ones without any score:

    >>> exact = tr.Ranks.from_ranks([100, 2], n=10_000)
    >>> tr.UniformSampling(99).draw(exact, rng=1)
    Ranks(2 instances, 2 relevant items, 100 of 10000 candidates sampled, no ties)
    """

    name = "uniform"
    replace: bool = False

    @property
    def keeps_unbiased(self) -> bool:
        return True

    def law(self, what: str = "the law") -> Law:
        """Return the law of the sampled count: binomial with replacement, hypergeometric without."""
        return BINOMIAL if self.replace else HYPERGEOMETRIC

    def log_likelihood(self, above: Counts, drawn: Counts, count: AnyArray, n_irrelevant: Counts) -> Floats:
        likelihood = likelihoods.with_replacement if self.replace else likelihoods.without_replacement
        return likelihood(above, drawn, count, n_irrelevant)

    def possible_counts(self, above: Ints, drawn: Ints, n_irrelevant: Ints) -> tuple[Ints, Ints]:
        if not self.replace:
            return super().possible_counts(above, drawn, n_irrelevant)
        return np.minimum(above, 1), n_irrelevant - np.minimum(drawn - above, 1)

    def check(self, n_irrelevant: Ints, draws: ArrayLike) -> None:
        super().check(n_irrelevant, draws)
        left, drawn = np.broadcast_arrays(n_irrelevant, draws)
        if not self.replace and np.any(left < drawn):
            at = int(np.argmax(left < drawn))
            raise InputError(
                f"`m` must be at most the number of irrelevant candidates ({left[at]} for some instance) when sampling "
                f"without replacement, got {drawn[at]}."
            )

    def sample(self, pool: Pool, rng: np.random.Generator) -> Sequence[Ints]:
        """Draw for all users at once."""
        sizes, m = pool.sizes, self.size
        self.check(sizes, m)
        if self.replace:
            return [pool.items_at(user, rng.integers(0, size, m)) for user, size in enumerate(sizes.tolist())]
        users = np.arange(len(pool))
        return distinct_items(pool, users, np.full(users.size, m), rng)

    def pmf(self, sampled_rank: ArrayLike, *, rank: ArrayLike, n: ArrayLike, i: int = 1, n_relevant: int = 1) -> Floats:
        """Return the probability of a sampled rank given the true one (eq. 15).

        Parameters
        ----------
        sampled_rank, rank : array of int
            Rank among sample and relevant items, and among all n candidates.
        n : array of int
            Candidates.
        i, n_relevant : int
            Which relevant item from the top it is, of how many.
        """
        return self.law().pmf(*self._counts(sampled_rank, rank, n, i, n_relevant))

    def cdf(self, sampled_rank: ArrayLike, *, rank: ArrayLike, n: ArrayLike, i: int = 1, n_relevant: int = 1) -> Floats:
        """Return the probability that the sampled rank is at most this; arguments as for `pmf`."""
        return self.law().cdf(*self._counts(sampled_rank, rank, n, i, n_relevant))

    def _counts(
        self, sampled_rank: ArrayLike, rank: ArrayLike, n: ArrayLike, i: int, n_relevant: int
    ) -> tuple[Ints, Ints, int, Ints]:
        above, irrelevant = np.asarray(rank) - i, np.asarray(n) - n_relevant
        self.check(np.atleast_1d(irrelevant), self.size)
        if np.any((above < 0) | (above > irrelevant)):
            raise InputError("`rank` must lie in i..n - n_relevant + i for the i-th relevant item.")
        return np.asarray(sampled_rank) - i, above, self.size, irrelevant


DESIGNS.add_built_in(UniformSampling)
