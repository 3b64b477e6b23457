"""What `truerank.compare` does with Spark dataframes of ranks: they are joined by id, and moments are merged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.engines.spark_groups import Grouping
from truerank.engines.spark_parts import batch_seed, check_frames, check_separate, fixed_seed, merged
from truerank.errors import InputError
from truerank.evaluation.differences import Difference
from truerank.evaluation.group_parts import parts_by
from truerank.evaluation.matching import Unmatched, matched
from truerank.evaluation.paired_differences import Compared, Task, blocks_of
from truerank.evaluation.paired_moments import PairedMoments
from truerank.evaluation.paired_tests import PairedTest, StudentTest
from truerank.evaluation.per_instance import Ties, untied
from truerank.evaluation.runs import Entrant
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
"""Moments by the name of the group and the place of the metric; instances left out by the place of the recommender."""


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
    **_: Any,
) -> Compared:
    """Return all differences between exact ranks before p-values are adjusted."""
    check_frames(ranks)
    if not isinstance(test, StudentTest):
        raise InputError("on Spark the test must be 't'; collect the ranks with tr.Ranks.from_spark for others.")
    for metric in metrics:
        check_separate(metric)
    grouping = Grouping.of(by)
    if grouping.of_items:
        raise InputError("on Spark groups of items are not compared; collect the ranks with tr.Ranks.from_spark first.")
    step = _step(task, metrics, grouping.for_tasks(), unmatched, ties, fixed_seed(rng))
    found: Parts = merged(grouping.joined(_together(list(ranks.values()))), step)
    moments = {key: value for key, value in found.items() if isinstance(key, tuple)}
    if not moments:
        raise InputError(f"the recommenders {', '.join(map(repr, ranks))} have no instance in common.")
    groups = grouping.in_order(group for group, _ in moments)
    results = [
        _difference(task, group, place, pair, moments[group, place])
        for group in groups
        for place in range(len(task.metrics))
        for pair in range(len(task.pairs))
    ]
    words = ("instance that not all recommenders have is", "instances that not all recommenders have are")
    left_out = [f"{name}: {counted(found[at], *words)} left out" for at, name in enumerate(task.names) if found.get(at)]
    return Compared(task.metrics, results, tuple(left_out), tuple(groups) if grouping.is_given else ())


def _together(frames: list[DataFrame]) -> DataFrame:
    """Return a row per id with the ranks of each recommender as a struct, null if it does not have the instance."""
    from pyspark.sql import functions as F  # noqa: N812

    packed = [frame.select("id", F.struct(*frame.columns).alias(f"ranks{at}")) for at, frame in enumerate(frames)]
    whole = packed[0]
    for other in packed[1:]:
        whole = whole.join(other, "id", "full_outer")
    return whole


def _step(
    task: Task, metrics: Sequence[Metric], grouping: Grouping, unmatched: Unmatched, ties: Ties, seed: int
) -> Any:
    """Return the function that compares a batch of instances."""

    def step(table: pa.Table) -> Parts:
        columns = [table[f"ranks{at}"].combine_chunks() for at in range(len(task.names))]
        present = np.array([column.is_valid().to_numpy(zero_copy_only=False) for column in columns])
        everywhere = present.all(axis=0)
        if unmatched == "refuse":
            _refuse_unmatched(task, table, present)
        left_out = dict(enumerate((present & ~everywhere).sum(axis=1).tolist()))
        if not everywhere.any():
            return left_out
        return left_out | _moments(task, metrics, table.filter(everywhere), grouping, ties, seed)

    return step


def _moments(
    task: Task, metrics: Sequence[Metric], table: pa.Table, grouping: Grouping, ties: Ties, seed: int
) -> Parts:
    """Return the moments of a batch of instances that all recommenders have."""
    import pyarrow as pa

    structs = {name: table[f"ranks{at}"].combine_chunks() for at, name in enumerate(task.names)}
    given = {name: Ranks(**fields_from_rows(pa.Table.from_struct_array(column))) for name, column in structs.items()}
    ranks, _ = matched(given, "refuse")
    if any(one.design is not None for one in ranks.values()):
        raise InputError("on Spark only exact ranks are compared; collect sampled ones with tr.Ranks.from_spark first.")
    first = next(iter(ranks.values()))
    broken = untied(ranks, ties, batch_seed(seed, first))
    parts = parts_by(broken, grouping.within(table))
    entrants = {name: Entrant.of([one], metrics, [parts[name]]) for name, one in broken.items()}
    blocks = blocks_of(entrants, None, "nothing")
    return {(block.group, block.metric): PairedMoments.of(block.values, task.pairs, block.largest) for block in blocks}


def _refuse_unmatched(task: Task, table: pa.Table, present: Any) -> None:
    if not present.all():
        at = int(np.argmin(present.all(axis=0)))
        without = task.names[int(np.argmin(present[:, at]))]
        raise InputError(
            f"instance {shown(table['id'][at].as_py())} is missing from {without!r}; leave such instances out with "
            "unmatched='drop'."
        )


def _difference(task: Task, group: str, place: int, pair: int, moments: PairedMoments) -> Difference:
    one, other = task.pairs[pair]
    outcome = moments.outcome(pair)
    means = moments.means if moments.n else np.full(len(task.names), math.nan)
    return Difference(
        recommender=task.names[one],
        baseline=task.names[other],
        metric=task.metrics[place],
        group=group,
        mean=float(means[one]),
        baseline_mean=float(means[other]),
        difference=outcome.difference,
        standard_error=outcome.standard_error,
        sampling_error=0.0,
        order_probability=1.0,
        n=moments.n,
        n_undefined=moments.n_undefined,
        n_units=moments.n,
        skewness=moments.skewness(pair),
        p_value=outcome.p_value,
        adjusted_p_value=outcome.p_value,
        level=task.level,
        margin=task.margin,
        lower_is_better=task.lower_is_better[place],
        bounded=False,
        outcome=outcome,
        expectation=outcome,
        largest=moments.largest,
    )
