"""Counts against loops over all items, on small catalogues with many ties, and on block edges."""

import threading
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truerank as tr
from tests.patience import no_new_threads
from truerank.kernels import factors, library, scores
from truerank.kernels.factors import count_factors
from truerank.kernels.scores import count_scores
from truerank.kernels.user_blocks import Counts, Lists

NUMBERS = (np.float32, np.float64)


def slow_counts(scores: Any, train: Lists, test: Lists) -> list[tuple[int, int, int]]:
    """Return, user by user and item by item, (position in test, above, tied), best score first."""
    found = []
    for user, row in enumerate(scores):
        seen = set(train.indices[train.indptr[user] : train.indptr[user + 1]])
        positions = range(test.indptr[user], test.indptr[user + 1])
        relevant = {test.indices[p] for p in positions}
        for p in sorted(positions, key=lambda p: (-row[test.indices[p]], p)):
            others = [row[i] for i in range(len(row)) if i not in seen and i not in relevant]
            score = row[test.indices[p]]
            found.append((p, sum(s > score for s in others), sum(s == score for s in others)))
    return found


def as_rows(counts: Counts) -> list[tuple[int, int, int]]:
    return list(zip(counts.order, counts.above, counts.tied, strict=True))


def random_lists(rng: np.random.Generator, n_users: int, n_items: int, most: int, index: Any = np.int32) -> Lists:
    sizes = rng.integers(0, min(most, n_items) + 1, n_users)
    lists = [np.sort(rng.choice(n_items, size, replace=False)) for size in sizes]
    return Lists(np.cumsum([0, *map(len, lists)]).astype(index), np.concatenate([*lists, []]).astype(index))


@pytest.fixture(params=["compiled", "numpy"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "numpy":
        monkeypatch.setattr(library, "load", lambda: None)
    return str(request.param)


cases = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "n_users": st.integers(1, 15),
        "n_items": st.integers(1, 70),
        "factors": st.integers(1, 9),
        "most": st.sampled_from([1, 3, 20]),
        "number": st.sampled_from(NUMBERS),
        "index": st.sampled_from([np.int32, np.int64]),
        "biased": st.booleans(),
        "threads": st.integers(1, 3),
    }
)


def draw(
    seed: int, n_users: int, n_items: int, factors: int, most: int, number: Any, index: Any, **_: Any
) -> tuple[Any, Any, Any, Lists, Lists]:
    rng = np.random.default_rng(seed)
    # Small whole numbers: every order of adding is exact, and ties are many.
    users, items = (rng.integers(-2, 3, (n, factors)).astype(number) for n in (n_users, n_items))
    train, test = (random_lists(rng, n_users, n_items, m, index) for m in (most, most))
    return users, items, rng.integers(-2, 3, n_items).astype(number), train, test


@settings(max_examples=100)
@given(case=cases)
@pytest.mark.parametrize("way", ["compiled", "wide", "numpy"])
def test_counts_of_factors_and_of_their_scores_equal_loops(way: str, case: dict[str, Any]) -> None:
    users, items, bias, train, test = draw(**case)
    scores = users @ items.T + (bias if case["biased"] else 0)
    expected = slow_counts(scores, train, test)
    with pytest.MonkeyPatch.context() as patch:
        if way == "numpy":
            patch.setattr(library, "load", lambda: None)
        if way == "wide":
            patch.setattr(factors, "FLOAT32_BELOW", 0)
        added, threads = bias if case["biased"] else None, case["threads"]
        made = count_factors(users, items, train, test, item_bias=added, threads=threads)
        given_ = count_scores(lambda u: scores[u], len(items), train, test, threads=threads)
    assert as_rows(made) == expected
    assert as_rows(given_) == expected
    for user, (start, end) in enumerate(pairwise(test.indptr)):
        seen = train.indices[train.indptr[user] : train.indptr[user + 1]]
        for counts in (made, given_):
            assert counts.seen[start:end].tolist() == [item in seen for item in test.indices[start:end]]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("n_items", [4095, 4096, 4097, 4103, 8193])
