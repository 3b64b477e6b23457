"""Bounds that hold for every law of the ranks: tables never below, or never above, the metric.

A table solves a quadratic programme: its expectation is bounded at each count or, if something is assumed about the law
of the ranks among the top tenth of the candidates, under the worst of the allowed laws, which are added to the
conditions one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import linalg, sparse

from truerank.core.caching import cached
from truerank.core.checks import Bools, Floats, Ints, frozen, slices
from truerank.estimators.corrected import LEAST_AT_TWICE, Assumption
from truerank.estimators.draws import Draws

# the law under which the sharpest table is chosen, p(g) ~ (g + 1)^-0.6, and the instances that are averaged
_POWER = 0.6
_INSTANCES = 5_000
_DEVIATIONS = 2.0
_VARIANCE = 0.05
# counts are taken one by one up to here, then in steps that grow with them
_SINGLE = 20
_STEP, _FINEST, _COARSEST = 0.4, 0.02, 0.1
# each step is checked at this many places, and for what a parabola could do between them, twice over
_CHECKED = 2
_SAFETY = 2.0
# laws that are added to the conditions, and by how much the table may miss the last of them before it is raised
_MOST_LAWS = 60
_SLACK = 3e-5
_CHUNK = 4_000_000
_RIDGE = 1e-12
# the mean of the worst law is found by dividing it by the sum of the law until that changes nothing
_ROUNDS = 50
_SAME = 1e-13
# staircases with their first step at ranks that grow by this factor
_APART = 1.6
_STEPS = 60
_CLOSE = 1e-10
_INSIDE = 0.99
# of the mean diagonal: keeps the factorisation positive definite when a column hardly matters
_SOLVER_RIDGE = 1e-13


@cached
def setting(
    draws: Draws, breaks: tuple[int, ...] = (), *, assume: Assumption = "nothing", single: int = _SINGLE
) -> Setting:
    """Return the setting that tables for the same draws share.

    Parameters
    ----------
    draws : Draws
    breaks : tuple of int
        Last counts before f jumps.
    assume : {"nothing", "falling", "smooth"}
        What is assumed about the law of the counts among the top tenth of the candidates.
    single : int
        Counts below this one are taken one by one.
    """
    return _KINDS[assume].of(draws, breaks, single)


def reference(g: Ints) -> Floats:
    """Weights of the counts under the law for which tables are sharpest: each represents those since the one before."""
    below = (g + 1.5) ** (1 - _POWER) - 0.5 ** (1 - _POWER)
    return np.diff(below, prepend=0.0) / below[-1]


def _solved_counts(draws: Draws, breaks: Iterable[int], single: int) -> Ints:
    """Counts for which a table is solved."""
    found, N = [0], draws.N
    while found[-1] < N:
        g = found[-1]
        step = np.clip(_STEP * draws.spread(g), _FINEST * g, _COARSEST * g)
        found.append(min(N, g + (1 if g < single else max(1, int(step)))))
    near = [at + shift for at in breaks for shift in range(-2, 4)]
    return np.unique([*found, *(g for g in near if 0 <= g <= N)]).astype(np.int64)


def _refined(g: Ints) -> Ints:
    """Return the same counts and some between them."""
    between = g[:-1, None] + np.diff(g)[:, None] * np.arange(_CHECKED) // _CHECKED
    return np.unique(np.append(between, g[-1]))


@dataclass(frozen=True, eq=False)
class Setting:
    """Everything that tables for the same draws share.

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
        How many of the counts are in the top, about whose law something is assumed.
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
        solved = _solved_counts(draws, (*breaks, last), single)
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
        """Return the rows that represent the counts of the top, from the expectation at each of them."""
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
        """Return an allowed law of the counts that is violated as much as possible; None if that isn't worth it."""
        return None

    def _shortfall(self, excess: Floats) -> float:
        """Return how far the excess falls below 0 at and between the counts."""
        return max(0.0, -_lowest(self.g[self.n_top :], excess[self.n_top :]), -self._lowest_of_top(excess))

    def _lowest_of_top(self, excess: Floats) -> float:
        """Least mean excess under the laws that are allowed in the top."""
        return _lowest(self.g[: self.n_top], excess[: self.n_top])


