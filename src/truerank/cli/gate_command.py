"""``truerank gate``: whether a new recommender may replace an old one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from truerank.cli import options
from truerank.cli.output import show_notes
from truerank.core import InputError

if TYPE_CHECKING:
    from truerank.evaluation.differences import Difference

EXIT_CODES = {"passes": 0, "fails": 1, "cannot tell": 3}
"""1 means worse and nothing else; any failure is 2 or more."""


@click.command()
@click.argument("new", metavar="[NAME=]NEW")
@click.option("--against", "old", metavar="[NAME=]OLD", required=True, help="Ranks of the recommender in use.")
@options.metric_option
@click.option(
    "--margin",
    metavar="X",
    required=True,
    callback=options.number(0.0),
    help="Smallest unacceptable loss, e.g. 0.002; with 0, the new one must be better.",
)
@options.level_option
@options.test_option
@options.unmatched_option
@options.assume_option
@options.seed_option("--test bootstrap, randomisation")
@options.columns_option
def command(new: str, old: str, metric: str, margin: float, level: float, columns: dict[str, str], **how: Any) -> None:
    """Say whether a new recommender is at most a little worse than an old one, for release pipelines.

    NEW and OLD are files of ranks, as for `truerank evaluate`. Exit code 0: a loss of the margin or
    more can be ruled out. 1: NEW is worse by more than the margin, and nothing else. 2: input that
    can't be used. 3: the data do not decide; the sentence says how many users probably would.

    \b
    truerank gate new.parquet --against old.parquet -m ndcg@10 --margin 0.002
    truerank gate v2=runs/2.parquet --against v1=runs/1.parquet -m recall@20 --margin 0 --level 0.99
    """
    from truerank.evaluation.comparisons import compare

    if not 0.5 < level < 1:
        raise InputError(f"--level must lie between 0.5 and 1 for a gate, got {level:g}.")
    ranks = options.read_all(_named(new, old), columns)
    result = compare(ranks, metric, level=level, margin=margin, progress=True, **how)
    sentence, code = judge(result.differences[0].reversed(), margin)
    show_notes(result.notes)
    click.echo(sentence)
    click.get_current_context().exit(code)


def _named(new: str, old: str) -> dict[str, str]:
    """Return both paths by name: 'new' and 'old' if the files have the same name."""
    names = [next(iter(options.named_paths([text]).items())) for text in (new, old)]
    if names[0][0] == names[1][0]:
        names = [("new", names[0][1]), ("old", names[1][1])]
    return dict(names)


def judge(found: Difference, margin: float) -> tuple[str, int]:
    """Return a sentence and the exit code."""
    from truerank.evaluation.differences import acceptance, one_sided

    decision = acceptance(found, margin)
    verdict = {"passes": _passed, "fails": _failed, "cannot tell": _open}[decision](found, margin)
    remark = f"; {found.finding.remark}" if found.finding.remark else ""
    needed = f"; {_needed(found, margin)}" if decision == "cannot tell" else ""
    # who is better, a two-sided test says; that a loss of the margin is ruled out, or more than it is lost, a one-sided
    two_sided = not margin or decision == "cannot tell" or found.finding.winner == found.recommender
    level = found.level if two_sided else one_sided(found.level)
    return f"{verdict}: {_values(found, level)}{remark}{needed}.", EXIT_CODES[decision]


def _passed(found: Difference, margin: float) -> str:
    if found.finding.winner == found.recommender:
        return f"passes: {found.recommender} is better than {found.baseline}"
    return f"passes: {found.recommender} is not worse than {found.baseline} by {margin:g} or more"


def _failed(found: Difference, margin: float) -> str:
    more = f" by more than {margin:g}" if margin else ""
    return f"fails: {found.recommender} is worse than {found.baseline}{more}"


def _open(found: Difference, margin: float) -> str:
    loss = f"worse than {found.baseline} by {margin:g} or more" if margin else f"better than {found.baseline}"
    return f"cannot tell whether {found.recommender} is {loss}"


def _values(found: Difference, level: float) -> str:
    low, high = found.confidence_interval(level)
    return (
        f"{found.metric} {found.mean:.4f} against {found.baseline_mean:.4f}, a difference of {found.difference:+.4f} "
        f"({100 * level:g} % interval {low:+.4f} to {high:+.4f}, {found.n} instances)"
    )


def _needed(found: Difference, margin: float) -> str:
    if found.bounded:
        return "the sampled candidates do not determine it, so rank all of them"
    # without a margin the new one must be better by a two-sided test
    needed = found.instances_needed(margin, level=None if margin else (1 + found.level) / 2)
    if not math.isfinite(needed):
        return "no number of instances would settle it if the true difference is the observed one"
    return f"about {max(int(needed), found.n + 1):,} instances would settle it with a probability of 80 %"
