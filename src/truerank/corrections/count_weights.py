"""Unbiased estimates of metrics cut at k from ranks whose counts have weights, as those of `truerank.Roulette`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.errors import InputError
from truerank.metrics.base import Term, Terms
from truerank.ranking.ranks import Ranks


@dataclass(frozen=True, eq=False)
class ValueTerm(Term):
    """Gives each relevant item a value of its own; what a term is given as n is here the place of the item."""

    values: Floats

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return self.values[n]


def weighted_terms(parts: tuple[Terms, ...], ranks: Ranks, weights: Floats, name: str) -> tuple[Terms, ...]:
    """Return the terms of a metric, each the sum of its values at all counts times their weights.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Roulette(k=2, budget=4).draw(tr.Ranks.from_ranks([1, 2, 9], n=90), rng=0)
    >>> weighted_terms(tr.metric("ap").terms(ranks), ranks, ranks.count_weights, "ap")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    truerank.errors.InputError: ap needs ranks below 2, where roulette(4)@2 tells nothing; ...
    """
    k = weights.shape[1]
    for part in parts:
        deepest = part.term.cutoff(ranks.n_relevant)
        if deepest is None or np.any(deepest > k):
            plain = name.partition("~")[0]
            raise InputError(
                f"{plain} needs ranks below {k}, where {ranks.design} tells nothing; use a metric cut at {k} or above."
            )
    places = np.arange(ranks.above.size)
    return tuple(Terms(ValueTerm(_values(part, ranks, weights)), places, part.weight) for part in parts)


def _values(part: Terms, ranks: Ranks, weights: Floats) -> Floats:
    n = ranks.item_irrelevant + ranks.item_n_relevant
    # the weight of a count beyond the candidates is 0
    at = np.minimum(np.arange(weights.shape[1]), ranks.item_irrelevant[:, None])
    i, n_relevant = ranks.i[:, None], ranks.item_n_relevant[:, None]
    return np.asarray((weights * part.term.term(at + i, i, n_relevant, n[:, None])).sum(axis=1), dtype=np.float64)