def test_edges_of_chunks_and_tiles(path: str, number: Any, n_items: int) -> None:
    rng = np.random.default_rng(n_items)
    users, items = rng.integers(-3, 4, (7, 3)).astype(number), rng.integers(-3, 4, (n_items, 3)).astype(number)
    train, test = random_lists(rng, 7, n_items, 400), random_lists(rng, 7, n_items, 4)
    assert as_rows(count_factors(users, items, train, test)) == slow_counts(users @ items.T, train, test)


@pytest.mark.parametrize("number", NUMBERS)
def test_many_held_out_items_take_the_binary_search(path: str, number: Any) -> None:
    rng = np.random.default_rng(5)
    scores = rng.integers(0, 50, (2, 1500)).astype(number)
    train, test = random_lists(rng, 2, 1500, 100), random_lists(rng, 2, 1500, 1500)
    assert max(np.diff(test.indptr)) > 1024
    assert as_rows(count_scores(lambda u: scores[u], 1500, train, test)) == slow_counts(scores, train, test)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("held_out", [40, 60, 200])
def test_held_out_items_with_both_zeros_tie(path: str, number: Any, held_out: int) -> None:
    rng = np.random.default_rng(held_out)
    scores = rng.choice(np.array([0.0, -0.0, 1e-40, -1e-40, 2.5, -3e38], number), (2, 1500))
    items = [np.sort(rng.choice(1500, held_out, replace=False)) for _ in scores]
    nothing, test = Lists(np.zeros(3, int), np.zeros(0, int)), Lists(np.arange(3) * held_out, np.concatenate(items))
    assert as_rows(count_scores(lambda u: scores[u], 1500, nothing, test)) == slow_counts(scores, nothing, test)


