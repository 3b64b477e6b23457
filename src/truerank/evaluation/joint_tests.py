"""All pairs of several recommenders at once: levels and p-values that hold for all of them together.

Pairs share recommenders, so their tests depend on each other, and an adjustment that takes this into account can be
less strict than one that does not, such as Holm's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from truerank.core.checks import Bools, Floats, InputError, Rng, as_rng, check_whole, frozen, slices
from truerank.evaluation.differences import Difference
from truerank.evaluation.intervals import UNSEEN, Interval
from truerank.evaluation.paired_tests import (
    Outcome,
    Pair,
    PairedSample,
    PairedTest,
    permuted_ranges,
)

# always the same ones, so that a repeated comparison comes to the same verdicts
_RESAMPLES = 50_000
# numbers that fit into the cache
_PART = 1 << 16


@dataclass(frozen=True, eq=False)
class Maxima:
    r"""The largest of all pairs' test statistics if no two recommenders differ: a bootstrap with normal multipliers.

    Every resample gives each user a standard normal weight. The means of K recommenders are then jointly normal with
    the observed covariances, so they are drawn directly, from the standard errors of all pairs alone:
    :math:`-2 C = J V J`, with the variances V of the differences and the centring matrix J. Each resample contributes
    the largest of its differences divided by their errors. The test of a pair keeps its own p-value, by empirical
    likelihood for instance; only the dependence between the pairs is resampled.

    As in the intervals of means, there may be differences that were not seen: each recommender is given part of an
    instance of its own where it differs from all others as much as possible. Where few users differ, the pairs are
    thus treated like those of independent recommenders.

    Examples
    --------
    >>> errors = np.sqrt(2) * (1 - np.eye(3))                                     # three independent recommenders
    >>> found = Maxima.of(errors)
    >>> round(1 - found.level(0.95), 3), round(0.05 / 3, 3)                       # Bonferroni allows for more
    (0.019, 0.017)
    """

    largest: Floats
    n_pairs: int

    @classmethod
    def of(cls, errors: Floats, unseen: float = 0.0, compared: Bools | None = None) -> Maxima:
        """Return the maxima from the standard errors of the differences of all pairs.

        Parameters
        ----------
        errors : array of shape (n_recommenders, n_recommenders)
            Symmetric, with zeros on the diagonal.
        unseen : float
            The error of a difference due to instances that were not seen; infinite if not known.
        compared : array of bool of the same shape, optional
            Which pairs are compared, as with one baseline; all of them by default.
        """
        count, rng = len(errors), np.random.default_rng(0)
        apart = ~np.eye(count, dtype=np.bool_)
        tested = np.tril(apart if compared is None else compared | compared.T)
        variances = np.where(apart, np.square(errors) + unseen**2 if math.isfinite(unseen) else 1.0, 0.0)
        drawn = rng.standard_normal((_RESAMPLES, count)) @ _root(variances).T
        pairs = tested & (variances > 0)
        parts = [
            _largest(drawn[part].T.copy(), np.sqrt(variances), pairs) for part in slices(_RESAMPLES, _PART // count)
        ]
        return cls(frozen(np.sort(np.concatenate(parts))), int(tested.sum()))

    def level(self, level: float) -> float:
        """Return the level of each pair's interval at which all of them hold together with the given level."""
        from scipy.special import ndtr

        error, at = 1 - level, math.ceil(level * (self.largest.size + 1)) - 1
        own = 2 * float(ndtr(-self.largest[at])) if at < self.largest.size else 0.0
        return 1 - min(max(own, error / self.n_pairs), error)

    def adjusted(self, p_values: Floats) -> Floats:
        """Return p-values of pairs that hold for all pairs together; NaN stays NaN.

        They are never above those of Bonferroni's method.
        """
        from scipy.special import ndtri

        reached = self.largest.size - np.searchsorted(self.largest, -ndtri(np.asarray(p_values) / 2) - 1e-12)
        resampled = (reached + 1) / (self.largest.size + 1)
        return np.asarray(np.minimum(np.maximum(resampled, p_values), np.minimum(self.n_pairs * p_values, 1.0)))


def _largest(drawn: Floats, scale: Floats, pairs: Bools) -> Floats:
    """Return, for each column, the largest difference of the rows of any pair, divided by its scale."""
    largest = np.zeros(drawn.shape[1])
    for one in np.flatnonzero(pairs.any(axis=1)):
        others = pairs[one]
        gaps = drawn[others]
        gaps -= drawn[one]
        np.abs(gaps, out=gaps)
        gaps /= scale[one, others, None]
        np.maximum(largest, gaps.max(axis=0), out=largest)
    return largest


