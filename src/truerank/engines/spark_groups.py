"""Groups on Spark: given here, or as a dataframe that is joined to the ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from truerank.engines.spark_frames import id_column, is_frame
from truerank.errors import InputError
from truerank.evaluation.groups import UNKNOWN, Groups

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

COLUMN = "group"


@dataclass(frozen=True)
class Grouping:
    """What `by` means for dataframes of ranks: nothing, groups that every task gets, or a dataframe of them."""

    groups: Groups | None = None
    frame: DataFrame | None = None

    @classmethod
    def of(cls, by: Any) -> Grouping:
        """Read the argument `by` of `truerank.evaluate`."""
        if by is None:
            return cls()
        if not is_frame(by):
            return cls(groups=Groups.of(by))
        if len(by.columns) != 2:
            raise InputError(f"`by` must have a column of ids and one of names, got {', '.join(by.columns)}.")
        ids = id_column(by, by.columns[0], "user", "`by`").alias("id")
        return cls(frame=by.select(ids, by[by.columns[1]].cast("string").alias(COLUMN)))

    @property
    def of_items(self) -> bool:
        """Whether they are groups of items."""
        return self.groups is not None and self.groups.of_items

    @property
    def is_given(self) -> bool:
        """Whether there are groups."""
        return self.groups is not None or self.frame is not None

    def joined(self, ranks: DataFrame) -> DataFrame:
        """Return a dataframe with a column `id`, and with a column of groups if they are in a dataframe."""
        return ranks if self.frame is None else ranks.join(self.frame, "id", "left")

    def within(self, table: pa.Table) -> Groups | None:
        """Return the groups for a batch of what `joined` returned."""
        if COLUMN not in table.column_names:
            return self.groups
        names = [UNKNOWN if name is None else name for name in table[COLUMN].to_pylist()]
        return Groups.of(dict(zip(table["id"].to_pylist(), names, strict=True)))

    def in_order(self, found: Iterable[str]) -> list[str]:
        """Return the groups that were found: in the order of the given ones, or of their names; unknown ones last."""
        names = set(found)
        known = sorted(names - {UNKNOWN}) if self.groups is None else [one for one in self.groups.names if one in names]
        return [*known, *names & {UNKNOWN}] if self.is_given else [""]

    def for_tasks(self) -> Grouping:
        """Return what tasks need, which is not the dataframe."""
        return Grouping(self.groups)
