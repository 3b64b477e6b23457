"""A part of MovieLens 1M with several held-out items per user, and checks of ranks against a library's own scores."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

import truerank as tr
from tests import shared
from tests.arrays import AnyArray, Floats
from truerank.data.event_files import read_pairs

USERS = 250
Scores = Callable[[Any], Mapping[Any, float]]
"""From the name of a user to the score of each item by its name."""


@cache
def split() -> tr.Split:
    """Return events of some users and popular items of MovieLens 1M or, if it is missing, simulated ones."""
    matrix = _movielens() if shared.DATA.is_dir() else _simulated()
    kept = matrix[:, np.bincount(matrix.indices, minlength=matrix.shape[1]) >= 10]
    # names in an order of their own, so that no library's numbering is that of the split
    users, items = (3 * np.random.default_rng(size).permutation(size) + 1 for size in kept.shape)
    return tr.hold_out_fraction(tr.Interactions(sp.csr_array(kept), users, items), rng=0)


def _movielens() -> sp.csr_array:
    return read_pairs(shared.DATA / "ml-1m-leave-last-out" / "train.tsv.gz", (6_040, 3_706)).matrix[:USERS]


def _simulated() -> sp.csr_array:
    rng = np.random.default_rng(0)
    taste = rng.normal(size=(USERS, 4)) @ rng.normal(size=(4, 500)) + 2 * rng.normal(size=500)
    return sp.csr_array(taste + rng.normal(size=taste.shape) > 3.0, dtype=np.float32)


def events(part: tr.Interactions, seed: int = 1) -> list[tuple[int, int]]:
    """Return (user, item) by name, in random order."""
    pairs = np.column_stack([part.names[part.users], part.item_names[part.items]])
    return [(int(user), int(item)) for user, item in np.random.default_rng(seed).permutation(pairs)]


def check_ranks(model: Any, scores: Scores, data: tr.Split | None = None) -> tr.Ranks:
    """Rank a model, check the counts against its library's scores, and return the ranks.

    Two scores are the same to within what another order of float32 additions can change.
    """
    data = split() if data is None else data
    ranks, train, test = tr.rank(model, data), _items(data.train), _items(data.test)
    assert ranks.ids is not None
    assert set(ranks.ids) == {name for name, items in test.items() if items}
    for place in range(0, len(ranks), 5):
        user = ranks.ids[place].item()
        own, part = scores(user), ranks[place]
        others = np.array([score for item, score in own.items() if item not in train[user] | test[user]])
        targets = np.sort([own[item] for item in test[user]])[::-1]
        near = 1e-5 * max(np.abs(others).max(), 1e-3)
        assert part.n_candidates[0] == others.size + targets.size
        assert np.all(part.above >= _over(others, targets + near))
        assert np.all(part.above + part.tied <= _over(others, targets - near))
    return ranks


def _items(part: tr.Interactions) -> dict[Any, set[Any]]:
    """Return the items of each user, by name."""
    return {name: set(part.item_names[part.of_user(row)]) for row, name in enumerate(part.names.tolist())}


def _over(others: Floats, targets: Floats) -> AnyArray:
    return (others > targets[:, None]).sum(axis=1)


def shuffled(size: int) -> AnyArray:
    return np.random.default_rng(9).permutation(size)
