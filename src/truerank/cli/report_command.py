"""``truerank report``: what there is to know about recommenders, as one HTML file."""

from __future__ import annotations

import click

from truerank.cli import options
from truerank.cli.sources import check_output, read_groups


@click.command()
@options.sources_argument("RANKS")
@options.page_option
@options.optional_metrics_option
@click.option(
    "--split",
    "folder",
    metavar="DIR",
    type=click.Path(),
    help="The split that the ranks are about, a directory with train and test files: shows groups of users and items.",
)
@options.groups_option
@click.option(
    "--sampled",
    "m",
    metavar="M",
    default="100",
    show_default=True,
    callback=options.whole(),
    help="Show what so many sampled candidates would have shown.",
)
@click.option("--title", metavar="TEXT", help="The heading (default: a question).")
@options.columns_option
def command(
    sources: dict[str, str],
    path: str,
    metrics: tuple[str, ...],
    folder: str | None,
    by: str | None,
    m: int,
    title: str | None,
    columns: dict[str, str],
) -> None:
    """Write a report on recommenders to one HTML file that opens in any browser.

    RANKS are files of ranks of one recommender or more, as for `truerank evaluate`, named by NAME or
    by the file. The report needs no network: it shows metrics with intervals, comparisons, groups,
    rank distributions, what sampled candidates would have shown, ties, and how all was computed.

    \b
    truerank report A=a.parquet B=b.parquet -o report.html
    truerank report old=a.parquet new=b.parquet -o report.html -m ndcg@20,ap --split folder --sampled 50
    """
    from truerank.data.splits import read_split
    from truerank.ranking.tables import read_ranks
    from truerank.report.reports import TITLE, write_report

    check_output(path, *sources.values(), by)
    groups = read_groups(by)
    split = None if folder is None else read_split(folder)
    roles = options.by_role(columns, "user", "rank", "relevance", "m", "n")
    ranks = {name: read_ranks(path, **roles) for name, path in sources.items()}
    write_report(ranks, path, split=split, metrics=metrics or None, m=m, by=groups, title=title or TITLE, progress=True)
    if path != "-":
        click.echo(f"written to {path!r}")
