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
END = """*Weighted* means are not means over users: implicit divides all hits by the sum of min(|R|, k) over users,
RecBole's GAUC weights users by their relevant items, and PyKEEN's adjusted index is a ratio of means, which weights
triples by their irrelevant candidates. If lists were cut, metrics without a cut-off are computed over the listed items,
as the tools do.

## Link prediction: OGB, TGB, PyKEEN

These tools take the score of one true candidate and the scores of others, which `tr.Ranks.from_scores` takes as they
are. Where scores tie, they compute the metric *at the mean* of the best and the worst rank. That is not the mean of the
metric over the orders of the ties, which truerank shows: an item that ties with one other item has rank 1 or 2 with
equal chance, so its mean reciprocal rank is 0.75 and its Hits@1 is 0.5; at the mean rank 1.5 they are 0.67 and 0.

```python
>>> import numpy as np
>>> positive, negative = np.array([0.5, 0.5]), np.array([[0.5, 0.1, 0.2], [0.9, 0.5, 0.5]])
>>> ranks = tr.Ranks.from_scores(positive, negative, n=2_500_604)
>>> for rules in ({}, {"convention": "ogb"}):
...     table = tr.evaluate(ranks, ["rr", "hr@1", "hr@3"], **rules)
...     print(*(f"{cell.mean:.4f}" for cell in table.estimates))
0.5556 0.2500 0.8333
0.5000 0.0000 1.0000

```

- `ogb` stands for the data sets with candidates per edge (ogbl-citation2, ogbl-wikikg2, ogbl-biokg), `ogb-pool` for
  those with one pool for all (ogbl-ppa, ogbl-collab, ogbl-ddi): a hit is a score *above* that of the k-th best of the
  pool, so ties lose. For the former OGB's code for NumPy arrays raises a TypeError (snap-stanford/ogb#503); its numbers
  are those for tensors.
- `tgb` has the formulas of OGB.
- `pykeen` is its default, "realistic"; with `ties="optimistic"` or `ties="pessimistic"` you get its other two. It knows
  random orders, for `amri` and z-scores, for realistic ranks only.
- With `n=` the ranks are sampled ones, and these tools still get their number, which is that of the sample; a note says
  that it is biased. Without `convention=` you can correct it, e.g. `rr~bv(0.1)`.

## What is refused

"""
AFTER = """A metric that a tool does not have is an error that lists those it has.

Tests compare the values with the tools themselves, on random data with equal scores, users without relevant items,
short and missing lists or, for implicit, RecBole and Cornac, users with few candidates. Cornac stops with an error if a
user has fewer candidates than the largest cut-off. RecBole rounds to four digits unless `metric_decimal_place` says
otherwise. Versions: pytrec-eval-terrier 0.5.11, ir-measures 0.4.3, ranx 0.3.21, RecTools 0.19.0, scikit-learn 1.9.1,
implicit 0.7.3, LensKit 2025.8.1, RecBole 1.2.1, Cornac 3.0.1, OGB 1.3.6, TGB 2.3.0, PyKEEN 1.11.1.
"""
TIES = {"pessimistic": "ties lose", "mean rank": "at the mean rank"}
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
    words += [TIES[found.ties]] if found.ties in TIES else []
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
