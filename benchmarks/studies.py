"""Exact ranks of three recommenders on real data, and what a proxy's order shows of them, for benchmarks/estimators.py.

    python benchmarks/studies.py movielens FOLDER OUT      # X, Y and Z of Krichene & Rendle (2020)
    python benchmarks/studies.py gowalla FOLDER OUT [--users 3000]
    python benchmarks/studies.py movielens FOLDER OUT --other

FOLDER holds the train and test files. --other holds out other items, one training item of each user at random, and
ranks them by other recommenders: data on which nothing was tuned.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import truerank as tr
from truerank.arrays import Ints
from truerank.papers.krichene_rendle_2020.experiment import X, Y, Z
from truerank.sampling.courses import run
from truerank.sampling.roulette import Roulette
from truerank.sampling.roulette_games import RouletteCourse

RECOMMENDERS: dict[str, dict[str, Any]] = {
    "movielens": {"X": X[0], "Y": Y, "Z": Z},
    "gowalla": {"popularity": tr.Popularity(), "iALS": tr.IALS(factors=32, rng=0), "ItemKNN": tr.ItemKNN()},
}
OTHERS: dict[str, dict[str, Any]] = {
    "movielens": {
        "EASE": tr.EASE(),
        "iALS": tr.IALS(factors=48, alpha=0.3, regularization=5.0, sweeps=6, init_scale=0.1, rng=3),
        "ItemKNN": tr.ItemKNN(neighbours=100),
    },
    "gowalla": {
        "popularity": tr.Popularity(),
        "iALS": tr.IALS(factors=64, rng=5),
        "ItemKNN": tr.ItemKNN(neighbours=20, power=0.7),
    },
}
PROXIES: dict[str, dict[str, Any]] = {
    "movielens": {"popularity": None, "iALS(8)": replace(X[0], factors=8, rng=7)},
    "gowalla": {"iALS(16)": tr.IALS(factors=16, rng=7)},
}


@dataclass(frozen=True)
class Recorded(Roulette):
    """A roulette that stops nobody, and remembers what each level shows."""

    def course(self, ranks: tr.Ranks, rng: np.random.Generator) -> "RecordingCourse":
        return RecordingCourse(self, ranks, rng)


class RecordingCourse(RouletteCourse):
    latest: list[Ints]

    def __init__(self, design: Roulette, ranks: tr.Ranks, rng: np.random.Generator) -> None:
        super().__init__(design, ranks, rng)
        RecordingCourse.latest = []

    def saw(self, places: Ints, above: Ints, scored: Ints) -> None:
        super().saw(places, above, scored)
        self.latest.append(above.copy())


class Replayed:
    """What `Roulette` would see, from the counts after each level."""

    def __init__(self, ranks: tr.Ranks, levels: Ints, k: int) -> None:
        self.ranks, self.levels, self.level = ranks, levels, 0
        self.enough = Roulette(k).enough_above(ranks.i)
        self.above, self.tied, self.drawn = (np.zeros_like(ranks.above) for _ in range(3))
        self.scored = np.zeros(len(ranks), dtype=np.int64)

    def open_instances(self) -> Ints:
        left = (self.above < self.enough) & (self.drawn < self.ranks.item_irrelevant)
        return np.unique(self.ranks.instance[left])

    def look(self, places: Ints, start: int, size: int) -> None:
        self.scored[places] = np.minimum(start + size, self.ranks.draws[places])
        items = np.flatnonzero(np.isin(self.ranks.instance, places))
        self.above[items] = self.levels[min(self.level, len(self.levels) - 1)][items]
        self.drawn[items] = self.scored[self.ranks.instance[items]]
        self.level += 1


def play(ranks: tr.Ranks, levels: Ints, budget: int, rng: int) -> tr.Ranks:
    """Return what a roulette finds in the order of a proxy, from the counts after each level."""
    design = tr.Roulette(10, budget=budget)
    return run(design.course(ranks, np.random.default_rng(rng)), Replayed(ranks, levels, 10))


def load(folder: Path) -> tuple[dict[str, tr.Ranks], dict[str, dict[str, Ints]]]:
    """Return the ranks by recommender, and the counts after each level by proxy and recommender."""
    ranks = {path.stem: tr.Ranks.load(path) for path in sorted(folder.glob("*.parquet"))}
    paths: dict[str, dict[str, Ints]] = {}
    for path in sorted(folder.glob("levels-*.npz")):
        with np.load(path) as file:
            paths[path.stem.removeprefix("levels-")] = {name: file[name] for name in file.files}
    return ranks, paths


def make(data: str, split: tr.Split, recommenders: dict[str, Any], folder: Path) -> None:
    """Write exact ranks without ties, and the counts after each level."""
    folder.mkdir(parents=True, exist_ok=True)
    fitted = {name: one.fit(split.train) for name, one in recommenders.items()}
    quick = {name: None if one is None else one.fit(split.train) for name, one in PROXIES[data].items()}
    for name, model in fitted.items():
        tr.rank(model, split).break_ties("random", rng=0).save(folder / f"{name}.parquet")
        print(folder, name, flush=True)
    for proxy, scorer in quick.items():
        levels: dict[str, Any] = {name: _levels(model, scorer, split) for name, model in fitted.items()}
        np.savez_compressed(folder / f"levels-{proxy}.npz", **levels)
        print(folder, proxy, flush=True)


def _levels(model: Any, proxy: Any, split: tr.Split) -> Ints:
    tr.rank_sampled(model, split, design=Recorded(10, proxy, 10**9), rng=0)
    return np.array(RecordingCourse.latest)


def splits(given: argparse.Namespace) -> Iterator[tuple[dict[str, Any], tr.Split]]:
    split = tr.read_split(given.folder)
    if given.other:
        split = tr.leave_k_out(split.train, k=1 if given.data == "movielens" else 3, rng=11)
    rows = np.flatnonzero(np.diff(split.test.indptr))
    kept = np.sort(np.random.default_rng(1).permutation(rows)[: given.users])
    chosen = split.test.select(np.isin(split.test.users, kept))
    yield (OTHERS if given.other else RECOMMENDERS)[given.data], tr.Split(split.train, chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=list(RECOMMENDERS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--other", action="store_true")
    given = parser.parse_args()
    for recommenders, split in splits(given):
        make(given.data, split, recommenders, given.out)


if __name__ == "__main__":
    main()
