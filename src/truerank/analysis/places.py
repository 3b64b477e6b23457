"""Where relevant items are among all candidates, and what of it a sample shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats, Ints, distinct_columns
from truerank.corrections.nodes import interval_nodes
from truerank.ranking.ranks import Ranks
from truerank.ranking.ties import chance
from truerank.sampling.laws import HYPERGEOMETRIC, Law
from truerank.sampling.pooled_laws import pooled_laws, pooled_tied_laws


@dataclass(frozen=True, eq=False)
class Places:
    """Relevant items at counts of candidates above them; one with ties is at several, with a share at each."""

    item: Ints
    above: Floats
    share: Floats

    @classmethod
    def of(cls, ranks: Ranks, items: Ints, largest: int, law: Law) -> Places:
        """Return the places of some items that do for all samples of at most `largest` draws."""
        free = items[ranks.tied[items] == 0]
        spread = [_spread(ranks, int(item), largest, law) for item in items[ranks.tied[items] > 0]]
        item = np.concatenate([free, *(np.full(share.size, item) for item, _, share in spread)])
        above = np.concatenate([ranks.above[free].astype(np.float64), *(counts for _, counts, _ in spread)])
        share = np.concatenate([np.ones(free.size), *(share for _, _, share in spread)])
        return cls(item, above, share)


def _spread(ranks: Ranks, item: int, largest: int, law: Law) -> tuple[int, Floats, Floats]:
    """Return a tied item, the counts above it that stand for all its places, and their shares."""
    place, block = (numbers[item] for numbers in ranks.blocks())
    above, tied, N = int(ranks.above[item]), int(ranks.tied[item]), int(ranks.draws[ranks.instance[item]])
    counts = interval_nodes(above, above + tied, N, min(largest, N), law, longest=8 * tied / block)
    return item, counts.g, counts.weight * chance(counts.g - above, ranks.tied[item], place, block)


def tied_alone(ranks: Ranks, law: Law) -> Ints:
    """Return the items whose ties, among irrelevant ones only, have a law in closed form."""
    _, block = ranks.blocks()
    return np.flatnonzero((ranks.tied > 0) & (block == 1) & (law is HYPERGEOMETRIC))


@dataclass(frozen=True, eq=False)
class SampledPlaces:
    """How many items of each group have h of the sampled candidates above them, on average over all samples.

    A part of a sample, chosen at random, is a smaller sample. So this tells all about samples with fewer draws: they
    are drawn from the ones here, without replacement.

    Attributes
    ----------
    times : array, shape (groups, draws + 1)
        The expected number, or sum of weights, of items by their h.
    i, n_relevant : arrays
        Of the items of each group.
    """

    times: Floats
    i: Ints
    n_relevant: Ints


def sampled_places(ranks: Ranks, m: int, law: Law, weight: Floats | None) -> SampledPlaces:
    """Return what samples of m draws show of the items, which may have weights."""
    if weight is not None:
        return _sampled_places(ranks, m, law, weight)
    key = (SampledPlaces, m, law)
    if key not in ranks.fits:
        ranks.fits[key] = _sampled_places(ranks, m, law, np.ones(ranks.above.size))
    found: SampledPlaces = ranks.fits[key]
    return found


def _sampled_places(ranks: Ranks, m: int, law: Law, weight: Floats) -> SampledPlaces:
    first, group = distinct_columns(ranks.i, ranks.item_n_relevant)
    times = pooled_counts(ranks, m, law, weight=weight, group=group, n_groups=first.size)
    return SampledPlaces(times, ranks.i[first], ranks.item_n_relevant[first])


def pooled_counts(ranks: Ranks, m: int, law: Law, *, weight: Floats, group: Ints, n_groups: int) -> Floats:
    """Return the expected sum of the weights of the items of each group by their h, of shape (n_groups, m + 1)."""
    N = ranks.item_n - ranks.item_n_relevant
    alone = tied_alone(ranks, law)
    places = Places.of(ranks, np.setdiff1d(np.arange(ranks.above.size), alone), m, law)
    item = places.item
    total = pooled_laws(
        law, places.above, m, N[item], weight=places.share * weight[item], group=group[item], n_groups=n_groups
    )
    if alone.size:
        above, tied = ranks.above[alone], ranks.tied[alone]
        total += pooled_tied_laws(above, tied, m, N[alone], weight=weight[alone], group=group[alone], n_groups=n_groups)
    return total
