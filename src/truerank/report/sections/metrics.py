"""The metrics of each recommender, with intervals."""

from __future__ import annotations

from truerank.evaluation.estimates import Estimate
from truerank.report.blocks import Axis, ByMetric, Column, Dot, Dots, Section, TableBlock
from truerank.report.material import Material
from truerank.report.wording import shown_name

_TEXT = (
    "Mean over the instances, with its 95 % interval: dots are means, bars are intervals. Intervals that overlap do not "
    "mean that there is no difference, since all recommenders were evaluated on the same instances; the comparison "
    "below takes that into account."
)


def section(material: Material) -> Section:
    """Return a chart of the chosen metric, and a table of all."""
    found = material.evaluation
    charts = {
        metric: Dots(Axis(shown_name(metric)), [_dot(name, found[name, metric]) for name in found.recommenders])
        for metric in found.metrics
    }
    columns = [Column("recommender", "text")]
    for metric in found.metrics:
        columns += [Column(shown_name(metric)), Column("95 % interval", "interval")]
    rows = [[name, *_cells([found[name, metric] for metric in found.metrics])] for name in found.recommenders]
    table = TableBlock([*columns, Column("instances", "count")], rows, [[name] for name in found.recommenders])
    return Section("Metrics", _TEXT, [ByMetric(charts), table], found.notes)


def _dot(name: str, estimate: Estimate) -> Dot:
    low, high = estimate.confidence_interval()
    return Dot(name, estimate.mean, low, high, [name])


def _cells(estimates: list[Estimate]) -> list[object]:
    cells: list[object] = []
    for estimate in estimates:
        cells += [estimate.mean, list(estimate.confidence_interval())]
    return [*cells, estimates[0].n_instances]
