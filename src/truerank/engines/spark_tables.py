"""What `truerank.evaluate` and `truerank.compare` do with Spark dataframes of ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from truerank.corrections.assumptions import Assumption
from truerank.corrections.recommended import recommended
from truerank.engines.spark_differences import differences as differences
from truerank.engines.spark_groups import COLUMN, Grouping
from truerank.engines.spark_parts import batch_seed, check_frames, check_separate, fixed_seed, merged
from truerank.errors import InputError
from truerank.evaluation import evaluations
from truerank.evaluation.estimate_tables import Evaluation, directions, table_notes
from truerank.evaluation.estimates import Estimate
from truerank.evaluation.group_parts import split_by, values_by_part
from truerank.evaluation.per_instance import Ties, check_ties, checked_terms, untied
from truerank.evaluation.weighted_parts import WeightedPart
from truerank.metrics.base import Metric
from truerank.ranking.rank_rows import fields_from_rows
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import Rng

if TYPE_CHECKING:
    import pyarrow as pa

Key = tuple[str, int]
"""The name of a group and the place of a metric."""
Cells = dict[Key, Estimate]
Step = Callable[["pa.Table"], dict[Key, Any]]


def evaluate(
    ranks: Mapping[str, Any],
    metrics: Sequence[Metric],
    *,
    by: Any,
    ties: Ties,
    rng: Rng,
    assume: Assumption,
    convention: str | None,
) -> Evaluation:
    """Return the table of `truerank.evaluate`; no values of single instances are collected."""
    check_frames(ranks)
    if convention is not None:
        raise InputError("on Spark there is no `convention`; collect the ranks with tr.Ranks.from_spark first.")
    check_ties(ties)
    grouping, seed = Grouping.of(by), fixed_seed(rng)
    options = (tuple(metrics), grouping.for_tasks(), ties, seed)
    step = _item_step(*options) if grouping.of_items else _step(*options, assume)
    parts = {name: merged(grouping.joined(frame), step) for name, frame in ranks.items()}
    found = {name: {key: part.estimate() for key, part in own.items()} for name, own in parts.items()}
    groups = grouping.in_order(group for cells in found.values() for group, _ in cells)
    names = [_column(found.values(), place, metric) for place, metric in enumerate(metrics)]
    rows = {name: _row(cells, groups, names, ties) for name, cells in found.items()}
    shown = tuple(groups) if grouping.is_given else ()
    notes = table_notes(dict.fromkeys(ranks, ()), rows, shown)
    estimates = tuple(cell for row in rows.values() for cell in row)
    return Evaluation(tuple(ranks), tuple(names), estimates, notes, shown, directions(metrics))


def _step(metrics: tuple[Metric, ...], grouping: Grouping, ties: Ties, seed: int, assume: Assumption) -> Step:
    """Return the function that evaluates a batch of ranks."""

    def step(table: pa.Table) -> dict[Key, Any]:
        ranks = _ranks(table, metrics)
        found = evaluations.evaluate(
            ranks, metrics, by=grouping.within(table), ties=ties, rng=batch_seed(seed, ranks), assume=assume
        )
        places = [(group, place) for group in found.groups or ("",) for place in range(len(metrics))]
        return {key: _Plain(cell) for key, cell in zip(places, found.estimates, strict=True)}

    return step


def _item_step(metrics: tuple[Metric, ...], grouping: Grouping, ties: Ties, seed: int) -> Step:
    """Return the function that evaluates groups of items in a batch of ranks."""

    def step(table: pa.Table) -> dict[Key, Any]:
        ranks = _ranks(table, metrics)
        broken = untied({"": ranks}, ties, batch_seed(seed, ranks))[""]
        parts = [part for part in split_by(broken, grouping.groups) if part.rows.size]
        found: dict[Key, Any] = {}
        for place, metric in enumerate(recommended(one, ranks) for one in metrics):
            values = values_by_part(broken, checked_terms(broken, metric), parts)
            for own, part in zip(values, parts, strict=True):
                found[part.name, place] = WeightedPart.of(own, part.weights, ranks[part.rows], metric, ties, part)
        return found

    return step


@dataclass(frozen=True)
class _Plain:
    """An estimate that merges as it is."""

    found: Estimate

    def __add__(self, other: _Plain) -> _Plain:
        return _Plain(self.found + other.found)

    def estimate(self) -> Estimate:
        return self.found


def _ranks(table: pa.Table, metrics: Sequence[Metric]) -> Ranks:
    """Return the ranks of a batch, which must be enough for the metrics."""
    ranks = Ranks(**fields_from_rows(table.select([name for name in table.column_names if name != COLUMN])))
    for metric in metrics:
        check_separate(recommended(metric, ranks))
    return ranks


def _column(found: Iterable[Cells], place: int, metric: Metric) -> str:
    """Return the name of a metric, with the estimator behind it that all recommenders took."""
    names = {cell.metric for cells in found for (_, at), cell in cells.items() if at == place}
    return names.pop() if len(names) == 1 else str(metric)


def _row(cells: Cells, groups: Sequence[str], names: Sequence[str], ties: Ties) -> list[Estimate]:
    """Return the estimates of a recommender, also of groups that it does not have."""
    nothing = [Estimate(name, math.nan, math.nan, 0, ties=ties) for name in names]
    return [cells.get((group, place), nothing[place]) for group in groups for place in range(len(names))]
