"""``truerank report``: everything about recommenders in one HTML file."""

from __future__ import annotations

import click

from truerank.cli import options
from truerank.cli.output import say_written


@click.command()
@options.sources_argument("RANKS")
@options.page_option
@options.metrics_option(required=False)
@options.path_option(
    "--split",
    "folder",
    metavar="DIR",
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
    help="Show what this many sampled candidates would have shown.",
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
    from truerank.report.pages import TITLE, write_report

    options.check_output(path, *sources.values(), by)
    groups = options.read_groups(by)
    split = None if folder is None else read_split(folder)
    ranks = options.read_all(sources, columns)
    write_report(
        ranks, path, split=split, metrics=metrics or None, design=m, by=groups, title=title or TITLE, progress=True
    )
    say_written(path)
