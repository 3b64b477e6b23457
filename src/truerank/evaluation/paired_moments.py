"""Moments of the differences between recommenders, which merge, so that instances may be in different processes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats
from truerank.evaluation.intervals import Units
from truerank.evaluation.paired_tests import Pair


@dataclass(frozen=True, eq=False)
class PairedMoments:
    """Moments of the values of several recommenders, and of the differences d of some pairs of them.

    The difference of a pair is the sum of d over that of the weights w, which are 1 except for groups of items. Its
    error rests on the deviations e = d - (difference) w, which sum to 0.

    Attributes
    ----------
    n : int
        Instances where the metric is defined for all recommenders.
    n_undefined : int
        Other instances.
    weights : array of float
        Sums of w and w^2.
    totals : array of float, one per recommender
        Sums of the values.
    products : array of shape (n_recommenders, n_recommenders)
        Sums of the products of the values' deviations from their means.
    differences : array of float, one per pair
    deviations : array of shape (2, n_pairs)
        Sums of e^2 and e w.
    units : tuple of Units, one per pair
        The differences.

    Examples
    --------
    >>> values = np.array([[0.5, 0.1], [0.4, 0.3], [0.9, 0.2], [np.nan, 0.2]])
    >>> whole = PairedMoments.of(values, [(0, 1)])
    >>> parts = PairedMoments.of(values[:1], [(0, 1)]) + PairedMoments.of(values[1:], [(0, 1)])
    >>> parts.n, parts.n_undefined, bool(np.isclose(parts.standard_error(0), whole.standard_error(0)))
    (3, 1, True)
    """

    n: int
    n_undefined: int
    weights: Floats
    totals: Floats
    products: Floats
    differences: Floats
    deviations: Floats
    units: tuple[Units, ...]

    @classmethod
    def of(cls, values: Floats, pairs: Sequence[Pair], weights: Floats | None = None) -> PairedMoments:
        """Return the moments of values with a row per instance and a column per recommender."""
        defined = ~np.isnan(values).any(axis=1)
        own, w = values[defined], (np.ones(len(values)) if weights is None else weights)[defined, None]
        one, other = np.array(pairs).T
        d, n = own[:, one] - own[:, other], len(own)
        differences = d.sum(axis=0) / w.sum() if n else np.zeros(len(pairs))
        e, gaps = d - differences * w, own - own.mean(axis=0) if n else own
        sums = np.array([product.sum(axis=0) for product in (e * e, e * w)])
        powers = np.array([w.sum(), (w * w).sum()])
        units = tuple(Units.of(column, w[:, 0]) for column in d.T)
        return cls(n, len(values) - n, powers, own.sum(axis=0), gaps.T @ gaps, differences, sums, units)

    def __add__(self, other: PairedMoments) -> PairedMoments:
        n, weights = self.n + other.n, self.weights + other.weights
        share = other.weights[0] / weights[0] if n else 0.0
        differences = self.differences + (other.differences - self.differences) * share
        gap = other.totals / max(other.n, 1) - self.totals / max(self.n, 1)
        return PairedMoments(
            n,
            self.n_undefined + other.n_undefined,
            weights,
            self.totals + other.totals,
            self.products + other.products + np.outer(gap, gap) * self.n * other.n / max(n, 1),
            differences,
            self._around(differences) + other._around(differences),
            tuple(one + another for one, another in zip(self.units, other.units, strict=True)),
        )

    def _around(self, differences: Floats) -> Floats:
        """Return the sums of the deviations from other differences."""
        step = differences - self.differences
        (_, ww), (ee, ew) = self.weights, self.deviations
        return np.array([ee - 2 * step * ew + step**2 * ww, ew - step * ww])

    @property
    def means(self) -> Floats:
        """Mean of each recommender; NaN if there are no instances."""
        return self.totals / (self.weights[0] or math.nan)

    def standard_error(self, pair: int) -> float:
        """Return the standard error of a difference; NaN below two instances."""
        if self.n < 2:
            return math.nan
        return math.sqrt(self.n / (self.n - 1) * max(self.deviations[0, pair], 0.0)) / float(self.weights[0])

    def covariances(self, pair: Pair) -> Floats:
        """Return the covariances of the values of two recommenders; NaN below two instances."""
        return self.products[np.ix_(pair, pair)] / (self.n - 1 if self.n > 1 else math.nan)
