"""The running example of sections 3.2 and 4.2: three recommenders, five instances, 10,000 items."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from truerank import render
from truerank.estimates import estimate
from truerank.papers.krichene_rendle_2020.published import TABLE_1
from truerank.ranks import Ranks

RANKS = {
    "A": Ranks.from_ranks([100, 100, 100, 100, 100], n=10_000),
    "B": Ranks.from_ranks([40, 40, 8437, 9266, 4482], n=10_000),
    "C": Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000),
}


@dataclass(frozen=True)
class Cell:
    """One number of a table, as printed and as computed."""

    row: str
    column: str
    published: str
    ours: float

    @property
    def agrees(self) -> bool:
        """Whether our number, rounded to the digits printed, is the published one."""
        digits = len(self.published.partition(".")[2])
        return f"{self.ours:.{digits}f}" == self.published


def table_1() -> list[Cell]:
    """Return every cell of Table 1: exact metrics of the toy example."""
    return [
        Cell(name, metric, published, estimate(RANKS[name], metric).mean)
        for name, row in TABLE_1.items()
        for metric, published in row.items()
    ]


def order(cells: list[Cell], column: str) -> str:
    """Say which recommender is best by a metric, as in ``C > A = B``; equal means equal as printed."""
    best_first = sorted((cell for cell in cells if cell.column == column), key=lambda cell: -float(cell.published))
    text = best_first[0].row
    for better, worse in itertools.pairwise(best_first):
        text += f" {'=' if better.published == worse.published else '>'} {worse.row}"
    return text


def show() -> str:
    """Return Table 1 with published and computed numbers, and the orders that it implies."""
    cells = table_1()
    header = ["", "metric", "published", "ours", "difference", "to the digit"]
    rows = [
        [
            cell.row,
            cell.column,
            cell.published,
            f"{cell.ours:.6f}",
            f"{cell.ours - float(cell.published):+.6f}",
            "yes" if cell.agrees else "NO",
        ]
        for cell in cells
    ]
    orders = [f"  {metric:<10} {order(cells, metric)}" for metric in TABLE_1["A"]]
    return "\n".join(
        ["Table 1: exact metrics of three recommenders", render.text(header, rows), "", "Orders by metric:", *orders]
    )
