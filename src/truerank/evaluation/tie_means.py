"""The mean of what each relevant item adds over all orders of the items that tie with it, without sampling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import cast

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.metrics.base import Term, Terms
from truerank.ranking.ranks import Ranks
from truerank.ranking.ties import chance
from truerank.sums import GROWTH, POINTS, on_ladder, rule

# terms evaluated at once: limits memory to some tens of MB
_CHUNK = 1 << 19
# beyond this many standard deviations plus mean gaps between relevant items, nothing changes a double
_DEVIATIONS, _GAPS = 10.0, 45.0


def expected_terms(ranks: Ranks, terms: Terms) -> Floats:
    """Return the mean of what each relevant item adds over all orders of the tied ones, whose weights may differ."""
    means = _unweighted(ranks, terms)
    return means if terms.weight is None else terms.weight * _block_means(means, ranks)


def _block_means(means: Floats, ranks: Ranks) -> Floats:
    """Mean over the places of a block, at each of which any of its relevant items is equally likely."""
    if not ranks.has_ties:
        return means
    place, size = ranks.blocks()
    starts = np.flatnonzero(place == 1)
    return np.repeat(np.add.reduceat(means, starts), size[starts]) / size


@dataclass(frozen=True)
class _Items:
    """Relevant items, and all that their terms and ties depend on."""

    rank: Ints
    i: Ints
    n_relevant: Ints
    n: Ints
    tied: Ints
    place: Ints
    block: Ints

    def take(self, at: Ints) -> _Items:
        return _Items(*(getattr(self, field.name)[at] for field in fields(self)))

    def term(self, term: Term, lost: Floats | Ints) -> Floats:
        """Terms when each item loses that many of its ties."""
        return term.term(cast("Ints", self.rank + lost), self.i, self.n_relevant, self.n)

    def chance(self, lost: Floats | Ints) -> Floats:
        """Chance of losing that many."""
        return chance(lost, self.tied, self.place, self.block)


def _unweighted(ranks: Ranks, terms: Terms) -> Floats:
    term, n_relevant = terms.term, ranks.item_n_relevant
    plain = term.term(ranks.rank, ranks.i, n_relevant, terms.n)
    if not ranks.tied.any():
        return plain
    items = _Items(ranks.rank, ranks.i, n_relevant, terms.n, ranks.tied, *ranks.blocks())
    if term.shape == "affine":
        return items.term(term, items.tied * items.place / (items.block + 1.0))
    means = np.array(plain, dtype=np.float64)
    # blocks of like size together: the work on a chunk grows with the largest
    tied = np.flatnonzero(items.tied)
    tied = tied[np.argsort(items.block[tied], kind="stable")]
    mean = _mean_over_orders if term.shape == "any" else _smooth_mean_over_orders
    for at in _chunks(tied, _cost(items.take(tied), term)):
        means[at] = mean(items.take(at), term)
    return means


def _range(items: _Items, term: Term) -> tuple[Ints, Ints]:
    """Return from and before how many lost ties there is a chance, and something left to add."""
    j, b, t = items.place, items.block, items.tied
    middle = t * j / (b + 1.0)
    deviation = np.sqrt(middle * (b + 1.0 - j) * (t + b + 1.0) / ((b + 1.0) * (b + 2.0)))
    # far away the chance falls at least as fast as the exponential of the mean gap, or of a few single ties
    reach = _DEVIATIONS * deviation + _GAPS * np.maximum(t / b, 1.0)
    first = np.maximum(np.floor(middle - reach), 0).astype(np.int64)
    end = np.minimum(np.ceil(middle + reach), t).astype(np.int64) + 1
    cutoff = term.cutoff(items.n_relevant)
    if cutoff is not None:
        end = np.minimum(end, cutoff - items.rank + 1)
    return first, np.maximum(end, first)


def _cost(items: _Items, term: Term) -> Ints:
    """Terms held at once for each item."""
    first, end = _range(items, term)
    return end - first if term.shape == "any" else np.minimum(end - first, POINTS)


def _chunks(positions: Ints, costs: Ints) -> Iterator[Ints]:
    """Cut the positions where their costs add up to another chunk."""
    return iter(np.split(positions, np.flatnonzero(np.diff(np.cumsum(costs) // _CHUNK)) + 1))


def _mean_over_orders(items: _Items, term: Term) -> Floats:
    """Sum over every number of lost ties."""
    first, end = _range(items, term)
    counts = end - first
    row = np.repeat(np.arange(counts.size), counts)
    lost = np.arange(row.size) - np.repeat(np.cumsum(counts) - counts - first, counts)
    spread = items.take(row)
    weighted = spread.chance(lost) * spread.term(term, lost)
    return np.bincount(row, weights=weighted, minlength=counts.size).astype(np.float64, copy=False)


def _smooth_mean_over_orders(items: _Items, term: Term) -> Floats:
    """Sum the same in blocks that grow with the rank, by Gauss rules: 40,000 ties need some 100 terms.

    The chance is a polynomial in the number of lost ties, nearly an exponential near the ends of the block of ties and
    nearly a normal density inside; the blocks are kept shorter than a few of its widths.
    """
    start, end = _range(items, term)
    limit = _longest(items)
    total = np.zeros(end.size)
    live = np.flatnonzero(start < end)
    while live.size:
        longest = np.maximum(np.minimum(GROWTH * (items.rank + start - 1), limit), POINTS)[live]
        length = _on_ladder(np.minimum(longest, (end - start)[live]))
        points, weights = _rules(length)
        spread = items.take(live[:, None])
        lost = start[live, None] + points
        total[live] += (weights * spread.chance(lost) * spread.term(term, lost)).sum(axis=1)
        start[live] += length
        live = live[start[live] < end[live]]
    return total


def _longest(items: _Items) -> Floats:
    """Longest block on which a Gauss rule sums the chance: 8 degrees of the polynomial, or 3.5 deviations."""
    few = np.maximum(items.block // 8, 1)
    deviations = np.sqrt(np.minimum(items.place, items.block - items.place + 1)) / items.block
    return np.maximum(items.tied // few + 1, 3.5 * items.tied * deviations)


def _on_ladder(lengths: Floats) -> Ints:
    distinct, which = np.unique(lengths, return_inverse=True)
    return np.array([on_ladder(length) for length in distinct], dtype=np.int64)[which]


def _rules(lengths: Ints) -> tuple[Floats, Floats]:
    """Points and weights for each length, filled up to 16 with weight 0."""
    distinct, which = np.unique(lengths, return_inverse=True)
    table = np.zeros((2, distinct.size, POINTS))
    for row, length in enumerate(distinct):
        points, weights = rule(int(length))
        table[0, row, : points.size], table[1, row, : points.size] = points, weights
    return table[0][which], table[1][which]
