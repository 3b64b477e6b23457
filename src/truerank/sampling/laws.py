r"""The law of the sampled count (how many sampled candidates stand above a relevant item), and draws from it.

Of N irrelevant candidates g stand above the item. A sample of m of them contains a random number
h of those g:

* `HYPERGEOMETRIC`, without replacement: h ~ Hypergeometric(N, g, m),
* `BINOMIAL`, with replacement: h ~ Binomial(m, g / N)  (eq. 15 of Krichene and Rendle, 2020).

Both are evaluated in *deviance form*. With ``delta(x) = log x! - x log x + x`` and
``D(x, e) = x log(x / e) + e - x``,

.. math::
    \log p(h) = \sum \delta(\text{margins}) - \sum \delta(\text{cells})
              - \sum D(\text{cell}, \text{expected}),

where the cells are those of the two-by-two table (sampled or not) x (above or below). The terms of
size N log N of the usual log-gamma form have been cancelled by hand, so nothing is lost for large
N: with N = 1e9 log-gamma differences keep 6 digits, this form keeps 13 (C. Loader, 2000, "Fast
and accurate computation of binomial probabilities", has the binomial case).

g may be real: the compressed sums of `truerank.sampling.sums` evaluate the laws between the integers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from truerank.core.caching import cached
from truerank.core.checks import AnyArray, Floats, InputError, Ints, frozen

_LOG_2PI = float(np.log(2 * np.pi))
# Coefficients of 1/x, 1/x^3, ... in Stirling's series for log x!, exact to 1e-16 from here on.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
_STIRLING_FROM = 16.0
# Below this relative deviation the logarithm in D is replaced by its series.
_NEAR = 0.1
_NEAR_TERMS = 9
# A tail sum stops when the next term cannot change the sum.
_NEGLIGIBLE = 2.0**-60
# Logarithms of factorials are looked up below this number.
_LOOKED_UP = 1 << 22
# NumPy draws from hypergeometric distributions with fewer of each kind.
_TOO_MANY = 10**9

AnyCounts = AnyArray | int


class Law(ABC):
    """The distribution of h, the number of sampled candidates above an item that has g of N candidates above it.

    In all methods h, g, m and N are array_like and broadcast against each other. h, m and N are whole numbers,
    0 <= g <= N may be real.
    """

    @abstractmethod
    def log_pmf(self, h: Floats, g: Floats, m: Floats, N: Floats) -> Floats:
        """Logarithm of the probability of h."""

    @abstractmethod
    def ratio_up(self, h: Floats, g: Floats, m: Floats, N: Floats) -> Floats:
        """p(h + 1) / p(h), the step of sums that walk along the law; not finite below its support."""

    @abstractmethod
    def mode(self, g: ArrayLike, m: ArrayLike, N: ArrayLike) -> Floats:
        """A most probable h."""

    @abstractmethod
    def spread(self, N: int, m: int) -> float:
        """Variance of h / m, relative to that of a single draw."""

    @property
    def distinct(self) -> bool:
        """Whether no candidate is drawn twice."""
        return False

    @abstractmethod
    def size_biased(self, g: Floats, m: Floats, N: Floats) -> tuple[tuple[Floats, Floats, Floats], Floats]:
        """Return (g', m', N') and a factor c such that p(h | g, m, N) / (h + 1) = c p(h + 1 | g', m', N')."""

    @abstractmethod
    def draw(self, inside: Ints, beyond: Ints, m: Ints, rng: np.random.Generator) -> Ints:
        """Draw how many of m draws fall on `inside` candidates rather than on the `beyond` others."""

    @abstractmethod
    def log_likelihood(self, above: AnyCounts, drawn: AnyCounts, count: AnyArray, n_irrelevant: AnyCounts) -> Floats:
        """Return the log likelihood of `count` candidates above, of `n_irrelevant`, up to a constant per observation.

        Of t = `drawn` candidates drawn one by one, j = `above` stand above. Any stopping rule that depends only on the
        draws so far gives the same likelihood, so a fixed number of draws, inverse sampling and caps differ only in t
        and j. Arguments broadcast; impossible counts have -inf.
        """

    def pmf(self, h: ArrayLike, g: ArrayLike, m: ArrayLike, N: ArrayLike) -> Floats:
        """Probability that h of the m sampled candidates are among the g of N that stand above.

        Returns
        -------
        ndarray of float64
            Relative error about 1e-13 for N <= 1e9, m <= 1e4 (more in tails below 1e-100). Zero
            outside the support.

        Examples
        --------
        >>> HYPERGEOMETRIC.pmf([0, 1, 2], 1, 2, 4).round(3)
        array([0.5, 0.5, 0. ])
        """
        return np.exp(self.log_pmf(*(np.asarray(x, dtype=np.float64) for x in (h, g, m, N))))

    def cdf(self, h: ArrayLike, g: ArrayLike, m: ArrayLike, N: ArrayLike) -> Floats:
        """Probability that at most h of the m sampled candidates are among the g that stand above.

        The relative error of small values is as small as that of large ones.

        Examples
        --------
        >>> HYPERGEOMETRIC.cdf([-1, 0, 1, 2], 1, 2, 4).round(3)
        array([0. , 0.5, 1. , 1. ])
        """
        return self._tails(h, g, m, N)[0]

    def sf(self, h: ArrayLike, g: ArrayLike, m: ArrayLike, N: ArrayLike) -> Floats:
        """Probability that more than h of the m sampled candidates are among the g that stand above.

        Examples
        --------
        >>> HYPERGEOMETRIC.sf([-1, 0, 1, 2], 1, 2, 4).round(3)
        array([1. , 0.5, 0. , 0. ])
        """
        return self._tails(h, g, m, N)[1]

    def rows(self, g: ArrayLike, m: ArrayLike, N: ArrayLike) -> Floats:
        """Whole laws: row j holds the probabilities of h = 0..m for g[j].

        Starts each row at its mode and multiplies outwards, about fifty times faster than `pmf`
        and as accurate where it matters: the error grows by about 1e-16 per step away from the mode.
        For real g without replacement this continues p(h | g) as a polynomial in g. Rows of smaller m
        end in zeros.

        Examples
        --------
        >>> HYPERGEOMETRIC.rows([0, 1], 2, 4).round(3)
        array([[1. , 0. , 0. ],
               [0.5, 0.5, 0. ]])
        """
        g, m, N = _flat(g, m, N)
        peak = self.mode(g, m, N)
        return self._outwards(peak, self.pmf(peak, g, m, N), int(m.max(initial=0.0)), (g, m, N))

    def rows_to(self, last: int, g: ArrayLike, m: ArrayLike, N: ArrayLike) -> Floats:
        """Laws of which only the first counts are told apart: the column `last` is for all counts from there on.

        Examples
        --------
        >>> HYPERGEOMETRIC.rows_to(1, [0, 1, 4], 2, 4).round(3)
        array([[1. , 0. ],
               [0.5, 0.5],
               [0. , 1. ]])
        """
        g, m, N = _flat(g, m, N)
        mode = self.mode(g, m, N)
        peak = np.minimum(mode, last)
        probability = self.pmf(peak, g, m, N)
        rows, reached = np.zeros((g.size, last + 1)), probability > 0
        counts = g[reached], m[reached], N[reached]
        rows[reached] = self._outwards(peak[reached], probability[reached], last, counts)
        beyond = mode > last
        rows[beyond, -1] += 1 - rows[beyond].sum(axis=1)
        near = ~beyond & (m > last)
        rows[near, -1] += self._upper_tail(np.full(int(near.sum()), last + 1.0), g[near], m[near], N[near])
        return rows

    def _outwards(self, peak: Floats, probability: Floats, last: int, counts: tuple[Floats, ...]) -> Floats:
        """Return the probabilities of h = 0..last by multiplying outwards from that of one h of each law."""
        g, m, N = (count[:, None] for count in counts)
        h = np.arange(float(last))
        up = self.ratio_up(h, g, m, N)
        below = h < peak[:, None]
        law = np.ones((len(g), len(h) + 1))
        with np.errstate(divide="ignore"):
            np.divide(1.0, up, out=law[:, :-1], where=below)
        np.cumprod(law[:, -2::-1], axis=1, out=law[:, -2::-1])
        up[below] = 1.0
        law[:, 1:] *= np.cumprod(up, axis=1, out=up)
        law *= probability[:, None]
        law += 0.0  # turns -0.0, left behind where the support ends, into 0.0
        return law

    def mean_rows(self, last: Ints, m: int, N: int) -> Floats:
        """Whole laws where each count 0..last above is equally likely; `last` increases.

        Examples
        --------
        >>> BINOMIAL.mean_rows(np.array([0, 1]), 2, 4).round(3)
        array([[1.   , 0.   , 0.   ],
               [0.781, 0.188, 0.031]])
        """
        return mean_rows(lambda g: self.rows(g, m, N), last)

    def _tails(self, h: ArrayLike, g: ArrayLike, m: ArrayLike, N: ArrayLike) -> tuple[Floats, Floats]:
        """P(H <= h) and P(H > h): the tail away from the mode is summed, the other follows."""
        h, g, m, N = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (h, g, m, N)))
        lower = h < self.mode(g, m, N)
        # Counting the candidates below instead of above turns a lower tail into an upper one.
        tail = self._upper_tail(np.where(lower, m - h, h + 1), np.where(lower, N - g, g), m, N)
        return np.where(lower, tail, 1 - tail), np.where(lower, 1 - tail, tail)

    def _upper_tail(self, h: Floats, g: Floats, m: Floats, N: Floats) -> Floats:
        """p(h) + p(h + 1) + ... for h at or above the mode, where the terms fall."""
        shape = h.shape
        h, g, m, N = (x.ravel() for x in (h, g, m, N))
        total = self.pmf(h, g, m, N)
        live = np.flatnonzero(total > 0)
        at, term = h[live], total[live]
        while live.size:
            term = term * self.ratio_up(at, g[live], m[live], N[live])
            total[live] += term
            keep = term > _NEGLIGIBLE * total[live]
            live, at, term = live[keep], at[keep] + 1, term[keep]
        return np.minimum(total, 1.0).reshape(shape)


class Hypergeometric(Law):
    """The law of sampling without replacement."""

    distinct = True

    def log_pmf(self, h: Floats, g: Floats, m: Floats, N: Floats) -> Floats:
        cells = (h, g - h, m - h, N - g - m + h)
        expected = (m * (g / N), g * ((N - m) / N), m * ((N - g) / N), (N - g) * ((N - m) / N))
        # All four cells deviate from their expectation by the same amount; for whole g the products
        # are whole numbers below 2^53, so it is free of cancellation.
        excess = (h * N - m * g) / N
        margins = _delta(g) + _delta(N - g) + _delta(m) + _delta(N - m) - _delta(N)
        return margins - _cell_terms(cells, expected, excess)

    def ratio_up(self, h: Floats, g: Floats, m: Floats, N: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return (m - h) * (g - h) / ((h + 1) * (N - g - m + h + 1))

    def mode(self, g: ArrayLike, m: ArrayLike, N: ArrayLike) -> Floats:
        g, m, N = (np.asarray(x, dtype=np.float64) for x in (g, m, N))
        # Rounding may land one off a mode next to the support's edge: p would be zero there.
        return np.clip(np.floor((m + 1) * (g + 1) / (N + 2)), np.maximum(0, m - N + g), np.minimum(m, g))

    def spread(self, N: int, m: int) -> float:
        return (1 - m / N) / m

    def size_biased(self, g: Floats, m: Floats, N: Floats) -> tuple[tuple[Floats, Floats, Floats], Floats]:
        return (g + 1, m + 1, N + 1), (N + 1) / ((m + 1) * (g + 1))

    def draw(self, inside: Ints, beyond: Ints, m: Ints, rng: np.random.Generator) -> Ints:
        most = max(np.max(inside, initial=0), np.max(beyond, initial=0))
        if most >= _TOO_MANY:
            allowed = f"fewer than {_TOO_MANY:,} candidates above and below an item, got {most:,}"
            raise InputError(f"sampling without replacement needs {allowed}; with `replace` any number is possible.")
        return rng.hypergeometric(inside, beyond, m)

    def log_likelihood(self, above: AnyCounts, drawn: AnyCounts, count: AnyArray, n_irrelevant: AnyCounts) -> Floats:
        """Return the logarithm of [a! / (a-j)!] [(N-a)! / (N-a-t+j)!] for a = `count` of N candidates.

        Examples
        --------
        >>> likely = np.exp(HYPERGEOMETRIC.log_likelihood(1, 2, np.arange(5), 4))
        >>> (likely / likely.sum()).round(2).tolist()
        [0.0, 0.3, 0.4, 0.3, 0.0]
        """
        left_above, left_below = count - above, n_irrelevant - count - (drawn - above)
        possible = (left_above >= 0) & (left_below >= 0)
        largest = int(np.max(n_irrelevant, initial=0))
        beyond = (count, left_above, n_irrelevant - count, left_below)
        one, two, three, four = (_log_factorial(np.clip(number, 0, largest), largest) for number in beyond)
        return np.where(possible, one - two + three - four, -np.inf)

    def mean_rows(self, last: Ints, m: int, N: int) -> Floats:
        return self.tied_rows(0, last, m, N)

    def tied_rows(self, g: ArrayLike, tied: ArrayLike, m: ArrayLike, N: ArrayLike, last: int | None = None) -> Floats:
        r"""Whole laws where ties are in random order: each count g..g + tied above is equally likely.

        .. math:: \sum_{c < G} p(h \mid c; m, N) = \frac{N + 1}{m + 1} P(H > h \mid G; m + 1, N + 1),

        which counts the samples of m + 1 of N + 1 by the position of their (h + 1)-th element. The absolute
        error is about 1e-15 N / m. The column `last`, if it is given, is for all counts from there on.

        Examples
        --------
        >>> HYPERGEOMETRIC.tied_rows([0, 1], [2, 0], 2, 4).round(3)
        array([[0.556, 0.389, 0.056],
               [0.5  , 0.5  , 0.   ]])
        """
        g, tied, m, N = _flat(g, tied, m, N)
        size = int(m.max(initial=0.0))
        told_apart = size + 1 if last is None or last >= size else last

        def at_most(count: Floats) -> Floats:
            return np.cumsum(self.rows_to(told_apart, count, m + 1, N + 1), axis=1)[:, :-1]

        mean = (at_most(g) - at_most(g + tied + 1)) * ((N + 1) / (m + 1) / (tied + 1))[:, None]
        np.maximum(mean, 0.0, out=mean)
        return mean if told_apart > size else np.column_stack([mean, np.maximum(1 - mean.sum(axis=1), 0.0)])


class Binomial(Law):
    """The law of sampling with replacement."""

    def log_pmf(self, h: Floats, g: Floats, m: Floats, N: Floats) -> Floats:
        cells = (h, m - h)
        expected = (m * (g / N), m * ((N - g) / N))
        return _delta(m) - _cell_terms(cells, expected, (h * N - m * g) / N)

    def ratio_up(self, h: Floats, g: Floats, m: Floats, N: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return (m - h) * g / ((h + 1) * (N - g))

    def mode(self, g: ArrayLike, m: ArrayLike, N: ArrayLike) -> Floats:
        g, m, N = (np.asarray(x, dtype=np.float64) for x in (g, m, N))
        return np.minimum(np.floor((m + 1) * g / N), m)

    def spread(self, N: int, m: int) -> float:
        return 1 / m

    def size_biased(self, g: Floats, m: Floats, N: Floats) -> tuple[tuple[Floats, Floats, Floats], Floats]:
        return (g, m + 1, N), np.where(g > 0, N / (np.where(g > 0, g, 1) * (m + 1)), np.nan)

    def draw(self, inside: Ints, beyond: Ints, m: Ints, rng: np.random.Generator) -> Ints:
        return rng.binomial(m, inside / np.maximum(inside + beyond, 1))

    def log_likelihood(self, above: AnyCounts, drawn: AnyCounts, count: AnyArray, n_irrelevant: AnyCounts) -> Floats:
        """Return the logarithm of (a/N)^j (1 - a/N)^(t-j) for a = `count` of N candidates.

        Examples
        --------
        >>> np.exp(BINOMIAL.log_likelihood(1, 2, np.arange(3), 2)).tolist()
        [0.0, 0.25, 0.0]
        """
        share = np.clip(count / np.asarray(n_irrelevant, dtype=np.float64), 0.0, 1.0)
        log = special.xlogy(above, share) + special.xlogy(np.asarray(drawn) - above, 1.0 - share)
        return np.where(np.asarray(count) <= n_irrelevant, log, -np.inf)


HYPERGEOMETRIC = Hypergeometric()
BINOMIAL = Binomial()


def _flat(*counts: ArrayLike) -> tuple[Floats, ...]:
    """Return counts as flat arrays of the same size."""
    return np.broadcast_arrays(*(np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in counts))


def _log_factorial(numbers: Ints, largest: int) -> Floats:
    """Return the logarithms of the factorials of numbers up to the largest; looking them up is faster."""
    few = largest < _LOOKED_UP
    return _log_factorials(1 << largest.bit_length())[numbers] if few else special.gammaln(numbers + 1.0)


@cached
def _log_factorials(size: int) -> Floats:
    return frozen(special.gammaln(np.arange(size) + 1.0))


def mean_rows(rows: Callable[[Ints], Floats], last: Ints) -> Floats:
    """Return the means of laws, a row for each count, over the counts 0..last; `last` increases."""
    starts = np.append(0, last[:-1] + 1).tolist()
    sums = [rows(np.arange(start, end + 1)).sum(axis=0) for start, end in zip(starts, last.tolist(), strict=True)]
    return np.cumsum(sums, axis=0) / (last[:, None] + 1)


def _cell_terms(cells: tuple[Floats, ...], expected: tuple[Floats, ...], excess: Floats) -> Floats:
    """Sum of delta + D over the cells, infinite where a cell is impossible."""
    total = np.zeros_like(excess)
    for cell, mean, sign in zip(cells, expected, (1, -1, -1, 1), strict=False):
        inside = np.maximum(cell, 0)
        term = _delta(inside) + _deviance(inside, mean, sign * excess)
        total = total + np.where(cell < 0, np.inf, term)
    return total


def _delta(x: Floats) -> Floats:
    """Log x! - x log x + x, from Stirling's series where it converges and from log-gamma below."""
    high = np.maximum(x, _STIRLING_FROM)
    inverse = 1 / high
    series = np.polynomial.polynomial.polyval(inverse * inverse, _STIRLING) * inverse
    result = np.asarray(0.5 * (_LOG_2PI + np.log(high)) + series)
    small = x < _STIRLING_FROM
    low = x[small]
    result[small] = special.gammaln(low + 1) - special.xlogy(low, low) + low
    return result


