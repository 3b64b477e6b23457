"""`Table`, the one form in which results are shown: as text, Markdown, LaTeX, HTML, CSV, TSV, JSON and dataframes."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from numbers import Integral
from shutil import get_terminal_size
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, get_args, overload

from truerank.core.checks import InputError, check_choice, counted

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

# smallest width, in letters, to which a column that is too wide is broken
_NARROWEST = 20
# longer names of metrics are words, shorter ones abbreviations
_ABBREVIATION = 5


def shown_name(metric: str) -> str:
    """Return the name of a metric as pages show it, from its text form.

    Examples
    --------
    >>> [shown_name(name) for name in ("ndcg@10", "recall@10~bv(0.1)", "ap", "r-precision")]
    ['NDCG@10', 'Recall@10~bv(0.1)', 'AP', 'R-precision']
    """
    head, mark, correction = metric.partition("~")
    name = head.split("@")[0].split("(")[0]
    shown = name.upper() if len(name) <= _ABBREVIATION else name[0].upper() + name[1:]
    return shown + head[len(name) :] + mark + correction


def rounded(*numbers: float) -> list[str]:
    """Return numbers with equally many decimals: three significant digits of the largest one, two if it is small.

    Examples
    --------
    >>> rounded(0.00578, -0.00042, 0.01198), rounded(0.2, 0.154), rounded(33.5), rounded(0.000901), rounded(0.0)
    (['0.0058', '−0.0004', '0.0120'], ['0.200', '0.154'], ['33.5'], ['0.00090'], ['0.00'])
    """
    largest = max(map(abs, numbers))
    power = math.floor(math.log10(largest)) if 0 < largest < math.inf else 0
    digits = max(0, 2 - power if power >= -2 else 1 - power)
    return [f"{number:,.{digits}f}".replace("-", "−") for number in numbers]


Row = TypeVar("Row")

Backend = Literal["pandas", "polars", "pyarrow"]
"""A dataframe library."""


def frame(columns: Mapping[str, Any], backend: Backend) -> Any:
    """Return columns as a dataframe of the chosen library.

    Examples
    --------
    >>> frame({"user": ["ann"], "ap": [0.5]}, "pyarrow").column_names
    ['user', 'ap']
    """
    import narwhals as nw

    check_choice("backend", backend, get_args(Backend))
    return nw.from_dict(columns, backend=backend).to_native()


class Framed(ABC):
    """Something with columns, which can be converted to a dataframe."""

    @abstractmethod
    def _columns(self) -> Mapping[str, Any]:
        """Return the columns by name, all equally long."""

    @overload
    def to_frame(self, backend: Literal["pandas"] = "pandas") -> pd.DataFrame: ...
    @overload
    def to_frame(self, backend: Literal["polars"]) -> pl.DataFrame: ...
    @overload
    def to_frame(self, backend: Literal["pyarrow"]) -> pa.Table: ...
    @overload
    def to_frame(self, backend: Backend) -> pd.DataFrame | pl.DataFrame | pa.Table: ...
    def to_frame(self, backend: Backend = "pandas") -> Any:
        """Return everything at full precision as a dataframe of the chosen library.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
        """
        return frame(self._columns(), backend)


TextRows = Sequence[Sequence[str]]

_LINE_END = re.compile(r"\s*[\r\n\v\f\x85\u2028\u2029]\s*")
# characters that Markdown would take for markup; an underscore inside a word is not markup
_MARKUP = re.compile(r"[\\`*|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|(?<=\])\(|~(?=~)")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}
# what spreadsheets take for a formula, unless it is a number
_FORMULA = re.compile(r"(?![-+]?[0-9.]+(e[-+]?[0-9]+)?$)[=+\-@\t\r]", re.IGNORECASE)


def aligned(header: Sequence[str], rows: TextRows) -> str:
    """Align columns for a terminal: the first to the left, the others to the right."""
    first, *rest = zip(header, *rows, strict=True)
    columns = [[cell.ljust(max(map(len, first))) for cell in first]]
    columns += [[cell.rjust(max(map(len, column))) for cell in column] for column in rest]
    return "\n".join(map("  ".join, zip(*columns, strict=True)))


def wrapped(sentence: str, width: int | None) -> str:
    """Return a sentence in lines of at most this width, broken between words; those after the first are indented.

    Examples
    --------
    >>> print(wrapped("note: only 5 instances: expect a wide interval", 30))
    note: only 5 instances: expect
      a wide interval
    """
    if width is None or len(sentence) <= width:
        return sentence
    whole = {"break_long_words": False, "break_on_hyphens": False}
    return "\n".join(wrap(sentence, width, subsequent_indent="  ", **whole))  # type: ignore[arg-type]


def markdown_text(text: str) -> str:
    r"""Return text that Markdown shows as it is, in a cell of a table.

    Examples
    --------
    >>> print(markdown_text("<b>x|y</b> *1*, als_64"))
    &lt;b&gt;x\|y&lt;/b&gt; \*1\*, als_64
    """
    return _MARKUP.sub(r"\\\g<0>", escape(_LINE_END.sub(" ", text), quote=False))


def markdown(header: Sequence[str], rows: TextRows) -> str:
    """Return a pipe table; cells are Markdown already."""
    rule = ["---", *("---:" for _ in header[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows))


def latex_text(text: str) -> str:
    r"""Return text that LaTeX prints as it is.

    Examples
    --------
    >>> print(latex_text("recall@10~bv(0.1) of A_1 & B^2"))
    recall@10\textasciitilde{}bv(0.1) of A\_1 \& B\textasciicircum{}2
    """
    return "".join(_LATEX.get(letter, letter) for letter in _LINE_END.sub(" ", text))


def latex(header: Sequence[str], rows: TextRows) -> str:
    """Return a tabular with booktabs rules; cells are LaTeX already."""
    lines = [" & ".join(cells) + r" \\" for cells in (header, *rows)]
    # a line must not begin with what could be an argument of the line end before it
    safe = ["{}" + line if line.startswith(("[", "*")) else line for line in lines]
    columns = "l" + "r" * (len(header) - 1)
    body = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", safe[0], r"\midrule", *safe[1:]]
    return "\n".join([*body, r"\bottomrule", r"\end{tabular}"])


def html(header: Sequence[str], rows: TextRows, bold: Sequence[Sequence[bool]], below: Sequence[str]) -> str:
    """Return a table with sentences below it; texts are escaped, so that they can't contain markup.

    Examples
    --------
    >>> print(html(["", "ap"], [["<A>", "0.5"]], [[False, True]], ["note: one user"]))
    <table>
    <thead><tr><th style="text-align: left"></th><th>ap</th></tr></thead>
    <tbody>
    <tr><td style="text-align: left">&lt;A&gt;</td><td><b>0.5</b></td></tr>
    </tbody>
    </table>
    <p>note: one user</p>
    """
    marked = [
        [f"<b>{escape(cell)}</b>" if best else escape(cell) for cell, best in zip(row, marks, strict=True)]
        for row, marks in zip(rows, bold, strict=True)
    ]
    body = "\n".join(_html_row("td", row) for row in marked)
    head = f"<thead>{_html_row('th', [escape(cell) for cell in header])}</thead>"
    paragraphs = [f"<p>{escape(sentence)}</p>" for sentence in below]
    return "\n".join(["<table>", head, f"<tbody>\n{body}\n</tbody>", "</table>", *paragraphs])


def _html_row(tag: str, cells: Sequence[str]) -> str:
    first, *rest = cells
    start = f'<{tag} style="text-align: left">{first}</{tag}>'
    return f"<tr>{start}{''.join(f'<{tag}>{cell}</{tag}>' for cell in rest)}</tr>"


def delimited(records: Sequence[dict[str, Any]], delimiter: str) -> str:
    """Return records, one per line, with a header line.

    Text that a spreadsheet would take for a formula, by its first letter, gets an apostrophe before it.

    Examples
    --------
    >>> print(delimited([{"recommender": "=1+1", "mean": -0.5}, {"recommender": "-1", "mean": 0.5}], ","))
    recommender,mean
    '=1+1,-0.5
    -1,0.5
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    for record in records:
        safe = {name: f"'{value}" for name, value in record.items() if isinstance(value, str) and _FORMULA.match(value)}
        writer.writerow(record | safe)
    return out.getvalue().rstrip("\n")


