"""Draws that depend on a seed and the user alone: uniform, independent, and larger ones hold smaller ones."""

import itertools

import numpy as np
import pytest

from tests.arrays import Ints
from truerank.kernels import library
from truerank.sampling.pools import ItemLists, ListedPool, Pool, RandomOrder

EXCLUDED = ItemLists.of([np.array([2, 5]), np.array([0, 1, 2, 9])])


def pool(kind: str, seed: int, users: Ints) -> Pool:
    if kind == "all":
        return Pool(12, EXCLUDED, users=users, seed=seed)
    listed = ItemLists.of([np.setdiff1d(np.arange(12), own) for own in EXCLUDED])
    return ListedPool.of(12, listed, None, users, (), seed)


@pytest.fixture(params=["compiled", "numpy"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(library, "load", lambda: None)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("kind", ["all", "listed"])
def test_every_candidate_is_equally_likely(kind: str) -> None:
    """Over seeds, and over users of one seed: each within five standard errors."""
    places, counts = np.arange(2), np.array([3, 3])
    drawn, n_runs = np.zeros((2, 2, 12)), 400
    for run in range(n_runs):
        for way, own in enumerate((pool(kind, run, np.arange(2)), pool(kind, 7, 2 * run + np.arange(2)))):
            for place, items in enumerate(own.distinct(places, counts, np.random.default_rng(0))):
                drawn[way, place, items] += 1
    for place, excluded in enumerate(EXCLUDED):
        left = np.setdiff1d(np.arange(12), excluded)
        share = 3 / left.size
        assert not drawn[:, place, excluded].any()
        error = np.sqrt(share * (1 - share) / n_runs)
        assert np.abs(drawn[:, place, left] / n_runs - share).max() < 5 * error


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("kind", ["all", "listed"])
def test_larger_draws_hold_smaller_ones(kind: str) -> None:
    own, rng, places = pool(kind, 3, np.array([17, 4])), np.random.default_rng(1), np.arange(2)
    draws = [own.distinct(places, np.full(2, size), rng) for size in range(9)]
    for smaller, larger in itertools.pairwise(draws):
        assert all(np.isin(a, b).all() for a, b in zip(smaller, larger, strict=True))
    order = RandomOrder(own, np.random.default_rng(5))
    parts = [order.part(places, start, start + 2) for start in (0, 2, 4)]
    for place in range(2):
        assert np.array_equal(np.sort(np.concatenate([part[place] for part in parts])), draws[6][place])
    alone = own.part(1, 2).distinct(np.array([0]), np.array([4]), rng)
    assert np.array_equal(alone[0], draws[4][1])


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("kind", ["all", "listed"])
def test_repeated_draws_are_the_candidates_at_random_places(kind: str) -> None:
    rng = np.random.default_rng(2)
    excluded = [np.sort(rng.choice(300, size, replace=False)) for size in (0, 1, 40, 299)]
    listed = ItemLists.of([np.setdiff1d(np.arange(300), own) for own in excluded])
    pool = Pool(300, excluded) if kind == "all" else ListedPool.of(300, listed)
    drawn = pool.repeated(500, np.random.default_rng(3))
    again = np.random.default_rng(3)
    for items, own in zip(drawn, listed, strict=True):
        np.testing.assert_array_equal(items, own[again.integers(0, own.size, 500)])