SPREADS: dict[str, Any] = {
    "even": lambda rng, shape: rng.standard_normal(shape),
    "ties": lambda rng, shape: rng.integers(-40, 40, shape) / 16,
    "few ties": lambda rng, shape: rng.standard_normal(shape).round(4),
    "close": lambda rng, shape: rng.standard_normal(shape) + rng.choice([0, 1e-7, 1e-15], shape),
    "one far away": lambda rng, shape: np.where(np.arange(shape[1]) == 7, 1e30, rng.standard_normal(shape)),
    "all equal": lambda _, shape: np.full(shape, -0.5),
    "both ends": lambda rng, shape: rng.choice([-3.4e38, -1.0, -0.0, 0.0, 1e-40, 3.4e38], shape),
    "tiny": lambda rng, shape: rng.integers(0, 90, shape) * 1e-44,
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("held_out", [3, 4, 15, 16, 31, 32, 63, 64, 300])
def test_many_held_out_items_at_any_distance(number: Any, spread: str, held_out: int) -> None:
    rng, n_items = np.random.default_rng(held_out), 9_000
    scores = SPREADS[spread](rng, (3, n_items)).astype(number)
    chosen = [np.sort(rng.choice(n_items, held_out + 200, replace=False)) for _ in scores]
    is_held = [np.isin(np.arange(held_out + 200), rng.choice(held_out + 200, held_out, replace=False)) for _ in scores]
    held, seen = ([row[keep] for row, keep in zip(chosen, kept, strict=True)] for kept in (is_held, np.invert(is_held)))
    train, test = Lists(np.arange(4) * 200, np.concatenate(seen)), Lists(np.arange(4) * held_out, np.concatenate(held))
    counts = count_scores(lambda users: scores[users], n_items, train, test)
    for user, row in enumerate(scores):
        part = slice(user * held_out, (user + 1) * held_out)
        targets, others = row[test.indices[counts.order[part]]], np.sort(np.delete(row, chosen[user]))
        assert (np.diff(targets) <= 0).all()
        above = len(others) - np.searchsorted(others, targets, "right")
        np.testing.assert_array_equal(counts.above[part], above)
        np.testing.assert_array_equal(counts.tied[part], len(others) - np.searchsorted(others, targets) - above)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("held_out", [1, 5, 20, 50, 90])
def test_scores_of_training_items_change_no_count(number: Any, held_out: int) -> None:
    rng, n_items = np.random.default_rng(held_out), 8_200
    scores = rng.standard_normal((4, n_items)).astype(number)
    train, test = (
        Lists(np.arange(5) * size, np.sort([rng.choice(n_items, size, replace=False) for _ in scores]).ravel())
        for size in (2_500, held_out)
    )
    counts = count_scores(lambda users: scores[users], n_items, train, test)
    assert counts.seen.any() or held_out < 5
    marked, rows = scores.copy(), np.repeat(np.arange(4), 2_500)
    marked[rows, train.indices] = rng.choice([np.nan, np.inf, -np.inf, 1e30, -1e30], rows.size)
    held = np.repeat(np.arange(4), held_out), test.indices
    marked[held] = scores[held]
    for before, after in zip(counts, count_scores(lambda users: marked[users], n_items, train, test), strict=True):
        np.testing.assert_array_equal(before, after)
    candidate = np.setdiff1d(np.arange(8_000, n_items), np.union1d(train.indices, test.indices))[0]
    marked[3, candidate] = np.nan
    with pytest.raises(tr.InputError, match=f"user 3 and item {candidate}"):
        count_scores(lambda users: marked[users], n_items, train, test)


@pytest.mark.parametrize("number", NUMBERS)
def test_threads_and_block_sizes_change_no_bit(path: str, number: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    users, items = rng.standard_normal((3000, 21)).astype(number), rng.standard_normal((1111, 21)).astype(number)
    train, test = random_lists(rng, 3000, 1111, 30), random_lists(rng, 3000, 1111, 12)
    one = count_factors(users, items, train, test, threads=1)
    two = count_factors(users, items, train, test, threads=2)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    if path == "compiled":
        monkeypatch.setattr(factors, "USERS_PER_BLOCK", 7)
        monkeypatch.setattr(factors, "WORK_PER_CALL", 1)
        monkeypatch.setattr(factors, "CHUNK", 100)
        assert all(np.array_equal(a, b) for a, b in zip(one, count_factors(users, items, train, test), strict=True))


def check_top(depth: int, *arguments: Any, **options: Any) -> Counts:
    """Return the counts down to a depth, once they are those of all items as far as these are above it."""
    everything = count_factors(*arguments, **options)
    top = count_factors(*arguments, depth=depth, **options)
    known = everything.above < depth
    np.testing.assert_array_equal(top.above[known], everything.above[known])
    np.testing.assert_array_equal(top.tied[known], everything.tied[known])
    assert (top.above[~known] >= depth).all()
    np.testing.assert_array_equal(top.order, everything.order)
    np.testing.assert_array_equal(top.seen, everything.seen)
    return top


@settings(max_examples=100)
@given(case=cases, depth=st.integers(1, 30))
def test_a_depth_changes_no_count_above_it(case: dict[str, Any], depth: int) -> None:
    users, items, bias, train, test = draw(**case)
    check_top(depth, users, items, train, test, item_bias=bias if case["biased"] else None, threads=case["threads"])


KINDS = ["random", "trained", "near ties", "equal rows", "zero rows", "equal lengths", "sizes"]


def catalogue(kind: str, columns: int) -> tuple[Any, Any, Lists, Lists, Any]:
    """Return factors of users and items, the two lists, and a bias."""
    rng = np.random.default_rng(columns)
    n_users, n_items = (30, 3000) if columns < 1000 else (7, 700)
    users, items = rng.standard_normal((n_users, columns)), rng.standard_normal((n_items, columns))
    if kind == "trained":  # some directions matter more than others, and lengths vary
        scales, lengths = np.exp(-np.arange(columns) / 5), rng.exponential(1, (n_items, 1))
        users, items = users * scales + 1, items * scales * lengths + lengths
    if kind == "near ties":  # equal but for the last bits
        items = items[:40][rng.integers(0, 40, n_items)] * (1 + rng.integers(0, 4, (n_items, 1)) * 2.0**-23)
    if kind == "equal rows":
        items = items[:20][rng.integers(0, 20, n_items)]
    if kind == "zero rows":
        items[rng.random(n_items) < 0.6], users[::4] = 0, 0
    if kind == "equal lengths":
        items /= np.sqrt(np.square(items).sum(axis=1, keepdims=True))
    if kind == "sizes":
        items *= 10.0 ** rng.integers(-18, 15, (n_items, 1))
        users *= 10.0 ** rng.integers(-18, 15, (n_users, 1))
    train, test = random_lists(rng, n_users, n_items, 400), random_lists(rng, n_users, n_items, 12)
    return users, items, train, test, rng.standard_normal(n_items) * 3


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 6, 64, 4097])
def test_a_depth_in_catalogues_of_all_kinds(number: Any, biased: bool, kind: str, columns: int) -> None:
    users, items, train, test, bias = catalogue(kind, columns)
    added = bias.astype(number) if biased else None
    for depth in (1, 10, 100):
        check_top(depth, users.astype(number), items.astype(number), train, test, item_bias=added)


