"""``truerank lists``: metrics of recommended lists."""

from __future__ import annotations

from typing import Any

import click

from truerank.cli import options
from truerank.cli.output import show_table
from truerank.cli.sources import read_groups


@click.command()
@options.sources_argument("LISTS")
@click.option(
    "--train",
    metavar="FILE",
    type=click.Path(),
    required=True,
    help="Training pairs (user_id, item_id); their items are the catalogue.",
)
@click.option(
    "-t",
    "--truth",
    metavar="QRELS",
    type=click.Path(),
    help="The relevant items, for metrics such as ndcg@10.",
)
@click.option(
    "-m",
    "--metric",
    "metrics",
    metavar="METRIC",
    multiple=True,
    required=True,
    callback=options.read_metrics,
    help="For instance coverage@10, gini@10, novelty@10, or ndcg@10 with --truth. May be repeated, or hold several "
    "metrics separated by commas.",
)
@options.columns_option
@options.formats_option("lists", "train")
@options.groups_option
@options.format_option
def command(
    sources: dict[str, str],
    train: str,
    truth: str | None,
    metrics: tuple[str, ...],
    columns: dict[str, str],
    formats: dict[str, Any],
    by: str | None,
    form: str,
) -> None:
    """Describe recommended lists: what they cover, how popular, new and varied the items are.

    LISTS is a TREC run or a table (user_id, item_id, score), as `truerank recommend` writes it. Several files make one
    row each, named by NAME or by the file.

    \b
    truerank lists lists.parquet --train train.csv -m coverage@10,gini@10,novelty@10
    truerank lists als=a.trec pop=b.trec --train train.csv --truth test.csv -m ndcg@10,coverage@10,overlap@10
    """
    from truerank.data.reading import read_interactions
    from truerank.evaluation.evaluations import evaluate
    from truerank.lists.reading import read_recommendations

    groups = read_groups(by)
    named = options.by_role(columns, "user", "item", "score", "rank")
    data = read_interactions(train, format=formats.get("train"))
    lists = {
        name: read_recommendations(path, data, format=formats.get("lists"), **named) for name, path in sources.items()
    }
    show_table(evaluate(lists, metrics, train=data, truth=truth, by=groups), form)
