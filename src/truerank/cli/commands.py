"""The command line: one command per public verb; it parses, calls and prints."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from truerank.evaluation.evaluations import Evaluation
    from truerank.papers.krichene_rendle_2020.experiment import Study
    from truerank.ranking.ranks import Ranks

DATA_SETS = tuple(f"movielens-{size}" for size in ("100k", "1m", "10m", "20m", "25m", "32m"))
FIGURE_FORMATS = ("svg", "pdf", "png")
FORMATS = ("table", "tsv", "json", "latex", "markdown")
TIES = ("expected", "optimistic", "pessimistic", "random")


class _Command(click.Command):
    """A command that answers bad input with one sentence and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        from truerank.errors import InputError

        try:
            return super().invoke(ctx)
        except InputError as error:
            click.echo(f"truerank: {error}", err=True)
            ctx.exit(2)
        except OSError as error:
            if error.filename is None:
                raise
            click.echo(f"truerank: {error.filename!r}: {error.strerror}.", err=True)
            ctx.exit(2)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="truerank")
def main() -> None:
    """How good is a recommender really: exact, sampled and corrected ranking metrics.

    Shell completion: run `eval "$(_TRUERANK_COMPLETE=bash_source truerank)"` (or zsh_source,
    fish_source), or put it into your shell's start-up file.
    """


def _complete_metric(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from truerank.metrics.registry import METRICS

    return [name for name in METRICS.names if name.startswith(incomplete.lower())]


def _split_columns(_ctx: click.Context, _param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise click.BadParameter(f"write ROLE=COLUMN, as in user=customer, got {pair!r}.")
    return dict(pair.split("=", 1) for pair in pairs)


def _writable(_ctx: click.Context, _param: click.Parameter, path: str | None) -> str | None:
    """Refuse a path that can't be written, before any work; a folder may be new."""
    if path is not None:
        folder = Path(path).parent
        if not folder.is_dir():
            raise click.BadParameter(f"there is no folder {str(folder)!r}.")
        if not os.access(path if Path(path).exists() else folder, os.W_OK):
            raise click.BadParameter(f"{path!r} can't be written.")
    return path


def _depth(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | str | None:
    if text is None or text == "all":
        return text
    if text.isdigit() and int(text) > 0:
        return int(text)
    raise click.BadParameter(f"must be a whole number from 1, or 'all', got {text!r}.")


_metrics_option = click.option(
    "-m",
    "--metric",
    "metrics",
    multiple=True,
    required=True,
    shell_complete=_complete_metric,
    help="For instance ndcg@10, or ndcg@10~bv(0.1) on sampled ranks; may be repeated.",
)
_column_option = click.option(
    "-c",
    "--column",
    "columns",
    multiple=True,
    callback=_split_columns,
    metavar="ROLE=NAME",
    help="Name a column, e.g. user=customer.",
)
_output_option = click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False), help="A .parquet or .npz file to write."
)
_per_instance_option = click.option(
    "--per-instance",
    metavar="OUT",
    type=click.Path(dir_okay=False),
    help="Also write each instance's values (.csv, .tsv, .jsonl or .parquet).",
)
_format_option = click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print.",
)


@main.command(cls=_Command)
@click.argument("source", metavar="RANKS_OR_RUN", type=click.Path(allow_dash=True))
@click.option(
    "-t",
    "--truth",
    metavar="QRELS",
    type=click.Path(allow_dash=True),
    help="The relevant items, if RANKS_OR_RUN holds ranked lists.",
)
@_metrics_option
@click.option(
    "--depth",
    callback=_depth,
    metavar="N|all",
    help="Where the lists were cut (default: the longest list), or 'all' if they hold every candidate.",
)
@click.option(
    "--ties",
    type=click.Choice(TIES),
    default="expected",
    show_default=True,
    help="How equal scores are resolved.",
)
@click.option("--seed", type=int, help="Seed of --ties random.")
@_column_option
@click.option(
    "--define",
    "definitions",
    type=click.Path(exists=True, dir_okay=False),
    multiple=True,
    help="Python file that registers metrics of your own.",
)
@_per_instance_option
@_format_option
def evaluate(
    source: str,
    truth: str | None,
    metrics: tuple[str, ...],
    depth: Any,
    ties: Any,
    seed: int | None,
    columns: dict[str, str],
    definitions: tuple[str, ...],
    per_instance: str | None,
    form: str,
) -> None:
    """Compute metrics from ranks, or from ranked lists and their truth.

    RANKS_OR_RUN is a file that truerank wrote, a table of ranks (user_id, rank, n), or with --truth
    a TREC run or a table of lists (user_id, item_id, score). "-" is standard input.

    \b
    truerank evaluate ranks.parquet -m ndcg@10 -m auc
    truerank evaluate run.trec --truth qrels.trec -m ndcg@10 --format json
    """
    from truerank.corrections.reading import as_metrics
    from truerank.evaluation.evaluations import evaluate as evaluate_ranks

    for definition in definitions:
        runpy.run_path(definition)
    chosen = as_metrics(metrics)
    ranks = _read(source, truth, depth, columns)
    table = evaluate_ranks(ranks, chosen, ties=ties, rng=seed, progress=True)
    if per_instance:
        _write_values(per_instance, ranks, chosen, ties, seed)
    _print(table, form)


