"""What turns sampled ranks into estimates of exact metrics.

An `Estimator` sees all ranks of an evaluation. A `Correction` is one that needs a single case at a time: for each, a
table that is read at the sampled count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from truerank.arrays import Floats, Ints, distinct_columns, frozen
from truerank.caching import cached
from truerank.errors import InputError
from truerank.metrics.base import Term, Terms
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import SamplingDesign
from truerank.text_forms import Named, Registry

if TYPE_CHECKING:
    from truerank.corrections.problems import CountTerm
    from truerank.sampling.laws import Law


SumsBySize = Callable[[Ints], Floats]

_ILL_CONDITIONED = 1e8


class Case(NamedTuple):
    """The i-th of `n_relevant` relevant items of an instance with n candidates, of which m were sampled."""

    i: int
    n_relevant: int
    n: int
    m: int

    @property
    def N(self) -> int:  # noqa: N802 (the paper's letter)
        """Irrelevant candidates that the sample is drawn from."""
        return self.n - self.n_relevant

    def last_count(self, term: Term) -> int | None:
        """Return the largest count above the item at which it still adds something; None: there is no cut-off."""
        cutoff = term.cutoff(np.array([self.n_relevant]))
        return None if cutoff is None else int(cutoff[0]) - self.i

    def count_term(self, term: Term) -> CountTerm:
        """Return what the item adds as a function of the irrelevant candidates above it."""
        i, n_relevant, n = (np.array([number]) for number in self[:3])

        def at(g: Floats) -> Floats:
            return term.term(cast("Ints", np.asarray(g) + self.i), i, n_relevant, n)

        return at


class CountedItems(NamedTuple):
    """Relevant items: their distinct cases, and of each the case, the candidates above and tied, and the weight.

    `shown` returns for a number of draws how many items of each case have h of them above, on average.
    """

    cases: list[Case]
    which: Ints
    above: Ints
    tied: Ints
    weight: Floats
    shown: Callable[[int], Floats]


@dataclass(frozen=True, eq=False)
class CorrectionTable:
    """The table of one case and how far to trust it.

    Attributes
    ----------
    values : ndarray, shape (m + 1,)
        Corrected contribution for h = 0..m. NaN where the prior makes h impossible.
    determined : int, optional
        Directions of the table that the data determine; None: all m + 1.
    condition : float
        Factor by which relative errors in the law may be magnified.
    """

    values: Floats
    determined: int | None = None
    condition: float = 1.0

    @property
    def ill_conditioned(self) -> bool:
        """Whether many tables fit equally well in double precision, this being the smallest."""
        return (self.determined or len(self.values)) < len(self.values) or self.condition > _ILL_CONDITIONED


@dataclass(frozen=True)
class Estimator(Named, ABC):
    """A way to estimate the terms of a metric from all sampled ranks of an evaluation.

    To add one, subclass as a frozen dataclass, give it a `name` and `terms`, and decorate it with
    `truerank.register_correction`; ``metric~name(arguments)`` then uses it. If what it makes of an instance depends on
    that instance alone, subclass `truerank.Correction` instead.
    """

    @property
    def pools_instances(self) -> bool:
        """Whether the estimate of an instance depends on the other instances."""
        return False

    def unbiased(self, ranks: Ranks) -> bool:
        """Whether estimates from ranks sampled like these have the exact metric as their expectation."""
        return False

    @abstractmethod
    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        """Return terms that estimate those of exact ranks.

        Parameters
        ----------
        parts : tuple of Terms
            Of the metric on exact ranks.
        ranks : Ranks
            Sampled ones, with their design.
        name : str
            What messages call the corrected metric.
        """

    def hidden_error(self, parts: tuple[Terms, ...], ranks: Ranks) -> float:
        """Return the standard error of the mean that the spread of the estimates does not show.

        It is 0 if each instance is estimated on its own.
        """
        return 0.0

    def caveats(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[str, ...]:
        """What to know before trusting the corrected metric called `name`."""
        return ()


@dataclass(frozen=True)
class Correction(Estimator):
    """A way to turn the sampled count of a relevant item into an estimate of its term of a metric.

    To add one, subclass as a frozen dataclass, give it a `name` and `solve`, and decorate it with
    `truerank.register_correction`; ``metric~name(arguments)`` then uses it.

    Examples
    --------
    A correction that multiplies the sampled count, as some do:

    >>> from dataclasses import dataclass
    >>> import numpy as np, truerank as tr
    >>> @tr.register_correction
    ... @dataclass(frozen=True)
    ... class ScaledRank(tr.Correction):
    ...     name = "scaled-rank"
    ...     def solve(self, term, law, case):
    ...         counts = np.round(np.arange(case.m + 1) * case.N / case.m)
    ...         return tr.CorrectionTable(case.count_term(term)(counts))
    >>> tr.correction_table("ap~scaled-rank", m=2, n=11).round(3).tolist()
    [1.0, 0.167, 0.091]
    """

    @abstractmethod
    def solve(self, term: Term, law: Law, case: Case) -> CorrectionTable:
        """Return the m + 1 values to read at h = 0..m, and how far to trust them."""

    def tables(self, term: Term, law: Law, cases: list[Case]) -> list[Floats]:
        """Return the values for many cases; override it where they can be solved together."""
        return [cached_table(self, term, law, case).values for case in cases]

    def expected_sums(self, term: Term, law: Law, items: CountedItems, largest: int) -> SumsBySize | None:
        """Return a function from sample sizes up to the largest to the sums of the expected values of all items.

        It returns NaN for sizes without a closed form; None: there is none at all.
        """
        return None

    def notes(self, name: str, term: Term, law: Law, case: Case) -> tuple[str, ...]:
        """What to know before trusting the corrected metric called `name`; `case` is one of its cases."""
        return ()

    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        """Return the terms with their tables; weights don't depend on what was sampled."""
        found, which = _cases(ranks)
        law = _law(ranks, name)
        return tuple(Terms(TableTerm(self, part.term, law, found), which, part.weight) for part in parts)

    def caveats(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[str, ...]:
        at = int(np.argmax(ranks.n_relevant > 0))
        first = _cases(ranks[at : at + 1])[0][0]
        return self.notes(name, parts[0].term, _law(ranks, name), first)


def _law(ranks: Ranks, name: str) -> Law:
    return require_design(ranks, name).law(name)


def require_design(ranks: Ranks, name: str) -> SamplingDesign:
    """Return the design of sampled ranks, or refuse exact ones."""
    if ranks.design is None:
        plain = name.partition("~")[0]
        raise InputError(f"{name} corrects sampled ranks, but these ranks are exact; use {plain}.")
    return ranks.design


def _cases(ranks: Ranks) -> tuple[tuple[Case, ...], Ints]:
    """Return the distinct cases, and the case of each relevant item."""
    if "cases" not in ranks.fits:
        ranks.fits["cases"] = _distinct_cases(ranks)
    return ranks.fits["cases"]


def _distinct_cases(ranks: Ranks) -> tuple[tuple[Case, ...], Ints]:
    catalogue = ranks.n_candidates if ranks.n_catalogue is None else ranks.n_catalogue
    per_item = [ranks.i, ranks.item_n_relevant, catalogue[ranks.instance], ranks.draws[ranks.instance]]
    first, which = distinct_columns(*per_item)
    columns = (numbers[first].tolist() for numbers in per_item)
    return tuple(Case(*case) for case in zip(*columns, strict=True)), which


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


@cached
def _tables(term: TableTerm) -> Floats:
    """Return a row of m + 1 values for each case, filled up with NaN where others have a larger m.

    Recommenders that are compared share their cases, hence these tables.
    """
    found = term.correction.tables(term.base, term.law, list(term.cases)) if term.cases else []
    rows = np.full((len(found), max((table.size for table in found), default=1)), np.nan)
    for row, table in zip(rows, found, strict=True):
        row[: table.size] = table
    return frozen(rows)


@cached
def cached_table(correction: Correction, term: Term, law: Law, case: Case) -> CorrectionTable:
    """Return the table of a case, computed once."""
    return correction.solve(term, law, case)


CORRECTIONS: Registry[Estimator] = Registry("correction", "'~bv(0.1)', '~cls' or '~rank(interpolate)'")
