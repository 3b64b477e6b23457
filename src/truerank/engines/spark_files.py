"""Files in, ranks out, by a Spark session whose master and configuration come from Spark's own environment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.arrays import AnyArray
from truerank.data.interactions import Interactions
from truerank.data.reading import read_pairs
from truerank.engines.spark_frames import require_pyspark
from truerank.engines.spark_ranks import rank
from truerank.errors import InputError
from truerank.formats.arrays import load_array
from truerank.formats.detection import Format
from truerank.formats.reasons import reason
from truerank.ranking.ranks import Ranks

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def rank_files(
    factors: tuple[str, str], train: str | None, test: str, formats: dict[str, Format] | None = None
) -> Ranks:
    """Return exact ranks in the order of the user ids.

    Parameters
    ----------
    factors : (path, path)
        Factors of users and items: two .npy files, or two Parquet files or directories that Spark reads.
    train, test : path
        Pairs: row numbers in any file that truerank reads, or, beside Parquet, ids in Parquet that Spark reads.
    formats : dict, optional
        Formats of text files, for `train` and `test`.
    """
    with _session() as session:
        if all(path.endswith(".npy") for path in factors):
            given = _from_arrays(session, factors, train, test, formats or {})
        else:
            read = session.read.parquet
            frames = tuple(read(path) for path in factors)
            given = {"factors": frames, "train": None if train is None else read(train), "test": read(test)}
        ranks = Ranks.from_spark(rank(**given))
    return ranks if ranks.ids is None else ranks[np.argsort(ranks.ids)]


@contextmanager
def _session() -> Iterator[SparkSession]:
    """Use the active session; without one, start one and stop it afterwards."""
    require_pyspark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    try:
        session = active or SparkSession.builder.appName("truerank").getOrCreate()
    except Exception as error:  # Java may be missing, or the configuration be wrong
        raise InputError(f"Spark can't be started ({reason(error)}).") from error
    try:
        yield session
    finally:
        if active is None:
            session.stop()


def _from_arrays(
    session: SparkSession, factors: tuple[str, str], train: str | None, test: str, formats: dict[str, Format]
) -> dict[str, Any]:
    """Return the arguments of `rank` from files that are read here."""
    users, items = map(load_array, factors)
    if users.ndim != 2 or items.ndim != 2:
        raise InputError(f"factors must be two-dimensional arrays, got shapes {users.shape} and {items.shape}.")
    shape = (len(users), len(items))
    seen = None if train is None else read_pairs(train, shape, format=formats.get("train"))
    held = read_pairs(test, shape, format=formats.get("test"))
    return {
        "factors": (session.createDataFrame(_factor_table(users)), items),
        "train": None if seen is None else _pair_frame(session, seen),
        "test": _pair_frame(session, held),
    }


def _factor_table(factors: AnyArray) -> pa.Table:
    import pyarrow as pa

    plain = np.ascontiguousarray(factors, np.float32 if factors.dtype == np.float32 else np.float64)
    bounds = np.arange(len(plain) + 1, dtype=np.int32) * plain.shape[1]
    return pa.table({"id": np.arange(len(plain)), "features": pa.ListArray.from_arrays(bounds, plain.ravel())})


def _pair_frame(session: SparkSession, pairs: Interactions) -> DataFrame:
    import pyarrow as pa

    return session.createDataFrame(pa.table({"user": pairs.users, "item": pairs.items.astype(np.int64)}))
