"""Estimators that pool the instances: they fit the law of all ranks, then take each item's mean given its draws."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truerank.arrays import Floats, Ints, distinct_columns
from truerank.corrections.base import CORRECTIONS, Estimator, require_design
from truerank.corrections.closed_form import capped
from truerank.corrections.rank_laws import (
    Cells,
    Seen,
    SmoothFit,
    cells,
    expectation_maximisation,
    monotone_law,
    smooth_law,
    uniform_law,
)
from truerank.errors import InputError
from truerank.metrics.base import Term, Terms
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import SamplingDesign

# chances of cells, or terms in them, that are computed at once: 64 MB
_CHUNK = 8_000_000
# a law is fitted to at least so many relevant items, if there are
_FEW = 200
# numbers of relevant items, and places among them, that have laws of their own
_SMALL = 4


@dataclass(frozen=True)
class Pooled(Estimator):
    """An estimator that rests on the law of the ranks of all instances.

    The i-th of several relevant items stands the higher the more there are, and a metric may weight it by their number.
    So items have a law of their own for each i and each number of relevant items, both grouped where they are large, as
    long as 200 items share it. Ties are broken at random to fit a law, always in the same way.
    """

    @property
    def pools_instances(self) -> bool:
        return True

    @abstractmethod
    def fit(self, seen: Seen) -> Floats:
        """Return the law of the ranks: the chance of each cell."""

    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        require_design(ranks, name)
        laws = self._laws(ranks)
        places = np.arange(ranks.above.size)
        return tuple(Terms(PosteriorTerm(part.term, ranks, laws), places, part.weight) for part in parts)

    def hidden_error(self, parts: tuple[Terms, ...], ranks: Ranks) -> float:
        """Return the error of the posterior means and of the laws, the latter as if they were smooth ones.

        The laws of all groups rest on one assumption on their shape, so their errors may well have the same sign: they
        are added as they are, not in quadrature.
        """
        error = _Errors(ranks, Smooth()._smooth(ranks), self._laws(ranks))
        of_items, of_laws = np.zeros(2)
        for group in range(len(error.observed)):
            variance, deviation = error.of_group(group, parts)
            of_items, of_laws = of_items + variance, of_laws + deviation
        return float(np.hypot(np.sqrt(of_items), of_laws))

    def caveats(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[str, ...]:
        if ranks.drawn is None:
            return (
                f"{name} is driven by the assumed shape of the law of ranks where few candidates were sampled; "
                "inverse sampling tells more at the same cost",
            )
        ended = float(capped(ranks).mean())
        if not ended:
            return ()
        share = f"{ended:.1%}".replace("%", " %")
        return (
            f"the cap of {ranks.design} ended the draws for {share} of the relevant items, for which {name} rests on "
            "the assumed shape of the law of ranks",
        )

    def _mean(self, parts: tuple[Terms, ...], ranks: Ranks) -> float:
        """Return the mean over instances, ties in favour of relevant items."""
        total = 0.0
        for part in self.terms(parts, ranks, str(self)):
            values = part.term.term(ranks.rank, ranks.i, ranks.item_n_relevant, part.n)
            total += float(values.sum() if part.weight is None else values @ part.weight)
        return total / max(int((ranks.n_relevant > 0).sum()), 1)

    def _laws(self, ranks: Ranks) -> Laws:
        if self not in ranks.fits:
            observed = _observed(ranks)
            ranks.fits[self] = Laws(observed, tuple(self.fit(group.seen) for group in observed))
        return ranks.fits[self]


@dataclass(frozen=True)
class ExpectationMaximisation(Pooled):
    """EM from the uniform law, stopped after few steps (Jin et al., AAAI 2021)."""

    name = "em"
    steps: int = 20

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError(f"the steps of ~em(steps) must be at least 1, got {self.steps}.")

    def fit(self, seen: Seen) -> Floats:
        return expectation_maximisation(seen.likelihood, seen.weight, uniform_law(seen.cells), self.steps)


@dataclass(frozen=True)
class Monotone(Pooled):
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

    def fit(self, seen: Seen) -> Floats:
        return smooth_law(seen, self.penalty).law

    def caveats(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[str, ...]:
        """Also tell if a monotone law gives something else."""
        smooth, monotone = (estimator._mean(parts, ranks) for estimator in (self, Monotone()))
        notes = super().caveats(parts, ranks, name)
        if abs(smooth - monotone) <= 2 * self.hidden_error(parts, ranks):
            return notes
        other = f"{name.partition('~')[0]}~{Monotone()}"
        return (*notes, f"{name} and {other} ({monotone:.4f}) differ by more than twice their error")

    def _smooth(self, ranks: Ranks) -> tuple[SmoothFit, ...]:
        key = (self, "fit")
        if key not in ranks.fits:
            ranks.fits[key] = tuple(smooth_law(group.seen, self.penalty) for group in _observed(ranks))
        return ranks.fits[key]

    def _laws(self, ranks: Ranks) -> Laws:
        return Laws(_observed(ranks), tuple(fit.law for fit in self._smooth(ranks)))


CORRECTIONS.add_built_in(ExpectationMaximisation, Monotone, Smooth)


@dataclass(frozen=True, eq=False)
class Observed:
    """Relevant items that share a law: where they are, and which distinct observation each of them is."""

    items: Ints
    which: Ints
    seen: Seen


@dataclass(frozen=True, eq=False)
class Laws:
    """The law of each group of relevant items."""

    groups: tuple[Observed, ...]
    laws: tuple[Floats, ...]

    @cached_property
    def posteriors(self) -> tuple[Floats, ...]:
        """For each group the chance of each cell given each distinct observation."""
        return tuple(group.seen.posterior(law) for group, law in zip(self.groups, self.laws, strict=True))

    @cached_property
    def group(self) -> Ints:
        """Which group each relevant item belongs to."""
        found = np.empty(sum(group.items.size for group in self.groups), dtype=np.int64)
        for number, group in enumerate(self.groups):
            found[group.items] = number
        return found


def _observed(ranks: Ranks) -> tuple[Observed, ...]:
    """Return the groups of relevant items and how likely each count makes what was drawn for them."""
    if "observed" not in ranks.fits:
        untied = ranks.break_ties("random", rng=0) if ranks.tied.any() else ranks
        within = cells(int(ranks.item_irrelevant.max(initial=0)))
        ranks.fits["observed"] = tuple(_group(untied, items, within) for items in _groups(ranks))
    return ranks.fits["observed"]


def _groups(ranks: Ranks) -> list[Ints]:
    """Return items by the number of relevant items of their instance and their place among them."""
    key = _coarse(ranks.item_n_relevant) * (1 << 32) + _coarse(ranks.i)
    _, which, sizes = np.unique(key, return_inverse=True, return_counts=True)
    number = _joined(sizes)[which]
    return [np.flatnonzero(number == each) for each in range(int(number.max(initial=-1)) + 1)]


def _coarse(numbers: Ints) -> Ints:
    """Return small numbers as they are, and the same for larger ones that differ by a factor below about 1.4."""
    return np.where(numbers <= _SMALL, numbers, _SMALL + np.ceil(2 * np.log2(numbers / _SMALL))).astype(np.int64)


def _joined(sizes: Ints) -> Ints:
    """Return which group each of several neighbours belongs to, such that each group has enough items."""
    number, size, found = 0, 0, []
    left = int(sizes.sum())
    for each in sizes.tolist():
        if size >= _FEW and left >= _FEW:
            number, size = number + 1, 0
        found.append(number)
        size, left = size + each, left - each
    return np.array(found, dtype=np.int64)


def _group(ranks: Ranks, items: Ints, within: Cells) -> Observed:
    columns = [numbers[items] for numbers in (ranks.above, ranks.item_draws, ranks.item_irrelevant)]
    first, which = distinct_columns(*columns)
    weight = np.bincount(which, minlength=first.size).astype(np.float64)
    likelihood = _likelihood(require_design(ranks, "the estimate"), [column[first] for column in columns], within)
    return Observed(items, which, Seen(within, weight, likelihood))


def _likelihood(design: SamplingDesign, columns: list[Ints], within: Cells) -> Floats:
    """How likely each cell makes each observation, at the count of the cell next to its middle that is possible."""
    above, drawn, n_irrelevant = (column[:, None] for column in columns)
    count = np.clip(within.middles, *design.possible_counts(above, drawn, n_irrelevant))
    inside = (count >= within.starts) & (count < within.starts + within.sizes)
    log = design.log_likelihood(above, drawn, count, n_irrelevant)
    log = np.where(inside, log, -np.inf)
    return np.exp(log - log.max(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class PosteriorTerm(Term):
    """The mean of a term given what was drawn; what a term is given as n is here the place of the item."""

    base: Term
    ranks: Ranks
    laws: Laws

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        place, above = np.broadcast_arrays(n, rank - i)
        values = np.empty(place.shape)
        for number in range(len(self.laws.groups)):
            at = np.nonzero(self.laws.group[place] == number)
            values[at] = self._in_group(number, place[at], above[at])
        return values

    def _in_group(self, number: int, items: Ints, above: Ints) -> Floats:
        group = self.laws.groups[number]
        if not self.ranks.tied.any():
            chances, which = self.laws.posteriors[number], group.which[np.searchsorted(group.items, items)]
        else:
            chances, which = self._posterior(number, items, above)
        means, case = cell_means(self.base, self.ranks, items, group.seen.cells)
        return _row_products(chances, which, means, case)

    def _posterior(self, number: int, items: Ints, above: Ints) -> tuple[Floats, Ints]:
        """Return the chances of cells for counts that items with ties may have."""
        columns = [above, self.ranks.item_draws[items], self.ranks.item_irrelevant[items]]
        first, which = distinct_columns(*columns)
        within = self.laws.groups[number].seen.cells
        design = require_design(self.ranks, "the estimate")
        likelihood = _likelihood(design, [column[first] for column in columns], within)
        return Seen(within, np.ones(first.size), likelihood).posterior(self.laws.laws[number]), which


def cell_means(term: Term, ranks: Ranks, items: Ints, within: Cells) -> tuple[Floats, Ints]:
    """Return the mean of a term over each cell for the distinct cases of items, and which case each item is."""
    n = ranks.item_irrelevant + ranks.item_n_relevant
    first, case = distinct_columns(ranks.i[items], ranks.item_n_relevant[items], n[items])
    means = np.empty((first.size, len(within)))
    step = max(_CHUNK // within.points.size, 1)
    for start in range(0, first.size, step):
        some = items[first[start : start + step]][:, None, None]
        i, n_relevant = ranks.i[some], ranks.item_n_relevant[some]
        # a cell may go on beyond the candidates of some instances
        count = np.minimum(within.points, ranks.item_irrelevant[some])
        means[start : start + step] = term.term(count + i, i, n_relevant, n[some]).mean(axis=2)
    return means, case


def _row_products(a: Floats, which_a: Ints, b: Floats, which_b: Ints) -> Floats:
    """Return the sums of the products of rows of two matrices."""
    found = np.empty(which_a.size)
    step = max(_CHUNK // a.shape[1], 1)
    for start in range(0, found.size, step):
        part = slice(start, start + step)
        found[part] = np.einsum("uc,uc->u", a[which_a[part]], b[which_b[part]])
    return found


@dataclass(frozen=True, eq=False)
class _Errors:
    """The error of a mean of posterior means: what is open about each item, and about the law."""

    ranks: Ranks
    fits: tuple[SmoothFit, ...]
    laws: Laws

    @property
    def observed(self) -> tuple[Observed, ...]:
        return self.laws.groups

    def of_group(self, number: int, parts: tuple[Terms, ...]) -> tuple[float, float]:
        """Return M^-2 sum Var(f | data), and the root of g' H^-1 g with g = M^-1 sum Cov(f, B | data)."""
        group, fit = self.observed[number], self.fits[number]
        chances = self.laws.posteriors[number][group.which]
        values = self._values(group, parts)
        mean = np.einsum("uc,uc->u", chances, values)
        square = np.einsum("uc,uc,uc->u", chances, values, values)
        centred = chances * (values - mean[:, None])
        n = max(int((self.ranks.n_relevant > 0).sum()), 1)
        slope = centred.sum(axis=0) @ fit.basis / n
        return float(np.maximum(square - mean**2, 0.0).sum()) / n**2, fit.variance(slope) ** 0.5

    def _values(self, group: Observed, parts: tuple[Terms, ...]) -> Floats:
        total = np.zeros((group.items.size, len(group.seen.cells)))
        for part in parts:
            means, case = cell_means(part.term, self.ranks, group.items, group.seen.cells)
            total += means[case] if part.weight is None else part.weight[group.items, None] * means[case]
        return total
