"""``truerank explore``: a page to see what sampled metrics show."""

from __future__ import annotations

import click

from truerank.cli import options
from truerank.cli.sources import check_output


@click.command()
@options.optional_sources_argument("RANKS")
@options.page_option
def command(sources: dict[str, str], path: str) -> None:
    """Write a page to explore sampled metrics to one HTML file that opens in any browser.

    Sliders set the number of candidates, of sampled ones, the cut-off and gamma; the page shows the
    expected metric by rank, its bias and deviation, and what two recommenders would look like. RANKS
    are files of exact ranks to choose from, besides the paper's example and ranks to be typed.

    \b
    truerank explore -o explore.html
    truerank explore A=a.parquet B=b.parquet -o explore.html
    """
    from truerank.ranking.tables import read_ranks
    from truerank.report.explorers import write_explorer

    check_output(path, *sources.values())
    write_explorer(path, {name: read_ranks(source) for name, source in sources.items()})
    if path != "-":
        click.echo(f"written to {path!r}")