needs_int16 = pytest.mark.skipif(
    library.load() is None or not library.call("int16_lanes"), reason="the loops have no products of int16"
)


def count_by_int16(*arguments: Any, **options: Any) -> bool:
    """Return whether whole numbers always sufficed, once the counts are those of float32 scores, at any depth."""
    runs, sweep = [], factors._sweep

    def watched(entry: str, *given: Any) -> bool:
        runs.append((entry, sweep(entry, *given)))
        return runs[-1][1]

    plain = count_factors(*arguments, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factors, "COLUMNS_FOR_INT16", 1)
        patch.setattr(factors, "WORK_FOR_INT16", 0)
        patch.setattr(factors, "_sweep", watched)
        made = count_factors(*arguments, **options)
        for items_per_depth in (0, 2**40):  # all depths by int8, and all by int16
            patch.setattr(factors, "ITEMS_PER_DEPTH", items_per_depth)
            for depth in (1, 10, 100):
                check_top(depth, *arguments, **options)
    quick = {"count_int16", "count_sieve"}
    assert all(entry in quick for (entry, _), (_, before) in zip(runs[1:], runs, strict=False) if before)
    assert quick <= {entry for entry, _ in runs}
    assert runs[0][0] == "count_int16"
    for found, right in zip(made, plain, strict=True):
        np.testing.assert_array_equal(found, right)
    return all(sufficed for entry, sufficed in runs if entry in quick)


@needs_int16
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 2, 5, 31, 64, 1023, 4097])
def test_whole_numbers_change_no_count(biased: bool, kind: str, columns: int) -> None:
    users, items, train, test, bias = catalogue(kind, columns)
    single = users.astype(np.float32), items.astype(np.float32)
    count_by_int16(*single, train, test, item_bias=bias.astype(np.float32) if biased else None)


@needs_int16
@settings(max_examples=100)
@given(case=cases)
def test_whole_numbers_change_no_count_of_small_catalogues(case: dict[str, Any]) -> None:
    users, items, bias, train, test = draw(**(case | {"number": np.float32}))
    if len(test.indices):
        count_by_int16(users, items, train, test, item_bias=bias if case["biased"] else None)


@needs_int16
def test_whole_numbers_suffice_for_trained_factors_and_give_up_on_ties() -> None:
    users, items, train, test, _ = catalogue("trained", 64)
    single = users.astype(np.float32), items.astype(np.float32)
    assert count_by_int16(*single, train, test)
    single[1][500:] = single[1][0]
    assert not count_by_int16(*single, train, test)