def json_text(content: Any, *, compact: bool = False) -> str:
    """Return strict JSON: NaN and infinities, which JSON lacks, become null."""
    layout: dict[str, Any] = {"separators": (",", ":"), "ensure_ascii": False} if compact else {"indent": 2}
    return json.dumps(_without_nan(content), allow_nan=False, **layout)


def _without_nan(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


@dataclass(frozen=True)
class Cell:
    """One cell of a table: plain text and, where LaTeX needs one, a formula; the best of its column is bold."""

    text: str
    formula: str | None = None
    best: bool = False

    @property
    def markdown(self) -> str:
        """The text in Markdown."""
        text = markdown_text(self.text)
        return f"**{text}**" if self.best else text

    @property
    def latex(self) -> str:
        """The text in LaTeX."""
        if self.formula is not None:
            return self.formula
        text = latex_text(self.text)
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
    labels : int
        How many of the first columns say what a row is about.
    heading : str
        A column that becomes the heading of several tables where one would be too wide.
    spare : tuple of str
        Columns that are left out of a text that would be too wide, starting with the first.

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
    labels: int = 1
    heading: str = ""
    spare: tuple[str, ...] = ()

    def to_text(self, width: int | None = None) -> str:
        """Return aligned columns for a terminal, with the conclusions and notes below them.

        Parameters
        ----------
        width : int, optional
            Greatest length of a line. A table that does not fit becomes one table per heading, then loses its spare
            columns, and is then continued below; sentences are broken between words.

        Examples
        --------
        >>> rows = tuple((Cell("A"), Cell(metric), Cell("0.1000"), Cell("+2.5%")) for metric in ("ap", "rr"))
        >>> table = Table(("", "metric", "mean", "relative"), rows, ({},) * 2, heading="metric", spare=("relative",))
        >>> print(table.to_text(width=15))
        ap
             mean
        A  0.1000
        <BLANKLINE>
        rr
             mean
        A  0.1000
        note: left out
          to fit:
          relative
        """
        shown, left = self._fitted(width)
        notes = (*self.notes, f"left out to fit: {', '.join(left)}") if left else self.notes
        below = [wrapped(sentence, width) for sentence in replace(self, notes=notes)._below()]
        return "\n".join(["\n\n".join(shown), *below])

    def _fitted(self, width: int | None) -> tuple[list[str], list[str]]:
        """Return the texts of the tables that fit, and the columns that are left out of them."""
        if self._fits(width):
            return [aligned(self.header, self._texts())], []
        parts, left = self._by_heading(), list[str]()
        for name in self.spare:
            if all(part._fits(width) for part in parts.values()):
                break
            if name in self.header:
                parts, left = {title: part._without(name) for title, part in parts.items()}, [*left, name]
        texts = {title: "\n\n".join(part._continued(cast("int", width))) for title, part in parts.items()}
        return [f"{title}\n{text}" if title else text for title, text in texts.items()], left

    def _fits(self, width: int | None) -> bool:
        return width is None or len(aligned(self.header, self._texts()).partition("\n")[0]) <= width

    def _by_heading(self) -> dict[str, Table]:
        """Return a table per value of the column that is a heading."""
        if not self.heading or self.heading not in self.header:
            return {"": self}
        at = self.header.index(self.heading)
        titles = dict.fromkeys(row[at].text for row in self.rows)
        own = {title: tuple(row for row in self.rows if row[at].text == title) for title in titles}
        return {title: replace(self, rows=rows)._without(self.heading) for title, rows in own.items()}

    def _without(self, name: str) -> Table:
        return self._columns_at([at for at, own in enumerate(self.header) if own != name])

    def _columns_at(self, places: Sequence[int]) -> Table:
        rows = tuple(tuple(row[at] for at in places) for row in self.rows)
        return replace(self, header=tuple(self.header[at] for at in places), rows=rows)

    def _continued(self, width: int) -> list[str]:
        """Return the columns in as many tables, one below the other, as needed; each begins with the labels."""
        labels, blocks = list(range(self.labels)), [[self.labels]]
        for at in range(self.labels + 1, len(self.header)):
            if self._columns_at([*labels, *blocks[-1], at])._fits(width):
                blocks[-1].append(at)
            else:
                blocks.append([at])
        shown = [self._columns_at([*labels, *block]) for block in blocks]
        return [aligned(part.header, part._texts() if part._fits(width) else part._broken(width)) for part in shown]

    def _broken(self, width: int) -> list[list[str]]:
        """Return the cells with those of the last column, which is too wide, continued in lines below."""
        *before, _ = zip(self.header, *self._texts(), strict=True)
        room = max(width - sum(2 + max(map(len, column)) for column in before), _NARROWEST)
        rows = []
        for *first, last in self._texts():
            lines = wrap(last, room) or [""]
            rows += [[*first, lines[0]], *([*("" for _ in first), line] for line in lines[1:])]
        return rows

    def _below(self) -> list[str]:
        return [*self.conclusions, *(f"note: {note}" for note in self.notes)]

    def to_markdown(self) -> str:
        """Return a pipe table; texts are escaped."""
        header = [markdown_text(name) for name in self.header]
        return markdown(header, [[cell.markdown for cell in row] for row in self.rows])

    def to_latex(self) -> str:
        """Return a tabular with booktabs rules; texts are escaped."""
        header = [latex_text(name) for name in self.header]
        return latex(header, [[cell.latex for cell in row] for row in self.rows])

    def to_html(self) -> str:
        """Return an HTML table, with the notes below it."""
        bold = [[cell.best for cell in row] for row in self.rows]
        return html(self.header, self._texts(), bold, self._below())

    def to_csv(self) -> str:
        """Return the records, separated by commas; text that begins like a formula has an apostrophe before it."""
        return delimited([dict(record) for record in self.records], ",")

    def to_tsv(self) -> str:
        """Return the records, separated by tabs; text that begins like a formula has an apostrophe before it."""
        return delimited([dict(record) for record in self.records], "\t")

    def to_json(self) -> str:
        """Return the records and notes; undefined numbers are null."""
        from importlib.metadata import version

        return json_text({"truerank": version("truerank"), "rows": self.records, "notes": self.notes})

    def _columns(self) -> dict[str, list[Any]]:
        return {name: [record[name] for record in self.records] for name in self.records[0]}

    def _texts(self) -> list[list[str]]:
        return [[cell.text for cell in row] for row in self.rows]


Record = Mapping[str, Any]
"""A row at full precision: values by the name of their column."""


def fact_table(about: str, rows: Mapping[str, object], notes: Sequence[str] = ()) -> Table:
    """Return a table of facts about something: a name and a value per row.

    Examples
    --------
    >>> print(fact_table("Split", {"users": 3}).to_text())
    Split
    users  3
    """
    cells = tuple((Cell(name), Cell(str(value))) for name, value in rows.items())
    return Table((about, ""), cells, (dict(rows),), tuple(notes))


class Tabular(Framed, Generic[Row]):
    """A result with rows, which can be shown as a table; dataclasses of this kind are declared with ``repr=False``.

    Rows are obtained by iterating, by position, or by name. `print` shows the whole table, `repr` a line.
    """

    @abstractmethod
    def to_table(self) -> Table:
        """Return the table that all text forms show."""

    @abstractmethod
    def _names(self) -> Sequence[tuple[str, ...]]:
        """Return the name of each row, in parts."""

    def _rows(self) -> Sequence[Row]:
        """Return what iterating yields; the records of the table unless the class has rows of its own."""
        return cast("Sequence[Row]", self.to_table().records)

    def _named(self, key: Any) -> Row:
        """Return the row with a name; a name of several parts is given as a tuple."""
        parts = key if isinstance(key, tuple) else (key,)
        names = list(self._names())
        if parts not in names:
            known = ", ".join(repr(name[0] if len(name) == 1 else name) for name in names)
            raise InputError(f"the rows of this {type(self).__name__} are {known}, got {key!r}.")
        return self._rows()[names.index(parts)]

    def __len__(self) -> int:
        return len(self._names())

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows())

    @overload
    def __getitem__(self, key: slice) -> Sequence[Row]: ...
    @overload
    def __getitem__(self, key: int | str | tuple[str, ...]) -> Row: ...
    def __getitem__(self, key: Any) -> Any:
        """Return a row by its position, rows by a slice, or a row by its name."""
        if not isinstance(key, Integral | slice):
            return self._named(key)
        try:
            return self._rows()[key]  # type: ignore[index]
        except (IndexError, TypeError):
            rows = counted(len(self), "row", "rows")
            raise InputError(f"this {type(self).__name__} has {rows}, got the position {key!r}.") from None

    def __str__(self) -> str:
        return self.to_table().to_text(get_terminal_size().columns if sys.stdout.isatty() else None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {shorten(self._in_short(), 100, placeholder=' ...')}>"

    def _in_short(self) -> str:
        """Return what `repr` shows, as far as it fits."""
        return ", ".join(" ".join(name) for name in self._names())

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        return self.to_html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the table where IPython shows text."""
        printer.text(str(self))

    def _table_with_bold(self) -> Table:
        """Return the table for forms with bold type; overridden where finding the bold cells takes a while."""
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
        apostrophe before it; TSV is the same.
        """
        return self.to_table().to_csv()

    def to_tsv(self) -> str:
        """Return everything at full precision, tab-separated."""
        return self.to_table().to_tsv()

    def to_json(self) -> str:
        """Return everything at full precision; undefined numbers are null."""
        return self.to_table().to_json()

    def to_dict(self, *, safe: bool = False) -> dict[str, float]:
        """Return the main numbers by name, for experiment trackers.

        Parameters
        ----------
        safe : bool
            Whether names may have letters, digits, ``_``, ``-``, ``.`` and ``/`` only, as MLflow and others demand:
            ``ndcg@10`` becomes ``ndcg_at_10``.

        Returns
        -------
        dict of str to float
            Names begin with that of the row and end with that of the number, as in ``ndcg@10/se``; means and
            differences have the name of the row.

        Examples
        --------
        >>> import truerank as tr
        >>> tr.evaluate(tr.Ranks.from_ranks([1, 2], n=10), "rr@10").to_dict(safe=True)
        {'rr_at_10': 0.75, 'rr_at_10/se': 0.25}
        """
        found: dict[str, float] = {}
        for name, number in self._numbers():
            key = "/".join(_safe(part) if safe else part for part in name)
            if key in found:
                raise InputError(f"two results would have the name {key!r}; rename a recommender or a group.")
            found[key] = number
        return found

    def _numbers(self) -> Iterable[tuple[tuple[str, ...], float]]:
        """Return the main numbers, each with its name in parts: those of the records, by default."""
        for name, record in zip(self._names(), self.to_table().records, strict=True):
            for key, value in record.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    yield (*name, key), value

    def _columns(self) -> dict[str, list[Any]]:
        return self.to_table()._columns()


def _safe(name: str) -> str:
    """Return a part of a name in a form that experiment trackers, and paths, accept."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name.replace("@", "_at_")).strip("_")
    return plain if plain.strip(".") else "_"
