"""``truerank report`` and ``explore``: HTML pages that open in any browser."""

from typing import Any

import click

import truerank as tr
from truerank.cli import options
from truerank.cli.output import say_written


@click.command()
@options.sources_argument("RANKS_OR_RUN")
@options.page_option
@options.metrics_option(required=False)
@options.reads_inputs
@options.whole_option(
    "--sampled", "design", metavar="M", default="100", show_default=True, help="Show results with M sampled candidates."
)
@options.sources_option("--sampled-ranks", "sampled", "SAMPLED", "Show sampled ranks beside the exact ones.")
@options.sources_option("--lists", "lists", "LISTS", "Show recommended lists: how much they cover, and who gets what.")
@click.option("--title", metavar="TEXT", help="The heading (default: a question).")
def report(
    sources: dict[str, str],
    path: str,
    inputs: options.Inputs,
    sampled: dict[str, str],
    lists: dict[str, str],
    **shown: Any,
) -> None:
    """Write a report on recommenders to one HTML file that opens in any browser.

    RANKS_OR_RUN are files of one recommender or more, as for `truerank evaluate`, named by NAME or by
    the file. With --split or --train the report also has groups of users and of items. It needs no
    network: it shows metrics with intervals, comparisons, groups, rank distributions, what sampled
    candidates would have shown, ties, and how everything was computed. What `truerank sample` and
    `truerank recommend` write can be added: estimates beside the exact values, and recommended lists.

    \b
    truerank report A=a.parquet B=b.parquet -o report.html
    truerank report old=a.parquet new=b.parquet -o report.html -m ndcg@20,ap --split folder --sampled 50
    truerank report a.trec b.trec --truth test.csv --train train.csv -o report.html -m ndcg@10
    truerank report als=a.parquet --sampled-ranks als=sampled-a.parquet --lists als=a.trec -o report.html
    """
    from truerank.report.pages import TITLE

    options.check_output(path, *sources.values(), *inputs.paths, *sampled.values(), *lists.values())
    ranks = inputs.ranks(sources)
    shown |= {"metrics": shown["metrics"] or None, "title": shown["title"] or TITLE}
    by, split = inputs.groups(ranks, uses_split=True), inputs.data(ranks)
    beside: dict[str, Any] = {"sampled": inputs.sampled(sampled), "lists": inputs.recommended(lists, split)}
    tr.write_report(ranks, path, by=by, split=split, **beside, **shown, progress=True)
    say_written(path)


@click.command()
@options.sources_argument("RANKS", required=False)
@options.page_option
def explore(sources: dict[str, str], path: str) -> None:
    """Write a page to explore sampled metrics to one HTML file that opens in any browser.

    Sliders set the number of candidates, how many are sampled, the cut-off and gamma; the page shows the
    expected metric by rank, its bias and deviation, and how two recommenders would compare. RANKS
    are files of exact ranks of two to six recommenders, to choose from in addition to the paper's example
    and ranks that you type.

    \b
    truerank explore -o explore.html
    truerank explore A=a.parquet B=b.parquet -o explore.html
    """
    options.check_output(path, *sources.values())
    tr.write_explorer(options.read_all(sources), path)
    say_written(path)
