"""What a random order scores, and how far a recommender is from there to the best order."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats
from truerank.corrections.reading import AnyMetric
from truerank.corrections.reading import metric as as_metric
from truerank.errors import InputError
from truerank.evaluation.per_instance import Ties, values
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import Rng


@dataclass(frozen=True)
class ChanceLevel:
    """A metric beside its value for a random and for the best order of the same candidates.

    Attributes
    ----------
    metric : str
    mean : float
        Mean over the instances where the metric is defined.
    chance : float
        Its exact expectation if all candidates were in random order.
    best : float
        Its mean if all relevant items came first, those of the highest grade at the top.
    """

    metric: str
    mean: float
    chance: float
    best: float

    @property
    def adjusted(self) -> float:
        """How far the mean is from chance (0) to the best (1); below 0 if it is worse than chance."""
        reach = self.best - self.chance
        return (self.mean - self.chance) / reach if reach else math.nan


def chance_level(ranks: Ranks, metric: AnyMetric, *, ties: Ties = "expected", rng: Rng = None) -> ChanceLevel:
    """Return a metric beside what a random order scores for these numbers of candidates and relevant items.

    Parameters
    ----------
    ranks : Ranks
        Of whole rankings; not of lists that were cut, whose number of candidates is unknown.
    metric : str, Metric or function
    ties, rng : as for `truerank.values`

    Examples
    --------
    The reciprocal rank of one relevant item among four is 1, 1/2, 1/3 or 1/4:

    >>> import truerank as tr
    >>> level = tr.chance_level(tr.Ranks.from_ranks([2, 2], n=4), "rr")
    >>> level.mean, round(level.chance, 4), level.best, round(level.adjusted, 4)
    (0.5, 0.5208, 1.0, -0.0435)
    """
    if ranks.depth is not None:
        raise InputError("the chance level needs the number of candidates, which is unknown for lists that were cut.")
    chosen = as_metric(metric)
    first = np.zeros_like(ranks.above)
    one_block = None if ranks.grades is None else ranks.i > 1
    # a random order is one in which everything ties
    random = dataclasses.replace(
        ranks, above=first, tied=np.repeat(ranks.draws, ranks.n_relevant), same_score=one_block
    )
    best = random.break_ties("optimistic")
    found = values(ranks, chosen, ties=ties, rng=rng), values(random, chosen), values(best, chosen)
    return ChanceLevel(str(chosen), *map(_mean, found))


def _mean(per_instance: Floats) -> float:
    defined = per_instance[~np.isnan(per_instance)]
    return float(defined.mean()) if defined.size else math.nan
