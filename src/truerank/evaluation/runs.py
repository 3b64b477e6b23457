"""The recommenders of a comparison: one run each, or several with different seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truerank.arrays import Floats
from truerank.corrections.recommended import recommended
from truerank.errors import InputError
from truerank.evaluation.candidate_sampling import variances_of_totals
from truerank.evaluation.group_parts import Part, values_by_part
from truerank.evaluation.per_instance import checked_terms
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks

Runs = Ranks | Sequence[Ranks]
"""The ranks of a recommender: one run, or several with different seeds."""


def labelled(ranks: Mapping[str, Runs]) -> tuple[dict[str, Ranks], dict[str, list[str]]]:
    """Return all runs by a label, and the labels of each recommender's runs.

    Examples
    --------
    >>> run = Ranks.from_ranks([1, 2], n=9)
    >>> labelled({"A": [run, run], "B": [run, run]})[1]
    {'A': ['A', 'A, run 2'], 'B': ['B', 'B, run 2']}
    """
    several = {name: [one] if isinstance(one, Ranks) else list(one) for name, one in ranks.items()}
    if len(numbers := {len(own) for own in several.values()}) > 1 or 0 in numbers:
        found = ", ".join(f"{name!r} has {len(own)}" for name, own in several.items())
        raise InputError(f"all recommenders must have the same number of runs, at least one, but {found}.")
    labels = {
        name: [name if at == 0 else f"{name}, run {at + 1}" for at in range(len(own))] for name, own in several.items()
    }
    return {label: run for name, own in several.items() for label, run in zip(labels[name], own, strict=True)}, labels


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

    @classmethod
    def of(cls, runs: Sequence[Ranks], metrics: Sequence[Metric], parts: Sequence[list[Part]]) -> Entrant:
        """Return a recommender from its runs, the metrics that are asked for, and the groups of each run."""
        return cls(tuple(runs), tuple(recommended(metric, runs[0]) for metric in metrics), tuple(parts))

    @property
    def sampled(self) -> bool:
        """Whether its candidates are sampled by a design that tells how much its values vary."""
        return all(run.design is not None and (run.drawn is not None or run.design.keeps_unbiased) for run in self.runs)

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

    def sampling_variances(self) -> Floats:
        """Return the variance of totals of the first run over samples, by metric and part; 0 if ranks are exact."""
        if not self.sampled:
            unknown = any(run.design is not None for run in self.runs)
            return np.full((len(self.metrics), len(self.parts[0])), np.nan if unknown else 0.0)
        return variances_of_totals(self.runs[0], self.metrics, self.parts[0], self.hidden_errors[:, 0])


def shared_name(entrants: Mapping[str, Entrant], at: int, asked: Metric) -> str:
    """Return what a metric is called, or refuse biased values that are not among the same kind of candidates."""
    designs = {name: each.runs[0].design for name, each in entrants.items()}
    if len(set(designs.values())) > 1 and any(each.metrics[at].biased(each.runs[0]) for each in entrants.values()):
        candidates = ", ".join(f"{name!r} {design or 'among all candidates'}" for name, design in designs.items())
        raise InputError(f"{asked} can only be compared among candidates chosen in one way, but it is {candidates}.")
    taken = {str(each.metrics[at]) for each in entrants.values()}
    return taken.pop() if len(taken) == 1 else str(asked)
