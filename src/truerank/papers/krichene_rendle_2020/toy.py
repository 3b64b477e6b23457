"""The running example of sections 3.2 and 4.2: three recommenders, five instances, 10,000 items."""

from __future__ import annotations

import itertools
import math

from truerank.analysis.orders import consistency
from truerank.analysis.risks import risk
from truerank.display import render
from truerank.evaluation.estimates import estimate
from truerank.papers.krichene_rendle_2020.comparisons import Compared
from truerank.papers.krichene_rendle_2020.published import TABLE_1, TABLE_2
from truerank.ranking.ranks import Ranks
from truerank.sampling.uniform import UniformSampling

RANKS = {
    "A": Ranks.from_ranks([100, 100, 100, 100, 100], n=10_000),
    "B": Ranks.from_ranks([40, 40, 8437, 9266, 4482], n=10_000),
    "C": Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000),
}
SAMPLED = 99
REPETITIONS = 1_000


def table_1() -> list[Compared]:
    """Return every cell of Table 1: exact metrics of the toy example."""
    return [
        Compared(1, name, metric, published, estimate(RANKS[name], metric).mean)
        for name, row in TABLE_1.items()
        for metric, published in row.items()
    ]


def table_2() -> list[Compared]:
    """Return every mean of Table 2: expected sampled metrics; the published values are from 1,000 repetitions."""
    design = UniformSampling(SAMPLED)
    cells = []
    for name, row in TABLE_2.items():
        for metric, (published, deviation) in row.items():
            sampled = risk(RANKS[name], metric, design)
            ours = sampled.standard_deviation
            cells.append(
                Compared(
                    table=2,
                    row=name,
                    column=metric,
                    published=published,
                    ours=sampled.mean,
                    standard_error=ours / math.sqrt(REPETITIONS),
                    published_deviation=float(deviation),
                    deviation=ours,
                )
            )
    return cells


def order(cells: list[Compared], column: str) -> str:
    """Return the order of the recommenders by a metric, as in ``C > A = B``; equal means to the printed digits."""
    numbers = {cell.row: round(cell.ours, cell.digits) for cell in cells if cell.column == column}
    best_first = sorted(numbers, key=lambda name: -numbers[name])
    text = best_first[0]
    for better, worse in itertools.pairwise(best_first):
        text += f" {'=' if numbers[better] == numbers[worse] else '>'} {worse}"
    return text


def orders(exact: list[Compared], sampled: list[Compared]) -> str:
    """Return the orders that Tables 1 and 2 imply."""
    rows = [[metric, order(exact, metric), order(sampled, metric)] for metric in TABLE_1["A"]]
    header = ["to three digits", "exact order", "sampled order"]
    return "Sampling changes which recommender looks best:\n" + render.text(header, rows)


def flips() -> str:
    """Return the order by expected sampled AP for each sample size."""
    found = consistency(RANKS, "ap", replace=True, sizes=range(1, 2_000))
    return f"Expected sampled AP, by sample size m (with replacement, eq. 15):\n{found}"
