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
    frozen,
    own,
    per_instance,
    stretches,
)


class Grouped(NamedTuple):
    """The numbers of all instances, one instance after another, in an array that may be changed; and the boundaries."""

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
    found = np.zeros(np.size(sizes) + 1, dtype=np.int64)
    np.cumsum(np.asarray(sizes).astype(np.int64, copy=False), out=found[1:])
    return found


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
    flat, candidates = _changeable(ranks, numbers), per_instance("n", n, indptr.size - 1)
    marks = None if grades is None else check_grades(_flatten("grades", grades)[0], flat.size)
    for instances, items in stretches(indptr):
        within = indptr[instances.start : instances.stop + 1] - items.start
        order = _order(flat[items], candidates[instances], within, instances.start)
        flat[items] = flat[items][order] - places(within)
        if marks is not None:
            marks[items] = marks[items][order]
    arrays = {"above": flat, "n_candidates": candidates, "indptr": own(indptr)}
    return {name: frozen(array) for name, array in arrays.items()} | {"grades": marks}


def _changeable(given: Nested, numbers: Any) -> Ints:
    if isinstance(given, Grouped):
        return given.numbers
    ranks = as_ints("ranks", numbers)
    return ranks if ranks.flags.writeable else ranks.copy()


def _order(ranks: Ints, n: Ints, indptr: Ints, start: int) -> Ints:
    """Return the order in which the ranks of each instance ascend; `start` is the number of the first instance."""
    instance, limit = owners(indptr), np.repeat(n, np.diff(indptr))
    if (at := first_true((ranks < 1) | (ranks > limit))) is not None:
        raise InputError(f"`ranks` must lie in 1..{limit[at]}, got {ranks[at]} in instance {start + instance[at]}.")
    order = np.lexsort((ranks, instance))
    sorted_ranks = ranks[order]
    if (at := first_true((sorted_ranks[1:] == sorted_ranks[:-1]) & (instance[1:] == instance[:-1]))) is not None:
        place = start + instance[at]
        raise InputError(f"`ranks` must differ within an instance, got {sorted_ranks[at]} twice in instance {place}.")
    return order


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
