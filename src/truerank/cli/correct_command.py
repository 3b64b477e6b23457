"""``truerank correct``: estimates of exact metrics from sampled ranks."""

from __future__ import annotations

from typing import Any

import click

from truerank.cli import options
from truerank.cli.output import show_table
from truerank.cli.sources import noted


@click.command()
@options.sources_argument("SAMPLED")
@options.metrics_option
@click.option(
    "--sampled",
    "m",
    metavar="M",
    callback=options.whole(),
    help="Candidates that were sampled, if the file has no column m.",
)
@click.option(
    "--candidates",
    "n",
    metavar="N",
    callback=options.whole(),
    help="Candidates before sampling, if the file has no column n.",
)
@click.option("--replace", is_flag=True, help="Candidates were sampled with replacement.")
@options.assume_option
@options.columns_option
@options.format_option
def command(
    sources: dict[str, str],
    metrics: tuple[str, ...],
    m: int | None,
    n: int | None,
    replace: bool,
    assume: Any,
    columns: dict[str, str],
    form: str,
) -> None:
    """Correct metrics that were measured on sampled candidates.

    SAMPLED is what `truerank sample` wrote, or a table of sampled ranks (user_id, rank, m, n), for
    instance from a published study; - is standard input. Several files make one row each, named by
    NAME or by the file. In brackets stands the 95 % interval of the exact metric.

    \b
    truerank correct study.csv --sampled 100 --candidates 3541 -m 'ndcg@10~bv(0.1)' -m ndcg@10~cls
    truerank correct als=a.parquet bpr=b.parquet -m 'recall@10~bv(0.1)'
    """
    from truerank.corrections.reading import as_metrics
    from truerank.evaluation.evaluations import evaluate
    from truerank.ranking.tables import read_sampled

    chosen = as_metrics(metrics)
    ranks = {name: read_sampled(path, m=m, n=n, replace=replace, columns=columns) for name, path in sources.items()}
    show_table(noted(evaluate(ranks, chosen, assume=assume, progress=True), ranks), form)
