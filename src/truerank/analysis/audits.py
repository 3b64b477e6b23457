"""`audit`: what published sampled numbers can mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from importlib.metadata import version
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy import optimize, sparse, special

from truerank.core.checks import Floats, InputError, Ints, as_number, check_kind, check_whole, distinct, slices
from truerank.core.ranks import Ranks
from truerank.core.tables import Cell, Table, Tabular, json_text
from truerank.estimators import corrected
from truerank.estimators.worst_laws import smooth_conditions
from truerank.evaluation.intervals import Interval, check_level
from truerank.evaluation.per_instance import values
from truerank.metrics.definitions import Metric
from truerank.sampling.designs import AnyDesign, SamplingDesign, as_design

Number = float | str
"""A published number; in a string, trailing zeros count as digits."""

_MOST = 1_000_000
_TOP = 10
_LONGEST = 1 << 13
_CHUNK = 4_000_000
_EXACT = 1e-9  # counts computed from shares are whole numbers up to this error


@dataclass(frozen=True, repr=False)
class Audit(Tabular[Interval]):
    """The exact values that each system's published numbers allow.

    Attributes
    ----------
    systems, metrics : tuple of str
        Rows and columns.
    ranges : tuple of Interval
        Smallest and largest exact value, row by row. Every value between them is possible, too.
    notes : tuple of str
        What was taken into account.
    """

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    ranges: tuple[Interval, ...]
    notes: tuple[str, ...]

    def _named(self, key: tuple[str, str] | str) -> Interval:
        """Return one range by system and metric, or by metric if there is one system."""
        system, metric = key if isinstance(key, tuple) and len(key) == 2 else (self.systems[0], key)
        if not isinstance(key, tuple) and len(self.systems) > 1:
            raise InputError(f"name the system too, as in audit[{system!r}, {metric!r}].")
        name = str(corrected.metric(metric))
        if system not in self.systems or name not in self.metrics:
            raise InputError(f"the audit has rows {self.systems} and columns {self.metrics}, got {key!r}.")
        return self.ranges[self.systems.index(system) * len(self.metrics) + self.metrics.index(name)]

    def better(self, a: str, b: str, metric: str) -> str | None:
        """Return which of two systems is better by the exact metric; None if the published numbers leave it open."""
        first, second = self[a, metric], self[b, metric]
        if first.low <= second.high and second.low <= first.high:
            return None
        return a if (first.low > second.high) != corrected.metric(metric).lower_is_better else b

    @property
    def conclusions(self) -> tuple[str, ...]:
        """What the numbers say about the order of each pair of systems."""
        pairs = list(combinations(self.systems, 2))
        return tuple(self._conclusion(a, b, metric) for metric in self.metrics for a, b in pairs)

    def _conclusion(self, a: str, b: str, metric: str) -> str:
        winner = self.better(a, b, metric)
        if winner is None:
            return f"exact {metric}: the published numbers do not determine whether {a} or {b} is better"
        return f"exact {metric}: {winner} is better than {b if winner == a else a}, whatever their ranks"

    def _rows(self) -> tuple[Interval, ...]:
        return self.ranges

    def _names(self) -> list[tuple[str, ...]]:
        return list(product(self.systems, self.metrics))

    def rows(self) -> list[dict[str, Any]]:
        """Return a record per system and metric: system, metric, low, high."""
        cells = zip(self._names(), self.ranges, strict=True)
        return [{"system": system, "metric": metric, **found._asdict()} for (system, metric), found in cells]

    def to_json(self) -> str:
        """Return everything at full precision."""
        content = {"rows": self.rows(), "conclusions": self.conclusions, "notes": self.notes}
        return json_text({"truerank": version("truerank"), **content})

    def to_table(self) -> Table:
        """Return a row of ranges per system; the conclusions come before the notes."""
        header = ("", *(f"exact {metric}" for metric in self.metrics))
        cells, width = [Cell(f"{found.low:.4f} to {found.high:.4f}") for found in self.ranges], len(self.metrics)
        rows = tuple((Cell(name), *cells[at * width : (at + 1) * width]) for at, name in enumerate(self.systems))
        return Table(header, rows, tuple(self.rows()), self.notes, self.conclusions)


def audit(
    published: Mapping[str, Mapping[str, Number]],
    metrics: corrected.AnyMetric | Sequence[corrected.AnyMetric] | None = None,
    *,
    n: int,
    design: AnyDesign,
    users: int | None = None,
    rounding: float | None = None,
    level: float = 0.95,
    assume: corrected.Assumption = "nothing",
) -> Audit:
    """Return the ranges of exact metrics that are compatible with published sampled ones.

    Each user has one relevant item. A linear program with one variable per rank finds the smallest and the largest
    exact metric over all distributions of ranks whose expected sampled metrics are the published numbers.

    Parameters
    ----------
    published : dict of system to dict of metric to number
        Means over the users, as fractions: ``{"X": {"recall@10": 0.6619}, "Y": {"recall@10": 0.5651}}``.
    metrics : list of str or Metric, optional
        The exact metrics to bound; by default the published ones.
    n : int
        Candidates of each user, the relevant one included; at most 1,000,000.
    design : SamplingDesign, str or int
        How candidates were sampled uniformly: the number of irrelevant ones, or ``"uniform(100, replace)"`` if one
        could be sampled more than once.
    users : int, optional
        Number of users, each with their own sample, over whom the published means were taken: the numbers are then
        allowed the error of such a mean, instead of being taken as exact expectations. Shares of the users, such as
        recall, have the exact interval of Clopper and Pearson; other means have that of Hoeffding (1963), which holds
        for any values in the metric's range. Several numbers of a system share the error (Bonferroni). None: the errors
        are ignored.
    rounding : float, optional
        Rounding unit of the published numbers, such as 0.0001. None: taken from the digits of each number.
    level : float
        Confidence level for the error due to the finite number of users.
    assume : {"nothing", "falling", "smooth"}
        Whether to allow any distribution of ranks, or only those in which, among the top tenth of the candidates, a
        deeper rank is never more likely; or, in addition, a rank twice as deep is at least a quarter as likely.

    Examples
    --------
    X and Y of Table 3 of Krichene & Rendle; exactly, X has 0.0760 and Y has 0.0884:

    >>> import truerank as tr
    >>> print(tr.audit({"X": {"recall@10": 0.6619}, "Y": {"recall@10": 0.5651}}, n=3_706, design=100, users=6_040))
        exact recall@10
    X  0.0000 to 0.6739
    Y  0.0000 to 0.5776
    exact recall@10: the published numbers do not determine whether X or Y is better
    note: the errors of means over 6040 users are taken into account
    """
    _check(published, n, users)
    corrected.check_assumption(assume)
    check_level(level)
    if rounding is not None and not 0 <= as_number(rounding) < math.inf:
        raise InputError(f"`rounding` must be a number from 0, got {rounding!r}.")
    drawn = as_design(design)
    drawn.law("an audit")
    drawn.check(np.array([n - 1]), drawn.size)
    names = dict.fromkeys(name for numbers in published.values() for name in numbers)
    asked = distinct(each.estimated for each in corrected.as_metrics(list(names) if metrics is None else metrics))
    laws = _Laws.of(n, assume)
    targets = [laws.mean(values(laws.ranks, metric)) for metric in asked]
    shown = {name: _Shown.of(corrected.metric(name), drawn, laws) for name in names}
    ranges: list[Interval] = []
    for system, numbers in published.items():
        ends = _ends(numbers, shown, users, rounding, level)
        rows = [shown[name].expected for name in numbers]
        ranges += [_range(target, rows, ends, laws.conditions, system) for target in targets]
    columns = tuple(map(str, asked))
    return Audit(tuple(published), columns, tuple(ranges), _notes(users, assume))


@dataclass(frozen=True, eq=False)
class _Laws:
    """Laws of which every allowed distribution is a mixture: single counts, or uniform ones over the top.

    Mixtures of single counts may have to meet conditions: rows whose product with the weights is at most 0.
    """

    ranks: Ranks
    n_top: int
    conditions: Any = None

    @classmethod
    def of(cls, n: int, assume: corrected.Assumption) -> _Laws:
        ranks = Ranks.from_ranks(np.arange(1, n + 1), n=n)
        size = (n - 1) // _TOP + 1
        if assume == "smooth":
            return cls(ranks, 0, smooth_conditions(min(size, _LONGEST), n))
        return cls(ranks, size if assume == "falling" else 0)

    def mean(self, at_counts: Floats) -> Floats:
        """Return the mean under each law, from the values at counts 0..n - 1."""
        top = np.cumsum(at_counts[: self.n_top]) / np.arange(1.0, self.n_top + 1)
        return np.concatenate([top, at_counts[self.n_top :]])


@dataclass(frozen=True, eq=False)
class _Shown:
    """A sampled metric: its expectation under each law, and its values."""

    expected: Floats
    values: Floats

    @classmethod
    def of(cls, metric: Metric, design: SamplingDesign, laws: _Laws) -> _Shown:
        sampled = corrected.as_sampled(laws.ranks[:1], design)
        terms = metric.terms(sampled)
        if len(terms) > 1 or terms[0].weight is not None:
            raise InputError(f"{metric} depends on grades, which published means do not contain; use a plain metric.")
        table = corrected.counted(terms[0], sampled, np.array([0]))[0]
        expected = _expected(table, laws.ranks.above, design)
        return cls(laws.mean(expected), np.unique(table))

    def expectations(self, means: Interval, users: int, missed: float) -> Interval:
        """Return the expectations under which means this large, or this small, have a probability of at least `missed`.

        A metric with only two values is a share; means of others are bounded whatever the law of their values.
        """
        first, last = float(self.values[0]), float(self.values[-1])
        if means.high < first or means.low > last or first == last:
            return means  # impossible means are refused when the range is computed
        low, high = (min(max((end - first) / (last - first), 0.0), 1.0) for end in means)
        if self.values.size == 2:
            found = _shares(Interval(low, high), users, missed)
        else:
            found = Interval(_least(low, users, missed), 1 - _least(1 - high, users, missed))
        return Interval(*(first + end * (last - first) for end in found))


def _expected(table: Floats, counts: Ints, design: SamplingDesign) -> Floats:
    """Return the expectation of the table's values at each count of candidates above."""
    law, parts = design.law("an audit"), slices(counts.size, _CHUNK // table.size)
    return np.concatenate([law.rows(counts[part], design.size, counts.size - 1) @ table for part in parts])


def _ends(
    numbers: Mapping[str, Number], shown: Mapping[str, _Shown], users: int | None, rounding: float | None, level: float
) -> list[Interval]:
    """Return the range of each number's expectation, given rounding and the error of the mean over the users."""
    missed = (1 - level) / 2 / len(numbers)
    found = []
    for name, value in numbers.items():
        v, half = float(value), (_unit(value) if rounding is None else rounding) / 2
        means = Interval(v - half, v + half)
        found.append(means if users is None else shown[name].expectations(means, users, missed))
    return found


def _shares(means: Interval, users: int, missed: float) -> Interval:
    """Return the interval of Clopper and Pearson for a share of the users, from the least to the largest count.

    If no count gives the printed share, as in a mean over several runs, the counts on both sides of it are taken.
    """
    few, many = sorted((math.ceil(means.low * users - _EXACT), math.floor(means.high * users + _EXACT)))
    low = float(special.betaincinv(few, users - few + 1, missed)) if few > 0 else 0.0
    high = 1 - float(special.betaincinv(users - many, many + 1, missed)) if many < users else 1.0
    return Interval(low, high)


def _least(mean: float, users: int, missed: float) -> float:
    """Return the least expectation of values in 0..1 whose mean is `mean` or more with a probability of `missed`.

    By Hoeffding (1963, theorem 1) this probability is at most exp(-users * divergence) for any law of the values.
    """

    def excess(expected: float) -> float:
        apart = special.rel_entr(mean, expected) + special.rel_entr(1 - mean, 1 - expected)
        return float(users * apart + math.log(missed))

    tiny = mean * 1e-12
    return float(optimize.brentq(excess, tiny, mean)) if mean > 0 and excess(tiny) > 0 else 0.0


def _range(target: Floats, rows: Sequence[Floats], ends: Sequence[Interval], conditions: Any, system: str) -> Interval:
    """Least and largest mean of the target over all mixtures of the laws with these means of the rows."""
    low, high = np.array(ends).T
    matrix: Any = np.vstack([*rows, *(-row for row in rows)])
    bounds = np.concatenate([high, -low])
    if conditions is not None:
        matrix = sparse.vstack([matrix, conditions])
        bounds = np.append(bounds, np.zeros(conditions.shape[0]))
    found = []
    for sign in (1.0, -1.0):
        done = optimize.linprog(sign * target, matrix, bounds, np.ones((1, target.size)), [1.0], method="highs")
        if done.status == 2:
            advice = "check the number of candidates, how they were sampled, and that the numbers are fractions"
            raise InputError(f"no distribution of ranks gives the numbers of {system}; {advice}.")
        if not done.success:
            raise InputError(f"the range of {system} can't be computed: {done.message}")
        found.append(sign * float(done.fun))
    return Interval(*found)


def _unit(value: Number) -> float:
    """Return the unit of the last printed digit."""
    return 10.0 ** int(Decimal(str(value)).as_tuple().exponent)


def _check(published: Mapping[str, Mapping[str, Number]], n: int, users: int | None) -> None:
    check_kind("published", published, Mapping)
    for numbers in published.values():
        check_kind("published", numbers, Mapping)
    if not published or not all(published.values()):
        raise InputError("`published` must hold at least one system, each with at least one number.")
    if not 2 <= as_number(n) <= _MOST:
        raise InputError(f"`n` must lie in 2..{_MOST}, got {n}.")
    if users is not None:
        check_whole("users", users)
    for system, numbers in published.items():
        for name, value in numbers.items():
            try:
                finite = Decimal(str(value)).is_finite()
            except InvalidOperation:
                finite = False
            if not finite:
                raise InputError(f"{name} of {system} must be a number such as 0.6619, got {value!r}.")


def _notes(users: int | None, assume: corrected.Assumption) -> tuple[str, ...]:
    errors = "the numbers are taken to be exact expectations"
    if users is not None:
        errors = f"the errors of means over {users} users are taken into account"
    return (errors,) if assume == "nothing" else (errors, f"the ranges hold {corrected.ASSUMING[assume]}")
