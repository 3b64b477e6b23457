"""How many instances have ties, and how much the order of ties matters."""

from __future__ import annotations

from typing import Literal

from truerank.evaluation.estimates import estimate
from truerank.metrics.base import Metric
from truerank.report.blocks import ByMetric, Column, Section, TableBlock
from truerank.report.material import Material

_TEXT = (
    "Relevant items whose score some irrelevant candidate has too. The metrics above are means over all orders of the "
    "ties; here is what they would be if relevant items came last, or first, among their equals."
)
_COLUMNS = [
    Column("recommender", "text"),
    Column("instances with ties", "share"),
    Column("relevant last"),
    Column("random order"),
    Column("relevant first"),
]
_ORDERS: tuple[Literal["pessimistic", "expected", "optimistic"], ...] = ("pessimistic", "expected", "optimistic")


def section(material: Material) -> Section:
    """Return a table for the chosen metric."""
    tables = {str(metric): _table(material, metric) for metric in material.metrics}
    return Section("Ties", _TEXT, [ByMetric(tables)])


def _table(material: Material, metric: Metric) -> TableBlock:
    rows = [
        [name, ranks.tied_share, *(estimate(ranks, metric, ties=order).mean for order in _ORDERS)]
        for name, ranks in material.ranks.items()
    ]
    return TableBlock(_COLUMNS, rows, [[name] for name in material.ranks])
