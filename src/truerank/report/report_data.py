"""The data that the sections of a report show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, TypeVar

import numpy as np

import truerank as tr
from truerank.analysis.consistencies import expected_curve
from truerank.core.ranks import named_ranks
from truerank.core.tables import shown_name
from truerank.estimators.corrected import AnyMetric, as_metrics, recommended
from truerank.evaluation.comparisons import matched

Made = TypeVar("Made")

METRICS = ("ndcg@10", "recall@10", "ap", "auc")
MOST_RECOMMENDERS = 30
_CUTOFF = 10
# instances that represent all in the expectations over samples, which take a while
_ENOUGH = 10_000
_SEED = 0


@dataclass(frozen=True, eq=False)
class ReportData:
    """Ranks by recommender, and what the report shows of them.

    Attributes
    ----------
    ranks : dict of name to Ranks
    metrics : tuple of Metric
        The sentence at the top is about the first.
    m : int
        Number of sampled candidates; the report says what that many would have shown.
    split : Split, optional
        The interactions that the ranks are about, for groups of users and items.
    by : Groups, optional
        Groups of the reader's own.
    sampled : dict of name to Ranks
        Sampled ranks of some of the recommenders, to show beside the exact ones.
    lists : dict of name to Recommendations
        What the recommenders recommend.
    """

    ranks: Mapping[str, tr.Ranks]
    metrics: tuple[tr.Metric, ...]
    m: int = 100
    split: tr.Split | None = None
    by: tr.Groups | None = None
    notes: tuple[str, ...] = ()
    sampled: Mapping[str, tr.Ranks] = field(default_factory=dict)
    lists: Mapping[str, tr.Recommendations] = field(default_factory=dict)

    @classmethod
    def of(
        cls, ranks: tr.Ranks | Mapping[str, tr.Ranks], metrics: AnyMetric | Iterable[AnyMetric] | None, *, m: int,
        split: tr.Split | None = None, by: tr.Groups | None = None,
        sampled: Mapping[str, tr.Ranks] | None = None, lists: Mapping[str, tr.Recommendations] | None = None,
    ) -> ReportData:  # fmt: skip
        """Check what a report is about; by default the metrics are `METRICS`, corrected if the ranks are sampled."""
        named = {"recommender": ranks} if isinstance(ranks, tr.Ranks) else dict(ranks)
        if not 1 <= len(named) <= MOST_RECOMMENDERS:
            raise tr.InputError(f"a report is about 1 to {MOST_RECOMMENDERS} recommenders, got {len(named)}.")
        if not all(one.n_relevant.any() for one in named.values()):
            raise tr.InputError("every recommender must have an instance with a relevant item.")
        tr.UniformSampling(m)  # refuses what is not a number of candidates
        same, notes = matched(named, "drop")
        chosen = as_metrics(_fitting(same) if metrics is None else metrics)
        if not chosen:
            raise tr.InputError("a report needs at least one metric, got none.")
        first = next(iter(same.values()))
        taken = tuple(recommended(metric, first) for metric in chosen)
        return cls(same, taken, m, split, by, notes, _beside(same, sampled), _listed(same, lists))

    @cached_property
    def evaluation(self) -> tr.Evaluation:
        """All metrics of all recommenders."""
        return tr.evaluate(self.ranks, self.metrics)

    @cached_property
    def estimates(self) -> dict[tuple[str, str], tr.Estimate]:
        """The same by recommender and text form of the metric."""
        names = [str(metric) for metric in self.metrics]
        return dict(zip(product(self.ranks, names), self.evaluation.estimates, strict=True))

    @cached_property
    def means(self) -> dict[tuple[str, str], tuple[float, float, float]]:
        """The mean and the 95 % interval of each estimate."""
        return {key: (each.mean, *each.confidence_interval()) for key, each in self.estimates.items()}

    @cached_property
    def comparison(self) -> tr.Comparison | None:
        """All pairs of recommenders; None if there is only one."""
        return tr.compare(self.ranks, self.metrics) if len(self.ranks) > 1 else None

    @cached_property
    def orders(self) -> dict[str, tr.Order]:
        """The order of the recommenders by each metric; none if there is only one."""
        result = self.comparison
        return {} if result is None else {metric: tr.Order.of(result.of(metric)) for metric in result.metrics}

    def best_first(self, metric: str) -> list[str]:
        """Return the recommenders ordered by a metric."""
        return [each.recommender for each in self.orders[metric].places] if self.orders else list(self.ranks)

    @cached_property
    def exact(self) -> bool:
        """Whether all ranks are those of whole rankings, so that it is known what a sample would show."""
        return all(one.design is None and one.depth is None for one in self.ranks.values())

    @cached_property
    def sample(self) -> Mapping[str, tr.Ranks]:
        """The same instances of each recommender, at most some thousand, drawn at random."""
        if len(self.a_ranks) <= _ENOUGH:
            return self.ranks
        chosen = np.sort(np.random.default_rng(_SEED).choice(len(self.a_ranks), _ENOUGH, replace=False))
        return {name: one[chosen] for name, one in self.ranks.items()}

    @property
    def sample_note(self) -> tuple[str, ...]:
        """A note if expectations are computed on only some instances."""
        if self.sample is self.ranks:
            return ()
        return (f"computed on {_ENOUGH:,} of the {len(self.a_ranks):,} instances, chosen at random (seed {_SEED})",)

    @property
    def a_ranks(self) -> tr.Ranks:
        """The ranks of the first recommender."""
        return next(iter(self.ranks.values()))

    @cached_property
    def typical_n(self) -> int | None:
        """The median number of candidates, before any sampling; None if lists are cut, where it is unknown."""
        if any(one.depth is not None for one in self.ranks.values()):
            return None
        return int(np.median(self.a_ranks.n_catalogue))

    @cached_property
    def sampled_m(self) -> int:
        """`m`, or all irrelevant candidates of some instance if they are fewer."""
        least = min(int(one.draws[one.n_relevant > 0].min()) for one in self.ranks.values())
        return max(1, min(self.m, least))

    def expected(self, metric: tr.Metric) -> dict[str, float]:
        """Return what each recommender would show on average among `sampled_m` candidates."""
        design, size = tr.UniformSampling(self.sampled_m), np.array([self.sampled_m])
        return {name: expected_curve(metric, one, design, size)(size).item() for name, one in self.sample.items()}

    def per_metric(self, make: Callable[[tr.Metric], Made]) -> tuple[dict[str, Made], tuple[str, ...]]:
        """Return what `make` returns for each metric, by text form, and a note on each metric for which it can't."""
        made, notes = {}, []
        for metric in self.metrics:
            try:
                made[str(metric)] = make(metric)
            except tr.InputError as reason:
                notes.append(f"{metric} is left out: {reason}")
        return made, tuple(notes)

    @property
    def metric_names(self) -> dict[str, str]:
        """The displayed name of each metric, by its text form."""
        return {str(metric): shown_name(str(metric)) for metric in self.metrics}


