"""Ranks counted batch by batch are those of `rank`, for any batch size."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import truerank as tr
from tests.arrays import Bools, Floats


def make(seed: int, n_users: int = 23, n_items: int = 17) -> tuple[Floats, Bools, Bools]:
    """Return scores of few values, so that many tie, and relevant and excluded items, some of which are both."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, (n_users, n_items)) / 4
    relevant, exclude = rng.random((2, n_users, n_items)) < 0.15
    relevant[4] = False
    return scores, relevant, exclude


def lists(mask: Bools) -> list[list[int]]:
    return [np.flatnonzero(row).tolist() for row in mask]


def counted(scores: Any, relevant: Any, exclude: Any, size: int) -> tr.Ranks:
    counter = tr.RankCounter()
    for first in range(0, len(scores), size):
        rows = slice(first, first + size)
        counter.update(scores[rows], relevant[rows], exclude=exclude[rows], ids=np.arange(len(scores))[rows])
    return counter.ranks()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1_000), st.integers(1, 30))
def test_any_batch_size(seed: int, size: int) -> None:
    scores, relevant, exclude = make(seed)
    expected = tr.rank(scores, train=lists(exclude), test=lists(relevant))
    assert counted(scores, relevant, exclude, size) == expected
    assert counted(scores.astype(np.float32), lists(relevant), lists(exclude), size) == expected
    assert counted(scores, sp.csr_array(relevant), sp.csr_array(exclude), size) == expected


def test_one_item_per_row() -> None:
    scores = make(0)[0]
    held = np.arange(len(scores)) % scores.shape[1]
    counter = tr.RankCounter()
    counter.update(scores, held)
    expected = tr.rank(scores, test=[[item] for item in held])
    assert counter.ranks().above.tolist() == expected.above.tolist()
    assert counter.ranks().items is not None
    assert counter.ranks().items.tolist() == held.tolist()  # type: ignore[union-attr]
    assert counter.ranks().ids is None


def test_counters_merge() -> None:
    scores, relevant, exclude = make(1)
    parts = [tr.RankCounter(), tr.RankCounter()]
    for counter, rows in zip(parts, (slice(0, 9), slice(9, None)), strict=True):
        counter.update(scores[rows], relevant[rows], exclude=exclude[rows], ids=np.arange(len(scores))[rows])
    sent = pickle.loads(pickle.dumps(parts[1]))
    assert (parts[0] + sent).ranks() == counted(scores, relevant, exclude, 100)


def test_rows_without_relevant_items_are_noted() -> None:
    scores, relevant, exclude = make(2)
    without = int((~relevant.any(axis=1)).sum())
    assert counted(scores, relevant, exclude, 5).notes[0].startswith(f"{without} row")


def test_excluded_scores_may_be_anything() -> None:
    counter = tr.RankCounter()
    counter.update(np.array([[np.nan, 1.0, 2.0], [-np.inf, 1.0, 2.0]]), np.array([1, 2]), exclude=[[0], [0]])
    assert counter.ranks().rank.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(3), [[0]]), r"`scores` must be two-dimensional, got shape \(3,\)"),
        ((np.zeros((2, 3)), [[0]]), r"`relevant` must have one entry per row of `scores` \(2\), got 1"),
        ((np.zeros((2, 3)), [[0], [3]]), r"`relevant` must hold items 0..2, got 0..3"),
        ((np.zeros((2, 3)), np.ones((2, 2))), r"`relevant` must have the shape of `scores`, \(2, 3\), got \(2, 2\)"),
        ((np.full((1, 2), np.nan), [[0]]), "scores must be finite, got nan"),
    ],
)
def test_what_is_refused(arguments: tuple[Any, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.RankCounter().update(*arguments)


def test_an_empty_counter_has_no_ranks() -> None:
    counter = tr.RankCounter()
    counter.update(np.zeros((0, 3)), [])
    with pytest.raises(tr.InputError, match="`update` was not called with any row"):
        counter.ranks()
