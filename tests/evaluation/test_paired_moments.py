"""Moments of differences that merge, against the paired t-test on all values at once and SciPy."""

from functools import reduce
from operator import add

import numpy as np
import pytest
import scipy.stats

from truerank.evaluation.paired_moments import PairedMoments
from truerank.evaluation.paired_tests import Sample, student_outcome

PAIRS = [(1, 0), (2, 0), (2, 1)]


@pytest.mark.parametrize("cuts", [[], [0], [1, 2, 3], [50, 400], [100, 100, 101]])
def test_parts_merge_to_the_whole(cuts: list[int]) -> None:
    rng = np.random.default_rng(0)
    values = rng.exponential(size=(500, 3)) ** 2
    values[::17, 1] = np.nan
    merged = reduce(add, [PairedMoments.of(part, PAIRS) for part in np.split(values, cuts)])
    defined = values[~np.isnan(values).any(axis=1)]
    sample = Sample.of(defined)
    assert (merged.n, merged.n_undefined) == (len(defined), 500 - len(defined))
    np.testing.assert_allclose(merged.means, defined.mean(axis=0), rtol=1e-12)
    for at, (one, other) in enumerate(PAIRS):
        differences = defined[:, one] - defined[:, other]
        assert merged.skewness(at) == pytest.approx(scipy.stats.skew(differences), rel=1e-10)
        assert merged.standard_error(at) == pytest.approx(scipy.stats.sem(differences), rel=1e-12)
        expected = student_outcome(sample, (one, other))
        assert merged.outcome(at).difference == pytest.approx(expected.difference, rel=1e-12)
        assert merged.outcome(at).p_value == pytest.approx(
            scipy.stats.ttest_rel(defined[:, one], defined[:, other]).pvalue, rel=1e-10
        )


@pytest.mark.parametrize("cuts", [[], [1, 2, 3], [50, 400]])
def test_weighted_parts_merge_to_the_whole(cuts: list[int]) -> None:
    rng = np.random.default_rng(1)
    values, weights = rng.exponential(size=(500, 3)) ** 2, rng.random(500)
    parts = zip(np.split(values, cuts), np.split(weights, cuts), strict=True)
    merged = reduce(add, [PairedMoments.of(own, PAIRS, w) for own, w in parts])
    sample = Sample.of(values, weights)
    np.testing.assert_allclose(merged.means, values.sum(axis=0) / weights.sum(), rtol=1e-12)
    for at, (one, other) in enumerate(PAIRS):
        difference = values[:, one] - values[:, other]
        deviations = difference - difference.sum() / weights.sum() * weights
        assert merged.skewness(at) == pytest.approx(scipy.stats.skew(deviations), rel=1e-10)
        assert merged.standard_error(at) == pytest.approx(scipy.stats.sem(deviations) * 500 / weights.sum(), rel=1e-12)
        assert merged.outcome(at).difference == pytest.approx(sample.difference((one, other)), rel=1e-12)
        np.testing.assert_allclose(merged.covariances((one, other)), np.cov(values[:, [one, other]].T), rtol=1e-12)


def test_nothing_and_a_single_instance() -> None:
    nothing, single = (PairedMoments.of(np.ones((size, 3)), PAIRS) for size in (0, 1))
    assert np.isnan(nothing.outcome(0).difference)
    assert (nothing + single).outcome(0).difference == 0
    assert np.isnan((single + nothing).standard_error(0))
    assert (single + single).outcome(0).p_value == 1.0
