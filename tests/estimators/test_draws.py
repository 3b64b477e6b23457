"""What draws can show, piece by piece: against quadrature, enumeration, and the words of the documentation."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tests.arrays import Floats
from truerank.estimators import draws
from truerank.estimators.draws import Ended, FixedDraws, HitTimes, Readings, rounded_down, rounded_up
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC


def has_at_most(number: int, bits: int) -> bool:
    """Whether a number has this many significant binary digits."""
    return len(f"{number:b}".strip("0")) <= bits


@pytest.mark.parametrize("bits", [1, 3, 6])
def test_numbers_are_rounded_to_the_nearest_with_few_significant_bits(bits: int) -> None:
    numbers = np.arange(300)
    down = [max(other for other in range(number + 1) if has_at_most(other, bits)) for number in numbers.tolist()]
    up = [next(other for other in itertools.count(number) if has_at_most(other, bits)) for number in numbers.tolist()]
    assert rounded_down(numbers, bits).tolist() == down
    assert rounded_up(numbers, bits).tolist() == up


@pytest.mark.parametrize(
    ("N", "m", "breaks"), [(100, 20, ()), (3_000, 400, (150,)), (50, 1, (3,)), (900, 900, (10, 400))]
)
def test_tables_of_fixed_draws_are_linear_between_bends(N: int, m: int, breaks: tuple[int, ...]) -> None:
    hats = FixedDraws(N, m, HYPERGEOMETRIC).hats(breaks)
    bends = np.flatnonzero(hats.max(axis=1) == 1)
    np.testing.assert_array_equal(hats[bends], np.eye(bends.size))
    values = np.random.default_rng(0).random(bends.size)
    np.testing.assert_allclose(hats @ values, np.interp(np.arange(m + 1), bends, values), atol=1e-14)
    steps, start = np.diff(bends), bends[:-1]
    assert np.all(steps <= np.maximum(1, np.maximum(np.sqrt(start) / 2, 0.15 * start)))
    for centre in (at * m / N for at in breaks):
        near = np.abs(start - centre) < 6 * max(centre, 1) ** 0.5
        assert np.all(steps[near] <= np.maximum(1, np.sqrt(start[near]) / 2))
        assert near.any()
    if not breaks:  # and no closer than needed
        assert np.all(steps[:-1] >= np.maximum(1, (0.15 * start[:-1]).astype(int)))


@pytest.mark.parametrize("g", [10, 60, 100])
def test_the_spread_of_fixed_draws_is_that_of_the_count_they_suggest(g: int) -> None:
    N, m = 200, 20
    for law, exact in ((BINOMIAL, 1.0), (HYPERGEOMETRIC, N / (N - 1))):
        (chances,) = law.rows([g], m, N)
        suggested = np.arange(m + 1) * N / m
        deviation = math.sqrt(chances @ np.square(suggested - chances @ suggested))
        assert FixedDraws(N, m, law).spread(g) ** 2 * exact == pytest.approx(deviation**2, rel=1e-12)
    assert FixedDraws(N, m, BINOMIAL).spread(1) == FixedDraws(N, m, BINOMIAL).spread(N // m)
    assert FixedDraws(N, m, BINOMIAL).spread(150) == FixedDraws(N, m, BINOMIAL).spread(100)
    assert FixedDraws(N, N, HYPERGEOMETRIC).spread(g) == 0.0
    assert FixedDraws(N, N, BINOMIAL).spread(g) > 0.0


def law_by_quadrature(a: int, b: int, knots: Floats) -> Floats:
    """The mean of each hat function over Beta(a, b): a polynomial between knots, which 30 points integrate exactly."""
    nodes, weights = np.polynomial.legendre.leggauss(30)
    share, width = (1 + nodes) / 2, np.diff(knots)[:, None]
    density = stats.beta.pdf(knots[:-1, None] + width * share, a, b) * weights / 2 * width
    law = np.zeros(knots.size)
    law[:-1] += (density * (1 - share)).sum(axis=1)
    law[1:] += (density * share).sum(axis=1)
    return law


@pytest.mark.parametrize(("hits", "end"), [(1, 1.0), (3, 1.0), (3, 0.4)])
def test_the_law_of_hit_times_against_quadrature(hits: int, end: float) -> None:
    times, g = HitTimes(40, hits, end), np.array([0, 1, 2, 3, 7, 40])
    rows = times.rows(g)
    for own, count in zip(rows, g.tolist(), strict=True):
        open_ = [stats.binom.pmf(j, count, end) for j in range(hits)]
        np.testing.assert_allclose(own[:hits], open_, atol=1e-12)
        knots = law_by_quadrature(hits, count + 1 - hits, times.knots) if count >= hits else np.zeros(times.knots.size)
        np.testing.assert_allclose(own[hits:], knots, atol=1e-12)
        assert own.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(times.mean_rows(np.array([1, 3])), [rows[:2].mean(0), rows[:4].mean(0)], atol=1e-14)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 900), (900, 2), (300, 700), (50_000, 10**6)])
def test_beta_laws_near_and_far_from_their_means(a: int, b: int) -> None:
    x = np.unique(np.concatenate([np.linspace(0, 1, 200), stats.beta(a, b).ppf([1e-12, 1e-3, 0.5, 1 - 1e-3])]))
    (found,) = draws._beta_law(np.array([a]), np.array([b]), x)
    np.testing.assert_allclose(found, stats.beta(a, b).cdf(x), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("hits", [1, 4, 11, 12, 100])
def test_knots_are_as_close_as_the_time_of_the_hits_is_known(hits: int) -> None:
    N, apart = 500, min(0.12, 0.4 / math.sqrt(hits))
    knots = HitTimes(N, hits).knots
    assert knots[0] == 0.0
    assert knots[-1] == 1.0
    assert knots[1] <= 0.5 / N < knots[2]
    above = knots[2:]
    np.testing.assert_allclose(np.diff(knots[1:]), np.minimum(apart / 2, apart * above), rtol=1e-9)
    np.testing.assert_allclose(HitTimes(N, hits, 0.3).knots, 0.3 * knots, rtol=1e-15)


@pytest.mark.parametrize(("N", "limit"), [(1_024, 500), (10_240, 2_000), (131_072, 100_000)])
def test_the_cap_on_the_time_comes_before_that_on_the_draws(N: int, limit: int) -> None:
    """The chance that more candidates than the limit come before the end is about one in a million."""
    times = HitTimes.serving(N, 2, limit)
    assert times.N == N
    assert 1e-7 < stats.binom.sf(limit, N, times.end) < 2e-6


def test_caps_on_a_few_draws_are_a_quarter_of_their_share() -> None:
    assert HitTimes.serving(64, 2, 4).end == pytest.approx(4 / 64 / 4, rel=1e-15)


def test_times_serve_slightly_fewer_candidates() -> None:
    for N in range(20, 3_000, 7):
        free, last, capped = (HitTimes.serving(N, 3, limit) for limit in (N + 1, N, N - 1))
        assert free == last == HitTimes(int(rounded_up(np.array([N]), 3)[0]), 3)
        assert rounded_up(np.array([N]), 6)[0] == capped.N
        assert capped.end < 1.0
        # the top is at most a tenth of the candidates of all that are served
        assert N // 13 <= free.top <= N / 10
        assert FixedDraws(N, 5, BINOMIAL).top == N // 11


def test_functions_that_no_longer_change_are_decided_by_the_hits() -> None:
    times, g = HitTimes(30, 3), np.array([0, 1, 2, 3, 9, 30])
    values = np.array([1.0, 0.5, 0.2, 0.1, 0.1, 0.1])
    table = times.decided(g, values)
    assert table is not None
    np.testing.assert_allclose(times.rows(g) @ table, values, atol=1e-12)
    assert HitTimes(30, 3, 0.9).decided(g, values) is None
    assert times.decided(g, np.array([1.0, 0.5, 0.2, 0.2, 0.1, 0.1])) is None
    assert times.decided(g[1:], values[1:]) is None


@pytest.mark.parametrize(("hits", "above", "drawn", "until"), [(1, 1, 5, 2), (2, 2, 7, 0), (2, 4, 7, 3), (3, 3, 6, 4)])
def test_the_place_of_the_last_hit_within_a_batch_by_enumeration(hits: int, above: int, drawn: int, until: int) -> None:
    """All orders of the draws are equally likely; those with enough hits before the batch are left out."""
    last = [places[hits - 1] for places in itertools.combinations(range(1, drawn + 1), above)]
    last = [place for place in last if place > until]
    columns = (np.array([number, number]) for number in (50, above, drawn, until))
    row, T, chance = draws._last_hits(hits, Ended(*columns))
    for own in (0, 1):
        found = dict(zip(T[row == own].tolist(), chance[row == own].tolist(), strict=True))
        assert found == pytest.approx({place: last.count(place) / len(last) for place in set(last)}, rel=1e-12)


def before_end(N: int, drawn: int, above: int, end: float) -> dict[int, float]:
    """How many of those above come before the end, over all numbers of candidates that do."""
    law = dict.fromkeys(range(above + 1), 0.0)
    for early in range(drawn + 1):
        chance = math.comb(N, early) * end**early * (1 - end) ** (N - early)
        for j in range(above + 1):
            ways = math.comb(above, j) * math.comb(drawn - above, early - j) if early >= j else 0
            law[j] += chance * ways / math.comb(drawn, early)
    return law


@pytest.mark.parametrize(("N", "drawn", "above"), [(30, 12, 2), (30, 12, 0), (30, 0, 0), (300, 40, 3), (20, 20, 1)])
def test_what_comes_before_the_end_by_enumeration(N: int, drawn: int, above: int) -> None:
    times = HitTimes(N, 4, 0.2)
    law = draws._before_end(times, N, drawn, above)
    expected = before_end(N, drawn, above, 0.2)
    np.testing.assert_allclose(law, [expected.get(j, 0.0) for j in range(4)], atol=1e-13)


def test_without_a_cap_all_candidates_are_drawn_or_the_outcome_is_unknown() -> None:
    assert draws._before_end(HitTimes(30, 4), 30, 30, 2).tolist() == [0.0, 0.0, 1.0, 0.0]
    assert draws._before_end(HitTimes(30, 4), 30, 29, 2).tolist() == [0.0] * 4


@pytest.mark.parametrize("end", [1.0, 0.3])
def test_the_outcomes_of_a_known_last_hit(end: float) -> None:
    N, times = np.array([30, 30, 25]), HitTimes(32, 3, end)
    T = np.array([3, 12, 25])
    for own, size, place in zip(draws._of_hit(times, N, T), N.tolist(), T.tolist(), strict=True):
        np.testing.assert_allclose(own[3:], law_by_quadrature(place, size + 1 - place, times.knots), atol=1e-12)
        late = before_end(size, place - 1, 2, end) if end < 1 else {}
        np.testing.assert_allclose(own[:3], [late.get(j, 0.0) for j in range(3)], atol=1e-12)
        assert own.sum() == pytest.approx(1.0, abs=1e-12)


def test_unknown_outcomes_have_the_extreme_value_of_their_table() -> None:
    seen = Readings(np.array([0, 0, 2]), np.array([1, 0, 1]), np.array([0.25, 0.5, 1.0]), 3)
    tables, which = np.array([[2.0, 4.0], [10.0, 20.0]]), np.array([0, 1, 1])
    found = seen.values(tables, which, np.array([8.0, 80.0]))
    assert found.tolist() == [0.25 * 4 + 0.5 * 2 + 0.25 * 8, 80.0, 20.0]
