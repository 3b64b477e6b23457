"""The best items of each user against sorting, for every kind of scores, block size and number of threads."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import truerank as tr
from tests.kernels.test_counts import KINDS, catalogue, needs_int16
from truerank.kernels import factors as factor_blocks
from truerank.kernels import library
from truerank.kernels import scores as score_blocks
from truerank.kernels.factors import best_factors, score_pairs
from truerank.kernels.histories import best_histories
from truerank.kernels.scores import Best, best_scores
from truerank.kernels.user_blocks import Lists

N_USERS, N_ITEMS = 40, 9_000  # more than two chunks of items
NUMBERS = ("float32", "float64")


@pytest.fixture(params=["compiled", "numpy"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "numpy":
        monkeypatch.setattr(library, "load", lambda: None)
    return str(request.param)


def random_lists(rng: np.random.Generator, n_items: int = N_ITEMS) -> Lists:
    """Return lists to exclude, of which the first is empty and the second has all but three items."""
    sizes = rng.integers(0, n_items // 3, N_USERS)
    sizes[:2] = 0, n_items - 3
    rows = [np.sort(rng.choice(n_items, size, replace=False)) for size in sizes]
    return Lists(np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(rows).astype(np.int32))


def slow_best(scores: Any, users: Any, excluded: Lists, k: int) -> list[list[tuple[float, int]]]:
    """Sort all candidates by falling score, then by item."""
    found = []
    for user in users:
        left_out = set(excluded.indices[excluded.indptr[user] : excluded.indptr[user + 1]].tolist())
        pairs = [(-score, item) for item, score in enumerate(scores[user].tolist()) if item not in left_out]
        found.append([(-score, item) for score, item in sorted(pairs)[:k]])
    return found


def as_pairs(best: Best) -> list[list[tuple[float, int]]]:
    return [
        list(zip(scores[:n].tolist(), items[:n].tolist(), strict=True))
        for items, scores, n in zip(best.items, best.scores, best.found, strict=True)
    ]


Find = Callable[..., Best]


def whole(rng: np.random.Generator, *shape: int) -> Any:
    """Return small whole numbers, of which sums are exact in every order and often equal."""
    return rng.integers(-3, 4, shape)


def by_factors(number: str, bias: bool) -> tuple[Any, Find]:
    rng = np.random.default_rng(1)
    users, items = whole(rng, N_USERS, 5).astype(number), whole(rng, N_ITEMS, 5).astype(number)
    added = whole(rng, N_ITEMS).astype(number) if bias else None
    return users @ items.T + (0 if added is None else added), lambda *given, **options: best_factors(
        users, items, *given, item_bias=added, **options
    )


def by_scores(number: str) -> tuple[Any, Find]:
    scores = np.random.default_rng(2).integers(-50, 50, (N_USERS, N_ITEMS)).astype(number)
    return scores, lambda *given, **options: best_scores(scores.__getitem__, N_ITEMS, *given, **options)


def by_histories(number: str, kind: Any) -> tuple[Any, Find]:
    rng = np.random.default_rng(3)
    histories = sp.csr_array(whole(rng, N_USERS, 60).astype(number))
    similarity = np.where(rng.random((60, N_ITEMS)) < 0.2, whole(rng, 60, N_ITEMS), 0).astype(number)
    # the items of a history are the first ones of the catalogue
    history = sp.csr_array((histories.data, histories.indices, histories.indptr), shape=(N_USERS, N_ITEMS))
    square = sp.vstack([sp.csr_array(similarity), sp.csr_array((N_ITEMS - 60, N_ITEMS), dtype=number)]).tocsr()
    return histories.toarray() @ similarity, lambda *given, **options: best_histories(
        history, kind(square), *given, **options
    )


SOURCES: dict[str, Callable[[str], tuple[Any, Find]]] = {
    "factors": lambda number: by_factors(number, bias=False),
    "biased factors": lambda number: by_factors(number, bias=True),
    "scores": by_scores,
    "sparse similarity": lambda number: by_histories(number, sp.csr_array),
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("k", [1, 7, 300])
def test_the_best_are_the_first_after_sorting(path: str, source: str, number: str, k: int) -> None:
    scores, find = SOURCES[source](number)
    excluded, users = random_lists(np.random.default_rng(0)), np.array([0, 1, 2, 5, 17, 39])
    best = find(users, excluded, k)
    assert best.scores.dtype == number
    assert best.found.tolist() == [k, min(k, 3), k, k, k, k]
    assert as_pairs(best) == slow_best(scores, users, excluded, k)


def test_a_dense_similarity_gives_the_same_as_a_sparse_one() -> None:
    rng = np.random.default_rng(4)
    histories, similarity = sp.csr_array(whole(rng, N_USERS, 50).astype(float)), whole(rng, 50, 50).astype(float)
    excluded, users = Lists(np.zeros(N_USERS + 1, np.int64), np.zeros(0, np.int32)), np.arange(N_USERS)
    best = best_histories(histories, similarity, users, excluded, 9)
    assert as_pairs(best) == slow_best(histories @ similarity, users, excluded, 9)
    assert as_pairs(best) == as_pairs(best_histories(histories, sp.csr_array(similarity), users, excluded, 9))


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [12, 24])
def test_neither_blocks_nor_threads_change_a_bit(
    number: str, threads: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    users, items = (rng.standard_normal((n, 33)).astype(number) for n in (N_USERS, N_ITEMS))
    excluded, everyone = random_lists(rng), np.arange(N_USERS)
    expected = best_factors(users, items, everyone, excluded, 20)
    monkeypatch.setattr(factor_blocks, "USERS_PER_BLOCK", size)
    monkeypatch.setattr(factor_blocks, "BLOCKS_IN_ORDER", 1)
    monkeypatch.setattr(factor_blocks, "WORK_PER_CALL", 1)
    done: list[int] = []
    found = best_factors(users, items, everyone, excluded, 20, threads=threads, progress=done.append)
    assert sum(done) == N_USERS
    assert len(done) > 1
    assert as_pairs(found) == as_pairs(expected)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("k", [20, 60, 2_000])
def test_both_zeros_tie_and_tiny_and_huge_scores_do_not(path: str, number: str, k: int) -> None:
    rng, limits = np.random.default_rng(k), np.finfo(number)
    values = np.array([0.0, -0.0, limits.smallest_subnormal, limits.tiny, limits.max, 1.0], number)
    scores = rng.choice(np.concatenate([values, -values]), (3, 9_000))
    users, nothing = np.arange(3), Lists(np.zeros(4, np.int64), np.zeros(0, np.int32))
    best = best_scores(scores.__getitem__, 9_000, users, nothing, k)
    assert as_pairs(best) == slow_best(scores, users, nothing, k)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_only_candidates_must_have_finite_scores(path: str, bad: float) -> None:
    scores = np.arange(12.0).reshape(2, 6)
    scores[1, 4] = bad
    users, two = np.arange(2), Lists(np.array([0, 0, 1]), np.array([4], np.int32))
    assert best_scores(scores.__getitem__, 6, users, two, 2).items.tolist() == [[5, 4], [5, 3]]
    with pytest.raises(tr.InputError, match=r"scores must be finite, got .* for user 1 and item 4"):
        best_scores(scores.__getitem__, 6, users, Lists(np.zeros(3, np.int64), np.zeros(0, np.int32)), 2)
    vast = np.full((6, 1), 1e300)
    with pytest.raises(tr.InputError, match="scores must be finite, got inf for user 0 and item 0"):
        best_factors(np.full((2, 1), 1e300), vast, users, two, 2)


@pytest.mark.parametrize("items", [[4_500, 1], [-1, 2], [2, 5_000]])
def test_a_list_out_of_order_or_range_is_refused(path: str, items: list[int]) -> None:
    excluded = Lists(np.array([0, 2]), np.array(items, np.int32))
    with pytest.raises(tr.InputError, match="`train` must list items of the catalogue in ascending order"):
        best_scores(np.ones((1, 5_000)).__getitem__, 5_000, np.array([0]), excluded, 2)


def test_blocks_of_a_function_are_searched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_blocks, "USERS_PER_BLOCK", 7)
    scores, find = by_scores("float64")
    excluded, users = random_lists(np.random.default_rng(0)), np.arange(N_USERS)
    assert as_pairs(find(users, excluded, 5, threads=3)) == slow_best(scores, users, excluded, 5)


def best_by_sorting(scores: Any, excluded: Lists, k: int) -> list[list[tuple[float, int]]]:
    """Do as `slow_best` for all users, but faster."""
    found = []
    for user, row in enumerate(scores):
        left_out = excluded.indices[excluded.indptr[user] : excluded.indptr[user + 1]]
        items = np.setdiff1d(np.arange(len(row)), left_out)
        first = items[np.argsort(-row[items], kind="stable")][:k]
        found.append(list(zip(row[first].tolist(), first.tolist(), strict=True)))
    return found


def search_kind(kind: str, columns: int, number: str) -> list[tuple[str, int]]:
    """Return which loops ran, and their status, once lists of three lengths are those of sorting."""
    users, items, excluded, _, bias = catalogue(kind, columns)
    users, items, added = (each.astype(number) for each in (users, items, bias))
    everyone, everything = np.indices((len(users), len(items))).reshape(2, -1)
    runs: list[tuple[str, int]] = []
    call = library.call

    def watched(entry: str, *given: Any) -> int:
        runs.append((entry, call(entry, *given)))
        return runs[-1][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "call", watched)
        for item_bias in (None, added):
            scores = score_pairs(users, items, everyone, everything, item_bias=item_bias).reshape(len(users), -1)
            for k in (1, 20, 300):
                best = best_factors(users, items, np.arange(len(users)), excluded, k, item_bias=item_bias)
                assert as_pairs(best) == best_by_sorting(scores, excluded, k)
    return runs


@pytest.mark.skipif(library.load() is None, reason="the scores of NumPy depend on the block")
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 31])
def test_the_best_of_catalogues_of_all_kinds(number: str, kind: str, columns: int) -> None:
    search_kind(kind, columns, number)


@needs_int16
@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_change_no_list(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factor_blocks, "COLUMNS_FOR_INT16", 1)
    monkeypatch.setattr(factor_blocks, "WORK_FOR_INT16", 0)
    said = {status for entry, status in search_kind(kind, 31, "float32") if entry == "best_sieve"}
    assert library.DONE in said
    assert (library.GAVE_UP in said) == (kind in ("equal rows", "zero rows"))
