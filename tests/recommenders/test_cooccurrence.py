"""Co-occurrences and the largest of each row, by compiled loops and by NumPy, against dictionaries and sorting."""

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from truerank.kernels import library
from truerank.recommenders import item_models as cooccurrence
from truerank.recommenders.item_models import keep_largest, map_blocks

SHAPES = [(30, 20, 0.3), (40, 700, 0.004), (5, 64, 0.5), (3, 1, 1.0)]  # users, items, density


@pytest.fixture(params=["compiled", "numpy"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(library, "load", lambda: None)


def interactions(n_users: int, n_items: int, density: float, seed: int = 0) -> sp.csr_array:
    chosen = np.random.default_rng(seed).random((n_users, n_items)) < density
    return sp.csr_array(chosen.astype(np.float64))


def shared_users(train: sp.csr_array) -> Counter[tuple[int, int]]:
    """Count by definition: for every user, every pair of the user's items."""
    found: Counter[tuple[int, int]] = Counter()
    for user in range(train.shape[0]):
        items = train.indices[train.indptr[user] : train.indptr[user + 1]].tolist()
        found.update(product(items, items))
    return found


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(("n_users", "n_items", "density"), SHAPES)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("entries", [1, 1 << 21])  # a row per block, and all rows in one
def test_every_entry_is_the_number_of_shared_users(
    n_users: int, n_items: int, density: float, threads: int, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cooccurrence, "_ENTRIES", entries)
    train = interactions(n_users, n_items, density)
    blocks = map_blocks(train, lambda first, rows: (first, rows), threads, False)
    found = {
        (first + int(row), int(column)): count
        for first, rows in blocks
        for row, column, count in zip(*rows.tocoo().coords, rows.data, strict=True)
        if count
    }
    assert found == shared_users(train)
    assert [first for first, _ in blocks] == list(range(0, n_items, max(entries // n_items, 1)))


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("k", [1, 2, 5, 39, 40, 100])
def test_the_largest_are_kept_and_of_equal_ones_the_first(k: int) -> None:
    rng = np.random.default_rng(k)
    rows = sp.csr_array(rng.integers(0, 6, (50, 40)).astype(np.float64))  # many ties, and rows of different length
    kept = keep_largest(rows, k).toarray()
    for before, after in zip(rows.toarray(), kept, strict=True):
        best = sorted(np.flatnonzero(before).tolist(), key=lambda j: (-before[j], j))[:k]
        expected = np.zeros_like(before)
        expected[best] = before[best]
        np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize("begin", [[0, 3, 2, 4], [1, 2, 3, 4], [0, 2, 3, 5]])
def test_rows_that_are_not_within_their_values_are_refused(begin: list[int]) -> None:
    arrays: Any = np.array(begin, np.int64), np.arange(4, dtype=np.int32), np.ones(4)
    with pytest.raises(ValueError, match="not within their arrays"):
        library.call("keep_largest", 3, *arrays, 4, 2)
