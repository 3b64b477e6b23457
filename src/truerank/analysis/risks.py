"""`risk`: bias, variance and error of sampled and corrected metrics, exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.core.caching import cached
from truerank.core.checks import Floats, InputError, Ints, distinct_columns
from truerank.core.ranks import Ranks, check_ranks
from truerank.core.tables import Cell, Record, Table, Tabular
from truerank.estimators.corrected import AnyMetric, as_metrics, as_sampled, counted, terms_of_counts
from truerank.evaluation.intervals import mean_of
from truerank.evaluation.per_instance import chance, values
from truerank.metrics.definitions import Metric
from truerank.sampling.designs import AnyDesign, SamplingDesign, as_design
from truerank.sampling.expectations import ItemLaws, joint_moments, moments_of
from truerank.sampling.laws import HYPERGEOMETRIC, Law
from truerank.sampling.sums import counts_between


class TiedItemLaws(ItemLaws):
    """The laws of all relevant items of exact ranks, each averaged over the orders of its ties."""

    def __init__(self, law: Law, ranks: Ranks, m: int, last: int) -> None:
        super().__init__(law, ranks.above, m, ranks.item_n - ranks.item_n_relevant, last)
        self.tied, (self.place, self.block) = ranks.tied, ranks.blocks()

    def rows(self, part: slice) -> Floats:
        """Return the probabilities of h = 0..last, the last of which is of all larger h too, a row for each item."""
        rows = super().rows(part)
        tied = np.arange(*part.indices(len(self)))[self.tied[part] > 0]
        alone = (self.block[tied] == 1) & (self.law is HYPERGEOMETRIC)
        single = tied[alone]
        if single.size:
            own = self.g[single], self.tied[single], self.m, self.N[single], self.last
            rows[single - part.start] = HYPERGEOMETRIC.tied_rows(*own)
        for item in tied[~alone]:
            rows[item - part.start] = self._mixed(item)
        return rows

    def _mixed(self, item: int) -> Floats:
        """Average over the number of lost ties, by a few weighted counts that represent all."""
        own = [numbers[item : item + 1] for numbers in (self.g, self.tied, self.place, self.block)]
        counts, share = tied_counts(own, self.m, int(self.N[item]), self.law)
        return share @ self.law.rows_to(self.last, counts, self.m, self.N[item])


def tied_counts(item: Sequence[Any], m: int, N: int, law: Law) -> tuple[Floats, Floats]:
    """Return a few counts of candidates above a tied item that represent all possible ones, and their shares.

    `item` holds four numbers: above, tied, its place in its block, and the number of relevant items in the block.
    """
    above, tied, place, block = item
    last, longest = int(above[0] + tied[0]), 8 * int(tied[0]) / int(block[0])
    counts = counts_between(int(above[0]), last, N, m, law, longest=longest)
    return counts.g, np.asarray(counts.weight * chance(counts.g - above, tied, place, block))


def joint_tied_moments(tables: Sequence[Floats], instance: Ranks, m: int, law: Law) -> tuple[float, float]:
    """Mean and variance of the metric of an instance whose relevant items share a sample and tie with others.

    Where no candidate is drawn twice, ties may be broken after sampling instead of before: first the sampled candidates
    above a block of ties and in it are drawn, then those in it are put in order with the block's relevant items.
    Both are Markov chains, so one backward pass gives both moments exactly.

    Parameters
    ----------
    tables : sequence of arrays of shape (m + 1,)
        What each relevant item adds when h of the sample stand above it.
    instance : Ranks
        One instance.
    m : int
    law : Law
    """
    if not law.distinct:
        known = "only for sampling without replacement; break the ties first"
        raise InputError(f"the variance of several relevant items with ties is known {known}.")
    n_irrelevant = int(instance.draws[0])
    place, size = instance.blocks()
    mean, variance = np.zeros((2, m + 1))
    starts = np.flatnonzero(place == 1)
    passed = [0, *(int(instance.above[at] + instance.tied[at]) for at in starts[:-1])]
    for at, before in zip(starts[::-1], passed[::-1], strict=True):
        block = tables[at : at + size[at]]
        above, tied = int(instance.above[at]), int(instance.tied[at])
        mean, variance = _through_block(block, mean, variance, above, tied, m, n_irrelevant, law)
        mean, variance = _down_to(before, above, mean, variance, m, n_irrelevant, law)
    return float(mean[0]), float(variance[0])


def _down_to(start: int, stop: int, mean: Floats, variance: Floats, m: int, N: int, law: Law) -> tuple[Floats, Floats]:
    """From h sampled among the first `stop` candidates, back to h sampled among the first `start`."""
    if start == stop:
        return mean, variance
    step = _steps(stop - start, N - start, m, law)
    further = np.minimum(np.arange(m + 1)[:, None] + np.arange(m + 1), m)
    return _average(step, mean[further], variance[further])


def _through_block(
    tables: Sequence[Floats], mean: Floats, variance: Floats, above: int, tied: int, m: int, N: int, law: Law
) -> tuple[Floats, Floats]:
    """From h sampled before the end of a block, back to h sampled above it.

    Within the block the state is how many are sampled before its end (rows) and how many of these are still to come
    (columns).
    """
    before_end, to_come = np.arange(m + 1)[:, None], np.arange(m + 1)
    sampled_above = np.maximum(before_end - to_come, 0)
    means, variances = np.repeat(mean[:, None], m + 1, axis=1), np.repeat(variance[:, None], m + 1, axis=1)
    for left, table in enumerate(reversed(tables), start=1):
        order = _next_relevant(m, left)
        landed = table[sampled_above] + means
        means = landed @ order.T
        variances = np.maximum((variances + landed**2) @ order.T - means**2, 0.0)
    if tied == 0:
        return means[:, 0], variances[:, 0]
    end = np.minimum(before_end + to_come, m)
    return _average(_steps(tied, N - above, m, law), means[end, to_come], variances[end, to_come])


def _steps(inside: int, left: int, m: int, law: Law) -> Floats:
    """Probability that h' of the m - h draws that are left fall on the next `inside` of `left` candidates: (h, h')."""
    draws = np.minimum(m - np.arange(m + 1), left)
    rows = law.rows(np.full(m + 1, inside), draws, left)
    return np.pad(rows, ((0, 0), (0, m + 1 - rows.shape[1])))


def _average(step: Floats, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Mean and variance after a step, by the law of total variance; row h holds what follows each h'."""
    average = np.einsum("ij,ij->i", step, mean)
    spread = np.einsum("ij,ij->i", step, variance + (mean - average[:, None]) ** 2)
    return average, spread


