"""Values of several recommenders on the same instances -> their differences, tested pair by pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Bools, Floats, Ints
from truerank.errors import InputError
from truerank.evaluation.differences import Difference
from truerank.evaluation.group_parts import Part, values_by_part
from truerank.evaluation.paired_tests import Outcome, Pair, PairedTest, Sample
from truerank.evaluation.per_instance import checked_terms
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks


@dataclass(frozen=True)
class Task:
    """What to compare, and how to judge it."""

    names: tuple[str, ...]
    metrics: tuple[Metric, ...]
    pairs: list[tuple[int, int]]
    level: float
    margin: float | None


@dataclass(frozen=True, eq=False)
class Block:
    """The values of one group and metric: a row per instance, a column per recommender."""

    group: str
    metric: int
    values: Floats
    weights: Floats
    clusters: Ints | None

    @property
    def defined(self) -> Bools:
        return np.asarray(~np.isnan(self.values).any(axis=1))


def blocks_of(
    ranks: Mapping[str, Ranks], metrics: Sequence[Metric], parts: Mapping[str, list[Part]], clusters: Ints | None
) -> list[Block]:
    """Return the values of all groups and metrics, group by group."""
    first = next(iter(parts.values()))
    for name, own in parts.items():
        if any(not np.array_equal(one.rows, other.rows) for one, other in zip(first, own, strict=True)):
            raise InputError(f"recommenders must be asked for the same items, but those of {name!r} are others.")
    columns = {
        (at, name): values_by_part(one, checked_terms(one, metric), parts[name])
        for at, metric in enumerate(metrics)
        for name, one in ranks.items()
    }
    return [
        Block(
            part.name,
            at,
            np.column_stack([columns[at, name][place] for name in ranks]),
            part.weights,
            None if clusters is None else clusters[part.rows],
        )
        for place, part in enumerate(first)
        for at in range(len(metrics))
    ]


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
    metric, n, means = task.metrics[block.metric], int(block.defined.sum()), sample.means()
    return Difference(
        recommender=task.names[pair[0]],
        baseline=task.names[pair[1]],
        metric=str(metric),
        group=block.group,
        mean=float(means[columns[0]]),
        baseline_mean=float(means[columns[1]]),
        difference=sample.difference(columns),
        standard_error=sample.standard_error(columns),
        n=n,
        n_undefined=len(block.values) - n,
        n_units=sample.sizes.size,
        skewness=sample.skewness(columns),
        p_value=outcome.p_value,
        adjusted_p_value=outcome.p_value,
        level=task.level,
        margin=task.margin,
        lower_is_better=metric.lower_is_better,
        outcome=outcome,
    )
