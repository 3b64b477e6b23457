r"""Tables whose expectation is never below, or never above, what a relevant item adds to the metric.

Of N irrelevant candidates g stand above a relevant item, which adds f(g) to the exact metric; the sample shows h. An
*upper* table x satisfies

.. math:: \sum_h p(h \mid g) x_h \ge f(g) \quad \text{for every } g = 0..N,

a lower one the reverse. So the mean of upper tables over the instances has an expectation that is at least the exact
metric, wherever the relevant items are, with no assumption on the law of g. Of all upper tables we take the one that
gives the least end of a confidence interval, mean plus twice the standard error over 5,000 instances, if g follows a
falling power law. That law and that number of instances decide how sharp the table is, but not whether it holds.

Under the assumption that p(g) falls among the top tenth of the candidates, single counts in it are replaced by the
uniform laws on 0..G, of which every falling law is a mixture. That demands less of the table. Under the assumption that
it falls smoothly, they are replaced by smooth laws, of which those that the table violates are added one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from truerank.arrays import Bools, Floats, Ints, frozen
from truerank.caching import cached
from truerank.corrections.assumptions import Assumption
from truerank.corrections.quadratic import minimise
from truerank.corrections.smooth_laws import starting_laws, worst_law
from truerank.corrections.thinning import thinned
from truerank.sampling.laws import Law

# the law under which the sharpest table is chosen, p(g) ~ (g + 1)^-0.6, and the instances that are averaged
_POWER = 0.6
_INSTANCES = 5_000
_DEVIATIONS = 2.0
_VARIANCE = 0.05
# counts are taken one by one to here, then in steps that grow with them
_SINGLE = 20
_STEP, _FINEST, _COARSEST = 0.4, 0.02, 0.1
# each step is checked at so many places, and for what a parabola could do between them, twice over
_CHECKED = 2
_SAFETY = 2.0
# laws that are added to the conditions, and by how much the table may miss the last of them before it is raised
_MOST_LAWS = 60
_SLACK = 3e-5
_CHUNK = 4_000_000
_RIDGE = 1e-12


@dataclass(frozen=True)
class Draws(ABC):
    """What draws from N candidates can show, and how likely that is for each count above an item."""

    N: int

    @property
    @abstractmethod
    def top(self) -> int:
        """The last count that may be in the top, a tenth of the candidates of any sample that tables are fitted to."""

    @abstractmethod
    def rows(self, g: Ints) -> Floats:
        """Return the law of the outcomes for each count, a row each."""

    @abstractmethod
    def mean_rows(self, last: Ints) -> Floats:
        """Return the law of the outcomes if each of the counts 0..last is equally likely; `last` increases."""

    @abstractmethod
    def hats(self, breaks: tuple[int, ...]) -> Floats:
        """Return the functions of the outcomes that tables consist of, a column each; they add up to 1."""

    @abstractmethod
    def spread(self, g: int) -> float:
        """Return about how far from g the counts are that are hardly told from it."""

    @abstractmethod
    def fitted(self, table: Floats, m: int, sizes: Ints) -> Floats:
        """Return a table for samples of m draws from each of these numbers of candidates, all at most N."""

    def decided(self, g: Ints, values: Floats) -> Floats | None:
        """Return a table that is exact at every count for a function with these values; None if there is none."""
        return None

    @abstractmethod
    def width(self, m: int) -> int:
        """Return how many values such a table has."""

    @property
    @abstractmethod
    def n_outcomes(self) -> int:
        """How many outcomes there are."""


@dataclass(frozen=True)
class FixedDraws(Draws):
    """So many draws as were asked for; the outcome is the sampled count."""

    m: int
    law: Law

    @property
    def top(self) -> int:
        return self.N // 11  # tables serve some 6 % fewer candidates

    def rows(self, g: Ints) -> Floats:
        return self.law.rows(g, self.m, self.N)

    def mean_rows(self, last: Ints) -> Floats:
        return self.law.mean_rows(last, self.m, self.N)

    def hats(self, breaks: tuple[int, ...]) -> Floats:
        return _hats(_knots(self.m, [at * self.m / self.N for at in breaks]), self.m)

    def spread(self, g: int) -> float:
        of_draws = np.sqrt(self.law.spread(self.N, self.m)) if self.m < self.N or not self.law.distinct else 0.0
        share = min(max(g / self.N, 1 / self.m), 0.5)
        return float(self.N * np.sqrt(share * (1 - share)) * of_draws)

    def fitted(self, table: Floats, m: int, sizes: Ints) -> Floats:
        return thinned(table, m, sizes, self.N, self.law)

    def width(self, m: int) -> int:
        return m + 1

    @property
    def n_outcomes(self) -> int:
        return self.m + 1


@dataclass(frozen=True, eq=False)
class Setting:
    """What all tables for the same draws share.

    Attributes
    ----------
    g : array of int
        Counts at which f is needed, in increasing order.
    within : array of bool
        Which of them the table is solved for; the others check it.
    expectation : ndarray
        At each of the counts, the expectation of each of the hat functions that tables consist of.
    hats : ndarray, shape (outcomes, hats)
        Values of the hat functions at each outcome.
    shown : ndarray, shape (outcomes,)
        Law of the outcomes under the reference law.
    linear, quadratic : ndarray
        Mean and covariance of the hat functions under it.
    n_top : int
        How many of the counts are in the top, of whose law something is assumed.
    """

    g: Ints
    within: Bools
    expectation: Floats
    hats: Floats
    shown: Floats
    linear: Floats
    quadratic: Floats
    n_top: int

    longest_top: ClassVar[int] = -1
    """The last count that may be in the top."""

    @classmethod
    def of(cls, draws: Draws, breaks: tuple[int, ...], single: int) -> Self:
        """Return the setting for some draws; see `setting`."""
        last = min(draws.top, cls.longest_top)
        solved = _places(draws, (*breaks, last), single)
        g, within = cls._checked(solved, last)
        n_top = int(np.searchsorted(g, last, side="right"))
        hats = draws.hats(breaks)
        expectation, shown = _expected(g, draws, hats)
        expectation[:n_top] = cls._of_top(expectation[:n_top], g[:n_top], draws, hats)
        linear = shown @ hats
        quadratic = (hats.T * shown) @ hats - np.outer(linear, linear) + _RIDGE * np.eye(linear.size)
        arrays = (g, within, expectation, hats, shown, linear, quadratic)
        for array in arrays:
            frozen(array)
        return cls(*arrays, n_top)

    @classmethod
    def _checked(cls, solved: Ints, last: int) -> tuple[Ints, Bools]:
        """Return the counts at which the table is checked, and which of them it is solved for."""
        g = _refined(solved)
        return g, np.isin(g, solved)

    @classmethod
    def _of_top(cls, expectation: Floats, g: Ints, draws: Draws, hats: Floats) -> Floats:
        """Return what stands for the counts of the top, from the expectation at each of them."""
        return expectation

    @property
    def counts(self) -> Ints:
        """Counts at which f must be known."""
        return self.g

    def targets(self, values: Floats) -> Floats:
        """Return what the expectation of a table is compared with, from the values of f at `counts`."""
        return values

    def solve(self, target: Floats, *, upper: bool) -> Floats:
        """Return the table, a value per outcome, for an f that is at most about 1, from its `targets`."""
        sign = 1.0 if upper else -1.0
        linear, expectation, least = sign * self.linear, sign * self.expectation, sign * target
        rows, bounds = self._conditions(expectation, least)
        rough = minimise(linear, self._weighted(_VARIANCE), rows, bounds)
        quadratic = self._weighted(max(float(rough @ self.quadratic @ rough), 1e-6))
        for _ in range(_MOST_LAWS):
            x = minimise(linear, quadratic, rows, bounds)
            law = self._violated(expectation @ x - least)
            if law is None:
                break
            rows, bounds = np.vstack([rows, law @ expectation]), np.append(bounds, law @ least)
        return self.hats @ x + sign * self._shortfall(expectation @ x - least)

    def _weighted(self, variance: float) -> Floats:
        """The covariance, weighted for the end of an interval of a table with about this variance."""
        return _DEVIATIONS / np.sqrt(_INSTANCES * variance) * self.quadratic

    def _conditions(self, expectation: Floats, least: Floats) -> tuple[Floats, Floats]:
        """Return the rows of the table's expectation that are bounded from below, and their bounds."""
        return expectation[self.within], least[self.within]

    def _violated(self, excess: Floats) -> Floats | None:
        """Return an allowed law of the counts, the more it is violated the better; None if that isn't worth while."""
        return None

    def _shortfall(self, excess: Floats) -> float:
        """How much is missing to an excess of at least 0 at and between the counts."""
        return max(0.0, -_lowest(self.g[self.n_top :], excess[self.n_top :]), -self._lowest_of_top(excess))

    def _lowest_of_top(self, excess: Floats) -> float:
        """Least mean excess under the laws that are allowed in the top."""
        return _lowest(self.g[: self.n_top], excess[: self.n_top])


