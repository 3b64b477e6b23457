"""``truerank consistency``: sample sizes at which a sampled metric keeps the exact order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from truerank.cli import options
from truerank.cli.sources import different_instances
from truerank.errors import InputError

if TYPE_CHECKING:
    from truerank.ranking.ranks import Ranks

_MOST_SIZES = 1_000_000


@click.command()
@options.sources_argument("RANKS")
@options.metric_option
@click.option("--replace", is_flag=True, help="Sample with replacement, as in eq. 15 of the paper.")
@click.option(
    "--largest",
    "sizes",
    metavar="M",
    callback=options.whole(largest=_MOST_SIZES),
    help="Largest sample size to look at (default: all candidates).",
)
def command(sources: dict[str, str], metric: str, replace: bool, sizes: int | None) -> None:
    """Show at which sample sizes a sampled metric puts recommenders in their exact order.

    RANKS are files of exact ranks of two recommenders or more, named by NAME or by the file.

    \b
    truerank consistency als=a.parquet bpr=b.parquet -m ap
    truerank consistency a.parquet b.parquet c.parquet -m ndcg@10 --largest 1000
    """
    from truerank.analysis.orders import consistency
    from truerank.ranking.tables import read_ranks

    ranks = {name: read_ranks(path) for name, path in sources.items()}
    if difference := different_instances(ranks):
        raise InputError(f"recommenders can be compared on the same instances only: {difference}.")
    chosen = None if sizes is None else range(1, sizes + 1)
    if chosen is None:
        _check_number_of_sizes(ranks)
    click.echo(str(consistency(ranks, metric, replace=replace, sizes=chosen)))


def _check_number_of_sizes(ranks: dict[str, Ranks]) -> None:
    """Refuse more sample sizes than memory could hold."""
    fewest = min((int(places.n_candidates.min(initial=2**62)) for places in ranks.values() if len(places)), default=0)
    if fewest > _MOST_SIZES:
        raise InputError(f"--largest is needed with {fewest:,} candidates: up to {_MOST_SIZES:,} sizes are looked at.")
