"""`plan_scores`: how many scores a sampling design needs, and how precisely it estimates a metric."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from truerank.core.checks import Floats, InputError, Ints, Rng, as_list, as_number, as_rng, check_kind, check_whole
from truerank.core.ranks import Ranks
from truerank.core.tables import Cell, Record, Table, Tabular
from truerank.data.splits import Split
from truerank.estimators.corrected import AnyMetric
from truerank.estimators.corrected import metric as as_metric
from truerank.estimators.pooled import plausible_ranks
from truerank.evaluation.estimates import estimate
from truerank.metrics.definitions import Metric
from truerank.ranking.exact import rank
from truerank.recommenders.models import Popularity
from truerank.sampling.designs import AnyDesign, HeadFirst, SamplingDesign, SequentialDesign, as_design, batch_ends
from truerank.scoring.conversion import Scoreable

_DRAWS, _ERRORS = 5, 3  # draws for numbers of scores, and for errors, which take longer
_NORMAL = 1.96  # standard errors on each side of a range that holds 95 %
_ALL = "all candidates"


@dataclass(frozen=True)
class PlannedScores:
    """The cost of one way to evaluate, and its error.

    Attributes
    ----------
    design : str
        How candidates are sampled.
    scores : int
        Expected number of scores, those of the relevant items included.
    low, high : int
        Range of the number of scores.
    cost : float
        Cost of the expected number of scores; NaN unless the cost of a score was given.
    metric : str
        The metric with the estimator that is used.
    error : float
        Half the width of the 95 % interval of the exact metric; NaN if it has none.
    determined : bool
        Whether that interval roughly determines the metric, as `Estimate.determined` says.
    """

    design: str
    scores: int
    low: int
    high: int
    cost: float
    metric: str
    error: float
    determined: bool

    def texts(self, money: bool) -> list[str]:
        """Return what a row of the table shows."""
        cost = [f"{self.cost:,.2f}"] if money else []
        error = f"± {self.error:.4f}" + ("" if self.determined else ", not determined")
        return [self.design, f"{self.scores:,}", f"{self.low:,} to {self.high:,}", *cost, self.metric, error]


@dataclass(frozen=True, repr=False)
class ScorePlan(Tabular[Record]):
    """Scores, cost and error of several ways to evaluate, before anything is spent."""

    users: int
    designs: tuple[PlannedScores, ...]
    notes: tuple[str, ...] = ()

    def _names(self) -> list[tuple[str, ...]]:
        return [(each.design,) for each in self.designs]

    def to_table(self) -> Table:
        """Return a row per way to evaluate."""
        money = not all(math.isnan(each.cost) for each in self.designs)
        header = ("candidates", "scores", "range", *(["cost"] if money else []), "metric", "error")
        rows = tuple(tuple(map(Cell, each.texts(money))) for each in self.designs)
        return Table(header, rows, tuple(asdict(each) for each in self.designs), self.notes)


def plan_scores(
    designs: AnyDesign | Iterable[AnyDesign],
    split: Split | None = None,
    *,
    like: Ranks | Scoreable | None = None,
    metric: AnyMetric = "ndcg@10",
    users: int | None = None,
    error: float | None = None,
    cost_per_score: float | None = None,
    rng: Rng = 0,
) -> ScorePlan:
    """Return how many scores each design needs, and how precisely it estimates a metric, before any score is computed.

    How many candidates a design draws until enough is known depends on how well the scorer ranks, which only a pilot
    can show: rank some users first, and pass their ranks. With a `store`, the scores of the pilot are reused.

    Parameters
    ----------
    designs : SamplingDesign, str or int, or a list of them
        As for `truerank.rank_sampled`; ranking all candidates is always planned as well.
    split : Split, optional
        What will be ranked. Without it, users like those of `like`.
    like : Ranks, or scorer, optional
        Ranks of a pilot, exact or sampled; or a fast recommender that may rank about as well. By default items are
        ranked by their popularity in the training data, and the range extends from a scorer that knows nothing to a
        perfect one; otherwise it holds the number of scores in 95 % of cases if the scorer ranks like these.
    metric : str, Metric or function
        If it names no estimator, the recommended one is used.
    users : int, optional
        How many users will be ranked, all by default.
    error : float, optional
        Target for `PlannedScores.error`: a design that decides the top is planned with the largest `beyond`, hence the
        fewest scores, that reaches the target; if none does, with the smallest.
    cost_per_score : float, optional
        What a score costs, in any currency.
    rng : int or numpy.random.Generator
        Seed of the draws.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> pilot = tr.Ranks.from_ranks(np.random.default_rng(0).geometric(0.01, size=100), n=1_000)
    >>> plan = tr.plan_scores([100, "inverse(2)"], like=pilot, users=500, cost_per_score=0.001)
    >>> [(each.design, each.scores < 60_000, each.determined) for each in plan.designs]
    [('all candidates', False, True), ('uniform(100)', True, False), ('inverse', True, True)]
    >>> plan = tr.plan_scores("inverse(decide=10)", like=pilot, users=2_000, metric="recall@10", error=0.025)
    >>> print(plan.designs[1].design)
    inverse(decide=10, beyond=0.3)
    """
    generator, asked = as_rng(rng), as_metric(metric)
    pilot, notes = _pilot(split, like, generator)
    n_users = _number(split, pilot, users)
    if cost_per_score is not None and not 0 <= as_number(cost_per_score) < math.inf:
        raise InputError(f"`cost_per_score` must be a number from 0, got {cost_per_score!r}.")
    if error is not None and not 0 < as_number(error) < math.inf:
        raise InputError(f"`error` must be a number above 0, got {error!r}.")
    several = [designs] if isinstance(designs, AnyDesign) else as_list("designs", designs)
    future = _like(pilot, n_users, generator)
    n_pilot = None if like is None else len(pilot)
    cost, wanted = (math.nan if each is None else each for each in (cost_per_score, error))
    work = _Work(future, asked, cost, wanted, n_pilot, generator)
    chosen = [as_design(each) for each in several]
    return ScorePlan(n_users, (work.exact(), *map(work.row, chosen)), (*notes, *_doubts(chosen)))


def _pilot(split: Split | None, like: Any, rng: np.random.Generator) -> tuple[Ranks, tuple[str, ...]]:
    """Return exact ranks, or ones compatible with a sampled pilot, and a note on what they rest on."""
    if isinstance(like, Ranks):
        if like.depth is not None:
            raise InputError("`like` must be ranks among all or sampled candidates, but these were cut.")
        if like.design is None:
            return like, ()
        return next(plausible_ranks(like, rng=rng)), (
            "the pilot is sampled: figures rest on a smooth law of its ranks",
        )
    if split is None:
        raise InputError("give a `split`, or the ranks of a pilot as `like`.")
    if like is not None:
        return rank(like, split), ()
    return rank(Popularity().fit(split.train), split), (
        "expected as if items were ranked by popularity; rank some users first and give their ranks as `like`",
    )


def _number(split: Split | None, pilot: Ranks, users: int | None) -> int:
    if split is not None:
        check_kind("split", split, Split)
    if users is not None:
        check_whole("users", users)
    most = len(pilot) if split is None else int(np.count_nonzero(np.diff(split.test.indptr)))
    if not len(pilot) or not most:
        raise InputError("there are no held-out items to plan for.")
    return most if users is None else users if split is None else min(users, most)


def _like(pilot: Ranks, n_users: int, rng: np.random.Generator) -> Ranks:
    """Return the ranks of `n_users` users: those of the pilot, or others drawn from them."""
    if n_users == len(pilot):
        return pilot
    drawn = pilot[rng.integers(len(pilot), size=n_users)]
    return dataclasses.replace(drawn, ids=np.arange(n_users))


@dataclass(frozen=True)
class _Work:
    """Ranks as they may turn out, and the computations on them."""

    ranks: Ranks
    metric: Metric
    cost: float
    error: float
    n_pilot: int | None
    rng: np.random.Generator

    def exact(self) -> PlannedScores:
        total = int(self.ranks.n_candidates.sum())
        return self._planned(_ALL, (total, total, total), [self.ranks])

    def row(self, design: SamplingDesign) -> PlannedScores:
        """Return the plan of a design or, if a target error is given, of its cheapest variant that reaches it."""
        several = [design] if math.isnan(self.error) else design.variants()
        planned = map(self._row, several)
        found = next(planned)
        while found.error > self.error and (better := next(planned, None)) is not None:
            found = better
        return found

    def _row(self, design: SamplingDesign) -> PlannedScores:
        if isinstance(design, SequentialDesign):
            return self._planned(str(design), self._range(design), self._drawn(design))
        total = len(self.ranks) * design.size + self.ranks.above.size
        return self._planned(str(design), (total, total, total), self._drawn(design) if _has_law(design) else [])

    def _drawn(self, design: SamplingDesign) -> list[Ranks]:
        return [design.draw(self.ranks, rng=self.rng) for _ in range(_ERRORS)]

    def _range(self, design: SequentialDesign) -> tuple[int, int, int]:
        counts = np.array([n_scored(design, self.ranks, self.rng) for _ in range(_DRAWS)])
        expected = float(counts.sum(axis=1).mean())
        if self.n_pilot is None:
            low, high = (float(n_scored(design, one, self.rng).sum()) for one in _extremes(self.ranks, self.rng))
        else:
            users = counts.shape[1]  # other users, and another pilot, would have had other numbers
            error = _NORMAL * math.sqrt(float(counts.var()) * (users + users**2 / self.n_pilot))
            low, high = max(expected - error, 0.0), min(expected + error, float(self.ranks.n_candidates.sum()))
        return round(expected), round(min(low, expected)), round(max(high, expected))

    def _planned(self, name: str, scores: tuple[int, int, int], samples: Sequence[Ranks]) -> PlannedScores:
        cost = self.cost * scores[0]
        if not samples:
            return PlannedScores(name, *scores, cost, str(self.metric), math.nan, False)
        found = [estimate(sampled, self._estimated(sampled)) for sampled in samples]
        widths = [high - low for low, high in (one.confidence_interval() for one in found)]
        determined = 2 * sum(one.determined for one in found) > len(found)
        return PlannedScores(name, *scores, cost, found[0].metric, float(np.mean(widths)) / 2, determined)

    def _estimated(self, sampled: Ranks) -> AnyMetric:
        """Return the metric, estimated by a smooth law where the sampled one would describe the sample only."""
        plain = self.metric.estimated is self.metric
        if sampled.design is None or sampled.design.needs_estimator or not plain or self.metric.unbiased(sampled):
            return self.metric
        return f"{self.metric}~smooth"


def _has_law(design: SamplingDesign) -> bool:
    try:
        design.law("a plan")
    except InputError:
        return False
    return True


def n_scored(design: SequentialDesign, ranks: Ranks, rng: np.random.Generator) -> Ints:
    """Return how many scores `rank_sampled` asks for: relevant items, and candidates up to the end of a batch.

    Examples
    --------
    >>> from truerank.sampling.designs import InverseSampling
    >>> n_scored(InverseSampling(1), Ranks.from_ranks([1, 90], n=100), np.random.default_rng(0)).tolist()
    [100, 17]
    """
    drawn = design.draw(ranks, rng=rng).n_scored - ranks.n_relevant
    ends = batch_ends(int(drawn.max(initial=1)))
    most: Floats | Ints = ranks.draws if design.cap is None else np.minimum(ranks.draws, design.cap)
    return np.minimum(ends[np.searchsorted(ends, drawn)], most) + ranks.n_relevant


def _extremes(ranks: Ranks, rng: np.random.Generator) -> Sequence[Ranks]:
    """Return the ranks of a scorer that knows nothing, and those of a perfect one."""
    by_chance = np.floor(rng.random(ranks.above.size) * (ranks.item_irrelevant + 1)).astype(np.int64)
    order = np.lexsort((by_chance, ranks.instance))
    none = np.zeros_like(ranks.above)
    return [
        dataclasses.replace(ranks, above=above, tied=none, grades=None, same_score=None, items=None)
        for above in (by_chance[order], none)
    ]


def _doubts(designs: Sequence[SamplingDesign]) -> tuple[str, ...]:
    if not any(isinstance(each, HeadFirst) for each in designs):
        return ()
    return ("head-first is planned in a random order; with a proxy it takes fewer scores",)
