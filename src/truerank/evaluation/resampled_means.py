"""Bootstrap intervals for the mean of a metric."""

from __future__ import annotations

import math

import numpy as np

from truerank.corrections.reading import AnyMetric
from truerank.evaluation.intervals import Interval, check_level
from truerank.evaluation.paired_tests import Sample
from truerank.evaluation.per_instance import Ties, values
from truerank.evaluation.resampling import Bootstrap
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import Rng


def bootstrap_interval(
    ranks: Ranks,
    metric: AnyMetric,
    level: float = 0.95,
    *,
    replicates: int = 10_000,
    ties: Ties = "expected",
    rng: Rng = None,
) -> Interval:
    """Return the BCa bootstrap interval for the mean of a metric, for few instances or skewed values.

    Users are resampled, with all their instances if they have several. Instances where the metric is undefined are left
    out.

    Parameters
    ----------
    ranks : Ranks
    metric : str, Metric or function
    level : float
        Confidence level.
    replicates : int
        Number of resamples.
    ties : {"expected", "optimistic", "pessimistic", "random"}
        See `truerank.values`.
    rng : int or numpy.random.Generator, optional
        Seed of the resamples, and for ``ties="random"``.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([1] * 3 + [50] * 57, n=100)
    >>> low, high = tr.bootstrap_interval(ranks, "rr", rng=0)
    >>> round(low, 2), round(high, 2)
    (0.04, 0.15)
    """
    check_level(level)
    found = values(ranks, metric, ties=ties, rng=rng)
    defined = ~np.isnan(found)
    if not defined.any():
        return Interval(math.nan, math.nan)
    columns = np.column_stack([found, np.zeros_like(found)])[defined]
    sample = Sample.of(columns, clusters=None if ranks.clusters is None else ranks.clusters[defined])
    return Bootstrap(replicates, rng).outcomes(sample, [(0, 1)])[0].confidence_interval(level)
