"""Ranks of two recommenders on real data, for the benchmarks of comparisons and intervals.

MovieLens 1M is that of the paper, and comes with the package. Gowalla is read from a folder with train and test files.
"""

from pathlib import Path

import truerank as tr
from truerank.papers.krichene_rendle_2020.experiment import embedded

Pairs = dict[str, dict[str, tr.Ranks]]
"""Data set to recommender to ranks."""


def real_ranks(gowalla: Path | None) -> Pairs:
    """Return the ranks of X and Y on MovieLens and, if there is its folder, of item-kNN and popularity on Gowalla."""
    study = embedded().ranks
    found = {"MovieLens 1M": {"A": study["Y"], "B": study["X"]}}
    if gowalla is not None:
        split = tr.read_split(gowalla)
        fitted = {"A": tr.Popularity().fit(split.train), "B": tr.ItemKNN().fit(split.train)}
        found["Gowalla"] = {name: tr.rank(model, split, users=10_000, rng=0) for name, model in fitted.items()}
    return found
