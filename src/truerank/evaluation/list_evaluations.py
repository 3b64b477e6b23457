"""Metrics of recommended lists, in one table with metrics of the ranks of relevant items in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from truerank.arrays import AnyArray
from truerank.data.interactions import Interactions, PerUser
from truerank.errors import InputError
from truerank.evaluation.estimates import Estimate
from truerank.formats.source import Source
from truerank.lists.recommendations import Recommendations
from truerank.metrics.list_base import ListMetric, Surroundings
from truerank.metrics.list_metrics import LIST_METRICS, Overlap
from truerank.notes import by_name
from truerank.ranking.lists import read_lists
from truerank.ranking.ranks import Ranks


@dataclass(frozen=True)
class CountEstimate(Estimate):
    """A metric of how often items are recommended; which does not merge with others."""

    def __add__(self, other: Estimate) -> Estimate:
        raise InputError(f"{self.metric} is no mean over users, so it does not add up: join the lists with + instead.")


class Column(NamedTuple):
    """One metric: its name, and an estimate for each recommender."""

    name: str
    cells: tuple[Estimate, ...]
    direction: int = 0
    """Whether high values (1) or low ones (-1) are good, or neither (0), as for metrics that only describe lists."""


def list_columns(
    named: Mapping[str, Recommendations],
    metrics: Any,
    evaluate_ranks: Callable[[Mapping[str, Ranks], list[Any]], Any],
    *,
    truth: Source = None,
    train: PerUser | None = None,
    item_vectors: AnyArray | None = None,
) -> tuple[list[Column], tuple[str, ...]]:
    """Return a column per metric, and notes.

    Parameters
    ----------
    named : dict of name to Recommendations
    metrics : list of metrics, or one
        Those of lists are computed here.
    evaluate_ranks : callable
        Returns the `Evaluation` of the other metrics.
    truth, train, item_vectors
        As in `truerank.evaluate`.
    """
    several = isinstance(metrics, Iterable) and not isinstance(metrics, str)
    chosen = [as_list_metric(metric) for metric in (metrics if several else [metrics])]
    if not chosen:
        raise InputError("evaluate needs at least one recommender and one metric.")
    plain = [metric for metric in chosen if not isinstance(metric, ListMetric)]
    ranked = evaluate_ranks(_ranks(named, truth, plain[0]), plain) if plain else None
    others = iter([] if ranked is None else _columns(ranked))
    given = _surroundings(named, None if train is None else Interactions.of(train, "train"), item_vectors)
    columns = [_column(named, metric, given) if isinstance(metric, ListMetric) else next(others) for metric in chosen]
    return columns, _notes(named, chosen, columns, () if ranked is None else ranked.notes)


def _columns(evaluation: Any) -> list[Column]:
    metrics, cells, signs = evaluation.metrics, evaluation.estimates, evaluation.directions
    return [Column(name, cells[place :: len(metrics)], signs[place]) for place, name in enumerate(metrics)]


def as_list_metric(metric: Any) -> Any:
    """Return a text that names a metric of lists as that metric, and anything else unchanged."""
    return LIST_METRICS.read(metric) if isinstance(metric, str) and LIST_METRICS.has(metric) else metric


def _ranks(named: Mapping[str, Recommendations], truth: Source, metric: object) -> dict[str, Ranks]:
    if truth is None:
        raise InputError(f"{metric} compares lists with relevant items: give these as `truth`.")
    return {name: read_lists(lists, truth, depth=lists.k) for name, lists in named.items()}


def _surroundings(
    named: Mapping[str, Recommendations], train: Interactions | None, item_vectors: AnyArray | None
) -> dict[str, Surroundings]:
    first = next(iter(named.values())) if len(named) > 1 else None
    return {name: Surroundings.of(lists, train, item_vectors, first) for name, lists in named.items()}


def _column(named: Mapping[str, Recommendations], metric: ListMetric, given: Mapping[str, Surroundings]) -> Column:
    return Column(str(metric), tuple(_estimate(lists, metric, given[name]) for name, lists in named.items()))


def _estimate(lists: Recommendations, metric: ListMetric, given: Surroundings) -> Estimate:
    cut = lists.cut(metric.k)
    value, error, n, is_mean = metric.measure(cut, given)
    kind = Estimate if is_mean else CountEstimate
    return kind(str(metric), value, error, n, len(cut) - n, caveats=metric.notes(cut, given))


def _notes(
    named: Mapping[str, Recommendations], chosen: list[Any], columns: list[Column], others: tuple[str, ...]
) -> tuple[str, ...]:
    own = {
        name: [*lists.notes, *(note for column in columns for note in column.cells[place].notes)]
        for place, (name, lists) in enumerate(named.items())
    }
    about = [f"{metric} is with the lists of {next(iter(named))!r}" for metric in chosen if isinstance(metric, Overlap)]
    return tuple(dict.fromkeys((*by_name(own), *others, *about)))
