"""What a random order scores, and how far a recommender is from there to the best order."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats
from truerank.corrections.reading import AnyMetric
from truerank.corrections.reading import metric as as_metric
from truerank.errors import InputError
from truerank.evaluation.estimates import Estimate
from truerank.evaluation.per_instance import Ties, values
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import Rng

# fewer instances rarely tell a weak recommender from chance
_ENOUGH = 30
# in the mean, relevant items of a recommender that works are above this share of the candidates
_SUSPICIOUS = 0.2
# instances from which the chance level is computed, which is enough to compare it with
_SOME = 500


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


def chance_notes(ranks: Ranks, metrics: Sequence[Metric], estimates: Sequence[Estimate]) -> tuple[str, ...]:
    """Return a note on metrics that are no better than those of a random order, with the usual cause.

    The interval of such a metric begins at its chance level or below, and ends before twice this level and a
    tenth of the way from it to the best. There is no note if another metric is clearly better than chance, if there are
    fewer than 30 instances, or where the number of candidates is unknown.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks(range(1, 1001), n=1000)
    >>> chance_notes(ranks, [tr.metric("auc")], [tr.estimate(ranks, "auc")])[0]
    'auc is no better than chance (0.5): if it should be, check that the scores number users and items as the data do'
    """
    if ranks.depth is not None or ranks.drawn is not None or len(ranks) < _ENOUGH or _mean_place(ranks) < _SUSPICIOUS:
        return ()
    some = ranks[np.unique(np.linspace(0, len(ranks) - 1, _SOME).astype(np.int64))]
    known = [pair for pair in zip(metrics, estimates, strict=True) if _has_chance(*pair)]
    levels = {str(metric): (chance_level(some, metric), cell.confidence_interval()) for metric, cell in known}
    if any(low > 2 * level.chance for level, (low, _) in levels.values()):
        return ()
    poor = {name: level.chance for name, (level, ends) in levels.items() if _is_at_chance(level, *ends)}
    if not poor:
        return ()
    names, numbers = ", ".join(poor), ", ".join(f"{chance:.3g}" for chance in poor.values())
    are, they = ("is", "it") if len(poor) == 1 else ("are", "they")
    cause = f"if {they} should be, check that the scores number users and items as the data do"
    return (f"{names} {are} no better than chance ({numbers}): {cause}",)


def _mean_place(ranks: Ranks) -> float:
    """Return the mean share of irrelevant candidates above a relevant item: 0 at best, 1/2 by chance."""
    irrelevant = np.repeat(ranks.draws, ranks.n_relevant)
    counted = irrelevant > 0
    places = (ranks.above[counted] + ranks.tied[counted] / 2) / irrelevant[counted]
    return float(places.mean()) if places.size else 0.0


def _has_chance(metric: Metric, cell: Estimate) -> bool:
    return metric.estimated is metric and not metric.lower_is_better and cell.n >= _ENOUGH


def _is_at_chance(level: ChanceLevel, low: float, high: float) -> bool:
    reach = min(level.chance, (level.best - level.chance) / 10)
    return low <= level.chance and high <= level.chance + reach


def _mean(per_instance: Floats) -> float:
    defined = per_instance[~np.isnan(per_instance)]
    return float(defined.mean()) if defined.size else math.nan