@needs_int16
@pytest.mark.parametrize(("columns", "sufficed"), [(32, True), (1024, False)])
def test_a_sample_tells_whether_whole_numbers_would_leave_much_to_score(
    columns: int, sufficed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, said, sweep = np.random.default_rng(12), [], factors._sweep
    users, items = (rng.standard_normal((size, columns)).astype(np.float32) for size in (40, 2000))
    test = Lists(np.arange(41) * 3, np.sort(rng.permuted(np.tile(np.arange(2000), (40, 1)), axis=1)[:, :3]).ravel())
    nothing = Lists(np.zeros(41, int), np.zeros(0, int))

    def watched(entry: str, *given: Any) -> bool:
        said.append((entry, sweep(entry, *given)))
        return said[-1][1]

    monkeypatch.setattr(factors, "WORK_FOR_INT16", 0)
    monkeypatch.setattr(factors, "_sweep", watched)
    found = count_factors(users, items, nothing, test)
    assert said[0] == ("count_int16", sufficed)
    monkeypatch.setattr(factors, "COLUMNS_FOR_INT16", 2**40)
    for one, other in zip(found, count_factors(users, items, nothing, test), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("number", NUMBERS)
def test_threads_and_block_sizes_change_no_bit_of_a_depth(number: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    users, items = rng.standard_normal((300, 21)).astype(number), rng.standard_normal((3111, 21)).astype(number)
    items *= rng.exponential(1, (3111, 1)).astype(number)
    train, test = random_lists(rng, 300, 3111, 300), random_lists(rng, 300, 3111, 12)
    one = count_factors(users, items, train, test, depth=10)
    monkeypatch.setattr(factors, "USERS_PER_BLOCK", 7)
    monkeypatch.setattr(factors, "BLOCKS_IN_ORDER", 1)
    monkeypatch.setattr(factors, "WORK_PER_CALL", 1)
    monkeypatch.setattr(factors, "CHUNK", 256)
    for threads in (1, 3):
        again = count_factors(users, items, train, test, depth=10, threads=threads)
        assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))


def test_a_depth_with_very_many_held_out_items() -> None:
    rng = np.random.default_rng(10)
    users, items = rng.standard_normal((3, 4)), rng.standard_normal((6000, 4))
    nothing = Lists(np.zeros(4, int), np.zeros(0, int))
    many = Lists(np.array([0, 1, 1, 3001]), np.append(7, np.sort(rng.choice(6000, 3000, replace=False))))
    for depth in (1, 10, 1000):
        check_top(depth, users, items, nothing, many)


def count_both_ways(*arguments: Any, **options: Any) -> tuple[Counts, bool]:
    """Return the counts, once they are those of float64 scores throughout, and whether float32 sufficed."""
    runs, sweep = [], factors._sweep

    def watched(entry: str, *given: Any) -> bool:
        runs.append((entry, sweep(entry, *given)))
        return runs[-1][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factors, "_sweep", watched)
        made = count_factors(*arguments, **options)
        sufficed = runs == [("count_narrow", True)]
        patch.setattr(factors, "FLOAT32_BELOW", 0)
        wide = count_factors(*arguments, **options)
    assert all(np.array_equal(a, b) for a, b in zip(made, wide, strict=True))
    return made, sufficed


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-42, 1e-25, 1e-20, 1e-3, 1, 1e6, 1e25, 1e100])
@pytest.mark.parametrize("biased", [False, True])
def test_float32_decides_only_what_it_can(size: float, biased: bool) -> None:
    rng = np.random.default_rng(8)
    users, groups = (rng.standard_normal((n, 13)) for n in (20, 300))
    # In a group scores differ in the ninth digit, of which float32 knows nothing; some items are equal.
    items = groups[rng.integers(0, 300, 5000)] * (1 + 1e-9 * rng.integers(0, 9, (5000, 1)))
    items[::10] /= 30
    train, test = random_lists(rng, 20, 5000, 50), random_lists(rng, 20, 5000, 9)
    bias = rng.integers(0, 3, 5000) * 5000 * size * size if biased else None
    counts, sufficed = count_both_ways(users * size, items * size, train, test, item_bias=bias)
    assert sufficed == (1e-18 < size < 1e14)
    assert size < 1e-100 or 0 < counts.above.max() < 5000


