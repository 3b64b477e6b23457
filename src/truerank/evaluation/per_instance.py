"""`values`: a metric of each instance, by groups of instances or items, and its mean over all orders of tied items.

A block of ties holds b relevant and t irrelevant items of one score. The j-th relevant one, counted from the top of the
block, *loses* x ties if x of the irrelevant ones come before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, cast, get_args, overload

import numpy as np

from truerank.core.checks import Floats, InputError, Ints, Rng, as_rng, check_choice, stretches
from truerank.core.ranks import Ranks, check_ranks, named_ranks
from truerank.core.tables import Backend, frame
from truerank.estimators.corrected import AnyMetric, as_metrics, recommended
from truerank.estimators.corrected import metric as as_metric
from truerank.evaluation.groups import UNKNOWN, Groups
from truerank.metrics.definitions import Metric, Term, Terms
from truerank.sampling.sums import GROWTH, POINTS, rules

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from truerank.evaluation.propensities import Propensity

Ties = Literal["expected", "optimistic", "pessimistic", "random"]

Named = Ranks | Mapping[str, Ranks]

Metrics = AnyMetric | Iterable[AnyMetric]


def values(ranks: Ranks, metric: AnyMetric, *, ties: Ties = "expected", rng: Rng = None) -> Floats:
    """Return the metric of each instance.

    Parameters
    ----------
    ranks : Ranks
        Where the relevant items are.
    metric : str, Metric or function
        For instance ``"ndcg@10"``. Under inverse sampling it is estimated as `truerank.evaluate` does.
    ties : {"expected", "optimistic", "pessimistic", "random"}
        "expected" is the exact mean over all orders of equally scored items, without randomness;
        "optimistic" puts relevant items first, "pessimistic" last, and "random" draws one order
        (seeded by `rng`).
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
    check_ranks(ranks)
    chosen = as_metric(metric)
    check_ties(ties)
    if ties != "expected":
        ranks = ranks.break_ties(ties, rng=rng)
    return sums(ranks, checked_terms(ranks, recommended(chosen, ranks)))


@overload
def values_frame(
    ranks: Named, metrics: Metrics, *, backend: Literal["pandas"] = "pandas", ties: Ties = ..., rng: Rng = ...
) -> pd.DataFrame: ...
@overload
def values_frame(
    ranks: Named, metrics: Metrics, *, backend: Literal["polars"], ties: Ties = ..., rng: Rng = ...
) -> pl.DataFrame: ...
@overload
def values_frame(
    ranks: Named, metrics: Metrics, *, backend: Literal["pyarrow"], ties: Ties = ..., rng: Rng = ...
) -> pa.Table: ...
@overload
def values_frame(
    ranks: Named, metrics: Metrics, *, backend: Backend, ties: Ties = ..., rng: Rng = ...
) -> pd.DataFrame | pl.DataFrame | pa.Table: ...
def values_frame(
    ranks: Named, metrics: Metrics, *, backend: Backend = "pandas", ties: Ties = "expected", rng: Rng = None
) -> Any:
    """Return the metrics of each instance as a dataframe: one row per instance, one column per metric.

    Parameters
    ----------
    ranks : Ranks, or dict of name to Ranks
        One recommender, or several, whose rows have their name in a column `recommender`.
    metrics : list of str, Metric or function (or one of them)
    backend : {"pandas", "polars", "pyarrow"}
        Library of the dataframe.
    ties, rng : as for `truerank.values`

    Returns
    -------
    dataframe
        With columns `recommender` (for several), `id` (the position where there are no ids), and one per metric, which
        is NaN where the metric is undefined.

    Examples
    --------
    >>> import truerank as tr
    >>> tr.values_frame(tr.Ranks.from_ranks([1, 4], n=9, ids=["ann", "bob"]), ["rr", "recall@3"])
        id    rr  recall@3
    0  ann  1.00       1.0
    1  bob  0.25       0.0
    """
    chosen, several = as_metrics(metrics), not isinstance(ranks, Ranks)
    named = named_ranks(ranks, "")
    if not named or not chosen:
        raise InputError("values_frame needs at least one recommender and one metric.")
    broken = untied(named, ties, rng)
    ids = [np.arange(len(one)) if one.ids is None else one.ids for one in named.values()]
    columns: dict[str, Any] = {"recommender": np.repeat(list(named), list(map(len, ids))).tolist()} if several else {}
    columns["id"] = np.concatenate(ids).tolist()
    for metric in chosen:
        columns[str(metric)] = np.concatenate([sums(one, checked_terms(one, metric)) for one in broken.values()])
    return frame(columns, backend)


