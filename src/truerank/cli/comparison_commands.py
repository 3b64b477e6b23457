"""``truerank compare`` and ``gate``: which recommender is better, and whether a new one may replace an old one."""

from __future__ import annotations

import math
from typing import Any

import click

import truerank as tr
from truerank.cli import options
from truerank.cli.output import show_notes, show_table


@click.command()
@options.sources_argument("RANKS")
@options.metrics_option()
@click.option("--baseline", metavar="NAME", help="Compare all others with this one (default: all pairs).")
@options.groups_option
@options.test_option
@options.choice_option(
    "--adjustment",
    ["holm", "max-t", "tukey", "benjamini-hochberg", "none"],
    "How p-values, intervals and verdicts allow for the number of tests.",
)
@options.number_option(
    "--margin",
    help="A difference that does not matter: verdicts also say who differs by less or is not worse by more.",
)
@options.level_option
@options.unmatched_option
@options.assume_option
@click.option("--same-candidates", is_flag=True, help="All recommenders were ranked among the same sampled candidates.")
@options.seed_option("--test bootstrap, randomisation")
@options.whole_option(
    "--replicates", default="10000", show_default=True, smallest=100, largest=10_000_000, help="Number of resamples."
)
@options.columns_option
@options.format_option
def compare(
    sources: dict[str, str], metrics: tuple[str, ...], by: str | None, columns: dict[str, str], form: str, **how: Any
) -> None:
    """Compare recommenders pair by pair, on the same instances.

    RANKS are files of ranks of two recommenders or more, as for `truerank evaluate`, named by NAME
    or by the file. Instances are matched by id. On sampled ranks, an order is claimed only if the
    sample determines it.

    \b
    truerank compare old=a.parquet new=b.parquet -m ndcg@10,recall@10
    truerank compare als=a.parquet bpr=b.parquet pop=c.parquet -m ndcg@10 --baseline pop --test bootstrap
    """
    from truerank.evaluation.comparisons import conclusions

    groups = options.read_groups(by)
    result = tr.compare(options.read_all(sources, columns), metrics, by=groups, progress=True, **how)
    show_table(result, form, conclusions=conclusions(result))


EXIT_CODES = {"passes": 0, "fails": 1, "cannot tell": 3}
"""1 means worse and nothing else; any failure is 2 or more."""


@click.command()
@click.argument("new", metavar="[NAME=]NEW")
@click.option("--against", "old", metavar="[NAME=]OLD", required=True, help="Ranks of the recommender in use.")
@options.metric_option
@options.number_option(
    "--margin", required=True, help="Smallest unacceptable loss, e.g. 0.002; with 0, the new one must be better."
)
@options.level_option
@options.test_option
@options.unmatched_option
@options.assume_option
@options.seed_option("--test bootstrap, randomisation")
@options.columns_option
def gate(new: str, old: str, metric: str, margin: float, level: float, columns: dict[str, str], **how: Any) -> None:
    """Say whether a new recommender is acceptable in place of an old one, for release pipelines.

    NEW and OLD are files of ranks, as for `truerank evaluate`. Exit code 0: a loss of the margin or
    more can be ruled out. 1: NEW is worse by more than the margin, and nothing else. 2: input that
    can't be used. 3: the data do not settle it; the message says how many users probably would.
    If you ask again and again while users are added, use `--test anytime`.

    \b
    truerank gate new.parquet --against old.parquet -m ndcg@10 --margin 0.002
    truerank gate v2=runs/2.parquet --against v1=runs/1.parquet -m recall@20 --margin 0 --level 0.99
    """
    if not 0.5 < level < 1:
        raise tr.InputError(f"--level must lie between 0.5 and 1 for a gate, got {level:g}.")
    ranks = options.read_all(_named(new, old), columns)
    result = tr.compare(ranks, metric, level=level, margin=margin, progress=True, **how)
    sentence, code = judge(result.differences[0].reversed(), margin)
    show_notes(result.notes)
    click.echo(sentence)
    click.get_current_context().exit(code)


def _named(new: str, old: str) -> dict[str, str]:
    """Return both paths by name: 'new' and 'old' if the files have the same name."""
    (name, new_path), (other, old_path) = (next(iter(options.named_paths([text]).items())) for text in (new, old))
    return {"new": new_path, "old": old_path} if name == other else {name: new_path, other: old_path}


def judge(found: tr.Difference, margin: float) -> tuple[str, int]:
    """Return a sentence and the exit code."""
    from truerank.evaluation.differences import acceptance, one_sided

    decision = acceptance(found, margin)
    remark = f"; {found.finding.remark}" if found.finding.remark else ""
    needed = f"; {_needed(found, margin)}" if decision == "cannot tell" else ""
    # a two-sided test says who is better; a one-sided one, that the loss is smaller or larger than the margin
    two_sided = not margin or decision == "cannot tell" or found.finding.winner == found.recommender
    level = found.level if two_sided else one_sided(found.level)
    return f"{_verdict(decision, found, margin)}: {_values(found, level)}{remark}{needed}.", EXIT_CODES[decision]


def _verdict(decision: str, found: tr.Difference, margin: float) -> str:
    new, old = found.recommender, found.baseline
    if decision == "fails":
        return f"fails: {new} is worse than {old}" + (f" by more than {margin:g}" if margin else "")
    if decision == "cannot tell":
        loss = f"worse than {old} by {margin:g} or more" if margin else f"better than {old}"
        return f"cannot tell whether {new} is {loss}"
    if found.finding.winner == new:
        return f"passes: {new} is better than {old}"
    return f"passes: {new} is not worse than {old} by {margin:g} or more"


def _values(found: tr.Difference, level: float) -> str:
    low, high = found.confidence_interval(level)
    return (
        f"{found.metric} {found.mean:.4f} against {found.baseline_mean:.4f}, a difference of {found.difference:+.4f} "
        f"({100 * level:g} % interval {low:+.4f} to {high:+.4f}, {found.n} instances)"
    )


def _needed(found: tr.Difference, margin: float) -> str:
    if found.bounded:
        return "the sampled candidates do not determine it, so rank all of them"
    # without a margin the new one must be better by a two-sided test
    needed = found.instances_needed(margin, level=None if margin else (1 + found.level) / 2)
    if not math.isfinite(needed):
        return "no number of instances would settle it if the true difference is the observed one"
    return f"about {max(int(needed), found.n + 1):,} instances would settle it with a probability of 80 %"
