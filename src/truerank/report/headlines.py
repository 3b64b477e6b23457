"""The sentence on top of a report."""

from __future__ import annotations

from collections.abc import Mapping

from truerank.errors import InputError
from truerank.evaluation.comparisons import Comparison
from truerank.evaluation.differences import Difference
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
    exact = {name: material.estimates[name, str(metric)].mean for name in material.ranks}
    best, second, *_ = _best_first(exact, metric)
    found = _between(material.comparison, best, second, str(metric))
    return f"{_difference(found)}{_would_have_shown(material, metric, best, second)}."


def _between(result: Comparison, best: str, second: str, metric: str) -> Difference:
    """Return the best one less the second."""
    names = {best, second}
    found = next(
        each for each in result.differences if each.metric == metric and {each.recommender, each.baseline} == names
    )
    return found if found.recommender == best else found.reversed()


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
    """Say who is better, or that no difference was found."""
    metric = shown_name(found.metric)
    if found.verdict == f"{found.recommender} is better":
        size, low, high = rounded(found.gain, *found.gain_interval(found.level))
        return f"{found.recommender} is better than {found.baseline} on {metric} by {size} ({low} to {high})"
    size, low, high = rounded(found.difference, *found.confidence_interval())
    between = f"{found.recommender} and {found.baseline} on {metric}"
    return f"No difference between {between} was found: {size} ({low} to {high})"


def _would_have_shown(material: Material, metric: Metric, best: str, second: str) -> str:
    """Say whom a sample would have put first, and by how much where that is the same one."""
    shown = _sampled(material, metric)
    if not shown:
        return ""
    first, *_ = _best_first(shown, metric)
    candidates = f"; {material.sampled_m:,} sampled candidates would have "
    if first != best:
        return f"{candidates}{'shown the opposite' if len(shown) == 2 else f'put {first} first'}"
    (gain,) = rounded(abs(shown[best] - shown[second]))
    return f"{candidates}shown {gain}"