def check_ties(ties: Ties) -> None:
    """Refuse an unknown policy."""
    check_choice("ties", ties, get_args(Ties))


def tie_seed(ties: Ties, rng: Rng) -> Rng:
    """Return one seed for the ties of all recommenders, None for the expectation, or refuse an unknown policy."""
    check_ties(ties)
    if ties == "expected" or isinstance(rng, int):
        return rng
    return int(as_rng(rng).integers(2**63))


def untied(named: Mapping[str, Ranks], ties: Ties, rng: Rng) -> dict[str, Ranks]:
    """Return ranks with broken ties, unless the expectation over ties is requested; one seed serves all."""
    seed = tie_seed(ties, rng)
    if ties == "expected":
        return dict(named)
    return {name: one.break_ties(ties, rng=seed) for name, one in named.items()}


def checked_terms(ranks: Ranks, metric: Metric) -> tuple[Terms, ...]:
    """Return the terms of a metric, or refuse one that needs ranks below the depth of cut lists."""
    terms = metric.terms(ranks)
    if ranks.depth is not None:
        for part in terms:
            _check_depth(part, ranks, ranks.depth, str(metric))
    return terms


def _check_depth(terms: Terms, ranks: Ranks, depth: int, name: str) -> None:
    deepest = terms.term.cutoff(ranks.n_relevant)
    if deepest is None:
        cut = f"these ranks are cut at depth {depth}; use a metric with a cut-off of at most {depth}"
        raise InputError(f"{name} needs the whole ranking, but {cut}.")
    if np.any(deepest > depth):
        raise InputError(f"{name} looks at rank {deepest.max()}, but these ranks are cut at depth {depth}.")


def sums(ranks: Ranks, terms: tuple[Terms, ...]) -> Floats:
    """Return the sum of all terms of each instance, ties in random order; NaN without a relevant item."""
    total = np.full(len(ranks), np.nan)
    for instances, items in stretches(ranks.indptr):
        part = ranks.stretch(instances, items)
        filled = part.n_relevant > 0
        if np.any(filled):
            own = _added(part, tuple(each.of_items(items) for each in terms))
            total[instances][filled] = np.add.reduceat(own, part.indptr[:-1][filled])
    return total


def values_at_mean_rank(ranks: Ranks, metric: Metric) -> Floats:
    """Return the metric at the mean of the best and the worst rank, which is not its mean over the orders of ties.

    For one relevant item per instance, as some tools compute it; see `truerank.core.conventions`.
    """
    found = np.full(len(ranks), np.nan)
    found[ranks.instance] = 0.0
    for term, n, weight in checked_terms(ranks, metric):
        rank = cast("Ints", ranks.rank + ranks.tied / 2.0)
        added = term.term(rank, ranks.i, ranks.item_n_relevant, n)
        found[ranks.instance] += added if weight is None else weight * added
    return found


def item_terms(ranks: Ranks, terms: tuple[Terms, ...]) -> Floats:
    """Return what each relevant item adds; tied relevant items are equally likely at each of their places."""
    ones = np.ones(ranks.above.size)
    return _added(ranks, tuple(part._replace(weight=ones) if part.weight is None else part for part in terms))


def _added(ranks: Ranks, terms: tuple[Terms, ...]) -> Floats:
    added = expected_terms(ranks, terms[0])
    for part in terms[1:]:
        added = added + expected_terms(ranks, part)
    return added


