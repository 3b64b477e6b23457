"""The metric at an estimate of the rank: the simplest correction, and a poor one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.arrays import AnyArray, Floats
from truerank.corrections.base import CORRECTIONS, Case, Correction, CorrectionTable
from truerank.corrections.problems import CountTerm
from truerank.metrics.base import Term
from truerank.sampling.laws import Law


@dataclass(frozen=True)
class RankEstimate(Correction):
    """The metric at an unbiased estimate of the rank (eq. 20), rounded down as in the paper, or interpolated."""

    name = "rank"
    interpolate: bool = False

    def solve(self, term: Term, law: Law, case: Case) -> CorrectionTable:
        return CorrectionTable(rank_estimate(case.count_term(term), case.N, case.m, interpolate=self.interpolate))


CORRECTIONS.add_built_in(RankEstimate)


def rank_estimate(term: CountTerm, N: int, m: int, *, interpolate: bool = False) -> Floats:
    """Metric at the unbiased estimate N h / m of the count (eq. 20).

    The estimate is rounded down, as in the paper, or f is interpolated linearly between its
    neighbours.

    Examples
    --------
    >>> rank_estimate(lambda g: 1 / (g + 1), N=9, m=2)
    array([1. , 0.2, 0.1])
    >>> rank_estimate(lambda g: 1 / (g + 1), N=9, m=2, interpolate=True).round(4)
    array([1.    , 0.1833, 0.1   ])
    """
    # Whole-number division: N h / m in floating point could fall just below an integer.
    below, remainder = np.divmod(_products(N, m), m)
    values = np.asarray(term(below.astype(np.float64)), dtype=np.float64)
    if not interpolate:
        return values
    above = np.asarray(term(np.minimum(below + 1, N).astype(np.float64)), dtype=np.float64)
    return values + remainder / m * (above - values)


def _products(N: int, m: int) -> AnyArray:
    """Return N h for h = 0..m as whole numbers, of Python's kind where 64 bits are too few."""
    exact = np.int64 if N * m < 2**63 else np.object_
    return N * np.arange(m + 1).astype(exact)