def _read(source: str, truth: str | None, depth: Any, columns: dict[str, str]) -> Ranks:
    from truerank.errors import InputError
    from truerank.ranking.lists import read_lists
    from truerank.ranking.tables import read_ranks

    if truth is None:
        if depth is not None:
            raise InputError("--depth is about ranked lists, which need --truth.")
        return read_ranks(source, **_roles(columns, "user", "rank", "relevance", "m", "n"))
    if source == truth == "-":
        raise InputError("only one of RANKS_OR_RUN and --truth can be standard input.")
    return read_lists(source, truth, depth=depth, **_roles(columns, "user", "item", "score", "rank", "relevance"))


def _roles(columns: dict[str, str], *roles: str) -> dict[str, Any]:
    """Refuse a column for a role that the reader does not know."""
    from truerank.errors import InputError

    for role in columns:
        if role not in roles:
            raise InputError(f"unknown role {role!r}; choose from {', '.join(roles)}.")
    return dict(columns)


def _print(table: Evaluation, form: str) -> None:
    """Print a table; its notes are part of the readable form, and go to standard error beside the others."""
    if form == "table":
        click.echo(str(table))
        return
    click.echo(getattr(table, f"to_{form}")())
    for note in table.notes:
        click.echo(f"note: {note}", err=True)


def _write_values(path: str, ranks: Ranks, metrics: tuple[Any, ...], ties: Any, seed: int | None) -> None:
    from truerank.evaluation.per_instance import values
    from truerank.formats.writing import write_columns

    names = range(len(ranks)) if ranks.ids is None else ranks.ids
    columns = {str(metric): values(ranks, metric, ties=ties, rng=seed) for metric in metrics}
    write_columns(path, {"instance": list(names), **columns})


@main.command(cls=_Command)
@click.option(
    "--factors",
    nargs=2,
    required=True,
    metavar="USERS.npy ITEMS.npy",
    type=click.Path(exists=True, dir_okay=False),
    help="Factors of the users and of the items, one row each.",
)
@click.option("--bias", type=click.Path(exists=True, dir_okay=False), help="One number per item, added to its scores.")
@click.option("--train", type=click.Path(), help="Training pairs (user_id, item_id), which are no candidates.")
@click.option("--test", type=click.Path(), required=True, help="Held-out pairs (user_id, item_id).")
@_output_option
@click.option("--threads", type=click.IntRange(min=1), help="Default: as many as there are processors.")
def rank(
    factors: tuple[str, str], bias: str | None, train: str | None, test: str, output: str, threads: int | None
) -> None:
    """Rank held-out items exactly, among the whole catalogue.

    Users and items in the files of pairs are row numbers of the factors, from 0.

    \b
    truerank rank --factors users.npy items.npy --train train.tsv --test test.tsv -o ranks.parquet
    truerank evaluate ranks.parquet -m ndcg@10 -m auc
    """
    from truerank.data.reading import read_pairs
    from truerank.formats.arrays import load_array
    from truerank.ranking.exact import rank as rank_exactly
    from truerank.ranking.files import check_path
    from truerank.scoring.scorers import Factors

    check_path(output)
    users, items = map(load_array, factors)
    scorer = Factors(users, items, None if bias is None else load_array(bias))
    shape = (scorer.n_users, scorer.n_items)
    known = None if train is None else read_pairs(train, shape)
    ranks = rank_exactly(scorer, train=known, test=read_pairs(test, shape), threads=threads, progress=True)
    ranks.save(output)
    click.echo(f"{ranks} -> {output}")
    for note in ranks.notes:
        click.echo(f"note: {note}", err=True)


