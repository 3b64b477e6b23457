"""Corrected metrics: ``recall@10~bv(0.1)`` reads a sampled rank and estimates what the exact one is worth.

A correction is a table of m + 1 values per needed (i, |R|, n): what to add for the i-th of |R| relevant items
when h of the m sampled candidates stand above it. Because a metric is a sum over its relevant items, correcting
each term corrects the metric, whatever their dependence (for |R| = 1 this is section 5 of Krichene & Rendle).
"""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.corrections import least_squares, spectral
from truerank.corrections.priors import Prior, prior_counts
from truerank.errors import InputError
from truerank.metrics.plain import Metric, Part
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import SamplingDesign


class Cell(NamedTuple):
    """The i-th of `n_relevant` relevant items of an instance with n candidates."""

    i: int
    n_relevant: int
    n: int

    @property
    def n_irrelevant(self) -> int:
        """Candidates that a sample is drawn from."""
        return self.n - self.n_relevant


@dataclass(frozen=True)
class Correction(ABC):
    """A way to turn sampled counts into estimates of a metric's terms."""

    @abstractmethod
    def table(self, metric: Metric, design: SamplingDesign, cell: Cell) -> least_squares.Table:
        """Return the m + 1 values to read at h = 0..m, and how far to trust them."""

    def tables(self, metric: Metric, design: SamplingDesign, cells: list[Cell]) -> list[Floats]:
        """Return the values for many cells."""
        return [_cached_table(self, metric, design, cell).values for cell in cells]


@lru_cache(maxsize=1 << 14)
def _cached_table(correction: Correction, metric: Metric, design: SamplingDesign, cell: Cell) -> least_squares.Table:
    return correction.table(metric, design, cell)


@dataclass(frozen=True)
class RankEstimate(Correction):
    """The metric at an unbiased estimate of the rank (eq. 20), rounded down as in the paper, or interpolated."""

    interpolate: bool = False

    def table(self, metric: Metric, design: SamplingDesign, cell: Cell) -> least_squares.Table:
        values = least_squares.rank_estimate(
            _term(metric, cell), cell.n_irrelevant, design.m, interpolate=self.interpolate
        )
        return least_squares.Table(values, values.size, 1.0)

    def __str__(self) -> str:
        return "rank(interpolate)" if self.interpolate else "rank"


@dataclass(frozen=True)
class LeastSquares(Correction):
    """The least squared bias over the prior (eq. 21 and 22); often ill-conditioned, which is noted."""

    prior: Prior | None = None

    def table(self, metric: Metric, design: SamplingDesign, cell: Cell) -> least_squares.Table:
        return least_squares.minimal_bias(_problem(metric, design, cell, self.prior))

    def __str__(self) -> str:
        return "ls" if self.prior is None else "ls(prior)"


@dataclass(frozen=True)
class ConstrainedLeastSquares(Correction):
    """The least squared bias among tables that are monotone, like the metric, and never negative."""

    prior: Prior | None = None

    def table(self, metric: Metric, design: SamplingDesign, cell: Cell) -> least_squares.Table:
        return least_squares.constrained(_problem(metric, design, cell, self.prior))

    def __str__(self) -> str:
        return "cls" if self.prior is None else "cls(prior)"


@dataclass(frozen=True)
class BiasVariance(Correction):
    """The least sum of squared bias and gamma times the variance (eq. 24 to 26)."""

    gamma: float
    prior: Prior | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.gamma <= 1.0:
            raise InputError(f"the gamma of ~bv(gamma) must lie in (0, 1], got {self.gamma:g}.")

    def table(self, metric: Metric, design: SamplingDesign, cell: Cell) -> least_squares.Table:
        return least_squares.bias_variance(_problem(metric, design, cell, self.prior), self.gamma)

    def tables(self, metric: Metric, design: SamplingDesign, cells: list[Cell]) -> list[Floats]:
        """Solve all cells at once in closed form, where the prior is uniform."""
        if self.prior is not None:
            return super().tables(metric, design, cells)
        i, n_relevant, n = (np.array(part) for part in zip(*cells, strict=True))
        cutoff = metric.cutoff(n_relevant)

        def term(g: Floats, row: Ints) -> Floats:
            return metric.term(cast("Ints", g + i[row]), i[row], n_relevant[row], n[row])

        return list(
            spectral.bias_variance_tables(
                term,
                n - n_relevant,
                design.m,
                self.gamma,
                replace=design.replace,
                last=None if cutoff is None else cutoff - i,
                smooth=metric.smooth,
            )
        )

    def __str__(self) -> str:
        return f"bv({self.gamma:g})" if self.prior is None else f"bv({self.gamma:g}, prior)"


