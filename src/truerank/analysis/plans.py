"""How much it takes until the order of two recommenders comes out right."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice, repeat

import numpy as np

from truerank.analysis.planned_differences import Planned, by_draws, by_law, unsampled
from truerank.corrections.plausible_ranks import plausible_ranks
from truerank.corrections.reading import AnyMetric, as_metrics
from truerank.display.tables import Cell, Table, Tabular
from truerank.errors import InputError
from truerank.evaluation.comparisons import compare
from truerank.evaluation.differences import Difference
from truerank.evaluation.matching import matched
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks, check_ranks, n_named
from truerank.sampling.designs import Rng, SamplingDesign
from truerank.sampling.registry import AnyDesign, as_design
from truerank.sampling.uniform import UniformSampling

SIZES = (10, 30, 100, 300, 1000)
"""Sample sizes to look at by default."""

# exact pilots that are drawn for a sampled one
_PLAUSIBLE = 3
# differences of means that are nothing but rounding
_ROUNDING = 1e-12
_NO_ORDER = "there is no order to bring out, since both are equally good on these users."


@dataclass(frozen=True)
class PlannedDesign:
    """What one way to evaluate can show about the order of two recommenders.

    Attributes
    ----------
    metric : str
    design : str
        How candidates are sampled.
    m : int or None
        Candidates sampled for each user; None if their number is not fixed.
    scores : float
        Irrelevant candidates that are scored for each user, on average.
    difference : float
        Expected difference of the means, the second recommender less the first.
    right : bool or None
        Whether it has the sign of the exact difference. If not, more users make it worse. None: there is no order,
        since both recommenders are equally good on these users.
    probability : float
        That the order on these users comes out right in one run; NaN if there is none.
    users : float
        Users, like those of the pilot, that bring the order out right with the wanted probability; infinite if none do.
    repetitions : float
        Independent runs on the users of the pilot, averaged, that do so; infinite if none do.
    """

    metric: str
    design: str
    m: int | None
    scores: float
    difference: float
    right: bool | None
    probability: float
    users: float
    repetitions: float


@dataclass(frozen=True)
class EnoughCandidates:
    """How many uniformly sampled candidates a metric needs; None: more than there are, or there is no order.

    Attributes
    ----------
    metric : str
    ordered : bool
        Whether there is an order: the exact difference is not 0.
    right_from : int or None
        Smallest m from which on the expected order is right: more users, or more runs, would bring it out.
    enough : int or None
        Smallest m from which on one run on the users of the pilot brings it out with the wanted probability.
    """

    metric: str
    ordered: bool
    right_from: int | None
    enough: int | None


@dataclass(frozen=True, repr=False)
class Plan(Tabular):
    """What it takes to order two recommenders by several metrics and ways to evaluate."""

    recommenders: tuple[str, str]
    probability: float
    users: int
    designs: tuple[PlannedDesign, ...]
    sizes: tuple[EnoughCandidates, ...]
    notes: tuple[str, ...] = ()

    def to_table(self) -> Table:
        """Return a row per metric and way to evaluate."""
        first, second = self.recommenders
        header = ("metric", "candidates", "scores per user", f"{second} - {first}", "right order")
        rows = tuple(
            (
                Cell(each.metric),
                Cell(each.design),
                Cell(f"{each.scores:,.0f}"),
                Cell(f"{each.difference:+.5f}"),
                Cell("no order" if each.right is None else f"{each.probability:.1%}"),
                Cell(_count(each.users)),
                Cell(_count(each.repetitions)),
            )
            for each in self.designs
        )
        records = tuple(asdict(each) for each in self.designs)
        return Table((*header, "users needed", "runs needed"), rows, records, self.notes)

    @property
    def conclusions(self) -> tuple[str, ...]:
        """What to do, in plain words."""
        return (
            *(self._of_users(each) for each in self.designs if each.m is None),
            *map(self._of_candidates, self.sizes),
        )

    @property
    def _wanted(self) -> str:
        return f"{100 * self.probability:g} %"

    def _of_users(self, each: PlannedDesign) -> str:
        way = f"{each.metric} with {each.design}"
        if each.right is None:
            return f"{way}: {_NO_ORDER}"
        if not each.right:
            return f"{way}: the wrong order is expected, and more users or runs only confirm it."
        return f"{way}: {_count(each.users)} users bring out the order with a probability of {self._wanted}."

    def _of_candidates(self, each: EnoughCandidates) -> str:
        if not each.ordered:
            return f"{each.metric} with sampled candidates: {_NO_ORDER}"
        if each.right_from is None:
            return f"{each.metric}: no number of sampled candidates brings out the order; rank all of them."
        sampled = "candidate" if each.right_from == 1 else "candidates"
        start = f"{each.metric}: the expected order is right from {each.right_from:,} sampled {sampled} on"
        if each.enough is None:
            return f"{start}, but one run on these {self.users:,} users is not enough with any number of them."
        run = f"in one run on these {self.users:,} users"
        return f"{start}; {each.enough:,} bring it out with {self._wanted} {run}."


def _count(number: float) -> str:
    return f"{int(number):,}" if math.isfinite(number) else "never"


def plan(
    ranks: Mapping[str, Ranks],
    metrics: AnyMetric | Iterable[AnyMetric],
    *,
    sizes: Iterable[int] = SIZES,
    designs: AnyDesign | Iterable[AnyDesign] = (),
    replace: bool = False,
    probability: float = 0.95,
    rng: Rng = None,
) -> Plan:
    """Return how many users, or candidates and runs, bring out the order of two recommenders.

    The ranks of a pilot say what the metrics, sampled or not, would be. From exact ranks and under uniform sampling,
    their expectation and variance over samples are exact; otherwise they are found by repeated draws. Other users are
    supposed to be like those of the pilot, both recommenders to see samples of their own, and means to be normal.

    Parameters
    ----------
    ranks : dict of name to Ranks
        Two recommenders on the same users: exact ranks, or sampled ones. For the latter exact ranks are drawn from what
        the sample leaves open, given a smooth law of all ranks.
    metrics : list of str, Metric or function (or one of them)
        For instance ``["ndcg@10", "ndcg@10~bv(0.1)"]``; a metric without correction is also planned without sampling.
    sizes : iterable of int
        Numbers of candidates to sample for each user, uniformly; sizes that some user does not have are left out.
    designs : iterable of SamplingDesign or str (or one of them)
        Other designs to look at, for instance ``[tr.InverseSampling(2)]`` or ``"inverse(2)"``, with the recommended
        estimators.
    replace : bool
        Whether candidates are sampled with replacement.
    probability : float
        Wanted probability that the order comes out as the exact metric has it.
    rng : int or numpy.random.Generator, optional
        Seed of the draws.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> rng = np.random.default_rng(0)
    >>> old, new = rng.geometric(0.02, size=300), rng.geometric(0.03, size=300)
    >>> pilot = {"old": tr.Ranks.from_ranks(old, n=1_000), "new": tr.Ranks.from_ranks(new, n=1_000)}
    >>> found = tr.plan(pilot, "ndcg@10", sizes=[100])
    >>> [(each.design, each.right) for each in found.designs]
    [('all candidates', True), ('uniform(100)', True)]
    """
    chosen = as_metrics(metrics)
    if n_named(ranks) != 2 or not chosen:
        given = f"{n_named(ranks)} and {len(chosen)}"
        raise InputError(f"a plan needs exactly two recommenders, by name, and at least one metric, got {given}.")
    check_ranks(*ranks.values())
    if not 0.5 < probability < 1.0:
        raise InputError(f"`probability` must lie between 0.5 and 1, got {probability}.")
    same, notes = matched(ranks)
    work = _Work.of(same, chosen, replace, probability, np.random.default_rng(rng))
    usable = [size for size in dict.fromkeys(sizes) if replace or size <= work.most]
    by_size = [work.uniform(size) for size in usable]
    others = [work.drawn(as_design(each)) for each in ([designs] if isinstance(designs, AnyDesign) else designs)]
    names = tuple(same)
    return Plan(
        (names[0], names[1]),
        probability,
        len(same[names[0]]),
        (*work.without_sampling(), *(each for row in (*by_size, *others) for each in row)),
        tuple(work.enough(metric, usable) for metric in chosen if usable and not metric.pools_instances),
        (*notes, *work.notes, *_doubts(same, work)),
    )


def _doubts(ranks: Mapping[str, Ranks], work: _Work) -> list[str]:
    """Return a note on each metric by which the pilot itself does not show the order that the plan supposes."""
    exact = {str(metric.estimated): metric.estimated for metric in work.metrics}
    try:
        found = compare(ranks, list(exact.values())).differences
    except InputError:  # such as a sampled recommender beside an exact one
        return []
    pairs = zip(found, exact.values(), strict=True)
    return [note for each, metric in pairs if (note := _doubt(each, work.difference(metric)))]


def _doubt(found: Difference, supposed: float) -> str:
    gain = -supposed if found.lower_is_better else supposed
    if supposed == 0 or found.finding.winner == (found.recommender if gain > 0 else found.baseline):
        return ""
    uncertain = "so the order of its means, which the plan supposes, is uncertain"
    return f"{found.metric}: the verdict on the pilot is {found.verdict!r}, {uncertain}"


@dataclass(frozen=True, eq=False)
class _Work:
    """Exact pilots, and what is asked of them."""

    pilots: list[dict[str, Ranks]]
    metrics: tuple[Metric, ...]
    replace: bool
    probability: float
    rng: np.random.Generator
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls, ranks: Mapping[str, Ranks], metrics: tuple[Metric, ...], replace: bool, probability: float,
        rng: np.random.Generator,
    ) -> _Work:  # fmt: skip
        """Return the work on a pilot, for which several exact ones are drawn if it is sampled."""
        if any(one.depth is not None for one in ranks.values()):
            raise InputError("a plan needs whole rankings, but the ranks of this pilot are cut.")
        if all(one.design is None for one in ranks.values()):
            return cls([dict(ranks)], metrics, replace, probability, rng, ())
        drawn = [
            repeat(one, _PLAUSIBLE) if one.design is None else islice(plausible_ranks(one, rng=rng), _PLAUSIBLE)
            for one in ranks.values()
        ]
        pilots = [dict(zip(ranks, pair, strict=True)) for pair in zip(*drawn, strict=True)]
        note = "the pilot is sampled: all figures, and the order itself, rest on a smooth law fitted to its ranks"
        return cls(pilots, metrics, replace, probability, rng, (note,))

    @property
    def most(self) -> int:
        """Candidates that every user has."""
        pilot = self.pilots[0].values()
        return min(int(one.draws[one.n_relevant > 0].min(initial=2**62)) for one in pilot)

    def without_sampling(self) -> list[PlannedDesign]:
        plain = [metric for metric in self.metrics if metric.estimated is metric]
        return [self._row(metric, "all candidates", None, self._exact(metric)) for metric in plain]

    def uniform(self, size: int) -> list[PlannedDesign]:
        """Return what a number of uniformly sampled candidates shows, by each metric."""
        design = UniformSampling(size, self.replace)
        found = self._by_law([metric for metric in self.metrics if not metric.pools_instances], design)
        found |= self._by_draws([metric for metric in self.metrics if metric.pools_instances], design)
        return [self._row(metric, str(design), size, found[str(metric)]) for metric in self.metrics]

    def drawn(self, design: SamplingDesign) -> list[PlannedDesign]:
        """Return what another design shows, by each metric that is not corrected from a table of counts."""
        fitting = [metric for metric in self.metrics if metric.estimated is metric or metric.pools_instances]
        found = self._by_draws(fitting, design)
        return [self._row(metric, str(design), None, found[str(metric)]) for metric in fitting]

    def enough(self, metric: Metric, sizes: Sequence[int]) -> EnoughCandidates:
        """Return how many candidates are enough, looking at some sizes first and then between them."""
        most = self.most

        @cache
        def row(size: int) -> PlannedDesign:
            design = UniformSampling(size, self.replace)
            return self._row(metric, str(design), size, self._by_law([metric], design)[str(metric)])

        if self.difference(metric) == 0:
            return EnoughCandidates(str(metric), False, None, None)
        return EnoughCandidates(
            str(metric),
            True,
            smallest_size(lambda size: bool(row(size).right), sizes, most),
            smallest_size(lambda size: row(size).probability >= self.probability, sizes, most),
        )

    def difference(self, metric: Metric) -> float:
        """Return the exact difference on the users of the pilot; 0 if it is nothing but rounding."""
        mean = self._exact(metric).mean
        return 0.0 if abs(mean) < _ROUNDING else mean

    def _exact(self, metric: Metric) -> Planned:
        return Planned.mean_of([unsampled(pilot, metric.estimated) for pilot in self.pilots])

    def _by_law(self, metrics: Sequence[Metric], design: SamplingDesign) -> dict[str, Planned]:
        found = (by_law(pilot, metrics, design) for pilot in self.pilots) if metrics else ()
        rows = zip(*found, strict=True)
        return {str(metric): Planned.mean_of(row) for metric, row in zip(metrics, rows, strict=True)}

    def _by_draws(self, metrics: Sequence[Metric], design: SamplingDesign) -> dict[str, Planned]:
        return {
            str(metric): Planned.mean_of([by_draws(pilot, metric, design, self.rng) for pilot in self.pilots])
            for metric in metrics
        }

    def _row(self, metric: Metric, design: str, m: int | None, found: Planned) -> PlannedDesign:
        from scipy.special import ndtr, ndtri

        exact = self.difference(metric)
        right = found.mean * exact > 0
        gain = abs(found.mean) if right else -abs(found.mean)
        error = math.sqrt(found.of_sampling / max(found.n, 1))
        z = float(ndtri(self.probability))
        users = z**2 * (found.of_users + found.of_sampling) / gain**2 if right else math.inf
        runs = z**2 * error**2 / gain**2 if right else math.inf
        return PlannedDesign(
            metric=str(metric),
            design=design,
            m=m,
            scores=found.scores,
            difference=found.mean,
            right=right if exact else None,
            probability=math.nan if not exact else float(ndtr(gain / error)) if error > 0 else float(right),
            users=math.ceil(users) if math.isfinite(users) else math.inf,
            repetitions=max(math.ceil(runs), 1) if math.isfinite(runs) else math.inf,
        )


def smallest_size(good: Callable[[int], bool], sizes: Sequence[int], most: int) -> int | None:
    """Return the smallest size from which on it is good, at the sizes that are looked at; None if it never is.

    The given sizes are looked at first, then twice the largest, and so on up to `most`, and last, by bisection, sizes
    between the last bad one and the next.

    Examples
    --------
    >>> smallest_size(lambda size: size >= 37, [10, 30, 100], 1_000)
    37
    >>> smallest_size(lambda size: size >= 500, [10, 30, 100], 1_000), smallest_size(lambda size: False, [10], 20)
    (500, None)
    """
    looked = sorted(sizes)
    while not good(looked[-1]):
        if looked[-1] >= most:
            return None
        looked.append(min(2 * looked[-1], most))
    low = max((size for size in looked if not good(size)), default=0)
    high = min(size for size in looked if size > low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high
