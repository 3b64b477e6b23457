"""For whom, and for which items, each recommender is good."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from truerank.evaluation.estimate_tables import Evaluation
from truerank.evaluation.evaluations import evaluate
from truerank.evaluation.groups import Groups, by_activity, by_popularity
from truerank.report.blocks import Axis, Block, ByMetric, Dot, Dots, Section
from truerank.report.material import Material
from truerank.report.wording import shown_name

_TEXT = (
    "The same metrics by group, with 95 % intervals. A recommender that is good on average may be poor for users with "
    "few interactions, or for items that are rarely chosen."
)


def section(material: Material) -> Section | None:
    """Return a chart of the chosen metric for each way to group."""
    blocks: list[Block] = []
    notes: list[str] = []
    for what, groups in _ways(material):
        found = evaluate(material.ranks, material.metrics, by=groups)
        blocks.append(ByMetric({metric: _chart(found, at, what) for at, metric in enumerate(found.metrics)}))
        notes += found.notes
    return Section("Groups", _TEXT, blocks, tuple(dict.fromkeys(notes))) if blocks else None


def _ways(material: Material) -> Iterator[tuple[str, Groups]]:
    if material.by is not None:
        yield "group", material.by
    if material.split is not None:
        yield "users by activity", by_activity(material.split)
        if all(one.items is not None for one in material.ranks.values()):
            yield "items by popularity", by_popularity(material.split)


def _chart(found: Evaluation, at: int, what: str) -> Dots:
    """Return the rows of one metric, which is every so many-th estimate, group by group."""
    own = found.estimates[at :: len(found.metrics)]
    cells = dict(zip(product(found.recommenders, found.groups), own, strict=True))
    dots = [
        Dot(f"{group}, {name}", cell.mean, *cell.confidence_interval(), [name], group)
        for group in found.groups
        for name in found.recommenders
        if (cell := cells[name, group]).n
    ]
    return Dots(Axis(f"{shown_name(found.metrics[at])}, {what}"), dots)
