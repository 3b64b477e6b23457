"""The published numbers of all tables, how cells are compared with them, and Tables 1 and 2."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import truerank as tr
from truerank.core.tables import aligned

TABLE_1 = {
    "A": {"auc": "0.990", "ap": "0.010", "ndcg": "0.150", "recall@10": "0.000"},
    "B": {"auc": "0.555", "ap": "0.010", "ndcg": "0.122", "recall@10": "0.000"},
    "C": {"auc": "0.843", "ap": "0.101", "ndcg": "0.208", "recall@10": "0.200"},
}
"""Exact metrics of the toy example."""

TABLE_2 = {
    "A": {"auc": "0.990±0.004", "ap": "0.630±0.129", "ndcg": "0.724±0.097", "recall@10": "1.000±0.000"},
    "B": {"auc": "0.555±0.014", "ap": "0.336±0.073", "ndcg": "0.444±0.054", "recall@10": "0.400±0.000"},
    "C": {"auc": "0.843±0.014", "ap": "0.325±0.050", "ndcg": "0.460±0.039", "recall@10": "0.567±0.092"},
}
"""Mean and standard deviation of sampled metrics over 1,000 repetitions with m = 99."""

TABLE_3_COLUMNS = ("exact", "sampled", "~rank", "~cls", "~bv(1)", "~bv(0.1)", "~bv(0.01)", "~bv(0.001)")
TABLE_3 = {
    ("recall@10", "X"): "7.60 66.19±0.25 17.46±0.32 8.52±0.16 4.71±0.07 6.49±0.25 7.18±0.59 7.32±1.17",
    ("recall@10", "Y"): "8.84 56.51±0.22 17.26±0.28 8.42±0.14 4.60±0.07 6.95±0.21 8.18±0.51 8.54±1.07",
    ("recall@10", "Z"): "9.42 54.20±0.22 18.67±0.32 9.10±0.15 4.97±0.07 7.44±0.24 8.63±0.59 9.08±1.20",
    ("ndcg@10", "X"): "3.76 39.21±0.20 17.46±0.32 3.99±0.07 2.16±0.04 3.00±0.12 3.34±0.32 3.41±0.71",
    ("ndcg@10", "Y"): "4.59 34.82±0.16 17.26±0.28 3.94±0.06 2.12±0.03 3.24±0.10 3.85±0.28 4.03±0.66",
    ("ndcg@10", "Z"): "4.79 35.34±0.16 18.67±0.32 4.27±0.07 2.29±0.04 3.46±0.12 4.05±0.32 4.31±0.74",
    ("ap", "X"): "3.75 32.55±0.21 18.12±0.31 3.58±0.06 2.44±0.03 3.13±0.09 3.37±0.21 3.42±0.49",
    ("ap", "Y"): "4.32 30.01±0.20 17.81±0.28 3.54±0.06 2.32±0.03 3.19±0.07 3.62±0.18 3.73±0.45",
    ("ap", "Z"): "4.44 30.71±0.21 19.20±0.31 3.82±0.06 2.45±0.03 3.38±0.08 3.79±0.21 3.97±0.51",
    ("auc", "X"): "89.13 89.12±0.04 89.24±0.04 89.12±0.04 88.36±0.04 89.04±0.04 89.11±0.04 89.12±0.04",
    ("auc", "Y"): "85.33 85.33±0.04 85.48±0.04 85.32±0.04 84.63±0.04 85.26±0.04 85.32±0.04 85.32±0.04",
    ("auc", "Z"): "74.73 75.04±0.23 75.24±0.20 75.04±0.21 74.51±0.23 75.02±0.20 75.02±0.24 75.02±0.23",
}
"""Three recommenders on MovieLens 1M, m = 100, in percent: mean and deviation over 100 repetitions, by column."""

TABLE_4 = {
    ("recall@10", "X", "Y"): (0, 31, 31, 11, 93, 91, 78),
    ("ndcg@10", "X", "Y"): (0, 31, 31, 15, 93, 88, 76),
    ("ap", "X", "Y"): (0, 24, 31, 0, 68, 79, 66),
    ("auc", "X", "Y"): (100, 100, 100, 100, 100, 100, 100),
    ("recall@10", "X", "Z"): (0, 100, 100, 100, 100, 95, 86),
    ("ndcg@10", "X", "Z"): (0, 100, 100, 100, 100, 95, 82),
    ("ap", "X", "Z"): (0, 100, 100, 61, 99, 92, 81),
    ("auc", "X", "Z"): (100, 100, 100, 100, 100, 100, 100),
    ("recall@10", "Y", "Z"): (0, 100, 100, 100, 95, 72, 68),
    ("ndcg@10", "Y", "Z"): (100, 100, 100, 100, 94, 70, 67),
    ("ap", "Y", "Z"): (100, 100, 100, 100, 98, 75, 68),
    ("auc", "Y", "Z"): (100, 100, 100, 100, 100, 100, 100),
}
"""In how many of the 100 repetitions a pair is in its exact order, for all but the first column of Table 3."""


_MARKS = {"within seeds": "s", "outside": "!"}


@dataclass(frozen=True)
class ComparedCell:
    """One number of a table, as printed and as computed."""

    table: int
    row: str
    column: str
    published: str
    ours: float
    standard_error: float = 0.0
    """Monte Carlo error of the comparison; 0 if the number can be reproduced exactly."""
    published_deviation: float | None = None
    deviation: float | None = None
    """Standard deviation over repetitions, printed and ours."""
    seed_range: tuple[float, float] | None = None
    """Smallest and largest of our numbers over the seeds of a recommender that has a seed."""
    own_n: float | None = None
    """What truerank computes by default: with each user's own n and the law of the actual sampling."""

    @property
    def difference(self) -> float:
        """Ours minus published."""
        return self.ours - float(self.published)

    @property
    def digits(self) -> int:
        """Decimals of the printed number."""
        return len(self.published.partition(".")[2])

    @property
    def verdict(self) -> str:
        """Return "equal" to the digit, "within error" (three standard errors), "within seeds", or "outside"."""
        if f"{self.ours:.{self.digits}f}" == self.published:
            return "equal"
        margin = 3 * self.standard_error + 0.5 * 10**-self.digits if self.standard_error else 0.0
        if abs(self.difference) <= margin:
            return "within error"
        low, high = self.seed_range or (self.ours, self.ours)
        if low - margin <= float(self.published) <= high + margin:
            return "within seeds"
        return "outside"

    @property
    def agrees(self) -> bool:
        """Whether the difference can be due to chance."""
        return self.verdict != "outside"

    @property
    def deviation_agrees(self) -> bool:
        """Whether the deviations agree; the error of a deviation is that of the mean over the square root of 2."""
        assert self.deviation is not None, "the cell has no deviation"
        assert self.published_deviation is not None, "the cell has no published deviation"
        difference = abs(self.deviation - self.published_deviation)
        return difference <= 3 * self.standard_error + 0.5 * 10**-self.digits

    def record(self) -> dict[str, Any]:
        """Return the cell as a JSON record; `printed` keeps the printed digits."""
        shown = {"printed": self.published, "published": float(self.published)}
        return asdict(self) | shown | {"difference": self.difference, "verdict": self.verdict}


