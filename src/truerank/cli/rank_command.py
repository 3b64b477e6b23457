"""``truerank rank``: exact ranks from factors."""

from __future__ import annotations

from typing import Any

import click

from truerank.cli import options
from truerank.cli.output import describe_and_write
from truerank.core import InputError


@click.command()
@click.option(
    "--factors",
    nargs=2,
    required=True,
    metavar="USERS.npy ITEMS.npy",
    type=click.Path(),
    help="Factors of the users and of the items, one row each; on Spark also Parquet with ids and arrays.",
)
@options.bias_option
@options.path_option("--train", help="Training pairs (user_id, item_id); they are not candidates.")
@options.path_option("--test", required=True, help="Held-out pairs (user_id, item_id).")
@options.formats_option("train", "test")
@options.ranks_output_option
@options.threads_option
@options.choice_option(
    "--engine",
    ["local", "spark"],
    "Where to rank; Spark takes its master and configuration from its own environment.",
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
    options.check_output(output, *factors, bias, train, test)
    if engine == "spark":
        from truerank.engines.spark_ranks import rank_files

        _refuse_local_options(threads, bias)
        ranks = rank_files(factors, train, test, formats)
    else:
        from truerank.ranking.exact import rank

        files = ((train, formats.get("train")), (test, formats.get("test")))
        scorer, seen, held = options.read_factors(factors, bias, *files)
        ranks = rank(scorer, train=seen, test=held, threads=threads, progress=True)
    describe_and_write(ranks, output, ranks.save)


def _refuse_local_options(threads: int | None, bias: str | None) -> None:
    if threads is not None:
        raise InputError("`threads` is for the local engine; Spark uses the cores of its executors.")
    if bias is not None:
        raise InputError("`bias` is for the local engine; on Spark add it to the factors, with a 1 for every user.")
