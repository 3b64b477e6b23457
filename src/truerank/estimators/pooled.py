"""Estimates that pool all instances, by a smooth or a monotone law of the ranks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from truerank.core.checks import Floats, InputError, Ints, as_number, slices
from truerank.core.ranks import Ranks
from truerank.estimators import rank_laws
from truerank.estimators.corrected import CORRECTIONS, Estimator, capped, fitted, require_design
from truerank.estimators.rank_laws import Observed, RankLaws, Seen, SmoothFit, observed
from truerank.metrics.definitions import Terms
from truerank.sampling.laws import draw_counts

# chances held at once: 64 MB
_CHUNK = 8_000_000


def plausible_ranks(ranks: Ranks, *, rng: np.random.Generator) -> Iterator[Ranks]:
    """Yield exact ranks, again and again, each drawn from those that the sampled ones leave possible.

    Each relevant item gets a count among all candidates from its posterior, given its own sampled count and a smooth
    law that is fitted to all instances (``~smooth``). Single ranks are meaningless. Means over instances of anything
    that varies little between neighbouring ranks, such as the variance over samples, come close to the exact ones. The
    relevant items of an instance are drawn at the same quantile of their posteriors, which keeps their order.

    Examples
    --------
    >>> import truerank as tr
    >>> exact = tr.Ranks.from_ranks([3, 40, 500] * 100, n=1_000)
    >>> drawn = next(plausible_ranks(tr.UniformSampling(100).draw(exact, rng=0), rng=np.random.default_rng(1)))
    >>> drawn.design is None, len(drawn), bool(abs(drawn.rank.mean() / exact.rank.mean() - 1) < 0.05)
    (True, 300, True)
    """
    untied = ranks.break_ties("random", rng=0) if ranks.tied.any() else ranks
    laws = Smooth().laws(untied)
    cumulative = [np.cumsum(posterior, axis=1) for posterior in laws.posteriors]
    while True:
        level, counts = rng.random(len(untied))[untied.instance], np.empty_like(untied.above)
        for group, chances in zip(laws.groups, cumulative, strict=True):
            counts[group.items] = _counts_at(untied, group, chances, level[group.items])
        above = counts[np.lexsort((counts, untied.instance))]
        yield replace(untied, above=above, n_candidates=untied.n_catalogue, sample=None, scored=None)


def _counts_at(ranks: Ranks, group: Observed, cumulative: Floats, level: Floats) -> Ints:
    """Return the quantile of each item's posterior at its level: a cell, and then a possible count within it."""
    within = group.seen.cells
    cell, inside = _quantiles(cumulative, group.which, level)
    observed = (numbers[group.items] for numbers in (ranks.above, ranks.item_draws, ranks.item_irrelevant))
    least, most = require_design(ranks, "the draw").possible_counts(*observed)
    first = np.maximum(within.starts[cell], least)
    last = np.minimum(within.starts[cell] + within.sizes[cell] - 1, most)
    return first + np.minimum((inside * (last - first + 1)).astype(np.int64), last - first)