def test_float32_suffices_for_random_factors_and_gives_up_on_ties() -> None:
    rng = np.random.default_rng(9)
    users, items = rng.standard_normal((50, 8)), rng.standard_normal((5000, 8))
    lists = random_lists(rng, 50, 5000, 50), random_lists(rng, 50, 5000, 9)
    assert count_both_ways(users, items, *lists)[1]
    items[1000:] = items[0]
    assert not count_both_ways(users, items, *lists)[1]


def test_float32_leaves_users_with_very_many_held_out_items_alone() -> None:
    rng = np.random.default_rng(10)
    users, items = rng.standard_normal((3, 4)), rng.standard_normal((1500, 4))
    nothing = Lists(np.zeros(4, int), np.zeros(0, int))
    many = Lists(np.array([0, 0, 0, 1100]), np.sort(rng.choice(1500, 1100, replace=False)))
    counts, by_float32 = count_both_ways(users, items, nothing, many)
    assert not by_float32
    assert as_rows(counts) == slow_counts(users @ items.T, nothing, many)


def one_held_out_each(n_users: int) -> tuple[Lists, Lists]:
    nothing = Lists(np.zeros(n_users + 1, int), np.zeros(0, int))
    return nothing, Lists(np.arange(n_users + 1), np.zeros(n_users, int))


@pytest.mark.parametrize(("users", "threads"), [(0, 1), (1, 2), (6, 2), (6040, 1), (6040, 2), (30_000, 7)])
def test_every_thread_gets_as_many_blocks(users: int, threads: int) -> None:
    size = factors._fair_size(users, threads, factors.USERS_PER_BLOCK)
    blocks = -(-users // size)
    assert 0 < size <= factors.USERS_PER_BLOCK
    assert size % factors.USERS_PER_TILE == 0
    assert blocks % threads == 0 or users < threads * factors.USERS_PER_TILE * 20


def test_of_several_errors_that_of_the_first_user_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "SCORES_PER_BLOCK", 5)

    def slow_for_the_first(users: Any) -> Any:
        time.sleep(0.2 if users[0] == 0 else 0)
        return np.full((1, 5), np.nan)

    with pytest.raises(tr.InputError, match="user 0 and item 0"):
        count_scores(slow_for_the_first, 5, *one_held_out_each(50), threads=3)


def test_an_interrupt_stops_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "SCORES_PER_BLOCK", 5)
    scored = []

    def slow(users: Any) -> Any:
        scored.append(users[0])
        time.sleep(0.01)
        return np.zeros((1, 5))

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with no_new_threads(), pytest.raises(KeyboardInterrupt):
        count_scores(slow, 5, *one_held_out_each(1000), threads=3, progress=interrupt)
    assert len(scored) < 1000


def test_progress_is_told_in_the_calling_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "SCORES_PER_BLOCK", 5)
    told = set()

    def progress(_: int) -> None:
        told.add(threading.current_thread())

    count_scores(lambda users: np.zeros((1, 5)), 5, *one_held_out_each(50), threads=3, progress=progress)
    assert told == {threading.main_thread()}


