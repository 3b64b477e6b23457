"""``truerank recommend``: the best items of each user, from factors or a saved model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from truerank.cli import options
from truerank.cli.output import describe_and_write
from truerank.cli.sources import check_output
from truerank.errors import InputError

if TYPE_CHECKING:
    from truerank.data.interactions import Interactions
    from truerank.scoring.scorer import Scorer


def _check_path(_ctx: click.Context, _param: click.Parameter, path: str) -> str:
    from truerank.formats.writing import check_writable
    from truerank.lists.recommendations import ENDINGS

    check_writable(path, ENDINGS)
    return path


@click.command()
@click.option(
    "--factors",
    nargs=2,
    metavar="USERS.npy ITEMS.npy",
    type=click.Path(),
    help="Factors of the users and of the items, one row each.",
)
@click.option("--bias", metavar="BIAS.npy", type=click.Path(), help="One number per item, added to its scores.")
@click.option("--model", metavar="MODEL.npz", type=click.Path(), help="A model saved by truerank, instead of factors.")
@click.option(
    "--train",
    metavar="FILE",
    type=click.Path(),
    help="Training pairs (user_id, item_id); they are not recommended.",
)
@options.formats_option("train")
@click.option("-k", metavar="N", default="10", show_default=True, callback=options.whole(), help="Items per user.")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    required=True,
    type=click.Path(),
    callback=_check_path,
    help="The .csv, .tsv, .jsonl, .parquet, .trec or .run file to write; - is standard output.",
)
@click.option(
    "--threads",
    metavar="N",
    callback=options.whole(largest=1_024),
    help="Threads to use (default: one per processor).",
)
def command(
    factors: tuple[str, str] | None,
    bias: str | None,
    model: str | None,
    train: str | None,
    formats: dict[str, Any],
    k: int,
    output: str,
    threads: int | None,
) -> None:
    """List the k best items of each user.

    With --factors, users and items in the file of pairs are row numbers, from 0; with --model they are the
    names that the model was trained with. Of equal scores, the item with the lower number comes first.

    \b
    truerank recommend --factors users.npy items.npy --train train.tsv -k 20 -o lists.parquet
    truerank recommend --model ials.npz --train train.csv -o lists.trec
    truerank evaluate lists.trec --truth test.tsv -m ndcg@10
    """
    from truerank.lists.recommending import recommend

    check_output(output, *(factors or ()), bias, model, train)
    if (factors is None) == (model is None):
        raise InputError("give either --factors or --model.")
    scorer, seen = _from_model(model, bias, train, formats) if model else _from_factors(factors, bias, train, formats)
    lists = recommend(scorer, train=seen, k=k, threads=threads, progress=True)
    describe_and_write(lists, output, lists.write)


def _from_model(
    model: str, bias: str | None, train: str | None, formats: dict[str, Any]
) -> tuple[Scorer, Interactions | None]:
    from truerank.data.reading import read_interactions
    from truerank.recommenders.loading import load_model

    if bias is not None:
        raise InputError("--bias applies only to --factors.")
    return load_model(model), None if train is None else read_interactions(train, format=formats.get("train"))


def _from_factors(
    factors: tuple[str, str] | None, bias: str | None, train: str | None, formats: dict[str, Any]
) -> tuple[Scorer, Interactions | None]:
    from truerank.data.reading import read_pairs
    from truerank.formats.arrays import load_array
    from truerank.scoring.factors import Factors

    users, items = map(load_array, factors or ())
    scorer = Factors(users, items, None if bias is None else load_array(bias))
    shape = (scorer.n_users, scorer.n_items)
    return scorer, None if train is None else read_pairs(train, shape, format=formats.get("train"))