class FallingSetting(Setting):
    """Counts G of the top stand for the uniform law on 0..G."""

    longest_top = 1 << 16

    @classmethod
    def _of_top(cls, expectation: Floats, g: Ints, draws: Draws, hats: Floats) -> Floats:
        return np.asarray(draws.mean_rows(g) @ hats)

    @property
    def counts(self) -> Ints:
        return np.concatenate([np.arange(self._top_size), self.g[self.n_top :]])

    @property
    def _top_size(self) -> int:
        """All counts of the top, each of which a mean over 0..G needs."""
        return int(self.g[self.n_top - 1]) + 1 if self.n_top else 0

    def targets(self, values: Floats) -> Floats:
        top = self.g[: self.n_top]
        means = np.cumsum(values[..., : self._top_size], axis=-1)[..., top] / (top + 1.0)
        return np.concatenate([means, values[..., self._top_size :]], axis=-1)


class SmoothSetting(Setting):
    """The table need not hold at single counts of the top, but under each smooth law on all of them."""

    longest_top = 1 << 13

    @classmethod
    def _checked(cls, solved: Ints, last: int) -> tuple[Ints, Bools]:
        g = np.union1d(np.arange(last + 1), _refined(solved))
        return g, np.isin(g, solved) & (g > last)

    def _conditions(self, expectation: Floats, least: Floats) -> tuple[Floats, Floats]:
        rows, bounds = super()._conditions(expectation, least)
        laws = starting_laws(self.n_top)
        return (
            np.concatenate([laws @ expectation[: self.n_top], rows]),
            np.concatenate([laws @ least[: self.n_top], bounds]),
        )

    def _violated(self, excess: Floats) -> Floats | None:
        law = np.zeros(excess.size)
        law[: self.n_top] = worst_law(excess[: self.n_top])
        return law if law @ excess < -_SLACK else None

    def _lowest_of_top(self, excess: Floats) -> float:
        top = excess[: self.n_top]
        return float(worst_law(top) @ top)


