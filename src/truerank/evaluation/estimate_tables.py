"""The table that an evaluation results in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from truerank.corrections.reading import as_metrics
from truerank.display.tables import Cell, Table, Tabular, measured
from truerank.errors import InputError
from truerank.evaluation.estimates import Estimate
from truerank.evaluation.verdicts import found_best
from truerank.metrics.base import Metric
from truerank.notes import by_name

if TYPE_CHECKING:
    from truerank.evaluation.comparisons import Comparison


@dataclass(frozen=True, repr=False)
class Evaluation(Tabular):
    """A table of estimates: a row per recommender, and per group if there are groups; a column per metric.

    `print` it, or convert it to a dataframe, LaTeX, Markdown, TSV or JSON. ``table["A", "ap"]`` is one
    `Estimate`; with groups it is ``table["A", "ap", "new users"]``.

    In HTML, Markdown and LaTeX the best value of a column is bold if `truerank.compare` finds its recommender better
    than every other one, on the same instances and adjusted for all pairs, metrics and groups of the table. Nothing is
    bold in tables from Spark, by the convention of another tool, or read back from a pickle.
    """

    recommenders: tuple[str, ...]
    metrics: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    """Row by row, in the order of `recommenders`, `groups` and `metrics`."""
    notes: tuple[str, ...]
    groups: tuple[str, ...] = ()
    directions: tuple[int, ...] = ()
    """For each metric, whether high values (1) or low ones (-1) are good, or neither (0); if empty, nothing is bold."""
    contest: Callable[[], Comparison] | None = field(default=None, compare=False)
    """Compares the recommenders, when bold type is asked for; it holds their ranks. None: nothing is bold."""

    def __getstate__(self) -> dict[str, Any]:
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return own | {"contest": None}  # a pickle does not carry all ranks

    def __getitem__(self, key: tuple[str, ...] | str) -> Estimate:
        """Return one cell by recommender, metric and group; the recommender may be left out if there is only one."""
        given = key if isinstance(key, tuple) else (key,)
        if len(given) == 1 + bool(self.groups) and len(self.recommenders) == 1:
            given = (self.recommenders[0], *given)
        if len(given) == 1 and len(self.recommenders) > 1:
            raise InputError(f"name the recommender too, as in table[{self.recommenders[0]!r}, {key!r}].")
        cells = dict(zip(self._keys(), self.estimates, strict=True))
        named = (given[0], *(self._column(str(metric)) for metric in given[1:2]), *given[2:])
        if named not in cells:
            grouped = f", groups {self.groups}" if self.groups else ""
            raise InputError(
                f"the table has rows {self.recommenders} and columns {self.metrics}{grouped}, got {key!r}."
            )
        return cells[named]

    def _keys(self) -> Iterator[tuple[str, ...]]:
        """Recommender, metric and group, if there are groups, of each estimate."""
        for name in self.recommenders:
            for group in self.groups or ("",):
                for metric in self.metrics:
                    yield (name, metric, group) if self.groups else (name, metric)

    def _column(self, name: str) -> str:
        """Return the name of a column, which may have an estimator behind the name that was asked for."""
        if name in self.metrics:
            return name
        from truerank.evaluation.list_evaluations import as_list_metric

        named = as_list_metric(name)
        text = str(as_metrics(name)[0] if named is name else named)
        estimated = [column for column in self.metrics if column.startswith(f"{text}~")]
        return estimated[0] if text not in self.metrics and len(estimated) == 1 else text

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return a record per cell: recommender, group, the fields of the estimate, tied_share, low, high."""
        return [
            self._labels(key, cell) | _fields(cell) | cell.confidence_interval(level)._asdict()
            for key, cell in zip(self._keys(), self.estimates, strict=True)
        ]

    def _labels(self, key: tuple[str, ...], cell: Estimate) -> dict[str, Any]:
        if not self.groups:
            return {"recommender": key[0]}
        return {"recommender": key[0], "group": key[2], "weight": cell.n if cell.weight is None else cell.weight}

    def to_table(self) -> Table:
        """Return a row per recommender and group: means with standard errors, instances, and how many have ties.

        Nothing is bold in it: that takes a comparison, which `to_html`, `to_markdown` and `to_latex` make.
        """
        return self._table([False] * len(self.estimates))

    def _table_with_bold(self) -> Table:
        return self._table(self._best)

    def _table(self, best: Sequence[bool]) -> Table:
        header = ("", *(("group",) if self.groups else ()), *self.metrics, "instances", "tied")
        width = len(self.metrics)
        parts = [self.estimates[start : start + width] for start in range(0, len(self.estimates), width)]
        labels = [tuple(map(Cell, (key[0], *key[2:]))) for key in list(self._keys())[::width]]
        rows = tuple(
            (*label, *_shown(part, best[place * width : (place + 1) * width]))
            for place, (label, part) in enumerate(zip(labels, parts, strict=True))
        )
        return Table(header, rows, tuple(self.rows()), self.notes)

    @cached_property
    def _best(self) -> list[bool]:
        """For each estimate, whether it is the best and its recommender is found better than every other one."""
        winners = self._winners()
        return [
            winners.get(key[1:]) == key[0] and self._is_foremost(key, cell.mean)
            for key, cell in zip(self._keys(), self.estimates, strict=True)
        ]

    def _winners(self) -> dict[tuple[str, ...], str | None]:
        """Return who is found better than all others, by metric and group; nothing if they can't be compared."""
        try:
            result = None if self.contest is None or len(self.recommenders) < 2 else self.contest()
        except InputError:  # such as other instances, or other candidates: each value stands for itself
            return {}
        if result is None:
            return {}
        groups = result.groups or ("",)
        return {
            (metric, group) if group else (metric,): found_best(result, metric, group)
            for metric in result.metrics
            for group in groups
        }

    def _is_foremost(self, key: tuple[str, ...], mean: float) -> bool:
        """Whether no other value is better: where values are biased, the one found better may show a worse one."""
        sign = self.directions[self.metrics.index(key[1])] if self.directions else 0
        rivals = [cell.mean for other, cell in zip(self._keys(), self.estimates, strict=True) if other[1:] == key[1:]]
        return sign != 0 and all(sign * mean >= sign * rival for rival in rivals)

    def to_dict(self, *, safe: bool = False) -> dict[str, float]:
        """Return the means by name, and their standard errors with ``/se`` behind it, for experiment trackers.

        Parameters
        ----------
        safe : bool
            Whether names have letters, digits, ``_``, ``-``, ``.`` and ``/`` only, as MLflow and others demand:
            ``ndcg@10`` becomes ``ndcg_at_10``.

        Returns
        -------
        dict of str to float
            Names begin with the recommender if there are several, and with the group if there are groups.

        Examples
        --------
        >>> import truerank as tr
        >>> tr.evaluate(tr.Ranks.from_ranks([1, 2], n=10), "rr@10").to_dict(safe=True)
        {'rr_at_10': 0.75, 'rr_at_10/se': 0.25}
        """
        several = len(self.recommenders) > 1
        found: dict[str, float] = {}
        for (name, metric, *group), cell in zip(self._keys(), self.estimates, strict=True):
            parts = [*((name,) if several else ()), *group, metric]
            key = "/".join(_safe(part) if safe else part for part in parts)
            if key in found:
                raise InputError(f"two results would have the name {key!r}; rename a recommender or a group.")
            found |= {key: cell.mean, f"{key}/se": cell.standard_error}
        return found


