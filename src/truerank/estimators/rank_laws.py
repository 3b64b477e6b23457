"""The law of the true ranks, estimated from sampled counts, and the posterior of each item's rank given that law."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from truerank.core.caching import cached
from truerank.core.checks import Floats, Ints, distinct_columns, frozen, slices
from truerank.core.ranks import Ranks
from truerank.estimators.corrected import fitted, require_design
from truerank.metrics.definitions import Term, Terms
from truerank.sampling.designs import SamplingDesign

Value = TypeVar("Value")

_SINGLE, _RATIO = 25, 1.09
# counts at which a function is evaluated in a cell; smaller cells are summed in full
_POINTS = 8
_SPLINES = 10
_MOST_STEPS, _TOLERANCE = 60, 1e-9
# by how much the logarithm of a law may change in a step
_LONGEST = 3.0


@dataclass(frozen=True, eq=False)
class Cells:
    """Consecutive intervals of counts from 0 to the largest.

    Attributes
    ----------
    starts, sizes : arrays of int
        First count and number of counts of each cell.
    middles : array of int
        The count at which the likelihood of a cell is taken.
    points : array of int, shape (cells, 8)
        Counts over which a function is averaged.
    """

    starts: Ints
    sizes: Ints
    middles: Ints
    points: Ints

    def __len__(self) -> int:
        return self.starts.size


@cached
def cells(largest: int) -> Cells:
    """Return the cells that cover the counts 0..largest.

    Examples
    --------
    >>> found = cells(3_540)
    >>> len(found), found.starts[:3].tolist(), found.starts[23:29].tolist(), int(found.sizes.sum())
    (80, [0, 1, 2], [23, 24, 27, 30, 33, 36], 3541)
    """
    starts = list(range(min(_SINGLE, largest + 1)))
    while (following := max(starts[-1] + 1, math.ceil(starts[-1] * _RATIO))) <= largest:
        starts.append(following)
    return cells_at(np.array(starts), largest)


def cells_at(first: Ints, largest: int) -> Cells:
    """Return the cells that begin with these counts and cover 0..largest."""
    sizes = np.diff(np.append(first, largest + 1))
    shares = (np.arange(_POINTS) + 0.5) / _POINTS
    points = first[:, None] + (shares * sizes[:, None]).astype(np.int64)
    return Cells(frozen(first), frozen(sizes), frozen(first + (sizes - 1) // 2), frozen(points))


@dataclass(frozen=True, eq=False)
class Seen:
    """Distinct observations: how often each was made, and its likelihood in each cell.

    Attributes
    ----------
    cells : Cells
    weight : array of float, one per observation
    likelihood : array of shape (observations, cells)
        Mean over the counts of a cell, up to a factor per observation.
    """

    cells: Cells
    weight: Floats
    likelihood: Floats

    def posterior(self, law: Floats) -> Floats:
        """Return the chance of each cell given each observation."""
        joint = self.likelihood * law
        joint /= joint.sum(axis=1, keepdims=True)
        return joint

    def log_likelihood(self, law: Floats) -> float:
        return float(self.weight @ np.log(self.likelihood @ law))


def uniform_law(within: Cells) -> Floats:
    """Return the law under which every count is equally likely."""
    return within.sizes / within.sizes.sum()


def expectation_maximisation(likelihood: Floats, weight: Floats, law: Floats, steps: int) -> Floats:
    """Return the law after this many steps of EM: each is the mean of the posteriors under the one before."""
    share = weight / weight.sum()
    for _ in range(steps):
        law = law * ((share / (likelihood @ law)) @ likelihood)
    return law


def monotone_law(seen: Seen, steps: int) -> Floats:
    """Return a law that never rises: EM over the weights of uniform laws that end with each cell."""
    sizes = seen.cells.sizes
    ends = np.cumsum(sizes)
    # chance of an observation under the uniform law on all cells up to each
    of_uniform = np.cumsum(seen.likelihood * sizes, axis=1) / ends
    mixture = expectation_maximisation(of_uniform, seen.weight, np.full(sizes.size, 1 / sizes.size), steps)
    return sizes * np.cumsum((mixture / ends)[::-1])[::-1]


@dataclass(frozen=True, eq=False)
class SmoothFit:
    """A smooth law, and how well the data determine it.

    Attributes
    ----------
    law : array of float, one per cell
    basis : array of shape (cells, splines)
    information : array of shape (splines, splines)
        Information matrix of the penalised likelihood at its maximum.
    """

    law: Floats
    basis: Floats
    information: Floats

    def variance(self, slope: Floats) -> float:
        """Return the variance of a function of the law whose slope in the coefficients is given."""
        # rounding may leave slightly less than 0
        return max(float(slope @ np.linalg.solve(self.information, slope)), 0.0)


def smooth_law(seen: Seen, penalty: float) -> SmoothFit:
    """Return the law whose logarithm is a penalised spline, by Newton's method with halved steps."""
    basis = _splines(seen.cells)
    rough = np.diff(np.eye(basis.shape[1]), n=2, axis=0)
    rough = penalty * rough.T @ rough
    coefficients = np.zeros(basis.shape[1])
    best = _penalised(seen, basis, rough, coefficients)
    for _ in range(_MOST_STEPS):
        slopes = _slopes(seen, basis, rough, coefficients)
        before = best
        coefficients, best = _halved(seen, basis, rough, coefficients, slopes.step(), best)
        if best - before <= _TOLERANCE * (1 + abs(best)):
            break
    information = _slopes(seen, basis, rough, coefficients).information
    return SmoothFit(_law(seen.cells, basis, coefficients), basis, information)


