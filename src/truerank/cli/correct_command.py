"""``truerank correct``: estimates of exact metrics from sampled ranks."""

from __future__ import annotations

from typing import Any

import click

from truerank.cli import options
from truerank.cli.output import show_table
from truerank.core import InputError


@click.command()
@options.sources_argument("SAMPLED")
@options.metrics_option()
@click.option(
    "--sampled",
    "m",
    metavar="M",
    callback=options.whole(),
    help="Number of sampled candidates, if the file has no column m.",
)
@click.option(
    "--candidates",
    "n",
    metavar="N",
    callback=options.whole(),
    help="Number of candidates before sampling, if the file has no column n.",
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
    NAME or by the file. What inverse sampling found is estimated by the recommended estimator, which
    the table names; others stand behind a ~, as in ndcg@10~monotone. Corrected metrics are shown with
    the 95 % interval of the exact metric in brackets.

    \b
    truerank correct study.csv --sampled 100 --candidates 3541 -m 'ndcg@10~bv(0.1)' -m ndcg@10~cls
    truerank correct als=sampled-als.parquet bpr=sampled-bpr.parquet -m 'recall@10~bv(0.1)'
    """
    from truerank.estimators.corrected import as_metrics
    from truerank.evaluation.evaluations import evaluate

    chosen = as_metrics(metrics)
    numbers = {role: number for role, number in (("m", m), ("n", n)) if number is not None}
    for role in numbers.keys() & columns:
        raise InputError(f"`{role}` is given both as a number and as a column.")
    ranks = options.read_all(sources, columns, replace=replace, **numbers)
    for name, path in sources.items():
        if ranks[name].design is None:
            raise InputError(f"{path!r} holds exact ranks, which need no correction; give `m` if they were sampled.")
    show_table(options.noted(evaluate(ranks, chosen, assume=assume, progress=True), ranks), form)
