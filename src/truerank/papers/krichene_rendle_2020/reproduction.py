"""The paper from beginning to end: its tables and figures, with what they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from truerank import render
from truerank.papers.krichene_rendle_2020 import figures, movielens, toy
from truerank.papers.krichene_rendle_2020.cells import Table
from truerank.papers.krichene_rendle_2020.experiment import Study
from truerank.plots import save


def tables(study: Study) -> Iterator[Table]:
    """Compute Tables 1 to 4, one after the other."""
    yield Table("Table 1: exact metrics of three recommenders on five instances, n = 10,000", toy.table_1())
    yield Table(
        f"Table 2: the same with m = {toy.SAMPLED} sampled items; published: means of {toy.REPETITIONS:,} repetitions",
        toy.table_2(),
        f"\n{toy.orders()}\n\n{toy.flips()}",
    )
    repeated = movielens.repeat(study)
    yield Table(
        "Table 3: MovieLens 1M, m = 100, in percent; ours are exact expectations, published means of 100 repetitions",
        movielens.table_3(study, repeated),
        "own n: what truerank does by default, each user's own n and the law of sampling without replacement",
    )
    yield Table(
        "Table 4: in how many of 100 repetitions two recommenders are in their exact order",
        movielens.table_4(study, repeated),
    )


def to_json(done: Sequence[Table]) -> str:
    """Return every cell of the tables as JSON."""
    cells = [cell.record() for table in done for cell in table.cells]
    return render.json_text({"truerank": version("truerank"), "cells": cells})


def draw(study: Study, folder: str | Path, formats: Sequence[str]) -> Iterator[str]:
    """Draw Figures 1 to 6 into a folder and yield what each shows; without matplotlib, say what is missing."""
    if find_spec("matplotlib") is None:
        yield "Figures 1 to 6 are left out: they need matplotlib, which truerank's extra 'plots' installs."
        return
    for number, (figure, says) in enumerate(figures.figures(study), 1):
        save(figure, folder, f"figure-{number}", formats)
        yield f"Figure {number}: {says}."
    yield f"\nThe figures are in {str(folder)!r}: figure-1 to figure-6, as {' and '.join(formats)}."
