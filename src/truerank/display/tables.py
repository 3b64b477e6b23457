"""The one kind of table that every result turns into, and its text forms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, NoReturn

from truerank.display import render
from truerank.display.dataframes import Framed
from truerank.errors import InputError


@dataclass(frozen=True)
class Cell:
    """One cell of a table: plain text and, if it is a formula in LaTeX, that; the best of its column is bold."""

    text: str
    formula: str | None = None
    best: bool = False

    @property
    def markdown(self) -> str:
        """The text in Markdown."""
        text = render.markdown_text(self.text)
        return f"**{text}**" if self.best else text

    @property
    def latex(self) -> str:
        """The text in LaTeX."""
        if self.formula is not None:
            return self.formula
        text = render.latex_text(self.text)
        return rf"\textbf{{{text}}}" if self.best else text


def measured(value: float, error: float, digits: int = 4, *, best: bool = False) -> Cell:
    r"""Return a cell for a number and its standard error.

    Examples
    --------
    >>> print(measured(0.25, 0.125).latex)
    $0.2500 \pm 0.1250$
    """
    shown, spread = f"{value:.{digits}f}", f"{error:.{digits}f}"
    in_latex = rf"\mathbf{{{shown}}}" if best else shown
    return Cell(f"{shown} ± {spread}", rf"${in_latex} \pm {spread}$", best)


@dataclass(frozen=True)
class Table(Framed):
    """Cells to read, and records at full precision to compute with.

    Attributes
    ----------
    header : tuple of str
    rows : tuple of tuples of Cell
        As many cells per row as the header has.
    records : tuple of dict
        What the table shows, unrounded, for TSV, JSON and dataframes; all have the same keys.
    notes : tuple of str
        What to know before trusting the numbers.
    conclusions : tuple of str
        What the numbers say.

    Examples
    --------
    >>> table = Table(("model", "ap"), ((Cell("A"), measured(0.5, 0.1)),), ({"model": "A", "ap": 0.5},), ("one user",))
    >>> print(table.to_text())
    model               ap
    A      0.5000 ± 0.1000
    note: one user
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    records: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()
    conclusions: tuple[str, ...] = ()

    def to_text(self) -> str:
        """Return aligned columns for a terminal, with the conclusions and notes below them."""
        return "\n".join([render.text(self.header, self._texts()), *self._below()])

    def _below(self) -> list[str]:
        return [*self.conclusions, *(f"note: {note}" for note in self.notes)]

    def to_markdown(self) -> str:
        """Return a pipe table; texts are escaped."""
        header = [render.markdown_text(name) for name in self.header]
        return render.markdown(header, [[cell.markdown for cell in row] for row in self.rows])

    def to_latex(self) -> str:
        """Return a tabular with booktabs rules; texts are escaped."""
        header = [render.latex_text(name) for name in self.header]
        return render.latex(header, [[cell.latex for cell in row] for row in self.rows])

    def to_html(self) -> str:
        """Return an HTML table, with the notes below it."""
        bold = [[cell.best for cell in row] for row in self.rows]
        return render.html(self.header, self._texts(), bold, self._below())

    def to_csv(self) -> str:
        """Return the records, separated by commas; text that begins like a formula has an apostrophe before it."""
        return render.delimited([dict(record) for record in self.records], ",")

    def to_tsv(self) -> str:
        """Return the records, separated by tabs; text that begins like a formula has an apostrophe before it."""
        return render.delimited([dict(record) for record in self.records], "\t")

    def to_json(self) -> str:
        """Return the records and notes; undefined numbers are null."""
        return render.json_text({"truerank": version("truerank"), "rows": self.records, "notes": self.notes})

    def _columns(self) -> dict[str, list[Any]]:
        return {name: [record[name] for record in self.records] for name in self.records[0]}

    def _texts(self) -> list[list[str]]:
        return [[cell.text for cell in row] for row in self.rows]


def fact_table(about: str, rows: Mapping[str, object], notes: Sequence[str] = ()) -> Table:
    """Return a table of what is known about something: a name and a value per row.

    Examples
    --------
    >>> print(fact_table("Split", {"users": 3}).to_text())
    Split
    users  3
    """
    cells = tuple((Cell(name), Cell(str(value))) for name, value in rows.items())
    return Table((about, ""), cells, (dict(rows),), tuple(notes))


class Tabular(Framed):
    """A result that can be shown as a table; dataclasses of this kind are declared with ``repr=False``."""

    @abstractmethod
    def to_table(self) -> Table:
        """Return the table that all text forms show."""

    def __iter__(self) -> NoReturn:
        raise InputError(f"{type(self).__name__} is a table: loop over `to_table().records`, a dict per row.")

    def __str__(self) -> str:
        return self.to_table().to_text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        return self.to_html()

    def _table_with_bold(self) -> Table:
        """Return the table for forms that have bold type, if finding out what is bold takes a while."""
        return self.to_table()

    def to_html(self) -> str:
        """Return an HTML table, with the notes below it."""
        return self._table_with_bold().to_html()

    def to_markdown(self) -> str:
        """Return a Markdown table."""
        return self._table_with_bold().to_markdown()

    def to_latex(self) -> str:
        """Return a LaTeX tabular with booktabs rules."""
        return self._table_with_bold().to_latex()

    def to_csv(self) -> str:
        """Return everything at full precision, separated by commas.

        Text that a spreadsheet would take for a formula, since it begins with ``=``, ``+``, ``-`` or ``@``, has an
        apostrophe before it. So it is in TSV.
        """
        return self.to_table().to_csv()

    def to_tsv(self) -> str:
        """Return everything at full precision, tab-separated."""
        return self.to_table().to_tsv()

    def to_json(self) -> str:
        """Return everything at full precision; undefined numbers are null."""
        return self.to_table().to_json()

    def _columns(self) -> dict[str, list[Any]]:
        return self.to_table()._columns()
