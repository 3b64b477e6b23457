"""The paired difference of two recommenders, and what differences say about their order.

One recommender is better, or not worse, no difference was found, or nothing is determined: every statement about an
order is decided here, be it in a comparison, a gate, a plan, a report, or by bold type in a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal

import numpy as np

from truerank.core.checks import InputError, as_number
from truerank.core.tables import Cell, Record, Table, Tabular, measured
from truerank.evaluation.intervals import Interval, check_level
from truerank.evaluation.paired_tests import Outcome, Reversed


@dataclass(frozen=True, repr=False)
class Difference(Tabular[Record]):
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
        Standard error of the paired difference, over users and candidates; NaN below two units.
    sampling_error : float
        The part of it that is due to the sampling of candidates; 0 for exact ranks, NaN if the design does not
        determine it.
    order_probability : float
        Posterior probability, under a flat prior, that the mean over all samples of candidates has the order shown on
        these very users: Phi(abs(difference) / sampling_error). It is not how often such orders are correct: between
        equal recommenders it is 0.75 on average. 1 for exact ranks, NaN for a sampled metric that is biased. For a
        corrected metric it leaves out the bias of the correction.
    n : int
        Instances where the metric is defined for all recommenders.
    n_undefined : int
        Other instances, which are left out.
    n_units : int
        Independent units: instances, or users if some have several instances.
    p_value : float
        Two-sided p-value of no difference; of no difference of exact metrics, if `bounded`.
    adjusted_p_value : float
        The same, adjusted for all tests of the comparison.
    level : float
        Confidence level of the whole comparison.
    adjusted_level : float
        Confidence level of this difference's interval and verdict, adjusted for all tests of the comparison: the
        interval excludes 0 where the adjusted p-value is at most 1 - `level`.
    margin : float or None
        A loss that does not matter, for the verdict.
    lower_is_better : bool
    bounded : bool
        Whether the metric is biased, corrected or fitted. P-value, interval and verdict are then about the exact
        metric, by bounds that hold whatever the distribution of the ranks.
    run_error : float
        The part of the standard error that is due to the choice of runs; 0 if each recommender has one.
    better_off, worse_off : float
        Shares of the units for whom the recommender is better, and worse, than the baseline; NaN if ranks are sampled.
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
    """Largest difference that the metric allows, in either direction; bounds intervals. Infinite if not known."""
    run_error: float = 0.0
    better_off: float = math.nan
    worse_off: float = math.nan

    @property
    def relative(self) -> float:
        """The difference as a share of the baseline's mean; NaN if that is 0."""
        return self.difference / abs(self.baseline_mean) if self.baseline_mean else math.nan

    @property
    def effect_size(self) -> float:
        """The difference in standard deviations of the units' differences (Cohen's d for pairs)."""
        deviation = self._instance_error * math.sqrt(self.n_units)
        return self.difference / deviation if deviation > 0 else (0.0 if self.difference == 0 else math.nan)

    @property
    def _instance_error(self) -> float:
        """The part of the standard error that more instances would reduce."""
        return (
            math.sqrt(max(self.standard_error**2 - self.run_error**2, 0.0)) if self.run_error else self.standard_error
        )

    @property
    def user_error(self) -> float:
        """The part of the standard error that is due to the choice of users."""
        return math.sqrt(max(self.standard_error**2 - self.sampling_error**2 - self.run_error**2, 0.0))

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

    def better_off_interval(self, level: float | None = None) -> Interval:
        """Return the interval of Clopper and Pearson (1934) for the share of users who are better off.

        It is adjusted as `confidence_interval` is.
        """
        from scipy.special import betaincinv

        if math.isnan(self.better_off):
            return Interval(math.nan, math.nan)
        tail, n, count = (1 - self._level(level)) / 2, self.n_units, round(self.better_off * self.n_units)
        low = float(betaincinv(count, n - count + 1, tail)) if count else 0.0
        return Interval(low, float(betaincinv(count + 1, n - count, 1 - tail)) if count < n else 1.0)

    def not_worse(self, margin: float, level: float | None = None) -> bool:
        """Return whether a loss of `margin` or more can be ruled out.

        This is a one-sided test: the lower end of the two-sided interval with twice the error is compared. By default
        it is adjusted for all tests of the comparison.
        """
        return self.gain_interval(one_sided(self._level(level))).low > -check_margin(margin)

    def worse(self, margin: float, level: float | None = None) -> bool:
        """Return whether the loss is shown to exceed `margin`, by the same one-sided test."""
        return self.gain_interval(one_sided(self._level(level))).high < -check_margin(margin)

    def equivalent(self, margin: float, level: float | None = None) -> bool:
        """Return whether differences of `margin` or more are ruled out in both directions, by two one-sided tests."""
        low, high = self.gain_interval(one_sided(self._level(level)))
        return -check_margin(margin) < low and high < margin

    def instances_needed(self, margin: float = 0.0, *, level: float | None = None, power: float = 0.8) -> float:
        """Return how many instances settle, with a probability of `power`, whether the baseline may be replaced.

        As in `truerank gate`, a one-sided test rules out a loss of `margin` or more. Who is better, which has to be
        known without a margin or before a loss can be found, is decided by a two-sided test. The true difference, and
        the spread of differences, are assumed to be as observed. Infinite if the difference is the margin, or if more
        candidates (`bounded`) or more runs are needed instead.
        """
        level, loss = self._level(level), -self.gain - check_margin(margin)
        tests = [(loss, level)] if margin else []
        if loss > 0 or not margin:
            tests.append((self.gain, (1 + level) / 2))
        return max(self._instances(abs(distance), sure, power) for distance, sure in tests)

    def _instances(self, distance: float, level: float, power: float) -> float:
        """Return how many instances a one-sided test of a distance takes."""
        from scipy.special import ndtri

        quantiles = ndtri(level) + ndtri(power)
        # more instances can't settle what the runs leave open
        left = distance**2 - (quantiles * self.run_error) ** 2
        spread = self._instance_error * math.sqrt(self.n)
        return math.inf if left <= 0 or self.bounded else float(np.ceil((quantiles * spread) ** 2 / left))

    @cached_property
    def finding(self) -> Verdict:
        """What is known about the order: its kind, the winner if there is one, and the words for it."""
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
            difference=0.0 - self.difference,  # not -0.0
            better_off=self.worse_off,
            worse_off=self.better_off,
            outcome=Reversed(self.outcome),
            expectation=Reversed(self.expectation),
        )

    def record(self) -> dict[str, Any]:
        """Return all numbers by name."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.repr}
        derived = {name: getattr(self, name) for name in ("user_error", "relative", "effect_size", "verdict")}
        return own | self.confidence_interval()._asdict() | derived

    def __str__(self) -> str:
        pair = f"{self.metric}: {self.recommender} - {self.baseline}"
        numbers = f"{self.difference:.4f} {_interval_text(self)}, p = {self.adjusted_p_value:.2g}"
        return f"{pair} = {numbers}: {self.finding.in_full}"

    def _in_short(self) -> str:
        return str(self)

    def to_table(self) -> Table:
        """Return one row, as in the table of the whole comparison."""
        return differences_table([self], "" if self.adjusted_level == self.level else " (adjusted)")

    def _names(self) -> list[tuple[str, ...]]:
        return [(f"{self.recommender} - {self.baseline}", *((self.group,) if self.group else ()), self.metric)]

    def _numbers(self) -> Iterator[tuple[tuple[str, ...], float]]:
        (name,) = self._names()
        yield name, self.difference
        yield (*name, "se"), self.standard_error
        yield (*name, "p"), self.adjusted_p_value


_PARTS = {
    (False, False): "from users",
    (True, False): "from users, candidates",
    (False, True): "from users, runs",
    (True, True): "from users, runs, candidates",
}


def differences_table(differences: Sequence[Difference], adjustment: str, notes: tuple[str, ...] = ()) -> Table:
    """Return a row per difference; `adjustment` is what the header says about intervals and p-values."""
    sampled = any(each.sampling_error != 0 for each in differences)
    repeated = any(each.run_error != 0 for each in differences)

    def column(text: Callable[[Difference], str]) -> list[Cell]:
        return [Cell(text(each)) for each in differences]

    columns = {
        "": column(lambda each: f"{each.recommender} - {each.baseline}"),
        "group": column(lambda each: each.group),
        "metric": column(lambda each: each.metric),
        "mean": column(lambda each: f"{each.mean:.4f}"),
        "baseline": column(lambda each: f"{each.baseline_mean:.4f}"),
        "difference": [measured(each.difference, each.standard_error) for each in differences],
        _PARTS[sampled, repeated]: column(lambda each: _parts_of_error(each, sampled=sampled, repeated=repeated)),
        f"{100 * differences[0].level:g} % interval{adjustment}": column(_interval_text),
        "relative": column(lambda each: f"{each.relative:+.1%}"),
        f"p{adjustment}": column(lambda each: f"{each.adjusted_p_value:.2g}"),
        "verdict": column(lambda each: each.verdict),
    }
    if not any(each.group for each in differences):
        del columns["group"]
    if not (sampled or repeated):
        del columns[_PARTS[sampled, repeated]]
    rows = tuple(zip(*columns.values(), strict=True))
    labels = 2 if "group" in columns else 1
    spare = ("relative", _PARTS[sampled, repeated], "baseline", "mean")
    records = tuple(each.record() for each in differences)
    return Table(tuple(columns), rows, records, notes, labels=labels, heading="metric", spare=spare)


def _interval_text(each: Difference) -> str:
    low, high = each.confidence_interval()
    return f"[{low:.4f}, {high:.4f}]"


def _parts_of_error(each: Difference, *, sampled: bool, repeated: bool) -> str:
    if math.isnan(each.sampling_error):
        return "unknown"
    parts = [each.user_error, *([each.run_error] if repeated else []), *([each.sampling_error] if sampled else [])]
    return ", ".join(f"{part:.4f}" for part in parts)


def check_margin(margin: float) -> float:
    """Return a loss that does not matter, or raise `InputError`."""
    if not 0.0 <= as_number(margin) < math.inf:
        raise InputError(f"`margin` must be a number from 0, got {margin}.")
    return margin


def one_sided(level: float) -> float:
    """Return the level of the two-sided interval whose lower end is a one-sided bound at the given level."""
    if not 0.5 < as_number(level) < 1.0:
        raise InputError(f"the `level` of a one-sided test must lie between 0.5 and 1, got {level}.")
    return float(2 * Decimal(str(as_number(level))) - 1)  # 0.9 for 0.95, where floats say 0.8999999999999999


Kind = Literal["better", "equivalent", "not worse", "no difference", "not determined"]
"""What can be said about the order of two recommenders."""


Acceptance = Literal["passes", "fails", "cannot tell"]
"""Whether one recommender may replace another."""


@dataclass(frozen=True)
class Verdict:
    """What is known about the order of two recommenders by the exact metric.

    Attributes
    ----------
    kind : {"better", "equivalent", "not worse", "no difference", "not determined"}
    winner : str or None
        The recommender that is better, if one was found to be.
    words : str
        The verdict in a few words.
    remark : str
        Why the difference shown points the other way; empty unless it does.
    """

    kind: Kind
    winner: str | None
    words: str
    remark: str = ""

    @property
    def in_full(self) -> str:
        """The words and the remark."""
        return f"{self.words}; {self.remark}" if self.remark else self.words


def judged(found: Difference) -> Verdict:
    """Return the verdict on a difference, by its adjusted p-value, its adjusted interval and its margin.

    The side of 0 on which the interval lies says who is better. For a sampled metric it is the interval of the exact
    metric; the difference shown is biased and may have the other sign.
    """
    winner, small = _winner(found), bool(found.margin) and found.not_worse(found.margin or 0.0)
    if winner is not None:
        limit = f", but not by more than {found.margin:g}" if small and winner == found.baseline else ""
        return Verdict("better", winner, f"{winner} is better{limit}", _remark(found, winner))
    if small and found.equivalent(found.margin or 0.0):
        words = f"{found.recommender} and {found.baseline} differ by less than {found.margin:g}"
        return Verdict("equivalent", None, words)
    if small:
        return Verdict("not worse", None, f"{found.recommender} is not worse by more than {found.margin:g}")
    if found.bounded:
        return Verdict("not determined", None, "not determined by this sample")
    if math.isnan(found.p_value):
        return Verdict("not determined", None, "not determined")
    return Verdict("no difference", None, "no difference found")


def _winner(found: Difference) -> str | None:
    """Return who is better: both the p-value and the interval must say so, because those of some tests may disagree."""
    if not found.adjusted_p_value <= 1 - found.level:
        return None
    low, high = found.gain_interval(found.adjusted_level)
    return found.recommender if low > 0 else found.baseline if high < 0 else None


def _remark(found: Difference, winner: str) -> str:
    shown = found.gain if winner == found.recommender else -found.gain
    return "the difference shown is biased by the sampling and points the other way" if shown < 0 else ""


def acceptance(found: Difference, margin: float) -> Acceptance:
    """Return whether the recommender may replace the baseline: it is better, or not worse by `margin` or more.

    It fails only if it is found worse, and by more than the margin.
    """
    winner = found.finding.winner
    if winner == found.recommender or (margin > 0 and found.not_worse(margin)):
        return "passes"
    return "fails" if winner == found.baseline and found.worse(margin) else "cannot tell"


def leading(differences: Sequence[Difference]) -> str:
    """Return who beats the most others among those whom none beats; of several, the one with the best mean shown.

    `differences` are those between all pairs, by one metric in one group.
    """
    sign = -1 if differences[0].lower_is_better else 1
    means = {each.baseline: each.baseline_mean for each in differences}
    means |= {each.recommender: each.mean for each in differences}
    winners = [each.finding.winner for each in differences]
    found = [each for each in differences if each.finding.winner is not None]
    beaten = {each.baseline if each.finding.winner == each.recommender else each.recommender for each in found}
    return max(
        [name for name in means if name not in beaten] or list(means),
        key=lambda name: (winners.count(name), -math.inf if math.isnan(means[name]) else sign * means[name]),
    )


def seen_from(name: str, differences: Sequence[Difference]) -> list[Difference]:
    """Return the differences of one recommender minus each other one that it was compared with."""
    own = [each for each in differences if name in (each.recommender, each.baseline)]
    return [each if each.recommender == name else each.reversed() for each in own]


def found_best(differences: Sequence[Difference]) -> str | None:
    """Return the recommender that is better than each other one by one metric in one group, if there is one."""
    name = leading(differences)
    beats_all = all(each.finding.winner == name for each in seen_from(name, differences))
    return name if beats_all else None


def conclusion(differences: Sequence[Difference], most: int | None = None) -> str:
    """Return the conclusion from the differences by one metric in one group, as a sentence.

    It names all recommenders; if more than `most` have the same verdict, it gives their number instead.
    """
    if len(differences) == 1:
        return f"{differences[0].verdict}."
    if len({each.baseline for each in differences}) == 1:
        return _against(differences, most)
    return _about(leading(differences), differences, most)


def _against(own: Sequence[Difference], most: int | None) -> str:
    """Return the sentence if all others are compared with one baseline."""
    baseline = own[0].baseline
    words = {
        "better": f"better than {baseline}",
        "worse": f"worse than {baseline}",
        "equivalent": f"less than {own[0].margin or 0.0:g} from {baseline}",
        "not worse": f"not worse than {baseline} by more than {own[0].margin or 0.0:g}",
        "no difference": f"no difference from {baseline} was found",
        "not determined": f"the order with {baseline} is not determined by this sample",
    }
    names = _names_by_kind(own, of_baselines=False, most=most)
    return "; ".join(f"{words[kind]}: {names[kind]}" for kind in words if kind in names) + "."


def _about(first: str, differences: Sequence[Difference], most: int | None) -> str:
    """Return the sentence on the leading one of several."""
    own = seen_from(first, differences)
    names = _names_by_kind(own, of_baselines=True, most=most)
    if set(names) == {"better"}:
        return f"{first} is best: it is better than {names['better']}."
    if set(names) == {"no difference"}:
        return f"{first} has the best mean, but no difference from any other was found."
    if set(names) == {"not determined"}:
        return "the order is not determined by this sample."
    words = {
        "better": (f"{first} is better than ", ""),
        "worse": (f"{first} is worse than ", ""),
        "equivalent": (f"{first} differs by less than {own[0].margin or 0.0:g} from ", ""),
        "not worse": (f"{first} is not worse than ", f" by more than {own[0].margin or 0.0:g}"),
        "no difference": ("no difference from ", " was found"),
        "not determined": ("the order with ", " is not determined by this sample"),
    }
    return "; ".join(names[kind].join(around) for kind, around in words.items() if kind in names) + "."


def _names_by_kind(own: Sequence[Difference], *, of_baselines: bool, most: int | None) -> dict[str, str]:
    """Return the names of the baselines, or of the recommenders, with each kind of verdict; one of them is "worse"."""
    names: dict[str, list[str]] = {}
    for each in own:
        kind = "worse" if each.finding.winner == each.baseline else each.finding.kind
        names.setdefault(kind, []).append(each.baseline if of_baselines else each.recommender)
    return {
        kind: ", ".join(several) if most is None or len(several) <= most else f"{len(several)} others"
        for kind, several in names.items()
    }
