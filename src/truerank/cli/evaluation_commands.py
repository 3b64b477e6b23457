"""``truerank evaluate``, ``correct`` and ``lists``: metrics of ranks, of sampled ranks, and of recommended lists."""

from __future__ import annotations

import runpy
import secrets
import traceback
from typing import Any

import click

import truerank as tr
from truerank.cli import options
from truerank.cli.output import STANDARD_OUTPUT, show_table, write_values
from truerank.core.conventions import CONVENTIONS

TIES = ("expected", "optimistic", "pessimistic", "random")


@click.command()
@options.sources_argument("RANKS_OR_RUN")
@options.metrics_option()
@options.reads_inputs
@options.choice_option("--ties", TIES, "How equal scores are resolved.")
@options.seed_option("--ties random")
@options.assume_option
@click.option(
    "--convention",
    type=click.Choice(list(CONVENTIONS)),
    help="Print the numbers that this tool would print, to match published ones.",
)
@options.path_option(
    "--define", "definitions", multiple=True, help="Python file that registers additional metrics. May be repeated."
)
@options.minimum_option
@options.per_instance_option
@options.format_option
def evaluate(
    sources: dict[str, str],
    metrics: tuple[str, ...],
    inputs: options.Inputs,
    ties: Any,
    rng: int | None,
    assume: Any,
    convention: str | None,
    definitions: tuple[str, ...],
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
    truerank evaluate ranks.parquet -m ndcg@10 --by activity --split folder --users users.txt
    """
    options.check_output(per_instance, *sources.values(), *inputs.paths, *definitions)
    if convention and (inputs.by or per_instance):
        other = "--by" if inputs.by else "--per-instance"
        raise tr.InputError(f"--convention gives one number per metric and recommender: leave out {other}.")
    for definition in definitions:
        _define(definition)
    least = {tr.metric(name): value for name, value in minima.items()}
    chosen = tuple(dict.fromkeys([*map(tr.metric, metrics), *least]))
    ranks = inputs.ranks(sources, convention=convention)
    groups = inputs.groups(ranks)
    # one order of the ties for the table and for the values of each instance
    seed = secrets.randbits(32) if rng is None else rng
    how = {"by": groups, "ties": ties, "rng": seed, "assume": assume, "convention": convention}
    table = tr.evaluate(ranks, chosen, progress=True, **how)
    show_table(options.noted(table, ranks), form, aside=per_instance in STANDARD_OUTPUT)
    if per_instance:
        write_values(per_instance, ranks, chosen, ties=ties, rng=seed)
    if below := _below(table, {str(metric): value for metric, value in least.items()}):
        for sentence in below:
            click.echo(sentence, err=True)
        click.get_current_context().exit(1)


def _below(table: tr.Evaluation, least: dict[str, float]) -> list[str]:
    """Return a sentence for each mean that is not at least its minimum."""
    return [
        f"fails: {row['metric']} of {row['recommender']}{' in ' + row['group'] if table.groups else ''} is "
        f"{row['mean']:.6g}, below {least[row['metric']]:g}."
        for row in table.rows()
        if row["metric"] in least and not row["mean"] >= least[row["metric"]]
    ]


def _define(path: str) -> None:
    """Run a user's file; errors in it are reported with their line."""
    try:
        runpy.run_path(path)
    except OSError as error:
        if error.filename != path:
            raise
        raise tr.InputError(f"can't read {path!r}: {error.strerror}.") from error
    except (Exception, SystemExit) as error:
        raise tr.InputError(f"{path!r} fails in line {_line(error, path)}: {type(error).__name__}: {error}") from error


def _line(error: BaseException, path: str) -> int | None:
    if isinstance(error, SyntaxError):
        return error.lineno
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next((frame.lineno for frame in frames if frame.filename == path), None)


@click.command()
@options.sources_argument("SAMPLED")
@options.metrics_option()
@options.whole_option("--sampled", "m", metavar="M", help="Number of sampled candidates, if the file has no column m.")
@options.whole_option("--candidates", "n", help="Number of candidates before sampling, if the file has no column n.")
@click.option("--replace", is_flag=True, help="Candidates were sampled with replacement.")
@options.assume_option
@options.columns_option
@options.format_option
def correct(
    sources: dict[str, str], metrics: tuple[str, ...], columns: dict[str, str], assume: Any, form: str, **about: Any
) -> None:
    """Correct metrics that were measured on sampled candidates.

    SAMPLED is what `truerank sample` wrote, or a table of sampled ranks (user_id, rank, m, n), for
    instance from a published study; - is standard input. Several files make one row each, named by
    NAME or by the file. Ranks from inverse sampling get the recommended estimator, which the table
    names; write others after a ~, as in ndcg@10~monotone. Corrected metrics are shown with
    the 95 % interval of the exact metric in brackets.

    \b
    truerank correct study.csv --sampled 100 --candidates 3541 -m 'ndcg@10~bv(0.1)' -m ndcg@10~cls
    truerank correct als=sampled-als.parquet bpr=sampled-bpr.parquet -m 'recall@10~bv(0.1)'
    """
    chosen = tuple(map(tr.metric, metrics))
    known = {role: value for role, value in about.items() if value is not None}
    for role in known.keys() & columns:
        raise tr.InputError(f"`{role}` is given both as a number and as a column.")
    ranks = options.read_all(sources, columns, **known)
    for name, path in sources.items():
        if ranks[name].design is None:
            raise tr.InputError(f"{path!r} holds exact ranks, which need no correction; give `m` if they were sampled.")
    show_table(options.noted(tr.evaluate(ranks, chosen, assume=assume, progress=True), ranks), form)


@click.command()
@options.sources_argument("LISTS")
@options.path_option("--train", required=True, help="Training pairs (user_id, item_id); their items are the catalogue.")
@options.path_option("-t", "--truth", metavar="QRELS", help="The relevant items, for metrics such as ndcg@10.")
@options.metrics_option("For instance coverage@10, gini@10, novelty@10, or ndcg@10 with --truth.{repeated}")
@options.columns_option
@options.formats_option("lists", "train")
@options.groups_option
@options.format_option
def lists(
    sources: dict[str, str], train: str, columns: dict[str, str], formats: dict[str, Any], form: str, **shown: Any
) -> None:
    """Describe recommended lists: how much they cover, and how popular, novel and varied their items are.

    LISTS is a TREC run or a table (user_id, item_id, score), as `truerank recommend` writes it. Several files make one
    row each, named by NAME or by the file.

    \b
    truerank lists lists.parquet --train train.csv -m coverage@10,gini@10,novelty@10
    truerank lists als=a.trec pop=b.trec --train train.csv --truth test.csv -m ndcg@10,coverage@10,overlap@10
    """
    shown["by"] = options.read_groups(shown["by"])
    data = tr.read_interactions(train, format=formats.get("train"))
    named = options.by_role(columns, "user", "item", "score", "rank") | {"format": formats.get("lists")}
    read = {name: tr.read_recommendations(path, data, **named) for name, path in sources.items()}
    show_table(tr.evaluate(read, train=data, **shown), form)
