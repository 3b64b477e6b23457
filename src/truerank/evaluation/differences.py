"""How two recommenders differ in one metric, and what can be concluded from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from truerank.corrections.assumptions import ASSUMING, Assumption
from truerank.errors import InputError
from truerank.evaluation.intervals import Interval, check_level
from truerank.evaluation.paired_tests import Outcome, Reversed
from truerank.evaluation.verdicts import Verdict, judged


@dataclass(frozen=True)
class Difference:
    """How two recommenders differ in one metric on the same instances.

    Attributes
    ----------
    recommender, baseline : str
        Differences are the former minus the latter.
    metric : str
    group : str
        The group that it is about; empty without groups.
    mean, baseline_mean : float
        Means over the instances where both are defined.
    difference : float
    standard_error : float
        Of the paired difference, over users and candidates; NaN below two units.
    sampling_error : float
        The part of it that comes from which candidates happened to be sampled; 0 for exact ranks, NaN if the design
        does not tell.
    order_probability : float
        Posterior probability, under a flat prior, that the mean over all samples of candidates has the order shown on
        these very users: Phi(abs(difference) / sampling_error). It is not how often such orders are right: between
        equal recommenders it is 0.75 on average. 1 for exact ranks, NaN for a sampled metric that is biased. Of a
        corrected metric it leaves out the bias of the correction.
    n : int
        Instances where the metric is defined for all recommenders.
    n_undefined : int
        Other instances, which are left out.
    n_units : int
        Independent units: instances, or users if some have several instances.
    p_value : float
        Two-sided p-value of no difference; of exact metrics, if `bounded`.
    adjusted_p_value : float
        The same, adjusted for all tests of the comparison.
    level : float
        Confidence level of the whole comparison.
    adjusted_level : float
        That of this difference's interval and verdict, adjusted for all tests of the comparison: the interval excludes
        0 where the adjusted p-value is at most 1 - `level`.
    margin : float or None
        A loss that does not matter, for the verdict.
    lower_is_better : bool
    bounded : bool
        Whether the metric is biased, corrected or fitted. P-value, interval and verdict are then about the exact
        metric, by bounds that hold whatever the distribution of the ranks.
    """

    recommender: str
    baseline: str
    metric: str
    group: str
    mean: float
    baseline_mean: float
    difference: float
    standard_error: float
    sampling_error: float
    order_probability: float
    n: int
    n_undefined: int
    n_units: int
    p_value: float
    adjusted_p_value: float
    level: float
    adjusted_level: float
    margin: float | None
    lower_is_better: bool
    bounded: bool
    outcome: Outcome = field(repr=False, compare=False)
    expectation: Outcome = field(repr=False, compare=False)
    largest: float = field(default=math.inf, repr=False, compare=False)
    """The largest difference that the metric allows, either way; intervals are within it. Infinite if not known."""

    @property
    def relative(self) -> float:
        """The difference as a share of the baseline's mean; NaN if that is 0."""
        return self.difference / abs(self.baseline_mean) if self.baseline_mean else math.nan

    @property
    def effect_size(self) -> float:
        """The difference in standard deviations of the units' differences (Cohen's d for pairs)."""
        deviation = self.standard_error * math.sqrt(self.n_units)
        return self.difference / deviation if deviation > 0 else (0.0 if self.difference == 0 else math.nan)

    @property
    def user_error(self) -> float:
        """The part of the standard error that comes from which users there happened to be."""
        return math.sqrt(max(self.standard_error**2 - self.sampling_error**2, 0.0))

    @property
    def gain(self) -> float:
        """The difference, positive if the recommender is better than the baseline."""
        return -self.difference if self.lower_is_better else self.difference

    def confidence_interval(self, level: float | None = None) -> Interval:
        """Return an interval for the difference, by the test that was chosen.

        By default it is adjusted for all tests of the comparison, as the verdict is; with a `level` of your own it is
        not. If the difference is `bounded`, it is for the difference of the exact metrics.
        """
        return self._within_reach(self.outcome, level)

    def expectation_interval(self, level: float | None = None) -> Interval:
        """Return the interval for the expectation of the difference, whatever it estimates.

        The same as `confidence_interval` unless the difference is `bounded`.
        """
        return self._within_reach(self.expectation, level)

    def _within_reach(self, outcome: Outcome, level: float | None) -> Interval:
        low, high = outcome.confidence_interval(self._level(level))
        return Interval(max(low, -self.largest), min(high, self.largest))

    def _level(self, level: float | None) -> float:
        return self.adjusted_level if level is None else check_level(level)

    def gain_interval(self, level: float | None = None) -> Interval:
        """Return the interval for the gain: that of the difference, or its negative if lower is better."""
        low, high = self.confidence_interval(level)
        return Interval(-high, -low) if self.lower_is_better else Interval(low, high)

    def not_worse(self, margin: float, level: float | None = None) -> bool:
        """Return whether a loss of `margin` or more can be ruled out.

        This is a one-sided test: the lower end of the two-sided interval with twice the error is compared. By default
        it is adjusted for all tests of the comparison.
        """
        return self.gain_interval(one_sided(self._level(level))).low > -check_margin(margin)

    def worse(self, margin: float, level: float | None = None) -> bool:
        """Return whether anything but a loss of more than `margin` can be ruled out, by the same one-sided test."""
        return self.gain_interval(one_sided(self._level(level))).high < -check_margin(margin)

    def instances_needed(self, margin: float = 0.0, *, level: float | None = None, power: float = 0.8) -> float:
        """Return how many instances settle whether the loss is below `margin`, with a probability of `power`.

        It is supposed that the true difference, and the spread of differences, are as observed. Infinite if the
        difference is the margin, or `bounded`: then candidates are missing, not instances.
        """
        from scipy.special import ndtri

        distance = abs(self.gain + check_margin(margin))
        quantiles = ndtri(self._level(level)) + ndtri(power)
        spread = self.standard_error * math.sqrt(self.n)
        return math.inf if distance == 0 or self.bounded else float(np.ceil((quantiles * spread / distance) ** 2))

    @cached_property
    def finding(self) -> Verdict:
        """What is known of the order: its kind, the winner if there is one, and the words for it."""
        return judged(self)

    @property
    def verdict(self) -> str:
        """The finding in words: who is better, who is not worse, no difference found, or not determined."""
        return self.finding.words

    def reversed(self) -> Difference:
        """Return the same with recommender and baseline exchanged."""
        return replace(
            self,
            recommender=self.baseline,
            baseline=self.recommender,
            mean=self.baseline_mean,
            baseline_mean=self.mean,
            difference=-self.difference,
            outcome=Reversed(self.outcome),
            expectation=Reversed(self.expectation),
        )

    def record(self) -> dict[str, Any]:
        """Return all numbers by name."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.repr}
        derived = {
            "user_error": self.user_error,
            "relative": self.relative,
            "effect_size": self.effect_size,
            "verdict": self.verdict,
        }
        return own | self.confidence_interval()._asdict() | derived

    def __str__(self) -> str:
        low, high = self.confidence_interval()
        return (
            f"{self.metric}: {self.recommender} - {self.baseline} = {self.difference:.4f} "
            f"[{low:.4f}, {high:.4f}], p = {self.adjusted_p_value:.2g}: {self.finding.in_full}"
        )


def check_margin(margin: float) -> float:
    """Return a loss that does not matter, or raise `InputError`."""
    if not 0.0 <= margin < math.inf:
        raise InputError(f"`margin` must be a number from 0, got {margin}.")
    return margin


def one_sided(level: float) -> float:
    """Return the level of the two-sided interval whose lower end is a one-sided bound at the given level."""
    if not 0.5 < level < 1.0:
        raise InputError(f"the `level` of a one-sided test must lie between 0.5 and 1, got {level}.")
    return 2 * level - 1


def bound_notes(differences: Sequence[Difference], assume: Assumption) -> list[str]:
    """Return a note if some differences are those of exact metrics, bounded by sampled ones."""
    about = f"intervals, p-values and verdicts are about the exact metric, {ASSUMING[assume]}"
    return [about] if any(each.bounded for each in differences) else []
