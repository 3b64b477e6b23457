"""From ranks to one value per instance, with ties resolved by a stated policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.errors import InputError
from truerank.metrics.names import metric as as_metric
from truerank.metrics.plain import Metric, Term
from truerank.ranking.ranks import Ranks
from truerank.sums import GROWTH, POINTS, on_ladder, rule

Ties = Literal["expected", "optimistic", "pessimistic", "random"]

# terms evaluated at once while averaging over ties: bounds memory at some tens of MB
_CHUNK = 1 << 19


def values(
    ranks: Ranks,
    metric: str | Metric | Term,
    *,
    ties: Ties = "expected",
    rng: int | np.random.Generator | None = None,
) -> Floats:
    """Return the metric of each instance.

    Parameters
    ----------
    ranks : Ranks
        Where the relevant items are.
    metric : str, Metric or function
        For instance ``"ndcg@10"``.
    ties : {"expected", "optimistic", "pessimistic", "random"}
        "expected" is the exact mean over all orders of equally scored items, without randomness;
        the relevant items first, last, or one random order (seeded by `rng`) are the others.
    rng : int or numpy.random.Generator, optional
        Seed for ``ties="random"``.

    Returns
    -------
    array of float64, one per instance
        NaN where the metric is undefined: no relevant item, or for AUC no irrelevant one.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([[1, 3], [2]], n=5)
    >>> tr.values(ranks, "ap").round(4).tolist()
    [0.8333, 0.5]

    One relevant item that ties with one irrelevant item is first or second, with equal chance:

    >>> tied = tr.Ranks(above=[0], tied=[1], n_candidates=2)
    >>> [tr.values(tied, "ap", ties=policy).item() for policy in ("expected", "optimistic", "pessimistic")]
    [0.75, 1.0, 0.5]
    """
    chosen = as_metric(metric)
    check_depth(ranks, chosen)
    if ties not in get_args(Ties):
        raise InputError(f"`ties` must be one of {', '.join(map(repr, get_args(Ties)))}, got {ties!r}.")
    if ties != "expected":
        ranks = ranks.break_ties(ties, rng=rng)
    return _sum_by_instance(_terms(ranks, chosen.on(ranks)), ranks)


def check_depth(ranks: Ranks, metric: Metric) -> None:
    """Refuse a metric that looks deeper than lists which were cut."""
    if ranks.depth is None:
        return
    deepest = metric.cutoff(ranks.n_relevant)
    if deepest is None:
        raise InputError(
            f"{metric} needs the whole ranking, but these lists are cut at depth {ranks.depth}; "
            f"use a metric with a cut-off of at most {ranks.depth}."
        )
    if np.any(deepest > ranks.depth):
        raise InputError(f"{metric} looks at rank {deepest.max()}, but these lists are cut at depth {ranks.depth}.")


def _sum_by_instance(terms: Floats, ranks: Ranks) -> Floats:
    total = np.full(len(ranks), np.nan)
    filled = ranks.n_relevant > 0
    if np.any(filled):
        total[filled] = np.add.reduceat(terms, ranks.indptr[:-1][filled])
    return total


def _terms(ranks: Ranks, metric: Metric) -> Floats:
    """Mean of what each relevant item adds over all orders of the tied ones, whose grades may differ."""
    if not metric.graded:
        return _expected_terms(ranks, metric)
    total = np.zeros(ranks.above.size)
    for plain, weight in metric.parts(ranks):
        total += weight * _block_means(_expected_terms(ranks, plain), ranks)
    return total


def _block_means(terms: Floats, ranks: Ranks) -> Floats:
    """Mean term over the places of a block, at each of which any of its relevant items is equally likely."""
    if not ranks.has_ties:
        return terms
    place, size = ranks.blocks()
    starts = np.flatnonzero(place == 1)
    return np.repeat(np.add.reduceat(terms, starts), size[starts]) / size


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

    def term(self, metric: Metric, lost: Floats | Ints) -> Floats:
        """Terms when each item loses that many of its ties."""
        return metric.term(self.rank + lost, self.i, self.n_relevant, self.n)  # type: ignore[arg-type]


def _expected_terms(ranks: Ranks, metric: Metric) -> Floats:
    """Mean term of each relevant item over all orders of the tied ones."""
    n_relevant, n = ranks.item_n_relevant, np.repeat(metric.candidates(ranks), ranks.n_relevant)
    terms = metric.term(ranks.rank, ranks.i, n_relevant, n)
    if not ranks.tied.any():
        return terms
    items = _Items(ranks.rank, ranks.i, n_relevant, n, ranks.tied, *ranks.blocks())
    if metric.linear:
        return items.term(metric, items.tied * items.place / (items.block + 1.0))
    terms = np.array(terms, dtype=np.float64)
    # blocks of like size together: the work on a chunk grows with the largest
    tied = np.flatnonzero(items.tied)
    tied = tied[np.argsort(items.block[tied], kind="stable")]
    for at in _chunks(tied, _cost(items.take(tied), metric)):
        mean = _smooth_mean_over_orders if metric.smooth else _mean_over_orders
        terms[at] = mean(items.take(at), metric)
    return terms


def _losses_that_count(items: _Items, metric: Metric) -> Ints:
    """How many of 0, 1, ..., tied lost ties leave the item within the metric's cut-off."""
    cutoff = metric.cutoff(items.n_relevant)
    return items.tied + 1 if cutoff is None else np.clip(cutoff - items.rank + 1, 0, items.tied + 1)


