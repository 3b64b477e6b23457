"""The running example of sections 3.2 and 4.2: three recommenders, five instances, 10,000 items."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from truerank import render
from truerank.consistency import consistency
from truerank.estimates import estimate
from truerank.papers.krichene_rendle_2020.published import TABLE_1, TABLE_2
from truerank.ranks import Ranks
from truerank.risk import risk
from truerank.sampling.designs import SamplingDesign

RANKS = {
    "A": Ranks.from_ranks([100, 100, 100, 100, 100], n=10_000),
    "B": Ranks.from_ranks([40, 40, 8437, 9266, 4482], n=10_000),
    "C": Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000),
}
SAMPLED = 99
REPETITIONS = 1_000


@dataclass(frozen=True)
class Cell:
    """One number of a table, as printed and as computed."""

    row: str
    column: str
    published: str
    ours: float
    standard_error: float = 0.0
    """Monte-Carlo error of the published number."""

    @property
    def difference(self) -> float:
        """Ours less published."""
        return self.ours - float(self.published)

    @property
    def agrees(self) -> bool:
        """Whether they agree: to the digit printed, or within three standard errors of a Monte-Carlo mean."""
        digits = len(self.published.partition(".")[2])
        if self.standard_error == 0.0:
            return f"{self.ours:.{digits}f}" == self.published
        return abs(self.difference) <= 3 * self.standard_error + 0.5 * 10**-digits


def table_1() -> list[Cell]:
    """Return every cell of Table 1: exact metrics of the toy example."""
    return [
        Cell(name, metric, published, estimate(RANKS[name], metric).mean)
        for name, row in TABLE_1.items()
        for metric, published in row.items()
    ]


def table_2() -> list[Cell]:
    """Return every mean of Table 2: expected sampled metrics, whose published values are from 1,000 repetitions."""
    design = SamplingDesign(SAMPLED)
    cells = []
    for name, row in TABLE_2.items():
        for metric, (published, _) in row.items():
            sampled = risk(metric, design, RANKS[name])
            cells.append(
                Cell(name, metric, published, sampled.mean, sampled.standard_deviation / math.sqrt(REPETITIONS))
            )
    return cells


def order(cells: list[Cell], column: str) -> str:
    """Say which recommender is best by a metric, as in ``C > A = B``; equal means equal as printed."""
    best_first = sorted((cell for cell in cells if cell.column == column), key=lambda cell: -float(cell.published))
    text = best_first[0].row
    for better, worse in itertools.pairwise(best_first):
        text += f" {'=' if better.published == worse.published else '>'} {worse.row}"
    return text


def show() -> str:
    """Return Tables 1 and 2 with published and computed numbers, and the orders that they imply."""
    exact, sampled = table_1(), table_2()
    orders = [[metric, order(exact, metric), order(sampled, metric)] for metric in TABLE_1["A"]]
    flips = consistency(RANKS, "ap", replace=True, sizes=range(1, 2_000))
    return "\n".join(
        [
            "Table 1: exact metrics of three recommenders on five instances, n = 10,000",
            _show(exact, "to the digit"),
            "",
            f"Table 2: the same with m = {SAMPLED} sampled items; published: means of {REPETITIONS:,} repetitions",
            _show(sampled, "within 3 s.e."),
            "",
            "Sampling changes which recommender looks best:",
            render.text(["", "exact order", "sampled order"], orders),
            "",
            "Expected sampled AP, by sample size m (with replacement, eq. 15):",
            str(flips),
        ]
    )


def _show(cells: list[Cell], verdict: str) -> str:
    header = ["", "metric", "published", "ours", "difference", verdict]
    rows = [
        [
            cell.row,
            cell.column,
            cell.published,
            f"{cell.ours:.6f}",
            f"{cell.difference:+.6f}",
            "yes" if cell.agrees else "NO",
        ]
        for cell in cells
    ]
    return render.text(header, rows)