class FallingSetting(Setting):
    """The setting in which counts G of the top represent the uniform law on 0..G."""

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
    """The setting in which a table must hold under every smooth law on the top, not at its single counts."""

    longest_top = 1 << 13

    @classmethod
    def _checked(cls, solved: Ints, last: int) -> tuple[Ints, Bools]:
        g = np.union1d(np.arange(last + 1), _refined(solved))
        return g, np.isin(g, solved) & (g > last)

    def _conditions(self, expectation: Floats, least: Floats) -> tuple[Floats, Floats]:
        rows, bounds = super()._conditions(expectation, least)
        laws = starting_laws(self.n_top)
        of_top, least_of_top = laws @ expectation[: self.n_top], laws @ least[: self.n_top]
        return np.concatenate([of_top, rows]), np.concatenate([least_of_top, bounds])

    def _violated(self, excess: Floats) -> Floats | None:
        law = np.zeros(excess.size)
        law[: self.n_top] = worst_law(excess[: self.n_top])
        return law if law @ excess < -_SLACK else None

    def _lowest_of_top(self, excess: Floats) -> float:
        top = excess[: self.n_top]
        return float(worst_law(top) @ top)


_KINDS: dict[Assumption, type[Setting]] = {"nothing": Setting, "falling": FallingSetting, "smooth": SmoothSetting}


def _lowest(g: Ints, excess: Floats) -> float:
    """Least value at the counts, and at the integers between them as far as the estimated second derivative tells."""
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


