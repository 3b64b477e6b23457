"""Cells to text, Markdown, LaTeX, HTML, CSV, TSV and JSON. The caller decides what is shown."""

import csv
import io
import json
import math
from collections.abc import Sequence
from html import escape
from typing import Any

Rows = Sequence[Sequence[str]]


def text(header: Sequence[str], rows: Rows) -> str:
    """Align columns for a terminal: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *rest = [(cell, width) for cell, width in zip(cells, widths, strict=True)]
        return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)])

    return "\n".join(line(cells) for cells in (header, *rows))


def markdown(header: Sequence[str], rows: Rows) -> str:
    """Return a pipe table."""
    rule = ["---", *("---:" for _ in header[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows))


def latex(header: Sequence[str], rows: Rows) -> str:
    """Return a tabular with booktabs rules."""
    lines = [" & ".join(_escape(cell) for cell in cells) + r" \\" for cells in (header, *rows)]
    columns = "l" + "r" * (len(header) - 1)
    body = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:]]
    return "\n".join([*body, r"\bottomrule", r"\end{tabular}"])


def _escape(cell: str) -> str:
    if cell.startswith("$"):
        return cell
    for mark in "\\&%$#_{}":
        cell = cell.replace(mark, {"\\": r"\textbackslash "}.get(mark, "\\" + mark))
    return cell


def html(header: Sequence[str], rows: Rows, bold: Sequence[Sequence[bool]], below: Sequence[str]) -> str:
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
    """Return records, one per line, with a header line."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue().rstrip("\n")


def json_text(content: Any) -> str:
    """Return strict JSON: NaN and infinities, which JSON lacks, become null."""
    return json.dumps(_without_nan(content), indent=2, allow_nan=False)


def _without_nan(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