def test_progress_tells_of_every_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "SCORES_PER_BLOCK", 5)
    told: list[int] = []
    count_scores(lambda users: np.zeros((len(users), 5)), 5, *one_held_out_each(50), threads=3, progress=told.append)
    assert sum(told) == 50


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("n_items", [5, 31, 1000, 4103])
def test_equal_items_tie_wherever_they_stand(path: str, number: Any, n_items: int) -> None:
    rng = np.random.default_rng(2)
    users = rng.standard_normal((9, 37)).astype(number)
    items = np.repeat(rng.standard_normal((1, 37)).astype(number), n_items, axis=0)
    test = Lists(np.arange(10), rng.integers(0, n_items, 9))
    nothing = Lists(np.zeros(10, int), np.zeros(0, int))
    counts = count_factors(users, items, nothing, test)
    assert (counts.above == 0).all()
    assert (counts.tied == n_items - 1).all()


def test_the_order_of_the_catalogue_changes_no_count() -> None:
    rng = np.random.default_rng(3)
    users, items = (rng.standard_normal((n, 33)).astype(np.float32) for n in (50, 777))
    held, shuffle = rng.integers(0, 777, 50), rng.permutation(777)
    nothing = Lists(np.zeros(51, int), np.zeros(0, int))
    before = count_factors(users, items, nothing, Lists(np.arange(51), held))
    after = count_factors(users, items[shuffle], nothing, Lists(np.arange(51), np.argsort(shuffle)[held]))
    assert np.array_equal(before.above, after.above)
    assert np.array_equal(before.tied, after.tied)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_bad_score_is_named_unless_it_is_masked(path: str, number: Any, bad: Any) -> None:
    scores = np.zeros((4, 4200), number)
    train = Lists(np.array([0, 0, 0, 1, 1]), np.array([4160]))
    test = Lists(np.array([0, 1, 1, 2, 3]), np.array([0, 0, 5]))
    scores[1] = bad  # has no held-out items, so is never scored
    scores[2, 4160] = bad  # a training item
    assert count_scores(lambda u: scores[u], 4200, train, test).tied.tolist() == [4199, 4198, 4199]
    scores[3, 4155] = bad
    with pytest.raises(tr.InputError, match="user 3 and item 4155"):
        count_scores(lambda u: scores[u], 4200, train, test, threads=2)
    scores[2, 0] = bad  # a held-out item
    with pytest.raises(tr.InputError, match="user 2 and item 0"):
        count_scores(lambda u: scores[u], 4200, train, test)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, "huge"])
def test_a_bad_factor_is_named_unless_it_is_masked(path: str, number: Any, bad: Any) -> None:
    bad = np.finfo(number).max / 2 if bad == "huge" else bad
    users, items = np.full((2, 3), 3, number), np.ones((40, 3), number)
    items[17, 1] = bad
    train, test = Lists(np.array([0, 1, 1]), np.array([17])), Lists(np.array([0, 1, 2]), np.array([0, 0]))
    with pytest.raises(tr.InputError, match="user 1 and item 17"):
        count_factors(users, items, train, test)
    only_first = Lists(np.array([0, 1, 1]), np.array([0]))
    assert count_factors(users, items, train, only_first).tied.tolist() == [38]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_bias_is_named(path: str, number: Any, bad: Any) -> None:
    nothing, test = Lists(np.array([0, 0]), np.zeros(0, np.int64)), Lists(np.array([0, 1]), np.array([0]))
    bias = np.array([0, 0, bad], number)
    with pytest.raises(tr.InputError, match="user 0 and item 2"):
        count_factors(np.ones((1, 3), number), np.ones((3, 3), number), nothing, test, item_bias=bias)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("wrong", [[4500, 3], [-1, 3], [3, 5000], [2**31 - 2, 2**31 - 1]])
def test_lists_out_of_order_or_range_are_refused(path: str, wrong: Any, index: Any) -> None:
    users, items = np.ones((1, 2)), np.ones((5000, 2))
    wrong, right = Lists(np.array([0, 2]), np.array(wrong, index)), Lists(np.array([0, 1]), np.array([1]))
    with pytest.raises(tr.InputError, match="`train` must"):
        count_factors(users, items, wrong, right)
    with pytest.raises(tr.InputError, match="`test` must"):
        count_factors(users, items, right, wrong)


