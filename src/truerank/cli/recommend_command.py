"""``truerank recommend``: the best items of each user, from factors or a saved model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from truerank.cli import options
from truerank.cli.output import describe_and_write
from truerank.core import InputError

if TYPE_CHECKING:
    from truerank.data.interactions import Interactions
    from truerank.scoring.scorers import Scorer


@click.command()
@click.option(
    "--factors",
    nargs=2,
    metavar="USERS.npy ITEMS.npy",
    type=click.Path(),
    help="Factors of the users and of the items, one row each.",
)
@options.bias_option
@options.path_option("--model", metavar="MODEL.npz", help="A model saved by truerank, instead of factors.")
@options.path_option("--train", help="Training pairs (user_id, item_id); they are not recommended.")
@options.formats_option("train")
@click.option("-k", metavar="N", default="10", show_default=True, callback=options.whole(), help="Items per user.")
@options.output_option(
    ".csv, .tsv, .jsonl, .parquet, .trec or .run", callback=options.writable("recommending.recommendations")
)
@options.threads_option
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
    from truerank.recommending.recommendations import recommend

    options.check_output(output, *(factors or ()), bias, model, train)
    if (factors is None) == (model is None):
        raise InputError("give either --factors or --model.")
    scorer: Scorer
    if factors is None:
        scorer, seen = _from_model(str(model), bias, train, formats.get("train"))
    else:
        scorer, seen = options.read_factors(factors, bias, (train, formats.get("train")))
    lists = recommend(scorer, train=seen, k=k, threads=threads, progress=True)
    describe_and_write(lists, output, lists.write)


def _from_model(model: str, bias: str | None, train: str | None, form: Any) -> tuple[Scorer, Interactions | None]:
    from truerank.data.event_files import read_interactions
    from truerank.recommenders.models import load_model

    if bias is not None:
        raise InputError("--bias applies only to --factors.")
    return load_model(model), None if train is None else read_interactions(train, format=form)