_KINDS: dict[Assumption, type[Setting]] = {"nothing": Setting, "falling": FallingSetting, "smooth": SmoothSetting}


def _lowest(g: Ints, excess: Floats) -> float:
    """Least value at the counts, and at the integers between them if the second derivative is what it seems."""
    lowest = float(excess.min(initial=np.inf))
    if g.size < 3:
        return lowest
    steps = np.diff(g).astype(np.float64)
    slopes = np.diff(excess) / steps
    bend = np.abs(2 * np.diff(slopes) / (steps[1:] + steps[:-1]))
    bend = np.concatenate([bend[:1], bend, bend[-1:]])
    dip = _SAFETY * np.maximum(bend[1:], bend[:-1]) * steps**2 / 8
    between = np.minimum(excess[1:], excess[:-1]) - np.where(steps > 1, dip, 0.0)
    return min(lowest, float(between.min()))


@cached
def setting(
    draws: Draws, breaks: tuple[int, ...] = (), *, assume: Assumption = "nothing", single: int = _SINGLE
) -> Setting:
    """Return what tables for the same draws share.

    Parameters
    ----------
    draws : Draws
    breaks : tuple of int
        Last counts before f jumps.
    assume : {"nothing", "falling", "smooth"}
        What is assumed of the law of the counts among the top tenth of the candidates.
    single : int
        Counts below this one are taken one by one.
    """
    return _KINDS[assume].of(draws, breaks, single)


def reference(g: Ints) -> Floats:
    """Weights of the counts under the law for which tables are sharpest: each stands for those since the one before."""
    below = (g + 1.5) ** (1 - _POWER) - 0.5 ** (1 - _POWER)
    return np.diff(below, prepend=0.0) / below[-1]


def _places(draws: Draws, breaks: Iterable[int], single: int) -> Ints:
    """Counts for which a table is solved."""
    found, N = [0], draws.N
    while found[-1] < N:
        g = found[-1]
        step = np.clip(_STEP * draws.spread(g), _FINEST * g, _COARSEST * g)
        found.append(min(N, g + (1 if g < single else max(1, int(step)))))
    near = [at + shift for at in breaks for shift in range(-2, 4)]
    return np.unique([*found, *(g for g in near if 0 <= g <= N)]).astype(np.int64)


def _refined(g: Ints) -> Ints:
    """The same counts and some between them."""
    between = g[:-1, None] + np.diff(g)[:, None] * np.arange(_CHECKED) // _CHECKED
    return np.unique(np.append(between, g[-1]))


def _knots(m: int, centres: Iterable[float]) -> Ints:
    """Sampled counts at which a table may bend."""
    near = [(centre, np.sqrt(max(centre, 1.0))) for centre in centres]
    found = [0]
    while found[-1] < m:
        h = found[-1]
        fine = any(abs(h - centre) < 6 * width for centre, width in near)
        step = max(1, int(0.5 * np.sqrt(h)), 0 if fine else int(0.15 * h))
        found.append(min(m, h + step))
    return np.array(found)


def _hats(knots: Ints, m: int) -> Floats:
    """Hat functions of the knots at h = 0..m: the columns add up to 1."""
    h = np.arange(m + 1)
    return np.stack([np.interp(h, knots, one) for one in np.eye(knots.size)], axis=1)


def _expected(g: Ints, draws: Draws, tables: Floats) -> tuple[Floats, Floats]:
    """Expectations of tables at each count, and the law of the outcomes under the reference law."""
    weight, means, shown = reference(g), np.empty((g.size, tables.shape[1])), np.zeros(draws.n_outcomes)
    step = max(1, _CHUNK // draws.n_outcomes)
    for start in range(0, g.size, step):
        part = slice(start, start + step)
        rows = draws.rows(g[part])
        means[part] = rows @ tables
        shown += weight[part] @ rows
    return means, shown
