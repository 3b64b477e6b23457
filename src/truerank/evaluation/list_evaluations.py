"""Metrics of recommended lists, in one table with metrics of the ranks of relevant items in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import AnyArray
from truerank.core.errors import InputError
from truerank.core.ranks import Ranks
from truerank.data.interactions import Interactions, PerUser
from truerank.evaluation.estimates import Estimate
from truerank.evaluation.groups import UNKNOWN, Groups
from truerank.formats.sources import Source
from truerank.metrics.definitions import METRICS
from truerank.ranking.ranks_from_lists import read_lists
from truerank.recommending.list_metrics import LIST_METRICS, ListMetric, Overlap, Surroundings
from truerank.recommending.recommendations import NO_CATALOGUE, Recommendations


@dataclass(frozen=True)
class CountEstimate(Estimate):
    """A metric of how often items are recommended; which does not merge with others."""

    def __add__(self, other: Estimate) -> Estimate:
        raise InputError(
            f"{self.metric} is not a mean over users, so it does not add up: join the lists with + instead."
        )


class ListColumn(NamedTuple):
    """One metric: its name, and an estimate for each recommender, and for each of its groups if there are groups."""

    name: str
    cells: tuple[Estimate, ...]
    direction: int = 0
    """Whether high values (1) or low ones (-1) are good, or neither (0), as for metrics that only describe lists."""


class ListColumns(NamedTuple):
    """A column per metric, the groups that have users, notes on the whole, and the contest of `Evaluation`."""

    columns: list[ListColumn]
    groups: tuple[str, ...]
    notes: tuple[str, ...]
    contest: Callable[[], Any] | None


Parts = Mapping[str, Mapping[str, Recommendations]]
"""Lists by group and recommender; if there are no groups, the name of the only one is empty."""


def list_columns(
    named: Mapping[str, Recommendations],
    metrics: Any,
    evaluate_ranks: Callable[..., Any],
    *,
    by: Any = None,
    truth: Source = None,
    train: PerUser | None = None,
    item_vectors: AnyArray | None = None,
) -> ListColumns:
    """Return the parts of a table of metrics of lists and of ranks.

    Parameters
    ----------
    named : dict of name to Recommendations
    metrics : list of metrics, or one
        Those of lists are computed here.
    evaluate_ranks : callable
        Returns the `Evaluation` of the other metrics.
    by, truth, train, item_vectors
        As in `truerank.evaluate`.
    """
    several = isinstance(metrics, Iterable) and not isinstance(metrics, str)
    chosen = [as_list_metric(metric) for metric in (metrics if several else [metrics])]
    if not chosen:
        raise InputError("evaluate needs at least one recommender and one metric.")
    groups = _groups_of_users(by)
    plain = [metric for metric in chosen if not isinstance(metric, ListMetric)]
    ranked = evaluate_ranks(_ranks(named, truth, plain[0]), plain, by=groups) if plain else None
    parts = _parts(named, groups, () if ranked is None else ranked.groups)
    given = _surroundings(named, None if train is None else Interactions.of(train, "train"), item_vectors)
    others = iter([] if ranked is None else _ranked_columns(ranked, parts))
    columns = [
        _column(named, parts, metric, given) if isinstance(metric, ListMetric) else next(others) for metric in chosen
    ]
    notes = (*(() if ranked is None else ranked.notes), *_reference_notes(named, chosen))
    contest = None if ranked is None else ranked.contest
    return ListColumns(columns, () if groups is None else tuple(parts), notes, contest)


def list_notes(named: Mapping[str, Recommendations], train: PerUser | None) -> dict[str, tuple[str, ...]]:
    """Return the notes of lists; if there is a catalogue now, without the one that says that there is none."""
    obsolete = set() if train is None else {NO_CATALOGUE}
    return {name: tuple(note for note in lists.notes if note not in obsolete) for name, lists in named.items()}


def _groups_of_users(by: Any) -> Groups | None:
    groups = None if by is None else Groups.of(by)
    if groups is not None and groups.of_items:
        raise InputError("lists are shown by groups of users, but `by` has groups of items.")
    return groups


def _parts(named: Mapping[str, Recommendations], groups: Groups | None, ranked: Sequence[str]) -> Parts:
    """Return the lists of each group, without those that have neither lists nor relevant items."""
    if groups is None:
        return {"": named}
    codes = {name: groups.find(lists.user_ids) for name, lists in named.items()}
    return {
        group: {name: lists.keep(codes[name] == code) for name, lists in named.items()}
        for code, group in enumerate((*groups.names, UNKNOWN))
        if group in ranked or any(np.any(own == code) for own in codes.values())
    }


def _ranked_columns(evaluation: Any, parts: Parts) -> list[ListColumn]:
    return [
        ListColumn(
            metric,
            tuple(_ranked(evaluation, name, metric, group) for name in evaluation.recommenders for group in parts),
            sign,
        )
        for metric, sign in zip(evaluation.metrics, evaluation.directions, strict=True)
    ]


def _ranked(evaluation: Any, name: str, metric: str, group: str) -> Estimate:
    if group and group not in evaluation.groups:
        return Estimate(metric, math.nan, math.nan, 0)
    found: Estimate = evaluation[(name, metric, group) if group else (name, metric)]
    return found


def as_list_metric(metric: Any) -> Any:
    """Return a text that names a metric of lists as that metric, and any other metric unchanged."""
    if not isinstance(metric, str) or LIST_METRICS.has(metric):
        return LIST_METRICS.read(metric) if isinstance(metric, str) else metric
    if not METRICS.has(metric):
        raise METRICS.unknown(metric, LIST_METRICS)
    return metric


def _ranks(named: Mapping[str, Recommendations], truth: Source, metric: object) -> dict[str, Ranks]:
    if truth is None:
        raise InputError(f"{metric} compares lists with relevant items: give these as `truth`.")
    return {name: read_lists(lists, truth, depth=lists.k) for name, lists in named.items()}


def _surroundings(
    named: Mapping[str, Recommendations], train: Interactions | None, item_vectors: AnyArray | None
) -> dict[str, Surroundings]:
    first = next(iter(named.values())) if len(named) > 1 else None
    return {name: Surroundings.of(lists, train, item_vectors, first) for name, lists in named.items()}


def _column(
    named: Mapping[str, Recommendations], parts: Parts, metric: ListMetric, given: Mapping[str, Surroundings]
) -> ListColumn:
    cells: list[Estimate] = []
    for name, lists in named.items():
        caveats = metric.notes(lists.cut(metric.k), given[name])
        cells += (_estimate(own[name], metric, given[name], caveats) for own in parts.values())
    return ListColumn(str(metric), tuple(cells))


def _estimate(lists: Recommendations, metric: ListMetric, given: Surroundings, caveats: tuple[str, ...]) -> Estimate:
    value, error, n, is_mean = metric.measure(lists.cut(metric.k), given)
    kind = Estimate if is_mean else CountEstimate
    return kind(str(metric), value, error, n, len(lists) - n, caveats=caveats)


def _reference_notes(named: Mapping[str, Recommendations], chosen: list[Any]) -> list[str]:
    return [
        f"{metric} is the overlap with the lists of {next(iter(named))!r}"
        for metric in chosen
        if isinstance(metric, Overlap)
    ]