@main.command(cls=_Command)
@click.argument("source", metavar="RANKS", type=click.Path(allow_dash=True))
@click.option("-m", "size", metavar="M", type=int, default=100, show_default=True, help="Candidates to sample.")
@click.option("--replace", is_flag=True, help="Sample with replacement.")
@click.option("--seed", type=int, help="Seed of the sample.")
@_output_option
def sample(source: str, size: int, replace: bool, seed: int | None, output: str) -> None:
    """Draw sampled ranks from exact ones, by their exact law.

    \b
    truerank sample ranks.parquet -m 100 --seed 1 -o sampled.parquet
    truerank correct sampled.parquet -m recall@10~bv(0.1) -m recall@10~cls
    """
    from truerank.ranking.files import check_path
    from truerank.ranking.tables import read_ranks
    from truerank.sampling.uniform import UniformSampling

    check_path(output)
    sampled = UniformSampling(size, replace).draw(read_ranks(source), rng=seed)
    sampled.save(output)
    click.echo(f"{sampled} -> {output}")


@main.command(cls=_Command)
@click.argument("source", metavar="SAMPLED", type=click.Path(allow_dash=True))
@_metrics_option
@click.option("--sampled", type=int, help="Candidates that were sampled, if the file has no column m.")
@click.option("--candidates", type=int, help="Candidates before sampling, if the file has no column n.")
@click.option("--replace", is_flag=True, help="The sample was drawn with replacement.")
@_column_option
@_format_option
def correct(
    source: str,
    metrics: tuple[str, ...],
    sampled: int | None,
    candidates: int | None,
    replace: bool,
    columns: dict[str, str],
    form: str,
) -> None:
    """Correct metrics that were measured on sampled candidates.

    SAMPLED is what `truerank sample` wrote, or a table of sampled ranks (user_id, rank, m, n), for
    instance from somebody else's study.

    \b
    truerank correct study.csv --sampled 100 --candidates 3541 -m ndcg@10~bv(0.1) -m ndcg@10~cls
    """
    from truerank.corrections.reading import as_metrics
    from truerank.errors import InputError
    from truerank.evaluation.evaluations import evaluate as evaluate_ranks
    from truerank.ranking.tables import read_ranks

    chosen = as_metrics(metrics)
    roles = _roles(columns, "user", "rank", "relevance", "m", "n")
    given = {"m": sampled, "n": candidates}
    ranks = read_ranks(source, replace=replace, **(given | roles))
    if ranks.design is None:
        raise InputError(f"{source!r} holds exact ranks, which need no correction.")
    _print(evaluate_ranks(ranks, chosen, progress=True), form)


@main.command(cls=_Command)
@click.argument("sources", metavar="NAME=RANKS...", nargs=-1, required=True)
@click.option("-m", "--metric", required=True, shell_complete=_complete_metric, help="For instance ap.")
@click.option("--replace", is_flag=True, help="Sample with replacement, as in eq. 15 of the paper.")
@click.option("--largest", type=click.IntRange(min=1), help="Largest sample size to look at (default: everything).")
def consistency(sources: tuple[str, ...], metric: str, replace: bool, largest: int | None) -> None:
    """Show at which sample sizes a sampled metric orders recommenders rightly.

    \b
    truerank consistency A=a.parquet B=b.parquet C=c.parquet -m ap
    """
    from truerank.analysis.orders import consistency as compare
    from truerank.errors import InputError
    from truerank.ranking.tables import read_ranks

    named = {}
    for source in sources:
        name, found, path = source.partition("=")
        if not found:
            raise InputError(f"write NAME=RANKS, as in iALS=ials.parquet, got {source!r}.")
        named[name] = read_ranks(path)
    sizes = None if largest is None else range(1, largest + 1)
    click.echo(str(compare(named, metric, replace=replace, sizes=sizes)))


@main.command(cls=_Command)
@click.argument("name", type=click.Choice(DATA_SETS))
@click.option("--to", "folder", required=True, metavar="DIR", type=click.Path(file_okay=False), help="Where to put it.")
@click.option("--from", "site", metavar="URL", help="A mirror, instead of GroupLens' own site.")
def data(name: str, folder: str, site: str | None) -> None:
    """Fetch MovieLens from its makers, or go on where that broke off; the checksum is checked.

    The zip file is left as it is: read_interactions reads it. GroupLens' terms of use, in the README
    inside, forbid passing it on.

    \b
    truerank data movielens-1m --to data
    """
    from truerank.data.downloads import SITE, download

    path = download(name, folder, site=site or SITE, progress=True)
    click.echo(f"{path} is complete; read it with tr.read_interactions({str(path)!r})")


