"""``truerank report`` and ``explore``: HTML pages that open in any browser."""

import click

import truerank as tr
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
@options.whole_option(
    "--sampled",
    "m",
    metavar="M",
    default="100",
    show_default=True,
    help="Show what this many sampled candidates would have shown.",
)
@click.option("--title", metavar="TEXT", help="The heading (default: a question).")
@options.columns_option
def report(
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
    rank distributions, what sampled candidates would have shown, ties, and how everything was computed.

    \b
    truerank report A=a.parquet B=b.parquet -o report.html
    truerank report old=a.parquet new=b.parquet -o report.html -m ndcg@20,ap --split folder --sampled 50
    """
    from truerank.report.pages import TITLE

    options.check_output(path, *sources.values(), by)
    groups = options.read_groups(by)
    split = None if folder is None else tr.read_split(folder)
    ranks, heading = options.read_all(sources, columns), title or TITLE
    tr.write_report(
        ranks, path, split=split, metrics=metrics or None, design=m, by=groups, title=heading, progress=True
    )
    say_written(path)


@click.command()
@options.sources_argument("RANKS", required=False)
@options.page_option
def explore(sources: dict[str, str], path: str) -> None:
    """Write a page to explore sampled metrics to one HTML file that opens in any browser.

    Sliders set the number of candidates, how many are sampled, the cut-off and gamma; the page shows the
    expected metric by rank, its bias and deviation, and what two recommenders would look like. RANKS
    are files of exact ranks to choose from, in addition to the paper's example and ranks that you type.

    \b
    truerank explore -o explore.html
    truerank explore A=a.parquet B=b.parquet -o explore.html
    """
    options.check_output(path, *sources.values())
    tr.write_explorer(options.read_all(sources), path)
    say_written(path)
