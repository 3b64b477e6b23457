"""``truerank plan``: how many users or candidates it takes to order two recommenders."""

from __future__ import annotations

import click

from truerank.cli import options
from truerank.cli.output import show_table
from truerank.errors import InputError


def _read_sizes(_ctx: click.Context, param: click.Parameter, text: str) -> tuple[int, ...]:
    return tuple(options.read_whole(size.strip(), param) for size in text.split(",") if size.strip())


@click.command()
@options.sources_argument("RANKS")
@options.metrics_option
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
    help="Wanted probability that the order comes out right.",
)
@click.option("--seed", "rng", metavar="N", callback=options.read_seed, help="Seed of the draws.")
@options.columns_option
@options.format_option
def command(
    sources: dict[str, str],
    metrics: tuple[str, ...],
    sizes: tuple[int, ...],
    designs: tuple[str, ...],
    replace: bool,
    probability: float,
    rng: int | None,
    columns: dict[str, str],
    form: str,
) -> None:
    """Say how many users, or candidates and runs, bring out the order of two recommenders.

    RANKS are two files of ranks of a pilot, exact or sampled, as for `truerank evaluate`, named by
    NAME or by the file.

    \b
    truerank plan old=a.parquet new=b.parquet -m ndcg@10,'ndcg@10~bv(0.1)'
    truerank plan a.parquet b.parquet -m ndcg@10 --sizes 100,1000 --design 'inverse(2)'
    """
    from truerank.analysis.plans import plan
    from truerank.ranking.tables import read_ranks

    if len(sources) != 2:
        raise InputError(f"a plan needs exactly two recommenders, got {len(sources)} files.")
    roles = options.by_role(columns, "user", "rank", "relevance", "m", "n")
    ranks = {name: read_ranks(path, **roles) for name, path in sources.items()}
    found = plan(ranks, metrics, sizes=sizes, designs=designs, replace=replace, probability=probability, rng=rng)
    show_table(found, form)
    for sentence in found.conclusions:
        click.echo(sentence, err=form != "table")
