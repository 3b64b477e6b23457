"""Metrics of recommended lists, in one table with metrics of the ranks of relevant items in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from truerank.core.checks import AnyArray, InputError, distinct
from truerank.core.ranks import Ranks
from truerank.data.event_files import grouped
from truerank.data.interactions import Interactions, PerUser
from truerank.estimators.corrected import as_metrics
from truerank.evaluation.estimates import Estimate
from truerank.evaluation.groups import UNKNOWN, Groups
from truerank.formats.columns import TRUTH
from truerank.formats.ids import as_names
from truerank.formats.rows import load
from truerank.formats.sources import Source
from truerank.metrics.definitions import METRICS, Metric
from truerank.ranking.ranks_from_lists import read_lists
from truerank.ranking.truth import index_in
from truerank.recommending.list_metrics import LIST_METRICS, ListMetric, Overlap, Surroundings
from truerank.recommending.recommendations import NO_CATALOGUE, Recommendations


@dataclass(frozen=True)
class CountEstimate(Estimate):
    """A metric of how often items are recommended, which can't be merged with others."""

    def __add__(self, other: Estimate) -> Estimate:
        raise InputError(f"{self.metric} is not a mean over users, so it can't be added: join the lists with +.")


class ListCells(NamedTuple):
    """The metrics, their estimates, the groups that have users, notes on the whole, and the contest of `Evaluation`."""

    metrics: tuple[Metric | ListMetric, ...]
    cells: dict[tuple[str, str, int], Estimate]
    """By recommender, group and the place of the metric."""
    groups: tuple[str, ...]
    notes: tuple[str, ...]
    contest: Callable[[], Any] | None


Parts = Mapping[str, Mapping[str, Recommendations]]
"""Lists by group and recommender; if there are no groups, the name of the only one is empty."""


def list_cells(
    named: Mapping[str, Recommendations],
    metrics: Any,
    evaluate_ranks: Callable[..., Any],
    *,
    by: Any = None,
    truth: Source = None,
    train: PerUser | None = None,
    item_vectors: AnyArray | None = None,
) -> ListCells:
    """Return the estimates of metrics of lists and of ranks.

    Parameters
    ----------
    named : dict of name to Recommendations
    metrics : list of metrics, or one
        Metrics of lists are computed here.
    evaluate_ranks : callable
        Returns the `Evaluation` of the other metrics.
    by, truth, train, item_vectors
        As in `truerank.evaluate`.
    """
    several = isinstance(metrics, Iterable) and not isinstance(metrics, str)
    asked = map(as_list_metric, metrics if several else [metrics])
    chosen = distinct(each if isinstance(each, ListMetric) else as_metrics(each)[0] for each in asked)
    if not chosen:
        raise InputError("evaluate needs at least one recommender and one metric.")
    groups = None if by is None else Groups.of(by)
    if groups is not None and groups.of_items:
        raise InputError("lists are shown by groups of users, but `by` has groups of items.")
    plain = [metric for metric in chosen if not isinstance(metric, ListMetric)]
    ranked = evaluate_ranks(_ranks(named, truth, plain[0]), plain, by=groups) if plain else None
    parts = _parts(named, groups, () if ranked is None else ranked.groups)
    data = None if train is None else Interactions.of(train, "train")
    first = next(iter(named.values())) if len(named) > 1 else None
    judged = _judgements(truth) if any(isinstance(metric, ListMetric) for metric in chosen) else None
    given = {name: Surroundings.of(lists, data, item_vectors, first, judged) for name, lists in named.items()}
    of_ranks = iter([] if ranked is None else ranked.metrics)
    cells: dict[tuple[str, str, int], Estimate] = {}
    for at, metric in enumerate(chosen):
        if isinstance(metric, ListMetric):
            whole = {name: metric.notes(lists.cut(metric.k), given[name]) for name, lists in named.items()}
            own = {
                (name, group): _estimate(lists[name], metric, given[name], whole[name])
                for name in named
                for group, lists in parts.items()
            }
        else:
            own = _ranked_estimates(ranked, next(of_ranks))
        cells |= {(name, group, at): cell for (name, group), cell in own.items()}
    overlaps = [metric for metric in chosen if isinstance(metric, Overlap)]
    about = [f"{metric} is the overlap with the lists of {next(iter(named))!r}" for metric in overlaps]
    unused = () if groups is None else groups.notes(*(lists.user_ids for lists in named.values()))
    notes = (*(unused if ranked is None else ranked.notes), *about)
    contest = None if ranked is None else ranked.contest
    return ListCells(chosen, cells, () if groups is None else tuple(parts), notes, contest)


