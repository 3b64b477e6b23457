"""Evaluation and comparison of ranks in Spark dataframes: the local steps on each block, with results added up."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from truerank.core.checks import InputError, Rng, counted, raised_on_workers, shown
from truerank.core.ranks import Ranks
from truerank.engines import spark_frames
from truerank.engines.workers import stable_hash
from truerank.estimators.corrected import recommended
from truerank.evaluation.comparisons import Unmatched
from truerank.evaluation.groups import UNKNOWN, Groups
from truerank.evaluation.intervals import Parts, Step, added_up
from truerank.evaluation.paired_tests import LikelihoodTest, PairedTest
from truerank.evaluation.per_instance import Ties, check_ties
from truerank.formats.rank_files import from_rows
from truerank.metrics.definitions import Metric

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMN = "group"


def evaluated(
    ranks: Mapping[str, Any],
    metrics: Sequence[Metric],
    step: Step,
    *,
    by: Any,
    rng: Rng,
    ties: Ties,
    convention: str | None,
) -> tuple[Parts, tuple[str, ...]]:
    """Return the estimates of `truerank.evaluate`, and the groups; no values of single instances are collected."""
    _check_frames(ranks)
    if convention is not None:
        raise InputError("on Spark there is no `convention`; collect the ranks with tr.Ranks.from_spark first.")
    check_ties(ties)
    grouping, seed = Grouping.of(by), spark_frames.fixed_seed(rng)
    known = grouping.groups
    found: dict[Any, Any] = {}
    for name, frame in ranks.items():

        def run(table: pa.Table, name: str = name) -> Parts:
            own = _checked(table.select([each for each in table.column_names if each != COLUMN]), metrics)
            return step({name: own}, _groups_within(table, known), _batch_seed(seed, own))

        found |= _merged(grouping.joined(frame), run)
    return found, grouping.in_order(group for _, group, _ in found)


def compared(
    ranks: Mapping[str, Any],
    metrics: Sequence[Metric],
    step: Step,
    *,
    by: Any,
    rng: Rng,
    unmatched: Unmatched,
    test: PairedTest,
) -> tuple[Parts, tuple[str, ...], tuple[str, ...]]:
    """Return the partial results that `truerank.compare` needs, the groups, and notes on instances left out."""
    _check_frames(ranks)
    if not isinstance(test, LikelihoodTest):
        rule = "the test must be 'likelihood', and the adjustment not 'tukey'"
        raise InputError(f"on Spark {rule}; for others collect the ranks with tr.Ranks.from_spark first.")
    grouping, seed, names = Grouping.of(by), spark_frames.fixed_seed(rng), tuple(ranks)
    known = grouping.groups

    def run(table: pa.Table) -> Parts:
        columns = {name: f"ranks{at}" for at, name in enumerate(names)}
        present = np.array([table[column].is_valid().to_numpy() for column in columns.values()])
        everywhere = present.all(axis=0)
        if unmatched == "refuse":
            _refuse_unmatched(names, table, present)
        left_out = {(at,): number for at, number in enumerate((present & ~everywhere).sum(axis=1).tolist())}
        if not everywhere.any():
            return left_out
        both = table.filter(everywhere)
        structs = {name: both[column].combine_chunks() for name, column in columns.items()}
        own = {name: _checked(pa.Table.from_struct_array(each), metrics) for name, each in structs.items()}
        return left_out | step(own, _groups_within(both, known), _batch_seed(seed, own[names[0]]))

    found = _merged(grouping.joined(_together(list(ranks.values()))), run)
    parts = {key: part for key, part in found.items() if len(key) > 1}
    if not parts:
        raise InputError(f"the recommenders {', '.join(map(repr, ranks))} have no instance in common.")
    words = ("instance that not all recommenders have is", "instances that not all recommenders have are")
    left_out = {name: found.get((at,)) for at, name in enumerate(names)}
    notes = [f"{name}: {counted(number, *words)} left out" for name, number in left_out.items() if number]
    return parts, grouping.in_order(group for group, _, _ in parts), tuple(notes)


def _merged(frame: DataFrame, step: Callable[[pa.Table], Parts]) -> Parts:
    """Return the sums, key by key, of the results of a step on all batches of a dataframe."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = (step(pa.Table.from_batches([batch])) for batch in batches if batch.num_rows)
        yield pa.RecordBatch.from_pydict({"part": pa.array([pickle.dumps(added_up(parts))], pa.binary())})

    with raised_on_workers():
        rows = frame.mapInArrow(run, "part binary").collect()
    return added_up(pickle.loads(row.part) for row in rows)


