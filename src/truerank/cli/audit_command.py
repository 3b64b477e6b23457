"""``truerank audit``: what published sampled metrics can mean."""

from __future__ import annotations

from typing import Any

import click

from truerank.cli import options
from truerank.cli.output import show_notes
from truerank.core import InputError


def _read_numbers(_ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]) -> dict[str, dict[str, str]]:
    published: dict[str, dict[str, str]] = {}
    for text in texts:
        system, named, rest = text.partition("=")
        metric, valued, number = rest.rpartition(":")
        if not (system and named and metric and valued and number):
            form = "NAME=METRIC:NUMBER, as in X=recall@10:0.6619"
            raise InputError(f"a published number is given as {form}, got {options.shortened(text)}.")
        numbers = published.setdefault(system, {})
        if metric in numbers:
            raise InputError(f"{metric} of {system} is given twice, {numbers[metric]} and {number}.")
        numbers[metric] = number
    return published


@click.command()
@click.argument("published", metavar="NAME=METRIC:NUMBER...", nargs=-1, required=True, callback=_read_numbers)
@options.metrics_option("Exact metrics to bound (default: those that were published).", required=False)
@click.option(
    "--sampled", "m", metavar="M", required=True, callback=options.whole(), help="Number of sampled candidates."
)
@click.option(
    "--candidates",
    "n",
    metavar="N",
    required=True,
    callback=options.whole(2),
    help="Number of candidates before sampling.",
)
@click.option(
    "--users",
    metavar="N",
    callback=options.whole(),
    help="Users behind each published mean, to allow for its error.",
)
@click.option("--replace", is_flag=True, help="Candidates were sampled with replacement.")
@options.assume_option
@options.format_option
def command(
    published: dict[str, dict[str, str]],
    metrics: tuple[str, ...],
    m: int,
    n: int,
    users: int | None,
    replace: bool,
    assume: Any,
    form: str,
) -> None:
    """Show what published sampled metrics can mean for the exact ones.

    Give one or more sampled metrics of each NAME, as fractions. The exact metric could be anything in the range
    shown; the conclusion says whether the order of two systems is determined.

    \b
    truerank audit X=recall@10:0.6619 Y=recall@10:0.5651 --sampled 100 --candidates 3706 --users 6040
    truerank audit A=ap:0.3255 A=recall@10:0.6619 -m ap,recall@10 --sampled 100 --candidates 3706 --assume falling
    """
    from truerank.analysis.audits import audit
    from truerank.sampling.designs import UniformSampling

    found = audit(published, list(metrics) or None, n=n, design=UniformSampling(m, replace), users=users, assume=assume)
    if form == "table":
        click.echo(str(found))
    else:
        click.echo(getattr(found, f"to_{form}")())
        show_notes((*found.conclusions, *found.notes))
