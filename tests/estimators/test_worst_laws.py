"""The parts of bounds: the counts that tables are solved for, what they are weighed with, and the laws that may be."""

import itertools

import numpy as np
import pytest
from scipy import integrate

from tests.estimators.test_bounds import is_smooth
from truerank.estimators import worst_laws
from truerank.estimators.draws import FixedDraws, HitTimes
from truerank.estimators.worst_laws import reference, setting, smooth_conditions, starting_laws
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC, Law


def test_counts_represent_those_since_the_one_before_under_a_falling_law() -> None:
    g = np.array([0, 1, 2, 5, 20, 100])
    weights = [integrate.quad(lambda x: x**-0.6, low, high)[0] for low, high in itertools.pairwise([0.5, *(g + 1.5)])]
    np.testing.assert_allclose(reference(g), np.array(weights) / sum(weights), rtol=1e-9)


@pytest.mark.parametrize("single", [20, 60])
@pytest.mark.parametrize("breaks", [(), (9,), (0, 3_999), (70, 1_000)])
def test_counts_are_single_at_the_top_and_around_jumps(breaks: tuple[int, ...], single: int) -> None:
    N = 4_000
    g = worst_laws._solved_counts(FixedDraws(N, 100, HYPERGEOMETRIC), breaks, single)
    assert g[0] == 0
    assert g[-1] == N
    wanted = {*range(single + 1), *(at + shift for at in breaks for shift in range(-2, 4))}
    assert {each for each in wanted if 0 <= each <= N} <= set(g.tolist())
    steps, start = np.diff(g), g[:-1]
    assert np.all(steps <= np.maximum(1, 0.1 * start))
    if not breaks:
        assert np.all(steps[:-1] >= np.maximum(1, (0.02 * start[:-1]).astype(int)))
        spread = np.array([FixedDraws(N, 100, HYPERGEOMETRIC).spread(each) for each in start.tolist()])
        step = np.clip(0.4 * spread, 0.02 * start, 0.1 * start).astype(int)
        assert steps[start > single][:-1].tolist() == np.maximum(1, step)[start > single][:-1].tolist()


def test_tables_are_checked_halfway_between_the_counts_they_are_solved_for() -> None:
    assert worst_laws._refined(np.array([0, 1, 2, 4, 9, 20])).tolist() == [0, 1, 2, 3, 4, 6, 9, 14, 20]


def test_nothing_is_between_neighbouring_counts() -> None:
    excess = np.random.default_rng(0).normal(size=50)
    assert worst_laws._lowest(np.arange(50), excess) == excess.min()
    assert worst_laws._lowest(np.array([3, 9]), excess[:2]) == excess[:2].min()
    assert worst_laws._lowest(np.array([3]), excess[:1]) == excess[0]
    assert worst_laws._lowest(np.zeros(0, dtype=np.int64), np.zeros(0)) == np.inf


@pytest.mark.parametrize("bend", [0.3, -0.3])
def test_between_counts_a_parabola_may_dip_twice_as_far_as_its_bend_tells(bend: float) -> None:
    """Between counts that are s apart, a function with the second derivative c is c s^2 / 8 below its chord."""
    g = np.array([0, 1, 2, 5, 11, 12])
    excess = bend / 2 * np.square(g - 4.0) + 7.0
    dips = [
        min(a, b) - 2 * abs(bend) * s**2 / 8 for (a, b), s in zip(itertools.pairwise(excess), np.diff(g), strict=True)
    ]
    wide = [dip for dip, s in zip(dips, np.diff(g), strict=True) if s > 1]
    assert worst_laws._lowest(g, excess) == pytest.approx(min(*wide, excess.min()), rel=1e-12)
    # where bends differ, the larger one of the two ends counts
    g, excess = np.array([0, 2, 4, 8, 12]), np.array([0.0, 4.0, 9.0, 9.0, 9.0])
    slopes = [2.0, 2.5, 0.0, 0.0]
    bends = [
        2 * (b - a) / (q - p)
        for (a, b), (p, q) in zip(itertools.pairwise(slopes), [(0, 4), (2, 8), (4, 12)], strict=True)
    ]
    largest = [abs(bends[0]), max(map(abs, bends[:2])), max(map(abs, bends[1:])), abs(bends[2])]
    ends = [min(pair) for pair in itertools.pairwise(excess.tolist())]
    lowest = min(end - most * s**2 / 4 for end, most, s in zip(ends, largest, np.diff(g).tolist(), strict=True))
    assert worst_laws._lowest(g, excess) == pytest.approx(lowest, rel=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 9, 40, 41])