def _deviance(x: Floats, mean: Floats, excess: Floats) -> Floats:
    """X log(x / mean) + mean - x, given excess = x - mean exactly."""
    with np.errstate(divide="ignore", invalid="ignore"):
        far = special.xlogy(x, x / mean) - excess
        v = excess / (x + mean)
    near = np.abs(v) < _NEAR
    small = np.where(near, v, 0.0)
    # log(x / mean) = 2 artanh(v); the leading terms of the series cancel against -excess.
    square = small * small
    odd = np.polynomial.polynomial.polyval(square, [1 / (2 * j + 3) for j in range(_NEAR_TERMS)])
    close = small * (excess + 2 * x * square * odd)
    both_zero = (x == 0) & (mean == 0)
    return np.where(both_zero, 0.0, np.where(near, close, far))


def draw_counts(
    above: Ints, tied: Ints, indptr: Ints, n_irrelevant: Ints, m: Ints, law: Law, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return the sampled counts above, and tied with, each relevant item.

    The relevant items of an instance share one sample. They and their ties cut the irrelevant
    candidates into stretches; going down from the top, the number sampled from a stretch is
    hypergeometric (binomial with replacement) in what is left of the sample and of the candidates.

    Parameters
    ----------
    above, tied : arrays of int, one per relevant item
        Irrelevant candidates above and tied, from the top within an instance.
    indptr : array of int
        Boundaries of the instances.
    n_irrelevant : array of int, one per instance
    m : array of int, one per instance
        Candidates sampled.
    law : Law
        Of sampling with or without replacement.
    rng : numpy.random.Generator
    """
    sizes = np.diff(indptr)
    sampled_above, sampled_tied = np.zeros_like(above), np.zeros_like(tied)
    passed = np.zeros_like(n_irrelevant)
    hit = np.zeros_like(n_irrelevant)

    def stretch(users: Ints, until: Ints) -> Ints:
        """Draw from the stretch that ends after this many candidates."""
        drawn = law.draw(until - passed[users], n_irrelevant[users] - until, m[users] - hit[users], rng)
        passed[users] = until
        hit[users] += drawn
        return drawn

    for place in range(int(sizes.max(initial=0))):
        users = np.flatnonzero(sizes > place)
        at = indptr[users] + place
        # relevant items in one tied block have the same counts as the one before
        same = (above[at] < passed[users]) if place else np.zeros(at.size, dtype=np.bool_)
        sampled_above[at[same]] = sampled_above[at[same] - 1]
        sampled_tied[at[same]] = sampled_tied[at[same] - 1]
        users, at = users[~same], at[~same]
        stretch(users, above[at])
        sampled_above[at] = hit[users]
        sampled_tied[at] = stretch(users, above[at] + tied[at])
    return sampled_above, sampled_tied


def draw_until(
    above: Ints,
    indptr: Ints,
    n_irrelevant: Ints,
    hits: int,
    most: AnyCounts | None,
    rng: np.random.Generator,
    ends: Ints | None = None,
    since: tuple[Ints, Ints] | None = None,
) -> tuple[Ints, Ints]:
    """Return for each relevant item how many candidates are drawn until `hits` stand above it, and how many do.

    The relevant items of an instance share their draws. Only draws above the lowest item that is still open matter. The
    number of other draws before the next such draw is beta-binomial, so the others are never drawn one by one.

    Parameters
    ----------
    above : array of int, one per relevant item
        Irrelevant candidates above, from the top within an instance; there are no ties.
    indptr : array of int
        Boundaries of the instances.
    n_irrelevant : array of int, one per instance
    hits : int
        Number of candidates above that ends the draws for an item.
    most : int or array of int, one per instance, optional
        Largest number of draws.
    rng : numpy.random.Generator
    ends : array of int, optional
        Numbers of draws, increasing, at which draws can end; any by default.
    since : pair of arrays of int, optional
        Draws made for each instance so far, and how many of them are above each item: fewer than `hits`.
    """
    drawn, sizes = np.zeros_like(above), np.diff(indptr)
    limit = n_irrelevant if most is None else np.minimum(n_irrelevant, most)
    before, known = (np.zeros_like(n_irrelevant), np.zeros_like(above)) if since is None else since
    seen = known.copy()
    for size in np.unique(sizes[sizes > 0]):
        users = np.flatnonzero(sizes == size)
        items = indptr[users][:, None] + np.arange(size)
        start = before[users].copy(), seen[items]
        drawn[items], seen[items] = _until(above[items], n_irrelevant[users], hits, limit[users], rng, ends, *start)
    return drawn, seen


def _until(
    above: Ints,
    n_irrelevant: Ints,
    hits: int,
    limit: Ints,
    rng: np.random.Generator,
    ends: Ints | None,
    time: Ints,
    seen: Ints,
) -> tuple[Ints, Ints]:
    """Draw for instances with equally many relevant items: each is a row of the arrays.

    `time` and `seen`, the draws so far and how many of them are above, are changed.
    """
    left = above - seen  # candidates above each item that have not been drawn
    drawn = np.repeat(limit[:, None], above.shape[1], axis=1)
    lowest = np.full(limit.size, above.shape[1] - 1)  # the last item that is still open
    rows = np.arange(limit.size)
    while rows.size:
        rows = rows[left[rows, lowest[rows]] > 0]
        inside = left[rows, lowest[rows]]
        # the first of `inside` uniform keys, and how many of the other candidates have smaller ones
        first = rng.beta(1.0, inside)
        time[rows] += 1 + rng.binomial(n_irrelevant[rows] - time[rows] - inside, first)
        rows, inside = rows[time[rows] <= limit[rows]], inside[time[rows] <= limit[rows]]
        place = rng.integers(0, inside)
        if ends is not None:
            still = np.isin(rows, _close(rows, time - 1, drawn, seen, lowest, hits))
            rows, place = rows[still], place[still]
        open_ = np.arange(above.shape[1]) <= lowest[rows][:, None]
        counts = (place[:, None] < left[rows]) & open_
        left[rows] -= counts
        seen[rows] += counts
        at = time[rows] if ends is None else np.minimum(ends[np.searchsorted(ends, time[rows])], limit[rows])
        drawn[rows] = np.where(counts & (seen[rows] == hits), at[:, None], drawn[rows])
        rows = _close(rows, time, drawn, seen, lowest, hits)
    return drawn, seen


def _close(rows: Ints, time: Ints, drawn: Ints, seen: Ints, lowest: Ints, hits: int) -> Ints:
    """Close items whose draws have ended, and return the rows in which some are left."""
    open_ = rows
    while open_.size:
        last = lowest[open_]
        open_ = open_[(seen[open_, last] >= hits) & (drawn[open_, last] <= time[open_])]
        lowest[open_] -= 1
        open_ = open_[lowest[open_] >= 0]
    return rows[lowest[rows] >= 0]
