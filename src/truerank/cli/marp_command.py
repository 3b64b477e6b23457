"""``truerank marp``: scores of submissions to the VideoLectures.Net challenge."""

from __future__ import annotations

from typing import Any

import click

from truerank.cli import options
from truerank.cli.output import STANDARD_OUTPUT, show_table, write_values
from truerank.core import InputError


def _read_cutoffs(_ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    numbers = [
        options.read_whole(part.strip(), param, otherwise=", or several with commas") for part in text.split(",")
    ]
    return tuple(sorted(set(numbers)))


@click.command()
@options.path_option("--solution", required=True, help="Lines id:flag:lecture|score,lecture|score,...")
@options.path_option("--submission", required=True, help="Lines id: lecture, lecture, ...; best first.")
@click.option("--cutoffs", metavar="Z,Z,...", callback=_read_cutoffs, help="For instance 5,10.")
@click.option("--task", type=click.Choice(["1", "2"]), help="Cut-offs of a task: 5,10,...,30 (1) or 5,10 (2).")
@options.choice_option(
    "--missing", ["refuse", "zero"], "A query in the solution without a line in the submission is refused, or scores 0."
)
@options.per_instance_option
@options.format_option
def command(
    solution: str,
    submission: str,
    cutoffs: tuple[int, ...] | None,
    task: str | None,
    missing: Any,
    per_instance: str | None,
    form: str,
) -> None:
    """Score a submission to the VideoLectures.Net challenge by mean average R-precision.

    There are three scores: of all queries, of the leaderboard's (flag 1) and of the rest (flag 0).

    \b
    truerank marp --solution solution.txt --submission submission.txt --cutoffs 5,10
    truerank marp --solution solution.txt --submission submission.txt --task 1 --per-instance scores.csv
    """
    from truerank.evaluation.evaluations import evaluate
    from truerank.metrics.definitions import MARp, Rp
    from truerank.papers.vlnet import CUTOFFS, read_vlnet

    if (cutoffs is None) == (task is None):
        raise InputError("give the cut-offs either by --cutoffs, as in --cutoffs 5,10, or by --task 1 or 2.")
    metric = MARp(cutoffs or CUTOFFS[int(task or 0)])
    ranks = read_vlnet(solution, submission, depth=metric.k[-1], missing=missing)
    show_table(evaluate(ranks, metric, progress=True), form, aside=per_instance in STANDARD_OUTPUT)
    if per_instance:
        write_values(per_instance, {"all": ranks["all"]}, (metric, *map(Rp, metric.k)))