@dataclass(frozen=True)
class PublishedTable:
    """A table of the paper; print it to see each row as published, ours and their difference."""

    title: str
    cells: Sequence[ComparedCell]
    remark: str = ""

    def __str__(self) -> str:
        body = aligned(self.header, self.lines())
        return "\n".join(part for part in (self.title, body, self.summary(), self.remark) if part)

    @property
    def header(self) -> list[str]:
        """Return two columns that say what a line is, then the columns of the paper."""
        return ["", "", *dict.fromkeys(cell.column for cell in self.cells)]

    def lines(self) -> list[list[str]]:
        """Return each row of the paper as several lines: published, ours, and any further ones."""
        by_label = {(cell.row, cell.column): cell for cell in self.cells}
        lines = []
        for row in dict.fromkeys(cell.row for cell in self.cells):
            lines += _lines(row, [by_label[row, column] for column in self.header[2:]])
        return lines

    def summary(self) -> str:
        """Return how many cells agree."""
        meanings = {
            "equal": "equal to the digit",
            "within error": "within three standard errors",
            "within seeds": "within the spread of ten seeds (s)",
            "outside": "outside (!)",
        }
        verdicts = Counter(cell.verdict for cell in self.cells)
        found = [f"{verdicts[name]} {meaning}" for name, meaning in meanings.items() if verdicts[name]]
        text = f"Of {len(self.cells)} cells {', '.join(found)}."
        repeated = [cell for cell in self.cells if cell.deviation is not None]
        if repeated:
            agree = sum(cell.deviation_agrees for cell in repeated)
            text += f" Of {len(repeated)} printed deviations {agree} are within three standard errors of ours."
        return text


