"""Cosine similarity and Euclidean distance by inner products: the order, and the ties, of their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

import truerank as tr
from tests import reference
from tests.arrays import AnyArray, Floats

TEST = [[0, 3, 7], [5], [1, 2]]


def grid(seed: int, dtype: type[np.floating]) -> tuple[AnyArray, AnyArray]:
    """Return users and items with few whole-number coordinates, so that many distances are equal."""
    rng = np.random.default_rng(seed)
    return rng.integers(-3, 4, (3, 2)).astype(dtype), rng.integers(-3, 4, (30, 2)).astype(dtype)


def check(factors: tr.Factors, scores: Floats) -> tr.Ranks:
    """Compare with the counts of the slow definition."""
    ranks = tr.rank(factors, test=TEST)
    for row, items in enumerate(TEST):
        above, tied = reference.count(scores[row].tolist(), np.isin(np.arange(scores.shape[1]), items).tolist())
        assert ranks[row].above.tolist() == above
        assert ranks[row].tied.tolist() == tied
    return ranks


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.sampled_from([np.float32, np.float64]))
def test_euclidean_with_ties(seed: int, dtype: type[np.floating]) -> None:
    users, items = grid(seed, dtype)
    check(tr.Factors.euclidean(users, items), -cdist(users, items, "sqeuclidean"))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000))
def test_cosine_with_ties(seed: int) -> None:
    """Items on the axes and diagonals, in lengths that are powers of two: their cosines are equal, not nearly so."""
    rng = np.random.default_rng(seed)
    directions = np.array([[1, 0], [0, 1], [1, 1], [1, -1], [-1, 1], [0, -1], [0, 0]])
    four_each = np.concatenate([np.tile(np.arange(7), 4), rng.integers(0, 7, 2)])  # no user holds out four items
    items = directions[rng.permutation(four_each)] * 2.0 ** rng.integers(-3, 4, (30, 1))
    users = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    lengths = np.linalg.norm(items, axis=1)
    cosines = users @ items.T / np.linalg.norm(users, axis=1)[:, None] / np.where(lengths > 0, lengths, 1)
    assert check(tr.Factors.cosine(users, items), cosines.round(12)).tied_share == 1


def test_multiples_of_a_float32_vector_tie() -> None:
    rng = np.random.default_rng(0)
    vector = rng.normal(size=(1, 16)).astype(np.float32)
    items = np.concatenate([vector, vector * np.float32(3), vector * np.float32(4), -vector])
    assert tr.rank(tr.Factors.cosine(vector, items), test=[[2]]).tied.tolist() == [2]


def test_cosines_themselves() -> None:
    rng = np.random.default_rng(1)
    users, items = rng.normal(size=(3, 5)), rng.normal(size=(8, 5))
    np.testing.assert_allclose(tr.Factors.cosine(users, items).scores(np.arange(3)), 1 - cdist(users, items, "cosine"))


def test_neighbours_far_from_the_origin() -> None:
    """Here float32 products would lose all digits of the distances."""
    rng = np.random.default_rng(2)
    users, items = ((1e4 + rng.normal(size=(size, 8))).astype(np.float32) for size in (3, 30))
    check(tr.Factors.euclidean(users, items), -cdist(users.astype(float), items.astype(float), "sqeuclidean"))


@pytest.mark.parametrize("build", [tr.Factors.cosine, tr.Factors.euclidean])
def test_names_and_refusals(build: type[tr.Factors]) -> None:
    rng = np.random.default_rng(3)
    users, items, order = rng.normal(size=(3, 4)), rng.normal(size=(9, 4)), np.array([4, 2, 8, 0, 1, 3, 7, 5, 6])
    renamed = build(users, items[order], item_ids=order)
    assert tr.rank(renamed, test=TEST) == tr.rank(build(users, items), test=TEST)
    with pytest.raises(tr.InputError, match="with the same number of columns"):
        build(users, items[:, :3])
    with pytest.raises(tr.InputError, match="`item_factors` must hold real numbers"):
        build(users, items * 1j)
