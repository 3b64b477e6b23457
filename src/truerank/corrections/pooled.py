"""Estimators that pool the instances: they fit the law of all ranks, then take each item's mean given its draws."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats
from truerank.corrections.base import CORRECTIONS, Estimator, require_design
from truerank.corrections.closed_form import capped
from truerank.corrections.posteriors import Errors, Laws, PosteriorTerm, observed
from truerank.corrections.rank_laws import (
    Seen,
    SmoothFit,
    expectation_maximisation,
    monotone_law,
    smooth_law,
    uniform_law,
)
from truerank.errors import InputError
from truerank.metrics.base import Terms
from truerank.ranking.ranks import Ranks


@dataclass(frozen=True)
class Pooled(Estimator):
    """An estimator that rests on the law of the ranks of all instances.

    With more relevant items, the i-th of them tends to stand higher, and a metric may weight it by their number. So
    items have a law of their own for each i and each number of relevant items, both grouped where they are large, as
    long as 200 items share it. Ties are broken at random to fit a law, always in the same way.
    """

    @property
    def pools_instances(self) -> bool:
        return True

    @abstractmethod
    def laws(self, ranks: Ranks) -> Laws:
        """Return the law of the ranks for each group of relevant items."""

    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        require_design(ranks, name)
        laws = self.laws(ranks)
        places = np.arange(ranks.above.size)
        return tuple(Terms(PosteriorTerm(part.term, ranks, laws), places, part.weight) for part in parts)

    def hidden_error(self, parts: tuple[Terms, ...], ranks: Ranks) -> float:
        """Return the error of the posterior means and of the laws, and what the assumed shape of the laws makes of it.

        The last is how far the estimate is from those of a smooth and of a monotone law, whichever is farther. Where
        the draws say little about the top, as with a small cap, it is the largest part.
        """
        own = self.mean(parts, ranks)
        apart = max(abs(own - shape.mean(parts, ranks)) for shape in (Smooth(), Monotone()))
        return math.hypot(self.statistical_error(parts, ranks), apart)

    def statistical_error(self, parts: tuple[Terms, ...], ranks: Ranks) -> float:
        """Return the error of the posterior means and of the laws, the latter as if they were smooth ones.

        The laws of all groups rest on one assumption on their shape, so their errors may well have the same sign: they
        are added as they are, not in quadrature.
        """
        laws = self.laws(ranks)
        error = Errors(ranks, Smooth().fits(ranks), laws)
        of_items, of_laws = np.zeros(2)
        for group in range(len(laws.groups)):
            variance, deviation = error.of_group(group, parts)
            of_items, of_laws = of_items + variance, of_laws + deviation
        return float(np.hypot(np.sqrt(of_items), of_laws))

    def caveats(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[str, ...]:
        if ranks.drawn is None:
            return (
                f"{name} is driven by the assumed shape of the law of ranks where few candidates were sampled; "
                "inverse sampling tells more at the same cost",
            )
        fitted = f"values by ~{self} are those of a fitted law of ranks; their intervals do not rest on it"
        ended = float(capped(ranks).mean())
        if not ended:
            return (fitted,)
        share = f"{ended:.1%}".replace("%", " %")
        return (
            fitted,
            f"the cap of {ranks.design} ended the draws for {share} of the relevant items, for which {name} rests on "
            "the assumed shape of the law of ranks",
        )

    def mean(self, parts: tuple[Terms, ...], ranks: Ranks) -> float:
        """Return the mean over instances, ties in favour of relevant items."""
        total = 0.0
        for part in self.terms(parts, ranks, str(self)):
            values = part.term.term(ranks.rank, ranks.i, ranks.item_n_relevant, part.n)
            total += float(values.sum() if part.weight is None else values @ part.weight)
        return total / max(int((ranks.n_relevant > 0).sum()), 1)


@dataclass(frozen=True)
class _Fitted(Pooled):
    """A pooled estimator that fits the law of each group to what was drawn for it."""

    @abstractmethod
    def fit(self, seen: Seen) -> Floats:
        """Return the law of the ranks: the chance of each cell."""

    def laws(self, ranks: Ranks) -> Laws:
        if self not in ranks.fits:
            groups = observed(ranks)
            ranks.fits[self] = Laws(groups, tuple(self.fit(group.seen) for group in groups))
        return ranks.fits[self]


@dataclass(frozen=True)
class ExpectationMaximisation(_Fitted):
    """EM from the uniform law, stopped after few steps (Jin et al., AAAI 2021)."""

    name = "em"
    steps: int = 20

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError(f"the steps of ~em(steps) must be at least 1, got {self.steps}.")

    def fit(self, seen: Seen) -> Floats:
        return expectation_maximisation(seen.likelihood, seen.weight, uniform_law(seen.cells), self.steps)


@dataclass(frozen=True)
class Monotone(_Fitted):
    """The law of the ranks never rises from the top down; nothing is tuned.

    Examples
    --------
    >>> import truerank as tr
    >>> exact = tr.Ranks.from_ranks(range(1, 1_001), n=1_000)
    >>> sampled = tr.InverseSampling(2).draw(exact, rng=1)
    >>> round(tr.estimate(exact, "ndcg@10").mean, 4), round(tr.estimate(sampled, "ndcg@10~monotone").mean, 4)
    (0.0045, 0.004)
    """

    name = "monotone"

    def fit(self, seen: Seen) -> Floats:
        return monotone_law(seen, steps=60)


@dataclass(frozen=True)
class Smooth(Pooled):
    """The logarithm of the law is smooth in the logarithm of the rank: penalised splines.

    Parameters
    ----------
    penalty : float
        The larger, the smoother. 30 was chosen on MovieLens 1M.
    """

    name = "smooth"
    penalty: float = 30.0

    def __post_init__(self) -> None:
        if not 0.0 < self.penalty < np.inf:
            raise InputError(f"the penalty of ~smooth(penalty) must be above 0, got {self.penalty:g}.")

    def fits(self, ranks: Ranks) -> tuple[SmoothFit, ...]:
        """Return the fit of each group, which also tells how well the data determine it."""
        key = (self, "fit")
        if key not in ranks.fits:
            ranks.fits[key] = tuple(smooth_law(group.seen, self.penalty) for group in observed(ranks))
        return ranks.fits[key]

    def laws(self, ranks: Ranks) -> Laws:
        if self not in ranks.fits:
            ranks.fits[self] = Laws(observed(ranks), tuple(fit.law for fit in self.fits(ranks)))
        return ranks.fits[self]

    def caveats(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[str, ...]:
        """Add a note if a monotone law gives a different result."""
        smooth, monotone = (estimator.mean(parts, ranks) for estimator in (self, Monotone()))
        notes = super().caveats(parts, ranks, name)
        if abs(smooth - monotone) <= 2 * self.statistical_error(parts, ranks):
            return notes
        other = f"{name.partition('~')[0]}~{Monotone()}"
        return (*notes, f"{name} and {other} ({monotone:.4f}) differ by more than twice their error")


CORRECTIONS.add_built_in(ExpectationMaximisation, Monotone, Smooth)
