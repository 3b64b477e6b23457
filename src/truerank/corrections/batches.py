"""Cases of a correction that are solved together: those with the same number of sampled candidates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple, cast

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.corrections.base import Case
from truerank.corrections.spectral import RowTerm
from truerank.metrics.base import Term


class Batch(NamedTuple):
    """Cases with the same m, and their `places` among all; the other fields are arguments of `spectral`."""

    places: list[int]
    term: RowTerm
    N: Ints
    m: int
    last: Ints | None
    smooth: bool


def batches(term: Term, cases: list[Case]) -> Iterator[Batch]:
    """Yield all cases of a term, a batch for each m.

    Examples
    --------
    >>> from truerank.corrections.reading import metric
    >>> reciprocal = metric("ap")
    >>> [batch.places for batch in batches(reciprocal, [Case(1, 1, 500, 9), Case(1, 1, 500, 5), Case(1, 1, 600, 9)])]
    [[0, 2], [1]]
    """
    places = defaultdict(list)
    for place, case in enumerate(cases):
        places[case.m].append(place)
    for m, group in places.items():
        yield _batch(term, m, group, [cases[place] for place in group])


def _batch(term: Term, m: int, places: list[int], cases: list[Case]) -> Batch:
    i, n_relevant, n, _ = (np.array(part) for part in zip(*cases, strict=True))
    cutoff = term.cutoff(n_relevant)

    def at(g: Floats, row: Ints) -> Floats:
        return term.term(cast("Ints", g + i[row]), i[row], n_relevant[row], n[row])

    return Batch(places, at, n - n_relevant, m, None if cutoff is None else cutoff - i, term.shape != "any")