def list_notes(named: Mapping[str, Recommendations], train: PerUser | None) -> dict[str, tuple[str, ...]]:
    """Return the notes of lists, without the note on a missing catalogue if `train` provides one."""
    obsolete = set() if train is None else {NO_CATALOGUE}
    return {name: tuple(note for note in lists.notes if note not in obsolete) for name, lists in named.items()}


def _parts(named: Mapping[str, Recommendations], groups: Groups | None, ranked: Sequence[str]) -> Parts:
    """Return the lists of each group, without groups that have neither lists nor relevant items."""
    if groups is None:
        return {"": named}
    codes = {name: groups.find(lists.user_ids) for name, lists in named.items()}
    return {
        group: {name: lists.keep(codes[name] == code) for name, lists in named.items()}
        for code, group in enumerate((*groups.names, UNKNOWN))
        if group in ranked or any(np.any(own == code) for own in codes.values())
    }


def _ranked_estimates(evaluation: Any, metric: str) -> dict[tuple[str, str], Estimate]:
    """Return the estimates of a metric of ranks, by recommender and group."""
    return {
        (name, group): evaluation[(name, metric, group) if group else (name, metric)]
        for name in evaluation.recommenders
        for group in evaluation.groups or ("",)
    }


def as_list_metric(metric: Any) -> Any:
    """Return a text that names a metric of lists as that metric, and any other metric unchanged."""
    if not isinstance(metric, str) or LIST_METRICS.has(metric):
        return LIST_METRICS.read(metric) if isinstance(metric, str) else metric
    if not METRICS.has(metric):
        raise METRICS.unknown(metric, LIST_METRICS)
    return metric


def _judgements(truth: Source) -> Interactions | None:
    """Return the truth with all its grades, including 0, which is a judgement as well."""
    if truth is None or isinstance(truth, Interactions):
        return truth
    rows = load(truth, TRUTH, {}, None)
    user_ids, item_ids = (rows.ids(role).unique() for role in ("user", "item"))
    user, item = (index_in(rows.ids(role), ids) for role, ids in (("user", user_ids), ("item", item_ids)))
    grades = rows.numbers("relevance") if "relevance" in rows else np.ones(len(rows))
    order, indptr, items = grouped(user, item, (len(user_ids), len(item_ids)))
    matrix = sp.csr_array((grades[order], items, indptr), shape=(len(user_ids), len(item_ids)))
    names = as_names(user_ids, "user"), as_names(item_ids, "item")
    return Interactions(matrix, names[0], names[1], positions=order).merged()


def _ranks(named: Mapping[str, Recommendations], truth: Source, metric: object) -> dict[str, Ranks]:
    if truth is None:
        raise InputError(f"{metric} compares lists with relevant items: give these as `truth`.")
    return {name: read_lists(lists, truth, depth=lists.k) for name, lists in named.items()}


def _estimate(lists: Recommendations, metric: ListMetric, given: Surroundings, caveats: tuple[str, ...]) -> Estimate:
    value, error, n, is_mean = metric.measure(lists.cut(metric.k), given)
    kind = Estimate if is_mean else CountEstimate
    return kind(str(metric), value, error, n, len(lists) - n, caveats=caveats)
