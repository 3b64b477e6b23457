"""Results that merge: computed and added up on the executors, so that one small row per partition is collected."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from truerank.engines.arrow_ranks import stable_hash
from truerank.engines.spark_frames import is_frame
from truerank.errors import InputError, raised_elsewhere
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import Rng

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


class Addable(Protocol):
    """What merges with ``+``."""

    def __add__(self, other: Any) -> Any: ...


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value", bound=Addable)


def merged(frame: DataFrame, step: Callable[[pa.Table], dict[Key, Value]]) -> dict[Key, Value]:
    """Return the sums, key by key, of what a step makes of all batches of a dataframe."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        parts = (step(pa.Table.from_batches([batch])) for batch in batches if batch.num_rows)
        yield pa.RecordBatch.from_pydict({"part": pa.array([pickle.dumps(_total(parts))], pa.binary())})

    with raised_elsewhere():
        rows = frame.mapInArrow(run, "part binary").collect()
    return _total(pickle.loads(row.part) for row in rows)


def _total(parts: Iterable[Mapping[Key, Value]]) -> dict[Key, Value]:
    """Add up what has the same key.

    Examples
    --------
    >>> _total([{"a": 1}, {"b": 2, "a": 3}])
    {'a': 4, 'b': 2}
    """
    total: dict[Key, Value] = {}
    for part in parts:
        for key, value in part.items():
            total[key] = total[key] + value if key in total else value
    return total


def check_frames(ranks: Mapping[str, Any]) -> None:
    """Refuse dataframes of Spark together with ranks that are here."""
    for name, one in ranks.items():
        if not is_frame(one):
            kind = type(one).__name__
            raise InputError(f"either all ranks are Spark dataframes or none, got {kind} for {name!r}.")


def check_separate(metric: Metric) -> None:
    """Refuse a metric whose estimate of an instance depends on instances that may be elsewhere."""
    if metric.pools_instances:
        raise InputError(f"{metric} rests on all ranks together; collect them with tr.Ranks.from_spark first.")


def fixed_seed(rng: Rng) -> int:
    """Return one seed, since Spark may compute a partition several times."""
    if isinstance(rng, int) and not isinstance(rng, bool) and rng >= 0:
        return rng
    if rng is None or isinstance(rng, np.random.Generator):
        return int(np.random.default_rng(rng).integers(2**31))
    raise InputError(f"`rng` must be a whole number from 0 or a Generator, got {rng!r}.")


def batch_seed(seed: int, ranks: Ranks) -> int:
    """Return a seed for the instances of a batch, which depends on their ids alone."""
    return seed if ranks.ids is None else seed + stable_hash(ranks.ids)
