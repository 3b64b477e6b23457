"""``truerank explore``: a page to see what sampled metrics show."""

from __future__ import annotations

import click

from truerank.cli import options
from truerank.cli.output import say_written


@click.command()
@options.sources_argument("RANKS", required=False)
@options.page_option
def command(sources: dict[str, str], path: str) -> None:
    """Write a page to explore sampled metrics to one HTML file that opens in any browser.

    Sliders set the numbers of candidates and of sampled ones, the cut-off and gamma; the page shows the
    expected metric by rank, its bias and deviation, and what two recommenders would look like. RANKS
    are files of exact ranks to choose from, besides the paper's example and ranks that you type.

    \b
    truerank explore -o explore.html
    truerank explore A=a.parquet B=b.parquet -o explore.html
    """
    from truerank.report.pages import write_explorer

    options.check_output(path, *sources.values())
    write_explorer(options.read_all(sources), path)
    say_written(path)