@dataclass(frozen=True, eq=False)
class Part:
    """A group's part in ranks.

    Attributes
    ----------
    name : str
        The group; empty if there are no groups.
    rows : array of int
        Its instances.
    items : array of int or None
        Its relevant items, as positions; None if it consists of whole instances.
    counts : array of int
        How many relevant items of each of its instances it has.
    weights : array of float
        Their share of the relevant items; 1 if the part consists of whole instances.
    inverse : array of float or None
        1 / propensity of each of its items, which multiplies what the item adds and its part in the instance's weight.
    alone : array of float or None
        Weight of one relevant item of each instance, before this multiplication.
    """

    name: str
    rows: Ints
    items: Ints | None
    counts: Ints
    weights: Floats
    inverse: Floats | None = None
    alone: Floats | None = None

    @property
    def extremes(self) -> tuple[Ints, Floats]:
        """Numbers of items, with their weights, between which all means of the part lie: all its items, or one."""
        return (self.counts, self.weights) if self.alone is None else (np.ones_like(self.counts), self.alone)

    @property
    def key(self) -> tuple[bytes | None, ...]:
        """What tells it from other parts of the same ranks."""
        chosen = (self.rows, self.items, self.inverse)
        return tuple(None if each is None else each.tobytes() for each in chosen)


def values_by_part(ranks: Ranks, terms: tuple[Terms, ...], parts: Sequence[Part]) -> list[Floats]:
    """Return for each part what its relevant items add to the metric of each of its instances."""
    if all(part.items is None for part in parts):
        totals = sums(ranks, terms)
        return [totals[part.rows] for part in parts]
    added, row, n = item_terms(ranks, terms), ranks.instance, len(ranks)

    def total(part: Part) -> Floats:
        own = added[part.items] if part.inverse is None else added[part.items] * part.inverse
        return np.bincount(row[part.items], own, minlength=n)[part.rows].astype(np.float64)

    return [total(part) for part in parts]


def split_by(ranks: Ranks, groups: Groups | None, propensity: Propensity | None = None) -> tuple[Part, ...]:
    """Return the part of each group, followed by the part without a group; the whole if there are no groups."""
    inverse = None if propensity is None else propensity.weights(ranks)
    if groups is None:
        if inverse is None:
            return (_of_instances("", np.arange(len(ranks)), ranks),)
        return (_of_items("", np.arange(inverse.size), ranks, inverse),)
    codes = groups.codes_of(ranks)
    if inverse is not None and not groups.of_items:
        codes = codes[ranks.instance]
    chosen = [(name, np.flatnonzero(codes == code)) for code, name in enumerate((*groups.names, UNKNOWN))]
    if inverse is None and not groups.of_items:
        return tuple(_of_instances(name, rows, ranks) for name, rows in chosen)
    return tuple(_of_items(name, items, ranks, inverse) for name, items in chosen)


def _of_instances(name: str, rows: Ints, ranks: Ranks) -> Part:
    return Part(name, rows, None, ranks.n_relevant[rows], np.ones(rows.size))


def _of_items(name: str, items: Ints, ranks: Ranks, inverse: Floats | None) -> Part:
    rows, which, counts = np.unique(ranks.instance[items], return_inverse=True, return_counts=True)
    alone = 1.0 / ranks.n_relevant[rows]
    if inverse is None:
        return Part(name, rows, items, counts, counts / ranks.n_relevant[rows])
    own = inverse[items]
    return Part(name, rows, items, counts, np.bincount(which, own, minlength=rows.size) * alone, own, alone)


def parts_by(
    ranks: Mapping[str, Ranks], groups: Groups | None, propensity: Propensity | None = None
) -> dict[str, list[Part]]:
    """Return the parts of each recommender, without groups that are empty for all of them."""
    found = {name: split_by(one, groups, propensity) for name, one in ranks.items()}
    kept = [at for at in range(len(next(iter(found.values())))) if any(own[at].rows.size for own in found.values())]
    return {name: [own[at] for at in kept or [0]] for name, own in found.items()}