def _root(variances: Floats) -> Floats:
    """Return a matrix whose rows, times a standard normal vector, have differences with these variances."""
    centring = np.eye(len(variances)) - 1 / len(variances)
    values, vectors = np.linalg.eigh(-centring @ variances @ centring / 2)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def unseen_error(largest: float, n_units: int) -> float:
    """Return the error of a mean difference due to unseen instances, one of which differs as much as possible."""
    return math.sqrt(UNSEEN) * largest / max(n_units, 1)


def jointly_adjusted(
    differences: Sequence[Difference], level: float, blocks: int, baseline: str | None
) -> list[Difference]:
    """Return the differences of one metric in one group, adjusted for all of them and for the number of such blocks.

    Parameters
    ----------
    differences : sequence of Difference
        Between all pairs.
    level : float
        Confidence level of the whole comparison.
    blocks : int
        Number of metrics times groups that are compared.
    baseline : str, optional
        The recommender that all others are compared with: only these differences are returned.
    """
    names = list(dict.fromkeys(name for each in differences for name in (each.baseline, each.recommender)))
    own = [each for each in differences if baseline is None or baseline in (each.recommender, each.baseline)]
    maxima = _maxima(differences, own, names)
    single = 1 - (1 - level) / blocks
    adjusted = maxima.adjusted(np.array([each.p_value for each in own]))
    for at, each in enumerate(own):
        if isinstance(each.outcome, TukeyOutcome):
            adjusted[at] = max(each.outcome.joint_p_value, each.p_value)
    found = [
        replace(each, adjusted_p_value=float(min(p * blocks, 1.0)), adjusted_level=maxima.level(single))
        for each, p in zip(own, adjusted, strict=True)
    ]
    return [each.reversed() if each.recommender == baseline else each for each in found]


def _maxima(differences: Sequence[Difference], own: Sequence[Difference], names: Sequence[str]) -> Maxima:
    errors, compared = np.zeros((len(names), len(names))), np.zeros((len(names), len(names)), dtype=np.bool_)
    for each in differences:
        one, other = names.index(each.recommender), names.index(each.baseline)
        errors[one, other] = errors[other, one] = np.nan_to_num(each.standard_error)
    for each in own:
        compared[names.index(each.recommender), names.index(each.baseline)] = True
    if any(each.bounded for each in differences):
        # nothing is known about how bounds depend on each other
        return Maxima(np.full(1, np.inf), len(own))
    return Maxima.of(errors, unseen_error(differences[0].largest, differences[0].n_units), compared)


@dataclass(frozen=True)
class TukeyOutcome(Outcome):
    """The outcome of another test, with a p-value for all pairs together."""

    outcome: Outcome
    joint_p_value: float

    @property
    def p_value(self) -> float:
        return self.outcome.p_value

    @property
    def too_skewed(self) -> bool:
        return self.outcome.too_skewed

    def confidence_interval(self, level: float) -> Interval:
        return self.outcome.confidence_interval(level)


@dataclass(frozen=True)
class RandomisedTukey(PairedTest):
    """Random permutation of all recommenders within units: how often the largest difference is as large as a pair's.

    Exact if all recommenders are exchangeable. Where some are better, or vary more, than others, it no longer bounds
    the chance of a false finding among the rest, so no verdict rests on it alone (Carterette, 2012).

    Attributes
    ----------
    test : PairedTest
        The test for the p-values and intervals of single pairs.
    replicates : int
    rng : int or numpy.random.Generator, optional
    progress : bool
    """

    test: PairedTest
    replicates: int = 10_000
    rng: Rng = None
    progress: bool = False

    def __post_init__(self) -> None:
        check_whole("replicates", self.replicates, 100)  # fewer give no usable p-values

    def outcomes(self, sample: PairedSample, pairs: Sequence[Pair]) -> list[Outcome]:
        if sample.hidden is not None and sample.hidden.any():
            raise InputError("adjustment='tukey' needs values of each instance, which fitted metrics do not have.")
        joint: dict[Pair, float] = {}
        for columns in _families(pairs):
            own = sample.sums[:, columns]
            ranges = permuted_ranges(own, self.replicates, as_rng(self.rng), progress=self.progress)
            slack = 1e-12 * np.abs(own).sum()
            for pair in (each for each in pairs if each[0] in columns):
                reached = abs(float((sample.sums[:, pair[0]] - sample.sums[:, pair[1]]).sum())) - slack
                joint[pair] = (int((ranges >= reached).sum()) + 1) / (self.replicates + 1)
        found = zip(pairs, self.test.outcomes(sample, pairs), strict=True)
        return [TukeyOutcome(outcome, joint[pair]) for pair, outcome in found]


def _families(pairs: Sequence[Pair]) -> list[list[int]]:
    """Return the columns that are compared with each other, directly or through others."""
    families: list[set[int]] = []
    for pair in pairs:
        touched = [own for own in families if own & set(pair)]
        families = [own for own in families if own not in touched] + [set(pair).union(*touched)]
    return [sorted(own) for own in families]
