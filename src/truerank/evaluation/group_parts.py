"""The part of each group in ranks: which instances it has, with which weight, and what its items add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.evaluation.groups import UNKNOWN, Groups
from truerank.evaluation.per_instance import item_terms, sums
from truerank.metrics.base import Terms
from truerank.ranking.ranks import Ranks


@dataclass(frozen=True, eq=False)
class Part:
    """A group's part in ranks.

    Attributes
    ----------
    name : str
        The group; empty if there are no groups.
    rows : array of int
        Its instances.
    items : array of int or None
        Its relevant items, as positions; None if it has its instances as a whole.
    counts : array of int
        How many of the relevant items of each of its instances it has.
    weights : array of float
        Their share of the relevant items; 1 if it has its instances as a whole.
    """

    name: str
    rows: Ints
    items: Ints | None
    counts: Ints
    weights: Floats


def values_by_part(ranks: Ranks, terms: tuple[Terms, ...], parts: Sequence[Part]) -> list[Floats]:
    """Return for each part what its relevant items add to the metric of each of its instances."""
    if all(part.items is None for part in parts):
        totals = sums(ranks, terms)
        return [totals[part.rows] for part in parts]
    added, row = item_terms(ranks, terms), ranks.instance
    return [
        np.bincount(row[part.items], added[part.items], minlength=len(ranks))[part.rows].astype(np.float64)
        for part in parts
    ]


def split_by(ranks: Ranks, groups: Groups | None) -> tuple[Part, ...]:
    """Return the part of each group, followed by the part without a group; the whole if there are no groups."""
    if groups is None:
        return (_of_instances("", np.arange(len(ranks)), ranks),)
    codes = groups.codes_of(ranks)
    chosen = [(name, np.flatnonzero(codes == code)) for code, name in enumerate((*groups.names, UNKNOWN))]
    if not groups.of_items:
        return tuple(_of_instances(name, rows, ranks) for name, rows in chosen)
    return tuple(_of_items(name, items, ranks) for name, items in chosen)


def _of_instances(name: str, rows: Ints, ranks: Ranks) -> Part:
    return Part(name, rows, None, ranks.n_relevant[rows], np.ones(rows.size))


def _of_items(name: str, items: Ints, ranks: Ranks) -> Part:
    rows, counts = np.unique(ranks.instance[items], return_counts=True)
    return Part(name, rows, items, counts, counts / ranks.n_relevant[rows])


def parts_by(ranks: Mapping[str, Ranks], groups: Groups | None) -> dict[str, list[Part]]:
    """Return the parts of each recommender, without groups that are empty for all of them."""
    found = {name: split_by(one, groups) for name, one in ranks.items()}
    kept = [at for at in range(len(next(iter(found.values())))) if any(own[at].rows.size for own in found.values())]
    return {name: [own[at] for at in kept or [0]] for name, own in found.items()}
