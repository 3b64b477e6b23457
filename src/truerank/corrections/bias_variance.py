"""The correction that trades bias against variance."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np

from truerank.arrays import Floats, frozen
from truerank.caching import cached
from truerank.corrections import spectral
from truerank.corrections.base import CORRECTIONS, Case, Correction, CorrectionTable, CountedItems, SumsBySize
from truerank.corrections.batches import batches
from truerank.corrections.least_squares import problem_of
from truerank.corrections.pooled_spectra import LARGEST, PooledSpectrum, metric_shown
from truerank.corrections.priors import Prior, prior_notes
from truerank.corrections.solvers import bias_variance
from truerank.errors import InputError
from truerank.metrics.base import Term, Terms
from truerank.ranking.ranks import Ranks
from truerank.sampling.laws import HYPERGEOMETRIC, Law

# cases times sampled counts held at once: 32 MB, several times
_MOST_COUNTS = 1 << 22


@dataclass(frozen=True)
class BiasVariance(Correction):
    """The least sum of squared bias and gamma times the variance (eq. 24 to 26).

    Parameters
    ----------
    gamma : float, or "auto"
        From 0 to 1: the larger, the smaller the variance and the larger the bias. "auto" takes the one of 1, 0.3, 0.1,
        ..., 0.0001 with the least squared bias plus variance of the mean, if ranks follow the law that ``~smooth`` fits
        to these very ranks; a note names it.
    prior : tuple of float, optional
        What is known of the ranks; None: all are equally likely.

    Examples
    --------
    >>> import truerank as tr
    >>> exact = tr.Ranks.from_ranks([1, 2, 5, 20, 100, 400] * 200, n=1_000)
    >>> tr.estimate(tr.UniformSampling(100).draw(exact, rng=1), "ap~bv(auto)").notes[0]
    'the gamma of ap~bv(auto) is 0.0001, which has the least risk if ranks follow the law of ap~smooth'
    """

    name = "bv"
    gamma: float | Literal["auto"] = field(metadata={"words": ("auto",)})
    prior: Prior | None = field(default=None, metadata={"only_in_code": True})

    def __post_init__(self) -> None:
        given: object = self.gamma
        if self.gamma != "auto" and (isinstance(given, str) or not 0.0 < self.gamma <= 1.0):
            raise InputError(f"the gamma of ~bv(gamma) must lie in (0, 1], or be auto, got {self.gamma}.")

    @property
    def pools_instances(self) -> bool:
        return self.gamma == "auto"

    def chosen(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> BiasVariance:
        """Return the correction with the gamma that is used for these ranks."""
        if self.gamma != "auto":
            return self
        from truerank.corrections.chosen_gamma import GAMMAS, least_risk

        key = (self, name)
        if key not in ranks.fits:
            ranks.fits[key] = least_risk([replace(self, gamma=gamma) for gamma in GAMMAS], parts, ranks, name)
        found: BiasVariance = ranks.fits[key]
        return found

    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        return super(BiasVariance, self.chosen(parts, ranks, name)).terms(parts, ranks, name)

    def caveats(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[str, ...]:
        used = self.chosen(parts, ranks, name)
        notes = () if self.prior is None else prior_notes(used, replace(used, prior=None), parts, ranks, name)
        if self.gamma != "auto":
            return notes
        smooth = f"{name.partition('~')[0]}~smooth"
        return (
            f"the gamma of {name} is {used._number:g}, which has the least risk if ranks follow the law of {smooth}",
            *notes,
        )

    def solve(self, term: Term, law: Law, case: Case) -> CorrectionTable:
        return bias_variance(problem_of(term, law, case, self.prior), self._number)

    @property
    def _number(self) -> float:
        if isinstance(self.gamma, str):
            raise InputError("the gamma of ~bv(auto) is chosen for the ranks of an evaluation; give a number here.")
        return self.gamma

    def tables(self, term: Term, law: Law, cases: list[Case]) -> list[Floats]:
        """Solve all cases with the same m at once in closed form, where the prior is uniform and the law has one."""
        if self.prior is not None or law not in spectral.SPECTRA:
            return super().tables(term, law, cases)
        tables: list[Floats] = [np.empty(0)] * len(cases)
        for batch in batches(term, cases):
            rows = spectral.bias_variance_tables(
                batch.term, batch.N, batch.m, self._number, law, last=batch.last, smooth=batch.smooth
            )
            for place, row in zip(batch.places, rows, strict=True):
                tables[place] = row
        return tables

    def expected_sums(self, term: Term, law: Law, items: CountedItems, largest: int) -> SumsBySize | None:
        if self.prior is not None or law is not HYPERGEOMETRIC:
            return None
        if largest <= LARGEST and len(items.cases) * (largest + 1) <= _MOST_COUNTS:
            irrelevant = np.array([case.N for case in items.cases])
            metric = _metric_shown(term, tuple(items.cases), largest)
            return PooledSpectrum.of(items.shown(largest), metric, irrelevant, self._number).sums
        if items.tied.any():
            return None
        (batch,) = batches(term, [case._replace(m=0) for case in items.cases])
        return partial(
            spectral.bias_variance_sums,
            batch.term, batch.N, _side_by_side(items), gamma=self._number, last=batch.last, smooth=batch.smooth,
        )  # fmt: skip


@cached
def _metric_shown(term: Term, cases: tuple[Case, ...], m: int) -> Floats:
    """Return what samples of m draws show of the metric; recommenders that are compared share their cases."""
    (batch,) = batches(term, [case._replace(m=m) for case in cases])
    return frozen(metric_shown(batch.term, batch.N, m, batch.last, batch.smooth))


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
