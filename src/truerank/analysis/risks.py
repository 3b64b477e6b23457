"""How wrong a sampled metric is: its exact bias and variance, corrected or not."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.corrections.corrected import Cell, Corrected
from truerank.errors import InputError
from truerank.evaluation.per_instance import values
from truerank.metrics.names import metric as as_metric
from truerank.metrics.plain import Metric, Term
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import SamplingDesign
from truerank.sampling.expectations import joint_moments, table_moments


@dataclass(frozen=True, eq=False)
class Risk:
    """What sampling does to the metric of each instance, over all samples that could be drawn.

    Attributes
    ----------
    exact : array of float
        The metric over all candidates.
    expected : array of float
        Mean of the sampled (and corrected) metric (eq. 16).
    variance : array of float
        Its variance.
    """

    metric: str
    design: SamplingDesign
    exact: Floats
    expected: Floats
    variance: Floats

    @property
    def bias(self) -> Floats:
        """Expected less exact, per instance."""
        return self.expected - self.exact

    @property
    def mean_squared_error(self) -> Floats:
        """Squared bias plus variance, per instance."""
        return self.bias**2 + self.variance

    @property
    def mean(self) -> float:
        """Expected value of the mean over the instances where the metric is defined."""
        return _mean(self.expected)

    @property
    def mean_bias(self) -> float:
        """Bias of the mean over instances."""
        return _mean(self.bias)

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the mean over instances, whose samples are independent."""
        return math.sqrt(_mean(self.variance) / max(int((~np.isnan(self.variance)).sum()), 1))


def _mean(per_instance: Floats) -> float:
    """Mean over the instances where there is a value; NaN if there are none."""
    defined = per_instance[~np.isnan(per_instance)]
    return float(defined.mean()) if defined.size else math.nan


def risk(metric: str | Metric | Term, design: SamplingDesign, ranks: Ranks) -> Risk:
    """Return the exact bias and variance of a sampled metric, corrected or not.

    Parameters
    ----------
    metric : str, Metric or function
        For instance ``"ap"`` for the uncorrected sampled metric, or ``"ap~bv(0.1)"``.
    design : SamplingDesign
        How candidates are sampled.
    ranks : Ranks
        Exact ranks without ties, e.g. ``Ranks.from_ranks(range(1, n + 1), n=n)`` for all ranks.

    Examples
    --------
    Recommender C of the paper's toy example, whose exact AP is 0.101 (Tables 1 and 2):

    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000)
    >>> sampled = tr.risk("ap", tr.SamplingDesign(99), ranks)
    >>> round(sampled.mean, 3), round(sampled.standard_deviation, 3), round(sampled.mean_bias, 3)
    (0.326, 0.051, 0.225)
    >>> corrected = tr.risk("ap~bv(0.01)", tr.SamplingDesign(99), ranks)
    >>> round(corrected.mean, 3), round(corrected.standard_deviation, 3)
    (0.032, 0.026)
    """
    chosen = as_metric(metric)
    design.check_uniform("the risk")
    if ranks.design is not None or ranks.depth is not None or ranks.has_ties:
        raise InputError("`ranks` must be exact and without ties; resolve them with ranks.break_ties('random').")
    design.check((ranks.n_candidates - ranks.n_relevant)[ranks.n_relevant > 0])
    base = chosen.metric if isinstance(chosen, Corrected) else chosen
    parts = chosen.parts(ranks)
    items = [ranks.i, ranks.item_n_relevant, ranks.n_candidates[ranks.instance]]
    distinct, which = np.unique(np.stack([*items, *(part.weight for part in parts)]), axis=1, return_inverse=True)
    cells, weights = distinct[:3].astype(np.int64), distinct[3:]
    tables = np.zeros((cells.shape[1], design.m + 1))
    for part, weight in zip(parts, weights, strict=True):
        tables += weight[:, None] * sampled_tables(part.metric, design, [Cell(*map(int, cell)) for cell in cells.T])
    which = which.ravel()
    irrelevant = (cells[2] - cells[1])[which]
    means, variances = table_moments(tables, ranks.above, irrelevant, replace=design.replace, which=which)
    expected, variance = np.full((2, len(ranks)), np.nan)
    filled = ranks.n_relevant > 0
    if filled.any():
        expected[filled] = np.add.reduceat(means, ranks.indptr[:-1][filled])
    single = ranks.n_relevant == 1
    variance[single] = variances[ranks.indptr[:-1][single]]
    for place in np.flatnonzero(ranks.n_relevant > 1):
        own = slice(ranks.indptr[place], ranks.indptr[place + 1])
        n_irrelevant = int(ranks.n_candidates[place] - ranks.n_relevant[place])
        lookup = [tables[cell] for cell in which[own]]
        variance[place] = joint_moments(lookup, ranks.above[own], n_irrelevant, replace=design.replace)[1]
    return Risk(str(chosen), design, values(ranks, base), expected, variance)


def sampled_tables(metric: Metric, design: SamplingDesign, cells: list[Cell]) -> Floats:
    """Return what a sampled count adds to the metric: a row of m + 1 values per cell."""
    if isinstance(metric, Corrected):
        return Corrected(metric.metric, metric.correction, design).tables(cells)
    counts = np.arange(design.m + 1)
    rows = [metric.term(counts + cell.i, *_sampled(cell, counts)) for cell in cells]
    return np.array(rows, dtype=np.float64).reshape(len(cells), design.m + 1)


def _sampled(cell: Cell, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """What a term is given when only a sample and the relevant items are ranked."""
    numbers = (cell.i, cell.n_relevant, counts.size - 1 + cell.n_relevant)
    i, n_relevant, n = (np.full_like(counts, number) for number in numbers)
    return i, n_relevant, n
