"""At which sample sizes a sampled metric orders recommenders as the exact metric does.

A metric is consistent under sampling if its expectation keeps the exact order (eq. 14 of Krichene & Rendle 2020). Here
are the expected sampled metrics (eq. 16) as functions of m, and every m at which two recommenders change places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from truerank.analysis.risks import risk
from truerank.arrays import Floats, Ints, as_ints
from truerank.corrections.corrected import Corrected
from truerank.display import render
from truerank.errors import InputError
from truerank.evaluation.estimates import estimate
from truerank.metrics.names import metric as as_metric
from truerank.metrics.plain import AP, F1, HR, RR, Accuracy, Metric, Precision, Recall, RPrecision, Term
from truerank.ranking.ranks import Ranks
from truerank.sampling import laws
from truerank.sampling.designs import SamplingDesign
from truerank.sampling.expectations import mean_reciprocal, moments

# differences this small, relative to the larger value, are ties
_TIE = 1e-12
# expectations computed at once; each needs some twenty temporaries
_CHUNK = 500_000


@dataclass(frozen=True)
class Flip:
    """From sample size `m` on, `better` is ahead of `worse`; below, it was the other way."""

    m: int
    better: str
    worse: str


@dataclass(frozen=True, eq=False)
class Consistency:
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
        Smallest size from which on the order is the exact one; None if it never is.
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
        starts = [int(self.sizes[0]), *sorted({flip.m for flip in self.flips})]
        places = np.searchsorted(self.sizes, starts)
        return [
            (start, self._best_first({name: float(curve[place]) for name, curve in self.curves.items()}))
            for start, place in zip(starts, places, strict=True)
        ]

    def _best_first(self, means: dict[str, float]) -> str:
        return " > ".join(sorted(means, key=means.__getitem__, reverse=not self.lower_is_better))

    def __str__(self) -> str:
        rows = [[f"m >= {start}", order] for start, order in self.orders()]
        exact = self._best_first(self.exact)
        settled = "never" if self.settled is None else f"from m = {self.settled}"
        header = [self.metric, "expected order"]
        return render.text(header, [*rows, ["exact", exact], ["exact order", settled]])


def consistency(
    ranks: Mapping[str, Ranks],
    metric: str | Metric | Term,
    *,
    replace: bool = False,
    sizes: Iterable[int] | None = None,
) -> Consistency:
    """Return the expected sampled metric of recommenders as a function of the sample size m.

    Parameters
    ----------
    ranks : dict of name to Ranks
        Exact ranks without ties of two recommenders or more.
    metric : str, Metric or function
        For instance ``"ap"``, or ``"ap~bv(0.1)"`` for a corrected one.
    replace : bool
        Whether candidates are sampled with replacement, as in the paper's eq. 15.
    sizes : iterable of int, optional
        The m to look at; all of 1, 2, ..., number of irrelevant candidates by default.

    Examples
    --------
    The paper's toy example, in which any order comes out (section 4.2):

    >>> import truerank as tr
    >>> toy = {
    ...     "A": tr.Ranks.from_ranks([100, 100, 100, 100, 100], n=10_000),
    ...     "B": tr.Ranks.from_ranks([40, 40, 8437, 9266, 4482], n=10_000),
    ...     "C": tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000),
    ... }
    >>> print(tr.consistency(toy, "ap", replace=True, sizes=range(1, 900)))
    ap           expected order
    m >= 1            A > C > B
    m >= 73           A > B > C
    m >= 281          A > C > B
    m >= 438          C > A > B
    exact             C > B > A
    exact order           never
    """
    chosen = as_metric(metric)
    if len(ranks) < 2:
        raise InputError("consistency compares recommenders: give at least two.")
    for places in ranks.values():
        if places.design is not None or places.depth is not None or places.has_ties:
            raise InputError("`ranks` must be exact and without ties; resolve them with ranks.break_ties('random').")
        if not places.n_relevant.any():
            raise InputError("every recommender must have an instance with a relevant item.")
    chosen_sizes = _sizes(ranks, sizes, replace)
    curves = {name: _curve(chosen, places, chosen_sizes, replace) for name, places in ranks.items()}
    base = chosen.metric if isinstance(chosen, Corrected) else chosen
    exact = {name: estimate(places, base).mean for name, places in ranks.items()}
    sign = -1.0 if chosen.lower_is_better else 1.0
    gains = {name: sign * curve for name, curve in curves.items()}
    return Consistency(
        metric=str(chosen),
        sizes=chosen_sizes,
        curves=curves,
        exact=exact,
        flips=_flips(gains, chosen_sizes),
        settled=_settled(gains, {name: sign * mean for name, mean in exact.items()}, chosen_sizes),
        lower_is_better=chosen.lower_is_better,
    )


def _sizes(ranks: Mapping[str, Ranks], sizes: Iterable[int] | None, replace: bool) -> Ints:
    least = min(
        int((places.n_candidates - places.n_relevant)[places.n_relevant > 0].min(initial=2**62))
        for places in ranks.values()
    )
    wanted = np.arange(1, least + 1) if sizes is None else np.unique(as_ints("sizes", list(sizes)))
    if wanted.size == 0:
        raise InputError("`sizes` must hold at least one sample size, got none.")
    for m in (wanted[0], wanted[-1]):
        SamplingDesign(int(m), replace).check(np.array([least]))
    return wanted


def _curve(metric: Metric, ranks: Ranks, sizes: Ints, replace: bool) -> Floats:
    if isinstance(metric, Corrected):
        return np.array([risk(metric, SamplingDesign(int(m), replace), ranks).mean for m in sizes])
    n_relevant = ranks.item_n_relevant
    n = ranks.n_candidates[ranks.instance]
    distinct, which = np.unique(np.stack([ranks.above, ranks.i, n_relevant, n]), axis=1, return_inverse=True)
    total = np.zeros(sizes.size)
    step = max(1, _CHUNK // sizes.size)
    for plain, weight in metric.parts(ranks):
        times = np.bincount(which.ravel(), weights=weight)
        for start in range(0, times.size, step):
            above, i, relevant, candidates = distinct[:, start : start + step, None]
            expected = expected_term(plain, above, i, relevant, candidates, sizes[None, :], replace=replace)
            total += times[start : start + step] @ expected
    return total / int((ranks.n_relevant > 0).sum())


def expected_term(metric: Metric, above: Ints, i: Ints, n_relevant: Ints, n: Ints, m: Ints, *, replace: bool) -> Floats:
    """Return the expectation of what an item adds to the uncorrected sampled metric (eq. 16).

    In closed form for AUC (eq. 17), cut-off metrics (eq. 18) and the reciprocal rank of a first relevant item
    (eq. 19); otherwise summed over the law. Arguments broadcast.
    """
    above, i, n_relevant, n, m = np.broadcast_arrays(above, i, n_relevant, n, m)
    irrelevant, among = n - n_relevant, m + n_relevant
    if metric.linear:
        return metric.term(m * (above / irrelevant) + i, i, n_relevant, among)
    if isinstance(metric, Recall | Precision | HR | Accuracy | F1 | RPrecision):
        cutoff = metric.cutoff(n_relevant)
        within = laws.cdf(cutoff - i, above, m, irrelevant, replace=replace)  # type: ignore[operator]
        return within * metric.term(i, i, n_relevant, among)
    if isinstance(metric, AP | RR) and np.all(i == 1):
        scale = metric.term(i, i, n_relevant, among)
        return scale * mean_reciprocal(above, m, irrelevant, replace=replace, k=metric.k)
    return _summed_term(metric, above, i, n_relevant, m, irrelevant, replace)


def _summed_term(
    metric: Metric, above: Ints, i: Ints, n_relevant: Ints, m: Ints, irrelevant: Ints, replace: bool
) -> Floats:
    expected = np.empty(above.shape)
    for place, relevant in np.unique(np.stack([i.ravel(), n_relevant.ravel()]), axis=1).T:
        mine = (i == place) & (n_relevant == relevant)

        def term(h: Floats, size: Floats, place: int = int(place), relevant: int = int(relevant)) -> Floats:
            counts = (h + place).astype(np.int64)
            i, n_relevant = np.full_like(counts, place), np.full_like(counts, relevant)
            return metric.term(counts, i, n_relevant, (size + relevant).astype(np.int64))

        expected[mine] = moments(term, above[mine], m[mine], irrelevant[mine], replace=replace)[0]
    return expected


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


def _order(a: Floats, b: Floats) -> NDArray[np.int8]:
    difference = a - b
    tied = np.abs(difference) <= _TIE * np.maximum(np.abs(a), np.abs(b))
    return np.where(tied, 0, np.sign(difference)).astype(np.int8)
