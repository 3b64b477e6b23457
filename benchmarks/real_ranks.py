"""Ranks of two recommenders on real data, and samples of their users, for the benchmarks of comparisons and intervals.

MovieLens 1M is that of the paper, and comes with the package. Gowalla is read from a folder with train and test files.
"""

import csv
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import truerank as tr
from truerank.core.checks import Floats
from truerank.kernels import library
from truerank.papers.krichene_rendle_2020.movielens import embedded

Pairs = dict[str, dict[str, tr.Ranks]]
"""Data set to recommender to ranks."""

RESULTS = Path(__file__).parent / "results"
# samples that are drawn at once
CHUNK = 500


def real_ranks(gowalla: Path | None) -> Pairs:
    """Return the ranks of X and Y on MovieLens and, if there is its folder, of item-kNN and popularity on Gowalla."""
    study = embedded().ranks
    found = {"MovieLens 1M": {"A": study["Y"], "B": study["X"]}}
    if gowalla is not None:
        split = tr.read_split(gowalla)
        fitted = {"A": tr.Popularity().fit(split.train), "B": tr.ItemKNN().fit(split.train)}
        found["Gowalla"] = {name: tr.rank(model, split, users=10_000, rng=0) for name, model in fitted.items()}
    return found


def samples(population: Floats, size: int, count: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Yield samples of users with replacement, some rows at a time."""
    for start in range(0, count, CHUNK):
        yield population[rng.integers(population.size, size=(min(CHUNK, count - start), size))]


def resamples(size: int, replicates: int, rng: np.random.Generator) -> Floats:
    """Return how often each user of a sample is in each bootstrap resample, as a share of its size."""
    drawn = rng.integers(size, size=(replicates, size)) + np.arange(0, replicates * size, size)[:, None]
    return np.bincount(drawn.ravel(), minlength=replicates * size).reshape(replicates, size) / size


def save(name: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write a table to the folder of results."""
    with (RESULTS / name).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def processor() -> str:
    """Return the processor's name, and the variant of the loops that runs on it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{[*names, platform.processor()][0]}, {library.variant()}"
