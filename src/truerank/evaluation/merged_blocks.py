"""What is needed of blocks of values to compare recommenders, in a form that merges: instances may be anywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats
from truerank.evaluation.bounded_differences import PairedBounds
from truerank.evaluation.candidate_sampling import sampling_variance
from truerank.evaluation.differences import Difference
from truerank.evaluation.intervals import Interval
from truerank.evaluation.paired_differences import Block, Facts, Task, described_difference
from truerank.evaluation.paired_moments import PairedMoments
from truerank.evaluation.paired_tests import LikelihoodOutcome, Pair


@dataclass(frozen=True, eq=False)
class MergedBlock:
    """Blocks of one group and metric, for different instances.

    Attributes
    ----------
    name : str
        The metric, with the estimator that was taken.
    moments : PairedMoments
    sampling : array of shape (n_recommenders, n_recommenders)
    biased : bool
    ends : Interval
        As in `Block`.
    bounds : PairedBounds or None
        Of the exact differences; None: the values need no bounds.
    """

    name: str
    moments: PairedMoments
    sampling: Floats
    biased: bool
    ends: Interval
    bounds: PairedBounds | None

    @classmethod
    def of(cls, block: Block, task: Task) -> MergedBlock:
        """Return what the instances of a block contribute."""
        moments = PairedMoments.of(block.values, task.pairs, block.weights)
        name, bounds = task.metrics[block.metric], _bounds(block, task)
        return cls(name, moments, block.sampling, block.biased, block.ends, bounds)

    def __add__(self, other: MergedBlock) -> MergedBlock:
        return MergedBlock(
            self.name,
            self.moments + other.moments,
            self.sampling + other.sampling,
            self.biased or other.biased,
            Interval(min(self.ends.low, other.ends.low), max(self.ends.high, other.ends.high)),
            None if self.bounds is None or other.bounds is None else self.bounds + other.bounds,
        )

    def difference(self, task: Task, group: str, metric: int, place: int) -> Difference:
        """Return the difference of the pair at a place of the task."""
        pair, units, means = task.pairs[place], self.moments.units[place], self.moments.means
        largest = self.ends.high - self.ends.low
        facts = Facts(
            means=(float(means[pair[0]]), float(means[pair[1]])),
            difference=float(self.moments.differences[place]) if self.moments.n else math.nan,
            standard_error=self.moments.standard_error(place),
            sampling_error=self._sampling_error(pair, task.same_candidates),
            n=self.moments.n,
            n_undefined=self.moments.n_undefined,
            n_units=self.moments.n,
            biased=self.biased,
            largest=largest,
        )
        exact = None if self.bounds is None else self.bounds.outcome(place, pair)
        return described_difference(task, group, metric, pair, facts, LikelihoodOutcome(units, largest), exact)

    def _sampling_error(self, pair: Pair, same_candidates: bool) -> float:
        """Return the error of a difference over samples of candidates; 0 if ranks are exact."""
        total = self.moments.covariances(pair) * self.moments.n if same_candidates else None
        variance = sampling_variance(self.sampling[np.ix_(pair, pair)], total)
        return math.sqrt(variance) / (float(self.moments.weights[0]) or math.nan)


def _bounds(block: Block, task: Task) -> PairedBounds | None:
    if block.bounds is None:
        return None
    kept = np.flatnonzero(block.defined)
    return PairedBounds.of([None if each is None else each.take(kept) for each in block.bounds], task.pairs)
