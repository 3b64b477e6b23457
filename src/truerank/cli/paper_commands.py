"""``truerank reproduce`` and ``marp``: recomputed numbers of papers and challenges, beside the published ones."""

from __future__ import annotations

from typing import Any

import click

import truerank as tr
from truerank.cli import options
from truerank.cli.output import STANDARD_OUTPUT, show_notes, show_table, write_values

FIGURE_FORMATS = ("svg", "pdf", "png")
# steps of the reproduction: its tables, and the lines on its figures
_TABLES, _LINES = 4, 7


@click.command()
@click.argument("paper", type=click.Choice(["krichene-rendle"]))
@options.path_option(
    "--data",
    "source",
    metavar="PATH",
    help="Start from ratings: the files or the zip of MovieLens 1M, or a directory with train and test files.",
)
@options.path_option(
    "--json", "json_file", callback=options.writable(), help="Also write every cell of the tables to a JSON file."
)
@options.path_option(
    "--figures", "folder", metavar="DIR", help="Directory for figures and report (default: named after the paper)."
)
@click.option(
    "--as",
    "formats",
    type=click.Choice(FIGURE_FORMATS),
    multiple=True,
    default=["svg"],
    show_default=True,
    help="File format of the figures. May be repeated.",
)
def reproduce(
    paper: str, source: str | None, json_file: str | None, folder: str | None, formats: tuple[str, ...]
) -> None:
    """Compute a paper's tables and figures, show them beside the published numbers, and write a report.

    krichene-rendle is "On Sampled Metrics for Item Recommendation", KDD 2020. By default the ranks
    of its three recommenders on MovieLens 1M are those that come with the package; with --data they
    are computed from ratings.

    \b
    truerank reproduce krichene-rendle --json cells.json --figures pictures --as pdf
    truerank reproduce krichene-rendle --data ml-1m.zip
    """
    from truerank.core.threads import progress_bar
    from truerank.formats.writing import check_writable_folder, write_text
    from truerank.papers.krichene_rendle_2020 import movielens, reproduction

    options.check_output(json_file, source)
    drawn = _can_draw(required=folder is not None)
    check_writable_folder(folder or paper)
    split = _described(movielens.load_split(source), movielens.SHAPE) if source else None
    study = movielens.embedded() if split is None else movielens.from_split(split)
    done = []
    with progress_bar("steps", True, total=_TABLES + _LINES * drawn + 1, delay=0, leave=False) as bar:
        for table in reproduction.tables(study):
            _echo(f"{table}\n", bar)
            done.append(table)
        if json_file:
            write_text(json_file, reproduction.to_json(done, source or "ranks that come with truerank"))
            bar.clear()
            click.echo(f"Every cell is in {json_file!r}.\n")
        for line in reproduction.draw(study, folder or paper, formats) if drawn else ():
            _echo(line, bar)
        path = reproduction.write_paper_report(study, done, folder or paper)
        _echo(f"The report, to be opened in a browser, is {str(path)!r}.", bar)


def _echo(text: str, bar: Any) -> None:
    """Print the result of a step, above the progress bar."""
    bar.clear()
    click.echo(text)
    bar.update()


def _can_draw(*, required: bool) -> bool:
    """Return whether figures can be drawn; if not, and they were not asked for, a note says why."""
    from truerank.report.plots import check_matplotlib

    try:
        check_matplotlib()
    except tr.InputError as missing:
        if required:
            raise
        show_notes([str(missing)])
        return False
    return True


def _described(split: tr.Split, shape: tuple[int, int]) -> tr.Split:
    """Print what a split holds, with a note if that is not MovieLens 1M, and return it."""
    click.echo(f"train: {split.train}\ntest: {split.test}\n")
    show_notes(split.notes)
    if split.train.matrix.shape != shape:
        users, items = shape
        show_notes([f"this is not MovieLens 1M ({users:,} users, {items:,} items): expect different numbers"])
    return split


def _read_cutoffs(_ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    also = ", or several with commas"
    return tuple(sorted({options.read_whole(part.strip(), param, also=also) for part in text.split(",")}))


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
def marp(cutoffs: tuple[int, ...] | None, task: str | None, per_instance: str | None, form: str, **files: Any) -> None:
    """Score a submission to the VideoLectures.Net challenge by mean average R-precision.

    There are three scores: for all queries, for the leaderboard's (flag 1) and for the rest (flag 0).

    \b
    truerank marp --solution solution.txt --submission submission.txt --cutoffs 5,10
    truerank marp --solution solution.txt --submission submission.txt --task 1 --per-instance scores.csv
    """
    from truerank.papers.vlnet import CUTOFFS, read_vlnet

    if (cutoffs is None) == (task is None):
        raise tr.InputError("give the cut-offs either by --cutoffs, as in --cutoffs 5,10, or by --task 1 or 2.")
    metric = tr.metrics.MARp(cutoffs or CUTOFFS[int(task or 0)])
    ranks = read_vlnet(**files, depth=metric.k[-1])
    show_table(tr.evaluate(ranks, metric, progress=True), form, aside=per_instance in STANDARD_OUTPUT)
    if per_instance:
        write_values(per_instance, {"all": ranks["all"]}, (metric, *map(tr.metrics.Rp, metric.k)))
