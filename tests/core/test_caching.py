"""Kept results: computed once, bounded in bytes, and forgotten when asked to."""

import gc
import pickle
import threading
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import truerank as tr
from truerank.core import caching


def test_a_cache_keeps_what_was_asked_for_last() -> None:
    cache = caching.Cache(100_000)
    for key in range(20):
        cache.get(key, lambda: np.zeros(1_000))
        cache.get(0, lambda: np.zeros(1))
    assert set(cache._entries) == {0, *range(20)[-len(cache._entries) + 1 :]}
    assert cache.get(0, lambda: np.zeros(1)).size == 1_000
    assert 80_000 < cache.size <= 100_000
    assert cache.get("large", lambda: np.zeros(100_000)).size == 100_000
    assert "large" not in cache._entries, "what is too large alone is not kept, and replaces nothing"
    assert cache.size > 80_000
    cache.clear()
    assert cache.size == 0


def test_a_replaced_value_is_not_counted_twice() -> None:
    cache = caching.Cache(10**6)
    cache.get("key", lambda: cache.get("key", lambda: np.zeros(1_000)))  # as if two threads had computed it
    assert cache.size == caching.size_of(("key", np.zeros(1_000)))


@dataclass(frozen=True)
class Pair:
    """Something that holds arrays."""

    a: np.ndarray
    b: tuple[np.ndarray, ...]


def test_sizes() -> None:
    array = np.zeros(10_000)
    for value, size in (
        (array, 80_000),
        (array[:1], 80_000),
        (Pair(array, (array,)), 160_000),
        ({"a": [array]}, 80_000),
    ):
        assert size <= caching.size_of(value) < size + 2_000


def test_threads_share_a_cache() -> None:
    cache = caching.Cache(50_000)

    def work() -> None:
        for key in range(2_000):
            cache.get(key % 40, lambda: np.zeros(500))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.size == sum(size for _, size in cache._entries.values()) <= 50_000


def test_keywords_and_places_are_told_apart() -> None:
    calls = []

    @caching.cached
    def function(a: int, b: int = 0) -> int:
        calls.append((a, b))
        return a - b

    assert [function(1, 2), function(1, b=2), function(2, 1), function(1, 2)] == [-1, -1, 1, -1]
    assert len(calls) == 3


def test_tables_are_bounded_and_can_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def correct(m: int) -> None:
        ranks = tr.UniformSampling(m).draw(tr.Ranks.from_ranks(range(1, 200), n=2_000), rng=0)
        tr.values(ranks, "ndcg@10~bv(0.1)")

    correct(99)  # which imports what is needed
    caching.clear()
    monkeypatch.setattr(caching._CACHE, "limit", 2_000_000)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for m in range(100, 300, 10):  # which would keep 6 MB
        correct(m)
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0] - before
    caching.clear()
    gc.collect()
    left = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert 1_000_000 < kept < 3_000_000
    assert left < 100_000


def test_what_estimators_keep_with_ranks_is_bounded_and_not_pickled() -> None:
    ranks = tr.UniformSampling(50).draw(tr.Ranks.from_ranks(range(1, 200), n=2_000), rng=0)
    plain = len(pickle.dumps(ranks))
    value = tr.values(ranks, "ndcg@10~mes")
    assert 0 < ranks.fits.size <= ranks.fits.limit == caching.LIMIT
    assert len(pickle.dumps(ranks)) == plain
    ranks.fits.limit = 0
    ranks.fits.clear()
    np.testing.assert_array_equal(tr.values(ranks, "ndcg@10~mes"), value)
    assert ranks.fits.size == 0


def test_no_table_is_kept_elsewhere() -> None:
    """A functools.lru_cache counts results, not their bytes; that of Spark's workers keeps open files."""
    source = Path(caching.__file__).parents[1]
    using = {path.name for path in source.rglob("*.py") if "lru_cache" in path.read_text()}
    assert using == {"spark_ranks.py"}
