"""`plan`: what a study must be like to show the order of two recommenders."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import islice, repeat

import numpy as np

from truerank.analysis.risks import risks
from truerank.core.checks import Floats, InputError, Rng, as_list, as_number, as_rng, counted
from truerank.core.ranks import Ranks, check_ranks, n_named
from truerank.core.tables import Cell, Record, Table, Tabular
from truerank.estimators.corrected import AnyMetric, as_metrics, recommended
from truerank.estimators.pooled import plausible_ranks
from truerank.evaluation.comparisons import Runs, compare, matched
from truerank.evaluation.crossed_runs import RunVariance
from truerank.evaluation.differences import Difference
from truerank.evaluation.per_instance import values
from truerank.metrics.definitions import Metric
from truerank.sampling.designs import AnyDesign, SamplingDesign, as_design

# samples that are drawn where moments have no closed form, and where estimators state their own error
_DRAWS = 20
_POOLED_DRAWS = 3


@dataclass(frozen=True)
class Planned:
    """The difference of two recommenders, the second minus the first, on users like those of a pilot.

    Attributes
    ----------
    mean : float
        Expected difference.
    of_users : float
        Variance, over users, of a user's expected difference.
    of_sampling : float
        Variance, over samples of candidates, of one user's difference.
    n : int
        Users of the pilot where the metric is defined.
    scores : float
        Irrelevant candidates that are scored for each user, on average.
    """

    mean: float
    of_users: float
    of_sampling: float
    n: int
    scores: float

    @classmethod
    def of(cls, expected: Floats, variance: Floats, scores: float) -> Planned:
        """Return the difference, given the expected one of each user and its variance over samples."""
        where = ~np.isnan(expected)
        own, n = expected[where], int(where.sum())
        if n < 2:
            return cls(float(own.mean()) if n else math.nan, math.nan, math.nan, n, scores)
        return cls(float(own.mean()), float(own.var(ddof=1)), float(variance[where].mean()), n, scores)

    @classmethod
    def mean_of(cls, parts: Sequence[Planned]) -> Planned:
        """Return the mean of several differences, such as those of exact pilots compatible with a sampled one."""
        columns = np.array([[each.mean, each.of_users, each.of_sampling, each.scores] for each in parts]).mean(axis=0)
        mean, of_users, of_sampling, scores = columns.tolist()
        return cls(mean, of_users, of_sampling, parts[0].n, scores)


def _unsampled(pilot: Mapping[str, Ranks], metric: Metric) -> Planned:
    """Return the difference if all candidates are ranked."""
    old, new = (values(one, metric) for one in pilot.values())
    scores = np.mean([one.draws[one.n_relevant > 0].mean() for one in pilot.values()])
    return Planned.of(new - old, np.zeros(old.size), float(scores))


def _by_draws(pilot: Mapping[str, Ranks], metric: Metric, design: SamplingDesign, rng: np.random.Generator) -> Planned:
    """Return the difference from repeated draws, for designs and estimators whose moments have no closed form."""
    first = [design.draw(one, rng=rng) for one in pilot.values()]
    taken = [recommended(metric, run) for run in first]
    pooled = any(each.pools_instances for each in taken)
    more = range(1, _POOLED_DRAWS if pooled else _DRAWS)
    runs = [first, *([design.draw(one, rng=rng) for one in pilot.values()] for _ in more)]
    scores = float(np.mean([(run.n_scored - run.n_relevant).mean() for pair in runs for run in pair]))
    found = _of_runs(np.array([values(new, metric) - values(old, metric) for old, new in runs]), scores)
    if not pooled:
        return found
    # the estimator states the error of its mean over samples
    stated = sum(each.hidden_error(run) ** 2 for each, run in zip(taken, first, strict=True))
    return replace(found, of_sampling=found.n * stated)


def _of_runs(differences: Floats, scores: float) -> Planned:
    """Return the moments from an array of runs by users."""
    defined = differences[:, ~np.isnan(differences).any(axis=0)]
    count, n = defined.shape
    if n < 2:
        return Planned(math.nan, math.nan, math.nan, n, scores)
    of_sampling = float(defined.var(axis=0, ddof=1).mean())
    of_users = max(float(defined.mean(axis=0).var(ddof=1)) - of_sampling / count, 0.0)
    return Planned(float(defined.mean()), of_users, of_sampling, n, scores)


SIZES = (10, 30, 100, 300, 1000)
"""Candidates to sample uniformly, by default."""

# exact pilots that are drawn for a sampled one
_PLAUSIBLE = 3
# differences of means that are nothing but rounding
_ROUNDING = 1e-12
_NO_ORDER = "there is no order to show: both are equally good on these users."


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
        Expected difference of the means, the second recommender minus the first.
    right : bool or None
        Whether it has the sign of the exact difference. If not, more users only confirm the wrong order. None: there is
        no order, since both recommenders are equally good on these users.
    probability : float
        Probability that one run shows the correct order on these users; NaN if there is none.
    users : float
        Number of users like those of the pilot whose means are in the correct order with the target probability;
        infinite if there is none.
    repetitions : float
        Number of independent runs on the users of the pilot whose average does so; infinite if none does.
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

    def texts(self) -> list[str]:
        """Return what a row of the table shows."""
        right = "no order" if self.right is None else f"{self.probability:.1%}"
        numbers = [f"{self.scores:,.0f}", f"{self.difference:+.5f}", right]
        return [self.metric, self.design, *numbers, _count(self.users), _count(self.repetitions)]


@dataclass(frozen=True)
class EnoughCandidates:
    """How many uniformly sampled candidates a metric needs; None: more than there are, or there is no order.

    Attributes
    ----------
    metric : str
    design : str
        How they are sampled.
    ordered : bool
        Whether there is an order: the exact difference is not 0.
    right_from : int or None
        Smallest m from which the expected order is correct: more users, or more runs, would show it.
    enough : int or None
        Smallest m from which one run on the users of the pilot shows it with the target probability.
    """

    metric: str
    design: str
    ordered: bool
    right_from: int | None
    enough: int | None


@dataclass(frozen=True, repr=False)
class Plan(Tabular[Record]):
    """What it takes to order two recommenders by several metrics and ways to evaluate."""

    recommenders: tuple[str, str]
    probability: float
    users: int
    designs: tuple[PlannedDesign, ...]
    sizes: tuple[EnoughCandidates, ...]
    notes: tuple[str, ...] = ()

    def _names(self) -> list[tuple[str, ...]]:
        return [(each.metric, each.design) for each in self.designs]

    def to_table(self) -> Table:
        """Return a row per metric and way to evaluate."""
        first, second = self.recommenders
        header = ("metric", "candidates", "scores per user", f"{second} - {first}", "right order")
        rows = tuple(tuple(map(Cell, each.texts())) for each in self.designs)
        records = tuple(asdict(each) for each in self.designs)
        return Table((*header, "users needed", "runs needed"), rows, records, self.notes)

    @property
    def conclusions(self) -> tuple[str, ...]:
        """What to do, in plain words."""
        unsized = (each for each in self.designs if each.m is None)
        return (*map(self._of_users, unsized), *map(self._of_candidates, self.sizes))

    @property
    def _target(self) -> str:
        return f"{100 * self.probability:g} %"

    def _of_users(self, each: PlannedDesign) -> str:
        way = f"{each.metric} with {each.design}"
        if each.right is None:
            return f"{way}: {_NO_ORDER}"
        if not each.right:
            return f"{way}: the wrong order is expected, and more users or runs only confirm it."
        if math.isinf(each.users):
            return f"{way}: no number of users shows the order."
        return f"{way}: {_count(each.users)} users show the order with a probability of {self._target}."

    def _of_candidates(self, each: EnoughCandidates) -> str:
        name = each.metric if each.design == "uniform" else f"{each.metric} with {each.design}"
        if not each.ordered:
            return f"{name} with sampled candidates: {_NO_ORDER}"
        if each.right_from is None:
            return f"{name}: no number of sampled candidates shows the order; rank all of them."
        sampled = "candidate" if each.right_from == 1 else "candidates"
        start = f"{name}: the expected order is correct from {each.right_from:,} sampled {sampled} on"
        if each.enough is None:
            return f"{start}, but one run on these {self.users:,} users is not enough, however many are sampled."
        run = f"in one run on these {self.users:,} users"
        return f"{start}; {each.enough:,} show it with a probability of {self._target} {run}."


def _count(number: float) -> str:
    return f"{int(number):,}" if math.isfinite(number) else "never"


def plan(
    ranks: Mapping[str, Runs],
    metrics: AnyMetric | Iterable[AnyMetric],
    design: AnyDesign | Iterable[AnyDesign] = SIZES,
    *,
    probability: float = 0.95,
    rng: Rng = None,
) -> Plan:
    """Return how many users, or candidates and runs, it takes until means show the order of two recommenders.

    The metrics, sampled or not, are predicted from the ranks of a pilot. For exact ranks and uniform sampling, their
    expectation and variance over samples are exact; otherwise they are found by repeated draws. It is assumed that
    other users are like those of the pilot, that each recommender sees its own samples, and that means are normal.

    Parameters
    ----------
    ranks : dict of name to Ranks, or to a list of Ranks
        Two recommenders on the same users: exact ranks, or sampled ones. For sampled ones, exact ranks compatible with
        the sample are drawn, given a smooth law of all ranks. Lists hold exact ranks of runs with different seeds;
        the plan then says how many users are needed with how many runs of each recommender, for new users and new runs.
    metrics : list of str, Metric or function (or one of them)
        For instance ``["ndcg@10", "ndcg@10~bv(0.1)"]``; a metric without correction is also planned without sampling.
    design : list of SamplingDesign, str or int (or one of them)
        Ways to sample candidates: ``100`` or ``"uniform(100, replace)"``, uniformly; ``"inverse(2)"``, with the
        recommended estimators. Designs that need more candidates than some user has are left out.
    probability : float
        Target probability that the means shown have the order of the exact metric. A note says how many times as many
        users a test takes to find it.
    rng : int or numpy.random.Generator, optional
        Seed of the draws.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> rng = np.random.default_rng(0)
    >>> old, new = rng.geometric(0.02, size=300), rng.geometric(0.03, size=300)
    >>> pilot = {"old": tr.Ranks.from_ranks(old, n=1_000), "new": tr.Ranks.from_ranks(new, n=1_000)}
    >>> found = tr.plan(pilot, "ndcg@10", 100)
    >>> [(each.design, each.right) for each in found.designs]
    [('all candidates', True), ('uniform(100)', True)]
    >>> seeds = {name: [tr.Ranks.from_ranks(rng.geometric(own, size=300), n=1_000) for own in (start, start + 0.01)]
    ...          for name, start in {"old": 0.02, "new": 0.04}.items()}
    >>> [(each.design, each.users) for each in tr.plan(seeds, "ndcg@10").designs[2:4]]
    [('all candidates, 3 runs each', 17), ('all candidates, 5 runs each', 10)]
    """
    chosen = as_metrics(metrics)
    if n_named(ranks) != 2 or not chosen:
        given = f"{n_named(ranks)} and {len(chosen)}"
        raise InputError(f"a plan needs exactly two recommenders, by name, and at least one metric, got {given}.")
    runs = {name: [own] if isinstance(own, Ranks) else list(own) for name, own in ranks.items()}
    check_ranks(*(run for own in runs.values() for run in own))
    if not 0.5 < as_number(probability) < 1.0:
        raise InputError(f"`probability` must lie between 0.5 and 1, got {probability}.")
    if any(not isinstance(own, Ranks) for own in ranks.values()):
        return _plan_of_runs(runs, chosen, design, probability)
    several = [design] if isinstance(design, AnyDesign) else as_list("design", design, "sampling designs")
    same, notes = matched({name: own for name, (own, *_) in runs.items()})
    work = _Work.of(same, chosen, rng, probability)
    asked = list(dict.fromkeys(map(as_design, several)))
    designs = [each for each in asked if work.allows(each)]
    if tuple(several) != SIZES:
        notes += tuple(f"{each} is left out: some user has fewer candidates" for each in asked if each not in designs)
    sizes: dict[SamplingDesign, list[int]] = {}
    for each in designs:
        if each.keeps_unbiased:
            sizes.setdefault(replace(each, m=None), []).append(each.size)
    rows = [row for each in designs for row in work.rows(each)]
    first, second = same
    return Plan(
        (first, second),
        probability,
        len(same[first]),
        (*work.without_sampling(), *rows),
        tuple(work.enough(each, *kind) for kind in sizes.items() for each in chosen if not each.pools_instances),
        (*notes, *work.notes, *_doubts(same, work.metrics, work.difference), _meaning(probability)),
    )


_RUNS = (1, 2, 3, 5, 10, 20)
"""Runs of each recommender that are planned."""


def _plan_of_runs(
    runs: Mapping[str, Sequence[Ranks]], metrics: Sequence[Metric], design: object, probability: float
) -> Plan:
    """Return how many users are needed with some numbers of runs, from several runs of each recommender."""
    if design is not SIZES or any(run.design is not None for own in runs.values() for run in own):
        raise InputError("a plan of several runs needs exact ranks, and no `design`.")
    if max(map(len, runs.values())) < 2:
        raise InputError("a plan of several runs needs at least two runs of one of the recommenders.")
    labels = {(name, at): run for name, own in runs.items() for at, run in enumerate(own)}
    same, notes = matched({str(label): run for label, run in labels.items()})
    pilot = [[same[str((name, at))] for at in range(len(own))] for name, own in runs.items()]
    parts = {str(metric): _Parts.of(pilot, metric) for metric in metrics}
    first, second = runs
    rows = [parts[str(metric)].row(metric, count, probability) for metric in metrics for count in _RUNS]
    notes = (*notes, *_doubts(runs, metrics, lambda metric: parts[str(metric)].mean), _meaning(probability))
    return Plan((first, second), probability, len(next(iter(same.values()))), tuple(rows), (), notes)


@dataclass(frozen=True)
class _Parts:
    """The difference of two recommenders, the second minus the first, and its variances.

    Attributes
    ----------
    mean : float
    of_users, of_runs, rest : float
        Variances over users, over runs of both recommenders, and the remaining one of a user in a run of each.
    n : int
        Users of the pilot.
    scores : float
        Irrelevant candidates of each user, on average.
    """

    mean: float
    of_users: float
    of_runs: float
    rest: float
    n: int
    scores: float

    @classmethod
    def of(cls, runs: Sequence[Sequence[Ranks]], metric: Metric) -> _Parts:
        found = [np.array([values(run, metric) for run in own]) for own in runs]
        defined = ~np.isnan(np.concatenate(found)).any(axis=0)
        first, second = (own[:, defined] for own in found)
        users = second.mean(axis=0) - first.mean(axis=0)
        parts = [RunVariance.of(own, np.ones(users.size)) for own in (first, second)]
        by_chance = sum(part.within / len(own) for part, own in zip(parts, (first, second), strict=True))
        both = parts[0] + parts[1]
        scores = float(np.mean([run.draws[run.n_relevant > 0].mean() for own in runs for run in own]))
        of_users = max(float(users.var(ddof=1)) - by_chance, 0.0) if users.size > 1 else math.nan
        mean = float(users.mean()) if users.size else math.nan
        return cls(mean, of_users, max(both.between, 0.0), both.within, users.size, scores)

    def row(self, metric: Metric, runs: int, probability: float) -> PlannedDesign:
        """Return what this number of runs of each recommender shows."""
        from scipy.special import ndtr, ndtri

        z, gain = float(ndtri(probability)), abs(self.mean) if abs(self.mean) >= _ROUNDING else 0.0
        here = self.of_runs + self.rest / max(self.n, 1)  # one run of each on the users of the pilot
        left = (gain / z) ** 2 - self.of_runs / runs
        users = max(_ceil((self.of_users + self.rest / runs) / left), 1) if left > 0 else math.inf
        needed = max(_ceil(here * (z / gain) ** 2), 1) if gain else math.inf
        sure = (float(ndtr(gain / math.sqrt(here / runs))) if here > 0 else 1.0) if gain else math.nan
        way = f"all candidates, {counted(runs, 'run', 'runs')} each"
        return PlannedDesign(
            str(metric), way, None, self.scores, self.mean, True if gain else None, sure, users, needed
        )


def _doubts(ranks: Mapping[str, Runs], metrics: Sequence[Metric], assumed: Callable[[Metric], float]) -> list[str]:
    """Return a note on each metric by which the pilot itself does not show the order that the plan assumes."""
    exact = {str(metric.estimated): metric.estimated for metric in metrics}
    try:
        found = compare(ranks, list(exact.values())).differences
    except InputError:  # such as a sampled recommender beside an exact one
        return []
    pairs = zip(found, exact.values(), strict=True)
    return [note for each, metric in pairs if (note := _doubt(each, assumed(metric)))]


def _meaning(probability: float) -> str:
    """Return a note on what "users needed" means, and how many more it takes to find the order by a test."""
    from scipy.special import ndtri

    z = float(ndtri(probability))
    times = ((float(ndtri(0.975)) + z) / z) ** 2
    needed = f"with the users needed, means are in the correct order with a probability of {100 * probability:g} %"
    return f"{needed}; for a test at 5 % to find it as often takes at least {times:.1f} times as many"


def _doubt(found: Difference, assumed: float) -> str:
    gain = -assumed if found.lower_is_better else assumed
    if assumed == 0 or found.finding.winner == (found.recommender if gain > 0 else found.baseline):
        return ""
    uncertain = "so the order of its means, which the plan assumes, is uncertain"
    return f"{found.metric}: the verdict on the pilot is {found.verdict!r}, {uncertain}"


@dataclass(frozen=True, eq=False)
class _Work:
    """Exact pilots, and the computations on them."""

    pilots: list[dict[str, Ranks]]
    metrics: tuple[Metric, ...]
    rng: np.random.Generator
    probability: float
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, ranks: Mapping[str, Ranks], metrics: tuple[Metric, ...], rng: Rng, probability: float) -> _Work:
        """Return the work on a pilot, for which several exact ones are drawn if it is sampled."""
        generator = as_rng(rng)
        if any(one.depth is not None for one in ranks.values()):
            raise InputError("a plan needs whole rankings, but the ranks of this pilot are cut.")
        if all(one.design is None for one in ranks.values()):
            return cls([dict(ranks)], metrics, generator, probability)
        endless = [repeat(one) if one.design is None else plausible_ranks(one, rng=generator) for one in ranks.values()]
        pilots = [dict(zip(ranks, pair, strict=True)) for pair in islice(zip(*endless, strict=True), _PLAUSIBLE)]
        note = "the pilot is sampled: all figures, and the order itself, rest on a smooth law fitted to its ranks"
        return cls(pilots, metrics, generator, probability, (note,))

    @property
    def most(self) -> int:
        """Number of candidates that every user has at least."""
        pilot = self.pilots[0].values()
        return min(int(one.draws[one.n_relevant > 0].min(initial=2**62)) for one in pilot)

    def allows(self, design: SamplingDesign) -> bool:
        """Whether every user has enough candidates."""
        return not design.keeps_unbiased or not design.law("a plan").distinct or design.size <= self.most

    def without_sampling(self) -> list[PlannedDesign]:
        """Return what ranking all candidates shows, by each metric that is not corrected."""
        plain = [metric for metric in self.metrics if metric.estimated is metric]
        return [self._row(metric, "all candidates", None, self._exact(metric)) for metric in plain]

    def rows(self, design: SamplingDesign) -> list[PlannedDesign]:
        """Return what a design shows; corrections from a table of counts are for uniform ones only."""
        uniform = design.keeps_unbiased
        fitting = [each for each in self.metrics if uniform or each.estimated is each or each.pools_instances]
        found = self._by_law([each for each in fitting if uniform and not each.pools_instances], design)
        for metric in fitting:
            if str(metric) not in found:
                parts = [_by_draws(pilot, metric, design, self.rng) for pilot in self.pilots]
                found[str(metric)] = Planned.mean_of(parts)
        return [self._row(each, str(design), design.m if uniform else None, found[str(each)]) for each in fitting]

    def enough(self, metric: Metric, kind: SamplingDesign, sizes: Sequence[int]) -> EnoughCandidates:
        """Return how many candidates are enough, looking at some sizes first and then between them."""
        if self.difference(metric) == 0:
            return EnoughCandidates(str(metric), str(kind), False, None, None)

        @cache
        def row(size: int) -> PlannedDesign:
            return self._row(metric, "", size, self._by_law([metric], replace(kind, m=size))[str(metric)])

        right_from = smallest_size(lambda size: bool(row(size).right), sizes, self.most)
        enough = smallest_size(lambda size: row(size).probability >= self.probability, sizes, self.most)
        return EnoughCandidates(str(metric), str(kind), True, right_from, enough)

    def difference(self, metric: Metric) -> float:
        """Return the exact difference on the users of the pilot; 0 if it is nothing but rounding."""
        mean = self._exact(metric).mean
        return 0.0 if abs(mean) < _ROUNDING else mean

    def _exact(self, metric: Metric) -> Planned:
        """Return the difference if all candidates are ranked."""
        return Planned.mean_of([_unsampled(pilot, metric.estimated) for pilot in self.pilots])

    def _by_law(self, metrics: Sequence[Metric], design: SamplingDesign) -> dict[str, Planned]:
        """Return the differences under a uniform design, exactly; both recommenders see samples of their own."""
        if not metrics:
            return {}
        found: dict[str, list[Planned]] = {str(metric): [] for metric in metrics}
        for pilot in self.pilots:
            for a, b in zip(*(risks(one, metrics, design) for one in pilot.values()), strict=True):
                moments = b.expected - a.expected, a.variance + b.variance
                found[a.metric].append(Planned.of(*moments, float(design.size)))
        return {name: Planned.mean_of(parts) for name, parts in found.items()}

    def _row(self, metric: Metric, design: str, m: int | None, found: Planned) -> PlannedDesign:
        from scipy.special import ndtr, ndtri

        exact = self.difference(metric)
        right = found.mean * exact > 0
        gain = abs(found.mean) if right else -abs(found.mean)
        error = math.sqrt(found.of_sampling / max(found.n, 1))
        z = float(ndtri(self.probability))
        users = _ceil(z**2 * (found.of_users + found.of_sampling) / gain**2) if right else math.inf
        runs = max(_ceil(z**2 * error**2 / gain**2), 1) if right else math.inf
        surely = float(ndtr(gain / error)) if error > 0 else float(right)
        known = (right, surely) if exact else (None, math.nan)
        return PlannedDesign(str(metric), design, m, found.scores, found.mean, known[0], known[1], users, runs)


def _ceil(number: float) -> float:
    return math.ceil(number) if math.isfinite(number) else math.inf


def smallest_size(good: Callable[[int], bool], sizes: Sequence[int], most: int) -> int | None:
    """Return the smallest examined size from which `good` holds; None if it never does.

    The given sizes are examined first, then twice the largest, and so on up to `most`, and finally, by bisection, sizes
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
    return first_good(good, low, min(size for size in looked if size > low))


def first_good(good: Callable[[int], bool], low: int, high: int) -> int:
    """Return by bisection the number from which `good` holds, between a bad one and a good one."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high
