"""A table of the paper, cell by cell: the printed number, ours, and whether they agree."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from truerank.display import render

_MARKS = {"within seeds": "s", "outside": "!"}


@dataclass(frozen=True)
class Compared:
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
        return dataclasses.asdict(self) | shown | {"difference": self.difference, "verdict": self.verdict}


@dataclass(frozen=True)
class PublishedTable:
    """A table of the paper; print it to see each row as published, ours and their difference."""

    title: str
    cells: Sequence[Compared]
    remark: str = ""

    def __str__(self) -> str:
        body = render.text(self.header, self.lines())
        return "\n".join(part for part in (self.title, body, self.summary(), self.remark) if part)

    @property
    def header(self) -> list[str]:
        """Two columns for what a line is, then those of the paper."""
        return ["", "", *dict.fromkeys(cell.column for cell in self.cells)]

    def lines(self) -> list[list[str]]:
        """Return each row of the paper as several lines: published, ours, and what else there is."""
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


def _lines(row: str, cells: list[Compared]) -> list[list[str]]:
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


def _range(cell: Compared) -> str:
    return "" if cell.seed_range is None else "–".join(f"{number:.{cell.digits}f}" for number in cell.seed_range)


def _number(cell: Compared, number: float | None, sign: str = "") -> str:
    """Format with one digit more than is printed, but counts as whole numbers."""
    digits = cell.digits and cell.digits + 1
    # adding zero turns -0.0 into 0.0
    return "" if number is None else f"{round(number, digits) + 0.0:{sign}.{digits}f}"
