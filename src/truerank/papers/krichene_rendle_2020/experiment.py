"""Sections 6 and 9: recommenders X, Y and Z on MovieLens 1M, and the rank of each user's held-out item.

docs/reproduction.md explains which readings of eq. 28 to 30 reproduce the published numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from truerank.data.reading import read_interactions
from truerank.data.splits import Split, read_split
from truerank.data.splitting import leave_last_out
from truerank.errors import InputError
from truerank.ranking.exact import rank
from truerank.ranking.ranks import Ranks
from truerank.recommenders.ials import IALS
from truerank.recommenders.itemknn import ItemKNN

SHAPE = (6_040, 3_706)
"""Users and items of MovieLens 1M."""
SAMPLED = 100
"""Sampled candidates."""
X = [IALS(factors=16, alpha=0.2, regularization=10.0, sweeps=4, init_scale=0.1, rng=seed) for seed in range(10)]
"""The paper states neither the seed nor the number of sweeps."""
Y = ItemKNN(power=3.0, keep_self=True)
Z = ItemKNN(power=1.0, neighbours=10, keep="column")


@dataclass(frozen=True, eq=False)
class Study:
    """Exact ranks of the three recommenders; X has one for each seed."""

    x: tuple[Ranks, ...]
    y: Ranks
    z: Ranks

    @property
    def ranks(self) -> dict[str, Ranks]:
        """The ranks of each recommender, X with the first seed."""
        return {"X": self.x[0], "Y": self.y, "Z": self.z}

    def save(self, path: str | Path) -> None:
        """Write what `embedded` reads."""
        arrays = {"X_above": np.stack([ranks.above for ranks in self.x])}
        for name, ranks in {"Y": self.y, "Z": self.z}.items():
            arrays |= {f"{name}_above": ranks.above, f"{name}_tied": ranks.tied}
        arrays["n_candidates"] = self.y.n_candidates
        if any(ranks.has_ties for ranks in self.x):
            raise InputError("the ranks of X must not have ties, which the file can't store.")
        small: dict[str, Any] = {name: array.astype(np.min_scalar_type(array.max())) for name, array in arrays.items()}
        np.savez_compressed(path, made_by=[repr(recommender) for recommender in (*X, Y, Z)], **small)


@cache
def embedded() -> Study:
    """Return the ranks that come with the package; `made_by` in their file names the recommenders."""
    with (files(__package__) / "ranks.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        stored = dict(arrays)
    n = stored["n_candidates"]
    y, z = (Ranks(above=stored[f"{name}_above"], tied=stored[f"{name}_tied"], n_candidates=n) for name in "YZ")
    return Study(tuple(Ranks(above=above, n_candidates=n) for above in stored["X_above"]), y, z)


def from_split(split: Split) -> Study:
    """Train X, Y and Z and rank each user's held-out items."""
    recommenders: list[IALS | ItemKNN] = [*X, Y, Z]
    progress = tqdm(recommenders, "recommenders", disable=None, delay=0.5)
    *x, y, z = (rank(recommender.fit(split.train), split) for recommender in progress)
    if (y.n_relevant != 1).any() or y.n_candidates.min() <= SAMPLED:
        raise InputError(f"each user must have one held-out item and more than {SAMPLED} candidates.")
    return Study(tuple(x), y, z)


def load_split(source: str | Path) -> Split:
    """Read an existing split, or hold out each user's last event; every rating counts as an event."""
    path = Path(source)
    if path.is_dir() and any("train" in file.name.split(".") for file in path.iterdir()):
        return read_split(path)
    return leave_last_out(read_interactions(path))
