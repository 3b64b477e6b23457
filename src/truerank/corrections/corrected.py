"""Corrected metrics: ``recall@10~bv(0.1)`` reads a sampled rank and estimates what the exact one is worth.

Because a metric is a sum over its relevant items, correcting each term corrects the metric, whatever their dependence
(for one relevant item this is section 5 of Krichene & Rendle).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from truerank.arrays import Floats, Ints, distinct_columns, frozen
from truerank.corrections.base import Case, Correction
from truerank.errors import InputError
from truerank.metrics.base import Metric, Term, Terms
from truerank.ranking.ranks import Ranks
from truerank.sampling.laws import Law


@dataclass(frozen=True)
class Corrected(Metric):
    """A metric, estimated from sampled ranks by a correction; written ``metric~correction``.

    Its values are estimates: single ones may be negative or above 1, their mean is what counts.
    """

    metric: Metric
    correction: Correction

    @property
    def lower_is_better(self) -> bool:
        return self.metric.lower_is_better

    @property
    def estimated(self) -> Metric:
        return self.metric

    def biased(self, ranks: Ranks) -> bool:
        return False

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        """Return the terms of the metric with their tables; weights don't depend on what was sampled."""
        cases, which = self._cases(ranks)
        law = self._law(ranks)
        return tuple(
            Terms(TableTerm(self.correction, part.term, law, cases), which, part.weight)
            for part in self.metric.terms(ranks)
        )

    def _law(self, ranks: Ranks) -> Law:
        if ranks.design is None:
            raise InputError(f"{self} corrects sampled ranks, but these ranks are exact; use {self.metric}.")
        return ranks.design.law(str(self))

    def _cases(self, ranks: Ranks) -> tuple[tuple[Case, ...], Ints]:
        """Return the distinct cases, and which of them each relevant item is."""
        catalogue = ranks.n_candidates if ranks.n_catalogue is None else ranks.n_catalogue
        per_item = [ranks.i, ranks.item_n_relevant, catalogue[ranks.instance], ranks.draws[ranks.instance]]
        first, which = distinct_columns(*per_item)
        columns = (numbers[first].tolist() for numbers in per_item)
        return tuple(Case(*case) for case in zip(*columns, strict=True)), which

    def notes(self, ranks: Ranks) -> tuple[str, ...]:
        if not np.any(ranks.n_relevant):
            return ()
        at = int(np.argmax(ranks.n_relevant > 0))
        first = self._cases(ranks[at : at + 1])[0][0]
        return self.correction.notes(str(self), self.metric.terms(ranks)[0].term, self._law(ranks), first)

    def __str__(self) -> str:
        return f"{self.metric}~{self.correction}"


@dataclass(frozen=True)
class TableTerm(Term):
    """Reads a sampled rank in the table of its case; what a term is given as n is here the number of the case."""

    correction: Correction
    base: Term
    law: Law
    cases: tuple[Case, ...]

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return _tables(self)[n, rank - i]

    def extremes(self, *, upper: bool) -> Floats:
        """Return the largest or least value that the table of each case holds."""
        return np.nanmax(_tables(self), axis=1) if upper else np.nanmin(_tables(self), axis=1)


@lru_cache(maxsize=16)
def _tables(term: TableTerm) -> Floats:
    """Return a row of m + 1 values for each case, filled up with NaN where others have a larger m.

    Recommenders that are compared share their cases, hence these tables.
    """
    found = term.correction.tables(term.base, term.law, list(term.cases)) if term.cases else []
    rows = np.full((len(found), max((table.size for table in found), default=1)), np.nan)
    for row, table in zip(rows, found, strict=True):
        row[: table.size] = table
    return frozen(rows)
