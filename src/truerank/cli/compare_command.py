"""``truerank compare``: which recommender is better, by how much, and how sure that is."""

from __future__ import annotations

from typing import Any

import click

from truerank.cli import options
from truerank.cli.output import show_table


@click.command()
@options.sources_argument("RANKS")
@options.metrics_option()
@click.option("--baseline", metavar="NAME", help="Compare all others with this one (default: all pairs).")
@options.groups_option
@options.test_option
@options.choice_option(
    "--adjustment",
    ["holm", "benjamini-hochberg", "none"],
    "How p-values, intervals and verdicts allow for the number of tests.",
)
@click.option(
    "--margin",
    metavar="X",
    callback=options.number(0.0),
    help="A loss that does not matter; verdicts then also say who is not worse by more than that.",
)
@options.level_option
@options.unmatched_option
@options.assume_option
@click.option("--same-candidates", is_flag=True, help="All recommenders were ranked among the same sampled candidates.")
@options.seed_option("--test bootstrap, randomisation")
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
    sources: dict[str, str], metrics: tuple[str, ...], by: str | None, columns: dict[str, str], form: str, **how: Any
) -> None:
    """Compare recommenders pair by pair, on the same instances.

    RANKS are files of ranks of two recommenders or more, as for `truerank evaluate`, named by NAME
    or by the file. Instances are matched by id. On sampled ranks, an order is claimed only if the
    sample determines it.

    \b
    truerank compare old=a.parquet new=b.parquet -m ndcg@10,recall@10
    truerank compare als=a.parquet bpr=b.parquet pop=c.parquet -m ndcg@10 --baseline pop --test bootstrap
    """
    from truerank.evaluation.comparisons import compare, conclusions

    groups = options.read_groups(by)
    result = compare(options.read_all(sources, columns), metrics, by=groups, progress=True, **how)
    show_table(result, form, conclusions=conclusions(result))
