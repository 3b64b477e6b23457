"""The same instances of several recommenders, several runs of one, and how much their values vary over samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal, get_args

import numpy as np

from truerank.core.checks import AnyArray, Floats, check_choice
from truerank.core.errors import InputError, counted
from truerank.core.ranks import Ranks
from truerank.core.samples import Rng
from truerank.estimators.corrected import Assumption, recommended
from truerank.estimators.pooled import plausible_ranks, sampled_again
from truerank.evaluation.exact_ranges import BoundValues, bounds_of_runs, unbiased_bounds
from truerank.evaluation.groups import Groups
from truerank.evaluation.per_instance import Part, Ties, checked_terms, parts_by, untied, values_by_part
from truerank.metrics.definitions import Metric

Unmatched = Literal["refuse", "drop"]
"""What to do with instances that only some recommenders have."""
Runs = Ranks | Sequence[Ranks]
"""The ranks of a recommender: one run, or several with different seeds."""


def matched(ranks: Mapping[str, Ranks], unmatched: Unmatched = "refuse") -> tuple[dict[str, Ranks], tuple[str, ...]]:
    """Return the ranks on their common instances, in the order of the first recommender, and notes.

    Instances are matched by id, or by position if there are no ids. An id that occurs several times, as for a user with
    several sessions, is matched only if all recommenders list the same ids in the same order.

    Parameters
    ----------
    ranks : dict of name to Ranks
    unmatched : {"refuse", "drop"}
        What to do with instances that only some recommenders have: raise `InputError`, or drop and count them.

    Examples
    --------
    >>> a = Ranks.from_ranks([1, 2, 3], n=9, ids=["ann", "bob", "cyd"])
    >>> b = Ranks.from_ranks([4, 5], n=9, ids=["cyd", "ann"])
    >>> both, notes = matched({"A": a, "B": b}, "drop")
    >>> both["B"].rank.tolist(), notes
    ([5, 4], ('A: 1 instance that not all recommenders have is left out',))
    """
    check_choice("unmatched", unmatched, get_args(Unmatched))
    if any(one.ids is None for one in ranks.values()):
        return dict(ranks), _by_position(ranks)
    ids = _comparable({name: _ids(one) for name, one in ranks.items()})
    first = next(iter(ids.values()))
    notes: tuple[str, ...] = ()
    same = dict(ranks)
    if not all(np.array_equal(first, own) for own in ids.values()):
        same, notes = _by_id(ranks, ids, unmatched)
    _check_same_truth(same)
    return same, notes


def _ids(ranks: Ranks) -> AnyArray:
    return np.arange(len(ranks)) if ranks.ids is None else ranks.ids


def _comparable(ids: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return ids of one type: text, if some are text and others are numbers."""
    mixed = len({own.dtype.kind == "U" for own in ids.values()}) > 1
    return {name: own.astype(np.str_) if mixed else own for name, own in ids.items()}


def _by_position(ranks: Mapping[str, Ranks]) -> tuple[str, ...]:
    """Check that there are as many instances everywhere, and say that positions match them."""
    if any(one.ids is not None for one in ranks.values()):
        without = next(name for name, one in ranks.items() if one.ids is None)
        raise InputError(f"instances are matched by id, but the ranks of {without!r} have none.")
    sizes = {name: len(one) for name, one in ranks.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name!r} has {size}" for name, size in sizes.items())
        raise InputError(f"without ids, recommenders must have the same number of instances, but {found}.")
    _check_same_truth(ranks)
    return ("the instances have no ids and are matched by position",)


