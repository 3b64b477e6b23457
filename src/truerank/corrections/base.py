"""Corrections: for each case, a table that is looked up at the sampled count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.metrics.base import Term
from truerank.text_forms import Named, Registry

if TYPE_CHECKING:
    from truerank.corrections.problems import CountTerm
    from truerank.sampling.laws import Law


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
class Correction(Named, ABC):
    """A way to turn sampled counts into estimates of the terms of a metric.

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

    def notes(self, name: str, term: Term, law: Law, case: Case) -> tuple[str, ...]:
        """What to know before trusting the corrected metric called `name`; `case` is one of its cases."""
        return ()


@lru_cache(maxsize=1 << 14)
def cached_table(correction: Correction, term: Term, law: Law, case: Case) -> CorrectionTable:
    """Return the table of a case, computed once."""
    return correction.solve(term, law, case)


CORRECTIONS: Registry[Correction] = Registry("correction", "'~bv(0.1)', '~cls' or '~rank(interpolate)'")
