"""``truerank compare``: which recommender is better, by how much, and how sure that is."""

from __future__ import annotations

from typing import Any

import click

from truerank.cli import options
from truerank.cli.output import show_table
from truerank.cli.sources import read_groups


@click.command()
@options.sources_argument("RANKS")
@options.metrics_option
@click.option("--baseline", metavar="NAME", help="Compare all others with this one (default: all pairs).")
@options.groups_option
@options.test_option
@click.option(
    "--adjustment",
    type=click.Choice(["holm", "benjamini-hochberg", "none"]),
    default="holm",
    show_default=True,
    help="How p-values, intervals and verdicts allow for the number of tests.",
)
@click.option(
    "--margin",
    metavar="X",
    callback=options.number(0.0),
    help="A loss that does not matter; the verdict then also says who is not worse by more than it.",
)
@options.level_option
@options.unmatched_option
@options.assume_option
@click.option(
    "--same-candidates", is_flag=True, help="Sampled ranks of all recommenders are among the same candidates."
)
@click.option("--seed", "rng", metavar="N", callback=options.read_seed, help="Seed of --test bootstrap, randomisation.")
@click.option(
    "--replicates",
    metavar="N",
    default="10000",
    show_default=True,
    callback=options.whole(100, 10_000_000),
    help="Resamples, or random exchanges.",
)
@options.columns_option
@options.format_option
def command(
    sources: dict[str, str],
    metrics: tuple[str, ...],
    baseline: str | None,
    by: str | None,
    test: Any,
    adjustment: Any,
    margin: float | None,
    level: float,
    unmatched: Any,
    assume: Any,
    same_candidates: bool,
    rng: int | None,
    replicates: int,
    columns: dict[str, str],
    form: str,
) -> None:
    """Compare recommenders pair by pair, on the same instances.

    RANKS are files of ranks of two recommenders or more, as for `truerank evaluate`, named by NAME
    or by the file. Instances are matched by id. On sampled ranks, an order is claimed only if the
    sample determines it.

    \b
    truerank compare old=a.parquet new=b.parquet -m ndcg@10,recall@10
    truerank compare als=a.parquet bpr=b.parquet pop=c.parquet -m ndcg@10 --baseline pop --test bootstrap
    """
    from truerank.evaluation.comparisons import compare
    from truerank.evaluation.verdicts import conclusions
    from truerank.ranking.tables import read_ranks

    groups = read_groups(by)
    roles = options.by_role(columns, "user", "rank", "relevance", "m", "n")
    ranks = {name: read_ranks(path, **roles) for name, path in sources.items()}
    result = compare(
        ranks,
        metrics,
        baseline=baseline,
        by=groups,
        test=test,
        adjustment=adjustment,
        level=level,
        margin=margin,
        unmatched=unmatched,
        assume=assume,
        same_candidates=same_candidates,
        replicates=replicates,
        rng=rng,
        progress=True,
    )
    show_table(result, form)
    for sentence in conclusions(result):
        click.echo(sentence, err=form != "table")