@pytest.mark.parametrize("wrong", [2**32 + 3, 2**40, -(2**32) + 3])
def test_item_numbers_that_are_too_large_for_the_loops_are_refused(path: str, wrong: int) -> None:
    users, items = np.ones((1, 2)), np.ones((5000, 2))
    wrong_list, right = Lists(np.array([0, 1]), np.array([wrong])), Lists(np.array([0, 1]), np.array([1]))
    with pytest.raises(tr.InputError, match=r"`train` must hold items 0\.\.4999, got"):
        count_factors(users, items, wrong_list, right)
    with pytest.raises(tr.InputError, match=r"`test` must hold items 0\.\.4999, got"):
        count_factors(users, items, right, wrong_list)


@pytest.mark.parametrize("indptr", [[0, 3], [0, 2, 1], [-1, 1], [0], [0, 1, 2], [0, 2**62], [1, 0]])
def test_lists_that_are_not_within_their_items_are_refused(path: str, indptr: list[int]) -> None:
    users, items = np.ones((1, 2)), np.ones((5000, 2))
    wrong, right = Lists(np.array(indptr), np.array([1, 2])), Lists(np.array([0, 1]), np.array([1]))
    with pytest.raises(tr.InputError, match="`train` must have 1 lists"):
        count_factors(users, items, wrong, right)
    if len(indptr) == 2:
        with pytest.raises(tr.InputError, match="`test` must have 1 lists"):
            count_factors(users, items, right, wrong)


@pytest.mark.parametrize("number", NUMBERS)
def test_hundred_thousand_held_out_items(number: Any) -> None:
    rng = np.random.default_rng(11)
    scores = rng.integers(0, 1000, (1, 200_000)).astype(number)
    held = np.sort(rng.choice(200_000, 100_000, replace=False))
    nothing, test = Lists(np.array([0, 0]), np.zeros(0, int)), Lists(np.array([0, 100_000]), held)
    counts = count_scores(lambda users: scores[users], 200_000, nothing, test)
    others = np.sort(np.delete(scores[0], held))
    targets = scores[0, held][counts.order]
    assert (np.diff(targets) <= 0).all()
    assert (np.diff(counts.order)[np.diff(targets) == 0] > 0).all()
    np.testing.assert_array_equal(counts.above, len(others) - np.searchsorted(others, targets, "right"))
    np.testing.assert_array_equal(counts.tied, len(others) - np.searchsorted(others, targets) - counts.above)


def test_factors_without_columns_score_zero(path: str) -> None:
    nothing, test = Lists(np.array([0, 0]), np.zeros(0, int)), Lists(np.array([0, 1]), np.array([2]))
    counts = count_factors(np.ones((1, 0)), np.ones((5, 0)), nothing, test)
    assert (counts.above.tolist(), counts.tied.tolist()) == ([0], [4])


@pytest.mark.parametrize("number", NUMBERS)
def test_factors_may_have_any_strides(number: Any) -> None:
    rng = np.random.default_rng(12)
    users, items = (rng.integers(-3, 4, (n, 6)).astype(number) for n in (9, 70))
    train, test = random_lists(rng, 9, 70, 9), random_lists(rng, 9, 70, 5)
    expected = slow_counts(users @ items.T, train, test)
    packed = np.zeros(70, [("gap", "u1"), ("row", number, 6)])
    packed["row"] = items
    for other in (np.asfortranarray(items), np.repeat(items, 2, axis=0)[::2], items[::-1].copy()[::-1], packed["row"]):
        assert as_rows(count_factors(users, other, train, test)) == expected


def test_no_held_out_items_give_empty_counts(path: str) -> None:
    nothing = Lists(np.zeros(4, int), np.zeros(0, int))
    assert [len(part) for part in count_factors(np.ones((3, 2)), np.ones((5, 2)), nothing, nothing)] == [0, 0, 0, 0]
