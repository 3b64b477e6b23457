"""``truerank rank``: exact ranks from factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from truerank.cli import options
from truerank.cli.output import describe_and_write
from truerank.cli.sources import check_output

if TYPE_CHECKING:
    from truerank.ranking.ranks import Ranks


@click.command()
@click.option(
    "--factors",
    nargs=2,
    required=True,
    metavar="USERS.npy ITEMS.npy",
    type=click.Path(),
    help="Factors of the users and of the items, one row each; on Spark also Parquet with ids and arrays.",
)
@click.option("--bias", metavar="BIAS.npy", type=click.Path(), help="One number per item, added to its scores.")
@click.option(
    "--train",
    metavar="FILE",
    type=click.Path(),
    help="Training pairs (user_id, item_id); they are not candidates.",
)
@click.option("--test", metavar="FILE", type=click.Path(), required=True, help="Held-out pairs (user_id, item_id).")
@options.formats_option("train", "test")
@options.output_option
@click.option(
    "--threads",
    metavar="N",
    callback=options.whole(largest=1_024),
    help="Threads to use (default: one per processor).",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="Where to rank; the master and the configuration of Spark come from its own environment.",
)
def command(
    factors: tuple[str, str],
    bias: str | None,
    train: str | None,
    test: str,
    formats: dict[str, Any],
    output: str,
    threads: int | None,
    engine: str,
) -> None:
    """Rank held-out items exactly, among the whole catalogue.

    Users and items in the files of pairs are row numbers of the factors, from 0.

    \b
    truerank rank --factors users.npy items.npy --train train.tsv --test test.tsv -o ranks.parquet
    truerank evaluate ranks.parquet -m ndcg@10 -m auc
    """
    check_output(output, *factors, bias, train, test)
    if engine == "spark":
        ranks = _rank_on_spark(factors, bias, train, test, formats, threads)
        describe_and_write(ranks, output, ranks.save)
        return
    from truerank.data.reading import read_pairs
    from truerank.formats.arrays import load_array
    from truerank.ranking.exact import rank
    from truerank.scoring.factors import Factors

    users, items = map(load_array, factors)
    scorer = Factors(users, items, None if bias is None else load_array(bias))
    shape = (scorer.n_users, scorer.n_items)
    seen = None if train is None else read_pairs(train, shape, format=formats.get("train"))
    held = read_pairs(test, shape, format=formats.get("test"))
    ranks = rank(scorer, train=seen, test=held, threads=threads, progress=True)
    describe_and_write(ranks, output, ranks.save)


def _rank_on_spark(
    factors: tuple[str, str],
    bias: str | None,
    train: str | None,
    test: str,
    formats: dict[str, Any],
    threads: int | None,
) -> Ranks:
    from truerank.engines.spark_files import rank_files
    from truerank.errors import InputError

    if threads is not None:
        raise InputError("`threads` is for the local engine; Spark has as many as its executors have cores.")
    if bias is not None:
        raise InputError("`bias` is for the local engine; on Spark add it to the factors, with a 1 for every user.")
    return rank_files(factors, train, test, formats)
