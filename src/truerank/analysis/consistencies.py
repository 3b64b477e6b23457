"""Sample sizes at which a sampled metric orders recommenders as the exact metric does.

A metric is consistent under sampling if its expectation keeps the exact order (eq. 14 of Krichene & Rendle 2020). This
module computes expected sampled metrics (eq. 16) as functions of m, and every m at which two recommenders swap places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.analysis.risks import check_exact, item_weights, risks, tied_counts
from truerank.core.caching import LIMIT, Cache
from truerank.core.checks import Bools, Floats, InputError, Ints, as_ints, as_list, as_number, distinct_columns, slices
from truerank.core.ranks import Ranks, check_ranks, n_named
from truerank.core.tables import Cell, Record, Table, Tabular
from truerank.core.threads import progress_bar
from truerank.estimators.corrected import AnyMetric, Case, Corrected, Correction, CountedItems, SumsBySize
from truerank.estimators.corrected import metric as as_metric
from truerank.evaluation.estimates import estimate
from truerank.metrics.definitions import Metric, Term, Terms
from truerank.sampling.designs import AnyDesign, SamplingDesign, as_design
from truerank.sampling.expectations import (
    mean_reciprocal,
    mean_up_to,
    means_by_size,
    moments,
    pooled_laws,
    pooled_tied_laws,
)
from truerank.sampling.laws import HYPERGEOMETRIC, Law
from truerank.sampling.sums import GROWTH, POINTS, condensed, kept_counts

Progress = Callable[[int], object]
"""Called with the number of sizes that are done."""
# differences this small, relative to the larger value, are ties
_TIE = 1e-12
# sample sizes for which laws cost less than a closed form
_FEW = 8
# elements of one array: 64 MB
_DENSE = 1 << 23
# expectations computed at once; each needs some twenty temporaries
_CHUNK = 500_000


@dataclass(frozen=True)
class Flip:
    """A change of order: from sample size `m` on, `better` is ahead of `worse`; below, it is behind."""

    m: int
    better: str
    worse: str


@dataclass(frozen=True, eq=False, repr=False)
class Consistency(Tabular[Record]):
    """Expected sampled metrics of several recommenders at growing sample sizes.

    Attributes
    ----------
    metric : str
    sizes : array of int
        Sample sizes m, ascending.
    curves : dict of name to array of float
        Expected mean of the sampled metric at each of the sizes.
    exact : dict of name to float
        Mean of the exact metric.
    flips : tuple of Flip
        Every size at which two recommenders change places.
    settled : int or None
        Smallest size from which the order is the exact one; None if it never is.
    """

    metric: str
    sizes: Ints
    curves: dict[str, Floats]
    exact: dict[str, float]
    flips: tuple[Flip, ...]
    settled: int | None
    lower_is_better: bool = False

    def orders(self) -> list[tuple[int, str]]:
        """Return the orders from best to worst, each with the smallest size from which it holds."""
        places = np.flatnonzero(np.append(True, _changes(self.curves)))
        means = [{name: float(curve[place]) for name, curve in self.curves.items()} for place in places]
        return [(int(self.sizes[place]), self._best_first(own)) for place, own in zip(places, means, strict=True)]

    def _best_first(self, means: dict[str, float]) -> str:
        """Names from best to worst; those that differ by no more than rounding are joined by =, in the given order."""
        names = sorted(means, key=means.__getitem__, reverse=not self.lower_is_better)
        together = [[names[0]]]
        for better, worse in pairwise(names):
            if _order(np.array([means[better]]), np.array([means[worse]]))[0]:
                together.append([])
            together[-1].append(worse)
        given = list(means)
        return " > ".join(" = ".join(sorted(tied, key=given.index)) for tied in together)

    def _names(self) -> list[tuple[str, ...]]:
        return [*((f"m >= {start}",) for start, _ in self.orders()), ("exact",)]

    def _numbers(self) -> Iterator[tuple[tuple[str, ...], float]]:
        for name, mean in self.exact.items():
            yield (name, self.metric), mean
        if self.settled is not None:
            yield (self.metric, "settled"), self.settled

    def to_table(self) -> Table:
        """Return a row per expected order, then the exact order and the size from which it holds."""
        orders, exact = self.orders(), self._best_first(self.exact)
        settled = "never" if self.settled is None else f"from m = {self.settled}"
        lines = [*((f"m >= {start}", order) for start, order in orders), ("exact", exact), ("exact order", settled)]
        records: list[dict[str, Any]] = [{"metric": self.metric, "m": start, "order": order} for start, order in orders]
        records.append({"metric": self.metric, "m": None, "order": exact})
        rows = tuple((Cell(name), Cell(text)) for name, text in lines)
        return Table((self.metric, "expected order"), rows, tuple(records))


def consistency(
    ranks: Mapping[str, Ranks],
    metric: AnyMetric,
    design: AnyDesign = "uniform",
    *,
    sizes: Iterable[int] | None = None,
    growth: float = 0.05,
    progress: bool = False,
) -> Consistency:
    """Return the expected sampled metric of recommenders as a function of the sample size m.

    Parameters
    ----------
    ranks : dict of name to Ranks
        Exact ranks of two recommenders or more. Ties are in random order.
    metric : str, Metric or function
        For instance ``"ap"``, or ``"ap~bv(0.1)"`` for a corrected one.
    design : SamplingDesign or str
        How candidates are sampled, its m left open; ``"uniform(replace)"``: with replacement, as in the paper's eq. 15.
    sizes : iterable of int, optional
        Sample sizes m to examine. By default they grow from 1 to the number of irrelevant candidates, and every m at
        which two recommenders change places is located.
    growth : float
        Relative step by which m grows, at least 1 at a time, if `sizes` is not given.
    progress : bool
        Whether to show a progress bar, on a terminal only, when it takes more than a second.

    Examples
    --------
    The paper's toy example, in which the order depends on the sample size (section 4.2):

    >>> import truerank as tr
    >>> toy = {
    ...     "A": tr.Ranks.from_ranks([100, 100, 100, 100, 100], n=10_000),
    ...     "B": tr.Ranks.from_ranks([40, 40, 8437, 9266, 4482], n=10_000),
    ...     "C": tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000),
    ... }
    >>> print(tr.consistency(toy, "ap", "uniform(replace)", sizes=range(1, 900)))
    ap           expected order
    m >= 1            A > C > B
    m >= 73           A > B > C
    m >= 281          A > C > B
    m >= 438          C > A > B
    exact             C > B > A
    exact order           never
    """
    chosen = as_metric(metric)
    kind = as_design(design)
    if n_named(ranks) < 2:
        raise InputError(f"consistency needs at least two recommenders, by name, got {n_named(ranks)}.")
    check_ranks(*ranks.values())
    for one in ranks.values():
        check_exact(one)
        if not one.n_relevant.any():
            raise InputError("every recommender must have an instance with a relevant item.")
    chosen_sizes = _sizes(ranks, sizes, growth, kind)

    with progress_bar("expectations", progress, delay=1.0, leave=False) as bar:
        expected = {name: expected_curve(chosen, one, kind, chosen_sizes, bar.update) for name, one in ranks.items()}
        curves = {name: at(chosen_sizes) for name, at in expected.items()}
        while sizes is None and (between := _between_changes(curves, chosen_sizes)).size:
            more = {name: at(between) for name, at in expected.items()}
            order = np.argsort(np.concatenate([chosen_sizes, between]))
            chosen_sizes = np.concatenate([chosen_sizes, between])[order]
            curves = {name: np.concatenate([curves[name], more[name]])[order] for name in curves}
    exact = {name: estimate(one, chosen.estimated).mean for name, one in ranks.items()}
    sign = -1.0 if chosen.lower_is_better else 1.0
    gains = {name: sign * curve for name, curve in curves.items()}
    flips = _flips(gains, chosen_sizes)
    settled = _settled(gains, {name: sign * mean for name, mean in exact.items()}, chosen_sizes)
    return Consistency(str(chosen), chosen_sizes, curves, exact, flips, settled, chosen.lower_is_better)


def _sizes(ranks: Mapping[str, Ranks], sizes: Iterable[int] | None, growth: float, kind: SamplingDesign) -> Ints:
    least = min(int(one.draws[one.n_relevant > 0].min()) for one in ranks.values())
    wanted = _growing(least, growth) if sizes is None else np.unique(as_ints("sizes", as_list("sizes", sizes)))
    if wanted.size == 0:
        raise InputError("`sizes` must hold at least one sample size, got none.")
    kind.check(np.array([least]), wanted[[0, -1]])
    return wanted


def _growing(last: int, growth: float) -> Ints:
    """Return 1, 2, ... in steps that grow, up to the last."""
    if not as_number(growth) > 0:
        raise InputError(f"`growth` must be above 0, got {growth}.")
    count = int(np.ceil(np.log(last) / np.log1p(growth))) + 1
    return np.unique(np.append(np.floor((1 + growth) ** np.arange(count)).astype(np.int64).clip(1, last), last))


def _between_changes(curves: Mapping[str, Floats], sizes: Ints) -> Ints:
    """Return a size between every two neighbouring sizes at which the order of some recommenders differs."""
    change = np.flatnonzero(_changes(curves) & (np.diff(sizes) > 1))
    return (sizes[change] + sizes[change + 1]) // 2


def _changes(curves: Mapping[str, Floats]) -> Bools:
    """Return for each size but the first whether any two recommenders are in another order than at the size before."""
    signs = np.stack([_order(curves[a], curves[b]) for a, b in combinations(curves, 2)])
    return (signs[:, 1:] != signs[:, :-1]).any(axis=0)


def _flips(curves: Mapping[str, Floats], sizes: Ints) -> tuple[Flip, ...]:
    """Every m at which two curves change order; a tie is not yet a change."""
    found = []
    for a, b in combinations(curves, 2):
        sign = _order(curves[a], curves[b])
        decided = np.flatnonzero(sign)
        changed = decided[1:][np.diff(sign[decided]) != 0]
        found += [Flip(int(sizes[place]), *((a, b) if sign[place] > 0 else (b, a))) for place in changed]
    return tuple(sorted(found, key=lambda flip: (flip.m, flip.better, flip.worse)))


def _settled(curves: Mapping[str, Floats], exact: Mapping[str, float], sizes: Ints) -> int | None:
    agree = np.ones(sizes.size, dtype=np.bool_)
    for a, b in combinations(curves, 2):
        agree &= _order(curves[a], curves[b]) == _order(np.array([exact[a]]), np.array([exact[b]]))
    wrong = np.flatnonzero(~agree)
    first = int(wrong[-1]) + 1 if wrong.size else 0
    return int(sizes[first]) if first < sizes.size else None


def order_check(
    ranks: Mapping[str, Ranks], metric: AnyMetric, design: AnyDesign, found: Consistency
) -> Callable[[int], bool]:
    """Return a function that says whether recommenders are in their exact order at a size between those found."""
    chosen, kind = as_metric(metric), as_design(design)
    expected = {name: expected_curve(chosen, one, kind, found.sizes) for name, one in ranks.items()}
    sign = -1.0 if chosen.lower_is_better else 1.0
    exact = {name: sign * mean for name, mean in found.exact.items()}

    def is_right(m: int) -> bool:
        sizes = np.array([m])
        return _settled({name: sign * at(sizes) for name, at in expected.items()}, exact, sizes) is not None

    return is_right


def _order(a: Floats, b: Floats) -> NDArray[np.int8]:
    difference = a - b
    tied = np.abs(difference) <= _TIE * np.maximum(np.abs(a), np.abs(b))
    return np.where(tied, 0, np.sign(difference)).astype(np.int8)


def expected_curve(
    metric: Metric, ranks: Ranks, kind: SamplingDesign, first: Ints, progress: Progress = lambda _: None
) -> SumsBySize:
    """Return the expected mean of the sampled metric, ties in random order, as a function of ascending sample sizes.

    It is prepared for the sizes that come `first`, of which the last is the largest. `progress` is called with the
    number of sizes that are done.
    """
    if metric.estimated is not metric:
        return _corrected_curve(metric, ranks, kind, first, progress)
    law, largest = kind.law("the expectation"), int(first[-1])
    parts = [_sums_by_size(ranks, terms, largest, law) for terms in metric.terms(ranks)]

    def at(sizes: Ints) -> Floats:
        total = np.zeros(sizes.size)
        for sums in parts:
            total += sums(sizes)
        progress(sizes.size)
        return total / int((ranks.n_relevant > 0).sum())

    return at


def _sums_by_size(ranks: Ranks, terms: Terms, largest: int, law: Law) -> SumsBySize:
    """Return the sum of the expected terms as a function of sizes, computed in the cheapest way."""
    if terms.term.shape == "affine":
        return _affine_sums(ranks, terms, law)
    return _fewer_counts(ranks, terms, largest, law) or partial(_sums, ranks, terms, law)


def _affine_sums(ranks: Ranks, terms: Terms, law: Law) -> SumsBySize:
    """Return the sums of affine terms, which depend on the mean rank of all items with the same i and n_relevant."""
    weight, (place, block) = _weights(terms.weight, ranks), ranks.blocks()
    share = (ranks.above + ranks.tied * (place / (block + 1))) / (ranks.item_n - ranks.item_n_relevant)
    first, which = distinct_columns(ranks.i, ranks.item_n_relevant)
    times = np.bincount(which, weights=weight, minlength=first.size).astype(np.float64)
    mean = np.bincount(which, weights=weight * share, minlength=first.size) / np.where(times, times, 1.0)
    n_relevant = ranks.item_n_relevant[first]
    columns = np.stack([mean, ranks.i[first], n_relevant, n_relevant + 1])
    return partial(_weighted_sum, columns, times, terms.term, law)


def _weights(weight: Floats | None, ranks: Ranks) -> Floats:
    """Return the weights of the relevant items; those that tie, whose order is random, all have their mean weight."""
    own, (place, block) = item_weights(weight, ranks), ranks.blocks()
    if weight is None or not (block > 1).any():
        return own
    starts = np.flatnonzero(place == 1)
    return np.repeat(np.add.reduceat(own, starts) / block[starts], block[starts])


def _fewer_counts(ranks: Ranks, terms: Terms, largest: int, law: Law) -> SumsBySize | None:
    """Return the sum of the expected terms at each size from a few representative counts; None if that saves nothing.

    The term must be that of the first relevant item times a factor, and its expectation a smooth function of the count.
    """
    cutoff = terms.term.cutoff(ranks.n_relevant)
    if not terms.term.separable or (cutoff is None and terms.term.shape not in ("reciprocal", "smooth")):
        return None
    kept = _kept_counts(largest, None if cutoff is None else int(cutoff.max(initial=1)))
    fewer = ranks.n_relevant.max(initial=0) > 1 and sum(map(len, kept)) < ranks.above.size
    return _FewCounts(ranks, terms, largest, law, kept) if fewer else None


def _kept_counts(largest: int, cutoff: int | None) -> list[Ints]:
    """Return counts that are close where the expectation of a term changes fast: around its cut-off, if it has one.

    There the expectation falls within about sqrt(cutoff) sampled candidates.
    """
    if cutoff is None:
        return kept_counts(largest, whole=POINTS, growth=GROWTH)
    return kept_counts(largest, whole=4 * cutoff + POINTS, growth=min(1.5, 4 / math.sqrt(cutoff)))


class _FewCounts:
    """Sums of expected terms by sample size, from a few counts that represent all relevant items.

    Smaller samples can be drawn from the largest ones, so the counts in these determine all others. The sum over the
    items becomes one over their places i and their counts in the largest sample.
    """

    def __init__(self, ranks: Ranks, terms: Terms, largest: int, law: Law, kept: list[Ints]) -> None:
        self.term, self.largest, self.kept = terms.term, largest, kept
        weight = _weights(terms.weight, ranks) * _factor(terms.term, ranks)
        places = int(ranks.i[weight != 0].max(initial=1))
        steps = slices(places, _DENSE // (largest + 1))
        dense = (_pooled_places(ranks, largest, law, weight, range(places)[step]) for step in steps)
        times = np.concatenate([condensed(each, kept) for each in dense])
        self.times = np.split(times, np.cumsum([len(counts) for counts in kept[:-1]]), axis=1)
        self._tables = Cache(LIMIT)

    def __call__(self, sizes: Ints) -> Floats:
        parts = slices(sizes.size, _CHUNK // max(map(len, self.kept)))
        blocks = range(len(self.kept))
        return np.concatenate([np.sum([self._sums(at, sizes[part]) for at in blocks], axis=0) for part in parts])

    def _sums(self, block: int, sizes: Ints) -> Floats:
        """Return what the counts of a block add at each size."""
        tables = self._tables.get(block, lambda: self._added(self.kept[block], self.times[block]))
        return means_by_size(tables, self.kept[block], sizes, self.largest, HYPERGEOMETRIC).sum(axis=0)

    def _added(self, counts: Ints, times: Floats) -> Floats:
        """Return what each sampled count h adds, summed over the places of the items: (counts, h)."""
        cutoff = self.term.cutoff(np.ones(1, dtype=np.int64))
        columns = int(counts[-1]) + 1 if cutoff is None else min(int(counts[-1]) + 1, int(cutoff[0]))
        rank = np.arange(1, columns + len(times))
        of_first = self.term.term(rank, *np.ones((3, rank.size), dtype=np.int64))
        return times.T @ np.lib.stride_tricks.sliding_window_view(of_first, columns)


def _factor(term: Term, ranks: Ranks) -> Floats:
    """Return the ratio of what each item adds to what it would add as the only relevant one; 0 if both add nothing."""
    i, one = ranks.i, np.ones_like(ranks.i)
    alone, own = term.term(i, one, one, one), term.term(i, i, ranks.item_n_relevant, ranks.item_n)
    return np.divide(own, alone, where=alone != 0, out=np.zeros(i.size))


def _pooled_places(ranks: Ranks, m: int, law: Law, weight: Floats, places: range) -> Floats:
    """Return the expected sum of the weights by sampled count for some places i - 1: (places, m + 1)."""
    group = ranks.i - 1 - places.start
    own = np.where((group >= 0) & (group < len(places)), weight, 0.0)
    return _pooled_counts(ranks, m, law, own, group.clip(0, len(places) - 1), len(places))


def _sums(ranks: Ranks, terms: Terms, law: Law, sizes: Ints) -> Floats:
    """Return the sum of the expected terms at each sample size, over items or, if there are fewer, sampled counts."""
    whole = _pooled_sizes(ranks, sizes, law)
    settings, _ = distinct_columns(ranks.i, ranks.item_n_relevant)
    pooled = settings.size * (whole + 1) < ranks.above.size
    total, counts = np.zeros(sizes.size), None
    falling = tuple(np.unique(whole[pooled])[::-1].astype(int).tolist())
    for at, size in enumerate(falling):
        part = whole == size
        counts = _sampled_counts(ranks, falling[: at + 1], law, terms.weight, larger=counts)
        total[part] = _sum_over_counts(counts, terms.term, sizes[part])
    if not pooled.all():
        total[~pooled] = _sum_over_items(ranks, terms, sizes[~pooled], law)
    return total


def _pooled_sizes(ranks: Ranks, sizes: Ints, law: Law) -> Floats:
    """Return for each size the next power of two, but no more than can be drawn: one sample serves all below it."""
    powers = np.exp2(np.ceil(np.log2(sizes)))
    return np.minimum(powers, ranks.draws[ranks.n_relevant > 0].min()) if law.distinct else powers


class _SampledCounts(NamedTuple):
    """How many items of each group have h of the sampled candidates above them, on average over all samples.

    A random part of a sample is a smaller sample. So this determines all samples with fewer draws: they are drawn
    from the ones here, without replacement.
    """

    times: Floats
    """The expected number, or sum of weights, of the items of each group by their h: (groups, draws + 1)."""
    i: Ints
    n_relevant: Ints

    @property
    def draws(self) -> int:
        return self.times.shape[1] - 1

    def thinned(self, m: int) -> _SampledCounts:
        """Return the sampled counts of m of the draws."""
        group, h = np.nonzero(self.times)
        g, N, weight = h.astype(np.float64), np.full(h.size, self.draws), self.times[group, h]
        times = pooled_laws(HYPERGEOMETRIC, g, m, N, weight=weight, group=group, n_groups=len(self.times))
        return self._replace(times=times)


def _sampled_counts(
    ranks: Ranks, falling: tuple[int, ...], law: Law, weight: Floats | None, *, larger: _SampledCounts | None
) -> _SampledCounts:
    """Return the sampled counts of the items, which may have weights, for the last number of draws.

    Those of the next `larger` samples have fewer distinct counts than there are items. What is cached, if there are no
    weights, is for all these numbers, since rounding depends on them.
    """
    m = falling[-1]

    def computed() -> _SampledCounts:
        if larger is not None:
            return larger.thinned(m)
        first, group = distinct_columns(ranks.i, ranks.item_n_relevant)
        times = _pooled_counts(ranks, m, law, _weights(weight, ranks), group, first.size)
        return _SampledCounts(times, ranks.i[first], ranks.item_n_relevant[first])

    return ranks.fits.get((_SampledCounts, falling, law), computed) if weight is None else computed()


def _pooled_counts(ranks: Ranks, m: int, law: Law, weight: Floats, group: Ints, n_groups: int) -> Floats:
    """Return the expected sum of the weights of the items of each group by their h, of shape (n_groups, m + 1)."""
    N = ranks.item_n - ranks.item_n_relevant
    alone, item, above, share = _counts_above(ranks, m, law)
    total = pooled_laws(law, above, m, N[item], weight=share * weight[item], group=group[item], n_groups=n_groups)
    if alone.size:
        counts = ranks.above[alone], ranks.tied[alone]
        total += pooled_tied_laws(*counts, m, N[alone], weight=weight[alone], group=group[alone], n_groups=n_groups)
    return total


def _sum_over_counts(counts: _SampledCounts, term: Term, sizes: Ints) -> Floats:
    """Sum of the expected terms of smaller samples that are drawn from a larger one."""
    total = np.zeros(sizes.size)
    for times, i, n_relevant in zip(*counts, strict=True):
        shown = np.flatnonzero(times)
        columns = np.stack(np.broadcast_arrays(shown, i, n_relevant, counts.draws + n_relevant))
        total += _weighted_sum(columns, times[shown], term, HYPERGEOMETRIC, sizes)
    return total


def _sum_over_items(ranks: Ranks, terms: Terms, sizes: Ints, law: Law) -> Floats:
    """Sum of the expected terms, item by item."""
    weight = _weights(terms.weight, ranks)
    alone, item, above, share = _counts_above(ranks, int(sizes[-1]), law)
    whole = (ranks.i, ranks.item_n_relevant, ranks.item_n)
    columns = [above, *(numbers[item].astype(np.float64) for numbers in whole)]
    first, which = distinct_columns(*columns)
    times = np.bincount(which, weights=share * weight[item], minlength=first.size)
    distinct = np.stack([column[first] for column in columns])
    free = _weighted_sum(distinct, np.asarray(times, dtype=np.float64), terms.term, law, sizes)
    return free + _sum_over_tied(ranks, alone, weight, terms.term, sizes)


def _corrected_curve(metric: Metric, ranks: Ranks, kind: SamplingDesign, first: Ints, progress: Progress) -> SumsBySize:
    """Return the curve in closed form and, where there is none, size by size."""
    closed = _closed_curve(metric, ranks, kind.law("the expectation"), first)

    def at(sizes: Ints) -> Floats:
        curve = closed(sizes)
        missing = np.flatnonzero(np.isnan(curve))
        progress(sizes.size - missing.size)
        for place in missing:
            curve[place] = risks(ranks, metric, replace(kind, m=int(sizes[place])), variances=False)[0].mean
            progress(1)
        return curve

    return at


def _closed_curve(metric: Metric, ranks: Ranks, law: Law, first: Ints) -> SumsBySize:
    """Return the curve of a corrected metric where its correction has a closed form, and otherwise NaN."""
    correction = metric.correction if isinstance(metric, Corrected) else None
    if not isinstance(correction, Correction) or metric.pools_instances or first.size <= _FEW:
        return _unknown
    found = []
    for terms in metric.estimated.terms(ranks):
        items = _counted(ranks, _weights(terms.weight, ranks), law)
        found.append(correction.expected_sums(terms.term, law, items, int(first[-1])) or _unknown)

    def at(sizes: Ints) -> Floats:
        return np.sum([sums(sizes) for sums in found], axis=0) / int((ranks.n_relevant > 0).sum())

    return at


def _unknown(sizes: Ints) -> Floats:
    return np.full(sizes.size, np.nan)


def _counted(ranks: Ranks, weight: Floats, law: Law) -> CountedItems:
    """Return the items with their cases, whose m is left open."""
    columns = (ranks.i, ranks.item_n_relevant, ranks.item_n)
    first, which = distinct_columns(*columns)
    distinct = zip(*(column[first].tolist() for column in columns), strict=True)
    cases = [Case(i, n_relevant, n, m=0) for i, n_relevant, n in distinct]

    def shown(m: int) -> Floats:
        return _pooled_counts(ranks, m, law, weight, which, first.size)

    return CountedItems(cases, which, ranks.above, ranks.tied, weight, shown)


def _weighted_sum(columns: Floats, times: Floats, term: Term, law: Law, sizes: Ints) -> Floats:
    """Sum of the expected terms at each sample size; `columns` are above, i, n_relevant and n."""
    total = np.zeros(sizes.size)
    step = max(1, _CHUNK // sizes.size)
    for start in range(0, times.size, step):
        above, *whole = columns[:, start : start + step, None]
        i, n_relevant, n = (numbers.astype(np.int64) for numbers in whole)
        total += times[start : start + step] @ expected_term(term, above, i, n_relevant, n, sizes[None, :], law)
    return total


def _sum_over_tied(ranks: Ranks, items: Ints, weight: Floats, term: Term, sizes: Ints) -> Floats:
    r"""Sum of the expected terms of items that tie with t irrelevant ones, without replacement.

    The law of `Hypergeometric.tied_rows` turns the mean over the ties into a difference:
    :math:`E = \frac{N + 1}{(m + 1)(t + 1)} (E \Phi(H_{g + t + 1}) - E \Phi(H_g))`, where
    :math:`\Phi(x) = \sum_{h < x} f(h)` and H is drawn from one candidate more, m + 1 of N + 1.
    """
    total = np.zeros(sizes.size)
    settings = np.stack([ranks.i[items], ranks.item_n_relevant[items]])
    for i, n_relevant in np.unique(settings, axis=1).T:
        mine = items[(settings[0] == i) & (settings[1] == n_relevant)]
        g, t, N = ranks.above[mine], ranks.tied[mine], ranks.item_n[mine] - n_relevant
        for place, m in enumerate(sizes.tolist()):
            values = _sampled_term(term, int(i), int(n_relevant))(np.arange(m + 1.0), np.full(m + 1, float(m)))
            phi = partial(_looked_up, np.concatenate([[0.0], np.cumsum(values)]))
            low, high = moments(phi, np.stack([g, g + t + 1]), m + 1, N + 1, HYPERGEOMETRIC)[0]
            total[place] += weight[mine] @ ((high - low) * ((N + 1) / ((m + 1) * (t + 1))))
    return total


def _looked_up(table: Floats, h: Floats, _size: Floats) -> Floats:
    return table[h.astype(np.int64)]


def expected_term(term: Term, above: Floats, i: Ints, n_relevant: Ints, n: Ints, m: Ints, law: Law) -> Floats:
    """Return the expectation of what an item adds to the uncorrected sampled metric (eq. 16).

    In closed form for AUC (eq. 17), cut-off metrics (eq. 18) and the reciprocal rank of a first relevant item
    (eq. 19); otherwise summed over the law. Arguments broadcast.
    """
    above, i, n_relevant, n, m = np.broadcast_arrays(above, i, n_relevant, n, m)
    irrelevant, among = n - n_relevant, m + n_relevant
    cutoff = term.cutoff(n_relevant)
    if term.shape == "affine":
        return term.term(m * (above / irrelevant) + i, i, n_relevant, among)
    if term.shape == "step" and cutoff is not None:
        return law.cdf(cutoff - i, above, m, irrelevant) * term.term(i, i, n_relevant, among)
    if term.shape == "reciprocal" and np.all(i == 1):
        return term.term(i, i, n_relevant, among) * mean_reciprocal(above, m, irrelevant, law, k=cutoff)
    return _summed_term(term, above, i, n_relevant, m, irrelevant, law)


def _summed_term(term: Term, above: Floats, i: Ints, n_relevant: Ints, m: Ints, irrelevant: Ints, law: Law) -> Floats:
    expected = np.empty(above.shape)
    for place, relevant in np.unique(np.stack([i.ravel(), n_relevant.ravel()]), axis=1).T:
        mine = (i == place) & (n_relevant == relevant)
        at = _sampled_term(term, int(place), int(relevant))
        g, draws, N = (np.asarray(numbers[mine], dtype=np.float64) for numbers in (above, m, irrelevant))
        cutoff = term.cutoff(np.array([relevant]))
        if cutoff is None:
            expected[mine] = moments(at, g, draws, N, law)[0]
        else:
            expected[mine] = mean_up_to(at, int(cutoff[0] - place), g, draws, N, law)
    return expected


def _sampled_term(term: Term, i: int, n_relevant: int) -> Callable[[Floats, Floats], Floats]:
    """Return what the i-th of `n_relevant` items adds, as a function of the sampled count and the sample size."""

    def at(h: Floats, size: Floats) -> Floats:
        rank, n = (h + i).astype(np.int64), (size + n_relevant).astype(np.int64)
        return term.term(rank, np.full_like(rank, i), np.full_like(rank, n_relevant), n)

    return at


def _counts_above(ranks: Ranks, largest: int, law: Law) -> tuple[Ints, Ints, Floats, Floats]:
    """Return items whose ties have a law in closed form, and for the others the item, its count above and its share.

    An item with ties has several counts, each with a share, that are valid for all samples of at most `largest` draws.
    """
    N, (place, block) = ranks.item_n - ranks.item_n_relevant, ranks.blocks()
    closed = (ranks.tied > 0) & (block == 1) & (law is HYPERGEOMETRIC)
    alone, free, tied = (np.flatnonzero(own) for own in (closed, ranks.tied == 0, (ranks.tied > 0) & ~closed))
    spread = []
    for at in tied:
        own = [numbers[at : at + 1] for numbers in (ranks.above, ranks.tied, place, block)]
        spread.append(tied_counts(own, min(largest, int(N[at])), int(N[at]), law))
    item = np.concatenate([free, *(np.full(share.size, at) for at, (_, share) in zip(tied, spread, strict=True))])
    above = np.concatenate([ranks.above[free].astype(np.float64), *(counts for counts, _ in spread)])
    return alone, item, above, np.concatenate([np.ones(free.size), *(share for _, share in spread)])
