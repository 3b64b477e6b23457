"""Ranks on Spark: dataframes in, a lazy dataframe of ranks out, one row per user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from truerank.engines.arrow_lists import rank_listed
from truerank.engines.arrow_ranks import rank_users, sample_users
from truerank.engines.spark_catalogues import ship, shipped
from truerank.engines.spark_frames import (
    Assembled,
    FactorFrames,
    assemble,
    collected,
    pairs,
    require_pyspark,
    same_kinds,
    spread,
)
from truerank.engines.spark_parts import fixed_seed
from truerank.errors import InputError, raised_elsewhere
from truerank.formats.columns import LISTS, TRUTH, Column
from truerank.ranking.rank_rows import to_rows
from truerank.ranking.ranks import Ranks
from truerank.ranking.sampled import DEFAULT_SIZE
from truerank.sampling.designs import Rng
from truerank.sampling.registry import AnyDesign, as_design

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_SAMPLED = {
    "n_catalogue": "bigint",
    "scored": "bigint",
    "drawn": "array<bigint>",
    "design": "string",
    "depth": "bigint",
}


def rank(
    factors: Any,
    *,
    train: DataFrame | None = None,
    test: DataFrame,
    user: Column = None,
    item: Column = None,
    grade: Column = None,
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
    grade : str or int, optional
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
    given = FactorFrames.of(factors)
    columns = {"user": user, "item": item, "grade": grade}
    rows = assemble(given, train, test, columns=columns, users=users, seed=fixed_seed(rng), partitions=partitions)
    catalogue = ship(given, items_per_block)

    def step(table: pa.Table) -> Ranks:
        return rank_users(table, shipped(catalogue))

    return _mapped(rows, step, {})


def rank_sampled(
    factors: Any,
    *,
    train: DataFrame | None = None,
    test: DataFrame,
    design: AnyDesign | None = None,
    m: int | None = None,
    user: Column = None,
    item: Column = None,
    grade: Column = None,
    users: int | None = None,
    rng: Rng = None,
    items_per_block: int | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """Return the ranks of held-out items among sampled candidates, as a Spark dataframe with a row per user.

    Parameters
    ----------
    factors, train, test, user, item, grade, users, items_per_block, partitions
        Those of `truerank.spark.rank`.
    design : SamplingDesign or str, optional
        Any design of `truerank.rank_sampled` without a proxy of its own.
    m : int, optional
        Short for ``design=UniformSampling(m)``; 100 by default.
    rng : int or numpy.random.Generator, optional
        Seed. The sample of a user also depends on the users in the same Arrow batch, so it is the same
        again for the same data, partitions and batch size.
    """
    chosen = as_design(design, m=DEFAULT_SIZE if design is None and m is None else m, replace=False)
    if chosen.proxies:
        raise InputError(f"on Spark a design can't have a proxy of its own, got one for {chosen}.")
    given, seed = FactorFrames.of(factors), fixed_seed(rng)
    columns = {"user": user, "item": item, "grade": grade}
    rows = assemble(given, train, test, columns=columns, users=users, seed=seed, partitions=partitions)
    popularity = None if train is None else _popularity(train, columns)
    catalogue = ship(given, items_per_block, popularity)

    def step(table: pa.Table) -> Ranks:
        return sample_users(table, shipped(catalogue), chosen, seed)

    return _mapped(rows, step, _SAMPLED)


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
    require_pyspark()
    listed = pairs(run, "run", {"user": user, "item": item, "score": score, "rank": rank}, LISTS)
    if not {"score", "rank"} & set(listed.columns):
        raise InputError("`run` must have a column of scores or ranks, since the rows of a dataframe are in no order.")
    relevant = pairs(truth, "truth", {"user": user, "item": item, "relevance": relevance}, TRUTH)
    kinds = same_kinds({"run": listed, "truth": relevant})
    held = {"item": "held", "relevance": "grades"}
    lists = collected(listed, {name: name for name in listed.columns})
    rows = collected(spread(relevant, partitions), held).join(lists, "user", "left")
    graded = "relevance" in relevant.columns

    def step(table: pa.Table) -> Ranks:
        return rank_listed(table, depth)

    return _mapped(Assembled(rows, **kinds, graded=graded), step, {"depth": "bigint"})


def _mapped(rows: Assembled, step: Callable[[pa.Table], Ranks], extra: dict[str, str]) -> DataFrame:
    """Return the ranks that a step makes of batches of rows; it sees the users of a partition in order."""
    columns = _columns(rows) | extra
    schema = _arrow_schema(columns)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            if batch.num_rows:
                yield from to_rows(step(pa.Table.from_batches([batch])), schema).to_batches()

    declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return rows.rows.sortWithinPartitions("user").mapInArrow(run, declared)


def _columns(rows: Assembled) -> dict[str, str]:
    """Return the columns of ranks and their types, as Spark spells them."""
    plain = {"id": rows.user_kind, "n_candidates": "bigint", "above": "array<bigint>", "tied": "array<bigint>"}
    graded = {"grades": "array<double>", "same_score": "array<boolean>"} if rows.graded else {}
    return plain | graded | {"items": f"array<{rows.item_kind}>"}


def _arrow_schema(columns: Mapping[str, str]) -> pa.Schema:
    import pyarrow as pa

    kinds = {"bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string()}
    kinds |= {f"array<{name}>": pa.list_(kind) for name, kind in kinds.items()}
    return pa.schema([(name, kinds[kind]) for name, kind in columns.items()])


def _popularity(train: DataFrame, columns: Mapping[str, Column]) -> pa.Table:
    """Return how many users have each item in the training data; this is computed at once."""
    seen = pairs(train, "train", columns)
    with raised_elsewhere():
        return seen.distinct().groupBy("item").count().toArrow()
