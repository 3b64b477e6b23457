"""What `truerank.compare` does with Spark dataframes of ranks: they are joined by id, and sums are merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.corrections.assumptions import Assumption
from truerank.engines.spark_groups import Grouping
from truerank.engines.spark_parts import batch_seed, check_frames, check_separate, fixed_seed, merged
from truerank.errors import InputError
from truerank.evaluation.differences import bound_notes
from truerank.evaluation.group_parts import parts_by
from truerank.evaluation.matching import Unmatched, matched
from truerank.evaluation.merged_blocks import MergedBlock
from truerank.evaluation.paired_differences import Compared, Task, blocks_of
from truerank.evaluation.paired_tests import LikelihoodTest, PairedTest
from truerank.evaluation.per_instance import Ties, untied
from truerank.evaluation.runs import Entrant, shared_name
from truerank.formats.ids import shown
from truerank.metrics.base import Metric
from truerank.notes import counted
from truerank.ranking.rank_rows import fields_from_rows
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import Rng

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Parts = dict[Any, Any]
"""Blocks by the name of the group and the place of the metric; instances left out by the place of the recommender."""


def differences(
    ranks: Mapping[str, Any],
    metrics: Sequence[Metric],
    task: Task,
    test: PairedTest,
    *,
    by: Any,
    unmatched: Unmatched,
    ties: Ties,
    rng: Rng,
    assume: Assumption,
) -> Compared:
    """Return all differences before p-values are adjusted."""
    check_frames(ranks)
    if not isinstance(test, LikelihoodTest):
        raise InputError(
            "on Spark the test must be 'likelihood'; collect the ranks with tr.Ranks.from_spark for others."
        )
    grouping, options = Grouping.of(by), _Options(task, tuple(metrics), unmatched, ties, assume, fixed_seed(rng))
    step = _step(options, grouping.for_tasks())
    found: Parts = merged(grouping.joined(_together(list(ranks.values()))), step)
    blocks = {key: value for key, value in found.items() if isinstance(key, tuple)}
    if not blocks:
        raise InputError(f"the recommenders {', '.join(map(repr, ranks))} have no instance in common.")
    groups = grouping.in_order(group for group, _ in blocks)
    named = replace(task, metrics=tuple(blocks[groups[0], place].name for place in range(len(metrics))))
    results = [
        blocks[group, place].difference(named, group, place, pair)
        for group in groups
        for place in range(len(metrics))
        for pair in range(len(task.pairs))
    ]
    words = ("instance that not all recommenders have is", "instances that not all recommenders have are")
    left_out = [f"{name}: {counted(found[at], *words)} left out" for at, name in enumerate(task.names) if found.get(at)]
    notes = (*left_out, *bound_notes(results, assume))
    return Compared(named.metrics, results, notes, tuple(groups) if grouping.is_given else ())


@dataclass(frozen=True)
class _Options:
    """What every task needs."""

    task: Task
    metrics: tuple[Metric, ...]
    unmatched: Unmatched
    ties: Ties
    assume: Assumption
    seed: int


def _together(frames: list[DataFrame]) -> DataFrame:
    """Return a row per id with the ranks of each recommender as a struct, null if it does not have the instance."""
    from pyspark.sql import functions as F  # noqa: N812

    packed = [frame.select("id", F.struct(*frame.columns).alias(f"ranks{at}")) for at, frame in enumerate(frames)]
    whole = packed[0]
    for other in packed[1:]:
        whole = whole.join(other, "id", "full_outer")
    return whole


def _step(options: _Options, grouping: Grouping) -> Any:
    """Return the function that compares a batch of instances."""

    def step(table: pa.Table) -> Parts:
        columns = [table[f"ranks{at}"].combine_chunks() for at in range(len(options.task.names))]
        present = np.array([column.is_valid().to_numpy(zero_copy_only=False) for column in columns])
        everywhere = present.all(axis=0)
        if options.unmatched == "refuse":
            _refuse_unmatched(options.task, table, present)
        left_out = dict(enumerate((present & ~everywhere).sum(axis=1).tolist()))
        if not everywhere.any():
            return left_out
        return left_out | _blocks(options, table.filter(everywhere), grouping)

    return step


def _blocks(options: _Options, table: pa.Table, grouping: Grouping) -> Parts:
    """Return what instances that all recommenders have contribute to each difference."""
    ranks, _ = matched(_ranks(options.task, table), "refuse")
    broken = untied(ranks, options.ties, batch_seed(options.seed, next(iter(ranks.values()))))
    parts = parts_by(broken, grouping.within(table))
    entrants = {name: Entrant.of([one], options.metrics, [parts[name]]) for name, one in broken.items()}
    for metric in (metric for each in entrants.values() for metric in each.metrics):
        check_separate(metric)
    shown = tuple(shared_name(entrants, at, metric) for at, metric in enumerate(options.metrics))
    named = replace(options.task, metrics=shown)
    blocks = blocks_of(entrants, None, options.assume)
    return {(block.group, block.metric): MergedBlock.of(block, named) for block in blocks}


def _ranks(task: Task, table: pa.Table) -> dict[str, Ranks]:
    import pyarrow as pa

    structs = {name: table[f"ranks{at}"].combine_chunks() for at, name in enumerate(task.names)}
    return {name: Ranks(**fields_from_rows(pa.Table.from_struct_array(column))) for name, column in structs.items()}


def _refuse_unmatched(task: Task, table: pa.Table, present: Any) -> None:
    if not present.all():
        at = int(np.argmin(present.all(axis=0)))
        without = task.names[int(np.argmin(present[:, at]))]
        raise InputError(
            f"instance {shown(table['id'][at].as_py())} is missing from {without!r}; leave such instances out with "
            "unmatched='drop'."
        )
