"""The correction that trades bias against variance."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.corrections import spectral
from truerank.corrections.base import CORRECTIONS, Case, Correction, CorrectionTable, CountedItems
from truerank.corrections.batches import batches
from truerank.corrections.least_squares import problem_of
from truerank.corrections.priors import Prior
from truerank.corrections.solvers import bias_variance
from truerank.errors import InputError
from truerank.metrics.base import Term
from truerank.sampling.laws import HYPERGEOMETRIC, Law


@dataclass(frozen=True)
class BiasVariance(Correction):
    """The least sum of squared bias and gamma times the variance (eq. 24 to 26)."""

    name = "bv"
    gamma: float
    prior: Prior | None = field(default=None, metadata={"only_in_code": True})

    def __post_init__(self) -> None:
        if not 0.0 < self.gamma <= 1.0:
            raise InputError(f"the gamma of ~bv(gamma) must lie in (0, 1], got {self.gamma:g}.")

    def solve(self, term: Term, law: Law, case: Case) -> CorrectionTable:
        return bias_variance(problem_of(term, law, case, self.prior), self.gamma)

    def tables(self, term: Term, law: Law, cases: list[Case]) -> list[Floats]:
        """Solve all cases with the same m at once in closed form, where the prior is uniform and the law has one."""
        if self.prior is not None or law not in spectral.SPECTRA:
            return super().tables(term, law, cases)
        tables: list[Floats] = [np.empty(0)] * len(cases)
        for batch in batches(term, cases):
            rows = spectral.bias_variance_tables(
                batch.term, batch.N, batch.m, self.gamma, law, last=batch.last, smooth=batch.smooth
            )
            for place, row in zip(batch.places, rows, strict=True):
                tables[place] = row
        return tables

    def expected_sums(self, term: Term, law: Law, items: CountedItems, sizes: Ints) -> Floats:
        if self.prior is not None or law is not HYPERGEOMETRIC:
            return super().expected_sums(term, law, items, sizes)
        (batch,) = batches(term, [case._replace(m=0) for case in items.cases])
        counts = _side_by_side(items)
        return spectral.bias_variance_sums(
            batch.term, batch.N, counts, sizes, self.gamma, last=batch.last, smooth=batch.smooth
        )


def _side_by_side(items: CountedItems) -> tuple[Floats, Floats]:
    """Return the counts and weights of the items of each case as a row, filled up with 0."""
    order = np.argsort(items.which, kind="stable")
    sizes = np.bincount(items.which, minlength=len(items.cases))
    row = items.which[order]
    column = np.arange(row.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    counts, weights = np.zeros((2, sizes.size, int(sizes.max())))
    counts[row, column], weights[row, column] = items.above[order], items.weight[order]
    return counts, weights


CORRECTIONS.add_built_in(BiasVariance)