def _by_id(
    ranks: Mapping[str, Ranks], ids: Mapping[str, AnyArray], unmatched: Unmatched
) -> tuple[dict[str, Ranks], tuple[str, ...]]:
    for name, own in ids.items():
        _check_distinct(name, own)
    common = _common(ids)
    extra = {name: own[~np.isin(own, common)] for name, own in ids.items()}
    if unmatched == "refuse":
        for name, alone in extra.items():
            _check_none(name, alone)
    if common.size == 0:
        raise InputError(f"the recommenders {', '.join(map(repr, ids))} have no instance in common.")
    words = ("instance that not all recommenders have is", "instances that not all recommenders have are")
    notes = [f"{name}: {counted(alone.size, *words)} left out" for name, alone in extra.items() if alone.size]
    return {name: one[_positions(ids[name], common)] for name, one in ranks.items()}, tuple(notes)


def _check_distinct(name: str, ids: AnyArray) -> None:
    distinct, times = np.unique(ids, return_counts=True)
    if distinct.size < ids.size:
        twice = distinct[times > 1].tolist()[0]
        raise InputError(
            f"the id {twice!r} occurs several times in {name!r}, so all recommenders must list the same ids "
            "in the same order."
        )


def _check_none(name: str, alone: AnyArray) -> None:
    if alone.size:
        shown = ", ".join(map(repr, alone[:3].tolist())) + (", ..." if alone.size > 3 else "")
        raise InputError(
            f"{counted(alone.size, 'instance', 'instances')} of {name!r} ({shown}) are missing from another "
            "recommender; leave them out with unmatched='drop'."
        )


def _common(ids: Mapping[str, AnyArray]) -> AnyArray:
    """Return the ids that all have, in the order of the first."""
    first, *others = ids.values()
    everywhere = np.ones(first.size, dtype=np.bool_)
    for own in others:
        everywhere &= np.isin(first, own)
    return first[everywhere]


def _positions(ids: AnyArray, wanted: AnyArray) -> AnyArray:
    order = np.argsort(ids)
    return order[np.searchsorted(ids, wanted, sorter=order)]


def _check_same_truth(ranks: Mapping[str, Ranks]) -> None:
    """Refuse instances whose number of relevant items differs between recommenders."""
    (first, one), *others = ranks.items()
    for name, other in others:
        if np.any(differ := one.n_relevant != other.n_relevant):
            at = int(np.argmax(differ))
            instance = repr(_ids(one)[at].item())
            raise InputError(
                f"recommenders must have the same relevant items, but instance {instance} has "
                f"{one.n_relevant[at]} for {first!r} and {other.n_relevant[at]} for {name!r}."
            )


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

    @property
    def sampled(self) -> bool:
        """Whether its candidates are sampled by a design that determines how much its values vary."""
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
        """Return bounds of the exact metric for each instance, from all runs; None if the design allows for none."""
        if not self.is_bounded(at):
            return unbiased_bounds(self.runs, self.metrics[at], assume)
        return bounds_of_runs(self.runs, self.metrics[at], assume) if self.sampled else None


def entrants_of(
    ranks: Mapping[str, Runs],
    metrics: Sequence[Metric],
    groups: Groups | None,
    *,
    unmatched: Unmatched = "refuse",
    ties: Ties,
    rng: Rng,
) -> tuple[dict[str, Entrant], tuple[str, ...]]:
    """Return the recommenders of a comparison on their common instances, and notes on others."""
    runs, labels = labelled(ranks)
    same, notes = matched(runs, unmatched)
    broken = untied(same, ties, rng)
    parts = parts_by(broken, groups)
    entrants = {}
    for name, own in labels.items():
        taken = tuple(recommended(metric, broken[own[0]]) for metric in metrics)
        entrants[name] = Entrant(tuple(broken[label] for label in own), taken, tuple(parts[label] for label in own))
    return entrants, notes


def shared_name(entrants: Mapping[str, Entrant], at: int, asked: Metric) -> str:
    """Return what a metric is called, or refuse biased values that are not among the same kind of candidates."""
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
        found[plain] = _drawn_variances(ranks, [metrics[at] for at in plain], parts)
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
        # draws that end at a cap have no unbiased estimate, even if none of the run that is compared did
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
