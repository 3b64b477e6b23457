"""Write the page on the conventions of other tools to docs/conventions.md: ``python docs/make_conventions.py``."""

import math
from pathlib import Path

from truerank.core.conventions import CONVENTIONS, Convention
from truerank.core.tables import markdown
from truerank.formats.writing import write_text

TARGET = Path(__file__).with_name("conventions.md")
TOP = """# Conventions of other tools

Two tools that report "MAP@10" may divide by different numbers, average differently and order equal scores differently.
With `convention=` you get the number that a tool would print, to match published results; without it you get
[the definitions of truerank](definitions.md). `docs/make_conventions.py` writes this page from the table that the code
uses.

```python
>>> import truerank as tr
>>> run = {"ann": {"a": 3.0, "b": 2.0, "c": 2.0}, "bob": {"c": 1.0, "b": 0.5, "d": 0.1}}
>>> truth = {"ann": ["b", "d", "e", "f"], "bob": ["b"], "eve": ["a"]}
>>> for tool in ("trec_eval", "ir-measures", "rectools"):
...     ranks = tr.read_lists(run, truth, convention=tool)
...     table = tr.evaluate(ranks, ["ap@3", "ndcg@3"], convention=tool)
...     print(f"{tool:12}", *(f"{cell.mean:.4f}" for cell in table.estimates), len(ranks))
trec_eval    0.2917 0.4328 2
ir-measures  0.1944 0.2885 3
rectools     0.2083 0.1974 3
>>> ranks = tr.read_lists(run, truth)
>>> print("truerank    ", *(f"{tr.estimate(ranks, metric).mean:.4f}" for metric in ("ap@3", "ndcg@3")), len(ranks))
truerank     0.2130 0.2988 3

```

`tr.read_lists(..., convention=...)` orders equal scores and treats users without a list as the tool does;
`tr.evaluate(..., convention=...)` computes its metrics. Ranks from `tr.rank` need only the second. Where their scores
tie, a note says that the tool's number lies between those for `ties="optimistic"` and `ties="pessimistic"`. On the
command line: `truerank evaluate run.trec --truth qrels.trec -m ap@10 --convention trec_eval`.

## What differs

Rows are what you ask for; cells are what the tool computes, in [our text forms](definitions.md): *same* if it is our
definition, nothing if the tool does not have it. These forms also work without a convention.
"""
END = """*Weighted* means are not means over users: implicit divides all hits by the sum of min(|R|, k) over users, and
RecBole's GAUC weights users by their relevant items. If lists were cut, metrics without a cut-off are computed over the
listed items, as the tools do.

## What is refused

"""
AFTER = """A metric that a tool does not have is an error that lists those it has.

Tests compare the values with the tools themselves, on random data with equal scores, users without relevant items,
short and missing lists or, for implicit, RecBole and Cornac, users with few candidates. Cornac stops with an error if a
user has fewer candidates than the largest cut-off. RecBole rounds to four digits unless `metric_decimal_place` says
otherwise. Versions: pytrec-eval-terrier 0.5.11, ir-measures 0.4.3, ranx 0.3.21, RecTools 0.19.0, scikit-learn 1.9.1,
implicit 0.7.3, LensKit 2025.8.1, RecBole 1.2.1, Cornac 3.0.1.
"""
UNLISTED = {"drop": "left out", "miss": "0", None: ""}
ORDERS = {"tie": "expected value", "listed": "as listed", "id": "larger id first", "arbitrary": "arbitrary"}


def page() -> str:
    """Return the whole page."""
    return "\n".join([TOP, table(), END + refused(), AFTER])


def table() -> str:
    """Return a row per metric and rule, and a column per tool."""
    tools = list(CONVENTIONS.values())
    metrics = dict.fromkeys(metric for tool in tools for metric in tool.metrics)
    rows = [(f"`{metric}`", *(cell(tool, metric) for tool in tools)) for metric in metrics]
    rules = [
        ("users without relevant items", *(zero_or("left out", tool.without_relevant) for tool in tools)),
        ("users without a list", *(UNLISTED[tool.unlisted] for tool in tools)),
        ("equal scores", *(ORDERS[tool.equal_scores] for tool in tools)),
    ]
    return markdown(("", *CONVENTIONS), [*rows, *rules]).replace("---:", "---") + "\n"


def cell(tool: Convention, metric: str) -> str:
    """Return what a tool computes for a metric."""
    if metric not in tool.metrics:
        return ""
    found = tool.metrics[metric]
    words = ["same" if found.text == metric else f"`{found.text}`"]
    words += ["weighted"] if found.weights else []
    words += ["ties lose"] if found.ties == "pessimistic" else []
    return ", ".join(words)


def zero_or(otherwise: str, value: float) -> str:
    """Return a value, or other words for NaN."""
    return otherwise if math.isnan(value) else f"{value:g}"


def refused() -> str:
    """Return a line per metric that a tool has, but that ranks do not determine."""
    pairs = [(tool.name, metric, why) for tool in CONVENTIONS.values() for metric, why in tool.refused.items()]
    return "\n".join(f"- `{metric}` of {name}: {why}." for name, metric, why in pairs) + "\n"


if __name__ == "__main__":
    write_text(TARGET, page())
