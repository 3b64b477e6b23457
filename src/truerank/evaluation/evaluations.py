"""Several metrics of one or several recommenders in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import Any, Literal, get_args

import numpy as np
from tqdm import tqdm

from truerank.corrections.reading import AnyMetric, as_metrics
from truerank.display import render
from truerank.errors import InputError
from truerank.evaluation.estimates import Estimate, check_assumption, range_of_estimated, summary
from truerank.evaluation.intervals import Assumption
from truerank.evaluation.per_instance import Ties, checked_terms, sums
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import Rng


@dataclass(frozen=True)
class Evaluation:
    """A table of estimates: a row per recommender, a column per metric.

    `print` it, or take it on as a dataframe, LaTeX, Markdown or JSON. ``table["A", "ap"]`` is one
    `Estimate`. Metrics are shown with their standard error; corrected ones with the 95 % interval of the exact metric.
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
        """Return a record per cell: recommender, the fields of the estimate, tied_share, determined, low, high.

        `low` and `high` are the 95 % `Estimate.confidence_interval` of the exact metric, unless another level is asked
        for. `standard_error` is that of the mean around its own expectation, which is biased for a corrected metric.
        """
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
        """Return a Markdown table of means and their errors."""
        return render.markdown(*self._cells())

    def to_latex(self) -> str:
        """Return a LaTeX tabular of means and their errors."""
        return render.latex(*self._cells(_in_latex))

    def to_json(self) -> str:
        """Return everything at full precision; undefined numbers are null."""
        return render.json_text({"truerank": version("truerank"), "rows": self.rows(), "notes": self.notes})

    def to_tsv(self) -> str:
        """Return the records of `rows` at full precision, tab-separated."""
        return render.tsv(self.rows())

    def __str__(self) -> str:
        lines = [render.text(*self._cells())]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _cells(self, form: Callable[[str], str] = str) -> tuple[list[str], list[list[str]]]:
        header = ["", *self.metrics, "instances", "tied"]
        width = len(self.metrics)
        rows = []
        for at, name in enumerate(self.recommenders):
            cells = self.estimates[at * width : (at + 1) * width]
            texts = [form(f"{cell.mean:.4f} {cell.error_text()}") for cell in cells]
            rows.append([name, *texts, str(cells[0].n_instances), f"{cells[0].tied_share:.1%}"])
        return header, rows


def _in_latex(text: str) -> str:
    return f"${text.replace('±', chr(92) + 'pm')}$" if "±" in text else text


def _fields(cell: Estimate) -> dict[str, Any]:
    # caveats are text for the reader, which is among the notes
    kept = [field.name for field in fields(cell) if field.name not in ("caveats", "exact_range")]
    return {name: getattr(cell, name) for name in kept} | {"tied_share": cell.tied_share, "determined": cell.determined}


def evaluate(
    ranks: Ranks | Mapping[str, Ranks],
    metrics: AnyMetric | Iterable[AnyMetric],
    *,
    ties: Ties = "expected",
    rng: Rng = None,
    assume: Assumption = "nothing",
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
    rng : int or numpy.random.Generator, optional
        Seed for ``ties="random"``: one order of the ties of a recommender serves all metrics.
    assume : {"nothing", "falling"}
        What the intervals of corrected metrics may assume of the exact ranks: nothing, or that among the top tenth of
        the candidates a deeper rank is never more likely (for the first relevant item of an instance).
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
    check_assumption(assume)
    if ties not in get_args(Ties):
        raise InputError(f"`ties` must be one of {', '.join(map(repr, get_args(Ties)))}, got {ties!r}.")
    if ties != "expected":
        seed = rng if isinstance(rng, int) else int(np.random.default_rng(rng).integers(2**63))
        broken = {name: one.break_ties(ties, rng=seed) for name, one in named.items()}
    else:
        broken = named
    work = [(name, metric, checked_terms(broken[name], metric)) for name in named for metric in chosen]
    cells, known = [], {}
    with tqdm(work, desc="metrics", disable=None if progress else True, delay=1.0, leave=False) as bar:
        for name, metric, terms in bar:
            found = sums(broken[name], terms)
            # corrections of one metric share what is known of the exact one
            key = (name, metric.estimated is metric, str(metric.estimated))
            if key not in known:
                known[key] = range_of_estimated(broken[name], metric, assume)
            cells.append(summary(found, named[name], metric, ties, known[key]))
    return Evaluation(tuple(named), tuple(map(str, chosen)), tuple(cells), _notes(named, cells))


def _notes(named: Mapping[str, Ranks], cells: Sequence[Estimate]) -> tuple[str, ...]:
    """Return all notes once; with several recommenders each names those that it is about."""
    width = len(cells) // len(named)
    about: dict[str, list[str]] = {}
    for row, (name, ranks) in enumerate(named.items()):
        own = [*ranks.notes, *(note for cell in cells[row * width : (row + 1) * width] for note in cell.notes)]
        for note in dict.fromkeys(own):
            about.setdefault(note, []).append(name)
    return tuple(note if len(names) == len(named) else f"{', '.join(names)}: {note}" for note, names in about.items())
