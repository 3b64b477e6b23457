"""Cells to text, Markdown, LaTeX, HTML, CSV, TSV and JSON. The caller decides what is shown."""

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from html import escape
from typing import Any

Rows = Sequence[Sequence[str]]

_LINE_END = re.compile(r"\s*[\r\n\v\f\x85\u2028\u2029]\s*")
# what Markdown would take for markup; an underscore inside a word is none
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


def text(header: Sequence[str], rows: Rows) -> str:
    """Align columns for a terminal: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *rest = [(cell, width) for cell, width in zip(cells, widths, strict=True)]
        return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)])

    return "\n".join(line(cells) for cells in (header, *rows))


def markdown_text(text: str) -> str:
    r"""Return text that Markdown shows as it is, in a cell of a table.

    Examples
    --------
    >>> print(markdown_text("<b>x|y</b> *1*, als_64"))
    &lt;b&gt;x\|y&lt;/b&gt; \*1\*, als_64
    """
    return _MARKUP.sub(r"\\\g<0>", escape(_LINE_END.sub(" ", text), quote=False))


def markdown(header: Sequence[str], rows: Rows) -> str:
    """Return a pipe table of cells that are Markdown."""
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


def latex(header: Sequence[str], rows: Rows) -> str:
    """Return a tabular of cells that are LaTeX, with booktabs rules."""
    lines = [" & ".join(cells) + r" \\" for cells in (header, *rows)]
    # a line must not begin with what could be an argument of the line end before it
    safe = ["{}" + line if line.startswith(("[", "*")) else line for line in lines]
    columns = "l" + "r" * (len(header) - 1)
    body = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", safe[0], r"\midrule", *safe[1:]]
    return "\n".join([*body, r"\bottomrule", r"\end{tabular}"])


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
    writer.writerows({name: _no_formula(value) for name, value in record.items()} for record in records)
    return out.getvalue().rstrip("\n")


def _no_formula(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def json_text(content: Any) -> str:
    """Return strict JSON: NaN and infinities, which JSON lacks, become null."""
    return json.dumps(_without_nan(content), indent=2, allow_nan=False)


def _without_nan(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
