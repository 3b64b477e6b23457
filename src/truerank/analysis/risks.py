"""How wrong a sampled metric is: its exact bias and variance, corrected or not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.analysis.tied_laws import TiedItemLaws, joint_tied_moments
from truerank.arrays import Floats, Ints, distinct_columns
from truerank.corrections.counts import as_sampled, counted, terms_of_counts
from truerank.corrections.reading import AnyMetric, as_metrics
from truerank.display.tables import Cell, Table, Tabular
from truerank.errors import InputError
from truerank.evaluation.per_instance import values
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks, check_ranks
from truerank.sampling.designs import SamplingDesign
from truerank.sampling.expectations import joint_moments, moments_of
from truerank.sampling.laws import Law
from truerank.sampling.registry import AnyDesign, as_design


@dataclass(frozen=True, eq=False, repr=False)
class Risk(Tabular):
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
        """Expected minus exact, per instance."""
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

    def to_table(self) -> Table:
        """Return one row on the mean over the instances: exact, expected, bias and standard deviation."""
        numbers = {
            "exact": _mean(self.exact),
            "expected": self.mean,
            "bias": self.mean_bias,
            "standard_deviation": self.standard_deviation,
        }
        record = {"metric": self.metric, "design": str(self.design), "instances": self.exact.size, **numbers}
        shown = [Cell(f"{value:.4f}" if isinstance(value, float) else str(value)) for value in record.values()]
        return Table(tuple(name.replace("_", " ") for name in record), (tuple(shown),), (record,))


def _mean(per_instance: Floats) -> float:
    """Mean over the instances where there is a value; NaN if there are none."""
    defined = per_instance[~np.isnan(per_instance)]
    return float(defined.mean()) if defined.size else math.nan


def risk(
    ranks: Ranks,
    metric: AnyMetric,
    design: AnyDesign | None = None,
    *,
    m: int | None = None,
    replace: bool = False,
    assumed: AnyDesign | None = None,
    assumed_n: int | None = None,
) -> Risk:
    """Return the exact bias and variance of a sampled metric, corrected or not.

    Parameters
    ----------
    ranks : Ranks
        Exact ranks, e.g. ``Ranks.from_ranks(range(1, n + 1), n=n)`` for all ranks. Ties are in random order.
    metric : str, Metric or function
        For instance ``"ap"`` for the uncorrected sampled metric, or ``"ap~bv(0.1)"``.
    design : SamplingDesign or str
        How candidates are sampled; ``m=100`` is short for ``UniformSampling(100)``.
    m, replace : optional
        Instead of `design`: uniform sampling of m candidates, with replacement or without.
    assumed : SamplingDesign or str, optional
        The design that a correction assumes, if it is not the one by which candidates are sampled.
    assumed_n : int, optional
        The number of candidates that a correction assumes for all instances, instead of each one's own.

    Examples
    --------
    Recommender C of the paper's toy example, whose exact AP is 0.101 (Tables 1 and 2):

    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000)
    >>> sampled = tr.risk(ranks, "ap", m=99)
    >>> round(sampled.mean, 3), round(sampled.standard_deviation, 3), round(sampled.mean_bias, 3)
    (0.326, 0.051, 0.225)
    >>> corrected = tr.risk(ranks, "ap~bv(0.01)", tr.UniformSampling(99))
    >>> round(corrected.mean, 3), round(corrected.standard_deviation, 3)
    (0.032, 0.026)
    """
    check_ranks(ranks)
    drawn = as_design(design, m=m, replace=replace)
    supposed = None if assumed is None else as_design(assumed)
    return risks(ranks, metric, drawn, assumed=supposed, assumed_n=assumed_n)[0]


def risks(
    ranks: Ranks,
    metrics: AnyMetric | Sequence[AnyMetric],
    design: SamplingDesign,
    *,
    assumed: SamplingDesign | None = None,
    assumed_n: int | None = None,
) -> list[Risk]:
    """Return the risk of each of several metrics; the laws of the sampled counts are computed once."""
    law = design.law("the risk")
    check_exact(ranks)
    design.check(ranks.draws[ranks.n_relevant > 0], design.size)
    if (assumed or design).size != design.size:
        raise InputError(f"`assumed` must sample as many candidates as `design` ({design.m}), got {assumed}.")
    shown = as_sampled(ranks, assumed or design, assumed_n)
    chosen = as_metrics(metrics)
    tables = [_Tables.of(metric, ranks, shown) for metric in chosen]
    items = TiedItemLaws(law, ranks, design.size)
    moments = np.empty((len(chosen), 2, len(items)))
    for part in items.parts():
        rows = items.rows(part)
        for each, table in zip(moments, tables, strict=True):
            each[:, part] = moments_of(rows, table.values[table.which[part]])
    return [
        Risk(str(metric), design, values(ranks, metric.estimated), *_by_instance(ranks, table, means, variances, law))
        for metric, table, (means, variances) in zip(chosen, tables, moments, strict=True)
    ]


def check_exact(ranks: Ranks) -> None:
    """Refuse ranks that are not those of whole rankings."""
    if ranks.design is not None or ranks.depth is not None:
        raise InputError("`ranks` must be exact, but these ranks are sampled or cut.")


@dataclass(frozen=True, eq=False)
class _Tables:
    """What each sampled count adds to the metric: distinct rows of m + 1 values, and which row each item reads."""

    values: Floats
    which: Ints

    @classmethod
    def of(cls, metric: Metric, ranks: Ranks, shown: Ranks) -> _Tables:
        terms = terms_of_counts(metric, shown)
        weights = [np.ones(shown.above.size) if part.weight is None else part.weight for part in terms]
        for weight in weights:
            _check_weights(weight, ranks, str(metric))
        per_item = [shown.i, shown.item_n_relevant, *(part.n for part in terms), *weights]
        first, which = distinct_columns(*per_item)
        tables = np.zeros((first.size, int(shown.draws.max(initial=0)) + 1))
        for part, weight in zip(terms, weights, strict=True):
            tables += weight[first, None] * counted(part, shown, first)
        return cls(tables, which)


def _check_weights(weight: Floats, ranks: Ranks, name: str) -> None:
    """Refuse tied relevant items of different weight, whose order then matters too."""
    place, _ = ranks.blocks()
    if np.any((place > 1) & (weight != np.roll(weight, 1))):
        raise InputError(
            f"the risk of {name} is not defined if relevant items with different grades tie; break the ties first "
            "(Ranks.break_ties)."
        )


def _by_instance(ranks: Ranks, tables: _Tables, means: Floats, variances: Floats, law: Law) -> tuple[Floats, Floats]:
    """Expectation and variance of the sum over the relevant items of each instance, which share a sample."""
    expected, variance = np.full((2, len(ranks)), np.nan)
    filled = ranks.n_relevant > 0
    if filled.any():
        expected[filled] = np.add.reduceat(means, ranks.indptr[:-1][filled])
    single = ranks.n_relevant == 1
    variance[single] = variances[ranks.indptr[:-1][single]]
    for place in np.flatnonzero(ranks.n_relevant > 1):
        own = slice(ranks.indptr[place], ranks.indptr[place + 1])
        lookup = list(tables.values[tables.which[own]])
        if ranks.tied[own].any():
            variance[place] = joint_tied_moments(lookup, ranks[place], len(lookup[0]) - 1, law)[1]
        else:
            variance[place] = joint_moments(lookup, ranks.above[own], int(ranks.draws[place]), law)[1]
    return expected, variance
