"""``truerank audit``, ``check-evaluator``, ``consistency`` and ``plan``: what a study can show."""

import sys
from importlib import import_module
from typing import Any

import click

import truerank as tr
from truerank.cli import options
from truerank.cli.output import show_table


def _read_numbers(_ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]) -> dict[str, dict[str, str]]:
    published: dict[str, dict[str, str]] = {}
    for text in texts:
        system, named, rest = text.partition("=")
        metric, valued, number = rest.rpartition(":")
        if not (system and named and metric and valued and number):
            form = "NAME=METRIC:NUMBER, as in X=recall@10:0.6619"
            raise tr.InputError(f"a published number is given as {form}, got {options.shortened(text)}.")
        numbers = published.setdefault(system, {})
        if metric in numbers:
            raise tr.InputError(f"{metric} of {system} is given twice, {numbers[metric]} and {number}.")
        numbers[metric] = number
    return published


@click.command()
@click.argument("published", metavar="NAME=METRIC:NUMBER...", nargs=-1, required=True, callback=_read_numbers)
@options.metrics_option("Exact metrics to bound (default: those that were published).", required=False)
@options.whole_option("--sampled", "m", metavar="M", required=True, help="Number of sampled candidates.")
@options.whole_option("--candidates", "n", smallest=2, required=True, help="Number of candidates before sampling.")
@options.whole_option("--users", help="Users behind each published mean, to allow for its error.")
@click.option("--replace", is_flag=True, help="Candidates were sampled with replacement.")
@options.assume_option
@options.format_option
def audit(published: dict[str, dict[str, str]], m: int, replace: bool, form: str, **about: Any) -> None:
    """Show what published sampled metrics can mean for the exact ones.

    Give one or more sampled metrics of each NAME, as fractions. The exact metric could be anything in the range
    shown; the conclusion says whether the order of two systems is determined.

    \b
    truerank audit X=recall@10:0.6619 Y=recall@10:0.5651 --sampled 100 --candidates 3706 --users 6040
    truerank audit A=ap:0.3255 A=recall@10:0.6619 -m ap,recall@10 --sampled 100 --candidates 3706 --assume falling
    """
    metrics = list(about.pop("metrics")) or None
    show_table(tr.audit(published, metrics, design=tr.UniformSampling(m, replace), **about), form)


def _load_function(_ctx: click.Context, _param: click.Parameter, text: str) -> Any:
    module, _, name = text.partition(":")
    if not module or not name:
        raise tr.InputError(f"a function is given as package.module:function, got {options.shortened(text)}.")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as for `python -m`
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise tr.InputError(f"{options.shortened(text)} can't be imported: {error}.") from error


@click.command()
@click.argument("evaluate", metavar="MODULE:FUNCTION", callback=_load_function)
@options.format_option
def check_evaluator(evaluate: Any, form: str) -> None:
    """Find out which definitions an evaluator uses, with small cases whose answers are known.

    The function is called as evaluate(run, truth, k): run has the list of each user as pairs of item and score, truth
    the relevant items of each user. It returns the means over users by name, as in {"recall": 1.0, "ndcg": 0.63}.

    \b
    truerank check-evaluator my_package.evaluation:evaluate
    """
    show_table(tr.check_evaluator(evaluate), form)


@click.command()
@options.sources_argument("RANKS")
@options.metric_option
@click.option("--replace", is_flag=True, help="Sample with replacement, as in eq. 15 of the paper.")
@options.whole_option(
    "--largest", "sizes", metavar="M", largest=1_000_000, help="Look at every size up to this one (default: as needed)."
)
def consistency(sources: dict[str, str], metric: str, replace: bool, sizes: int | None) -> None:
    """Show at which sample sizes a sampled metric puts recommenders in their exact order.

    RANKS are files of exact ranks of two recommenders or more, named by NAME or by the file.

    \b
    truerank consistency als=a.parquet bpr=b.parquet -m ap
    truerank consistency a.parquet b.parquet c.parquet -m ndcg@10 --largest 1000
    """
    ranks = options.read_all(sources)
    if difference := options.different_instances(ranks):
        raise tr.InputError(f"recommenders can be compared on the same instances only: {difference}.")
    chosen, design = None if sizes is None else range(1, sizes + 1), "uniform(replace)" if replace else "uniform"
    show_table(tr.consistency(ranks, metric, design, sizes=chosen, progress=True), "table")


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
@options.number_option(
    "--probability", metavar="P", default="0.95", between=(0.5, 1.0), help="Target probability of the correct order."
)
@options.seed_option("the draws")
@options.columns_option
@options.format_option
def plan(sources: dict[str, str], metrics: tuple[str, ...], columns: dict[str, str], form: str, **how: Any) -> None:
    """Say how many users, or candidates and runs, it takes until means show the order of two recommenders.

    RANKS are two files of ranks of a pilot, exact or sampled, as for `truerank evaluate`, named by
    NAME or by the file.

    \b
    truerank plan old=a.parquet new=b.parquet -m ndcg@10,'ndcg@10~bv(0.1)'
    truerank plan a.parquet b.parquet -m ndcg@10 --design 100 --design 'inverse(2)'
    """
    if len(sources) != 2:
        raise tr.InputError(f"a plan needs exactly two recommenders, got {len(sources)} files.")
    found = tr.plan(options.read_all(sources, columns), metrics, **how)
    show_table(found, form, conclusions=found.conclusions)
