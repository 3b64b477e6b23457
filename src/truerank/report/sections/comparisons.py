"""Which recommender is better than which, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

from truerank.evaluation.comparisons import Comparison
from truerank.evaluation.differences import Difference
from truerank.evaluation.verdicts import conclusion
from truerank.notes import counted
from truerank.report.blocks import Axis, ByMetric, Column, Dot, Dots, Paragraph, Section, TableBlock
from truerank.report.material import Material
from truerank.report.wording import shown_name

_INTERVAL = "adjusted interval"
_COLUMNS = [
    Column("pair", "text"),
    Column("difference", "signed"),
    Column(_INTERVAL, "interval"),
    Column("relative", "signed-share"),
    Column("adjusted p", "p-value"),
    Column("finding", "text"),
]


def section(material: Material) -> Section | None:
    """Return a chart and a table of the differences in the chosen metric."""
    result = material.comparison
    if result is None:
        return None
    by_metric = {metric: result.of(metric) for metric in result.metrics}
    sentences = {metric: Paragraph(f"{shown_name(metric)}: {conclusion(own)}") for metric, own in by_metric.items()}
    charts = {metric: _chart(metric, own) for metric, own in by_metric.items()}
    tables = {metric: _table(own) for metric, own in by_metric.items()}
    return Section("Comparison", _text(result), [ByMetric(sentences), ByMetric(charts), ByMetric(tables)], result.notes)


def _text(result: Comparison) -> str:
    """Say what is tested, and what p-values and intervals are adjusted for."""
    pairs, metrics = len(result.of(result.metrics[0])), len(result.metrics)
    tests = counted(result.n_tests, "test", "tests")
    counts = f"{counted(pairs, 'pair', 'pairs')}, {counted(metrics, 'metric', 'metrics')}"
    return (
        f"Paired differences on the same instances. P-values, 95 % intervals and findings are adjusted for {tests} "
        f"({counts}) by Holm's method: a difference was found where the adjusted p-value is at most 0.05 and the "
        "interval excludes 0."
    )


def _chart(metric: str, differences: Sequence[Difference]) -> Dots:
    dots = [Dot(_pair(each), each.difference, *each.confidence_interval(), _about(each)) for each in differences]
    return Dots(Axis(f"difference in {shown_name(metric)}"), dots, zero=True, interval=_INTERVAL)


def _table(differences: Sequence[Difference]) -> TableBlock:
    rows = [
        [_pair(each), each.difference, list(each.confidence_interval()), each.relative, each.adjusted_p_value,
         _finding(each)]
        for each in differences
    ]  # fmt: skip
    return TableBlock(_COLUMNS, rows, [_about(each) for each in differences])


def _finding(each: Difference) -> str:
    """Return the verdict, and whether the difference shown is not in the interval beside it."""
    low, high = each.confidence_interval()
    outside = not each.finding.remark and (each.difference < low or each.difference > high)
    return each.finding.in_full + ("; the difference shown lies outside its interval" if outside else "")


def _pair(each: Difference) -> str:
    return f"{each.recommender} − {each.baseline}"


def _about(each: Difference) -> list[str]:
    return [each.recommender, each.baseline]
