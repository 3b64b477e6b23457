"""Ranks on Spark, from factors or from ranked lists, and the files of item factors that executors need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from truerank.core.checks import InputError, Rng, raised_on_workers
from truerank.core.ranks import Ranks
from truerank.engines import catalogues, spark_frames, workers
from truerank.formats.columns import LISTS, TRUTH, Column
from truerank.formats.rank_files import to_rows
from truerank.formats.sources import reason
from truerank.ranking.among_samples import DEFAULT_SIZE
from truerank.sampling.designs import AnyDesign, as_design

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_FOLDERS: list[TemporaryDirectory[str]] = []
"""They last as long as this process, since Spark copies files from them whenever a new executor needs them."""


def ship(
    factors: spark_frames.FactorFrames, items_per_block: int | None, popularity: pa.Table | None = None
) -> catalogues.Catalogue:
    """Write the item factors as blocks, and let Spark copy them to the executors that need them.

    A dataframe passes through the driver a part at a time. The copies are kept until the session ends. `popularity` has
    the columns item and count.
    """
    make = _frame_pieces if spark_frames.is_frame(factors.items) else catalogues.array_pieces
    pieces = make(factors.items)
    _FOLDERS.append(TemporaryDirectory(prefix="truerank-", ignore_cleanup_errors=True))
    folder = _FOLDERS[-1].name
    with raised_on_workers():
        catalogue = catalogues.write_catalogue(pieces, folder, items_per_block)
        if popularity is not None:
            counts = popularity["count"].to_numpy()
            catalogue = catalogues.add_popularity(catalogue, folder, popularity["item"].combine_chunks(), counts)
    factors.users.sparkSession.addArtifacts(*(str(Path(folder) / name) for name in catalogue.files), file=True)
    return catalogue


@lru_cache(maxsize=4)
def shipped(catalogue: catalogues.Catalogue) -> catalogues.Items:
    """Return the items of a catalogue, on an executor; its Python workers keep the files open."""
    from pyspark import SparkFiles

    return catalogue.open(SparkFiles.get)


def _frame_pieces(frame: DataFrame) -> Iterator[catalogues.Piece]:
    """Yield the rows of a dataframe in the order of the ids; the driver holds few at a time."""
    packed: Any = frame.orderBy("item").mapInArrow(_pack, "packed binary")
    for row in packed.toLocalIterator(prefetchPartitions=True):
        table = pa.ipc.open_stream(row.packed).read_all()
        yield catalogues.table_piece(table["item"].combine_chunks(), table["features"].combine_chunks())


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield each batch as the bytes of an Arrow stream."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"packed": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


def rank_files(factors: tuple[str, str], train: str | None, test: str) -> Ranks:
    """Return exact ranks in the order of the user ids.

    Parameters
    ----------
    factors : (path, path)
        Factors of users and items: Parquet files or directories that Spark reads.
    train, test : path
        Pairs of ids, in Parquet that Spark reads.
    """
    with _session() as session:
        read = session.read.parquet
        both, seen = (read(factors[0]), read(factors[1])), None if train is None else read(train)
        ranks = Ranks.from_spark(rank(both, train=seen, test=read(test)))
    return ranks if ranks.ids is None else ranks[np.argsort(ranks.ids)]


@contextmanager
def _session() -> Iterator[SparkSession]:
    """Use the active session; without one, start one and stop it afterwards."""
    spark_frames.require_pyspark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    try:
        session = active or SparkSession.builder.appName("truerank").getOrCreate()
    except Exception as error:  # Java may be missing, or the configuration wrong
        raise InputError(f"Spark can't be started ({reason(error)}).") from error
    try:
        yield session
    finally:
        if active is None:
            session.stop()


_COUNT, _COUNTS = "bigint", "array<bigint>"
_SAMPLED = {
    "n_catalogue": _COUNT,
    "scored": _COUNT,
    "drawn": _COUNTS,
    "estimated": "array<double>",
    "design": "string",
    "depth": _COUNT,
}


def rank(
    factors: Any,
    *,
    train: DataFrame | None = None,
    test: DataFrame,
    user: Column = None,
    item: Column = None,
    relevance: Column = None,
    users: int | None = None,
    rng: Rng = None,
    items_per_block: int | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """Return the exact ranks of held-out items among all items, as a Spark dataframe with a row per user.

    The item factors are copied to the executors at once, as files; users are ranked when the result is used. The counts
    are those of `truerank.rank`, bit for bit, for any number of blocks and partitions.

    Parameters
    ----------
    factors : ALSModel, or (user factors, item factors)
        Dataframes with a column of ids and a column of arrays of float or double; item factors may also be an array,
        whose row numbers are the ids. Scores are computed in float32 if both are float, and in float64 otherwise.
    train, test : DataFrame
        Training and held-out pairs of users and items. Training items are not candidates, unless they are held out.
    user, item : str or int, optional
        Their columns, where the names are not the usual ones.
    relevance : str or int, optional
        Column of `test` with grades: items above 0 are relevant, others are ordinary candidates.
    users : int, optional
        How many users to draw at random. 100,000 give Recall@10 to 0.001.
    rng : int or numpy.random.Generator, optional
        Seed of the draw.
    items_per_block : int, optional
        Items that a worker holds in memory at a time; by default as many as fit into 64 MB.
    partitions : int, optional
        Partitions to spread the users over; by default ``spark.sql.shuffle.partitions``.

    Returns
    -------
    DataFrame
        Columns id, n_candidates, and arrays above, tied, items (and grades, same_score), as in `Ranks.to_arrow`.
        `truerank.evaluate`, `truerank.compare` and `truerank.Ranks.from_spark` take it.

    Notes
    -----
    All items with factors are candidates. An item of `train` or `test`, or a user of `test`, without factors is an
    error when the ranks are computed.
    """
    given, seed = spark_frames.FactorFrames.of(factors), spark_frames.fixed_seed(rng)
    columns = {"user": user, "item": item, "relevance": relevance}
    rows = spark_frames.assemble(given, train, test, columns=columns, users=users, seed=seed, partitions=partitions)
    catalogue = ship(given, items_per_block)

    return _mapped(rows, lambda table: workers.rank_users(table, shipped(catalogue)), {})


def rank_sampled(
    factors: Any,
    *,
    train: DataFrame | None = None,
    test: DataFrame,
    design: AnyDesign = DEFAULT_SIZE,
    user: Column = None,
    item: Column = None,
    relevance: Column = None,
    users: int | None = None,
    rng: Rng = None,
    items_per_block: int | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """Return the ranks of held-out items among sampled candidates, as a Spark dataframe with a row per user.

    Parameters
    ----------
    factors, train, test, user, item, relevance, users, items_per_block, partitions
        As for `truerank.spark.rank`.
    design : SamplingDesign, str or int
        Any design of `truerank.rank_sampled` without a proxy of its own.
    rng : int or numpy.random.Generator, optional
        Seed. The sample of a user also depends on the users in the same Arrow batch, so it is reproducible
        only with the same data, partitions and batch size.
    """
    chosen = as_design(design)
    if chosen.proxies:
        raise InputError(f"on Spark a design can't have a proxy of its own, got one for {chosen}.")
    given, seed = spark_frames.FactorFrames.of(factors), spark_frames.fixed_seed(rng)
    columns = {"user": user, "item": item, "relevance": relevance}
    rows = spark_frames.assemble(given, train, test, columns=columns, users=users, seed=seed, partitions=partitions)
    popularity = None if train is None else _popularity(train, columns)
    catalogue = ship(given, items_per_block, popularity)

    return _mapped(rows, lambda table: workers.sample_users(table, shipped(catalogue), chosen, seed), _SAMPLED)


def read_lists(
    run: DataFrame,
    truth: DataFrame,
    *,
    depth: int | Literal["all"],
    user: Column = None,
    item: Column = None,
    score: Column = None,
    rank: Column = None,
    relevance: Column = None,
    partitions: int | None = None,
) -> DataFrame:
    """Return the ranks of the relevant items in ranked lists, as a Spark dataframe with a row per user of the truth.

    Parameters
    ----------
    run : DataFrame
        One row per user and item with a score (higher is better) or a rank.
    truth : DataFrame
        The relevant items. With a relevance column, those above 0 are relevant, and it is their grade.
    depth : int or "all"
        Where the lists were cut; "all" means that each list holds every candidate of its user.
    user, item, score, rank, relevance : str or int, optional
        Columns, where their names are not the usual ones.
    partitions : int, optional
        As for `truerank.spark.rank`.

    Notes
    -----
    As in `truerank.read_lists`, a user of the truth without a list counts, with all relevant items below the depth, and
    a list of a user who is not in the truth does not.
    """
    spark_frames.require_pyspark()
    listed = spark_frames.pairs(run, "run", {"user": user, "item": item, "score": score, "rank": rank}, LISTS)
    if not {"score", "rank"} & set(listed.columns):
        raise InputError("`run` must have a column of scores or ranks, since the rows of a dataframe are in no order.")
    relevant = spark_frames.pairs(truth, "truth", {"user": user, "item": item, "relevance": relevance}, TRUTH)
    kinds = {role: spark_frames.kind(listed, role) for role in ("user", "item")}
    spark_frames.check_kinds(relevant, "truth", kinds, "`run`")
    held = {"item": "held", "relevance": "grades"}
    lists = spark_frames.collected(listed, {name: name for name in listed.columns})
    rows = spark_frames.collected(spark_frames.spread(relevant, partitions), held).join(lists, "user", "left")
    return _mapped(rows, lambda table: workers.rank_listed(table, depth), {"depth": _COUNT})


def _mapped(rows: DataFrame, step: Callable[[pa.Table], Ranks], extra: dict[str, str]) -> DataFrame:
    """Return the ranks that a step makes from batches of rows; it sees the users of a partition in order."""
    columns = _columns(rows) | extra
    schema = _arrow_schema(columns)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from to_rows(step(pa.Table.from_batches([batch])), schema).to_batches()

    declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return rows.sortWithinPartitions("user").mapInArrow(run, declared)


def _columns(rows: DataFrame) -> dict[str, str]:
    """Return the columns of the ranks of some users and their types, as Spark spells them."""
    plain = {"id": spark_frames.kind(rows, "user"), "n_candidates": _COUNT, "above": _COUNTS, "tied": _COUNTS}
    graded = {"grades": "array<double>", "same_score": "array<boolean>"} if "grades" in rows.columns else {}
    return plain | graded | {"items": spark_frames.kind(rows, "held")}


def _arrow_schema(columns: Mapping[str, str]) -> pa.Schema:
    kinds = {"bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string()}
    kinds |= {f"array<{name}>": pa.list_(kind) for name, kind in kinds.items()}
    return pa.schema([(name, kinds[kind]) for name, kind in columns.items()])


def _popularity(train: DataFrame, columns: Mapping[str, Column]) -> pa.Table:
    """Return how many users have each item in the training data; this is computed at once."""
    seen = spark_frames.pairs(train, "train", columns)
    with raised_on_workers():
        return seen.distinct().groupBy("item").count().toArrow()
