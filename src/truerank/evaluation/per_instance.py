"""From ranks to one value per instance, with ties resolved by a stated policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from truerank.arrays import Floats
from truerank.corrections.reading import AnyMetric
from truerank.corrections.reading import metric as as_metric
from truerank.corrections.recommended import recommended
from truerank.errors import InputError
from truerank.evaluation.tie_means import expected_terms
from truerank.metrics.base import Metric, Terms
from truerank.ranking.ranks import Ranks, check_ranks
from truerank.sampling.designs import Rng

Ties = Literal["expected", "optimistic", "pessimistic", "random"]


def values(ranks: Ranks, metric: AnyMetric, *, ties: Ties = "expected", rng: Rng = None) -> Floats:
    """Return the metric of each instance.

    Parameters
    ----------
    ranks : Ranks
        Where the relevant items are.
    metric : str, Metric or function
        For instance ``"ndcg@10"``. Under inverse sampling it is estimated as `truerank.evaluate` does.
    ties : {"expected", "optimistic", "pessimistic", "random"}
        "expected" is the exact mean over all orders of equally scored items, without randomness;
        "optimistic" puts relevant items first, "pessimistic" last, and "random" draws one order
        (seeded by `rng`).
    rng : int or numpy.random.Generator, optional
        Seed for ``ties="random"``.

    Returns
    -------
    array of float64, one per instance
        NaN where the metric is undefined: no relevant item, or for AUC no irrelevant one.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([[1, 3], [2]], n=5)
    >>> tr.values(ranks, "ap").round(4).tolist()
    [0.8333, 0.5]

    One relevant item that ties with one irrelevant item is first or second, with equal chance:

    >>> tied = tr.Ranks(above=[0], tied=[1], n_candidates=2)
    >>> [tr.values(tied, "ap", ties=policy).item() for policy in ("expected", "optimistic", "pessimistic")]
    [0.75, 1.0, 0.5]
    """
    check_ranks(ranks)
    chosen = as_metric(metric)
    check_ties(ties)
    if ties != "expected":
        ranks = ranks.break_ties(ties, rng=rng)
    return sums(ranks, checked_terms(ranks, recommended(chosen, ranks)))


def check_ties(ties: Ties) -> None:
    """Refuse an unknown policy."""
    if ties not in get_args(Ties):
        raise InputError(f"`ties` must be one of {', '.join(map(repr, get_args(Ties)))}, got {ties!r}.")


def untied(named: Mapping[str, Ranks], ties: Ties, rng: Rng) -> dict[str, Ranks]:
    """Return ranks whose ties are broken, unless the expectation over ties is asked for; one seed serves all."""
    check_ties(ties)
    if ties == "expected":
        return dict(named)
    seed = rng if isinstance(rng, int) else int(np.random.default_rng(rng).integers(2**63))
    return {name: one.break_ties(ties, rng=seed) for name, one in named.items()}


def checked_terms(ranks: Ranks, metric: Metric) -> tuple[Terms, ...]:
    """Return the terms of a metric, or refuse one that needs ranks below the depth of cut lists."""
    terms = metric.terms(ranks)
    if ranks.depth is not None:
        for part in terms:
            _check_depth(part, ranks, ranks.depth, str(metric))
    return terms


def _check_depth(terms: Terms, ranks: Ranks, depth: int, name: str) -> None:
    deepest = terms.term.cutoff(ranks.n_relevant)
    if deepest is None:
        raise InputError(
            f"{name} needs the whole ranking, but these lists are cut at depth {depth}; "
            f"use a metric with a cut-off of at most {depth}."
        )
    if np.any(deepest > depth):
        raise InputError(f"{name} looks at rank {deepest.max()}, but these lists are cut at depth {depth}.")


def sums(ranks: Ranks, terms: tuple[Terms, ...]) -> Floats:
    """Return the sum of all terms of each instance, ties in random order; NaN without a relevant item."""
    total = np.full(len(ranks), np.nan)
    filled = ranks.n_relevant > 0
    if np.any(filled):
        total[filled] = np.add.reduceat(_added(ranks, terms), ranks.indptr[:-1][filled])
    return total


def item_terms(ranks: Ranks, terms: tuple[Terms, ...]) -> Floats:
    """Return what each relevant item adds; relevant items that tie are equally likely at each of their places."""
    ones = np.ones(ranks.above.size)
    return _added(ranks, tuple(part._replace(weight=ones) if part.weight is None else part for part in terms))


def _added(ranks: Ranks, terms: tuple[Terms, ...]) -> Floats:
    added = expected_terms(ranks, terms[0])
    for part in terms[1:]:
        added = added + expected_terms(ranks, part)
    return added
