"""Write what docs/reproduction.md says of the paper to files of results: ``python docs/readings.py [DIR]``.

benchmarks/results/figure_6.csv has the first m from which the order in Figure 6 stays exact, for every seed of X. With
DIR, which holds the original files of MovieLens 1M or train and test files, benchmarks/results/readings.csv has the
exact metrics for every reading of section 9. docs/make_measured.py puts them into the page.
"""

import csv
import dataclasses
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import truerank as tr
from truerank.papers.krichene_rendle_2020 import movielens as experiment
from truerank.papers.krichene_rendle_2020.movielens import METRICS
from truerank.papers.krichene_rendle_2020.reproduction import growth
from truerank.recommenders.item_models import Keep

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results"


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


def measured(folder: str) -> Iterator[list[str]]:
    """Yield each reading and its metrics."""
    split = experiment.load_split(folder)
    for name, recommender in readings():
        ranks = tr.rank(recommender.fit(split.train), split)
        yield [name, *(f"{100 * tr.estimate(ranks, metric).mean:.2f}" for metric in METRICS)]


def settled() -> Iterator[list[object]]:
    """Yield each seed of X, and the first m from which X, Y and Z stay in their exact order, as it is and corrected."""
    study = experiment.embedded()
    most = int(study.y.n_candidates.min()) - 1
    for seed, ranks in enumerate(study.x):
        own = dataclasses.replace(study, x=(ranks,))
        yield [seed, growth(own, "recall@10", most).settled, growth(own, "recall@10~bv(0.1)", most // 3).settled]


def write(name: str, header: list[str], rows: Iterable[list[Any]]) -> None:
    with (RESULTS / name).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def main(folder: str | None = None) -> None:
    write("figure_6.csv", ["seed of X", "uncorrected", "corrected"], settled())
    if folder is not None:
        write("readings.csv", ["reading", *METRICS], measured(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
