"""A table of the paper, cell by cell: what is printed, what we compute, and whether they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from truerank import render

_MARKS = {"within seeds": "s", "outside": "!"}


@dataclass(frozen=True)
class Cell:
    """One number of a table, as printed and as computed."""

    table: int
    row: str
    column: str
    published: str
    ours: float
    standard_error: float = 0.0
    """Monte-Carlo error of the comparison; 0 if the number can be met to the digit."""
    seeds: tuple[float, float] | None = None
    """Least and largest of our numbers over the seeds of a recommender that has one."""
    by_default: float | None = None
    """What truerank computes when it is not asked to do as the paper did."""

    @property
    def difference(self) -> float:
        """Ours less published."""
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
        low, high = self.seeds or (self.ours, self.ours)
        if low - margin <= float(self.published) <= high + margin:
            return "within seeds"
        return "outside"

    @property
    def agrees(self) -> bool:
        """Whether nothing but chance keeps them apart."""
        return self.verdict != "outside"

    def record(self) -> dict[str, Any]:
        """Return the cell as a row of JSON."""
        return {
            "table": self.table,
            "row": self.row,
            "column": self.column,
            "published": float(self.published),
            "ours": self.ours,
            "difference": self.difference,
            "standard_error": self.standard_error,
            "seeds": self.seeds,
            "by_default": self.by_default,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Table:
    """A table of the paper; print it to see each row as published, ours and their difference."""

    title: str
    cells: Sequence[Cell]
    remark: str = ""

    def __str__(self) -> str:
        columns = list(dict.fromkeys(cell.column for cell in self.cells))
        known = {(cell.row, cell.column): cell for cell in self.cells}
        lines = []
        for row in dict.fromkeys(cell.row for cell in self.cells):
            lines += _lines(row, [known[row, column] for column in columns])
        body = render.text(["", "", *columns], lines)
        return "\n".join(part for part in (self.title, body, self._summary(), self.remark) if part)

    def _summary(self) -> str:
        meanings = {
            "equal": "equal to the digit",
            "within error": "within three standard errors",
            "within seeds": "within the spread of ten seeds (s)",
            "outside": "outside (!)",
        }
        verdicts = Counter(cell.verdict for cell in self.cells)
        found = [f"{verdicts[name]} {meaning}" for name, meaning in meanings.items() if verdicts[name]]
        return f"Of {len(self.cells)} cells {', '.join(found)}."


def _lines(row: str, cells: list[Cell]) -> list[list[str]]:
    lines = [
        [row, "published", *(cell.published for cell in cells)],
        ["", "ours", *(_number(cell, cell.ours) for cell in cells)],
        ["", "difference", *(_number(cell, cell.difference, "+") + _MARKS.get(cell.verdict, "") for cell in cells)],
    ]
    seeds = [cell.seeds for cell in cells if cell.seeds]
    if seeds:
        lines.append(["", "ten seeds", *(f"{low:.2f}–{high:.2f}" for low, high in seeds)])
    own = [_number(cell, cell.by_default) for cell in cells if cell.by_default is not None]
    if own:
        lines.append(["", "own n", *own])
    return lines


def _number(cell: Cell, number: float, sign: str = "") -> str:
    """Show a digit more than is printed, but counts whole."""
    return f"{number:{sign}.{cell.digits and cell.digits + 1}f}"