@main.command(cls=_Command)
@click.option("--solution", required=True, type=click.Path(), help="Lines id:flag:lecture|score,lecture|score,...")
@click.option("--submission", required=True, type=click.Path(), help="Lines id: lecture, lecture, ...; best first.")
@click.option("--cutoffs", metavar="Z,Z,...", help="For instance 5,10.")
@click.option("--task", type=click.Choice(["1", "2"]), help="Cut-offs of a task: 5,10,...,30 (1) or 5,10 (2).")
@click.option(
    "--missing",
    type=click.Choice(["refuse", "zero"]),
    default="refuse",
    show_default=True,
    help="A query of the solution without a line in the submission is refused, or scores 0.",
)
@_per_instance_option
@_format_option
def marp(
    solution: str,
    submission: str,
    cutoffs: str | None,
    task: str | None,
    missing: Any,
    per_instance: str | None,
    form: str,
) -> None:
    """Score a submission to the VideoLectures.Net challenge by mean average R-precision.

    Scores are those of all queries, of the leaderboard's (flag 1) and of the rest (flag 0).

    \b
    truerank marp --solution solution.txt --submission submission.txt --cutoffs 5,10
    truerank marp --solution solution.txt --submission submission.txt --task 1 --per-instance scores.csv
    """
    from truerank.challenges.vlnet import CUTOFFS, read_vlnet
    from truerank.corrections.reading import metric as as_metric
    from truerank.errors import InputError
    from truerank.evaluation.evaluations import evaluate as evaluate_ranks
    from truerank.metrics.graded import MARp, Rp

    if (cutoffs is None) == (task is None):
        raise InputError("give the cut-offs either by --cutoffs, as in --cutoffs 5,10, or by --task 1 or 2.")
    wanted = ",".join(map(str, CUTOFFS[int(task)])) if task else cutoffs
    metric = as_metric(f"marp@{wanted}")
    assert isinstance(metric, MARp), "that is what the text says"
    ranks = read_vlnet(solution, submission, depth=metric.k[-1], missing=missing)
    table = evaluate_ranks(ranks, metric, progress=True)
    if per_instance:
        _write_values(per_instance, ranks["all"], (metric, *map(Rp, metric.k)), "expected", None)
    _print(table, form)


@main.command(cls=_Command)
@click.argument("paper", type=click.Choice(["krichene-rendle"]))
@click.option(
    "--data",
    "source",
    metavar="PATH",
    type=click.Path(exists=True),
    help="Start from ratings: MovieLens 1M's own files or zip, or a folder with train and test files.",
)
@click.option(
    "--json",
    "json_file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    callback=_writable,
    help="Also write every cell.",
)
@click.option(
    "--figures",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False),
    callback=_writable,
    help="Where to put the figures (default: krichene-rendle).",
)
@click.option(
    "--as",
    "formats",
    type=click.Choice(FIGURE_FORMATS),
    multiple=True,
    default=["svg"],
    show_default=True,
    help="What kind of files; may be repeated.",
)
def reproduce(
    paper: str, source: str | None, json_file: str | None, folder: str | None, formats: tuple[str, ...]
) -> None:
    """Compute a paper's tables and figures and show them beside the published numbers.

    krichene-rendle is "On Sampled Metrics for Item Recommendation", KDD 2020. By default the ranks
    of its three recommenders on MovieLens 1M are those that come with the package; with --data they
    are computed from ratings.

    \b
    truerank reproduce krichene-rendle --json cells.json --figures pictures --as pdf
    truerank reproduce krichene-rendle --data ml-1m.zip
    """
    from truerank.errors import InputError
    from truerank.papers.krichene_rendle_2020 import experiment
    from truerank.papers.krichene_rendle_2020.reproduction import draw, tables, to_json
    from truerank.report.plots import check_matplotlib

    if folder:
        check_matplotlib()
    study = _train(source) if source else experiment.embedded()
    done = []
    for table in tables(study):
        click.echo(f"{table}\n")
        done.append(table)
    if json_file:
        Path(json_file).write_text(to_json(done, source or "ranks that come with truerank"), encoding="utf-8")
        click.echo(f"Every cell is in {json_file!r}.\n")
    try:
        for line in draw(study, folder or paper, formats):
            click.echo(line)
    except InputError as missing:
        click.echo(f"note: {missing}", err=True)


def _train(source: str) -> Study:
    from truerank.papers.krichene_rendle_2020 import experiment

    split = experiment.load_split(source)
    click.echo(f"train: {split.train}\ntest: {split.test}\n")
    for note in split.notes:
        click.echo(f"note: {note}", err=True)
    if split.train.matrix.shape != experiment.SHAPE:
        users, items = experiment.SHAPE
        note = f"these are not MovieLens 1M ({users:,} users, {items:,} items): expect other numbers than published"
        click.echo(f"note: {note}", err=True)
    return experiment.from_split(split)


if __name__ == "__main__":
    sys.exit(main())
