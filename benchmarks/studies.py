"""Exact ranks of three recommenders on real data, for benchmarks/estimators.py.

    python benchmarks/studies.py movielens FOLDER OUT      # X, Y and Z of Krichene & Rendle (2020)
    python benchmarks/studies.py gowalla FOLDER OUT [--users 3000]
    python benchmarks/studies.py movielens FOLDER OUT --other

FOLDER holds the train and test files. --other holds out other items, one training item of each user at random, and
ranks them by other recommenders: data on which nothing was tuned.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import truerank as tr
from truerank.papers.krichene_rendle_2020.movielens import X, Y, Z

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


def load(folder: Path) -> dict[str, tr.Ranks]:
    """Return the ranks by recommender."""
    return {path.stem: tr.Ranks.load(path) for path in sorted(folder.glob("*.parquet"))}


def make(split: tr.Split, recommenders: dict[str, Any], folder: Path) -> None:
    """Write exact ranks without ties."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, recommender in recommenders.items():
        model = recommender.fit(split.train)
        tr.rank(model, split).break_ties("random", rng=0).save(folder / f"{name}.parquet")
        print(folder, name, flush=True)


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
        make(split, recommenders, given.out)


if __name__ == "__main__":
    main()
