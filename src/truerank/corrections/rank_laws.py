r"""The law of the ranks, estimated from all instances together by maximum likelihood.

A relevant item has a of N irrelevant candidates above it, of which j were seen among t drawn. The law p(a) of all
relevant items maximises sum_u log sum_a p(a) L_u(a); the likelihood L_u is that of the design, so each item may have
its own t, j and N. Three assumptions on p:

=========  ==========================================================================================
em         none; stopped after few steps from the uniform law, which is what it then rests on
monotone   it never rises with a: a mixture of uniform laws on 0..g, with nothing to tune
smooth     log p is a spline in log(a + 1) whose second differences are penalised
=========  ==========================================================================================

Counts are grouped into cells, single ones at the top and then growing with a ratio of 1.09; within a cell p is
uniform.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from truerank.arrays import Floats, Ints, frozen
from truerank.caching import cached

_SINGLE, _RATIO = 25, 1.09
# counts at which a function is looked at in a cell; smaller cells are summed in full
_POINTS = 8
_SPLINES = 10
_MOST_STEPS, _TOLERANCE = 60, 1e-9
# by how much the logarithm of a law may change in a step
_LONGEST = 3.0


@dataclass(frozen=True, eq=False)
class Cells:
    """Stretches of counts from 0 to the largest.

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
    """Distinct observations: how often each was made, and how likely each cell makes it.

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
    """Return the law after so many steps of EM: each is the mean of the posteriors under the one before."""
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
        Of the penalised likelihood at its maximum.
    """

    law: Floats
    basis: Floats
    information: Floats

    def variance(self, slope: Floats) -> float:
        """Return the variance of a function of the law whose slope in the coefficients is given."""
        return float(slope @ np.linalg.solve(self.information, slope))


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
    """Cubic B-splines in log(a + 1); a coefficient for each cell where there are few."""
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
    """Of the penalised likelihood: its slope, its information from the squares of single slopes, and its curvature."""

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
    # means of the splines given each observation, less those of the law
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