@cached
def _next_relevant(m: int, left: int) -> Floats:
    """Probability that s of r tied candidates come after the next of `left` tied relevant items: (r, s)."""
    from scipy import special

    rest: Ints = np.arange(m + 1)
    ways = special.binom(rest + left - 1.0, left - 1.0) / special.binom(rest + float(left), left)[:, None]
    return np.tril(ways)


@dataclass(frozen=True, eq=False, repr=False)
class Risk(Tabular[Record]):
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
        return mean_of(self.expected)

    @property
    def mean_bias(self) -> float:
        """Bias of the mean over instances."""
        return mean_of(self.bias)

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the mean over instances, whose samples are independent."""
        return math.sqrt(mean_of(self.variance) / max(int((~np.isnan(self.variance)).sum()), 1))

    def _names(self) -> list[tuple[str, ...]]:
        return [(self.metric, str(self.design))]

    def to_table(self) -> Table:
        """Return one row on the mean over the instances: exact, expected, bias and standard deviation."""
        record = {"metric": self.metric, "design": str(self.design), "instances": self.exact.size}
        record |= {"exact": mean_of(self.exact), "expected": self.mean, "bias": self.mean_bias}
        record |= {"standard_deviation": self.standard_deviation}
        shown = [Cell(f"{value:.4f}" if isinstance(value, float) else str(value)) for value in record.values()]
        return Table(tuple(name.replace("_", " ") for name in record), (tuple(shown),), (record,))


def risk(
    ranks: Ranks,
    metric: AnyMetric,
    design: AnyDesign,
    *,
    assumed: AnyDesign | None = None,
    assumed_n: int | None = None,
) -> Risk:
    """Return the exact bias and variance of a sampled metric, corrected or not.

    Ties are broken at random, as an evaluation does that sorts scores, so the variance includes that of their order. Of
    sampled ranks with ties, `values` is the mean over the orders: its expectation is the same, its variance smaller.
    With ``Ranks.break_ties("random")`` both have the variance that is returned here.

    Parameters
    ----------
    ranks : Ranks
        Exact ranks, e.g. ``Ranks.from_ranks(range(1, n + 1), n=n)`` for all ranks.
    metric : str, Metric or function
        For instance ``"ap"`` for the uncorrected sampled metric, or ``"ap~bv(0.1)"``.
    design : SamplingDesign, str or int
        How candidates are sampled: ``100`` is short for ``UniformSampling(100)``, and a text form is accepted.
    assumed : SamplingDesign, str or int, optional
        The design that a correction assumes, if it is not the one by which candidates are sampled.
    assumed_n : int, optional
        The number of candidates that a correction assumes for all instances, instead of each one's own.

    Examples
    --------
    Recommender C of the paper's toy example, whose exact AP is 0.101 (Tables 1 and 2):

    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000)
    >>> sampled = tr.risk(ranks, "ap", 99)
    >>> round(sampled.mean, 3), round(sampled.standard_deviation, 3), round(sampled.mean_bias, 3)
    (0.326, 0.051, 0.225)
    >>> corrected = tr.risk(ranks, "ap~bv(0.01)", tr.UniformSampling(99))
    >>> round(corrected.mean, 3), round(corrected.standard_deviation, 3)
    (0.032, 0.026)

    If all scores are equal, only the order of the ties varies, and its mean is the same for all samples:

    >>> constant = tr.Ranks(above=[0], tied=[8], n_candidates=9)
    >>> result = tr.risk(constant, "rr", 3)
    >>> round(result.mean, 3), round(result.standard_deviation, 3)
    (0.521, 0.291)
    >>> tr.values(tr.UniformSampling(3).draw(constant, rng=1), "rr").round(3).tolist()
    [0.521]
    """
    check_ranks(ranks)
    other = None if assumed is None else as_design(assumed)
    return risks(ranks, metric, as_design(design), assumed=other, assumed_n=assumed_n)[0]


def risks(
    ranks: Ranks,
    metrics: AnyMetric | Sequence[AnyMetric],
    design: SamplingDesign,
    *,
    assumed: SamplingDesign | None = None,
    assumed_n: int | None = None,
    variances: bool = True,
) -> list[Risk]:
    """Return the risk of each of several metrics; the laws of the sampled counts are computed once, as far as needed.

    Variances of instances with several relevant items, which share a sample, take by far the longest; without
    `variances` they are NaN.
    """
    law = design.law("the risk")
    check_exact(ranks)
    design.check(ranks.draws[ranks.n_relevant > 0], design.size)
    if (assumed or design).size != design.size:
        raise InputError(f"`assumed` must sample as many candidates as `design` ({design.m}), got {assumed}.")
    shown = as_sampled(ranks, assumed or design, assumed_n)
    chosen = as_metrics(metrics)
    tables = [_Tables.of(metric, ranks, shown) for metric in chosen]
    last = max(table.last for table in tables)
    items = TiedItemLaws(law, ranks, design.size, last)
    moments = np.empty((len(chosen), 2, len(items)))
    for part in items.parts():
        rows = items.rows(part)
        for each, table in zip(moments, tables, strict=True):
            each[:, part] = moments_of(rows, table.values[table.which[part], : last + 1])
    exact = {metric: values(ranks, metric) for metric in dict.fromkeys(each.estimated for each in chosen)}
    return [
        Risk(
            str(metric),
            design,
            exact[metric.estimated],
            *_by_instance(ranks, table, means, alone, law if variances else None),
        )
        for metric, table, (means, alone) in zip(chosen, tables, moments, strict=True)
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
        weights = [item_weights(part.weight, shown) for part in terms]
        for weight in weights:
            _check_weights(weight, ranks, str(metric))
        per_item = [shown.i, shown.item_n_relevant, *(part.n for part in terms), *weights]
        first, which = distinct_columns(*per_item)
        tables = np.zeros((first.size, int(shown.draws.max(initial=0)) + 1))
        for part, weight in zip(terms, weights, strict=True):
            tables += weight[first, None] * counted(part, shown, first)
        return cls(tables, which)

    @property
    def last(self) -> int:
        """The count from which all add the same."""
        differs = (self.values != self.values[:, -1:]).any(axis=0)
        return int(np.flatnonzero(differs).max(initial=-1)) + 1


def item_weights(weight: Floats | None, ranks: Ranks) -> Floats:
    """Return the weights of the relevant items in a part of a metric: 1 if it has none."""
    return np.ones(ranks.above.size) if weight is None else weight


def _check_weights(weight: Floats, ranks: Ranks, name: str) -> None:
    """Refuse tied relevant items of different weight, whose order then matters too."""
    place, _ = ranks.blocks()
    if np.any((place > 1) & (weight != np.roll(weight, 1))):
        different = "if relevant items with different grades tie; break the ties first (Ranks.break_ties)"
        raise InputError(f"the risk of {name} is not defined {different}.")


def _by_instance(
    ranks: Ranks, tables: _Tables, means: Floats, variances: Floats, law: Law | None
) -> tuple[Floats, Floats]:
    """Expectation and variance of the sum over the relevant items of each instance, which share a sample.

    Without a law the variance of instances with several relevant items is left out.
    """
    expected, variance = np.full((2, len(ranks)), np.nan)
    filled = ranks.n_relevant > 0
    if filled.any():
        expected[filled] = np.add.reduceat(means, ranks.indptr[:-1][filled])
    single = ranks.n_relevant == 1
    variance[single] = variances[ranks.indptr[:-1][single]]
    if law is None:
        return expected, variance
    for place in np.flatnonzero(ranks.n_relevant > 1):
        own = slice(ranks.indptr[place], ranks.indptr[place + 1])
        lookup = list(tables.values[tables.which[own]])
        if ranks.tied[own].any():
            variance[place] = joint_tied_moments(lookup, ranks[place], len(lookup[0]) - 1, law)[1]
        else:
            variance[place] = joint_moments(lookup, ranks.above[own], int(ranks.draws[place]), law)[1]
    return expected, variance