def _cost(items: _Items, metric: Metric) -> Ints:
    """Terms held at once for each item."""
    counts = _losses_that_count(items, metric)
    return np.minimum(counts, POINTS) if metric.smooth else counts


def _chunks(positions: Ints, costs: Ints) -> Iterator[Ints]:
    """Cut the positions where their costs add up to another chunk."""
    return iter(np.split(positions, np.flatnonzero(np.diff(np.cumsum(costs) // _CHUNK)) + 1))


def _mean_over_orders(items: _Items, metric: Metric) -> Floats:
    """Sum over every number of lost ties."""
    counts = _losses_that_count(items, metric)
    row = np.repeat(np.arange(counts.size), counts)
    lost = np.arange(row.size) - np.repeat(np.cumsum(counts) - counts, counts)
    spread = items.take(row)
    weighted = _chance(lost, spread) * spread.term(metric, lost)
    return np.bincount(row, weights=weighted, minlength=counts.size).astype(np.float64, copy=False)


def _smooth_mean_over_orders(items: _Items, metric: Metric) -> Floats:
    """Sum the same in blocks that grow with the rank, by Gauss rules: blocks of 40,000 ties need some 100 terms.

    The chance is a polynomial in the number of lost ties of degree b - 1, for b relevant items in
    the block; blocks are kept so short that 8 of its degrees fall on each.
    """
    end = _losses_that_count(items, metric)
    limit = items.tied // np.maximum(items.block // 8, 1) + 1
    total, start = np.zeros(end.size), np.zeros_like(end)
    live = np.flatnonzero(start < end)
    while live.size:
        longest = np.maximum(np.minimum(GROWTH * (items.rank + start - 1), limit), POINTS)[live]
        length = _on_ladder(np.minimum(longest, (end - start)[live]))
        points, weights = _rules(length)
        spread = items.take(live[:, None])
        lost = start[live, None] + points
        total[live] += (weights * _chance(lost, spread) * spread.term(metric, lost)).sum(axis=1)
        start[live] += length
        live = live[start[live] < end[live]]
    return total


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


def _chance(lost: Floats | Ints, items: _Items) -> Floats:
    """Chance that `lost` of the tied irrelevant items come before the relevant one at this place.

    With one relevant item in the block every order is equally likely. With b of them and t
    irrelevant ones, the j-th has x before it in C(x+j-1, x) C(t-x+b-j, t-x) of C(t+b, b) orders.
    Multiplied out factor by factor, which neither overflows nor loses digits.
    """
    x, t, j, b = np.broadcast_arrays(lost, items.tied, items.place, items.block)
    chance = np.asarray(b / (t + b), dtype=np.float64)
    for s in range(1, int(b.max(initial=1))):
        at = b > s
        before = (x[at] + s) * (b[at] - s) / s
        after = t[at] - x[at] + s - j[at] + 1
        chance[at] *= np.where(s < j[at], before, after) / (t[at] + s)
    return chance