def _quantiles(cumulative: Floats, which: Ints, level: Floats) -> tuple[Ints, Floats]:
    """Return the column in which the cumulative chances of each item's row reach its level, and how far into it."""
    column, inside = np.empty(which.size, dtype=np.int64), np.empty(which.size)
    for part in slices(which.size, _CHUNK // cumulative.shape[1]):
        rows = cumulative[which[part]]
        wanted = level[part] * rows[:, -1]
        column[part] = (rows <= wanted[:, None]).sum(axis=1)
        at = np.arange(len(rows))
        before = np.where(column[part] > 0, rows[at, column[part] - 1], 0.0)
        inside[part] = (wanted - before) / (rows[at, column[part]] - before)
    return column, inside


def sampled_again(exact: Ranks, sampled: Ranks, *, rng: np.random.Generator) -> Ranks:
    """Return another sample of exact ranks, by the design of sampled ones and with as many draws.

    Examples
    --------
    >>> import truerank as tr
    >>> exact = tr.Ranks.from_ranks([3, 40], n=100)
    >>> sampled = tr.Ranks.from_sampled([1, 5], m=[10, 20], n=100)
    >>> sampled_again(exact, sampled, rng=np.random.default_rng(0)).draws.tolist()
    [10, 20]
    """
    design = require_design(sampled, "sampling again")
    if sampled.drawn is not None:
        return design.draw(exact, rng=rng)
    counts = (exact.above, exact.tied, exact.indptr, exact.draws, sampled.draws)
    above, tied = draw_counts(*counts, design.law("sampling again"), rng)
    return exact.sampled(design, sampled.draws, above=above, tied=tied)


@dataclass(frozen=True)
class Pooled(Estimator):
    """An estimator that rests on the law of the ranks of all instances.

    With more relevant items, the i-th of them tends to stand higher, and a metric may weight it by their number. So
    there is one law for each i and each number of relevant items, both grouped where they are large, as long as at
    least 200 items share it. To fit a law, ties are broken at random, always in the same way.
    """

    pools_instances = True

    @abstractmethod
    def laws(self, ranks: Ranks) -> RankLaws:
        """Return the law of the ranks for each group of relevant items."""

    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        require_design(ranks, name)
        laws = self.laws(ranks)
        places = np.arange(ranks.above.size)
        return tuple(Terms(rank_laws.PosteriorTerm(part.term, ranks, laws), places, part.weight) for part in parts)

    def hidden_error(self, parts: tuple[Terms, ...], ranks: Ranks) -> float:
        """Return the error of the posterior means and of the laws, including the effect of the laws' assumed shape.

        That effect is the distance of the estimate from those of a smooth and of a monotone law, whichever is larger.
        Where the draws say little about the top, as with a small cap, it is the largest part.
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
        of_items, of_laws = np.zeros(2)
        for group, posteriors, fit in zip(laws.groups, laws.posteriors, Smooth().fits(ranks), strict=True):
            variance, deviation = rank_laws.errors(parts, ranks, group, posteriors, fit)
            of_items, of_laws = of_items + variance, of_laws + deviation
        return float(np.hypot(np.sqrt(of_items), of_laws))

    def caveats(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[str, ...]:
        shape = "the assumed shape of the law of ranks"
        if ranks.drawn is None:
            few = "where few candidates were sampled; inverse sampling shows more at the same cost"
            return (f"{name} is driven by {shape} {few}",)
        fitted = f"values by ~{self} are those of a fitted law of ranks; their intervals do not rest on it"
        if not (ended := float(capped(ranks).mean())):
            return (fitted,)
        share = f"{ended:.1%}".replace("%", " %")
        cap = f"the cap of {ranks.design} ended the draws for {share} of the relevant items"
        return (fitted, f"{cap}, for which {name} rests on {shape}")

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

    @fitted
    def laws(self, ranks: Ranks) -> RankLaws:
        return RankLaws(observed(ranks), tuple(self.fit(group.seen) for group in observed(ranks)))


@dataclass(frozen=True)
class ExpectationMaximisation(_Fitted):
    """Estimate by EM from the uniform law, stopped after a few steps (Jin et al., AAAI 2021)."""

    name = "em"
    steps: int = 20

    def __post_init__(self) -> None:
        if not as_number(self.steps) >= 1:
            raise InputError(f"the steps of ~em(steps) must be at least 1, got {self.steps}.")

    def fit(self, seen: Seen) -> Floats:
        start = rank_laws.uniform_law(seen.cells)
        return rank_laws.expectation_maximisation(seen.likelihood, seen.weight, start, self.steps)


@dataclass(frozen=True)
class Monotone(_Fitted):
    """Estimate by a law of the ranks that never rises from the top down; it has no tuning parameter.

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
        return rank_laws.monotone_law(seen, steps=60)


@dataclass(frozen=True)
class Smooth(Pooled):
    """Estimate by a law whose logarithm is smooth in the logarithm of the rank (penalised splines).

    Parameters
    ----------
    penalty : float
        The larger, the smoother. 30 was chosen on MovieLens 1M.
    """

    name = "smooth"
    penalty: float = 30.0

    def __post_init__(self) -> None:
        if not 0.0 < as_number(self.penalty) < np.inf:
            raise InputError(f"the penalty of ~smooth(penalty) must be above 0, got {self.penalty}.")

    @fitted
    def fits(self, ranks: Ranks) -> tuple[SmoothFit, ...]:
        """Return the fit of each group, which also says how well the data determine it."""
        return tuple(rank_laws.smooth_law(group.seen, self.penalty) for group in observed(ranks))

    @fitted
    def laws(self, ranks: Ranks) -> RankLaws:
        return RankLaws(observed(ranks), tuple(fit.law for fit in self.fits(ranks)))

    def caveats(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[str, ...]:
        """Add a note if a monotone law gives a different result."""
        smooth, monotone = (estimator.mean(parts, ranks) for estimator in (self, Monotone()))
        notes = super().caveats(parts, ranks, name)
        if abs(smooth - monotone) <= 2 * self.statistical_error(parts, ranks):
            return notes
        other = f"{name.partition('~')[0]}~{Monotone()}"
        return (*notes, f"{name} and {other} ({monotone:.4f}) differ by more than twice their error")


CORRECTIONS.add_built_in(ExpectationMaximisation, Monotone, Smooth)
