"""How candidates are sampled, and the law of what the sample shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from truerank.arrays import Floats, Ints
from truerank.errors import InputError

if TYPE_CHECKING:
    from truerank.ranking.ranks import Ranks


@dataclass(frozen=True)
class SamplingDesign:
    """Rank the relevant items among m sampled irrelevant candidates instead of all of them.

    Parameters
    ----------
    m : int
        Irrelevant candidates sampled for each instance.
    replace : bool
        Whether a candidate may be sampled more than once.
    popularity : float
        Candidates are sampled with probability proportional to their number of training
        interactions to this power. 0, the default, is uniform sampling; only that has a law
        (`pmf`, `cdf`) that does not depend on the recommender, and corrections.

    Examples
    --------
    The chance that an item at rank 100 of 10,000 comes out first among 99 sampled ones:

    >>> import truerank as tr
    >>> tr.SamplingDesign(99).pmf(1, rank=100, n=10_000).round(4)
    np.float64(0.3716)

    Exact ranks become sampled ones without any score:

    >>> exact = tr.Ranks.from_ranks([100, 2], n=10_000)
    >>> tr.SamplingDesign(99).draw(exact, rng=1)
    Ranks(2 instances, 2 relevant items, 100 of 10000 candidates sampled, no ties)
    """

    m: int
    replace: bool = False
    popularity: float = 0.0

    def __post_init__(self) -> None:
        if self.m < 1 or self.m != int(self.m):
            raise InputError(f"`m` must be a whole number from 1, got {self.m!r}.")

    def check(self, n_irrelevant: Ints) -> None:
        """Refuse instances with fewer irrelevant candidates than are to be sampled."""
        least = int(np.min(n_irrelevant, initial=self.m))
        if not self.replace and least < self.m:
            raise InputError(
                f"`m` must be at most the number of irrelevant candidates ({least} for some instance) "
                f"when sampling without replacement, got {self.m}."
            )
        if np.any(np.asarray(n_irrelevant) < 1):
            raise InputError("every instance must have an irrelevant candidate to sample, but some have none.")

    def check_uniform(self, what: str) -> None:
        """Refuse what needs the law of the sampled rank, if the design has none."""
        if self.popularity:
            raise InputError(
                f"{what} needs uniform sampling: with popularity {self.popularity:g} the law of the sampled rank "
                "depends on which items stand above."
            )

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
        from truerank.sampling import laws

        self.check_uniform("the law")
        below, counts = self._counts(sampled_rank, rank, n, i, n_relevant)
        return laws.pmf(below, *counts, replace=self.replace)

    def cdf(self, sampled_rank: ArrayLike, *, rank: ArrayLike, n: ArrayLike, i: int = 1, n_relevant: int = 1) -> Floats:
        """Return the probability that the sampled rank is at most this; arguments as for `pmf`."""
        from truerank.sampling import laws

        self.check_uniform("the law")
        below, counts = self._counts(sampled_rank, rank, n, i, n_relevant)
        return laws.cdf(below, *counts, replace=self.replace)

    def _counts(
        self, sampled_rank: ArrayLike, rank: ArrayLike, n: ArrayLike, i: int, n_relevant: int
    ) -> tuple[Ints, tuple[Ints, int, Ints]]:
        above, irrelevant = np.asarray(rank) - i, np.asarray(n) - n_relevant
        self.check(irrelevant)
        if np.any((above < 0) | (above > irrelevant)):
            raise InputError("`rank` must lie in i..n - n_relevant + i for the i-th relevant item.")
        return np.asarray(sampled_rank) - i, (above, self.m, irrelevant)

    def draw(self, ranks: Ranks, *, rng: int | np.random.Generator | None = None) -> Ranks:
        """Return what the ranks would have been in a sample, drawn from their exact law.

        The relevant items of one instance share a sample, and ties are sampled too.
        """
        from truerank.sampling.drawing import draw_counts

        self.check_uniform("drawing from ranks")
        if ranks.design is not None or ranks.depth is not None:
            raise InputError("only exact ranks can be sampled, got ranks that are sampled or cut already.")
        n_irrelevant = ranks.n_candidates - ranks.n_relevant
        self.check(n_irrelevant[ranks.n_relevant > 0])
        counts = (ranks.above, ranks.tied, ranks.indptr, n_irrelevant, self.m)
        above, tied = draw_counts(*counts, replace=self.replace, rng=np.random.default_rng(rng))
        return replace(
            ranks,
            above=above,
            tied=tied,
            n_candidates=ranks.n_relevant + self.m,
            design=self,
            n_catalogue=ranks.n_candidates,
        )