def _splines(within: Cells) -> Floats:
    """Return cubic B-splines in log(a + 1), or a coefficient per cell where there are few cells."""
    if len(within) <= _SPLINES:
        return np.eye(len(within))
    from scipy.interpolate import BSpline

    place = np.log1p(within.middles)
    inner = np.linspace(0.0, place[-1], _SPLINES - 2)
    knots = np.concatenate([[0.0] * 3, inner, [place[-1]] * 3])
    return np.asarray(BSpline.design_matrix(place, knots, 3).toarray(), dtype=np.float64)


def _law(within: Cells, basis: Floats, coefficients: Floats) -> Floats:
    log = np.log(within.sizes) + basis @ coefficients
    weights = np.exp(log - log.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def _penalised(seen: Seen, basis: Floats, rough: Floats, coefficients: Floats) -> float:
    bend = float(coefficients @ rough @ coefficients) / 2
    return seen.log_likelihood(_law(seen.cells, basis, coefficients)) - bend


class _Slopes(NamedTuple):
    """The penalised likelihood's slope, its information from the squares of single slopes, and its curvature."""

    slope: Floats
    information: Floats
    curvature: Floats

    def step(self) -> Floats:
        """Return Newton's step, or that of Fisher scoring where the likelihood is not concave, if not too long."""
        concave = np.linalg.eigvalsh(self.curvature)[0] > 0.0
        step = np.linalg.solve(self.curvature if concave else self.information, self.slope)
        return np.asarray(step * (_LONGEST / max(float(np.abs(step).max()), _LONGEST)), dtype=np.float64)


def _slopes(seen: Seen, basis: Floats, rough: Floats, coefficients: Floats) -> _Slopes:
    law = _law(seen.cells, basis, coefficients)
    joint = seen.likelihood @ (law[:, None] * np.column_stack([basis, np.ones(law.size)]))
    # means of the splines given each observation, minus those of the law
    overall = law @ basis
    single = joint[:, :-1] / joint[:, -1:] - overall
    slope, squares = seen.weight @ single, (single.T * seen.weight) @ single
    # the chances of cells given each observation, summed
    shares = law * ((seen.weight / joint[:, -1]) @ seen.likelihood)
    apart = basis - overall
    spread = (apart.T * (seen.weight.sum() * law - shares)) @ apart
    # a constant added to all coefficients changes nothing
    free = rough + np.ones_like(rough)
    return _Slopes(slope - rough @ coefficients, squares + free, spread + squares + free)


def _halved(seen: Seen, basis: Floats, rough: Floats, start: Floats, step: Floats, best: float) -> tuple[Floats, float]:
    """Go as far along the step as the likelihood rises."""
    for _ in range(_MOST_STEPS):
        if (reached := _penalised(seen, basis, rough, start + step)) > best:
            return start + step, reached
        step = step / 2
    return start, best


# chances of cells, or terms in them, that are computed at once: 64 MB
_CHUNK = 8_000_000
# the same where they are used several times: a part of the cache
_BLOCK = 200_000
# a law is fitted to at least this many relevant items, if there are that many
_FEW = 200
# numbers of relevant items, and places among them, that have laws of their own
_SMALL = 4
# binary digits of the numbers of candidates
_DIGITS = 10
# terms whose means are kept
_KEPT = 16


@dataclass(frozen=True, eq=False)
class Observed:
    """Relevant items that share a law.

    Attributes
    ----------
    items : array of int
        Their positions among all relevant items.
    which : array of int
        The row of each item in `seen`. Items of a row agree in what was drawn for them and in everything that the terms
        of metrics depend on.
    examples : array of int
        An item of each row.
    seen : Seen
    """

    items: Ints
    which: Ints
    examples: Ints
    seen: Seen

    @cached_property
    def _cell_means(self) -> dict[Term, tuple[Floats, Ints]]:
        return {}

    def cell_means(self, term: Term, ranks: Ranks) -> tuple[Floats, Ints]:
        """Return the mean of a term over each cell for the distinct cases of the rows, and the case of each row."""
        found = self._cell_means.get(term)
        return found or _kept(self._cell_means, term, cell_means(term, ranks, self.examples, self.seen.cells))


@dataclass(frozen=True, eq=False)
class RankLaws:
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

    @cached_property
    def _posterior_means(self) -> dict[Term, Floats]:
        return {}

    def posterior_means(self, term: Term, ranks: Ranks) -> Floats:
        """Return the mean of a term for each relevant item of ranks without ties, given what was drawn for it."""
        if term in self._posterior_means:
            return self._posterior_means[term]
        found = np.empty(ranks.above.size)
        for group, chances in zip(self.groups, self.posteriors, strict=True):
            means, case = group.cell_means(term, ranks)
            found[group.items] = _row_products(chances, means, case)[group.which]
        return _kept(self._posterior_means, term, found)


def _kept(cache: dict[Term, Value], term: Term, value: Value) -> Value:
    """Cache a value computed for a term, and forget the oldest one if there are many."""
    if len(cache) >= _KEPT:
        del cache[next(iter(cache))]
    cache[term] = value
    return value


@fitted
def observed(ranks: Ranks) -> tuple[Observed, ...]:
    """Return the groups of relevant items and the likelihood, for each count, of what was drawn for them."""
    untied = ranks.break_ties("random", rng=0) if ranks.tied.any() else ranks
    within = cells(int(ranks.item_irrelevant.max(initial=0)))
    return tuple(_group(untied, items, within) for items in _groups(ranks))


def _sizes(ranks: Ranks, items: Ints) -> Ints:
    """Return the irrelevant candidates of items, to ten binary digits unless half of them were drawn.

    Instances that differ by less than 0.1 % in their candidates then share what is computed.
    """
    exact = ranks.item_irrelevant[items]
    step = 1 << np.maximum(np.frexp(exact)[1] - _DIGITS, 0)
    rounded = (exact + step // 2) // step * step
    return np.where(2 * ranks.item_draws[items] < exact, rounded, exact)


def _groups(ranks: Ranks) -> list[Ints]:
    """Return items by the number of relevant items of their instance and their place among them."""
    key = _coarse(ranks.item_n_relevant) * (1 << 32) + _coarse(ranks.i)
    _, which, sizes = np.unique(key, return_inverse=True, return_counts=True)
    number = _joined(sizes)[which]
    return [np.flatnonzero(number == each) for each in range(int(number.max(initial=-1)) + 1)]


def _coarse(numbers: Ints) -> Ints:
    """Return small numbers unchanged, and one number for larger ones that differ by a factor below about 1.4."""
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
    columns = [ranks.above[items], ranks.item_draws[items], _sizes(ranks, items)]
    first, which = distinct_columns(*columns, ranks.i[items], ranks.item_n_relevant[items])
    weight = np.bincount(which, minlength=first.size).astype(np.float64)
    likelihood = _likelihood(require_design(ranks, "the estimate"), [column[first] for column in columns], within)
    return Observed(items, which, items[first], Seen(within, weight, likelihood))


def _likelihood(design: SamplingDesign, columns: list[Ints], within: Cells) -> Floats:
    """Return the likelihood of each observation in each cell, at the possible count nearest to the cell's middle."""
    found = np.empty((columns[0].size, len(within)))
    for part in slices(len(found), _BLOCK // len(within)):
        above, drawn, n_irrelevant = (column[part, None] for column in columns)
        count = np.clip(within.middles, *design.possible_counts(above, drawn, n_irrelevant))
        inside = (count >= within.starts) & (count < within.starts + within.sizes)
        log = np.where(inside, design.log_likelihood(above, drawn, count, n_irrelevant), -np.inf)
        np.exp(log - log.max(axis=1, keepdims=True), out=found[part])
    return found


@dataclass(frozen=True, eq=False)
class PosteriorTerm(Term):
    """The mean of a term given what was drawn; the argument n of a term is here the place of the item."""

    base: Term
    ranks: Ranks
    laws: RankLaws

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        if not self.ranks.tied.any():
            return self.laws.posterior_means(self.base, self.ranks)[n]
        place, above = np.broadcast_arrays(n, rank - i)
        values = np.empty(place.shape)
        for number in range(len(self.laws.groups)):
            at = np.nonzero(self.laws.group[place] == number)
            values[at] = self._in_group(number, place[at], above[at])
        return values

    def _in_group(self, number: int, items: Ints, above: Ints) -> Floats:
        """Return the means for the counts that items of a group may have because of ties."""
        columns = [above, self.ranks.item_draws[items], self.ranks.item_irrelevant[items]]
        first, which = distinct_columns(*columns)
        within, design = self.laws.groups[number].seen.cells, require_design(self.ranks, "the estimate")
        likelihood = _likelihood(design, [column[first] for column in columns], within)
        chances = Seen(within, np.ones(first.size), likelihood).posterior(self.laws.laws[number])
        means, case = cell_means(self.base, self.ranks, items, within)
        return _row_products(chances[which], means, case)


def cell_means(term: Term, ranks: Ranks, items: Ints, within: Cells) -> tuple[Floats, Ints]:
    """Return the mean of a term over each cell for the distinct cases of items, and which case each item is."""
    columns = (ranks.i[items], ranks.item_n_relevant[items], _sizes(ranks, items))
    first, case = distinct_columns(*columns)
    means = np.empty((first.size, len(within)))
    for part in slices(first.size, _CHUNK // within.points.size):
        i, n_relevant, size = (numbers[first[part], None, None] for numbers in columns)
        # a cell may extend beyond the candidates of some instances
        count = np.minimum(within.points, size)
        means[part] = term.term(count + i, i, n_relevant, size + n_relevant).mean(axis=2)
    return means, case


def _row_products(a: Floats, b: Floats, which_b: Ints) -> Floats:
    """Return the sums of the products of rows of two matrices."""
    found = np.empty(len(a))
    for part in slices(found.size, _BLOCK // a.shape[1]):
        found[part] = np.einsum("uc,uc->u", a[part], b[which_b[part]])
    return found


def errors(
    parts: tuple[Terms, ...], ranks: Ranks, group: Observed, posteriors: Floats, fit: SmoothFit
) -> tuple[float, float]:
    """Return the uncertainty about the items of a group, and about its law, in a mean of posterior means.

    They are the variance M^-2 sum Var(f | data), and the square root of g' H^-1 g with g = M^-1 sum Cov(f, B | data).
    """
    variance, covariance = 0.0, np.zeros(len(group.seen.cells))
    for rows, times, values in _weighted(parts, ranks, group):
        chances = posteriors[rows]
        joint = chances * values
        mean = joint.sum(axis=1)
        variance += float(np.maximum(np.einsum("uc,uc->u", joint, values) - mean**2, 0.0) @ times)
        covariance += times @ joint - (times * mean) @ chances
    n = max(int((ranks.n_relevant > 0).sum()), 1)
    return variance / n**2, fit.variance(covariance @ fit.basis / n) ** 0.5


def _weighted(parts: tuple[Terms, ...], ranks: Ranks, group: Observed) -> Iterator[tuple[Ints, Floats, Floats]]:
    """Yield rows of a group, how often each counts, and the mean of a metric over each cell, weights included.

    Where relevant items have weights of their own, each of them is a row.
    """
    cases = [group.cell_means(part.term, ranks) for part in parts]
    weights = [None if part.weight is None else part.weight[group.items] for part in parts]
    alike = all(weight is None for weight in weights)
    rows = np.arange(group.examples.size) if alike else group.which
    times = group.seen.weight if alike else np.ones(rows.size)
    for some in slices(rows.size, _BLOCK // len(group.seen.cells)):
        values = sum(
            means[case[rows[some]]] if weight is None else weight[some, None] * means[case[rows[some]]]
            for weight, (means, case) in zip(weights, cases, strict=True)
        )
        yield rows[some], times[some], np.asarray(values)