def _safe(name: str) -> str:
    """Return a part of a name that experiment trackers accept, which is also a part of a path."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name.replace("@", "_at_")).strip("_")
    return plain if plain.strip(".") else "_"


def _shown(part: Sequence[Estimate], best: Sequence[bool]) -> list[Cell]:
    means = [
        measured(cell.mean, cell.standard_error, best=first)
        if cell.exact_range is None
        else Cell(f"{cell.mean:.4f} {cell.error_text()}", best=first)
        for cell, first in zip(part, best, strict=True)
    ]
    return [*means, Cell(str(part[0].n_instances)), Cell(f"{part[0].tied_share:.1%}")]


def _fields(cell: Estimate) -> dict[str, Any]:
    # the first is among the notes, the second a label, the others say how the interval was found
    hidden = ("caveats", "weight", "n_users", "units", "hidden_error", "exact_range", "attainable")
    record = {field.name: getattr(cell, field.name) for field in fields(cell) if field.name not in hidden}
    return record | {"tied_share": cell.tied_share, "determined": cell.determined}


def directions(metrics: Sequence[Metric]) -> tuple[int, ...]:
    """Return 1 for each metric of which more is better, and -1 for the others."""
    return tuple(-1 if metric.estimated.lower_is_better else 1 for metric in metrics)


def table_notes(
    ranks: Mapping[str, Sequence[str]], rows: Mapping[str, list[Estimate]], groups: Sequence[str]
) -> tuple[str, ...]:
    """Return the notes of ranks and estimates once; with several recommenders each names those that it is about."""
    return by_name({name: [*own, *_cell_notes(rows[name], groups)] for name, own in ranks.items()})


def _cell_notes(cells: Sequence[Estimate], groups: Sequence[str]) -> tuple[str, ...]:
    """Return the notes of estimates, group by group; those on some of the groups name them."""
    width = len(cells) // max(len(groups), 1)
    parts = {name: cells[at * width : (at + 1) * width] for at, name in enumerate(groups)} or {"": cells}
    general = dict.fromkeys(note for cell in cells for note in cell.caveats)
    own = {name: [note for cell in part for note in cell.notes if note not in general] for name, part in parts.items()}
    return (*general, *by_name(own))