@dataclass(frozen=True)
class Corrected(Metric):
    """A metric, estimated from sampled ranks by a correction; written ``metric~correction``.

    Its values are estimates: single ones may be negative or above 1, their mean is what counts.
    """

    metric: Metric
    correction: Correction
    design: SamplingDesign | None = field(default=None, compare=False)

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.metric}~{self.correction}"

    @property
    def lower_is_better(self) -> bool:  # type: ignore[override]
        return self.metric.lower_is_better

    @property
    def graded(self) -> bool:  # type: ignore[override]
        return self.metric.graded

    def parts(self, ranks: Ranks) -> tuple[Part, ...]:
        """Return the corrected parts of the metric: their weights don't depend on what was sampled."""
        parts = self.metric.parts(ranks)
        return tuple(Part(dataclasses.replace(self, metric=part.metric), part.weight) for part in parts)

    def on(self, ranks: Ranks) -> Corrected:
        """Return the correction for how these ranks were sampled."""
        if ranks.design is None:
            raise InputError(f"{self} corrects sampled ranks, but these ranks are exact; use {self.metric}.")
        ranks.design.check_uniform(f"{self}")
        return dataclasses.replace(self, design=ranks.design)

    def candidates(self, ranks: Ranks) -> Ints:
        assert ranks.n_catalogue is not None, "sampled ranks know their catalogue"
        return ranks.n_catalogue

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        """Look up the sampled rank; n counts the candidates before sampling."""
        cells, which = np.unique(np.stack([i, n_relevant, n]), axis=1, return_inverse=True)
        return self.tables([Cell(*map(int, cell)) for cell in cells.T])[which.ravel(), rank - i]

    def tables(self, cells: list[Cell]) -> Floats:
        """Return a row of m + 1 values for each cell."""
        if self.design is None:
            raise InputError(f"{self} depends on how candidates were sampled; give sampled ranks.")
        if not cells:
            return np.zeros((0, self.design.m + 1))
        return np.stack(self.correction.tables(self.metric, self.design, cells))

    def cutoff(self, n_relevant: Ints) -> None:
        return None

    def notes(self, ranks: Ranks) -> tuple[str, ...]:
        if not isinstance(self.correction, LeastSquares) or not np.any(ranks.n_relevant):
            return ()
        at = int(np.argmax(ranks.n_relevant > 0))
        cell = Cell(1, int(ranks.n_relevant[at]), int(self.candidates(ranks)[at]))
        assert ranks.design is not None, "only sampled ranks are corrected"
        table = _cached_table(self.correction, self.metric.parts(ranks)[0].metric, ranks.design, cell)
        if not table.ill_conditioned:
            return ()
        return (
            f"{self} is ill-conditioned: of the {table.values.size} values of its table the sample determines "
            f"{table.rank}; prefer {self.metric}~bv(0.01)",
        )

    def __str__(self) -> str:
        return self.name


def correction(text: str) -> Correction:
    """Return the correction that a text names: rank, rank(interpolate), ls, cls or bv(gamma).

    Examples
    --------
    >>> correction("bv(0.1)")
    BiasVariance(gamma=0.1, prior=None)
    """
    plain: dict[str, Correction] = {"rank": RankEstimate(), "rank(interpolate)": RankEstimate(interpolate=True)}
    plain |= {"ls": LeastSquares(), "cls": ConstrainedLeastSquares()}
    if text in plain:
        return plain[text]
    form = re.fullmatch(r"bv\((\d*\.?\d+(?:e-?\d+)?)\)", text)
    if form is None:
        known = "~rank, ~rank(interpolate), ~ls, ~cls and ~bv(gamma) with gamma in (0, 1], as in ~bv(0.1)"
        raise InputError(f"unknown correction '~{text}'; known are {known}.")
    return BiasVariance(float(form[1]))


def _term(metric: Metric, cell: Cell) -> least_squares.Term:
    i, n_relevant, n = (np.array([number]) for number in cell)

    def term(g: Floats) -> Floats:
        return metric.term(cast("Ints", np.asarray(g) + cell.i), i, n_relevant, n)

    return term


def _problem(metric: Metric, design: SamplingDesign, cell: Cell, prior: Prior | None) -> least_squares.Problem:
    cutoff = metric.cutoff(np.array([cell.n_relevant]))
    return least_squares.problem(
        _term(metric, cell),
        cell.n_irrelevant,
        design.m,
        replace=design.replace,
        prior=None if prior is None else prior_counts(prior, cell.n_irrelevant),
        breaks=() if cutoff is None else (int(cutoff[0]) - cell.i + 1,),
        smooth=metric.smooth,
    )
