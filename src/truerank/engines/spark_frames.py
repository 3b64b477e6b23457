"""Spark dataframes of factors and of pairs, checked and joined into a row per user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.core.checks import InputError, Rng, as_rng, check_whole
from truerank.formats.columns import PAIRS, TRUTH, Column, Contents, chosen_columns, find_columns, require_columns

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame


def fixed_seed(rng: Rng) -> int:
    """Return one seed, since Spark may compute a partition several times."""
    if isinstance(rng, int) and not isinstance(rng, bool) and rng >= 0:
        return rng
    if rng is None or isinstance(rng, np.random.Generator):
        return int(as_rng(rng).integers(2**31))
    raise InputError(f"`rng` must be a whole number from 0 or a Generator, got {rng!r}.")


_WHOLE = ("tinyint", "smallint", "int", "bigint")
_KINDS = {"bigint": "whole numbers", "string": "text"}


def require_pyspark() -> None:
    """Raise `InputError` if PySpark is not installed."""
    if find_spec("pyspark") is None:
        raise InputError("Spark needs PySpark 4, which is not installed: pip install 'truerank[spark]'.")


@dataclass(frozen=True)
class FactorFrames:
    """Factors of users, in columns `user` and `features`, and of items: `item` and `features`, or an array."""

    users: DataFrame
    items: Any

    @classmethod
    def of(cls, given: Any) -> FactorFrames:
        """Return the factors of an `ALSModel`, or of a pair of factors; an array needs no columns."""
        require_pyspark()
        both = (given.userFactors, given.itemFactors) if hasattr(given, "userFactors") else given
        if not isinstance(both, tuple) or len(both) != 2:
            raise InputError(f"factors must be an ALSModel or a pair (users, items), got {type(given).__name__}.")
        users, items = both
        return cls(_factors(users, "user"), _factors(items, "item") if is_frame(items) else np.asarray(items))

    @property
    def kinds(self) -> dict[str, str]:
        """The types of the ids; the rows of an array are numbered."""
        of_items = kind(self.items, "item") if is_frame(self.items) else "bigint"
        return {"user": kind(self.users, "user"), "item": of_items}


def assemble(
    factors: FactorFrames,
    train: DataFrame | None,
    test: DataFrame,
    *,
    columns: Mapping[str, Column],
    users: int | None = None,
    seed: int = 0,
    partitions: int | None = None,
) -> DataFrame:
    """Join factors, training and held-out items into a row per user, with the columns that `UserRows.of` reads.

    This is lazy, by Spark's own joins.

    Parameters
    ----------
    factors : FactorFrames
    train, test : DataFrame
        Pairs of users and items.
    columns : mapping
        The columns of `user` and `item`, and of the `relevance` in `test`, where they are chosen.
    users : int, optional
        How many users to draw at random.
    seed : int
        Seed of the draw, which does not depend on partitions.
    partitions : int, optional
        As for `spread`.
    """
    held = pairs(test, "test", columns, TRUTH if columns["relevance"] is not None else PAIRS)
    check_kinds(held, "test", factors.kinds)
    chosen = _chooser(held, users, seed)
    rows = collected(spread(chosen(held), partitions), {"item": "held", "relevance": "grades"})
    rows = rows.join(chosen(factors.users), "user", "left")
    if train is None:
        return rows
    seen = pairs(train, "train", columns)
    check_kinds(seen, "train", factors.kinds)
    return rows.join(collected(chosen(seen), {"item": "seen"}), "user", "left")


def spread(frame: DataFrame, partitions: int | None) -> DataFrame:
    """Return a dataframe with all rows of a user in one partition; joins by user keep the partitions.

    By default there are ``spark.sql.shuffle.partitions``. Without this, Spark would merge partitions of few bytes,
    although they take a long time to rank.
    """
    if partitions is None:
        partitions = int(str(frame.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    check_whole("partitions", partitions)
    return frame.repartition(int(partitions), "user")


def collected(frame: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """Return a row per user with lists of the other columns, under these names."""
    from pyspark.sql import functions as F  # noqa: N812

    others = [name for name in frame.columns if name != "user"]
    # in structs, because lists leave out nulls, which must be refused
    lists = frame.groupBy("user").agg(F.collect_list(F.struct(*others)).alias("rows"))
    return lists.select("user", *(F.col(f"rows.{name}").alias(names[name]) for name in others))


def pairs(frame: DataFrame, name: str, columns: Mapping[str, Column], contents: Contents = PAIRS) -> DataFrame:
    """Return the columns of a dataframe by their roles; ids are whole numbers of 64 bits or text, others are double."""
    if not is_frame(frame):
        raise InputError(f"`{name}` must be a Spark dataframe, got {type(frame).__name__}.")
    chosen, where = chosen_columns({role: columns.get(role) for role in contents.roles}), f"`{name}`"
    found = find_columns(frame.columns, contents, chosen, where)
    require_columns(found, contents, frame.columns, where)
    if missing := [role for role in chosen if role not in found]:
        raise InputError(f"{where} has no column {chosen[missing[0]]!r} for the {missing[0]}.")
    names = {role: frame.columns[at] for role, at in found.items()}
    ids = [id_column(frame, names[role], role, where).alias(role) for role in ("user", "item")]
    rest = [role for role in names if role not in ("user", "item")]
    return frame.select(*ids, *(frame[_quoted(names[role])].cast("double").alias(role) for role in rest))


def id_column(frame: DataFrame, name: str, role: str, where: str) -> SparkColumn:
    """Return a column of ids as whole numbers of 64 bits, or as text; refuse other types."""
    found = kind(frame, name)
    if found in _WHOLE:
        return frame[_quoted(name)].cast("bigint")
    if found != "string":
        raise InputError(f"the {role} ids of {where} must be whole numbers or text, got {found} in column {name!r}.")
    return frame[_quoted(name)]


def is_frame(given: Any) -> bool:
    """Whether something is a Spark dataframe, of a classic session or of Spark Connect."""
    return type(given).__module__.startswith("pyspark.") and hasattr(given, "mapInArrow")


def _factors(frame: Any, role: str) -> DataFrame:
    """Return a column of ids and a column of lists, which differ in their types."""
    where = f"the {role} factors"
    if not is_frame(frame):
        raise InputError(f"{where} must be a Spark dataframe, got {type(frame).__name__}.")
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema}
    lists = [name for name, kind in kinds.items() if kind in ("array<float>", "array<double>")]
    others = [name for name in kinds if name not in lists]
    if len(lists) != 1 or len(others) != 1:
        found = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        vectors = "; convert vectors with pyspark.ml.functions.vector_to_array" if "vector" in kinds.values() else ""
        raise InputError(f"{where} must have a column of ids and an array of float or double, got {found}{vectors}.")
    ids = id_column(frame, others[0], role, where).alias(role)
    return frame.select(ids, frame[_quoted(lists[0])].alias("features"))


def _chooser(held: DataFrame, users: int | None, seed: int) -> Callable[[DataFrame], DataFrame]:
    """Return a function that keeps the rows of a number of users, those with the smallest hash; None: of all users."""
    if users is None:
        return lambda frame: frame
    from pyspark.sql import functions as F  # noqa: N812

    check_whole("users", users)
    order = F.xxhash64(F.lit(seed), "user"), F.col("user")
    drawn = held.select("user").distinct().orderBy(*order).limit(int(users))
    return lambda frame: frame.join(F.broadcast(drawn), "user", "left_semi")


def check_kinds(frame: DataFrame, name: str, kinds: Mapping[str, str], other: str = "the factors") -> None:
    """Refuse ids of other types than those of another dataframe."""
    for role, expected in kinds.items():
        if (own := kind(frame, role)) != expected:
            both = f"{_KINDS[own]}, but those of {other} are {_KINDS[expected]}"
            raise InputError(f"the {role} ids of `{name}` are {both}.")


def kind(frame: DataFrame, name: str) -> str:
    """Return the type of a column, as Spark spells it."""
    return str(frame.schema[name].dataType.simpleString())


def _quoted(name: str) -> str:
    """Return a name that may have dots in it."""
    return "`" + name.replace("`", "``") + "`"
