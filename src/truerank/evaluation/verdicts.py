"""What differences say: who is better, who is not worse, that no difference was found, or that nothing is determined.

Everything that speaks of an order asks here: comparisons, gates, plans, reports, and bold type in tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from truerank.evaluation.comparisons import Comparison
    from truerank.evaluation.differences import Difference

Kind = Literal["better", "not worse", "no difference", "not determined"]
"""What can be said of the order of two recommenders."""

Acceptance = Literal["passes", "fails", "cannot tell"]
"""Whether one recommender may replace another."""


@dataclass(frozen=True)
class Verdict:
    """What is known of the order of two recommenders by the exact metric.

    Attributes
    ----------
    kind : {"better", "not worse", "no difference", "not determined"}
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

    Who is better is read off the side of 0 on which the interval lies. That of a sampled metric is an interval of the
    exact metric; the difference shown is biased and may have the other sign.
    """
    winner, small = _winner(found), bool(found.margin) and found.not_worse(found.margin or 0.0)
    if winner is not None:
        limit = f", but not by more than {found.margin:g}" if small and winner == found.baseline else ""
        return Verdict("better", winner, f"{winner} is better{limit}", _remark(found, winner))
    if small:
        return Verdict("not worse", None, f"{found.recommender} is not worse by more than {found.margin:g}")
    if found.bounded:
        return Verdict("not determined", None, "not determined by this sample")
    if math.isnan(found.p_value):
        return Verdict("not determined", None, "not determined")
    return Verdict("no difference", None, "no difference found")


def _winner(found: Difference) -> str | None:
    """Return who is better: both the p-value and the interval must say so, should a test's own two disagree."""
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
    """Return who beats the most others among those whom none beats; where that is even, who has the best mean shown.

    `differences` are those between all pairs, by one metric in one group.
    """
    signs = {each.lower_is_better for each in differences}
    means = {each.baseline: each.baseline_mean for each in differences}
    means |= {each.recommender: each.mean for each in differences}
    winners = [each.finding.winner for each in differences]
    beaten = {_other(each, winner) for each, winner in zip(differences, winners, strict=True) if winner is not None}
    sign = -1 if True in signs else 1
    return max(
        [name for name in means if name not in beaten] or list(means),
        key=lambda name: (winners.count(name), -math.inf if math.isnan(means[name]) else sign * means[name]),
    )


def _other(found: Difference, name: str) -> str:
    return found.baseline if name == found.recommender else found.recommender


def seen_from(name: str, differences: Sequence[Difference]) -> list[Difference]:
    """Return the differences of one recommender less each other one that it was compared with."""
    own = [each for each in differences if name in (each.recommender, each.baseline)]
    return [each if each.recommender == name else each.reversed() for each in own]


def found_best(result: Comparison, metric: str, group: str = "") -> str | None:
    """Return the recommender that is better than each other one, if there is one."""
    own = result.of(metric, group)
    name = leading(own)
    beats_all = all(each.finding.winner == name for each in seen_from(name, own))
    return name if beats_all else None


def conclusions(result: Comparison) -> tuple[str, ...]:
    """Return a sentence for each metric, and for each group if there are groups.

    Examples
    --------
    >>> import truerank as tr
    >>> a, b = tr.Ranks.from_ranks([5, 6] * 20, n=9), tr.Ranks.from_ranks([1, 2] * 20, n=9)
    >>> conclusions(tr.compare({"A": a, "B": b, "C": a}, "rr"))
    ('rr: B is best: it is better than A, C.',)
    """
    return tuple(
        f"{f'{group}, ' if group else ''}{metric}: {conclusion(result.of(metric, group))}"
        for group in result.groups or ("",)
        for metric in result.metrics
    )


def conclusion(differences: Sequence[Difference]) -> str:
    """Return what differences by one metric in one group come to, as a sentence."""
    if len(differences) == 1:
        return f"{differences[0].verdict}."
    if len({each.baseline for each in differences}) == 1:
        return _against(differences)
    return _about(leading(differences), differences)


def _against(own: Sequence[Difference]) -> str:
    """Return the sentence if all others are compared with one baseline."""
    baseline = own[0].baseline
    words = {
        "better": f"better than {baseline}",
        "worse": f"worse than {baseline}",
        "not worse": f"not worse than {baseline} by more than {own[0].margin or 0.0:g}",
        "no difference": f"no difference from {baseline} was found",
        "not determined": f"the order with {baseline} is not determined by this sample",
    }
    names = _names_by_kind(own, of_baselines=False)
    return "; ".join(f"{words[kind]}: {names[kind]}" for kind in words if kind in names) + "."


def _about(first: str, differences: Sequence[Difference]) -> str:
    """Return the sentence on the leading one of several."""
    own = seen_from(first, differences)
    names = _names_by_kind(own, of_baselines=True)
    if set(names) == {"better"}:
        return f"{first} is best: it is better than {names['better']}."
    if set(names) == {"no difference"}:
        return f"{first} has the best mean, but no difference from any other was found."
    if set(names) == {"not determined"}:
        return "the order is not determined by this sample."
    words = {
        "better": (f"{first} is better than ", ""),
        "worse": (f"{first} is worse than ", ""),
        "not worse": (f"{first} is not worse than ", f" by more than {own[0].margin or 0.0:g}"),
        "no difference": ("no difference from ", " was found"),
        "not determined": ("the order with ", " is not determined by this sample"),
    }
    return "; ".join(names[kind].join(around) for kind, around in words.items() if kind in names) + "."


def _names_by_kind(own: Sequence[Difference], *, of_baselines: bool) -> dict[str, str]:
    """Return the names of the baselines, or of the recommenders, with each kind of verdict; one of them is "worse"."""
    names: dict[str, list[str]] = {}
    for each in own:
        kind = "worse" if each.finding.winner == each.baseline else each.finding.kind
        names.setdefault(kind, []).append(each.baseline if of_baselines else each.recommender)
    return {kind: ", ".join(several) for kind, several in names.items()}