def _check_frames(ranks: Mapping[str, Any]) -> None:
    """Refuse several runs, and Spark dataframes together with ranks in this process."""
    for name, one in ranks.items():
        if isinstance(one, list | tuple):
            rule = f"on Spark each recommender has one run, got a list for {name!r}"
            raise InputError(f"{rule}; for several collect the ranks with tr.Ranks.from_spark first.")
        if not spark_frames.is_frame(one):
            kind = type(one).__name__
            raise InputError(f"either all ranks are Spark dataframes or none, got {kind} for {name!r}.")


def _batch_seed(seed: int, ranks: Ranks) -> int:
    """Return a seed for the instances of a batch, which depends on their ids alone."""
    return seed if ranks.ids is None else seed + stable_hash(ranks.ids)


def _together(frames: list[DataFrame]) -> DataFrame:
    """Return a row per id with the ranks of each recommender as a struct, null if it does not have the instance."""
    from pyspark.sql import functions as F  # noqa: N812

    packed = [frame.select("id", F.struct(*frame.columns).alias(f"ranks{at}")) for at, frame in enumerate(frames)]
    whole = packed[0]
    for other in packed[1:]:
        whole = whole.join(other, "id", "full_outer")
    return whole


def _checked(table: pa.Table, metrics: Sequence[Metric]) -> Ranks:
    """Return the ranks of a block, or refuse a metric whose estimates depend on instances that may be elsewhere."""
    ranks = from_rows(table)
    for metric in (recommended(each, ranks) for each in metrics):
        if metric.pools_instances:
            raise InputError(f"{metric} rests on all ranks together; collect them with tr.Ranks.from_spark first.")
    return ranks


def _refuse_unmatched(names: Sequence[str], table: pa.Table, present: Any) -> None:
    if not present.all():
        at = int(np.argmin(present.all(axis=0)))
        which, without = shown(table["id"][at].as_py()), names[int(np.argmin(present[:, at]))]
        hint = "leave such instances out with unmatched='drop'"
        raise InputError(f"instance {which} is missing from {without!r}; {hint}.")


@dataclass(frozen=True)
class Grouping:
    """The argument `by` for dataframes of ranks: nothing, groups that every task gets, or a dataframe of groups."""

    groups: Groups | None = None
    frame: DataFrame | None = None

    @classmethod
    def of(cls, by: Any) -> Grouping:
        """Read the argument `by` of `truerank.evaluate`."""
        if by is None:
            return cls()
        if not spark_frames.is_frame(by):
            return cls(groups=Groups.of(by))
        if len(by.columns) != 2:
            raise InputError(f"`by` must have a column of ids and one of names, got {', '.join(by.columns)}.")
        ids = spark_frames.id_column(by, by.columns[0], "user", "`by`").alias("id")
        return cls(frame=by.select(ids, by[by.columns[1]].cast("string").alias(COLUMN)))

    def joined(self, ranks: DataFrame) -> DataFrame:
        """Return a dataframe with a column `id`, and with a column of groups if they are in a dataframe."""
        return ranks if self.frame is None else ranks.join(self.frame, "id", "left")

    def in_order(self, found: Iterable[str]) -> tuple[str, ...]:
        """Return the groups that were found: in the order of the given ones, or of their names; unknown ones last."""
        names = set(found)
        known = sorted(names - {UNKNOWN}) if self.groups is None else self.groups.names
        given = self.groups is not None or self.frame is not None
        return tuple(name for name in dict.fromkeys((*known, UNKNOWN)) if name in names) if given else ()


def _groups_within(table: pa.Table, groups: Groups | None) -> Groups | None:
    """Return the groups for a block of a dataframe from `Grouping.joined`."""
    if COLUMN not in table.column_names:
        return groups
    names = [UNKNOWN if name is None else name for name in table[COLUMN].to_pylist()]
    return Groups.of(dict(zip(table["id"].to_pylist(), names, strict=True)))
