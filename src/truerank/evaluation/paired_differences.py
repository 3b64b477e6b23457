"""Values of several recommenders on the same instances -> their differences, tested pair by pair."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from truerank.arrays import Bools, Floats, Ints
from truerank.corrections.assumptions import Assumption
from truerank.errors import InputError
from truerank.evaluation.attainable_values import attainable, attainable_of_items, attainable_with
from truerank.evaluation.bounded_differences import bounded_outcome, bounds_of_runs, is_bounded
from truerank.evaluation.candidate_sampling import covariances_of_totals, sampling_variance
from truerank.evaluation.differences import Difference
from truerank.evaluation.exact_ranges import BoundValues
from truerank.evaluation.group_parts import Part
from truerank.evaluation.intervals import Interval
from truerank.evaluation.paired_tests import Outcome, Pair, PairedTest, Sample
from truerank.evaluation.runs import Entrant


@dataclass(frozen=True)
class Task:
    """What to compare, and how to judge it."""

    names: tuple[str, ...]
    metrics: tuple[str, ...]
    pairs: list[tuple[int, int]]
    level: float
    margin: float | None
    same_candidates: bool
    lower_is_better: tuple[bool, ...]


@dataclass(frozen=True)
class Compared:
    """All differences before their p-values are adjusted, with the names of the metrics and groups."""

    metrics: tuple[str, ...]
    differences: list[Difference]
    notes: tuple[str, ...]
    groups: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Block:
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
        The least and the largest value that an instance could have; those that were seen, if that is not known.
    bounds : tuple of BoundValues or None
        For each recommender bounds of the exact metric, None where there are none; None: the values need no bounds.
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

    @property
    def largest(self) -> float:
        """The largest difference that an instance could have, either way."""
        return self.ends.high - self.ends.low

    @property
    def defined(self) -> Bools:
        return np.asarray(~np.isnan(self.values).any(axis=1))

    def sampling_variance(self, pair: Pair, same_candidates: bool) -> float:
        """Return the variance over samples of the total difference."""
        defined = self.values[self.defined][:, pair]
        total = np.cov(defined.T) * len(defined) if same_candidates else None
        return sampling_variance(self.sampling[np.ix_(pair, pair)], total)

    def exact_outcome(self, pair: Pair) -> Outcome | None:
        """Return what is known of the exact difference; None if the values themselves tell it."""
        if self.bounds is None:
            return None
        kept = np.flatnonzero(self.defined)
        one, other = (None if each is None else each.take(kept) for each in (self.bounds[at] for at in pair))
        return bounded_outcome(one, other, None if self.clusters is None else self.clusters[kept])


def blocks_of(entrants: Mapping[str, Entrant], clusters: Ints | None, assume: Assumption) -> list[Block]:
    """Return the values of all groups and metrics, group by group."""
    _check_same_items(entrants)
    several = list(entrants.values())
    alone = len(several[0].runs) == 1
    variances = np.array([each.sampling_variances() for each in several]) if alone else None
    found = [
        block
        for at in range(len(several[0].metrics))
        for block in _blocks(at, several, None if variances is None else variances[:, at], clusters, assume)
    ]
    parts = len(several[0].parts[0])
    return [found[start] for place in range(parts) for start in range(place, len(found), parts)]


def _check_same_items(entrants: Mapping[str, Entrant]) -> None:
    first = next(iter(entrants.values())).parts[0]
    for name, each in entrants.items():
        for own in each.parts:
            if any(not np.array_equal(one.rows, other.rows) for one, other in zip(first, own, strict=True)):
                raise InputError(f"recommenders must be asked for the same items, but those of {name!r} are others.")


def _blocks(
    at: int, several: Sequence[Entrant], variances: Floats | None, clusters: Ints | None, assume: Assumption
) -> Iterator[Block]:
    """Yield the block of each part for one metric; `variances` are those over samples, if there is one run only."""
    values = [each.values(each.metrics[at]) for each in several]
    hidden = np.array([each.hidden_errors(each.metrics[at]) for each in several])
    bounds = _bounds(at, several, assume)
    biased = any(run.design is not None and each.metrics[at].biased(run) for each in several for run in each.runs)
    whole = [attainable(each.runs[0], each.metrics[at]) for each in several]
    for place, part in enumerate(several[0].parts[0]):
        runs = np.stack([own[place] for own in values], axis=2)
        yield Block(
            part.name,
            at,
            runs.mean(axis=0),
            part.weights,
            None if clusters is None else clusters[part.rows],
            covariances_of_totals(runs) if variances is None else np.diag(variances[:, place]),
            hidden[:, place],
            biased,
            _ends(runs, part, [_of_part(end, each, at, place) for end, each in zip(whole, several, strict=True)]),
            None if bounds is None else tuple(_taken(each, part) for each in bounds),
        )


def _of_part(whole: Interval | None, entrant: Entrant, at: int, place: int) -> Interval | None:
    """Return what a recommender can attain in a part, from what it can in whole instances."""
    part, run = entrant.parts[0][place], entrant.runs[0]
    if part.items is None:
        return whole
    return attainable_of_items(run[part.rows], entrant.metrics[at], part.counts, part.weights)


def _ends(runs: Floats, part: Part, ends: Sequence[Interval | None]) -> Interval:
    """Return what any of the recommenders could attain, with what was seen."""
    values = runs / part.weights[:, None]
    known = np.array([end for each in ends if each is not None for end in each])
    return attainable_with(None, np.append(known, values[~np.isnan(values)])) or Interval(0.0, 0.0)


def _bounds(at: int, several: Sequence[Entrant], assume: Assumption) -> list[BoundValues | None] | None:
    """Return bounds of the exact metric of all instances, for each recommender; None if they are not needed."""
    if not any(is_bounded(each.runs[0], each.metrics[at]) for each in several):
        return None
    return [bounds_of_runs(each.runs, each.metrics[at], assume) for each in several]


def _taken(bounds: BoundValues | None, part: Part) -> BoundValues | None:
    """Return the bounds of a part; there are none for a part of the items of instances."""
    return None if bounds is None or part.items is not None else bounds.take(part.rows)


def tested_differences(task: Task, blocks: Sequence[Block], test: PairedTest) -> list[Difference]:
    """Return all differences; metrics that are defined on the same instances of a group share resamples."""
    together: dict[tuple[str, bytes], list[int]] = {}
    for at, block in enumerate(blocks):
        together.setdefault((block.group, block.defined.tobytes()), []).append(at)
    found: dict[int, list[Difference]] = {}
    for own in together.values():
        found |= dict(zip(own, _tested(task, [blocks[at] for at in own], test), strict=True))
    return [each for at in range(len(blocks)) for each in found[at]]


def _tested(task: Task, blocks: Sequence[Block], test: PairedTest) -> list[list[Difference]]:
    """Return the differences of each block; all have the same instances."""
    width, defined = len(task.names), blocks[0].defined
    clusters = blocks[0].clusters
    sample = Sample.of(
        np.hstack([block.values for block in blocks])[defined],
        blocks[0].weights[defined],
        None if clusters is None else clusters[defined],
        np.concatenate([block.hidden for block in blocks]),
        np.repeat([block.largest for block in blocks], width),
    )
    columns = [(at * width + one, at * width + other) for at in range(len(blocks)) for one, other in task.pairs]
    results = list(zip(columns, test.outcomes(sample, columns), strict=True))
    size = len(task.pairs)
    return [
        [
            _difference(task, block, pair, *result, sample=sample)
            for pair, result in zip(task.pairs, results[at * size : (at + 1) * size], strict=True)
        ]
        for at, block in enumerate(blocks)
    ]


def _difference(task: Task, block: Block, pair: Pair, columns: Pair, outcome: Outcome, *, sample: Sample) -> Difference:
    n, means, exact = int(block.defined.sum()), sample.means(), block.exact_outcome(pair)
    variance = block.sampling_variance(pair, task.same_candidates)
    facts = Facts(
        means=(float(means[columns[0]]), float(means[columns[1]])),
        difference=sample.difference(columns),
        standard_error=sample.standard_error(columns),
        sampling_error=math.sqrt(variance) / sample.total,
        n=n,
        n_undefined=len(block.values) - n,
        n_units=sample.sizes.size,
        biased=block.biased,
        largest=block.largest,
    )
    return described_difference(task, block.group, block.metric, pair, facts, outcome, exact)


class Facts(NamedTuple):
    """What the values of two recommenders say of their difference; see `Difference` and `Block`."""

    means: tuple[float, float]
    difference: float
    standard_error: float
    sampling_error: float
    n: int
    n_undefined: int
    n_units: int
    biased: bool
    largest: float


def described_difference(
    task: Task, group: str, metric: int, pair: Pair, facts: Facts, outcome: Outcome, exact: Outcome | None
) -> Difference:
    """Return a difference by the outcome of a test of the values; `exact` is what is known if they only bound it."""
    decisive = exact or outcome
    return Difference(
        recommender=task.names[pair[0]],
        baseline=task.names[pair[1]],
        metric=task.metrics[metric],
        group=group,
        mean=facts.means[0],
        baseline_mean=facts.means[1],
        difference=facts.difference,
        standard_error=facts.standard_error,
        sampling_error=facts.sampling_error,
        order_probability=math.nan if facts.biased else _order_probability(facts.difference, facts.sampling_error),
        n=facts.n,
        n_undefined=facts.n_undefined,
        n_units=facts.n_units,
        p_value=decisive.p_value,
        adjusted_p_value=decisive.p_value,
        level=task.level,
        adjusted_level=task.level,
        margin=task.margin,
        lower_is_better=task.lower_is_better[metric],
        bounded=exact is not None,
        outcome=decisive,
        expectation=outcome,
        largest=facts.largest,
    )


def _order_probability(difference: float, error: float) -> float:
    """Return the probability that a difference has the sign that it shows, if all were equally likely beforehand."""
    from scipy.special import ndtr

    if error > 0:
        return float(ndtr(abs(difference) / error))
    return math.nan if math.isnan(error) else 1.0
