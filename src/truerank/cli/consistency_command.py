"""``truerank consistency``: sample sizes at which a sampled metric keeps the exact order."""

from __future__ import annotations

import click

from truerank.cli import options
from truerank.core import InputError


@click.command()
@options.sources_argument("RANKS")
@options.metric_option
@click.option("--replace", is_flag=True, help="Sample with replacement, as in eq. 15 of the paper.")
@click.option(
    "--largest",
    "sizes",
    metavar="M",
    callback=options.whole(largest=1_000_000),
    help="Look at every sample size up to this one (default: as many as needed, up to all candidates).",
)
def command(sources: dict[str, str], metric: str, replace: bool, sizes: int | None) -> None:
    """Show at which sample sizes a sampled metric puts recommenders in their exact order.

    RANKS are files of exact ranks of two recommenders or more, named by NAME or by the file.

    \b
    truerank consistency als=a.parquet bpr=b.parquet -m ap
    truerank consistency a.parquet b.parquet c.parquet -m ndcg@10 --largest 1000
    """
    from truerank.analysis.consistencies import consistency

    ranks = options.read_all(sources)
    if difference := options.different_instances(ranks):
        raise InputError(f"recommenders can be compared on the same instances only: {difference}.")
    chosen, design = None if sizes is None else range(1, sizes + 1), "uniform(replace)" if replace else "uniform"
    click.echo(str(consistency(ranks, metric, design, sizes=chosen, progress=True)))
