"""What the top of a report says about a metric: who is best, or that it is open, and what a sample would have shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import truerank as tr
from truerank.core.tables import rounded, shown_name
from truerank.evaluation.differences import found_best, leading, seen_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truerank.report.report_data import ReportData

# names that a sentence lists; of more it gives the number
_LISTED = 4
# a gap that looks this many times as large, or more, is worth a sentence; so is one as small as its inverse
_NOTABLE = 1.2


@dataclass(frozen=True)
class Headline:
    """Two sentences on a metric.

    Attributes
    ----------
    claim : str
        Who is best, or that it is open, by how much and how sure.
    sampled : str
        What an evaluation with sampled candidates would have shown; empty if that adds nothing, or is unknown.
    """

    claim: str
    sampled: str = ""

    def __str__(self) -> str:
        return f"{self.claim} {self.sampled}".strip()


def headline(data: ReportData, metric: tr.Metric | None = None) -> Headline:
    """Return the sentences on a metric of the report, the first one by default.

    Examples
    --------
    >>> import truerank as tr
    >>> from truerank.report.report_data import ReportData
    >>> ranks = {"A": tr.Ranks.from_ranks([20] * 99, n=1_000), "B": tr.Ranks.from_ranks([2, 500] * 49 + [2], n=1_000)}
    >>> print(headline(ReportData.of(ranks, "ap", m=50)))
    B is better than A on AP by 0.204, 95 % interval 0.139 to 0.260. With 50 sampled candidates A would have won.
    """
    chosen = data.metrics[0] if metric is None else metric
    if data.comparison is None:
        return _alone(data, chosen)
    differences = data.comparison.of(str(chosen))
    found = foremost(differences)
    return Headline(f"{_claim(differences, found)}.", _would_have_won(data, chosen, differences, found))


def foremost(differences: Sequence[tr.Difference]) -> tr.Difference:
    """Return the difference of the leader from the best one that it does not beat, or from the best of all others."""
    own = seen_from(leading(differences), differences)
    unbeaten = [each for each in own if each.finding.winner != each.recommender]
    sign = 1 if own[0].lower_is_better else -1
    return min(unbeaten or own, key=lambda each: sign * each.baseline_mean)


def _claim(differences: Sequence[tr.Difference], found: tr.Difference) -> str:
    """Say who is best, who may be, that no difference was found, or that the order is not determined."""
    on, best = f"on {shown_name(found.metric)}", found_best(differences)
    if len(differences) == 1 and found.finding.winner is None:
        return f"It is open whether {found.recommender} or {found.baseline} is better {on}: {_nothing_found(found)}"
    if len(differences) == 1:
        own = found if found.finding.winner == found.recommender else found.reversed()
        return f"{own.recommender} is better than {own.baseline} {on} by {_gain(own)}"
    order = tr.Order.of(differences)
    if best is not None:
        return f"{best} is best of {len(order.places)} {on}, ahead of {found.baseline} by {_gain(found)}"
    return f"{_contenders(order)} {on}: {_nothing_found(found)}"


def _contenders(order: tr.Order) -> str:
    """Say who may be best."""
    if len(order.best) == 1:
        return f"Only {order.best[0]} may be best of {len(order.places)}"
    if len(order.best) > _LISTED:
        return f"It is open which of {len(order.best)} of {len(order.places)} recommenders is best"
    *others, last = order.best or [each.recommender for each in order.places]
    return f"It is open whether {', '.join(others)} or {last} is best"


def _nothing_found(found: tr.Difference) -> str:
    """Say why an order is open: no difference was found, or the sample determines none."""
    size = _size(found.difference, found.confidence_interval())
    undetermined = found.finding.kind == "not determined"
    reason = "the sample does not determine it" if undetermined else "no difference was found"
    return reason + (f" ({found.recommender} − {found.baseline}: {size})" if size else "")


def _gain(found: tr.Difference) -> str:
    remark = f"; {found.finding.remark}" if found.finding.remark else ""
    return _size(found.gain, found.gain_interval()) + remark


def _size(value: float, interval: tr.Interval) -> str:
    """Return a difference with its interval; the interval alone if the value lies outside; nothing if none is known."""
    if math.isnan(interval.low):
        return ""
    size, low, high = rounded(value, *interval)
    inside = interval.low <= value <= interval.high
    return f"{size}, 95 % interval {low} to {high}" if inside else f"{low} to {high} (95 % interval)"


def _alone(data: ReportData, metric: tr.Metric) -> Headline:
    (name,) = data.ranks
    found = data.estimates[name, str(metric)]
    mean, low, high = rounded(found.mean, *found.confidence_interval())
    claim = f"{name} has {shown_name(str(metric))} {mean} (95 % interval {low} to {high})."
    shown = _sampled(data, metric)
    (alone,) = rounded(shown.get(name, found.mean))
    if alone == mean:
        return Headline(claim)
    return Headline(claim, f"With {data.sampled_m:,} sampled candidates it would have shown {alone}.")


def _sampled(data: ReportData, metric: tr.Metric) -> dict[str, float]:
    """Return what samples would have shown; nothing if that is unknown."""
    if not data.exact:
        return {}
    try:
        return data.expected(metric)
    except tr.InputError:
        return {}


def _would_have_won(
    data: ReportData, metric: tr.Metric, differences: Sequence[tr.Difference], found: tr.Difference
) -> str:
    """Say who would have won with sampled candidates, or how large the gap would have looked; nothing if alike."""
    shown = _sampled(data, metric)
    if not shown:
        return ""
    start = f"With {data.sampled_m:,} sampled candidates"
    first = (min if metric.lower_is_better else max)(shown, key=shown.__getitem__)
    if first not in tr.Order.of(differences).best:
        return f"{start} {first} would have won."
    if found_best(differences) is None:
        return ""
    ratio = _ratio(data, metric, shown[found.recommender] - shown[found.baseline], found)
    return f"{start} the gap would look {ratio}." if ratio else ""


def _ratio(data: ReportData, metric: tr.Metric, gap: float, found: tr.Difference) -> str:
    """Say how many times as large a gap is as the exact one, on the same instances; nothing if about as large."""
    exact = {name: tr.estimate(data.sample[name], metric).mean for name in (found.recommender, found.baseline)}
    truth = exact[found.recommender] - exact[found.baseline]
    times = gap / truth if truth else math.inf
    if not 0 < times < math.inf or 1 / _NOTABLE < times < _NOTABLE:
        return ""
    if times < 0.1:
        return "less than a tenth as large"
    if 0.45 <= times < 0.55:
        return "half as large"
    return f"{times:.1f} times as large" if times < 10 else f"{times:,.0f} times as large"
