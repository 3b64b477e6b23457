"""How much it takes until the order of two recommenders comes out right."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from truerank.analysis.risks import check_exact, risks
from truerank.arrays import Floats
from truerank.corrections.reading import AnyMetric, as_metrics
from truerank.display.tables import Cell, Table, Tabular
from truerank.errors import InputError
from truerank.evaluation.matching import matched
from truerank.evaluation.per_instance import values
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks
from truerank.sampling.uniform import UniformSampling

SIZES = (10, 30, 100, 300, 1000)
"""Sample sizes to look at by default."""


@dataclass(frozen=True)
class PlannedDesign:
    """What one way to evaluate can show about the order of two recommenders.

    Attributes
    ----------
    metric : str
    m : int or None
        Candidates sampled for each user; None: all of them.
    difference : float
        Expected difference of the means, the second recommender less the first.
    right : bool
        Whether it has the sign of the exact difference. If not, more users make it worse.
    probability : float
        That the order on these users comes out right in one run.
    users : float
        Users, like those of the pilot, that bring the order out right with the wanted probability; infinite if none do.
    repetitions : float
        Independent runs on the users of the pilot, averaged, that do so; infinite if none do.
    """

    metric: str
    m: int | None
    difference: float
    right: bool
    probability: float
    users: float
    repetitions: float


@dataclass(frozen=True, repr=False)
class Plan(Tabular):
    """What it takes to order two recommenders by several metrics and sample sizes."""

    recommenders: tuple[str, str]
    probability: float
    designs: tuple[PlannedDesign, ...]
    notes: tuple[str, ...] = ()

    def to_table(self) -> Table:
        """Return a row per metric and sample size."""
        first, second = self.recommenders
        header = ("metric", "sampled", f"{second} - {first}", "right order", "users needed", "runs needed")
        rows = tuple(
            (
                Cell(each.metric),
                Cell("all" if each.m is None else str(each.m)),
                Cell(f"{each.difference:+.5f}"),
                Cell(f"{each.probability:.1%}"),
                Cell(_count(each.users)),
                Cell(_count(each.repetitions)),
            )
            for each in self.designs
        )
        return Table(header, rows, tuple(asdict(each) for each in self.designs), self.notes)


def _count(number: float) -> str:
    return f"{int(number):,}" if math.isfinite(number) else "never"


def plan(
    ranks: Mapping[str, Ranks],
    metrics: AnyMetric | Iterable[AnyMetric],
    *,
    sizes: Iterable[int] = SIZES,
    replace: bool = False,
    probability: float = 0.95,
) -> Plan:
    """Return how many users, or candidates and runs, bring out the order of two recommenders.

    The exact ranks of a pilot say what the metrics, sampled or not, would be: their expectation and variance over
    samples of candidates are exact. Other users are supposed to be like those of the pilot, both recommenders to see
    samples of their own, and means to be normal.

    Parameters
    ----------
    ranks : dict of name to Ranks
        Exact ranks of two recommenders on the same users.
    metrics : list of str, Metric or function (or one of them)
        For instance ``["ndcg@10", "ndcg@10~bv(0.1)"]``; a metric without correction is also planned without sampling.
    sizes : iterable of int
        Numbers of candidates to sample for each user, uniformly; sizes that some user does not have are left out.
    replace : bool
        Whether they are sampled with replacement.
    probability : float
        Wanted probability that the order comes out as the exact metric has it.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> rng = np.random.default_rng(0)
    >>> old, new = rng.geometric(0.02, size=300), rng.geometric(0.03, size=300)
    >>> pilot = {"old": tr.Ranks.from_ranks(old, n=1_000), "new": tr.Ranks.from_ranks(new, n=1_000)}
    >>> found = tr.plan(pilot, "ndcg@10", sizes=[100])
    >>> [(each.m, each.right) for each in found.designs]
    [(None, True), (100, True)]
    """
    chosen = as_metrics(metrics)
    if len(ranks) != 2 or not chosen:
        raise InputError(f"a plan is about two recommenders and at least one metric, got {len(ranks)} recommenders.")
    if not 0.5 < probability < 1.0:
        raise InputError(f"`probability` must lie between 0.5 and 1, got {probability}.")
    for one in ranks.values():
        check_exact(one)
    same, notes = matched(ranks)
    most = min(int(one.draws[one.n_relevant > 0].min(initial=2**62)) for one in same.values())
    usable = [size for size in dict.fromkeys(sizes) if replace or size <= most]
    exact = {str(each): _exact_difference(same, each.estimated) for each in chosen}
    unsampled = [
        _planned(each, None, exact[str(each)], exact[str(each)], probability)
        for each in chosen
        if each.estimated == each
    ]
    sampled = [
        _planned(each, size, exact[str(each)], difference, probability)
        for size in usable
        for each, difference in zip(chosen, _sampled_differences(same, chosen, size, replace), strict=True)
    ]
    names = tuple(same)
    return Plan((names[0], names[1]), probability, (*unsampled, *sampled), notes)


@dataclass(frozen=True, eq=False)
class _Difference:
    """Expected difference of each user, and its variance over samples of candidates."""

    expected: Floats
    variance: Floats

    @property
    def mean(self) -> float:
        return float(self.expected.mean()) if self.expected.size else math.nan

    @property
    def of_sampling(self) -> float:
        """Variance of one user's difference over samples."""
        return float(self.variance.mean()) if self.variance.size else math.nan

    @property
    def of_users(self) -> float:
        """Variance of the expected difference over users."""
        return float(self.expected.var(ddof=1)) if self.expected.size > 1 else math.nan


def _exact_difference(ranks: Mapping[str, Ranks], metric: Metric) -> _Difference:
    first, second = (values(one, metric) for one in ranks.values())
    return _defined(second - first, np.zeros(first.size))


def _sampled_differences(
    ranks: Mapping[str, Ranks], metrics: tuple[Metric, ...], size: int, replace: bool
) -> list[_Difference]:
    first, second = (risks(one, metrics, UniformSampling(size, replace)) for one in ranks.values())
    return [_defined(b.expected - a.expected, a.variance + b.variance) for a, b in zip(first, second, strict=True)]


def _defined(expected: Floats, variance: Floats) -> _Difference:
    where = ~np.isnan(expected)
    return _Difference(expected[where], variance[where])


def _planned(
    metric: Metric, m: int | None, exact: _Difference, found: _Difference, probability: float
) -> PlannedDesign:
    from scipy.special import ndtr, ndtri

    right = found.mean * exact.mean > 0
    gain = abs(found.mean) if right else -abs(found.mean)
    error = math.sqrt(found.of_sampling / max(found.expected.size, 1))
    z = float(ndtri(probability))
    users = z**2 * (found.of_users + found.of_sampling) / gain**2 if right else math.inf
    runs = z**2 * error**2 / gain**2 if right else math.inf
    return PlannedDesign(
        metric=str(metric),
        m=m,
        difference=found.mean,
        right=right,
        probability=float(ndtr(gain / error)) if error > 0 else float(right),
        users=math.ceil(users) if math.isfinite(users) else math.inf,
        repetitions=max(math.ceil(runs), 1) if math.isfinite(runs) else math.inf,
    )
