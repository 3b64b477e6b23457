"""The metrics of each recommender, with intervals."""

from __future__ import annotations

from truerank.evaluation.estimates import Estimate
from truerank.report.blocks import Axis, ByMetric, Column, Dot, Dots, Section, TableBlock
from truerank.report.material import Material
from truerank.report.wording import shown_name

_TEXT = (
    "Means over the instances as dots, their 95 % intervals as bars. Overlapping intervals do not mean that there is "
    "no difference, since all recommenders were evaluated on the same instances; the comparison below allows for that."
)


def section(material: Material) -> Section:
    """Return a chart of the chosen metric, and a table of all."""
    found = material.evaluation
    charts = {
        metric: Dots(Axis(shown_name(metric)), [_dot(name, found[name, metric]) for name in found.recommenders])
        for metric in found.metrics
    }
    columns = [Column("recommender", "text"), *(Column(shown_name(metric), "estimate") for metric in found.metrics)]
    rows = [
        [name, *(_cell(found[name, metric]) for metric in found.metrics), found[name, found.metrics[0]].n_instances]
        for name in found.recommenders
    ]
    table = TableBlock([*columns, Column("instances", "count")], rows, [[name] for name in found.recommenders])
    return Section("Metrics", _TEXT, [ByMetric(charts), table], found.notes)


def _dot(name: str, estimate: Estimate) -> Dot:
    low, high = estimate.confidence_interval()
    return Dot(name, estimate.mean, low, high, [name])


def _cell(estimate: Estimate) -> list[float]:
    return [estimate.mean, *estimate.confidence_interval()]
