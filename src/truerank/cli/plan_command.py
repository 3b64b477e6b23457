"""``truerank plan``: how many users or candidates it takes to order two recommenders."""

from __future__ import annotations

from typing import Any

import click

from truerank.cli import options
from truerank.cli.output import show_table
from truerank.core import InputError


def _read_designs(_ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]) -> list[str | int]:
    return [int(text) if text.isdecimal() else text for text in texts]


@click.command()
@options.sources_argument("RANKS")
@options.metrics_option()
@click.option(
    "--design",
    metavar="DESIGN",
    multiple=True,
    default=("10", "30", "100", "300", "1000"),
    show_default="10, 30, 100, 300, 1000",
    callback=_read_designs,
    help="How many candidates to sample, or a design such as 'inverse(2)'. May be repeated.",
)
@click.option(
    "--probability",
    metavar="P",
    default="0.95",
    show_default=True,
    callback=options.number(0.5, 1.0, strictly=True),
    help="Target probability of finding the correct order.",
)
@options.seed_option("the draws")
@options.columns_option
@options.format_option
def command(sources: dict[str, str], metrics: tuple[str, ...], columns: dict[str, str], form: str, **how: Any) -> None:
    """Say how many users, or candidates and runs, it takes to establish the order of two recommenders.

    RANKS are two files of ranks of a pilot, exact or sampled, as for `truerank evaluate`, named by
    NAME or by the file.

    \b
    truerank plan old=a.parquet new=b.parquet -m ndcg@10,'ndcg@10~bv(0.1)'
    truerank plan a.parquet b.parquet -m ndcg@10 --design 100 --design 'inverse(2)'
    """
    from truerank.analysis.plans import plan

    if len(sources) != 2:
        raise InputError(f"a plan needs exactly two recommenders, got {len(sources)} files.")
    found = plan(options.read_all(sources, columns), metrics, **how)
    show_table(found, form, conclusions=found.conclusions)
