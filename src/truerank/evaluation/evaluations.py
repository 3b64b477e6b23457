"""Several metrics of one or several recommenders in one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from tqdm import tqdm

from truerank.display import render
from truerank.errors import InputError
from truerank.evaluation.estimates import Estimate, estimate
from truerank.evaluation.per_instance import Ties, check_depth
from truerank.metrics.names import metrics as as_metrics
from truerank.metrics.plain import Metric, Term
from truerank.ranking.ranks import Ranks


@dataclass(frozen=True)
class Evaluation:
    """A table of estimates: a row per recommender, a column per metric.

    `print` it, or take it on as a dataframe, LaTeX, Markdown or JSON. ``table["A", "ap"]`` is one
    `Estimate`.
    """

    recommenders: tuple[str, ...]
    metrics: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    """Row by row, in the order of `recommenders` and `metrics`."""
    notes: tuple[str, ...]

    def __getitem__(self, key: tuple[str, str] | str) -> Estimate:
        """Return one cell by recommender and metric, or by metric if there is one recommender."""
        row, column = key if isinstance(key, tuple) else (self.recommenders[0], key)
        if not isinstance(key, tuple) and len(self.recommenders) > 1:
            raise InputError(f"name the recommender too, as in table[{row!r}, {column!r}].")
        name = str(as_metrics(column)[0])
        if row not in self.recommenders or name not in self.metrics:
            raise InputError(f"the table has rows {self.recommenders} and columns {self.metrics}, got {key!r}.")
        return self.estimates[self.recommenders.index(row) * len(self.metrics) + self.metrics.index(name)]

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return a record per cell: recommender, the fields of the estimate, tied_share, low, high."""
        names = [name for name in self.recommenders for _ in self.metrics]
        return [
            {"recommender": name, **_fields(cell)} | cell.confidence_interval(level)._asdict()
            for name, cell in zip(names, self.estimates, strict=True)
        ]

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return the records of `rows` as a dataframe of the asked-for library."""
        import narwhals as nw

        records = self.rows()
        columns = {name: [record[name] for record in records] for name in records[0]}
        return nw.from_dict(columns, backend=backend).to_native()

    def to_markdown(self) -> str:
        """Return a Markdown table of means and standard errors."""
        return render.markdown(*self._cells("{:.4f} ± {:.4f}"))

    def to_latex(self) -> str:
        """Return a LaTeX tabular of means and standard errors."""
        return render.latex(*self._cells(r"${:.4f} \pm {:.4f}$"))

    def to_json(self) -> str:
        """Return everything at full precision; undefined numbers are null."""
        return render.json_text({"truerank": version("truerank"), "rows": self.rows(), "notes": self.notes})

    def to_tsv(self) -> str:
        """Return the records of `rows` at full precision, tab-separated."""
        return render.tsv(self.rows())

    def __str__(self) -> str:
        lines = [render.text(*self._cells("{:.4f} ± {:.4f}"))]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _cells(self, form: str) -> tuple[list[str], list[list[str]]]:
        header = ["", *self.metrics, "instances", "tied"]
        width = len(self.metrics)
        rows = []
        for at, name in enumerate(self.recommenders):
            cells = self.estimates[at * width : (at + 1) * width]
            texts = [form.format(cell.mean, cell.standard_error) for cell in cells]
            rows.append([name, *texts, str(cells[0].n_instances), f"{cells[0].tied_share:.1%}"])
        return header, rows


def _fields(cell: Estimate) -> dict[str, Any]:
    known = asdict(cell) | {"tied_share": cell.tied_share}
    del known["caveats"]  # text for the reader, which stands among the notes
    return known


def evaluate(
    ranks: Ranks | Mapping[str, Ranks],
    metrics: str | Metric | Term | Iterable[str | Metric | Term],
    *,
    ties: Ties = "expected",
    rng: int | None = None,
    progress: bool = False,
) -> Evaluation:
    """Return a table of metrics for one recommender or several.

    Parameters
    ----------
    ranks : Ranks, or dict of name to Ranks
        One recommender, or several by name.
    metrics : list of str, Metric or function (or one of them)
        For instance ``["ndcg@10", "recall@10", "auc"]``.
    ties : {"expected", "optimistic", "pessimistic", "random"}
        See `truerank.evaluation.per_instance`.
    rng : int, optional
        Seed for ``ties="random"``: one order of the ties of a recommender serves all metrics.
    progress : bool
        Whether to show a progress bar, on a terminal only, when it takes more than a second.

    Examples
    --------
    >>> import truerank as tr
    >>> table = tr.evaluate(
    ...     {"A": tr.Ranks.from_ranks([100] * 5, n=10_000),
    ...      "C": tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000)},
    ...     ["auc", "ap"],
    ... )
    >>> print(table)
                   auc               ap  instances  tied
    A  0.9901 ± 0.0000  0.0100 ± 0.0000          5  0.0%
    C  0.8431 ± 0.0980  0.1014 ± 0.0997          5  0.0%
    note: only 5 instances: the interval rests on the t distribution and is rough
    >>> round(table["C", "ap"].mean, 3)
    0.101
    """
    named = {"recommender": ranks} if isinstance(ranks, Ranks) else dict(ranks)
    chosen = as_metrics(metrics)
    if not named or not chosen:
        raise InputError("evaluate needs at least one recommender and one metric.")
    pairs = [(places, metric) for places in named.values() for metric in chosen]
    for places, metric in pairs:
        check_depth(places, metric)
    seed = np.random.SeedSequence().entropy if rng is None else rng
    with tqdm(pairs, desc="metrics", disable=None if progress else True, delay=1.0, leave=False) as bar:
        cells = tuple(estimate(places, metric, ties=ties, rng=np.random.default_rng(seed)) for places, metric in bar)
    notes = [note for places in named.values() for note in places.notes]
    notes += [note for cell in cells for note in cell.notes]
    return Evaluation(tuple(named), tuple(map(str, chosen)), cells, tuple(dict.fromkeys(notes)))
