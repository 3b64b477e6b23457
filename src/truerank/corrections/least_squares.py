"""Corrections of least bias, unconstrained and constrained; both are exact for affine metrics."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from truerank.arrays import Floats
from truerank.corrections.base import CORRECTIONS, Case, Correction, CorrectionTable, cached_table
from truerank.corrections.batches import batches
from truerank.corrections.priors import Prior, prior_counts
from truerank.corrections.problems import Problem, problem
from truerank.corrections.solvers import constrained, minimal_bias, unbiased_affine
from truerank.corrections.spectral import least_squares_problems
from truerank.metrics.base import Term
from truerank.sampling.laws import HYPERGEOMETRIC, Law


@dataclass(frozen=True)
class _LeastBias(Correction):
    prior: Prior | None = field(default=None, metadata={"only_in_code": True})

    def solve(self, term: Term, law: Law, case: Case) -> CorrectionTable:
        if term.shape == "affine":
            return unbiased_affine(case.count_term(term), case.N, case.m)
        return self._solve(problem_of(term, law, case, self.prior))

    def tables(self, term: Term, law: Law, cases: list[Case]) -> list[Floats]:
        """Set up all problems with the same m at once, where the law is diagonal and the prior uniform."""
        if self.prior is not None or law is not HYPERGEOMETRIC or term.shape == "affine":
            return super().tables(term, law, cases)
        tables: list[Floats] = [np.empty(0)] * len(cases)
        for batch in batches(term, cases):
            tasks = least_squares_problems(batch.term, batch.N, batch.m, last=batch.last, smooth=batch.smooth)
            for place, task in zip(batch.places, tasks, strict=True):
                solved = cached_table(self, term, law, cases[place]) if task is None else self._solve(task)
                tables[place] = solved.values
        return tables

    @abstractmethod
    def _solve(self, task: Problem) -> CorrectionTable:
        """Solve the problem of a metric that is not affine."""


@dataclass(frozen=True)
class LeastSquares(_LeastBias):
    """The least squared bias over the prior (eq. 21 and 22); often ill-conditioned, which a note reports."""

    name = "ls"

    def _solve(self, task: Problem) -> CorrectionTable:
        return minimal_bias(task)

    def notes(self, name: str, term: Term, law: Law, case: Case) -> tuple[str, ...]:
        table = cached_table(self, term, law, case)
        if not table.ill_conditioned:
            return ()
        return (
            f"{name} is ill-conditioned: of the {table.values.size} values of its table the sample determines "
            f"{table.determined}; prefer {name.partition('~')[0]}~bv(0.01)",
        )


@dataclass(frozen=True)
class ConstrainedLeastSquares(_LeastBias):
    """The least squared bias among tables that are monotone, like the metric, and never negative."""

    name = "cls"

    def _solve(self, task: Problem) -> CorrectionTable:
        return constrained(task)


CORRECTIONS.add_built_in(LeastSquares, ConstrainedLeastSquares)


def problem_of(term: Term, law: Law, case: Case, prior: Prior | None) -> Problem:
    """Return the least-squares problem of a case."""
    end = case.last_count(term)
    return problem(
        case.count_term(term),
        case.N,
        case.m,
        law,
        prior=None if prior is None else prior_counts(prior, case.N),
        breaks=() if end is None else (end + 1,),
        smooth=term.shape != "any",
    )
