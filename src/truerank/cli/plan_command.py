"""``truerank plan``: how many users or candidates it takes to order two recommenders."""

from __future__ import annotations

from typing import Any

import click

from truerank.cli import options
from truerank.cli.output import show_table
from truerank.core import InputError


def _read_sizes(_ctx: click.Context, param: click.Parameter, text: str) -> tuple[int, ...]:
    return tuple(options.read_whole(size.strip(), param) for size in text.split(",") if size.strip())


@click.command()
@options.sources_argument("RANKS")
@options.metrics_option()
@click.option(
    "--sizes",
    metavar="M,M,...",
    default="10,30,100,300,1000",
    show_default=True,
    callback=_read_sizes,
    help="Numbers of candidates to sample for each user.",
)
@click.option(
    "--design",
    "designs",
    metavar="DESIGN",
    multiple=True,
    help="Another sampling design to look at, e.g. 'inverse(2)'. May be repeated.",
)
@click.option("--replace", is_flag=True, help="Candidates are sampled with replacement.")
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
    truerank plan a.parquet b.parquet -m ndcg@10 --sizes 100,1000 --design 'inverse(2)'
    """
    from truerank.analysis.plans import plan

    if len(sources) != 2:
        raise InputError(f"a plan needs exactly two recommenders, got {len(sources)} files.")
    found = plan(options.read_all(sources, columns), metrics, **how)
    show_table(found, form, conclusions=found.conclusions)
