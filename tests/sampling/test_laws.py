from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import truerank as tr
from tests.sampling import reference
from tests.sampling.terms import LAWS, law_of
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC


def cases(sizes: Sequence[int], samples: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    for N in sizes:
        for m in samples:
            for g in sorted({0, 1, N // 1000, N // 10, N // 2, N - 5, N}):
                spread = max(1.0, np.sqrt(m * g / N * (1 - g / N)))
                for z in (-15, -3, 0, 1, 8):
                    h = round(m * g / N + z * spread)
                    if m <= N and 0 <= h <= m and g >= 0:
                        yield h, g, m, N


@pytest.mark.parametrize("replace", LAWS)
def test_pmf_is_accurate_for_all_sizes(replace: bool) -> None:
    asked = list(cases((10, 3540, 10**5, 10**9), (1, 10, 100, 10**4)))
    got = law_of(replace).pmf(*np.array(asked).T)
    exact = [reference.pmf(*case, replace) for case in asked]
    for value, truth, case in zip(got, exact, asked, strict=True):
        if truth > 1e-250:
            assert abs(value - truth) < 1e-12 * truth, case
        else:
            assert value < 1e-249


@pytest.mark.parametrize("replace", LAWS)
def test_cdf_and_sf_are_relatively_accurate_in_both_tails(replace: bool) -> None:
    for case in cases((60, 3540, 10**8), (1, 20, 150)):
        below, above = reference.tails(*case, replace)
        assert abs(law_of(replace).cdf(*case) - below) <= 1e-12 * below + 1e-250
        assert abs(law_of(replace).sf(*case) - above) <= 1e-12 * above + 1e-250


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize(("N", "m"), [(7, 7), (7, 3), (500, 40), (10**6, 300)])
def test_rows_agree_with_pmf(N: int, m: int, replace: bool) -> None:
    g = np.unique(np.linspace(0, N, 60).astype(int))
    single = law_of(replace).pmf(np.arange(m + 1), g[:, None], m, N)
    whole = law_of(replace).rows(g, m, N)
    np.testing.assert_allclose(whole, single, rtol=1e-12, atol=1e-200)
    np.testing.assert_allclose(whole.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("replace", LAWS)
@pytest.mark.parametrize(("N", "m", "last"), [(7, 7, 0), (7, 3, 2), (9, 4, 4), (2_500, 2_400, 2_300)])
def test_rows_may_tell_only_the_first_counts_apart(N: int, m: int, last: int, replace: bool) -> None:
    g = np.unique(np.linspace(0, N, 60).astype(int))
    whole = law_of(replace).pmf(np.arange(m + 1), g[:, None], m, N)
    rest = whole[:, last:].sum(axis=1)
    few = law_of(replace).rows_to(last, g, m, N)
    np.testing.assert_allclose(few, np.column_stack([whole[:, :last], rest]), rtol=2e-12, atol=1e-200)


def test_rows_between_the_integers_are_a_polynomial() -> None:
    # Degree m in g: the difference of order m + 1 vanishes.
    m, N = 4, 30
    quarter = HYPERGEOMETRIC.rows(np.arange(8, 14, 0.25), m, N)
    assert np.abs(np.diff(quarter, n=m + 1, axis=0)).max() < 1e-13


def test_outside_the_support() -> None:
    assert HYPERGEOMETRIC.pmf(3, 2, 3, 9) == 0
    assert HYPERGEOMETRIC.pmf(0, 8, 3, 9) == 0
    assert BINOMIAL.cdf(-1, 4, 3, 9) == 0
    assert BINOMIAL.cdf(3, 4, 3, 9) == 1
    assert HYPERGEOMETRIC.sf(-1, 4, 3, 9) == 1


@given(st.data(), st.booleans())
def test_counting_from_below_mirrors_the_law(data: st.DataObject, replace: bool) -> None:
    N = data.draw(st.integers(1, 200))
    m = data.draw(st.integers(1, N))
    g = data.draw(st.integers(0, N))
    law = law_of(replace).rows([g], m, N)[0]
    mirrored = law_of(replace).rows([N - g], m, N)[0]
    np.testing.assert_allclose(law, mirrored[::-1], rtol=1e-11, atol=1e-300)
    assert law[int(law_of(replace).mode(g, m, N))] == pytest.approx(law.max(), rel=1e-9)


def test_agrees_with_scipy_where_scipy_is_accurate() -> None:
    h = np.arange(21)
    hypergeometric, binomial = stats.hypergeom.pmf(h, 100, 30, 20), stats.binom.cdf(h, 20, 0.3)
    np.testing.assert_allclose(HYPERGEOMETRIC.pmf(h, 30, 20, 100), hypergeometric, rtol=1e-11)
    np.testing.assert_allclose(BINOMIAL.cdf(h, 30, 20, 100), binomial, rtol=1e-12)


@pytest.mark.parametrize(("N", "m"), [(12, 5), (12, 12), (3_540, 100)])
def test_tied_law_is_the_mean_over_the_places_in_the_block(N: int, m: int) -> None:
    above, tied = np.array([0, 0, N // 3, N // 2, N]), np.array([0, N, N // 2, 1, 0])
    law = HYPERGEOMETRIC.tied_rows(above, tied, m, N)
    for row, first, more in zip(law, above, tied, strict=True):
        slow = HYPERGEOMETRIC.rows(np.arange(first, first + more + 1), m, N).mean(axis=0)
        # a difference of sums up to 1, times N / m
        np.testing.assert_allclose(row, slow, atol=1e-14 * (N + 1) / (m + 1))


def test_tied_law_may_tell_only_the_first_counts_apart() -> None:
    tied = np.array([0, 0, 4, 6, 12]), np.array([0, 12, 4, 1, 0]), 5, 12
    whole, few = HYPERGEOMETRIC.tied_rows(*tied), HYPERGEOMETRIC.tied_rows(*tied, 2)
    np.testing.assert_allclose(few, np.column_stack([whole[:, :2], whole[:, 2:].sum(axis=1)]), atol=1e-13)
    np.testing.assert_array_equal(HYPERGEOMETRIC.tied_rows(*tied, 5), whole)


def test_how_many_candidates_are_too_many_to_draw_without_replacement() -> None:
    rng, none, m = np.random.default_rng(0), np.array([0]), np.array([3])
    assert HYPERGEOMETRIC.draw(np.array([10**9 - 1]), none, m, rng) == 3
    for inside, beyond in [(np.array([10**9]), none), (none, np.array([10**9]))]:
        with pytest.raises(tr.InputError, match=r"needs fewer than 1,000,000,000 candidates .* got 1,000,000,000"):
            HYPERGEOMETRIC.draw(inside, beyond, m, rng)
        assert BINOMIAL.draw(inside, beyond, m, rng) == 3 * (inside > 0)


@pytest.mark.parametrize("replace", LAWS)
def test_mean_rows_are_means_of_rows(replace: bool) -> None:
    law, last = law_of(replace), np.array([0, 3, 4, 11, 12])
    rows = law.rows(np.arange(13.0), 4, 12)
    np.testing.assert_allclose(law.mean_rows(last, 4, 12), [rows[: end + 1].mean(axis=0) for end in last], atol=1e-14)


def test_spread_is_the_variance_of_a_share_relative_to_one_draw() -> None:
    N, g, m = 50, 15, 10
    one = m**2 * g / N * (1 - g / N)
    assert BINOMIAL.spread(N, m) == pytest.approx(stats.binom.var(m, g / N) / one, rel=1e-12)
    finite = (N - 1) / N  # the variance of a population divides by N, not by N - 1
    assert HYPERGEOMETRIC.spread(N, m) == pytest.approx(finite * stats.hypergeom.var(N, g, m) / one, rel=1e-12)
    assert [law.distinct for law in (BINOMIAL, HYPERGEOMETRIC)] == [False, True]
