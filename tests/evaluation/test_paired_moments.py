"""Moments of differences that merge, against SciPy and tests of all values at once."""

from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest
import scipy.stats

import truerank as tr
from tests.arrays import Floats
from truerank.evaluation.exact_ranges import UnknownOutcome, bound_values, bounded_outcome
from truerank.evaluation.intervals import Interval
from truerank.evaluation.paired_tests import LikelihoodTest, PairedSample, StudentTest, likelihood_outcome
from truerank.evaluation.paired_values import PairedPart, PairedValues, Task, parts_of_blocks

PAIRS = [(1, 0), (2, 0), (2, 1)]
TASK = Task(("a", "b", "c"), PAIRS, 0.95, None, True, (False,))
ENDS = Interval(0.0, 100.0)


def parts(values: Floats, weights: Floats | None = None) -> list[PairedPart]:
    """Return what values tell of each pair."""
    sizes = np.ones(len(values)) if weights is None else weights
    block = PairedValues("", 0, values, sizes, None, np.zeros((3, 3)), np.zeros(3), False, ENDS, None)
    return [part for _, part in parts_of_blocks(TASK, [block], LikelihoodTest(), ["rr"])]


def merged(own: list[list[PairedPart]]) -> list[PairedPart]:
    return [reduce(add, column) for column in zip(*own, strict=True)]


@pytest.mark.parametrize("cuts", [[], [0], [1, 2, 3], [50, 400], [100, 100, 101]])
def test_parts_merge_to_the_whole(cuts: list[int]) -> None:
    rng = np.random.default_rng(0)
    values = rng.exponential(size=(500, 3)) ** 2
    values[::17, 1] = np.nan
    defined = values[~np.isnan(values).any(axis=1)]
    sample = PairedSample.of(defined, largest=np.full(3, 100.0))
    for (one, other), found in zip(PAIRS, merged([parts(own) for own in np.split(values, cuts)]), strict=True):
        assert (found.n, found.n_undefined) == (len(defined), 500 - len(defined))
        np.testing.assert_allclose(found.totals / found.n, defined[:, [one, other]].mean(axis=0), rtol=1e-12)
        differences = defined[:, one] - defined[:, other]
        assert found.differences.standard_error == pytest.approx(scipy.stats.sem(differences), rel=1e-12)
        assert found.differences.mean == pytest.approx(differences.mean(), rel=1e-12)
        assert found.outcome.p_value == pytest.approx(likelihood_outcome(sample, (one, other)).p_value, rel=1e-9)


@pytest.mark.parametrize("cuts", [[], [1, 2, 3], [50, 400]])
def test_weighted_parts_merge_to_the_whole(cuts: list[int]) -> None:
    rng = np.random.default_rng(1)
    values, weights = rng.exponential(size=(500, 3)) ** 2, rng.random(500)
    found = merged([parts(*own) for own in zip(np.split(values, cuts), np.split(weights, cuts), strict=True)])
    for (one, other), part in zip(PAIRS, found, strict=True):
        difference = values[:, one] - values[:, other]
        deviations = difference - difference.sum() / weights.sum() * weights
        error = scipy.stats.sem(deviations) * 500 / weights.sum()
        assert part.differences.standard_error == pytest.approx(error, rel=1e-12)
        assert part.differences.mean == pytest.approx(difference.sum() / weights.sum(), rel=1e-12)
        np.testing.assert_allclose(part.totals, values[:, [one, other]].sum(axis=0), rtol=1e-12)
        assert part.covariances is not None
        np.testing.assert_allclose(part.covariances, np.cov(values[:, [one, other]].T), rtol=1e-12)


def test_nothing_and_a_single_instance() -> None:
    nothing, single = (parts(np.ones((size, 3)))[0] for size in (0, 1))
    assert nothing.differences.n == 0
    assert (nothing + single).differences.mean == 0
    assert np.isnan((single + nothing).differences.standard_error)
    assert (single + single).outcome.p_value == 1.0


def test_only_likelihoods_without_hidden_errors_merge() -> None:
    sample = PairedSample.of(np.random.default_rng(2).random((9, 2)), largest=np.ones(2))
    likelihood, (student,) = likelihood_outcome(sample, (1, 0)), StudentTest().outcomes(sample, [(1, 0)])
    unseen = replace(likelihood, hidden=0.1)
    for one, other in ((likelihood, student), (student, likelihood), (unseen, likelihood), (likelihood, unseen)):
        with pytest.raises(tr.InputError, match="a test of parts of the instances must be 'likelihood'"):
            one.merged(other, 1.0)


def test_what_is_unknown_for_one_part_is_unknown_for_all() -> None:
    sampled = tr.Ranks.from_sampled([1, 5, 9], m=20, n=100)
    bounds = bound_values(sampled, tr.metric("recall@10"), "nothing")
    found, nothing = bounded_outcome(bounds, bounds, None), bounded_outcome(None, bounds, None)
    assert nothing == UnknownOutcome() == found.merged(nothing, 1.0) == nothing.merged(found, 1.0)
