r"""Tables whose expectation is never below, or never above, what a relevant item adds to the metric.

Of N irrelevant candidates g stand above a relevant item, which adds f(g) to the exact metric; the sample shows h. An
*upper* table x satisfies

.. math:: \sum_h p(h \mid g) x_h \ge f(g) \quad \text{for every } g = 0..N,

a lower one the reverse. So the mean of upper tables over the instances has an expectation that is at least the exact
metric, wherever the relevant items are, with no assumption on the law of g. Of all upper tables we take the one that
gives the least end of a confidence interval, mean plus twice the standard error over 5,000 instances, if g follows a
falling power law. That law and that number of instances decide how sharp the table is, but not whether it holds.

Under the assumption that p(g) falls among the top tenth of the candidates, single counts in it are replaced by the
uniform laws on 0..G, of which every falling law is a mixture. That demands less of the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from truerank.arrays import Bools, Floats, Ints, frozen
from truerank.corrections.quadratic import minimise
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
# a falling law is assumed among this part of the candidates (a little less than the stated tenth, because tables for N
# candidates serve some 6 % fewer), and among at most so many
_TOP = 11
_LONGEST = 1 << 16
_CHUNK = 4_000_000
_RIDGE = 1e-12


@dataclass(frozen=True, eq=False)
class Setting:
    """What all tables for m draws from N candidates share.

    Attributes
    ----------
    g : array of int
        Counts at which f is needed, in increasing order.
    within : array of bool
        Which of them the table is solved for; the others check it.
    expectation : ndarray
        At each of the counts, the expectation of each of the hat functions that tables consist of.
    hats : ndarray, shape (m + 1, hats)
        Values of the hat functions at h = 0..m.
    shown : ndarray, shape (m + 1,)
        Law of the sampled count under the reference law.
    linear, quadratic : ndarray
        Mean and covariance of the hat functions under it.
    n_top : int
        How many of the counts G stand for the uniform law on 0..G.
    """

    g: Ints
    within: Bools
    expectation: Floats
    hats: Floats
    shown: Floats
    linear: Floats
    quadratic: Floats
    n_top: int

    def targets(self, values: Floats) -> Floats:
        """Return the mean of f under the laws of the setting, from its values at `counts`."""
        at = values[..., self.top_size :]
        if not self.n_top:
            return at
        top = self.g[: self.n_top]
        means = np.cumsum(values[..., : self.top_size], axis=-1)[..., top] / (top + 1.0)
        return np.concatenate([means, at], axis=-1)

    @property
    def top_size(self) -> int:
        """All counts of the top, each of which a mean over 0..G needs."""
        return int(self.g[self.n_top - 1]) + 1 if self.n_top else 0

    @property
    def counts(self) -> Ints:
        """Counts at which f must be known: all of the top if a mean over it is needed, then those of the setting."""
        return np.concatenate([np.arange(self.top_size), self.g[self.n_top :]])

    def solve(self, target: Floats, *, upper: bool) -> Floats:
        """Return the table of m + 1 values for an f that is at most about 1, from its `targets`."""
        sign = 1.0 if upper else -1.0
        rows, least = sign * self.expectation[self.within], sign * target[self.within]
        variance = _VARIANCE
        for _ in range(2):
            weight = _DEVIATIONS / np.sqrt(_INSTANCES * variance)
            x = minimise(sign * self.linear, weight * self.quadratic, rows, least)
            variance = max(float(x @ self.quadratic @ x), 1e-6)
        short = _shortfall(self.g, sign * (self.expectation @ x - target), self.n_top)
        return self.hats @ x + sign * short


def _shortfall(g: Ints, excess: Floats, n_top: int) -> float:
    """How much is missing to an excess of at least 0 at and between the counts."""
    parts = [part for part in (slice(0, n_top), slice(n_top, g.size)) if g[part].size]
    return max(0.0, *(-_lowest(g[part].astype(np.float64), excess[part]) for part in parts))


def _lowest(g: Floats, excess: Floats) -> float:
    """Least value at the counts, and at the integers between them if the second derivative is what it seems."""
    lowest = float(excess.min())
    if g.size < 3:
        return lowest
    steps, slopes = np.diff(g), np.diff(excess) / np.diff(g)
    bend = np.abs(2 * np.diff(slopes) / (steps[1:] + steps[:-1]))
    bend = np.concatenate([bend[:1], bend, bend[-1:]])
    dip = _SAFETY * np.maximum(bend[1:], bend[:-1]) * steps**2 / 8
    between = np.minimum(excess[1:], excess[:-1]) - np.where(steps > 1, dip, 0.0)
    return min(lowest, float(between.min()))


@lru_cache(maxsize=256)
def setting(
    N: int, m: int, law: Law, breaks: tuple[int, ...] = (), *, falling: bool = False, single: int = _SINGLE
) -> Setting:
    """Return what tables for m draws from N candidates share.

    Parameters
    ----------
    N, m : int
        Irrelevant candidates, and how many are sampled.
    law : Law
        Of sampling with or without replacement.
    breaks : tuple of int
        Last counts before f jumps.
    falling : bool
        Whether a law that falls among the top tenth of the candidates is assumed.
    single : int
        Counts below this one are taken one by one.
    """
    depth = min(N // _TOP, _LONGEST) if falling else -1
    solved = _places(N, m, law, (*breaks, *(() if depth < 0 else (depth,))), single)
    g = _refined(solved)
    n_top = int(np.searchsorted(g, depth, side="right"))
    hats = _hats(_knots(m, [at * m / N for at in breaks]), m)
    expectation, shown = _expected(g, m, N, law, hats)
    if n_top:
        expectation[:n_top] = law.mean_rows(g[:n_top], m, N) @ hats
    linear = shown @ hats
    quadratic = (hats.T * shown) @ hats - np.outer(linear, linear) + _RIDGE * np.eye(linear.size)
    arrays = (g, np.isin(g, solved), expectation, hats, shown, linear, quadratic)
    for array in arrays:
        frozen(array)
    return Setting(*arrays, n_top)


def reference(g: Ints) -> Floats:
    """Weights of the counts under the law for which tables are sharpest: each stands for those since the one before."""
    below = (g + 1.5) ** (1 - _POWER) - 0.5 ** (1 - _POWER)
    return np.diff(below, prepend=0.0) / below[-1]


def _places(N: int, m: int, law: Law, breaks: Iterable[int], single: int) -> Ints:
    """Counts for which a table is solved."""
    spread = np.sqrt(law.spread(N, m)) if m < N or not law.distinct else 0.0
    found = [0]
    while found[-1] < N:
        g = found[-1]
        share = min(max(g / N, 1 / m), 0.5)
        step = np.clip(_STEP * N * np.sqrt(share * (1 - share)) * spread, _FINEST * g, _COARSEST * g)
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


def _expected(g: Ints, m: int, N: int, law: Law, tables: Floats) -> tuple[Floats, Floats]:
    """Expectations of tables at each count, and the law of the sampled count under the reference law."""
    weight, means, shown = reference(g), np.empty((g.size, tables.shape[1])), np.zeros(m + 1)
    step = max(1, _CHUNK // (m + 1))
    for start in range(0, g.size, step):
        part = slice(start, start + step)
        rows = law.rows(g[part], m, N)
        means[part] = rows @ tables
        shown += weight[part] @ rows
    return means, shown
