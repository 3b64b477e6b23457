"""What a way to evaluate would show of two recommenders: the expected difference, and how much it varies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from truerank.analysis.risks import risks
from truerank.arrays import Floats
from truerank.corrections.recommended import recommended
from truerank.evaluation.per_instance import values
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import SamplingDesign

# samples that are drawn where moments have no closed form, and where estimators state their own error
_DRAWS = 20
_POOLED_DRAWS = 3


@dataclass(frozen=True)
class Planned:
    """The difference of two recommenders, the second less the first, on users like those of a pilot.

    Attributes
    ----------
    mean : float
        Expected difference.
    of_users : float
        Variance, over users, of the difference that is expected for a user.
    of_sampling : float
        Variance, over samples of candidates, of one user's difference.
    n : int
        Users of the pilot where the metric is defined.
    scores : float
        Irrelevant candidates that are scored for each user, on average.
    """

    mean: float
    of_users: float
    of_sampling: float
    n: int
    scores: float

    @classmethod
    def of(cls, expected: Floats, variance: Floats, scores: float) -> Planned:
        """Return it from the expected difference of each user and its variance over samples."""
        where = ~np.isnan(expected)
        own, n = expected[where], int(where.sum())
        if n < 2:
            return cls(float(own.mean()) if n else math.nan, math.nan, math.nan, n, scores)
        return cls(float(own.mean()), float(own.var(ddof=1)), float(variance[where].mean()), n, scores)

    @classmethod
    def mean_of(cls, parts: Sequence[Planned]) -> Planned:
        """Return the mean of several, as from several exact pilots that a sampled one could have come from."""
        columns = np.array([[each.mean, each.of_users, each.of_sampling, each.scores] for each in parts]).mean(axis=0)
        mean, of_users, of_sampling, scores = columns.tolist()
        return cls(mean, of_users, of_sampling, parts[0].n, scores)


def unsampled(pilot: Mapping[str, Ranks], metric: Metric) -> Planned:
    """Return the difference if all candidates are ranked."""
    first, second = (values(one, metric) for one in pilot.values())
    scores = np.mean([one.draws[one.n_relevant > 0].mean() for one in pilot.values()])
    return Planned.of(second - first, np.zeros(first.size), float(scores))


def by_law(pilot: Mapping[str, Ranks], metrics: Sequence[Metric], design: SamplingDesign) -> list[Planned]:
    """Return the differences under a uniform design, exactly; both recommenders see samples of their own."""
    first, second = (risks(one, list(metrics), design) for one in pilot.values())
    return [
        Planned.of(b.expected - a.expected, a.variance + b.variance, float(design.size))
        for a, b in zip(first, second, strict=True)
    ]


def by_draws(pilot: Mapping[str, Ranks], metric: Metric, design: SamplingDesign, rng: np.random.Generator) -> Planned:
    """Return the difference from repeated draws, for designs and estimators whose moments have no closed form."""
    first = [design.draw(one, rng=rng) for one in pilot.values()]
    pooled = any(recommended(metric, run).pools_instances for run in first)
    more = range(1, _POOLED_DRAWS if pooled else _DRAWS)
    runs = [first, *([design.draw(one, rng=rng) for one in pilot.values()] for _ in more)]
    scores = float(np.mean([(run.n_scored - run.n_relevant).mean() for pair in runs for run in pair]))
    found = _of_runs(np.array([_difference(pair, metric) for pair in runs]), scores)
    return replace(found, of_sampling=found.n * _stated_variance(first, metric)) if pooled else found


def _difference(pair: Sequence[Ranks], metric: Metric) -> Floats:
    first, second = (values(run, metric) for run in pair)
    return second - first


def _stated_variance(pair: Sequence[Ranks], metric: Metric) -> float:
    """Return the variance over samples of the mean difference, as the estimator states it."""
    return sum(recommended(metric, run).hidden_error(run) ** 2 for run in pair)


def _of_runs(differences: Floats, scores: float) -> Planned:
    """Return the moments from an array of runs by users."""
    defined = differences[:, ~np.isnan(differences).any(axis=0)]
    count, n = defined.shape
    if n < 2:
        return Planned(math.nan, math.nan, math.nan, n, scores)
    of_sampling = float(defined.var(axis=0, ddof=1).mean())
    of_users = max(float(defined.mean(axis=0).var(ddof=1)) - of_sampling / count, 0.0)
    return Planned(float(defined.mean()), of_users, of_sampling, n, scores)
