"""The correction that trades bias against variance."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.corrections import spectral
from truerank.corrections.base import CORRECTIONS, Case, Correction, CorrectionTable
from truerank.corrections.least_squares import problem_of
from truerank.corrections.priors import Prior
from truerank.corrections.solvers import bias_variance
from truerank.errors import InputError
from truerank.metrics.base import Term
from truerank.sampling.laws import Law


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
        places = defaultdict(list)
        for place, case in enumerate(cases):
            places[case.m].append(place)
        tables: list[Floats] = [np.empty(0)] * len(cases)
        for m, group in places.items():
            for place, table in zip(group, self._at_once(term, law, m, [cases[at] for at in group]), strict=True):
                tables[place] = table
        return tables

    def _at_once(self, term: Term, law: Law, m: int, cases: list[Case]) -> Floats:
        i, n_relevant, n, _ = (np.array(part) for part in zip(*cases, strict=True))
        cutoff = term.cutoff(n_relevant)

        def at(g: Floats, row: Ints) -> Floats:
            return term.term(cast("Ints", g + i[row]), i[row], n_relevant[row], n[row])

        return spectral.bias_variance_tables(
            at,
            n - n_relevant,
            m,
            self.gamma,
            law,
            last=None if cutoff is None else cutoff - i,
            smooth=term.shape != "any",
        )


CORRECTIONS.add_built_in(BiasVariance)
