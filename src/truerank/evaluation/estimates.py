"""From values to an estimate: a mean, its error, and what to know before trusting it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from truerank.arrays import Floats
from truerank.corrections.reading import AnyMetric
from truerank.corrections.reading import metric as as_metric
from truerank.errors import InputError
from truerank.evaluation.per_instance import Ties, values
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import Rng

_FEW = 30
_MANY_TIES = 0.1


class Interval(NamedTuple):
    """Lower and upper end of a confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """Mean of a metric over instances, with its standard error.

    Estimates of the same metric over different instances merge with ``+`` into the estimate over
    all of them.

    Attributes
    ----------
    metric : str
        Text form of the metric.
    mean : float
        Mean over the instances where the metric is defined (eq. 1); NaN if there are none.
    standard_error : float
        Standard deviation of the values over the square root of their number; NaN below two.
    n : int
        Instances where the metric is defined.
    n_undefined : int
        Instances where it is not (NaN), which are left out of the mean.
    n_tied : int
        Instances, of all, whose relevant items tie with irrelevant ones.
    ties : str
        How ties were resolved.

    Examples
    --------
    >>> import truerank as tr
    >>> half = tr.estimate(tr.Ranks.from_ranks([1, 2, 4], n=10), "ap")
    >>> print(half)
    ap = 0.5833 ± 0.2205 (3 instances)
    >>> print(half + tr.estimate(tr.Ranks.from_ranks([5], n=10), "ap"))
    ap = 0.4875 ± 0.1830 (4 instances)
    >>> half.notes
    ('only 3 instances: the interval rests on the t distribution and is rough',)
    """

    metric: str
    mean: float
    standard_error: float
    n: int
    n_undefined: int = 0
    n_tied: int = 0
    ties: str = "expected"
    caveats: tuple[str, ...] = ()
    """What to know about the metric itself, on ranks like these."""
    weight: float | None = None
    """For groups of items: the sum of the instances' weights, whose weighted mean this is. None: all weigh 1."""

    @property
    def n_instances(self) -> int:
        """All instances, also those where the metric is undefined."""
        return self.n + self.n_undefined

    @property
    def tied_share(self) -> float:
        """Share of all instances in which ties matter."""
        return self.n_tied / self.n_instances if self.n_instances else 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """Reasons to distrust the numbers."""
        notes = list(self.caveats)
        if self.n_undefined:
            notes.append(f"{self.metric} is undefined for {self.n_undefined} of {self.n_instances} instances")
        if 0 < self.n < _FEW:
            notes.append(f"only {self.n} instances: the interval rests on the t distribution and is rough")
        if self.tied_share > _MANY_TIES:
            notes.append(f"{self.tied_share:.1%} of the instances have ties, resolved as {self.ties!r}")
        return tuple(notes)

    def confidence_interval(self, level: float = 0.95) -> Interval:
        """Return Student's t interval for the mean over instances like these.

        Examples
        --------
        >>> import truerank as tr
        >>> low, high = tr.estimate(tr.Ranks.from_ranks([1, 2, 4], n=10), "ap").confidence_interval(0.9)
        >>> round(low, 3), round(high, 3)
        (-0.06, 1.227)
        """
        if not 0.0 < level < 1.0:
            raise InputError(f"`level` must lie between 0 and 1, got {level}.")
        if self.n < 2:
            return Interval(math.nan, math.nan)
        from scipy.special import stdtrit

        reach = float(stdtrit(self.n - 1, 0.5 + level / 2)) * self.standard_error
        return Interval(self.mean - reach, self.mean + reach)

    def __add__(self, other: Estimate) -> Estimate:
        if self.weight is not None or other.weight is not None:
            raise InputError("estimates for groups of items do not add up, since their instances have weights.")
        if (self.metric, self.ties) != (other.metric, other.ties):
            raise InputError(
                f"only estimates of one metric and tie policy add up, got {self.metric!r} ({self.ties}) "
                f"and {other.metric!r} ({other.ties})."
            )
        mean, squares, n = _merge(self._moments(), other._moments())
        return Estimate(
            self.metric,
            mean,
            _standard_error(squares, n),
            n,
            self.n_undefined + other.n_undefined,
            self.n_tied + other.n_tied,
            self.ties,
            tuple(dict.fromkeys(self.caveats + other.caveats)),
        )

    def _moments(self) -> tuple[float, float, int]:
        """Mean, sum of squared deviations, number of values."""
        squares = self.standard_error**2 * self.n * (self.n - 1) if self.n > 1 else 0.0
        return (self.mean if self.n else 0.0), squares, self.n

    def __str__(self) -> str:
        return f"{self.metric} = {self.mean:.4f} ± {self.standard_error:.4f} ({self.n} instances)"


def estimate(ranks: Ranks, metric: AnyMetric, *, ties: Ties = "expected", rng: Rng = None) -> Estimate:
    """Return the mean of a metric over the instances, with its standard error.

    Parameters are those of `truerank.evaluation.per_instance`.

    Examples
    --------
    >>> import truerank as tr
    >>> result = tr.estimate(tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000), "auc")
    >>> round(result.mean, 3), round(result.standard_error, 3), result.n
    (0.843, 0.098, 5)
    """
    chosen = as_metric(metric)
    return summary(values(ranks, chosen, ties=ties, rng=rng), ranks, chosen, ties)


def weighted_summary(values: Floats, weights: Floats, ranks: Ranks, metric: Metric, ties: Ties) -> Estimate:
    """Return the estimate of a group of items: the sum of what they add over the sum of their weights."""
    plain = summary(values, ranks, metric, ties)
    defined = ~np.isnan(values)
    own, n, weight = weights[defined], plain.n, float(weights[defined].sum())
    mean = float(values[defined].sum() / weight) if n else math.nan
    squares = float(np.square(values[defined] - mean * own).sum())
    error = math.sqrt(n / (n - 1) * squares) / weight if n > 1 else math.nan
    return replace(plain, mean=mean, standard_error=error, weight=weight)


def summary(per_instance: Floats, ranks: Ranks, metric: Metric, ties: Ties) -> Estimate:
    """Return the estimate from the values of the instances."""
    defined = per_instance[~np.isnan(per_instance)]
    n = defined.size
    mean = float(defined.mean()) if n else math.nan
    return Estimate(
        metric=str(metric),
        mean=mean,
        standard_error=_standard_error(float(np.square(defined - mean).sum()), n),
        n=n,
        n_undefined=per_instance.size - n,
        n_tied=int(ranks.tied_instances.sum()),
        ties=ties,
        caveats=metric.notes(ranks),
    )


def _standard_error(squares: float, n: int) -> float:
    return math.sqrt(squares / (n - 1) / n) if n > 1 else math.nan


def _merge(a: tuple[float, float, int], b: tuple[float, float, int]) -> tuple[float, float, int]:
    (mean_a, squares_a, n_a), (mean_b, squares_b, n_b) = a, b
    n = n_a + n_b
    if n == 0:
        return math.nan, 0.0, 0
    gap = mean_b - mean_a
    return mean_a + gap * n_b / n, squares_a + squares_b + gap**2 * n_a * n_b / n, n
