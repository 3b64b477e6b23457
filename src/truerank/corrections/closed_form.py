r"""Exactly unbiased estimates under inverse sampling.

Candidates are drawn without replacement until h stand above the relevant item, which T draws are needed for. With a of
N above, T has the rising moments (x_s = x (x + 1) ... (x + s - 1))

    E[T_s] = h_s (N + 1)_s / (a + 1)_s,

so T / (h (N + 1)) is an unbiased estimate of 1 / (a + 1), the reciprocal of the first relevant item's rank. For the
i-th one, partial fractions give 1 / (a + i) = sum_s (-1)^(s-1) (i-1)! / (i-s)! / (a + 1)_s for s = 1..i, and each term
has its unbiased estimate T_s / (h_s (N + 1)_s). The alternating sum of these is a mean of positive numbers,

    T / (N + 1) E[1 / (h + K)],   K beta-binomial with i - 1 trials and parameters T + 1 and N + 1 - T:

s! / (h + 1)_s is E[U^s] for U of Beta(1, h) and (T + 1)_s / (N + 2)_s is E[Y^s] for Y of Beta(T + 1, N + 1 - T), so the
sum is T / (h (N + 1)) E[(1 - U Y)^(i-1)]; expand 1 - U Y = (1 - Y) + Y (1 - U) and use E[(1 - U)^k] = h / (h + k). No
other function of T is unbiased: for a = N, N - 1, ..., h each expectation brings in one more value of T.

If fewer than h stand above, all candidates are drawn and a is known. Of a itself N (h - 1) / (T - 1) is an unbiased
estimate for h from 2 (Haldane, 1945), hence AUC and the mean rank have one too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, gammaln

from truerank.arrays import Bools, Floats, Ints
from truerank.corrections.base import CORRECTIONS, Estimator, require_design
from truerank.corrections.count_weights import ValueTerm, weighted_terms
from truerank.errors import InputError
from truerank.metrics.base import Term, Terms
from truerank.ranking.ranks import Ranks
from truerank.sampling.sequential import InverseSampling


@dataclass(frozen=True)
class Unbiased(Estimator):
    """Exactly unbiased estimates: under inverse sampling without a cap of AP, RR, AUC and the mean rank.

    Under `truerank.Roulette` of metrics cut at its k or above.

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
        most = getattr(ranks.design, "most", None)
        return ranks.count_weights is not None or most is None or bool(np.all(ranks.item_irrelevant <= most))

    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        if ranks.count_weights is not None:
            return weighted_terms(parts, ranks, ranks.count_weights, name)
        hits = _hits(ranks, name)
        if not all(_has_form(part.term, ranks, hits) for part in parts):
            plain = name.partition("~")[0]
            raise InputError(f"{plain} has no useful unbiased estimate under {ranks.design}; use {plain}~smooth.")
        if number := int(capped(ranks).sum()):
            plain = name.partition("~")[0]
            raise InputError(
                f"{name} needs every draw to be finished, but the cap of {ranks.design} stopped {number} of "
                f"{ranks.above.size} relevant items; use {plain}~smooth."
            )
        places = np.arange(ranks.above.size)
        return tuple(Terms(ValueTerm(_values(part.term, ranks, hits)), places, part.weight) for part in parts)

    def caveats(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[str, ...]:
        if ranks.count_weights is None:
            return ()
        return (
            f"intervals of {ranks.design} rest on the changes seen: if rare ones far down decide, they are too short",
        )


CORRECTIONS.add_built_in(Unbiased)


def has_unbiased_form(parts: tuple[Terms, ...], ranks: Ranks) -> bool:
    """Whether these ranks were sampled so that `Unbiased` estimates all terms."""
    design = ranks.design
    return ranks.count_weights is not None or (
        isinstance(design, InverseSampling)
        and not design.whole
        and not capped(ranks).any()
        and all(_has_form(part.term, ranks, design.hits) for part in parts)
    )


def capped(ranks: Ranks) -> Bools:
    """Whether the draws for each relevant item were ended before enough stood above or all were drawn."""
    hits = getattr(ranks.design, "hits", 0)
    return (ranks.above < hits) & (ranks.item_draws < ranks.item_irrelevant)


def _hits(ranks: Ranks, name: str) -> int:
    design = require_design(ranks, name)
    if not isinstance(design, InverseSampling):
        raise InputError(f"{name} needs inverse sampling, but these ranks were sampled by {design}.")
    if design.whole:
        plain = name.partition("~")[0]
        raise InputError(
            f"{name} needs draws that end when enough stand above, but {design} ends them later; use {plain}~smooth."
        )
    if ranks.tied.any():
        raise InputError(f"{name} needs ranks without ties; use `break_ties` first.")
    return design.hits


def _has_form(term: Term, ranks: Ranks, hits: int) -> bool:
    if term.cutoff(ranks.n_relevant) is not None:
        return False
    return term.shape == "reciprocal" or (term.shape == "affine" and hits > 1)


def _values(term: Term, ranks: Ranks, hits: int) -> Floats:
    n = ranks.item_irrelevant + ranks.item_n_relevant
    all_drawn = ranks.above < hits
    if term.shape == "affine":
        with np.errstate(divide="ignore"):
            rate = (hits - 1) / (ranks.item_draws - 1)
        count = np.where(all_drawn, ranks.above, ranks.item_irrelevant * rate)
        return term.term(count + ranks.i, ranks.i, ranks.item_n_relevant, n)
    # what is proportional to 1 / rank is known from its value at the best rank
    factor = ranks.i * term.term(ranks.i, ranks.i, ranks.item_n_relevant, n)
    found = unbiased_reciprocal(ranks.item_draws, ranks.i, ranks.item_irrelevant, hits)
    return factor * np.where(all_drawn, 1.0 / ranks.rank, found)


def unbiased_reciprocal(drawn: Ints, i: Ints, n_irrelevant: Ints, hits: int) -> Floats:
    """Return an unbiased estimate of 1 / (a + i) from the number of draws until `hits` stood above.

    Examples
    --------
    Of 4 candidates 2 stand above. The first of these is the 1st, 2nd or 3rd that is drawn with chances 3/6, 2/6, 1/6:

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
