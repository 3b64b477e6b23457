"""Several metrics of one or several recommenders in one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tqdm import tqdm

from truerank.corrections.reading import AnyMetric, as_metrics
from truerank.display.tables import Cell, Table, Tabular, measured
from truerank.errors import InputError
from truerank.evaluation.estimates import Estimate, summary
from truerank.evaluation.per_instance import Ties, checked_terms, sums, untied
from truerank.notes import by_name
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import Rng


@dataclass(frozen=True)
class Evaluation(Tabular):
    """A table of estimates: a row per recommender, a column per metric.

    `print` it, or convert it to a dataframe, LaTeX, Markdown, TSV or JSON. ``table["A", "ap"]`` is one
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

    def to_table(self) -> Table:
        """Return a row per recommender: means and standard errors, instances, and the share of them with ties."""
        header = ("", *self.metrics, "instances", "tied")
        width = len(self.metrics)
        parts = [self.estimates[start : start + width] for start in range(0, len(self.estimates), width)]
        rows = [(Cell(name), *_shown(part)) for name, part in zip(self.recommenders, parts, strict=True)]
        return Table(header, tuple(rows), tuple(self.rows()), self.notes)


def _shown(part: Sequence[Estimate]) -> list[Cell]:
    means = [measured(cell.mean, cell.standard_error) for cell in part]
    return [*means, Cell(str(part[0].n_instances)), Cell(f"{part[0].tied_share:.1%}")]


def _fields(cell: Estimate) -> dict[str, Any]:
    record = asdict(cell) | {"tied_share": cell.tied_share}
    del record["caveats"]  # text for the reader, which is among the notes
    return record


def evaluate(
    ranks: Ranks | Mapping[str, Ranks],
    metrics: AnyMetric | Iterable[AnyMetric],
    *,
    ties: Ties = "expected",
    rng: Rng = None,
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
    broken = untied(named, ties, rng)
    work = [(name, metric, checked_terms(broken[name], metric)) for name in named for metric in chosen]
    cells = []
    with tqdm(work, desc="metrics", disable=None if progress else True, delay=1.0, leave=False) as bar:
        for name, metric, terms in bar:
            cells.append(summary(sums(broken[name], terms), named[name], metric, ties))
    return Evaluation(tuple(named), tuple(map(str, chosen)), tuple(cells), _notes(named, cells))


def _notes(named: Mapping[str, Ranks], cells: Sequence[Estimate]) -> tuple[str, ...]:
    """Return all notes once; with several recommenders each names those that it is about."""
    width = len(cells) // len(named)
    return by_name(
        {
            name: [*ranks.notes, *(note for cell in cells[row * width : (row + 1) * width] for note in cell.notes)]
            for row, (name, ranks) in enumerate(named.items())
        }
    )
