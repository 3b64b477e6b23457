"""Write the exact metrics for every reading of section 9 to a file of results: ``python docs/readings.py DIR``.

DIR holds the original files of MovieLens 1M, or train and test files. docs/make_measured.py puts the results,
benchmarks/results/readings.csv, into docs/reproduction.md.
"""

import csv
import dataclasses
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import truerank as tr
from truerank.papers.krichene_rendle_2020 import movielens as experiment
from truerank.papers.krichene_rendle_2020.movielens import METRICS
from truerank.recommenders.item_models import Keep

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results" / "readings.csv"


def readings() -> Iterator[tuple[str, Any]]:
    """Yield recommenders, each with the reading of the text that it stands for."""
    for sweeps, recommender in product((3, 4, 5, 6, 16), experiment.X):
        yield f"X, {sweeps} sweeps, seed {recommender.rng}", dataclasses.replace(recommender, sweeps=sweeps)
    scales: dict[str, dict[str, Any]] = {
        "row norm, no denominator": {"row_norm": True, "divide": False},
        "no row norm, no denominator": {"row_norm": False, "divide": False},
        "denominator of eq. 30": {"row_norm": True, "divide": True},
    }
    for keep_self, (scale, options) in product((True, False), scales.items()):
        name = f"Y, self {'kept' if keep_self else 'dropped'}, {scale}"
        yield name, dataclasses.replace(experiment.Y, keep_self=keep_self, **options)
    sides: tuple[Keep, ...] = ("column", "row")
    for keep, keep_self, (scale, options) in product(sides, (False, True), scales.items()):
        name = f"Z, ten per {keep}, self {'kept' if keep_self else 'dropped'}, {scale}"
        yield name, dataclasses.replace(experiment.Z, keep=keep, keep_self=keep_self, **options)


def main(folder: str) -> None:
    split = experiment.load_split(folder)
    rows = []
    for name, recommender in readings():
        ranks = tr.rank(recommender.fit(split.train), split)
        rows.append([name, *(f"{100 * tr.estimate(ranks, metric).mean:.2f}" for metric in METRICS)])
    with RESULTS.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["reading", *METRICS], *rows])


if __name__ == "__main__":
    main(sys.argv[1])
