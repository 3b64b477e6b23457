"""The metrics of each recommender, with intervals."""

from __future__ import annotations

from truerank.evaluation.estimates import Estimate
from truerank.report.blocks import Axis, ByMetric, Column, Dot, Dots, Section, TableBlock
from truerank.report.material import Material

_TEXT = (
    "Means over the instances as dots, their 95 % intervals as bars. Overlapping intervals do not mean that there is "
    "no difference, since all recommenders were evaluated on the same instances; the comparison below allows for that."
)


def section(material: Material) -> Section:
    """Return a chart of the chosen metric, and a table of all."""
    names, found = material.metric_names, material.estimates
    charts = {
        metric: Dots(Axis(shown), [_dot(name, found[name, metric]) for name in material.ranks])
        for metric, shown in names.items()
    }
    columns = [Column("recommender", "text"), *(Column(shown, "estimate") for shown in names.values())]
    rows = [
        [name, *(_cell(found[name, metric]) for metric in names), len(ranks)] for name, ranks in material.ranks.items()
    ]
    table = TableBlock([*columns, Column("instances", "count")], rows, [[name] for name in material.ranks])
    return Section("Metrics", _TEXT, [ByMetric(charts), table], material.evaluation.notes)


def _dot(name: str, estimate: Estimate) -> Dot:
    low, high = estimate.confidence_interval()
    return Dot(name, estimate.mean, low, high, [name])


def _cell(estimate: Estimate) -> list[float]:
    return [estimate.mean, *estimate.confidence_interval()]
