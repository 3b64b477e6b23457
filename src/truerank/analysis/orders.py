"""At which sample sizes a sampled metric orders recommenders as the exact metric does.

A metric is consistent under sampling if its expectation keeps the exact order (eq. 14 of Krichene & Rendle 2020). Here
are the expected sampled metrics (eq. 16) as functions of m, and every m at which two recommenders swap places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from truerank.analysis.expected_curves import expected_curve
from truerank.analysis.risks import check_exact
from truerank.arrays import Bools, Floats, Ints, as_ints
from truerank.corrections.reading import AnyMetric
from truerank.corrections.reading import metric as as_metric
from truerank.display.tables import Cell, Table, Tabular
from truerank.errors import InputError
from truerank.evaluation.estimates import estimate
from truerank.ranking.ranks import Ranks, check_ranks, n_named
from truerank.sampling.designs import SamplingDesign
from truerank.sampling.registry import AnyDesign, as_design

# differences this small, relative to the larger value, are ties
_TIE = 1e-12


@dataclass(frozen=True)
class Flip:
    """From sample size `m` on, `better` is ahead of `worse`; below, it was the other way."""

    m: int
    better: str
    worse: str


@dataclass(frozen=True, eq=False, repr=False)
class Consistency(Tabular):
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
        places = np.flatnonzero(np.append(True, _changes(self.curves)))
        return [(int(self.sizes[place]), self._order_at(int(place))) for place in places]

    def _order_at(self, place: int) -> str:
        return self._best_first({name: float(curve[place]) for name, curve in self.curves.items()})

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
    design: AnyDesign | None = None,
    *,
    replace: bool = False,
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
    design : SamplingDesign or str, optional
        How candidates are sampled, its m left open, e.g. ``UniformSampling(replace=True)``.
    replace : bool
        Short for that design: with replacement, as in the paper's eq. 15.
    sizes : iterable of int, optional
        The m to look at. By default they grow from 1 to the number of irrelevant candidates, and wherever two
        recommenders change places the m at which they do is located.
    growth : float
        By how much of itself m grows, but at least by 1, if `sizes` are not given.
    progress : bool
        Whether to show a progress bar, on a terminal only, when it takes more than a second.

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
    kind = as_design(design, replace=replace)
    if n_named(ranks) < 2:
        raise InputError(f"consistency needs at least two recommenders, by name, got {n_named(ranks)}.")
    check_ranks(*ranks.values())
    for one in ranks.values():
        check_exact(one)
        if not one.n_relevant.any():
            raise InputError("every recommender must have an instance with a relevant item.")
    chosen_sizes = _sizes(ranks, sizes, growth, kind)

    with tqdm(desc="expectations", disable=None if progress else True, delay=1.0, leave=False) as bar:
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
    return Consistency(
        metric=str(chosen),
        sizes=chosen_sizes,
        curves=curves,
        exact=exact,
        flips=_flips(gains, chosen_sizes),
        settled=_settled(gains, {name: sign * mean for name, mean in exact.items()}, chosen_sizes),
        lower_is_better=chosen.lower_is_better,
    )


def _sizes(ranks: Mapping[str, Ranks], sizes: Iterable[int] | None, growth: float, kind: SamplingDesign) -> Ints:
    least = min(int(one.draws[one.n_relevant > 0].min()) for one in ranks.values())
    wanted = _growing(least, growth) if sizes is None else np.unique(as_ints("sizes", list(sizes)))
    if wanted.size == 0:
        raise InputError("`sizes` must hold at least one sample size, got none.")
    kind.check(np.array([least]), wanted[[0, -1]])
    return wanted


def _growing(last: int, growth: float) -> Ints:
    """Return 1, 2, ... in steps that grow, up to the last."""
    if not growth > 0:
        raise InputError(f"`growth` must be above 0, got {growth}.")
    count = int(np.ceil(np.log(last) / np.log1p(growth))) + 1
    return np.unique(np.append(np.floor((1 + growth) ** np.arange(count)).astype(np.int64).clip(1, last), last))


def _between_changes(curves: Mapping[str, Floats], sizes: Ints) -> Ints:
    """Return a size between each two neighbouring ones at which some recommenders are in different order."""
    change = np.flatnonzero(_changes(curves) & (np.diff(sizes) > 1))
    return (sizes[change] + sizes[change + 1]) // 2


def _changes(curves: Mapping[str, Floats]) -> Bools:
    """Return for each size but the first whether the order of some two recommenders differs from the size before."""
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


def _order(a: Floats, b: Floats) -> NDArray[np.int8]:
    difference = a - b
    tied = np.abs(difference) <= _TIE * np.maximum(np.abs(a), np.abs(b))
    return np.where(tied, 0, np.sign(difference)).astype(np.int8)
