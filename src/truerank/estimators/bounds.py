"""Bounds of a metric from sampled ranks: corrections whose expectation is never below, or above, the exact metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from truerank.core.caching import cached
from truerank.core.checks import Floats, Ints, distinct_columns, frozen
from truerank.core.ranks import Ranks
from truerank.estimators.bias_variance import BiasVariance
from truerank.estimators.corrected import Assumption, Case, Correction, CorrectionTable, ValueTerm, require_design
from truerank.estimators.draws import Draws, Ended, FixedDraws, HitTimes, Readings, readings, rounded_down, rounded_up
from truerank.estimators.worst_laws import Setting, reference, setting
from truerank.metrics.definitions import Term, Terms
from truerank.sampling.designs import Stops
from truerank.sampling.laws import Law

# significant bits of the sizes for which tables are solved: others share them, and lose at most one draw in sixteen
_CANDIDATE_BITS = 5
_DRAW_BITS = 7
_PLACE_BITS = 5
# functions that are defined on integers only may do anything below this count
_ANY = 2_048
# decimals by which functions are recognised as one up to a factor
_DIGITS = 12


@dataclass(frozen=True)
class Bound(Correction):
    """One end of the honest range: its expectation is never below (never above) the exact metric, for any law of ranks.

    Parameters
    ----------
    upper : bool
        Whether it is the upper end.
    assume : {"nothing", "falling", "smooth"}
        What it assumes about the law of the ranks, among the top tenth of the candidates and for the first relevant
        item of an instance.

    Examples
    --------
    >>> from truerank.metrics import Recall
    >>> from truerank.sampling.laws import HYPERGEOMETRIC
    >>> low, high = (Bound(upper).solve(Recall(1), HYPERGEOMETRIC, Case(1, 1, 11, 5)).values for upper in (False, True))
    >>> expected = HYPERGEOMETRIC.rows(range(11), 5, 10) @ np.stack([low, high], axis=1)
    >>> exact = np.eye(11)[0]
    >>> bool(np.all(expected[:, 0] <= exact + 1e-12)), bool(np.all(expected[:, 1] >= exact - 1e-12))
    (True, True)
    """

    name = "bound"
    upper: bool
    assume: Assumption = "nothing"

    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        """Return the terms with their tables or, if draws ended depending on their outcome, with a value per item."""
        design = require_design(ranks, name)
        if ranks.drawn is None and not design.unequal_chances:
            return super().terms(parts, ranks, name)
        stops = design.stops(ranks)
        places = np.arange(ranks.above.size)
        return tuple(Terms(self._read(part.term, ranks, stops), places, part.weight) for part in parts)

    def _read(self, term: Term, ranks: Ranks, stops: Stops | None) -> BoundTerm:
        """Return what the draws for each item say about it; `stops` is None if it is not known what ended them."""
        if stops is None:
            return possible(term, ranks, self.upper)
        found = BoundTerm(*(np.empty(ranks.above.size) for _ in range(3)))
        for draws, items in _alike(ranks, stops):
            cases, which = _cases(ranks, items)
            tables = _solved(self, term, draws, cases)
            least, most = tables.min(axis=1), tables.max(axis=1)
            found.least[items], found.most[items] = least[which], most[which]
            seen = _readings(ranks, draws, items, stops)
            found.values[items] = seen.values(tables, which, most if self.upper else least)
        return found

    def solve(self, term: Term, law: Law, case: Case) -> CorrectionTable:
        return CorrectionTable(self.tables(term, law, [case])[0])

    def tables(self, term: Term, law: Law, cases: list[Case]) -> list[Floats]:
        columns = np.array(cases, dtype=np.int64).reshape(-1, 4)
        found: list[Floats] = [np.empty(0)] * len(cases)
        for group, rows in self._grouped(term, law, columns):
            for place, row in zip(group.tolist(), rows, strict=True):
                found[place] = row
        return found

    def _grouped(self, term: Term, law: Law, columns: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Yield cases with the same m, and their tables."""
        i, n_relevant, n, m = columns.T
        N = n - n_relevant
        known = np.full(N.size, term.shape == "affine") | ((m == N) & law.distinct)
        draws = rounded_down(m, _DRAW_BITS)
        least = draws if law.distinct else np.zeros_like(draws)
        candidates = least + rounded_up(N - least, _CANDIDATE_BITS)
        first, which = distinct_columns(known.astype(np.int64), m, candidates, i == 1)
        for at, start in enumerate(first.tolist()):
            group = np.flatnonzero(which == at)
            if known[start]:
                yield group, _scaled(term, columns[group])
            else:
                shared = FixedDraws(int(candidates[start]), int(draws[start]), law)
                yield group, _SharedTables(self, term, shared, columns[group]).tables()


