from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.arrays import Floats
from tests.sampling.terms import LAWS, law_of
from truerank.sampling.laws import BINOMIAL
from truerank.sampling.sums import KEPT, WeightedCounts, condensed, kept_counts, weighted_counts


@settings(max_examples=60)
@given(st.integers(1, 10**9), st.integers(1, 2000), st.booleans(), st.lists(st.integers(0, 10**5)))
def test_weighted_counts_cover_everything_once(N: int, m: int, replace: bool, breaks: list[int]) -> None:
    m = min(m, N)
    if N / m < 50 and N > 10**6:
        return  # every count, and many of them
    points = weighted_counts(N, m, law=law_of(replace), breaks=breaks)
    assert np.all(np.diff(points.g) > 0)
    assert np.all(points.weight > 0)
    assert points.g[0] >= 0
    assert points.g[-1] <= N
    np.testing.assert_allclose(points.weight.sum(), N + 1, rtol=1e-13)
    np.testing.assert_allclose(points.weight @ points.g, N * (N + 1) / 2, rtol=1e-13)


def test_no_block_straddles_a_break() -> None:
    points = weighted_counts(10**6, 100, law=BINOMIAL, breaks=[12_345])
    assert points.weight[points.g < 12_345].sum() == pytest.approx(12_345, rel=1e-13)


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize(("N", "m"), [(2_000, 60), (20_000, 150), (20_000, 3)])
def test_compressed_sums_equal_full_sums(N: int, m: int, replace: bool) -> None:
    metrics: list[tuple[Callable[[Floats], Floats], list[int]]] = [
        (lambda g: 1 / (g + 1), []),
        (lambda g: 1 / np.log2(g + 2), []),
        (lambda g: 0.95**g, []),
        (lambda g: np.where(g < 777, 1 / np.log2(g + 2), 0), [777]),
    ]

    def weighted(points: WeightedCounts) -> tuple[Floats, Floats]:
        law = law_of(replace).rows(points.g, m, N)
        return law, points.weight[:, None] * law

    full = weighted_counts(N, m, law=law_of(replace), compress=False)
    full_law, full_weighted = weighted(full)
    full_gram, full_evidence = full_law.T @ full_weighted, full_weighted.sum(axis=0)
    scale = np.sqrt(np.outer(full_evidence, full_evidence))
    for metric, breaks in metrics:
        few = weighted_counts(N, m, law=law_of(replace), breaks=breaks)
        assert len(few.g) < N / 3
        law, mass = weighted(few)
        assert np.abs((law.T @ mass - full_gram) / scale).max() < 1e-13
        assert np.abs((metric(few.g) @ mass - metric(full.g) @ full_weighted) / full_evidence).max() < 1e-13
        np.testing.assert_allclose(mass.sum(axis=0), full_evidence, rtol=1e-12)


@pytest.mark.parametrize(("N", "whole", "growth"), [(5, 16, 3.0), (70, 16, 3.0), (3_000, 16, 3.0), (40_000, 56, 1.2)])
def test_few_counts_stand_for_all(N: int, whole: int, growth: float) -> None:
    """Weights at random counts, against the sum over all of them."""
    rng = np.random.default_rng(0)
    weight = np.where(rng.random((3, N + 1)) < 0.3, rng.exponential(size=(3, N + 1)), 0.0)
    kept = kept_counts(N, whole=whole, growth=growth)
    counts, every = np.concatenate(kept).astype(np.float64), np.arange(N + 1, dtype=np.float64)
    assert np.all(np.diff(counts) > 0)
    assert (counts[0], counts[-1] <= N, max(map(len, kept[1:]), default=0) <= 2 * KEPT) == (0, True, True)
    assert counts.size < 450
    few = condensed(weight, kept)
    smooth: list[Callable[[Floats], Floats]] = [lambda g: 1 / (g + 1), lambda g: 1 / np.log2(g + 2), lambda g: g + 1]
    for function in smooth:
        np.testing.assert_allclose(few @ function(counts), weight @ function(every), rtol=1e-12)


def test_small_catalogues_keep_every_count() -> None:
    (kept,) = kept_counts(5, whole=10, growth=0.1)
    assert kept.tolist() == [0, 1, 2, 3, 4, 5]