def test_laws_to_start_with_are_smooth_and_as_steep_as_allowed(size: int) -> None:
    laws = starting_laws(size)
    assert np.allclose(laws.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    assert all(is_smooth(law) for law in laws * 4.0**10)
    rank = np.arange(1, size + 1)
    steepest = 0.25 ** np.ceil(np.log2(rank))
    for wanted in (np.ones(size), 0.25 ** (rank > 1), steepest):
        assert np.abs(laws - wanted / wanted.sum()).max(axis=1).min() < 1e-14
    first = {int((law == law[0]).sum()) for law in laws}
    assert first == {size, *(step for step in (1, 2, 4, 6, 10, 16, 26) if step < size)}


@pytest.mark.parametrize(("size", "n"), [(2, 2), (3, 5), (6, 6), (7, 9)])
def test_conditions_of_smooth_laws_by_the_words(size: int, n: int) -> None:
    conditions, rng = smooth_conditions(size, n), np.random.default_rng(1)
    found = []
    for _ in range(300):
        law = np.concatenate(
            [np.append(1.0, rng.choice([0.25, 0.5, 1.0, 1.25], size - 1)).cumprod(), rng.random(n - size)]
        )
        assert bool(np.all(conditions @ law <= 0)) == is_smooth(law[:size])
        found.append(is_smooth(law[:size]))
    assert any(found)
    assert not all(found)


@pytest.mark.parametrize("law", [HYPERGEOMETRIC, BINOMIAL], ids=["without", "with"])
def test_settings_hold_moments_of_the_hat_functions(law: Law) -> None:
    draws = FixedDraws(300, 12, law)
    found = setting(draws, (9,))
    np.testing.assert_allclose(found.expectation, draws.rows(found.g) @ draws.hats((9,)), atol=1e-13)
    shown = sum(weight * row for weight, row in zip(reference(found.g), draws.rows(found.g), strict=True))
    np.testing.assert_allclose(found.shown, shown, atol=1e-13)
    np.testing.assert_allclose(found.linear, np.average(found.hats, axis=0, weights=found.shown), atol=1e-13)
    np.testing.assert_allclose(found.quadratic, np.cov(found.hats.T, aweights=found.shown, ddof=0), atol=1e-11)
    assert found.n_top == 0
    assert found.counts.tolist() == found.g.tolist()
    assert np.all(np.isin([*range(21), *range(7, 13), 300], found.g[found.within]))
    assert 2 * found.within.sum() > found.g.size


def test_counts_of_the_top_represent_means_if_laws_fall() -> None:
    draws = FixedDraws(330, 12, HYPERGEOMETRIC)
    found = setting(draws, (9,), assume="falling")
    top = found.g[: found.n_top]
    assert top.max() == draws.top == 30
    assert found.counts.tolist() == [*range(31), *found.g[found.n_top :].tolist()]
    f = np.random.default_rng(0).random(331)
    expected = [f[: G + 1].mean() for G in top] + f[found.g[found.n_top :]].tolist()
    np.testing.assert_allclose(found.targets(f[found.counts]), expected, atol=1e-14)
    rows = draws.rows(np.arange(331)) @ draws.hats((9,))
    means = [rows[: G + 1].mean(axis=0) for G in top]
    np.testing.assert_allclose(found.expectation[: found.n_top], means, atol=1e-13)
    np.testing.assert_allclose(found.expectation[found.n_top :], rows[found.g[found.n_top :]], atol=1e-13)


def test_smooth_laws_are_checked_at_every_count_of_the_top() -> None:
    draws = HitTimes(260, 2)
    found = setting(draws, (9,), assume="smooth")
    assert found.g[: found.n_top].tolist() == list(range(21))
    assert not found.within[: found.n_top].any()
    assert found.within[found.n_top]
    excess = np.zeros(found.g.size)
    assert found._violated(excess) is None
    excess[0] = -1e-4  # the worst smooth law falls as fast as it may
    law = found._violated(excess)
    assert law is not None
    assert law[: found.n_top].tolist() == worst_laws.worst_law(excess[: found.n_top]).tolist()
    assert not law[found.n_top :].any()
    assert found._violated(excess / 10) is None
    assert found._shortfall(excess) == pytest.approx(1e-4 * law[0], rel=1e-12)
