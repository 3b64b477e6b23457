"""What draws from the candidates can show: the outcomes, how likely each is for a given count above, and their tables.

With a fixed number of draws the outcome is the sampled count. A table for some draws from N candidates also serves more
draws from fewer: draws are left out at random before it is read.

The outcome of draws until `hits` stand above has the same form for every number of candidates. Give each of the N
candidates a random time between 0 and 1, and draw them in the order of their times. The h-th of g candidates above
then comes at a time with the law Beta(h, g + 1 - h), *whatever N*. It is the T-th of all, whose time has the law
Beta(T, N + 1 - T), which does not depend on g. So a function x of the time becomes a table, the mean of x over
Beta(T, N + 1 - T), with the expectation of x over Beta(h, g + 1 - h): one x serves all N, exactly.

x is linear between knots. In other words, each time is moved to one of its two neighbours among the knots at random,
and the knot is the outcome. For items with j < h above, all candidates are drawn, and j is the outcome.

A cap on the draws becomes a cap on the time, early enough to come before that draw except with a chance of about 10^-6,
in which case the worst outcome is taken. If the h-th candidate above an item comes later, j < h were found until then.

If draws go on to the end of a batch, the place of the h-th within it is not known, but its law is, given how many of
the batch are above: the mean of the table under that law is taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse, special

from truerank.core.caching import cached
from truerank.core.checks import Floats, Ints, distinct_columns, frozen, slices
from truerank.core.csr import bounds, entries_of, owners, places
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC, Law, mean_rows

# largest relative distance of knots: smaller for many hits, whose time is known more exactly
_APART, _OF_SPREAD = 0.12, 0.4
# beyond this many standard deviations, and this many draws, from its mean a time has no chance above rounding errors
_FAR, _FEW = 9.0, 30.0
# significant bits of the numbers of candidates that tables are solved for: they serve all smaller ones; the cap on the
# # time must come before that on the draws for all of them
_CANDIDATE_BITS, _CAPPED_BITS = 3, 6
# standard deviations between the cap on the draws and that on the time
_BEFORE = 4.8
_NEGLIGIBLE = 1e-17
_CHUNK = 1 << 14


@dataclass(frozen=True)
class FixedDraws:
    """A given number of draws from N candidates; the outcome is the sampled count."""

    N: int
    m: int
    law: Law

    @property
    def top(self) -> int:
        """The last count that may be in the top, a tenth of the candidates of any sample that uses the tables."""
        return self.N // 11  # tables serve some 6 % fewer candidates

    def rows(self, g: Ints) -> Floats:
        """Return the law of the outcomes for each count above an item, a row each."""
        return self.law.rows(g, self.m, self.N)

    def mean_rows(self, last: Ints) -> Floats:
        """Return the law of the outcomes if each of the counts 0..last is equally likely; `last` increases."""
        return self.law.mean_rows(last, self.m, self.N)

    def hats(self, breaks: tuple[int, ...]) -> Floats:
        """Return the functions of the outcomes that tables consist of, a column each; they add up to 1."""
        knots, h = _bends(self.m, [at * self.m / self.N for at in breaks]), np.arange(self.m + 1)
        return np.stack([np.interp(h, knots, one) for one in np.eye(knots.size)], axis=1)

    def spread(self, g: int) -> float:
        """Return about how far from g the counts extend that can hardly be told from it."""
        of_draws = np.sqrt(self.law.spread(self.N, self.m)) if self.m < self.N or not self.law.distinct else 0.0
        share = min(max(g / self.N, 1 / self.m), 0.5)
        return float(self.N * np.sqrt(share * (1 - share)) * of_draws)

    def fitted(self, table: Floats, m: int, sizes: Ints) -> Floats:
        """Return a table for samples of m draws from each of these numbers of candidates, all at most N."""
        return thinned(table, m, sizes, self.N, self.law)

    def decided(self, g: Ints, values: Floats) -> Floats | None:
        """Return a table that is exact at every count for a function with these values; None if there is none."""
        return None

    def width(self, m: int) -> int:
        """Return how many values a table for samples of m draws has."""
        return m + 1

    @property
    def n_outcomes(self) -> int:
        """How many outcomes there are."""
        return self.m + 1


def _bends(m: int, centres: Iterable[float]) -> Ints:
    """Sampled counts at which a table may bend."""
    near = [(centre, np.sqrt(max(centre, 1.0))) for centre in centres]
    found = [0]
    while found[-1] < m:
        h = found[-1]
        fine = any(abs(h - centre) < 6 * width for centre, width in near)
        step = max(1, int(0.5 * np.sqrt(h)), 0 if fine else int(0.15 * h))
        found.append(min(m, h + step))
    return np.array(found)


def thinned(table: Floats, m: int, sizes: Ints, N: int, law: Law) -> Floats:
    """Return tables for m draws from each of several numbers of candidates, from one for fewer draws from more.

    Parameters
    ----------
    table : ndarray, shape (m' + 1,)
        For m' <= m draws from N candidates.
    m : int
        Draws of the sample.
    sizes : array of int
        Candidates, at most N.
    N : int
        Candidates that the table is for.
    law : Law
        Law of sampling with or without replacement.

    Returns
    -------
    ndarray, shape (len(sizes), m + 1)
        Tables with the expectation of the given one, whatever the number of candidates above.

    Examples
    --------
    >>> from truerank.sampling.laws import HYPERGEOMETRIC
    >>> table = np.array([3.0, 1.0, 0.0])
    >>> few = thinned(table, 3, np.array([5]), 6, HYPERGEOMETRIC)[0]
    >>> (HYPERGEOMETRIC.rows([0, 1, 4], 3, 5) @ few).round(3), (HYPERGEOMETRIC.rows([0, 1, 4], 2, 6) @ table).round(3)
    (array([3.   , 2.333, 0.733]), array([3.   , 2.333, 0.733]))
    """
    kept = table.size - 1
    replaced = law.rows(N - sizes, kept, N)
    most = int(np.flatnonzero(replaced.max(axis=0) > _NEGLIGIBLE).max())
    # the mean over the choice of draws to leave out, one by one from the last: as in Horner's scheme
    total = replaced[:, most, None] * table[: kept - most + 1]
    for left_out in range(most - 1, -1, -1):
        total = _one_draw_more(total) + replaced[:, left_out, None] * table[: kept - left_out + 1]
    for _ in range(m - kept):
        total = _one_draw_more(total)
    return total


def _one_draw_more(tables: Floats) -> Floats:
    """Tables for one more draw, where a random draw is left out before reading."""
    h = np.arange(tables.shape[1] + 1)
    above = h / (tables.shape[1])
    more = np.zeros((len(tables), h.size))
    more[:, :-1] = tables * (1 - above[:-1])
    more[:, 1:] += tables * above[1:]
    return more


def rounded_up(numbers: Ints, bits: int) -> Ints:
    """Round up to numbers with this many significant bits.

    Examples
    --------
    >>> rounded_up(np.array([31, 33, 3_540]), 5).tolist()
    [31, 34, 3584]
    """
    unit = _unit(numbers, bits)
    return -(-numbers // unit) * unit


def rounded_down(numbers: Ints, bits: int) -> Ints:
    """Round down to numbers with this many significant bits.

    Examples
    --------
    >>> rounded_down(np.array([100, 999, 1_000]), 7).tolist()
    [100, 992, 1000]
    """
    unit = _unit(numbers, bits)
    return numbers // unit * unit


def _unit(numbers: Ints, bits: int) -> Ints:
    return np.left_shift(1, np.maximum(np.frexp(numbers)[1].astype(np.int64) - bits, 0))


@dataclass(frozen=True)
class HitTimes:
    """Draws of at most N candidates until `hits` stand above, or until a time `end`.

    The outcomes are the j < `hits` above if there are no more by the end, and then the knots.
    """

    N: int
    hits: int
    end: float = 1.0

    @classmethod
    def serving(cls, N: int, hits: int, limit: int) -> Self:
        """Return times that serve draws of at most `limit` of N candidates; similar N share them."""
        capped = limit < N
        shared = int(rounded_up(np.array([N]), _CAPPED_BITS if capped else _CANDIDATE_BITS)[0])
        return cls(shared, hits, _last_time(shared, limit) if capped else 1.0)

    @property
    def top(self) -> int:
        return self.N // 13  # tables serve some 25 % fewer candidates

    @property
    def knots(self) -> Floats:
        """Times at which tables may bend, in increasing order."""
        return _knots(self.hits, self.N) * self.end

    def rows(self, g: Ints) -> Floats:
        """Return the law of the outcomes for each count, a row each.

        Examples
        --------
        >>> rows = HitTimes(10, hits=2).rows(np.array([0, 1, 5]))
        >>> rows[:2, :3]
        array([[1., 0., 0.],
               [0., 1., 0.]])
        >>> bool(np.isclose(rows[2, 2:] @ HitTimes(10, hits=2).knots, 2 / 6))  # the mean time
        True
        """
        rows = np.zeros((g.size, self.n_outcomes))
        rows[:, : self.hits] = self._still_open(g)
        enough = g >= self.hits
        rows[enough, self.hits :] = _knot_law(np.full(enough.sum(), self.hits), g[enough] + 1 - self.hits, self.knots)
        return rows

    def _still_open(self, g: Ints) -> Floats:
        """Law of the j < hits that come before the end."""
        j = np.arange(self.hits)
        if self.end == 1.0:
            return (g[:, None] == j).astype(np.float64)
        return BINOMIAL.pmf(j, self.end, g[:, None], 1)

    def mean_rows(self, last: Ints) -> Floats:
        return mean_rows(self.rows, last)

    def hats(self, breaks: tuple[int, ...]) -> Floats:
        return np.eye(self.n_outcomes)

    def spread(self, g: int) -> float:
        return g / self.hits**0.5

    def fitted(self, table: Floats, m: int, sizes: Ints) -> Floats:
        return np.repeat(table[None], sizes.size, axis=0)

    def decided(self, g: Ints, values: Floats) -> Floats | None:
        """Return f(j) for items with j < hits above, if f is the same for all others."""
        known, others = np.flatnonzero(g < self.hits), values[g >= self.hits]
        if self.end < 1.0 or known.size < self.hits or np.any(others != values[-1]):
            return None
        return np.concatenate([values[known], np.full(self.knots.size, values[-1])])

    def width(self, m: int) -> int:
        return self.n_outcomes

    @property
    def n_outcomes(self) -> int:
        return self.hits + self.knots.size


Draws = FixedDraws | HitTimes
"""What draws from N candidates can show, and how likely each outcome is for each count above an item."""


@cached
def _knots(hits: int, N: int) -> Floats:
    """Knots from 0 to 1 that become dense towards 0, down to half a draw."""
    apart = min(_APART, _OF_SPREAD / hits**0.5)
    found = [1.0]
    while found[-1] > 0.5 / N:
        found.append(found[-1] - min(apart / 2, apart * found[-1]))
    return frozen(np.array([0.0, *reversed(found)]))


def _last_time(N: int, limit: int) -> float:
    """Return a time that comes before the draw after the limit, nearly surely."""
    share = limit / N
    return max(share - _BEFORE * float(np.sqrt(share * (1 - share) / N)), share / 4)


class Ended(NamedTuple):
    """How draws ended for some relevant items: arrays with one entry each.

    The h-th candidate above came after `open_until` draws, and at the latest as the one numbered `drawn`; or only
    `above` < h came in all draws.
    """

    N: Ints
    above: Ints
    drawn: Ints
    open_until: Ints

    def only(self, items: Ints | slice) -> Ended:
        """Return some of the items."""
        return Ended(*(numbers[items] for numbers in self))


class Readings(NamedTuple):
    """How the table of each relevant item is read: the weights of the outcomes, as a sparse matrix.

    Where the weights sum to less than 1, the rest is the chance of an unknown outcome.
    """

    item: Ints
    outcome: Ints
    weight: Floats
    n_items: int

    def values(self, tables: Floats, which: Ints, extreme: Floats) -> Floats:
        """Return the values of the items from their tables; unknown outcomes have the extreme value of each."""
        found = np.bincount(self.item, self.weight * tables[which[self.item], self.outcome], minlength=self.n_items)
        known = np.bincount(self.item, self.weight, minlength=self.n_items)
        return found + np.maximum(1.0 - known, 0.0) * extreme[which]


def readings(draws: HitTimes, ended: Ended) -> Readings:
    """Return how tables for the outcomes are read, for items of at most as many candidates.

    Examples
    --------
    Of 6 candidates 3 stand above; a table has the same expectation as for any other number of candidates:

    >>> draws = HitTimes(10, hits=2)
    >>> T = np.arange(2, 6)
    >>> found = readings(draws, Ended(np.full(4, 6), np.full(4, 2), T, T - 1))
    >>> table = np.random.default_rng(0).random((1, draws.n_outcomes))
    >>> read = found.values(table, np.zeros(4, dtype=int), np.ones(1))
    >>> likely = (T - 1) * (6 - T) / 20
    >>> bool(np.isclose(likely @ read, draws.rows(np.array([3]))[0] @ table[0]))
    True
    """
    first, which = distinct_columns(*ended)
    distinct = ended.only(first)
    parts = [_weights(draws, distinct.only(part), part.start) for part in slices(first.size, _CHUNK)]
    row, outcome, weight = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    # distinct items come in order, and are repeated for all equal ones
    starts = np.searchsorted(row, np.arange(first.size + 1))
    at, within = entries_of(starts, which)
    return Readings(owners(within), outcome[at], weight[at], which.size)


def _weights(draws: HitTimes, ended: Ended, shift: int) -> tuple[Ints, Ints, Floats]:
    """Return rows, outcomes and weights; rows are counted from a shift."""
    dense = np.zeros((ended.N.size, draws.n_outcomes))
    found = np.flatnonzero(ended.above >= draws.hits)
    row, T, likely = _last_hits(draws.hits, ended.only(found))
    first, which = distinct_columns(ended.N[found[row]], T)
    mixed = sparse.csr_array((likely, (row, which)), shape=(found.size, first.size)).tocsc()
    for part in slices(first.size, _CHUNK):
        own = first[part]
        dense[found] += mixed[:, part] @ _of_hit(draws, ended.N[found[row[own]]], T[own])
    for at in np.flatnonzero(ended.above < draws.hits).tolist():
        N, above, last = (int(numbers[at]) for numbers in ended[:3])
        dense[at, : draws.hits] = _before_end(draws, N, last, above)
    row, outcome = np.nonzero(dense)
    return row + shift, outcome, dense[row, outcome]


def _last_hits(hits: int, ended: Ended) -> tuple[Ints, Ints, Floats]:
    """Return the possible positions of the last of the hits among the draws, and their chances."""
    within = bounds(ended.drawn - ended.open_until)
    row = owners(within)
    T = ended.open_until[row] + places(within)
    left, after = ended.drawn[row] - T, ended.above[row] - hits
    ways = _log_choose(T - 1, hits - 1) + _log_choose(left, after)
    top = np.full(ended.N.size, -np.inf)
    np.maximum.at(top, row, ways)
    chance = np.exp(ways - top[row])
    chance /= np.bincount(row, chance, minlength=ended.N.size)[row]
    kept = chance > _NEGLIGIBLE
    return row[kept], T[kept], chance[kept]


def _log_choose(n: Ints, k: Ints | int) -> Floats:
    """Logarithm of the number of ways to choose k of n; -inf if k is larger."""
    return -special.betaln(np.maximum(n - k, -1) + 1.0, k + 1.0) - np.log(n + 1.0)


def _of_hit(draws: HitTimes, N: Ints, T: Ints) -> Floats:
    """Law of the outcomes if the last of the hits is the T-th of N candidates, a row each."""
    rows = np.zeros((N.size, draws.n_outcomes))
    rows[:, draws.hits :] = _knot_law(T, N + 1 - T, draws.knots)
    if draws.end < 1.0:
        late = np.flatnonzero(rows.sum(axis=1) < 1.0 - _NEGLIGIBLE)
        for at in late.tolist():
            rows[at, : draws.hits] = _before_end(draws, int(N[at]), int(T[at]) - 1, draws.hits - 1)
    return rows


def _before_end(draws: HitTimes, N: int, drawn: int, above: int) -> Floats:
    """Law of how many of those above come before the end, if no more than the first `drawn` of N candidates do."""
    law = np.zeros(draws.hits)
    if draws.end == 1.0:
        law[above] = float(drawn == N)
        return law
    mean, reach = N * draws.end, _FAR * (N * draws.end * (1 - draws.end)) ** 0.5 + _FEW
    early = np.arange(max(0, int(mean - reach)), min(drawn, int(mean + reach)) + 1)
    if early.size:
        # how many of those above are among the first `early` of the candidates drawn, a row each
        shares = HYPERGEOMETRIC.rows(early, above, drawn) if drawn else np.ones((early.size, 1))
        law[: above + 1] = BINOMIAL.pmf(early, draws.end, N, 1) @ shares
    return law


def _knot_law(a: Ints, b: Ints, knots: Floats) -> Floats:
    """Law of the knots if times with the laws Beta(a, b), a row each, are moved to a neighbour at random."""
    below, mean_below = _beta_law(a, b, knots), (a / (a + b))[:, None] * _beta_law(a + 1, b, knots)
    chance, mean, width = np.diff(below, axis=1), np.diff(mean_below, axis=1), np.diff(knots)
    law = np.zeros(below.shape)
    law[:, 1:] = (mean - knots[:-1] * chance) / width
    law[:, :-1] += (knots[1:] * chance - mean) / width
    return np.maximum(law, 0.0)


def _beta_law(a: Ints, b: Ints, x: Floats) -> Floats:
    """P(X <= x) for X of Beta(a, b), computed where it is neither 0 nor 1 up to rounding errors; a row each."""
    total = (a + b).astype(np.float64)
    mean = a / total
    reach = _FAR * np.sqrt(mean * (1 - mean) / total) + _FEW / total
    near = np.abs(x - mean[:, None]) < reach[:, None]
    law = (x > mean[:, None]).astype(np.float64)
    row, column = np.nonzero(near)
    law[row, column] = special.betainc(a[row], b[row], x[column])
    return law