def _fitting(ranks: Mapping[str, tr.Ranks]) -> list[str]:
    """Return the default metrics: corrected where the ranks are from uniform samples, cut where they are cut."""
    depth = min((one.depth for one in ranks.values() if one.depth is not None), default=None)
    if depth is not None:
        return [f"{name}@{min(depth, _CUTOFF)}" for name in ("ndcg", "recall", "ap")]
    return [str(corrected_for(each, *ranks.values())) for each in as_metrics(METRICS)]


def corrected_for(metric: tr.Metric, *ranks: tr.Ranks) -> tr.Metric:
    """Return a metric, corrected by ``~bv(0.1)`` if it is biased on ranks that are all from uniform samples."""
    uniform = all(one.design is not None and one.design.keeps_unbiased for one in ranks)
    plain = metric.unbiased_when_sampled or metric.estimated is not metric
    return metric if plain or not uniform else tr.estimators.Corrected(metric, tr.estimators.BiasVariance(0.1))


def _beside(ranks: Mapping[str, tr.Ranks], sampled: Mapping[str, tr.Ranks] | None) -> dict[str, tr.Ranks]:
    """Check sampled ranks that are shown beside exact ones."""
    given = {} if sampled is None else named_ranks(sampled)
    for name, one in given.items():
        if name not in ranks:
            raise tr.InputError(f"`sampled` names recommenders of the report, {', '.join(ranks)}, got {name!r}.")
        if one.design is None or ranks[name].design is not None:
            raise tr.InputError(f"`sampled` is shown beside exact ranks, but those of {name!r} are not one of each.")
    return given


def _listed(ranks: Mapping[str, tr.Ranks], lists: Any) -> dict[str, tr.Recommendations]:
    """Check lists of recommended items."""
    if lists is None:
        return {}
    if not isinstance(lists, Mapping) or not all(isinstance(one, tr.Recommendations) for one in lists.values()):
        raise tr.InputError("`lists` must be recommendations by name, as from `truerank.recommend`.")
    for name in lists:
        if name not in ranks:
            raise tr.InputError(f"`lists` names recommenders of the report, {', '.join(ranks)}, got {name!r}.")
    return dict(lists)
