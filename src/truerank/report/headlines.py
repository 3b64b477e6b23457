"""The sentence on top of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from truerank.errors import InputError
from truerank.evaluation.differences import Difference
from truerank.evaluation.intervals import Interval
from truerank.evaluation.verdicts import leading, seen_from
from truerank.metrics.base import Metric
from truerank.report.material import Material
from truerank.report.wording import rounded, shown_name


def headline(material: Material) -> str:
    """Return who is best by the first metric, by how much, and what a sample would have shown.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = {"A": tr.Ranks.from_ranks([20] * 99, n=1_000), "B": tr.Ranks.from_ranks([2, 500] * 49 + [2], n=1_000)}
    >>> print(headline(Material.of(ranks, "ap", m=50, split=None, by=None)))
    B is better than A on AP by 0.204 (0.139 to 0.260); 50 sampled candidates would have shown the opposite.
    """
    metric = material.metrics[0]
    if material.comparison is None:
        return _alone(material, metric)
    found = _foremost(material.comparison.of(str(metric)), metric)
    return f"{_difference(found)}{_would_have_shown(material, metric, found)}."


def _foremost(differences: Sequence[Difference], metric: Metric) -> Difference:
    """Return the leading one less the best of those that it does not beat, or of all others if it beats all."""
    own = seen_from(leading(differences), differences)
    unbeaten = [each for each in own if each.finding.winner != each.recommender]
    sign = 1 if metric.lower_is_better else -1
    return min(unbeaten or own, key=lambda each: sign * each.baseline_mean)


def _alone(material: Material, metric: Metric) -> str:
    (name,) = material.ranks
    found = material.estimates[name, str(metric)]
    mean, low, high = rounded(found.mean, *found.confidence_interval())
    sentence = f"{name} has {shown_name(str(metric))} {mean} ({low} to {high})"
    shown = _sampled(material, metric)
    if not shown:
        return f"{sentence}."
    (alone,) = rounded(shown[name])
    return f"{sentence}; {material.sampled_m:,} sampled candidates would have shown {alone}."


def _sampled(material: Material, metric: Metric) -> dict[str, float]:
    """Return what samples would have shown; nothing if that can't be told."""
    if not material.exact:
        return {}
    try:
        return material.expected(metric)
    except InputError:
        return {}


def _best_first(means: Mapping[str, float], metric: Metric) -> list[str]:
    return sorted(means, key=means.__getitem__, reverse=not metric.lower_is_better)


def _difference(found: Difference) -> str:
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


def _size(value: float, interval: Interval) -> str:
    """Return a difference with its interval; the interval alone if the value lies outside; nothing if none is known."""
    if math.isnan(interval.low):
        return ""
    size, low, high = rounded(value, *interval)
    return f"{size} ({low} to {high})" if interval.low <= value <= interval.high else f"{low} to {high}"


def _would_have_shown(material: Material, metric: Metric, found: Difference) -> str:
    """Say whom a sample would have put first, and by how much where that is the same one."""
    shown = _sampled(material, metric)
    if not shown:
        return ""
    best, second, first = found.recommender, found.baseline, _best_first(shown, metric)[0]
    candidates = f"; {material.sampled_m:,} sampled candidates would have "
    if first != best:
        opposite = len(shown) == 2 and found.finding.winner is not None
        return f"{candidates}{'shown the opposite' if opposite else f'put {first} first'}"
    (gain,) = rounded(abs(shown[best] - shown[second]))
    return f"{candidates}shown {gain}"
