"""``truerank evaluate``: metrics of ranks, or of ranked lists."""

from __future__ import annotations

import runpy
import secrets
import traceback
from typing import TYPE_CHECKING, Any

import click

from truerank.cli import options
from truerank.cli.options import STANDARD_INPUT
from truerank.cli.output import STANDARD_OUTPUT, show_table, write_values
from truerank.core import InputError
from truerank.core.conventions import CONVENTIONS

if TYPE_CHECKING:
    from truerank.core.ranks import Ranks
    from truerank.evaluation.evaluations import Evaluation

TIES = ("expected", "optimistic", "pessimistic", "random")


def _read_depth(_ctx: click.Context, param: click.Parameter, text: str | None) -> int | str | None:
    return text if text in (None, "all") else options.read_whole(text, param, otherwise=", or 'all'")


@click.command()
@options.sources_argument("RANKS_OR_RUN")
@options.path_option(
    "-t",
    "--truth",
    metavar="QRELS",
    help="The relevant items, if RANKS_OR_RUN holds ranked lists; - is standard input.",
)
@options.metrics_option()
@click.option(
    "--depth",
    metavar="N|all",
    callback=_read_depth,
    help="Where the lists were cut (default: the longest list), or 'all' if they hold every candidate.",
)
@options.choice_option("--ties", TIES, "How equal scores are resolved.")
@options.seed_option("--ties random")
@options.assume_option
@click.option(
    "--convention",
    type=click.Choice(list(CONVENTIONS)),
    help="Print the numbers that this tool would print, to match published ones.",
)
@options.columns_option
@options.formats_option("run", "truth")
@options.path_option(
    "--define", "definitions", multiple=True, help="Python file that registers additional metrics. May be repeated."
)
@options.groups_option
@options.minimum_option
@options.per_instance_option
@options.format_option
def command(
    sources: dict[str, str],
    truth: str | None,
    metrics: tuple[str, ...],
    depth: Any,
    ties: Any,
    rng: int | None,
    assume: Any,
    convention: str | None,
    columns: dict[str, str],
    formats: dict[str, Any],
    definitions: tuple[str, ...],
    by: str | None,
    minima: dict[str, float],
    per_instance: str | None,
    form: str,
) -> None:
    """Compute metrics from ranks, or from ranked lists and the relevant items.

    RANKS_OR_RUN is a file that truerank wrote, a table of ranks (user_id, rank, n), or with --truth
    a TREC run or a table of lists (user_id, item_id, score); - is standard input. Several files make
    one row each, named by NAME or by the file.

    \b
    truerank evaluate ranks.parquet -m ndcg@10 -m auc
    truerank evaluate als=a.parquet bpr=b.parquet -m ndcg@10,recall@10 --per-instance values.csv
    truerank evaluate run.trec --truth qrels.trec -m ndcg@10 --format json
    truerank evaluate run.trec --truth qrels.trec -m ndcg@10,ap --convention trec_eval
    truerank evaluate ranks.parquet -m ndcg@10 --min ndcg@10=0.05 --by groups.csv
    """
    from truerank.estimators.corrected import as_metrics
    from truerank.evaluation.evaluations import evaluate

    options.check_output(per_instance, *sources.values(), truth, by, *definitions)
    _check_convention(convention, by, per_instance)
    for definition in definitions:
        _define(definition)
    least = {str(as_metrics(name)[0]): value for name, value in minima.items()}
    chosen = as_metrics(tuple(dict.fromkeys([*map(str, as_metrics(metrics)), *least])))
    groups = options.read_groups(by)
    ranks = _read(sources, truth, depth, columns, formats, convention)
    # one order of the ties for the table and for the values of each instance
    seed = secrets.randbits(32) if rng is None else rng
    table = evaluate(ranks, chosen, by=groups, ties=ties, rng=seed, assume=assume, convention=convention, progress=True)
    show_table(options.noted(table, ranks), form, aside=per_instance in STANDARD_OUTPUT)
    if per_instance:
        write_values(per_instance, ranks, chosen, ties=ties, rng=seed)
    if below := _below(table, least):
        for sentence in below:
            click.echo(sentence, err=True)
        click.get_current_context().exit(1)


def _check_convention(convention: str | None, by: str | None, per_instance: str | None) -> None:
    other = "--by" if by else "--per-instance"
    if convention and (by or per_instance):
        raise InputError(f"--convention gives one number per metric and recommender: leave out {other}.")


def _below(table: Evaluation, least: dict[str, float]) -> list[str]:
    """Return a sentence for each mean that is not at least its minimum."""
    return [
        f"fails: {row['metric']} of {row['recommender']}{' in ' + row['group'] if table.groups else ''} is "
        f"{row['mean']:.6g}, below {least[row['metric']]:g}."
        for row in table.rows()
        if row["metric"] in least and not row["mean"] >= least[row["metric"]]
    ]


def _read(
    sources: dict[str, str],
    truth: str | None,
    depth: Any,
    columns: dict[str, str],
    formats: dict[str, Any],
    convention: str | None,
) -> dict[str, Ranks]:
    from truerank.ranking.ranks_from_lists import read_lists

    if truth is None:
        if depth is not None:
            raise InputError("--depth applies only to ranked lists, which need --truth.")
        if formats:
            raise InputError("--format-of applies only to ranked lists, which need --truth.")
        return options.read_all(sources, columns)
    if truth == STANDARD_INPUT and (len(sources) > 1 or STANDARD_INPUT in sources.values()):
        raise InputError("--truth can be standard input only with a single run, which is a file.")
    named = options.by_role(columns, "user", "item", "score", "rank", "relevance")
    named |= {"depth": depth, "convention": convention}
    named |= {f"{source}_format": form for source, form in formats.items()}
    return {name: read_lists(path, truth, **named) for name, path in sources.items()}


def _define(path: str) -> None:
    """Run a user's file; errors in it are reported with their line."""
    try:
        runpy.run_path(path)
    except OSError as error:
        if error.filename != path:
            raise
        raise InputError(f"can't read {path!r}: {error.strerror}.") from error
    except (Exception, SystemExit) as error:
        raise InputError(f"{path!r} fails in line {_line(error, path)}: {type(error).__name__}: {error}") from error


def _line(error: BaseException, path: str) -> int | None:
    if isinstance(error, SyntaxError):
        return error.lineno
    return next(
        (frame.lineno for frame in reversed(traceback.extract_tb(error.__traceback__)) if frame.filename == path), None
    )
