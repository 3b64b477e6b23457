"""Metrics as another tool computes them: its definition, its mean, its rules for users without relevant items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from truerank.arrays import Floats
from truerank.conventions import Convention, Definition, Weights
from truerank.corrections.reading import metric as as_metric
from truerank.errors import InputError
from truerank.evaluation.estimates import Estimate, summary, weighted_summary
from truerank.evaluation.per_instance import Ties, values
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import Rng

_ORDERS = {"listed": "as they are listed", "id": "by id", "arbitrary": "arbitrarily"}


def estimates_by(
    convention: Convention, ranks: Ranks, metrics: Sequence[Metric], ties: Ties, rng: Rng
) -> list[Estimate]:
    """Return the number that a tool would print for each metric, under the name that was asked for."""
    if ranks.design is not None:
        raise InputError(f"{convention.name} ranks all candidates, but these ranks are among sampled ones.")
    return [_estimate(convention, ranks, metric, ties, rng) for metric in metrics]


def _estimate(convention: Convention, ranks: Ranks, asked: Metric, ties: Ties, rng: Rng) -> Estimate:
    definition = convention.definition(str(asked))
    metric = _within_lists(as_metric(definition.text), ranks)
    policy = definition.ties or ties
    found = values(ranks, metric, ties=policy, rng=rng)
    found = np.where(ranks.n_relevant == 0, convention.without_relevant, found)
    if definition.weights is None:
        result = summary(found, ranks, metric, policy)
    else:
        weights = _weights(definition.weights, metric, ranks)
        result = weighted_summary(found * weights, weights, ranks, metric, policy)
    return replace(
        result, metric=str(asked), caveats=(*_caveats(convention, definition, asked, ranks), *result.caveats)
    )


def _within_lists(metric: Metric, ranks: Ranks) -> Metric:
    """Return a metric without a cut-off as one of the listed items, if lists were cut."""
    if ranks.depth is None or getattr(metric, "k", 0) is not None:
        return metric
    if (most := ranks.n_relevant.max(initial=0)) > ranks.depth:
        raise InputError(
            f"{metric} needs lists at least as long as the largest number of relevant items, {most}; "
            f"these are cut at depth {ranks.depth}."
        )
    return replace(metric, k=ranks.depth)  # type: ignore[type-var]


def _weights(kind: Weights, metric: Metric, ranks: Ranks) -> Floats:
    """Return what each instance weighs in a pooled mean."""
    most = ranks.n_relevant if kind == "relevant" else np.minimum(ranks.n_relevant, metric.k)  # type: ignore[attr-defined]
    return most.astype(np.float64)


def _caveats(convention: Convention, definition: Definition, asked: Metric, ranks: Ranks) -> list[str]:
    pooled = f", weighted by {definition.weights} items" if definition.weights else ""
    notes = [f"{asked} as in {convention.name}: {definition.text}{pooled}"]
    if ranks.has_ties and definition.ties is None and convention.equal_scores in _ORDERS:
        notes.append(
            f"{convention.name} orders equal scores {_ORDERS[convention.equal_scores]}: its numbers lie between those "
            "for 'optimistic' and 'pessimistic' ties"
        )
    return notes
