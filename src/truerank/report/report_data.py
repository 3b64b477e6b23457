"""The data that the sections of a report show, and the headline."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TypeVar

import numpy as np

import truerank as tr
from truerank.analysis.consistencies import expected_curve
from truerank.core.tables import rounded, shown_name
from truerank.estimators.corrected import AnyMetric, as_metrics, recommended
from truerank.evaluation.comparisons import matched
from truerank.evaluation.differences import leading, seen_from


def headline(data: ReportData) -> str:
    """Return who is best by the first metric, by how much, and what a sample would have shown.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = {"A": tr.Ranks.from_ranks([20] * 99, n=1_000), "B": tr.Ranks.from_ranks([2, 500] * 49 + [2], n=1_000)}
    >>> print(headline(ReportData.of(ranks, "ap", m=50)))
    B is better than A on AP by 0.204 (0.139 to 0.260); 50 sampled candidates would have shown the opposite.
    """
    metric = data.metrics[0]
    if data.comparison is None:
        return _alone(data, metric)
    found = _foremost(data.comparison.of(str(metric)), metric)
    return f"{_difference(found)}{_would_have_shown(data, metric, found)}."


def _foremost(differences: Sequence[tr.Difference], metric: tr.Metric) -> tr.Difference:
    """Return the leading one minus the best of those that it does not beat, or of all others if it beats all."""
    own = seen_from(leading(differences), differences)
    unbeaten = [each for each in own if each.finding.winner != each.recommender]
    sign = 1 if metric.lower_is_better else -1
    return min(unbeaten or own, key=lambda each: sign * each.baseline_mean)


def _alone(data: ReportData, metric: tr.Metric) -> str:
    (name,) = data.ranks
    found = data.estimates[name, str(metric)]
    mean, low, high = rounded(found.mean, *found.confidence_interval())
    sentence = f"{name} has {shown_name(str(metric))} {mean} ({low} to {high})"
    shown = _sampled(data, metric)
    if not shown:
        return f"{sentence}."
    (alone,) = rounded(shown[name])
    return f"{sentence}; {data.sampled_m:,} sampled candidates would have shown {alone}."


def _sampled(data: ReportData, metric: tr.Metric) -> dict[str, float]:
    """Return what samples would have shown; nothing if that is unknown."""
    if not data.exact:
        return {}
    try:
        return data.expected(metric)
    except tr.InputError:
        return {}


def _difference(found: tr.Difference) -> str:
    """Say who is better, that no difference was found, or that the order is not determined."""
    on, verdict = f"on {shown_name(found.metric)}", found.finding
    if verdict.winner is not None:
        own = found if verdict.winner == found.recommender else found.reversed()
        remark = f"; {verdict.remark}" if verdict.remark else ""
        return f"{own.recommender} is better than {own.baseline} {on} by {_size(own.gain, own.gain_interval())}{remark}"
    size = _size(found.difference, found.confidence_interval())
    both = f"{found.recommender} and {found.baseline}"
    if verdict.kind == "no difference":
        return f"No difference between {both} {on} was found: {size}"
    return f"Which of {both} is better {on} is not determined by this sample" + (f": {size}" if size else "")


def _size(value: float, interval: tr.Interval) -> str:
    """Return a difference with its interval; the interval alone if the value lies outside; nothing if none is known."""
    if math.isnan(interval.low):
        return ""
    size, low, high = rounded(value, *interval)
    return f"{size} ({low} to {high})" if interval.low <= value <= interval.high else f"{low} to {high}"


def _would_have_shown(data: ReportData, metric: tr.Metric, found: tr.Difference) -> str:
    """Say whom a sample would have put first, and by how much where that is the same one."""
    shown = _sampled(data, metric)
    if not shown:
        return ""
    best, second = found.recommender, found.baseline
    first = (min if metric.lower_is_better else max)(shown, key=shown.__getitem__)
    candidates = f"; {data.sampled_m:,} sampled candidates would have "
    if first != best:
        opposite = len(shown) == 2 and found.finding.winner is not None
        return f"{candidates}{'shown the opposite' if opposite else f'put {first} first'}"
    (gain,) = rounded(abs(shown[best] - shown[second]))
    return f"{candidates}shown {gain}"


Made = TypeVar("Made")

METRICS = ("ndcg@10", "recall@10", "ap", "auc")
MOST_RECOMMENDERS = 20
_CUTOFF = 10
# instances that stand for all in the expectations over samples, which take a while
_ENOUGH = 10_000
_SEED = 0


@dataclass(frozen=True, eq=False)
class ReportData:
    """Ranks by recommender, and what is to be shown of them.

    Attributes
    ----------
    ranks : dict of name to Ranks
    metrics : tuple of Metric
        The first is the one that the sentence on top is about.
    m : int
        Number of sampled candidates; the report shows what that many would have shown.
    split : Split, optional
        The interactions that the ranks are about, for groups of users and items.
    by : Groups, optional
        Groups of the reader's own.
    """

    ranks: Mapping[str, tr.Ranks]
    metrics: tuple[tr.Metric, ...]
    m: int = 100
    split: tr.Split | None = None
    by: tr.Groups | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, ranks: tr.Ranks | Mapping[str, tr.Ranks], metrics: AnyMetric | Iterable[AnyMetric] | None, *, m: int,
        split: tr.Split | None = None, by: tr.Groups | None = None,
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
        return cls(same, tuple(recommended(metric, first) for metric in chosen), m, split, by, notes)

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
    def comparison(self) -> tr.Comparison | None:
        """All pairs of recommenders; None if there is only one."""
        return tr.compare(self.ranks, self.metrics) if len(self.ranks) > 1 else None

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
        """A note if expectations are those of some instances."""
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
        """Return what can be made of each metric, by its text form, and a note on each of which it can't."""
        made, notes = {}, []
        for metric in self.metrics:
            try:
                made[str(metric)] = make(metric)
            except tr.InputError as reason:
                notes.append(f"{metric} is left out: {reason}")
        return made, tuple(notes)

    @property
    def metric_names(self) -> dict[str, str]:
        """What to call each metric, by its text form."""
        return {str(metric): shown_name(str(metric)) for metric in self.metrics}


def _fitting(ranks: Mapping[str, tr.Ranks]) -> list[str]:
    """Return the default metrics: corrected where the ranks are from uniform samples, cut where they are cut."""
    depth = min((one.depth for one in ranks.values() if one.depth is not None), default=None)
    if depth is not None:
        return [f"{name}@{min(depth, _CUTOFF)}" for name in ("ndcg", "recall", "ap")]
    uniform = all(one.design is not None and one.design.keeps_unbiased for one in ranks.values())
    biased = {str(metric) for metric in as_metrics(METRICS) if not metric.unbiased_when_sampled}
    return [f"{name}~bv(0.1)" if uniform and name in biased else name for name in METRICS]