def _expected(g: Ints, draws: Draws, tables: Floats) -> tuple[Floats, Floats]:
    """Expectations of tables at each count, and the law of the outcomes under the reference law."""
    weight, means, shown = reference(g), np.empty((g.size, tables.shape[1])), np.zeros(draws.n_outcomes)
    for part in slices(g.size, _CHUNK // draws.n_outcomes):
        rows = draws.rows(g[part])
        means[part] = rows @ tables
        shown += weight[part] @ rows
    return means, shown


def worst_law(numbers: Floats) -> Floats:
    """Return the smooth law on 0..G, as probabilities, under which the mean of the numbers is least.

    Examples
    --------
    >>> worst_law(np.array([-1.0, 0.0, 0.0, 0.0])).round(3)  # as steep as allowed: 1, 1/4, 1/16, 1/16
    array([0.727, 0.182, 0.045, 0.045])
    >>> worst_law(np.array([1.0, 0.0, 0.0])).round(3)
    array([0.333, 0.333, 0.333])
    """
    least = float(numbers.min(initial=0.0))
    law = _least_sum(numbers - float(numbers.mean()))
    for _ in range(_ROUNDS):
        mean = float(law @ numbers) / float(law.sum())
        law = _least_sum(numbers - mean)
        if float(law @ numbers) / float(law.sum()) > mean - _SAME * max(abs(mean), abs(least)):
            break
    return law / law.sum()


def starting_laws(size: int) -> Floats:
    """Return staircases with one step, and with as many steps as they can have; a row each."""
    first = np.unique(np.minimum(_APART ** np.arange(np.log(size) / np.log(_APART) + 1), size).astype(int))
    doubled = [[b << power for power in range((size // b).bit_length())] for b in first.tolist()]
    laws = np.array([_staircase(np.array(steps), size) for steps in [*first[:, None].tolist(), *doubled]])
    return laws / laws.sum(axis=1, keepdims=True)


def smooth_conditions(size: int, n: int) -> Any:
    """Return a sparse matrix whose product with n probabilities has no entry above 0 if the first `size` are smooth.

    Examples
    --------
    >>> conditions = smooth_conditions(3, 4)
    >>> [bool((conditions @ np.array(law)).max() <= 0) for law in ([4, 1, 1, 0], [4, 0.5, 0.5, 0], [1, 2, 2, 2])]
    [True, False, False]
    """
    here, after = (sparse.eye_array(size - 1, n, k=shift, format="csr") for shift in (0, 1))
    rank = np.arange(1, size // 2 + 1)
    ones, rows = np.ones(rank.size), rank - 1
    once, twice = (sparse.csr_array((ones, (rows, r - 1)), shape=(rank.size, n)) for r in (rank, 2 * rank))
    return sparse.vstack([after - here, LEAST_AT_TWICE * once - twice])


def _staircase(steps: Ints, size: int) -> Floats:
    """Return 1 for the ranks up to the first step, and a quarter of the value before after each step."""
    return np.asarray(LEAST_AT_TWICE ** np.searchsorted(steps, np.arange(1, size + 1)))


def _least_sum(numbers: Floats) -> Floats:
    """Return the staircase that begins with 1 under which the sum of the numbers is least."""
    size = numbers.size
    if size > 1 and size % 2 and numbers[-1] > 0:
        return np.append(_least_sum(numbers[:-1]), 0.0)
    best, steps = _best_steps(np.append(0.0, np.cumsum(numbers))), []
    at = int(best[min(1, size)])
    while at < size:
        steps.append(at)
        at = int(best[min(2 * at, size)])
    return _staircase(np.array(steps, dtype=np.int64), size)


def _best_steps(sums: Floats) -> Ints:
    """Return the best step among each rank and all later ones; the last rank means no step."""
    size = sums.size - 1
    # the sum over a staircase of height 1 that has a step after a rank, and the least such sum from a rank on
    whole, least, best = sums.copy(), np.full(size + 1, sums[-1]), np.arange(size + 1)
    high = size
    while high > 1:
        low = (high + 1) // 2
        step = np.arange(low, high)
        whole[step] += LEAST_AT_TWICE * (least[np.minimum(2 * step, size)] - sums[step])
        _extend(whole, least, best, low, high)
        high = low
    return best


def _extend(whole: Floats, least: Floats, best: Ints, low: int, high: int) -> None:
    """Fill in the least value at each place and all later ones, and its place, for places from low to below high."""
    backwards = np.append(whole[low:high], least[high])[::-1]
    least[low:high] = np.minimum.accumulate(backwards)[:0:-1]
    new = np.append(True, backwards[1:] < np.minimum.accumulate(backwards)[:-1])
    place = np.append(np.arange(low, high), best[high])[::-1]
    last_new = np.maximum.accumulate(np.where(new, np.arange(new.size), 0))
    best[low:high] = place[last_new][:0:-1]


class _Point(NamedTuple):
    """An intermediate solution: x, the slacks Ax - b, and the multipliers."""

    x: Floats
    slack: Floats
    multiplier: Floats

    @property
    def gap(self) -> float:
        return float(self.slack @ self.multiplier) / self.slack.size

    def moved(self, by: _Point, length: float) -> _Point:
        return _Point(self.x + length * by.x, self.slack + length * by.slack, self.multiplier + length * by.multiplier)

    def longest(self, by: _Point) -> float:
        """How far it can move along a step before a slack or a multiplier becomes negative; at most 1."""
        # the fastest relative fall of any number, all of which are positive
        fall = max(float((-by.slack / self.slack).max()), float((-by.multiplier / self.multiplier).max()))
        return 1.0 if fall <= 1 else 1 / fall


def minimise(c: Floats, Q: Floats, A: Floats, b: Floats) -> Floats:
    """Return the x of least c'x + x'Qx / 2 with Ax >= b, up to about 1e-9.

    Examples
    --------
    The point of the half-plane x + y >= 2 that is nearest to the origin:

    >>> minimise(np.zeros(2), np.eye(2), np.array([[1.0, 1.0]]), np.array([2.0])).round(6)
    array([1., 1.])
    """
    x = np.zeros(c.size)
    point = _Point(x, np.maximum(A @ x - b, 1.0), np.ones(b.size))
    for _ in range(_STEPS):
        stationary = Q @ point.x + c - A.T @ point.multiplier
        primal = A @ point.x - b - point.slack
        if max(np.abs(stationary).max(), np.abs(primal).max(), point.gap) < _CLOSE:
            break
        point = _stepped(point, Q, A, stationary, primal)
    return point.x


def _stepped(point: _Point, Q: Floats, A: Floats, stationary: Floats, primal: Floats) -> _Point:
    """Predict by a Newton step towards the solution, then correct towards the central path."""
    _, slack, multiplier = point
    normal = Q + (A.T * (multiplier / slack)) @ A
    diagonal = normal.ravel()[:: normal.shape[0] + 1]  # a view
    diagonal += _SOLVER_RIDGE * diagonal.mean()
    factor, status = linalg.lapack.dpotrf(normal)
    if status:
        raise linalg.LinAlgError(f"the normal matrix is not positive definite ({status}).")

    def newton(complementary: Floats) -> _Point:
        right = -stationary - A.T @ ((multiplier * primal + complementary) / slack)
        x = linalg.lapack.dpotrs(factor, right)[0]
        moved = A @ x + primal
        return _Point(x, moved, -(complementary + multiplier * moved) / slack)

    predicted = newton(slack * multiplier)
    reached = point.moved(predicted, point.longest(predicted)).gap / point.gap
    centred = predicted.slack * predicted.multiplier - reached**3 * point.gap
    corrected = newton(slack * multiplier + centred)
    return point.moved(corrected, _INSIDE * point.longest(corrected))
