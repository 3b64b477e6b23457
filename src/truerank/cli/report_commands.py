"""``truerank report`` and ``explore``: HTML pages that open in any browser."""

from typing import Any

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
    "--sampled", "design", metavar="M", default="100", show_default=True, help="Show what M sampled candidates show."
)
@click.option("--title", metavar="TEXT", help="The heading (default: a question).")
@options.columns_option
def report(sources: dict[str, str], path: str, columns: dict[str, str], folder: str | None, **shown: Any) -> None:
    """Write a report on recommenders to one HTML file that opens in any browser.

    RANKS are files of ranks of one recommender or more, as for `truerank evaluate`, named by NAME or
    by the file. The report needs no network: it shows metrics with intervals, comparisons, groups,
    rank distributions, what sampled candidates would have shown, ties, and how everything was computed.

    \b
    truerank report A=a.parquet B=b.parquet -o report.html
    truerank report old=a.parquet new=b.parquet -o report.html -m ndcg@20,ap --split folder --sampled 50
    """
    from truerank.report.pages import TITLE

    options.check_output(path, *sources.values(), shown["by"])
    shown |= {"by": options.read_groups(shown["by"]), "metrics": shown["metrics"] or None}
    shown |= {"title": shown["title"] or TITLE, "split": None if folder is None else tr.read_split(folder)}
    tr.write_report(options.read_all(sources, columns), path, **shown, progress=True)
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
