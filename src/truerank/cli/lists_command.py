"""``truerank lists``: metrics of recommended lists."""

from __future__ import annotations

from typing import Any

import click

from truerank.cli import options
from truerank.cli.output import show_table


@click.command()
@options.sources_argument("LISTS")
@options.path_option("--train", required=True, help="Training pairs (user_id, item_id); their items are the catalogue.")
@options.path_option("-t", "--truth", metavar="QRELS", help="The relevant items, for metrics such as ndcg@10.")
@options.metrics_option("For instance coverage@10, gini@10, novelty@10, or ndcg@10 with --truth.{repeated}")
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
    from truerank.data.event_files import read_interactions
    from truerank.evaluation.evaluations import evaluate
    from truerank.recommending.recommendations import read_recommendations

    groups = options.read_groups(by)
    named = options.by_role(columns, "user", "item", "score", "rank")
    data = read_interactions(train, format=formats.get("train"))
    named["format"] = formats.get("lists")
    lists = {name: read_recommendations(path, data, **named) for name, path in sources.items()}
    show_table(evaluate(lists, metrics, train=data, truth=truth, by=groups), form)
