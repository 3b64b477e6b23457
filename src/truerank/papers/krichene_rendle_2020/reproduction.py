"""The whole paper: its tables and figures, and what they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from truerank.display import render
from truerank.papers.krichene_rendle_2020 import experiment, figures, movielens, toy
from truerank.papers.krichene_rendle_2020.comparisons import PublishedTable
from truerank.papers.krichene_rendle_2020.experiment import Study
from truerank.report.drawing import save


def tables(study: Study) -> Iterator[PublishedTable]:
    """Compute Tables 1 to 4, one after another."""
    exact, sampled = toy.table_1(), toy.table_2()
    yield PublishedTable("Table 1: exact metrics of three recommenders on five instances, n = 10,000", exact)
    yield PublishedTable(
        f"Table 2: the same with m = {toy.SAMPLED} sampled items; published: means of {toy.REPETITIONS:,} repetitions",
        sampled,
        f"\n{toy.orders(exact, sampled)}\n\n{toy.flips()}",
    )
    repeated = movielens.repeat(study)
    yield PublishedTable(
        "Table 3: MovieLens 1M, m = 100, in percent; ours: exact expectations; published: means of 100 repetitions",
        movielens.table_3(study, repeated),
        "ours: as published, with one n, the binomial law, and m + 1 in place of m in eq. 20.\n"
        "own n: what truerank does by default, with each user's n, the law without replacement, and eq. 20 as printed.",
    )
    yield PublishedTable(
        "Table 4: in how many of 100 repetitions two recommenders are in their exact order; ours: also 100 repetitions",
        movielens.table_4(study, repeated),
    )


def to_json(done: Sequence[PublishedTable], source: str) -> str:
    """Return every cell of the tables as JSON, with the source of the ranks."""
    facts = {
        "truerank": version("truerank"),
        "paper": "Krichene & Rendle, On Sampled Metrics for Item Recommendation, KDD 2020",
        "source": source,
        "recommenders": {"X": repr(experiment.X[0]), "Y": repr(experiment.Y), "Z": repr(experiment.Z)},
        "sampled": experiment.SAMPLED,
        "repetitions": movielens.REPETITIONS,
    }
    return render.json_text(facts | {"cells": [cell.record() for table in done for cell in table.cells]})


def draw(study: Study, folder: str | Path, formats: Sequence[str]) -> Iterator[str]:
    """Draw Figures 1 to 6 into a directory and yield what each shows."""
    for number, (figure, shows) in enumerate(figures.figures(study), 1):
        save(figure, folder, f"figure-{number}", formats)
        yield f"Figure {number}: {shows}."
    yield f"\nThe figures are in {str(folder)!r}: figure-1 to figure-6, as {' and '.join(formats)}."