# terms evaluated at once: limits memory to some tens of MB
_CHUNK = 1 << 19


# beyond this many standard deviations plus mean gaps between relevant items, terms are below double precision
_DEVIATIONS, _GAPS = 10.0, 45.0


# up to this many relevant items in a block, the chance is multiplied out factor by factor
_FEW = 32


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
    """Relevant items, and everything that their terms and ties depend on."""

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
    # blocks of similar size together: the work on a chunk grows with the largest
    tied = np.flatnonzero(items.tied)
    tied = tied[np.argsort(items.block[tied], kind="stable")]
    mean = _mean_over_orders if term.shape == "any" else _smooth_mean_over_orders
    for at in _chunks(tied, _cost(items.take(tied), term)):
        means[at] = mean(items.take(at), term)
    return means


def _range(items: _Items, term: Term) -> tuple[Ints, Ints]:
    """Return the range of lost ties, end excluded, in which chances and terms are not 0."""
    j, b, t = items.place, items.block, items.tied
    middle = t * j / (b + 1.0)
    deviation = np.sqrt(middle * (b + 1.0 - j) * (t + b + 1.0) / ((b + 1.0) * (b + 2.0)))
    # far away the chance falls at least as fast as an exponential of the mean gap, or of a few single ties
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
    """Divide the positions into chunks of about equal total cost."""
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
    """Compute the same sum in blocks that grow with the rank, by Gauss rules: 40,000 ties need some 100 terms.

    The chance is a polynomial in the number of lost ties, nearly an exponential near the ends of the block of ties and
    nearly a normal density inside; the blocks are kept shorter than a few of its widths.
    """
    start, end = _range(items, term)
    limit = _longest(items)
    total = np.zeros(end.size)
    live = np.flatnonzero(start < end)
    while live.size:
        longest = np.maximum(np.minimum(GROWTH * (items.rank + start - 1), limit), POINTS)[live]
        length, points, weights = rules(np.minimum(longest, (end - start)[live]))
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


def chance(lost: Floats | Ints, tied: Ints, place: Ints, block: Ints) -> Floats:
    """Return the chance that `lost` of the tied irrelevant items come before the relevant one at this place.

    With one relevant item in the block every order is equally likely. With b of them and t irrelevant ones, the j-th
    has x before it in C(x+j-1, x) C(t-x+b-j, t-x) of C(t+b, b) orders. Arguments broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> chance(np.arange(4), np.array([3]), np.array([1]), np.array([2])).round(12).tolist()
    [0.4, 0.3, 0.2, 0.1]
    """
    if (block > _FEW).all():
        return _by_law(lost, tied, place, block)  # not yet broadcast, so that shared values are computed once
    x, t, j, b = np.broadcast_arrays(lost, tied, place, block)
    few = b <= _FEW
    if few.all():
        return _multiplied_out(x, t, j, b)
    result = np.empty(x.shape)
    result[few] = _multiplied_out(x[few], t[few], j[few], b[few])
    result[~few] = _by_law(x[~few], t[~few], j[~few], b[~few])
    return result


def _multiplied_out(x: Floats | Ints, t: Ints, j: Ints, b: Ints) -> Floats:
    """Multiply factor by factor, which loses no digits; the largest product is below 2 ** _FEW."""
    result = np.asarray(b / (t + b), dtype=np.float64)
    for s in range(1, int(b.max(initial=1))):
        at = b > s
        before = (x[at] + s) * (b[at] - s) / s
        after = t[at] - x[at] + s - j[at] + 1
        result[at] *= np.where(s < j[at], before, after) / (t[at] + s)
    return result


def _by_law(x: Floats | Ints, t: Ints, j: Ints, b: Ints) -> Floats:
    """Use that j of the first x + j items are relevant, and the last of these is, in j / (x + j) of the cases."""
    from truerank.sampling.laws import HYPERGEOMETRIC

    return j / (x + j) * HYPERGEOMETRIC.pmf(j, b, x + j, t + b)