def _scaled(term: Term, columns: Ints) -> Floats:
    """Tables of an f that is affine, or of a sample with every candidate: f at N h / m, the true count on average."""
    i, n_relevant, n, m = columns.T[:, :, None]
    counts = (n - n_relevant) * np.arange(int(m[0, 0]) + 1) / m
    return np.asarray(term.term(cast("Ints", counts + i), i, n_relevant, n), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _SharedTables:
    """Cases with the same draws and similar numbers of candidates, whose tables are solved together."""

    bound: Bound
    term: Term
    draws: Draws
    columns: Ints

    @property
    def N(self) -> int:  # noqa: N802 (the paper's letter)
        return self.draws.N

    def tables(self) -> Floats:
        """Solve for each function that differs by more than a factor, and fit the tables to each N."""
        i, n_relevant, n, m = self.columns.T
        shared = self._setting()
        functions, factors = self._functions(shared)
        rows = np.zeros((i.size, self.draws.width(int(m[0]))))
        keys = np.round(functions, _DIGITS)
        _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        for at, start in enumerate(first.tolist()):
            mine = np.flatnonzero((which.ravel() == at) & (factors != 0))
            if mine.size:
                table = self._table(shared, functions[start])
                sizes, size = np.unique((n - n_relevant)[mine], return_inverse=True)
                rows[mine] = self.draws.fitted(table, int(m[0]), sizes)[size] * factors[mine, None]
        return rows

    def _table(self, shared: Setting, function: Floats) -> Floats:
        decided = self.draws.decided(shared.counts, function)
        return shared.solve(shared.targets(function), upper=self.bound.upper) if decided is None else decided

    def _setting(self) -> Setting:
        i, n_relevant = self.columns.T[:2]
        cutoff = self.term.cutoff(n_relevant)
        breaks = () if cutoff is None else tuple(np.unique([cutoff - i, cutoff - self._shared_i()]).tolist())
        assume = self.bound.assume if i[0] == 1 else "nothing"
        inside = tuple(at for at in breaks if 0 <= at < self.N)
        single = {"single": min(_ANY, self.N)} if self.term.shape == "any" else {}
        return setting(self.draws, inside, assume=assume, **single)

    def _functions(self, shared: Setting) -> tuple[Floats, Floats]:
        """Return what the table of each case must bound at the counts, scaled to a peak of 1, and its factor."""
        exact, rough = self._values(shared, self.columns[:, 0]), self._values(shared, self._shared_i())
        ratio = self._ratios(exact, rough)
        chosen = np.where(np.isnan(ratio)[:, None], exact, rough)
        peak = np.abs(chosen).max(axis=1)
        return chosen / np.where(peak > 0, peak, 1.0)[:, None], peak * np.where(np.isnan(ratio), 1.0, ratio)

    def _shared_i(self) -> Ints:
        """Places of the relevant items for which tables are solved: deep ones share them."""
        i, n_relevant = self.columns.T[:2]
        return rounded_down(i, _PLACE_BITS) if self.bound.upper else np.minimum(rounded_up(i, _PLACE_BITS), n_relevant)

    def _values(self, shared: Setting, i: Ints) -> Floats:
        """Return the term at the counts of the setting, a row per case, for relevant items at the places `i`."""
        _, n_relevant, n, _ = self.columns.T[:, :, None]
        i = i[:, None]
        most = n - n_relevant if self.term.shape == "any" else self.N
        counts = np.minimum(shared.counts, most) + np.zeros_like(i)
        return np.asarray(self.term.term(counts + i, *np.broadcast_arrays(i, n_relevant, n)), dtype=np.float64)

    def _ratios(self, exact: Floats, rough: Floats) -> Floats:
        """Return the factor by which the rough values of each case bound the exact ones; NaN where none does."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where((exact == 0) & (rough == 0), np.nan, exact / rough)
        extreme = np.fmax.reduce(ratio, axis=1) if self.bound.upper else np.fmin.reduce(ratio, axis=1)
        serves = np.isfinite(extreme) & (rough.min(axis=1) >= 0) & (exact.min(axis=1) >= 0)
        return np.where(serves, extreme, np.nan)


@dataclass(frozen=True, eq=False)
class BoundTerm(ValueTerm):
    """Gives each relevant item a value of its own, and the smallest and largest values that it could have had."""

    least: Floats
    most: Floats

    def extremes(self, *, upper: bool) -> Floats:
        """Return the largest or smallest value that each item could have had."""
        return self.most if upper else self.least


def _alike(ranks: Ranks, stops: Stops) -> Iterator[tuple[HitTimes, Ints]]:
    """Yield items with about the same number of candidates and the same cap, with what their draws can show."""
    N, limit = ranks.item_irrelevant, stops.limit
    cap = np.minimum(limit, N)
    first, size = distinct_columns(N, cap)
    served: dict[HitTimes, list[int]] = {}
    for at, (own, most) in enumerate(zip(N[first].tolist(), cap[first].tolist(), strict=True)):
        served.setdefault(HitTimes.serving(own, stops.hits, most), []).append(at)
    for draws, places in served.items():
        yield draws, np.flatnonzero(np.isin(size, places))


def _cases(ranks: Ranks, items: Ints) -> tuple[tuple[Case, ...], Ints]:
    """Return the distinct cases of some items, and the case of each; tables don't depend on m."""
    N, n_relevant = ranks.item_irrelevant[items], ranks.item_n_relevant[items]
    per_item = [ranks.i[items], n_relevant, N + n_relevant, N]
    first, which = distinct_columns(*per_item)
    return tuple(Case(*row) for row in np.stack(per_item, axis=1)[first].tolist()), which


@cached
def _solved(bound: Bound, term: Term, draws: HitTimes, cases: tuple[Case, ...]) -> Floats:
    """Return the tables of the cases, a row each; recommenders that are compared share them."""
    columns = np.array(cases, dtype=np.int64)
    rows = np.empty((len(cases), draws.n_outcomes))
    for first in (False, True):
        own = (columns[:, 0] == 1) == first
        if own.any():
            rows[own] = _SharedTables(bound, term, draws, columns[own]).tables()
    return frozen(rows)


def _readings(ranks: Ranks, draws: HitTimes, items: Ints, stops: Stops) -> Readings:
    """Return how the tables of these items are read; all metrics share it."""
    own = (ranks.item_irrelevant, ranks.above, ranks.item_draws, stops.open_until)
    return ranks.fits.get(("readings", draws), lambda: readings(draws, Ended(*own).only(items)))


def possible(term: Term, ranks: Ranks, upper: bool) -> BoundTerm:
    """Return the most extreme value that each item could add, given its draws, whatever ended them."""
    N, n_relevant, i = ranks.item_irrelevant, ranks.item_n_relevant, ranks.i
    first, which = distinct_columns(i, n_relevant, N)
    ends = np.array([_extremes(term, int(i[at]), int(n_relevant[at]), int(N[at])) for at in first.tolist()])
    least, most = ends.reshape(-1, 2)[which].T
    if term.shape == "any":
        return BoundTerm(most if upper else least, least, most)
    # all other terms are monotone; tied candidates are above or below
    design = require_design(ranks, "a bound")
    least_count, _ = design.possible_counts(ranks.above, ranks.item_draws, N)
    _, most_count = design.possible_counts(ranks.above + ranks.tied, ranks.item_draws, N)
    counts = least_count, most_count
    both = [term.term(count + i, i, n_relevant, N + n_relevant) for count in counts]
    return BoundTerm(np.maximum(*both) if upper else np.minimum(*both), least, most)


def _extremes(term: Term, i: int, n_relevant: int, N: int) -> tuple[float, float]:
    """Return the least and the most that an item could add, wherever it is."""
    counts = np.arange(N + 1) if term.shape == "any" else np.array([0, N])
    values = Case(i, n_relevant, n_relevant + N, 0).count_term(term)(counts.astype(np.float64))
    return float(np.min(values)), float(np.max(values))


_GAMMAS = (1.0, 0.1, 0.01, 0.001)
# beyond half of the candidates, or this many, sampling is not worth it
_SHARE = 2
_LARGEST = 4_096
# ratio of the bounds for infinitely many instances; with the error of some thousand instances, it stays below the
# # factor of three from which a metric counts as not determined
_FACTOR = 1.75


@cached
def is_determined(term: Term, law: Law, case: Case) -> bool:
    """Return whether some thousand instances can be expected to determine the metric within a factor of three.

    Examples
    --------
    >>> from truerank.metrics import Recall
    >>> from truerank.sampling.laws import HYPERGEOMETRIC
    >>> [is_determined(Recall(10), HYPERGEOMETRIC, Case(1, 1, 3_541, m)) for m in (100, 1_000)]
    [False, True]
    """
    shown = _setting(law, case).shown
    low, high = (float(shown @ Bound(upper).tables(term, law, [case])[0]) for upper in (False, True))
    return max(abs(low), abs(high)) <= _FACTOR * min(abs(low), abs(high)) and low * high >= 0


def enough_draws(term: Term, law: Law, case: Case) -> int | None:
    """Return about how many draws would determine the metric; None if it takes a large part of the candidates."""
    m = 2 * case.m
    while m <= min(case.N // _SHARE, _LARGEST):
        if is_determined(term, law, case._replace(m=m)):
            return m
        m *= 2
    return None


def best_gamma(term: Term, law: Law, case: Case, instances: int) -> float:
    """Return the gamma with the least mean squared error of the mean over this many instances, among powers of ten."""
    shared = _setting(law, case)
    values = case.count_term(term)(shared.g.astype(np.float64))
    exact = float(reference(shared.g) @ np.broadcast_to(values, shared.g.shape))

    def error(gamma: float) -> float:
        (table,) = BiasVariance(gamma).tables(term, law, [case])
        mean = float(shared.shown @ table)
        return (mean - exact) ** 2 + float(shared.shown @ np.square(table - mean)) / max(instances, 1)

    return min(_GAMMAS, key=error)


def _setting(law: Law, case: Case) -> Setting:
    return setting(FixedDraws(case.N, case.m, law))
