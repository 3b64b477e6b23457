"""Estimates that assume nothing about the ranks: exactly unbiased ones, and the middle of the possible range.

An item whose count above is known exactly adds its term divided by the chance that it is known (Horvitz and Thompson,
1952). Every metric that looks no deeper than the design decides is a sum of such terms. A term that is proportional to
1 / rank, or affine in the rank, needs no known counts: it is estimated from the number of draws T until `hits` stood
above.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.special import betaln, gammaln

from truerank.core.checks import AnyArray, Floats, InputError, Ints
from truerank.core.ranks import Ranks
from truerank.estimators.corrected import (
    CORRECTIONS,
    Estimator,
    ValueTerm,
    capped,
    has_unbiased_form,
    require_design,
)
from truerank.metrics.definitions import Term, Terms
from truerank.sampling.designs import InverseSampling, SamplingDesign
from truerank.sampling.sums import GROWTH, POINTS, rules

OfDraws = Callable[[Floats, Ints], Floats]
"""An estimate from numbers of draws until `hits` stood above, for the items at these positions."""


@dataclass(frozen=True)
class Unbiased(Estimator):
    """Exactly unbiased estimates under inverse sampling without a cap.

    They exist for AP, RR, AUC and the mean rank, and for every metric with a cut-off of at most `decide`, or `hits`.
    Where candidates had unequal chances, they exist for AUC and the mean rank.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> exact = tr.Ranks.from_ranks([[3, 40], [500]], n=1_000)
    >>> draws = [tr.InverseSampling(2).draw(exact, rng=seed) for seed in range(300)]
    >>> estimates = [tr.estimate(sampled, "ap~unbiased").mean for sampled in draws]
    >>> round(np.mean(estimates).item(), 1), round(tr.estimate(exact, "ap").mean, 1)
    (0.1, 0.1)
    """

    name = "unbiased"

    def unbiased(self, ranks: Ranks) -> bool:
        """Whether no draw could have reached a cap."""
        most = getattr(ranks.design, "cap", None)
        return most is None or bool(np.all(ranks.item_irrelevant <= most))

    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        if require_design(ranks, name).unequal_chances:
            return _weighted_terms(parts, ranks, name)
        design, plain = _inverse(ranks, name), name.partition("~")[0]
        if not all(has_unbiased_form(part.term, ranks) for part in parts):
            raise InputError(f"{plain} has no useful unbiased estimate under {design}; use {plain}~smooth.")
        if number := int(capped(ranks).sum()):
            raise InputError(
                f"{name} needs every draw to be finished, but the cap of {design} stopped {number} of "
                f"{ranks.above.size} relevant items; use {plain}~smooth."
            )
        places = np.arange(ranks.above.size)
        return tuple(Terms(ValueTerm(_values(part.term, ranks, design)), places, part.weight) for part in parts)

    def attainable(self, parts: tuple[Terms, ...], ranks: Ranks) -> tuple[float, float] | None:
        """Return 0, and the sum of the largest estimates of the items of an instance: a term over its chance."""
        design = require_design(ranks, self.name)
        if not all(has_unbiased_form(part.term, ranks) and _is_cut(part.term, ranks) for part in parts):
            return None
        most = np.zeros(ranks.above.size)
        for part in parts:
            largest = np.zeros(ranks.above.size)
            for count in range(design.decides_below):
                np.maximum(largest, _known(part.term, ranks, np.full_like(ranks.above, count), design), out=largest)
            most += largest if part.weight is None else largest * part.weight
        return 0.0, float(np.bincount(ranks.instance, most).max(initial=0.0))


@dataclass(frozen=True)
class Possible(Estimator):
    """The middle of the values that a sample leaves possible, for designs of unknown law; its interval spans them all.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_scores([0.5, 0.1], [[0.1, 0.9], [0.4, 0.2]], n=4, inclusion=[[0.5, 0.9], [0.5, 0.9]])
    >>> tr.values(ranks, "recall@2").tolist()          # one of three is above the first item, and one below
    [0.5, 0.0]
    """

    name = "possible"

    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        design = require_design(ranks, name)
        if ranks.drawn is None and not design.unequal_chances:
            raise InputError(f"{name} is for draws that are known item by item, but these were sampled by {design}.")
        from truerank.estimators.bounds import possible  # it imports the solvers of bounds

        places = np.arange(ranks.above.size)
        ends = [[possible(part.term, ranks, upper).values for upper in (False, True)] for part in parts]
        middles = [ValueTerm((low + high) / 2) for low, high in ends]
        return tuple(Terms(middle, places, part.weight) for middle, part in zip(middles, parts, strict=True))


def _weighted_terms(parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
    """Return affine terms at the estimated counts, which are unbiased."""
    plain, places, count = name.partition("~")[0], np.arange(ranks.above.size), ranks.estimated
    if not all(part.term.shape == "affine" for part in parts):
        raise InputError(
            f"{plain} has no unbiased estimate from candidates with unequal chances; use {plain}~possible."
        )
    if count is None:
        mixed = "mix it with uniform draws, as in popularity(100, uniform=0.1)"
        raise InputError(f"{name} needs a chance above 0 for every candidate, which {ranks.design} lacks; {mixed}.")
    return tuple(Terms(ValueTerm(_exact(part.term, ranks, count)), places, part.weight) for part in parts)


def _inverse(ranks: Ranks, name: str) -> InverseSampling:
    design = require_design(ranks, name)
    if not isinstance(design, InverseSampling):
        raise InputError(f"{name} needs inverse sampling, but these ranks were sampled by {design}.")
    if ranks.tied.any():
        raise InputError(f"{name} needs ranks without ties; use `break_ties` first.")
    return design


def _is_cut(term: Term, ranks: Ranks) -> bool:
    return term.cutoff(ranks.n_relevant) is not None


def _values(term: Term, ranks: Ranks, design: InverseSampling) -> Floats:
    if _is_cut(term, ranks):
        decided = (ranks.above < design.decides_below) & (ranks.item_draws == ranks.item_irrelevant)
        return np.where(decided, _known(term, ranks, ranks.above, design), 0.0)
    return _from_draws(_of_draws(term, ranks, design.hits), _exact(term, ranks, ranks.above), ranks, design)


def _exact(term: Term, ranks: Ranks, count: AnyArray) -> Floats:
    n = ranks.item_irrelevant + ranks.item_n_relevant
    return np.asarray(term.term(count + ranks.i, ranks.i, ranks.item_n_relevant, n), dtype=np.float64)


def _known(term: Term, ranks: Ranks, count: Ints, design: SamplingDesign) -> Floats:
    """Return what each item adds with this count above it, over the chance of knowing the count; 0 if there is none."""
    N = ranks.item_irrelevant
    possible = (count < design.decides_below) & (count <= N)
    chance = design.inclusion(np.where(possible, count, 0), N)
    return np.where(possible, _exact(term, ranks, np.minimum(count, N)) / chance, 0.0)


def _of_draws(term: Term, ranks: Ranks, hits: int) -> OfDraws:
    """Return the estimate of a term that is affine in the rank, or proportional to 1 / rank."""
    i, N, n_relevant = ranks.i, ranks.item_irrelevant, ranks.item_n_relevant
    n = N + n_relevant

    def affine(drawn: Floats, at: Ints) -> Floats:
        count = N[at] * (hits - 1) / np.maximum(drawn - 1, 0.5)  # hits > 1, so there is a draw before the last
        rank = cast("Ints", count + i[at])
        return np.asarray(term.term(rank, i[at], n_relevant[at], n[at]), dtype=np.float64)

    # a term proportional to 1 / rank is known from its value at the best rank
    factor = i * term.term(i, i, n_relevant, n) if term.shape == "reciprocal" else np.zeros(0)

    def reciprocal(drawn: Floats, at: Ints) -> Floats:
        return factor[at] * unbiased_reciprocal(drawn, i[at], N[at], hits)

    return affine if term.shape == "affine" else reciprocal


def _from_draws(estimate: OfDraws, exact: Floats, ranks: Ranks, design: InverseSampling) -> Floats:
    """Return the estimates, or their mean where draws went on and it is not known when `hits` stood above."""
    drawn, all_drawn = ranks.item_draws, ranks.above < design.hits
    found = np.where(all_drawn, exact, 0.0)
    on = ~all_drawn & (drawn > design.line(ranks.item_irrelevant))
    ended = np.flatnonzero(~all_drawn & ~on)
    found[ended] = estimate(drawn[ended].astype(np.float64), ended)
    if on.any():
        found[on] = _mean_beyond(estimate, np.flatnonzero(on), ranks, design)
    return found


def _mean_beyond(estimate: OfDraws, at: Ints, ranks: Ranks, design: InverseSampling) -> Floats:
    """Return the mean of an estimate if `hits` stood above after the line, given how the draws ended.

    All places of those above are equally likely, except that the last draw is one of them if `decide` are. So the
    `hits`-th of s comes as the x-th of U draws with a chance proportional to C(x - 1, hits - 1) C(U - x, s - hits).
    """
    hits, N = design.hits, ranks.item_irrelevant[at]
    last = ranks.above[at] == design.decides_below
    s, U = ranks.above[at] - last, ranks.item_draws[at] - last
    start, end = design.line(N) + 1, U - (s - hits) + 1
    total, weight = np.zeros((2, at.size))
    live = np.flatnonzero(start < end)
    while live.size:
        longest = np.minimum(GROWTH * start, 2 * U / np.sqrt(s + 1.0))[live]
        length, points, each = rules(np.minimum(np.maximum(longest, POINTS), (end - start)[live]))
        x = start[live, None] + points
        chance = each * _ways(x, hits - 1, U[live, None], (s - hits)[live, None])
        value = estimate(x.ravel(), np.repeat(at[live], POINTS)).reshape(x.shape)
        total[live] += (chance * value).sum(axis=1)
        weight[live] += chance.sum(axis=1)
        start[live] += length
        live = live[start[live] < end[live]]
    return total / weight


def _ways(x: Floats, before: int, U: Ints, after: Ints) -> Floats:
    """Return numbers proportional to the ways to choose `before` of x - 1 and `after` of U - x places."""
    ways = np.ones(x.shape)
    for place in range(1, before + 1):
        ways *= (x - place) / U
    for place in range(int(after.max(initial=0))):
        ways *= np.where(place < after, (U - x - place) / U, 1.0)
    return ways


def unbiased_reciprocal(drawn: AnyArray, i: Ints, n_irrelevant: Ints, hits: int) -> Floats:
    """Return an unbiased estimate of 1 / (a + i) from the number of draws until `hits` stood above.

    Examples
    --------
    Of 4 candidates 2 stand above. The first of them is the 1st, 2nd or 3rd draw with chances 3/6, 2/6, 1/6:

    >>> estimates = unbiased_reciprocal(np.arange(1, 4), np.full(3, 2), np.full(3, 4), hits=1)
    >>> round(float(estimates @ [3, 2, 1] / 6), 12), 1 / (2 + 2)
    (0.25, 0.25)
    """
    estimates = np.empty(drawn.size)
    for place in np.unique(i).tolist():
        at = np.flatnonzero(i == place)
        t, N = drawn[at, None].astype(np.float64), n_irrelevant[at, None].astype(np.float64)
        k, trials = np.arange(place), place - 1
        choices = gammaln(trials + 1.0) - gammaln(k + 1.0) - gammaln(trials - k + 1.0)
        log = choices + betaln(k + t + 1, trials - k + N + 1 - t) - betaln(t + 1, N + 1 - t)
        estimates[at] = (t / (N + 1))[:, 0] * (np.exp(log) / (hits + k)).sum(axis=1)
    return estimates


CORRECTIONS.add_built_in(Unbiased, Possible)