def _lines(row: str, cells: list[ComparedCell]) -> list[list[str]]:
    lines = [
        [row, "published", *(cell.published for cell in cells)],
        ["", "ours", *(_number(cell, cell.ours) for cell in cells)],
        ["", "difference", *(_number(cell, cell.difference, "+") + _MARKS.get(cell.verdict, "") for cell in cells)],
    ]
    if any(cell.seed_range for cell in cells):
        lines.append(["", "ten seeds", *(_range(cell) for cell in cells)])
    if any(cell.own_n is not None for cell in cells):
        lines.append(["", "own n", *(_number(cell, cell.own_n) for cell in cells)])
    return lines


def _range(cell: ComparedCell) -> str:
    return "" if cell.seed_range is None else "–".join(f"{number:.{cell.digits}f}" for number in cell.seed_range)


def _number(cell: ComparedCell, number: float | None, sign: str = "") -> str:
    """Format with one digit more than printed; counts are formatted as whole numbers."""
    digits = cell.digits and cell.digits + 1
    # adding zero turns -0.0 into 0.0
    return "" if number is None else f"{round(number, digits) + 0.0:{sign}.{digits}f}"


RANKS = {
    "A": tr.Ranks.from_ranks([100, 100, 100, 100, 100], n=10_000),
    "B": tr.Ranks.from_ranks([40, 40, 8437, 9266, 4482], n=10_000),
    "C": tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000),
}
SAMPLED = 99
REPETITIONS = 1_000


def table_1() -> list[ComparedCell]:
    """Return every cell of Table 1: exact metrics of the toy example."""
    return [
        ComparedCell(1, name, metric, published, tr.estimate(RANKS[name], metric).mean)
        for name, row in TABLE_1.items()
        for metric, published in row.items()
    ]


def table_2() -> list[ComparedCell]:
    """Return every mean of Table 2: expected sampled metrics; the published values are from 1,000 repetitions."""
    design = tr.UniformSampling(SAMPLED)
    cells = []
    for name, row in TABLE_2.items():
        for metric, printed in row.items():
            published, _, deviation = printed.partition("±")
            sampled = tr.risk(RANKS[name], metric, design)
            ours = sampled.standard_deviation
            error = ours / math.sqrt(REPETITIONS)
            cells.append(ComparedCell(2, name, metric, published, sampled.mean, error, float(deviation), ours))
    return cells


def order(cells: list[ComparedCell], column: str) -> str:
    """Return the order of the recommenders by a metric, as in ``C > A = B``; equal means to the printed digits."""
    numbers = {cell.row: round(cell.ours, cell.digits) for cell in cells if cell.column == column}
    best_first = sorted(numbers, key=lambda name: -numbers[name])
    signs = ["=" if numbers[better] == numbers[worse] else ">" for better, worse in pairwise(best_first)]
    return " ".join([best_first[0], *(f"{sign} {name}" for sign, name in zip(signs, best_first[1:], strict=True))])


def orders(exact: list[ComparedCell], sampled: list[ComparedCell]) -> str:
    """Return the orders that Tables 1 and 2 imply."""
    rows = [[metric, order(exact, metric), order(sampled, metric)] for metric in TABLE_1["A"]]
    header = ["to three digits", "exact order", "sampled order"]
    return "Sampling changes which recommender looks best:\n" + aligned(header, rows)


def flips() -> str:
    """Return the order by expected sampled AP for each sample size."""
    found = tr.consistency(RANKS, "ap", "uniform(replace)", sizes=range(1, 2_000))
    return f"Expected sampled AP, by sample size m (with replacement, eq. 15):\n{found}"
