"""The values that a correction assigns to sampled ranks, for looking at."""

from __future__ import annotations

import dataclasses

import numpy as np

from truerank.arrays import Floats
from truerank.corrections.corrected import Cell, Corrected
from truerank.errors import InputError
from truerank.names import metric as as_metric
from truerank.sampling.designs import SamplingDesign


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
        table = _cached_table(self.correction, self.metric, ranks.design, cell)
        if not table.ill_conditioned:
            return ()
        return (
            f"{self} is ill-conditioned: of the {table.values.size} values of its table the sample determines "
            f"{table.rank}; prefer {self.metric}~bv(0.01)",
        )

    def __str__(self) -> str:
        return self.name


def table(text: str | Corrected, *, m: int, n: int, replace: bool = False, i: int = 1, n_relevant: int = 1) -> Floats:
    """Return the m + 1 values of a corrected metric, for sampled ranks i, i + 1, ..., i + m.

    Parameters
    ----------
    text : str or Corrected
        For instance ``"recall@10~bv(0.1)"``.
    m, n : int
        Sampled candidates, and candidates before sampling.
    replace : bool
        Whether candidates are sampled with replacement.
    i, n_relevant : int
        Which relevant item from the top the table is for, of how many.

    Examples
    --------
    >>> import truerank as tr
    >>> tr.table("recall@10~rank", m=4, n=21).tolist()
    [1.0, 1.0, 0.0, 0.0, 0.0]
    >>> tr.table("ap~cls", m=4, n=21).round(3).tolist()
    [0.725, 0.036, 0.036, 0.036, 0.036]
    """
    chosen = as_metric(text)
    if not isinstance(chosen, Corrected):
        raise InputError(f"only corrected metrics have a table, got {chosen}; write {chosen}~bv(0.1).")
    if not 1 <= i <= n_relevant <= n:
        raise InputError(f"`i` must lie in 1..n_relevant and `n_relevant` in 1..n, got {i}, {n_relevant} and {n}.")
    design = SamplingDesign(m, replace)
    design.check(np.array([n - n_relevant]))
    return dataclasses.replace(chosen, design=design).tables([Cell(i, n_relevant, n)])[0]
