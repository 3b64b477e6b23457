"""The values of several recommenders on the same instances, and what they say about each pair, in parts that add up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np

from truerank.core.checks import Bools, Floats, InputError, Ints
from truerank.core.ranks import Ranks
from truerank.estimators.corrected import Assumption
from truerank.estimators.pooled import plausible_ranks, sampled_again
from truerank.evaluation.crossed_runs import RunVariance, with_runs
from truerank.evaluation.differences import Difference
from truerank.evaluation.exact_ranges import (
    BoundedOutcome,
    BoundValues,
    UnknownOutcome,
    bounded_outcome,
    bounds_of_runs,
    unbiased_bounds,
)
from truerank.evaluation.intervals import Interval, Moments, attainable, attainable_of_items, attainable_with
from truerank.evaluation.paired_tests import Outcome, Pair, PairedSample, PairedTest
from truerank.evaluation.per_instance import Part, checked_terms, values_by_part
from truerank.metrics.definitions import Metric


@dataclass(frozen=True)
class Task:
    """What to compare, and how to judge it."""

    names: tuple[str, ...]
    pairs: list[tuple[int, int]]
    level: float
    margin: float | None
    same_candidates: bool
    lower_is_better: tuple[bool, ...]


Key = tuple[str, int, int]
"""The name of a group, the place of a metric, and that of a pair."""


@dataclass(frozen=True, eq=False)
class PairedPart:
    """What some instances show about the difference of two recommenders.

    Attributes
    ----------
    metric : str
        The metric with the estimator that was used.
    differences : Moments
        Moments of the differences of independent units.
    totals : array of length 2
        Sums of the values of both recommenders.
    n : int
        Instances where the metric is defined for all recommenders.
    n_undefined : int
        Other instances.
    hidden : float
        Error of the difference that the spread of the values does not show.
    covariances : array of shape (2, 2), or None
        Covariances of the values, if both recommenders see the same candidates.
    sampling : array of shape (2, 2)
        Covariances of the totals over samples of candidates.
    biased, ends
        As in `PairedValues`.
    better : array of length 2
        Units for whom either recommender has the larger value; NaN if ranks are sampled.
    runs : RunVariance
        How much the difference would change with other runs.
    outcome : Outcome
        Outcome of the test of the values.
    exact : Outcome or None
        What is known about the exact difference; None if the values themselves show it.
    """

    metric: str
    differences: Moments
    totals: Floats
    n: int
    n_undefined: int
    hidden: float
    covariances: Floats | None
    sampling: Floats
    biased: bool
    ends: Interval
    better: Floats
    runs: RunVariance
    outcome: Outcome
    exact: Outcome | None

    def __add__(self, other: PairedPart) -> PairedPart:
        ends = Interval(min(self.ends.low, other.ends.low), max(self.ends.high, other.ends.high))
        largest = ends.high - ends.low
        return PairedPart(
            self.metric,
            self.differences + other.differences,
            self.totals + other.totals,
            self.n + other.n,
            self.n_undefined + other.n_undefined,
            math.hypot(self.n * self.hidden, other.n * other.hidden) / max(self.n + other.n, 1),
            _merged_covariances(self, other),
            self.sampling + other.sampling,
            self.biased or other.biased,
            ends,
            self.better + other.better,
            self.runs,
            self.outcome.merged(other.outcome, largest),
            None if self.exact is None or other.exact is None else self.exact.merged(other.exact, largest),
        )

    @property
    def sampling_error(self) -> float:
        """Error of the difference over samples of candidates; 0 if ranks are exact."""
        total = None if self.covariances is None else self.covariances * self.n
        return math.sqrt(sampling_variance(self.sampling, total)) / (self.differences.weight or math.nan)

    def difference(self, task: Task, key: Key) -> Difference:
        """Return the difference of the instances of all parts."""
        group, metric, place = key
        difference, sampling_error = self.differences.mean, self.sampling_error
        mean, baseline_mean = (self.totals / (self.differences.weight or math.nan)).tolist()
        one, other = task.pairs[place]
        decisive, lower_is_better = self.exact or self.outcome, task.lower_is_better[metric]
        p_value = decisive.p_value
        better_off, worse_off = (self.better[::-1] if lower_is_better else self.better) / (
            self.differences.n or math.nan
        )
        return Difference(
            recommender=task.names[one],
            baseline=task.names[other],
            metric=self.metric,
            group=group,
            mean=mean,
            baseline_mean=baseline_mean,
            difference=difference,
            standard_error=math.hypot(self.differences.standard_error, self.hidden, math.sqrt(self.runs.error)),
            sampling_error=sampling_error,
            run_error=math.sqrt(self.runs.error),
            order_probability=math.nan if self.biased else _order_probability(difference, sampling_error),
            n=self.n,
            n_undefined=self.n_undefined,
            n_units=self.differences.n,
            better_off=float(better_off),
            worse_off=float(worse_off),
            p_value=p_value,
            adjusted_p_value=p_value,
            level=task.level,
            adjusted_level=task.level,
            margin=task.margin,
            lower_is_better=lower_is_better,
            bounded=self.exact is not None,
            outcome=decisive,
            expectation=self.outcome,
            largest=self.ends.high - self.ends.low,
        )


def _merged_covariances(one: PairedPart, other: PairedPart) -> Floats | None:
    if one.covariances is None or other.covariances is None:
        return None
    if not (one.n and other.n):
        return one.covariances if one.n else other.covariances
    gap, n = other.totals / other.n - one.totals / one.n, one.n + other.n
    own = [part.covariances * (part.n - 1) for part in (one, other) if part.covariances is not None and part.n > 1]
    return np.asarray((sum(own) + np.outer(gap, gap) * one.n * other.n / n) / (n - 1))


def paired_parts(
    entrants: Mapping[str, Entrant], asked: Sequence[Metric], task: Task, test: PairedTest, assume: Assumption
) -> dict[Key, PairedPart]:
    """Return what all instances show; metrics that are defined on the same instances of a group share resamples."""
    names = [shared_name(entrants, at, metric) for at, metric in enumerate(asked)]
    _check_same_items(entrants)
    several = list(entrants.values())
    places = {part.name: place for place, part in enumerate(several[0].parts[0])}
    blocks = [block for at in range(len(asked)) for block in _paired_values(at, several, assume)]
    blocks.sort(key=lambda block: places[block.group])
    together: dict[tuple[str, bytes], list[PairedValues]] = {}
    for block in blocks:
        together.setdefault((block.group, block.defined.tobytes()), []).append(block)
    found = dict(part for own in together.values() for part in parts_of_blocks(task, own, test, names))
    keys = [(block.group, block.metric, place) for block in blocks for place in range(len(task.pairs))]
    return {key: found[key] for key in keys}


def parts_of_blocks(
    task: Task, blocks: Sequence[PairedValues], test: PairedTest, names: Sequence[str]
) -> Iterator[tuple[Key, PairedPart]]:
    """Yield what each pair of each block shows; all blocks have the same instances."""
    width, defined, clusters = len(task.names), blocks[0].defined, blocks[0].clusters
    sample = PairedSample.of(
        np.hstack([block.values for block in blocks])[defined],
        blocks[0].weights[defined],
        None if clusters is None else clusters[defined],
        np.concatenate([block.hidden for block in blocks]),
        np.repeat([block.ends.high - block.ends.low for block in blocks], width),
    )
    columns = [(at * width + one, at * width + other) for at in range(len(blocks)) for one, other in task.pairs]
    totals = sample.sums.sum(axis=0)
    wanted = [(block, place) for block in blocks for place in range(len(task.pairs))]
    for (block, place), own, outcome in zip(wanted, columns, test.outcomes(sample, columns), strict=True):
        pair, n = task.pairs[place], int(defined.sum())
        mean, exact = sample.difference(own), block.exact_outcome(pair)
        runs, bounds = block.run_variances(pair)
        yield (
            (block.group, block.metric, place),
            PairedPart(
                metric=names[block.metric],
                differences=Moments.of(mean, sample.deviations(own), sample.sizes),
                totals=totals[list(own)],
                n=n,
                n_undefined=defined.size - n,
                hidden=sample.hidden_error(own),
                covariances=block.covariances(pair) if task.same_candidates else None,
                sampling=block.sampling[np.ix_(pair, pair)],
                biased=block.biased,
                ends=block.ends,
                better=np.full(2, math.nan) if block.sampled else sample.better(own),
                runs=runs,
                outcome=with_runs(outcome, Interval(mean, mean), sample.sizes.size, runs),
                exact=None if exact is None else with_runs(exact, exact.means, sample.sizes.size, bounds),
            ),
        )


@dataclass(frozen=True, eq=False)
class PairedValues:
    """The values of one group and metric: a row per instance, a column per recommender.

    Attributes
    ----------
    group : str
    metric : int
    values : array of shape (n_instances, n_recommenders)
        Means over the runs.
    weights : array of length n_instances
    clusters : array of length n_instances, or None
    sampling : array of shape (n_recommenders, n_recommenders)
        Covariances of the columns' totals over samples of candidates; 0 if ranks are exact.
    hidden : array of length n_recommenders
        Error of the columns' means that the spread of the values does not show.
    biased : bool
        Whether the values are of sampled ranks, and neither corrected nor unbiased.
    ends : Interval
        The smallest and largest values that an instance could have; those that were seen, if that is not known.
    bounds : tuple of BoundValues or None
        For each recommender, bounds of the exact metric, or None if it has none; None: the values need no bounds.
    sampled : bool
        Whether any ranks are sampled.
    runs : tuple of arrays of shape (n_runs, n_instances)
        Values of the runs of each recommender.
    run_bounds : tuple of arrays of shape (2, n_runs, n_instances), or None
        Lower and upper bounds of them, if there are several runs and bounds.
    """

    group: str
    metric: int
    values: Floats
    weights: Floats
    clusters: Ints | None
    sampling: Floats
    hidden: Floats
    biased: bool
    ends: Interval
    bounds: tuple[BoundValues | None, ...] | None
    sampled: bool = False
    runs: tuple[Floats, ...] = ()
    run_bounds: tuple[Floats, ...] | None = None

    @property
    def defined(self) -> Bools:
        """Whether an instance has a value for all recommenders."""
        return np.asarray(~np.isnan(self.values).any(axis=1))

    def covariances(self, pair: Pair) -> Floats:
        """Return the covariances of the values of two recommenders; NaN below two instances."""
        defined = self.values[self.defined][:, pair]
        return np.cov(defined.T) if len(defined) > 1 else np.full((2, 2), math.nan)

    def run_variances(self, pair: Pair) -> tuple[RunVariance, RunVariance]:
        """Return how much the difference varies with the runs: that of the values, and the largest that bounds show."""
        if not self.runs:
            return RunVariance(), RunVariance()
        found = sum((self._run_variance(self.runs[at]) for at in pair), RunVariance())
        if self.run_bounds is None:
            return found, found
        ends = [[self._run_variance(end) for end in self.run_bounds[at]] for at in pair]
        largest = (max(own, key=lambda each: each.error) for own in ends)
        return found, sum(largest, RunVariance())

    def _run_variance(self, runs: Floats) -> RunVariance:
        defined, clusters = self.defined, self.clusters
        if len(runs) < 2:
            return RunVariance()
        kept = None if clusters is None else clusters[defined]
        sample = PairedSample.of(runs.T[defined], self.weights[defined], kept)
        return RunVariance.of(sample.sums.T, sample.sizes)

    def exact_outcome(self, pair: Pair) -> BoundedOutcome | UnknownOutcome | None:
        """Return what is known about the exact difference; None if the values themselves show it."""
        if self.bounds is None:
            return None
        kept = np.flatnonzero(self.defined)
        one, other = (None if each is None else each.take(kept) for each in (self.bounds[at] for at in pair))
        return bounded_outcome(one, other, None if self.clusters is None else self.clusters[kept])


def _check_same_items(entrants: Mapping[str, Entrant]) -> None:
    first = next(iter(entrants.values())).parts[0]
    for name, each in entrants.items():
        for own in each.parts:
            if any(not _alike(one, other) for one, other in zip(first, own, strict=True)):
                raise InputError(f"recommenders must have the same relevant items, but those of {name!r} differ.")


def _alike(one: Part, other: Part) -> bool:
    """Whether two parts have the same instances, which weigh the same."""
    same = np.array_equal(one.rows, other.rows)
    return same and (one.inverse is None or np.allclose(one.weights, other.weights, rtol=1e-9))


def _paired_values(at: int, several: Sequence[Entrant], assume: Assumption) -> Iterator[PairedValues]:
    """Yield the values of one metric, group by group."""
    values = [each.values(each.metrics[at]) for each in several]
    clusters = several[0].runs[0].clusters
    hidden = np.array([each.hidden_error(at) for each in several])
    bounds = [each.bounds(at, assume) for each in several] if any(each.is_bounded(at) for each in several) else None
    biased = any(run.design is not None and each.metrics[at].biased(run) for each in several for run in each.runs)
    whole = [attainable(each.runs[0], each.metrics[at]) for each in several]
    run_bounds = [each.run_bounds(at, assume) for each in several] if bounds is not None else None
    for place, part in enumerate(several[0].parts[0]):
        runs = tuple(own[place] for own in values)
        yield PairedValues(
            part.name,
            at,
            np.column_stack([own.mean(axis=0) for own in runs]),
            part.weights,
            None if clusters is None else clusters[part.rows],
            _sampling(at, place, several, runs),
            hidden[:, place],
            biased,
            _ends(runs, part, [_of_part(end, each, at, place) for end, each in zip(whole, several, strict=True)]),
            None if bounds is None else tuple(_taken(each, part) for each in bounds),
            any(run.design is not None for each in several for run in each.runs),
            runs,
            None if run_bounds is None else tuple(own[:, :, part.rows] for own in run_bounds),
        )


def _sampling(at: int, place: int, several: Sequence[Entrant], runs: Sequence[Floats]) -> Floats:
    """Return the covariances of totals over samples, of a metric in a part: from the runs if there are several."""
    numbers = {len(own) for own in runs}
    if len(numbers) == 1 and numbers != {1} and any(run.design is not None for each in several for run in each.runs):
        return covariances_of_totals(np.stack(runs, axis=2))
    own = [
        float(each.sampling_variances[at, place])
        if len(each.runs) == 1 or not each.is_sampled
        else float(covariances_of_totals(values[:, :, None])[0, 0])
        for each, values in zip(several, runs, strict=True)
    ]
    return np.diag(own)


def _of_part(whole: Interval | None, entrant: Entrant, at: int, place: int) -> Interval | None:
    """Return what a recommender can attain in a part, given what it can attain in whole instances."""
    part, run = entrant.parts[0][place], entrant.runs[0]
    if part.items is None:
        return whole
    return attainable_of_items(run[part.rows], entrant.metrics[at], *part.extremes)


def _ends(runs: Sequence[Floats], part: Part, ends: Sequence[Interval | None]) -> Interval:
    """Return what any of the recommenders could attain, widened to what was seen."""
    values = np.concatenate(runs) / part.weights
    known = np.array([end for each in ends if each is not None for end in each])
    return attainable_with(None, np.append(known, values[~np.isnan(values)])) or Interval(0.0, 0.0)


def _taken(bounds: BoundValues | None, part: Part) -> BoundValues | None:
    """Return the bounds of a part; there are none for a part of the items of instances."""
    return None if bounds is None or part.items is not None else bounds.take(part.rows)


@dataclass(frozen=True, eq=False)
class Entrant:
    """A recommender of a comparison.

    Attributes
    ----------
    runs : tuple of Ranks
    metrics : tuple of Metric
        As they are evaluated on these runs: with the recommended estimator where one is needed.
    parts : tuple of lists of Part
        The parts of the groups in each run.
    """

    runs: tuple[Ranks, ...]
    metrics: tuple[Metric, ...]
    parts: tuple[list[Part], ...]

    @property
    def sampled(self) -> bool:
        """Whether its candidates are sampled by a design that determines how much its values vary."""
        return all(
            run.design is not None
            and (run.design.keeps_unbiased or (run.drawn is not None and not run.design.unequal_chances))
            for run in self.runs
        )

    @property
    def is_sampled(self) -> bool:
        """Whether any of its runs is among sampled candidates."""
        return any(run.design is not None for run in self.runs)

    def values(self, metric: Metric) -> list[Floats]:
        """Return for each part the values of its instances: an array of shape (n_runs, n_instances)."""
        own = [
            values_by_part(run, checked_terms(run, metric), parts)
            for run, parts in zip(self.runs, self.parts, strict=True)
        ]
        return [np.array(columns) for columns in zip(*own, strict=True)]

    @cached_property
    def hidden_errors(self) -> Floats:
        """Errors of means that the spread of the values does not show: of shape (n_metrics, n_runs, n_parts)."""
        found = np.zeros((len(self.metrics), len(self.runs), len(self.parts[0])))
        for at, metric in enumerate(self.metrics):
            if metric.pools_instances:
                found[at] = [
                    [metric.hidden_error(run[part.rows] if part.name else run) for part in parts]
                    for run, parts in zip(self.runs, self.parts, strict=True)
                ]
        return found

    def hidden_error(self, at: int) -> Floats:
        """Return for each part the hidden error of the mean of a metric over the runs."""
        return np.asarray(np.sqrt(np.square(self.hidden_errors[at]).sum(axis=0)) / len(self.runs))

    @cached_property
    def sampling_variances(self) -> Floats:
        """The variance of totals of the first run over samples, by metric and part; 0 if ranks are exact."""
        if not self.sampled:
            unknown = any(run.design is not None for run in self.runs)
            return np.full((len(self.metrics), len(self.parts[0])), np.nan if unknown else 0.0)
        return variances_of_totals(self.runs[0], self.metrics, self.parts[0], self.hidden_errors[:, 0])

    def is_bounded(self, at: int) -> bool:
        """Whether values of a metric are of sampled ranks, and their expectation is not the exact one."""
        return self.runs[0].design is not None and not self.metrics[at].unbiased(self.runs[0])

    def bounds(self, at: int, assume: Assumption) -> BoundValues | None:
        """Return bounds of the exact metric for each instance, from all runs; None if the design allows none."""
        if not self.is_bounded(at):
            return unbiased_bounds(self.runs, self.metrics[at], assume)
        bounded = self.sampled or all(run.design is not None and run.design.unequal_chances for run in self.runs)
        return bounds_of_runs(self.runs, self.metrics[at], assume) if bounded else None

    def run_bounds(self, at: int, assume: Assumption) -> Floats:
        """Return lower and upper bounds for each run and instance; values are their own bounds if there is no bias.

        An array of shape (2, n_runs, n_instances).
        """
        alone = (replace(self, runs=(run,), parts=(own,)) for run, own in zip(self.runs, self.parts, strict=True))
        found = [each.bounds(at, assume) for each in alone]
        ends = [np.zeros((2, len(self.runs[0]))) if each is None else np.array(each[:2]) for each in found]
        return np.stack(ends, axis=1)


def shared_name(entrants: Mapping[str, Entrant], at: int, asked: Metric) -> str:
    """Return the name of a metric, or refuse biased values that are not among the same kind of candidates."""
    designs = {name: each.runs[0].design for name, each in entrants.items()}
    if len(set(designs.values())) > 1 and any(each.metrics[at].biased(each.runs[0]) for each in entrants.values()):
        candidates = ", ".join(f"{name!r} {design or 'among all candidates'}" for name, design in designs.items())
        raise InputError(f"{asked} can only be compared among candidates chosen in one way, but it is {candidates}.")
    taken = {str(each.metrics[at]) for each in entrants.values()}
    return taken.pop() if len(taken) == 1 else str(asked)


# pairs of samples are drawn until this many values, over all instances, are compared; at least 2 for each instance
_VALUES = 20_000

_MOST = 50


def variances_of_totals(ranks: Ranks, metrics: Sequence[Metric], parts: Sequence[Part], hidden: Floats) -> Floats:
    """Return the variance, over samples of candidates, of the total of each metric over the instances of each part.

    It is kept with the ranks, for comparisons with others or at another level.

    Parameters
    ----------
    ranks : Ranks
        One sampled run, by a uniform design.
    metrics : sequence of Metric
    parts : sequence of Part
    hidden : array of shape (n_metrics, n_parts)
        Errors of the means that the spread of the values does not show, which metrics that pool the instances state.

    Returns
    -------
    array of shape (n_metrics, n_parts)

    Examples
    --------
    >>> import truerank as tr
    >>> from truerank.evaluation.per_instance import split_by
    >>> exact = tr.Ranks.from_ranks(np.random.default_rng(0).geometric(0.01, 3_000).clip(1, 1_000), n=1_000)
    >>> sampled = tr.UniformSampling(100).draw(exact, rng=0)
    >>> found = variances_of_totals(sampled, [tr.metric("ap")], split_by(sampled, None), np.zeros((1, 1)))[0, 0]
    >>> true = tr.risk(exact, "ap", 100).variance.sum()
    >>> bool(abs(found / true - 1) < 0.1)
    True
    """
    found = np.square(hidden * [part.weights.sum() for part in parts])
    plain = [at for at, metric in enumerate(metrics) if not metric.pools_instances]
    if plain:
        own = tuple(metrics[at] for at in plain)
        key = (_drawn_variances, own, tuple(part.key for part in parts))
        found[plain] = ranks.fits.get(key, lambda: _drawn_variances(ranks, own, parts))
    return found


def _drawn_variances(ranks: Ranks, metrics: Sequence[Metric], parts: Sequence[Part]) -> Floats:
    rng, found = np.random.default_rng(0), np.zeros((len(metrics), len(parts)))
    rounds = int(np.clip(np.ceil(_VALUES / max(len(ranks), 1)), 2, _MOST))
    for exact in islice(plausible_ranks(ranks, rng=rng), rounds):
        one, other = (sampled_again(exact, ranks, rng=rng) for _ in range(2))
        for place, metric in enumerate(metrics):
            found[place] += _half_squares(metric, one, other, parts)
    return found / rounds


def _half_squares(metric: Metric, one: Ranks, other: Ranks, parts: Sequence[Part]) -> Floats:
    """Return half the squared differences of two runs, summed over each part."""
    try:
        pairs = zip(*(values_by_part(run, metric.terms(run), parts) for run in (one, other)), strict=True)
    except InputError:
        # draws that end at a cap have no unbiased estimate, even if none did in the run that is compared
        return np.full(len(parts), np.nan)
    return np.array([np.nansum(np.square(a - b)) / 2 for a, b in pairs])


def covariances_of_totals(runs: Floats) -> Floats:
    """Return the covariances, over samples, of the totals of mean values over several runs.

    Parameters
    ----------
    runs : array of shape (n_runs, n_instances, n_recommenders)
        Values of runs with different seeds; the j-th runs of all recommenders may share their candidates.

    Examples
    --------
    >>> covariances_of_totals(np.array([[[1.0, 1.0]], [[3.0, 5.0]]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    gaps = runs - runs.mean(axis=0)
    products = np.einsum("jua,jub->ab", *2 * [np.nan_to_num(gaps)])
    return np.asarray(products / (len(runs) - 1) / len(runs))


def sampling_variance(own: Floats, total: Floats | None) -> float:
    r"""Return the variance over samples of a total difference, or the most that it can be.

    If both recommenders see the same candidates, their common variation cancels. Several runs show how much that is.
    Single runs only bound it: with variances over samples :math:`V_a, V_b` and between instances :math:`B_a, B_b`, the
    covariance of the values is at most :math:`C + \sqrt{B_a B_b}`, where C is the unknown covariance over samples. So
    :math:`V_a + V_b - 2 C` is at most the variance of the differences minus :math:`(\sqrt{B_a} - \sqrt{B_b})^2`. It is
    also at most :math:`V_a + V_b`, since C is assumed not to be negative.

    Parameters
    ----------
    own : array of shape (2, 2)
        Covariances of the two totals over samples; 0 off the diagonal for single runs, which do not show them.
    total : array of shape (2, 2), optional
        Covariances of the totals over samples and instances, if both recommenders see the same candidates.

    Examples
    --------
    >>> sampling_variance(np.eye(2), None)
    2.0
    >>> sampling_variance(np.eye(2), np.array([[3.0, 2.5], [2.5, 3.0]]))
    1.0
    """
    if total is None or own[0, 1] != 0:
        return float(own[0, 0] + own[1, 1] - 2 * own[0, 1])
    variances = np.diag(own)
    between = np.sqrt(np.maximum(np.diag(total) - variances, 0.0))
    most = total[0, 0] + total[1, 1] - 2 * total[0, 1] - (between[0] - between[1]) ** 2
    return float(np.clip(most, 0.0, variances.sum()))


def _order_probability(difference: float, error: float) -> float:
    """Return the probability that a difference has the sign that it shows, under a flat prior."""
    from scipy.special import ndtr

    if error > 0:
        return float(ndtr(abs(difference) / error))
    return math.nan if math.isnan(error) else 1.0
