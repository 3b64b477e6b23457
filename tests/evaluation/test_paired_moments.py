"""Moments of differences that merge, against SciPy and tests of all values at once."""

from functools import reduce
from operator import add

import numpy as np
import pytest
import scipy.stats

from truerank.evaluation.paired_moments import PairedMoments
from truerank.evaluation.paired_tests import LikelihoodOutcome, Sample, likelihood_outcome

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
        assert merged.standard_error(at) == pytest.approx(scipy.stats.sem(differences), rel=1e-12)
        assert merged.differences[at] == pytest.approx(differences.mean(), rel=1e-12)
        expected = likelihood_outcome(sample, (one, other))
        found = LikelihoodOutcome(merged.units[at], sample.largest_difference((one, other)))
        assert found.p_value == pytest.approx(expected.p_value, rel=1e-9)


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
        assert merged.standard_error(at) == pytest.approx(scipy.stats.sem(deviations) * 500 / weights.sum(), rel=1e-12)
        assert merged.differences[at] == pytest.approx(sample.difference((one, other)), rel=1e-12)
        np.testing.assert_allclose(merged.covariances((one, other)), np.cov(values[:, [one, other]].T), rtol=1e-12)


def test_nothing_and_a_single_instance() -> None:
    nothing, single = (PairedMoments.of(np.ones((size, 3)), PAIRS) for size in (0, 1))
    assert nothing.units[0].n == 0
    assert (nothing + single).differences[0] == 0
    assert np.isnan((single + nothing).standard_error(0))
    assert LikelihoodOutcome((single + single).units[0], 1.0).p_value == 1.0
