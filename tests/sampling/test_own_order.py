"""Draws that depend on a seed and the user alone: uniform, independent, and larger ones hold smaller ones."""

import itertools

import numpy as np
import pytest

from tests.arrays import Ints
from truerank.kernels import library
from truerank.kernels.draws import Way, draw_items, user_seeds
from truerank.kernels.user_blocks import Lists
from truerank.sampling.pools import ItemLists, ListedPool, Pool, RandomOrder

EXCLUDED = ItemLists.of([np.array([2, 5]), np.array([0, 1, 2, 9])])


def pool(kind: str, seed: int, users: Ints) -> Pool:
    if kind == "all":
        return Pool(12, EXCLUDED, users=users, seed=seed, nested=True)
    listed = ItemLists.of([np.setdiff1d(np.arange(12), own) for own in EXCLUDED])
    return ListedPool.of(12, listed, None, users, (), seed, True)


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
def test_repeated_draws_take_every_candidate_equally_often(kind: str) -> None:
    """Whether few or nearly all items are excluded, and each time independently of the time before."""
    rng = np.random.default_rng(2)
    excluded = [np.sort(rng.choice(30, size, replace=False)) for size in (0, 1, 10, 26, 29)]
    listed = ItemLists.of([np.setdiff1d(np.arange(30), own) for own in excluded])
    pool = Pool(30, excluded) if kind == "all" else ListedPool.of(30, listed)
    n_draws = 20_000
    for items, own in zip(pool.repeated(n_draws, np.random.default_rng(3)), listed, strict=True):
        pairs = np.zeros((30, 30))
        np.add.at(pairs, (items[::2], items[1::2]), 1)
        expected = np.zeros((30, 30))
        expected[np.ix_(own, own)] = n_draws / 2 / own.size**2
        assert np.abs(pairs - expected).max() <= 5 * np.sqrt(n_draws / 2 / own.size**2)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize(
    ("n_items", "excluded", "size"), [(7, [2], 3), (70, list(range(3, 67)), 2), (6, [], 5), (8, [0], 1)]
)
@pytest.mark.parametrize("nested", [False, True])
def test_every_set_is_equally_likely(n_items: int, excluded: list[int], size: int, nested: bool) -> None:
    """Chi-square over all sets of a small catalogue, within five standard errors of its mean.

    The slow loops, which draw the same as the fast ones, draw less often.
    """
    times = 20_000 if library.load() else 2_000
    own = ItemLists.of([np.array(excluded, dtype=np.int64)] * times)
    drawn = Pool(n_items, own, seed=1, nested=nested).distinct(
        np.arange(times), np.full(times, size), np.random.default_rng(0)
    )
    left = [item for item in range(n_items) if item not in excluded]
    count = dict.fromkeys(itertools.combinations(left, size), 0)
    for items in drawn.items.reshape(-1, size).tolist():
        count[tuple(items)] += 1
    expected = times / len(count)
    chi_square = sum((found - expected) ** 2 / expected for found in count.values())
    assert abs(chi_square - (len(count) - 1)) < 5 * np.sqrt(2 * (len(count) - 1))


@pytest.mark.parametrize("size", [9, 40, 115, 200, 231])
def test_items_and_pairs_of_items_are_equally_likely(size: int) -> None:
    """For sparse samples, for dense ones, and for those of which the rest is drawn."""
    n_items, times, out = 250, 6_000, np.arange(0, 171, 10)
    pool = Pool(n_items, ItemLists.of([out] * times), seed=3)
    drawn = pool.distinct(np.arange(times), np.full(times, size), np.random.default_rng(0))
    is_in = np.zeros((times, n_items))
    is_in[np.repeat(np.arange(times), size), drawn.items] = 1
    left = np.setdiff1d(np.arange(n_items), out)
    share = size / left.size
    both = share * (size - 1) / (left.size - 1)
    shares, pairs = is_in.mean(axis=0), (is_in.T @ is_in / times)[np.ix_(left, left)]
    assert not shares[out].any()
    assert np.abs(shares[left] - share).max() < 5 * np.sqrt(share * (1 - share) / times)
    others = pairs[~np.eye(left.size, dtype=bool)]
    assert np.abs(others - both).max() < 5.5 * np.sqrt(both * (1 - both) / times), "the largest of 27,000"


def test_compiled_draws_are_those_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, compiled = np.random.default_rng(0), library.load
    for n_items in (1, 2, 63, 64, 65, 200, 511, 512, 513, 2_000):
        parts = [
            [np.sort(rng.choice(n_items, most, replace=False)) for most in rng.integers(0, n_items, 6)] for _ in "ab"
        ]
        parts[1] = [own[: n_items // 3] for own in parts[1]]
        left = np.array([n_items - np.union1d(*both).size for both in zip(*parts, strict=True)])
        excluded, taken = (Lists(each.indptr, each.items) for each in map(ItemLists.of, parts))
        for way in Way:
            sizes = rng.integers(0, left + 1) if way != Way.REPEATED else np.where(left > 0, 40, 0)
            found = []
            for load in (compiled, lambda: None):
                monkeypatch.setattr(library, "load", load)
                found.append(draw_items(n_items, way, user_seeds(n_items, np.arange(6)), sizes, excluded, taken))
            np.testing.assert_array_equal(found[0], found[1])


def test_the_sample_of_a_user_depends_on_no_other_user() -> None:
    everyone = Pool(300, [np.arange(user) for user in range(9)], seed=5)
    for m in (4, 100, 250):
        for draw in ("distinct", "repeated"):
            alone = everyone.part(6, 7)
            whole, part = (
                pool.repeated(m, np.random.default_rng(seed))
                if draw == "repeated"
                else pool.distinct(np.arange(len(pool)), np.full(len(pool), m), np.random.default_rng(seed))
                for seed, pool in enumerate((everyone, alone))
            )
            np.testing.assert_array_equal(whole[6], part[0])
