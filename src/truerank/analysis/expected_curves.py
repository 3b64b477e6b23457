"""The expectation of a sampled metric as a function of the sample size, in closed form where there is one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import cast

import numpy as np

from truerank.analysis.places import Places, SampledPlaces, pooled_counts, sampled_places, tied_alone
from truerank.analysis.risks import risk
from truerank.arrays import Floats, Ints, distinct_columns
from truerank.corrections.base import Case, Correction, CountedItems, SumsBySize
from truerank.corrections.corrected import Corrected
from truerank.metrics.base import Metric, Term, Terms
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import SamplingDesign
from truerank.sampling.expectations import mean_reciprocal, mean_up_to, moments
from truerank.sampling.laws import HYPERGEOMETRIC, Law

_FEW = 8  # sample sizes
# expectations computed at once; each needs some twenty temporaries
_CHUNK = 500_000


def expected_curve(
    metric: Metric, ranks: Ranks, kind: SamplingDesign, first: Ints, progress: Callable[[int], object]
) -> Callable[[Ints], Floats]:
    """Return the expected mean of the sampled metric, ties in random order, as a function of ascending sample sizes.

    It is prepared for the sizes that come `first`, of which the last is the largest. `progress` is called with the
    number of sizes that are done.
    """
    if metric.estimated is not metric:
        return _corrected_curve(metric, ranks, kind, first, progress)
    law = kind.law("the expectation")

    def at(sizes: Ints) -> Floats:
        total = np.zeros(sizes.size)
        for terms in metric.terms(ranks):
            total += _sums(ranks, terms, sizes, law)
        progress(sizes.size)
        return total / int((ranks.n_relevant > 0).sum())

    return at


def _sums(ranks: Ranks, terms: Terms, sizes: Ints, law: Law) -> Floats:
    """Return the sum of the expected terms at each sample size, over items or, if these are fewer, sampled counts."""
    whole = _pooled_sizes(ranks, sizes, law)
    settings, _ = distinct_columns(ranks.i, ranks.item_n_relevant)
    pooled = settings.size * (whole + 1) < ranks.above.size
    total = np.zeros(sizes.size)
    for size in np.unique(whole[pooled]):
        part = whole == size
        total[part] = _sum_over_counts(sampled_places(ranks, int(size), law, terms.weight), terms.term, sizes[part])
    if not pooled.all():
        total[~pooled] = _sum_over_items(ranks, terms, sizes[~pooled], law)
    return total


def _pooled_sizes(ranks: Ranks, sizes: Ints, law: Law) -> Floats:
    """Return for each size the next power of two, but no more than can be drawn: one sample serves those below it."""
    powers = np.exp2(np.ceil(np.log2(sizes)))
    return np.minimum(powers, ranks.draws[ranks.n_relevant > 0].min()) if law.distinct else powers


def _sum_over_counts(places: SampledPlaces, term: Term, sizes: Ints) -> Floats:
    """Sum of the expected terms of smaller samples that are drawn from a larger one."""
    total = np.zeros(sizes.size)
    draws = places.times.shape[1] - 1
    for times, i, n_relevant in zip(places.times, places.i, places.n_relevant, strict=True):
        shown = np.flatnonzero(times)
        columns = np.stack(np.broadcast_arrays(shown, i, n_relevant, draws + n_relevant))
        total += _weighted_sum(columns, times[shown], term, sizes, HYPERGEOMETRIC)
    return total


def _sum_over_items(ranks: Ranks, terms: Terms, sizes: Ints, law: Law) -> Floats:
    """Sum of the expected terms, item by item."""
    weight = np.ones(ranks.above.size) if terms.weight is None else terms.weight
    alone = tied_alone(ranks, law)
    places = Places.of(ranks, np.setdiff1d(np.arange(ranks.above.size), alone), int(sizes[-1]), law)
    whole = (ranks.i, ranks.item_n_relevant, ranks.item_n)
    columns = [places.above, *(numbers[places.item].astype(np.float64) for numbers in whole)]
    first, which = distinct_columns(*columns)
    times = np.bincount(which, weights=places.share * weight[places.item], minlength=first.size)
    distinct = np.stack([column[first] for column in columns])
    free = _weighted_sum(distinct, np.asarray(times, dtype=np.float64), terms.term, sizes, law)
    return free + _sum_over_tied(ranks, alone, weight, terms.term, sizes)


def _corrected_curve(
    metric: Metric, ranks: Ranks, kind: SamplingDesign, first: Ints, progress: Callable[[int], object]
) -> Callable[[Ints], Floats]:
    """Return the curve in closed form, and what has none size by size."""
    closed = _closed_curve(metric, ranks, kind.law("the expectation"), first)

    def at(sizes: Ints) -> Floats:
        curve = closed(sizes)
        missing = np.flatnonzero(np.isnan(curve))
        progress(sizes.size - missing.size)
        for place in missing:
            curve[place] = risk(ranks, metric, dataclasses.replace(kind, m=int(sizes[place]))).mean
            progress(1)
        return curve

    return at


def _closed_curve(metric: Metric, ranks: Ranks, law: Law, first: Ints) -> SumsBySize:
    """Return the curve of a corrected metric where its correction has a closed form, and otherwise NaN.

    For a few sizes laws cost less than the closed form.
    """
    correction = metric.correction if isinstance(metric, Corrected) else None
    if not isinstance(correction, Correction) or metric.pools_instances or first.size <= _FEW:
        return _unknown
    found = []
    for terms in metric.estimated.terms(ranks):
        weight = np.ones(ranks.above.size) if terms.weight is None else terms.weight
        items = _counted(ranks, weight, law)
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
        return pooled_counts(ranks, m, law, weight=weight, group=which, n_groups=first.size)

    return CountedItems(cases, which, ranks.above, ranks.tied, weight, shown)


def _weighted_sum(columns: Floats, times: Floats, term: Term, sizes: Ints, law: Law) -> Floats:
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
            phi = _lookup(np.concatenate([[0.0], np.cumsum(values)]))
            low, high = moments(phi, np.stack([g, g + t + 1]), m + 1, N + 1, HYPERGEOMETRIC)[0]
            total[place] += weight[mine] @ ((high - low) * ((N + 1) / ((m + 1) * (t + 1))))
    return total


def _lookup(table: Floats) -> Callable[[Floats, Floats], Floats]:
    def at(h: Floats, _size: Floats) -> Floats:
        return table[h.astype(np.int64)]

    return at


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
        rank = (h + i).astype(np.int64)
        return term.term(
            rank, np.full_like(rank, i), np.full_like(rank, n_relevant), cast("Ints", (size + n_relevant).astype(int))
        )

    return at
