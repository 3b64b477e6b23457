"""Groups of numbers in one flat array, with boundaries as in a CSR matrix; plain ranks -> the fields of `Ranks`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from truerank.core.checks import (
    AnyArray,
    Bools,
    InputError,
    Ints,
    as_ints,
    as_list,
    check_grades,
    first_true,
    per_instance,
)


class Grouped(NamedTuple):
    """The numbers of all instances, one instance after another, and its boundaries."""

    numbers: AnyArray
    indptr: Ints


Nested = Sequence[float] | Sequence[Sequence[float]] | Sequence[AnyArray] | AnyArray | Grouped
"""A number per instance, or a list of numbers per instance."""


def bounds(sizes: ArrayLike) -> Ints:
    """Return the boundaries of groups with these sizes; for flags, how many are set before each position and in total.

    Examples
    --------
    >>> bounds([2, 0, 1]).tolist(), bounds([True, False, True]).tolist()
    ([0, 2, 2, 3], [0, 1, 1, 2])
    """
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def places(indptr: AnyArray) -> Ints:
    """Return 1, 2, ... within each group."""
    return np.arange(1, indptr[-1] + 1) - np.repeat(indptr[:-1], np.diff(indptr))


def owners(indptr: AnyArray) -> Ints:
    """Return the group that each entry belongs to.

    Examples
    --------
    >>> owners(bounds([2, 0, 1])).tolist()
    [0, 0, 2]
    """
    return np.repeat(np.arange(indptr.size - 1), np.diff(indptr))


def entries_of(indptr: AnyArray, groups: AnyArray) -> tuple[Ints, Ints]:
    """Return the positions of the entries of some groups, group by group, and the boundaries among them.

    Examples
    --------
    >>> positions, within = entries_of(np.array([0, 2, 2, 5]), np.array([2, 0]))
    >>> positions.tolist(), within.tolist()
    ([2, 3, 4, 0, 1], [0, 3, 5])
    """
    sizes = indptr[groups + 1] - indptr[groups]
    within = bounds(sizes)
    return np.repeat(indptr[groups] - within[:-1], sizes) + np.arange(within[-1]), within


def holds(indptr: AnyArray, entries: AnyArray, groups: AnyArray, wanted: AnyArray) -> Bools:
    """Return for each pair of a group and a number whether the group, whose entries ascend, has this number.

    Examples
    --------
    >>> holds(np.array([0, 2, 3]), np.array([1, 4, 4]), np.array([0, 0, 1]), np.array([4, 2, 4])).tolist()
    [True, False, True]
    """
    low, end = indptr[groups], indptr[groups + 1]
    high = end
    # all binary searches at once, with as many steps as the longest list needs
    for _ in range(int(np.max(end - low, initial=0)).bit_length()):
        middle = (low + high) >> 1
        less = (entries.take(middle, mode="clip") < wanted) & (low < high)
        low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
    found: Bools = low < end
    found[found] = entries[low[found]] == wanted[found]
    return found


def to_fields(ranks: Nested, n: ArrayLike, grades: Nested | None) -> dict[str, Any]:
    """Return above, n_candidates, indptr and grades, the relevant items in order of their ranks."""
    numbers, indptr = _flatten("ranks", ranks)
    flat, instance, candidates = as_ints("ranks", numbers), owners(indptr), per_instance("n", n, indptr.size - 1)
    limit = candidates[instance]
    if (at := first_true((flat < 1) | (flat > limit))) is not None:
        raise InputError(f"`ranks` must lie in 1..{limit[at]}, got {flat[at]} in instance {instance[at]}.")
    order = np.lexsort((flat, instance))
    flat = flat[order]
    if (at := first_true((flat[1:] == flat[:-1]) & (instance[1:] == instance[:-1]))) is not None:
        raise InputError(f"`ranks` must differ within an instance, got {flat[at]} twice in instance {instance[at]}.")
    marks = None if grades is None else check_grades(_flatten("grades", grades)[0], flat.size)[order]
    return {"above": flat - places(indptr), "n_candidates": candidates, "indptr": indptr, "grades": marks}


def sizes(ranks: Nested) -> Ints:
    """Return how many ranks each instance has."""
    return np.diff(_flatten("ranks", ranks)[1])


def _flatten(name: str, values: Nested) -> tuple[Any, Ints]:
    """Return the numbers of all instances, and the boundaries of the instances."""
    if isinstance(values, Grouped):
        return values
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iuf":
        return values, np.arange(values.size + 1)
    nested = [np.ndim(entry) > 0 for entry in as_list(name, values, "numbers, or of lists of them")]
    if not any(nested):
        return list(values), np.arange(len(nested) + 1)
    if not all(nested):
        raise InputError(f"`{name}` must hold either numbers or lists of numbers, got both.")
    rows = [np.atleast_1d(row) for row in values]
    return list(itertools.chain.from_iterable(rows)), bounds([row.size for row in rows])
