"""Which recommender is better than which, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

from truerank.evaluation.conclusions import conclusions
from truerank.evaluation.differences import Difference
from truerank.report.blocks import Axis, ByMetric, Column, Dot, Dots, Section, TableBlock
from truerank.report.material import Material
from truerank.report.wording import shown_name

_TEXT = (
    "Paired differences on the same instances, with 95 % intervals. A difference was found where the p-value, adjusted "
    "for the number of tests (Holm), is at most 0.05."
)
_COLUMNS = [
    Column("pair", "text"),
    Column("difference", "signed"),
    Column("95 % interval", "interval"),
    Column("relative", "signed-share"),
    Column("adjusted p", "p-value"),
    Column("finding", "text"),
]


def section(material: Material) -> Section | None:
    """Return a chart and a table of the differences in the chosen metric."""
    result = material.comparison
    if result is None:
        return None
    by_metric = {metric: [each for each in result.differences if each.metric == metric] for metric in result.metrics}
    charts = {metric: _chart(metric, own) for metric, own in by_metric.items()}
    tables = {metric: _table(own) for metric, own in by_metric.items()}
    text = " ".join([*(_capital(sentence) for sentence in conclusions(result)[:1]), _TEXT])
    return Section("Comparison", text, [ByMetric(charts), ByMetric(tables)], result.notes)


def _chart(metric: str, differences: Sequence[Difference]) -> Dots:
    dots = [Dot(_pair(each), each.difference, *each.confidence_interval(), _about(each)) for each in differences]
    return Dots(Axis(f"difference in {shown_name(metric)}"), dots, zero=True)


def _table(differences: Sequence[Difference]) -> TableBlock:
    rows = [
        [_pair(each), each.difference, list(each.confidence_interval()), each.relative, each.adjusted_p_value,
         each.verdict]
        for each in differences
    ]  # fmt: skip
    return TableBlock(_COLUMNS, rows, [_about(each) for each in differences])


def _pair(each: Difference) -> str:
    return f"{each.recommender} − {each.baseline}"


def _about(each: Difference) -> list[str]:
    return [each.recommender, each.baseline]


def _capital(sentence: str) -> str:
    metric, colon, words = sentence.partition(": ")
    return shown_name(metric) + colon + words
