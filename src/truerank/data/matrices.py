"""Sparse matrices and lists of item numbers -> CSR matrices in which the items of each user ascend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from truerank.arrays import AnyArray, Ints
from truerank.errors import InputError
from truerank.notes import counted

_NARROW = ("bool", "int8", "uint8", "int16", "uint16")
"""Types whose values float32 holds exactly."""


def ascending(matrix: Any, name: str, *, may_reorder: bool) -> sp.csr_array:
    """Return a sparse matrix in CSR form with ascending items and no repeated pairs.

    A matrix that already has this form is not copied. Values of repeated pairs are added up.

    Parameters
    ----------
    matrix : sparse matrix
    name : str
        What to call it in messages.
    may_reorder : bool
        If False, a matrix that is out of order is refused, because other arrays are aligned with it.

    Examples
    --------
    >>> ascending(sp.coo_array(([1, 2, 3], ([0, 0, 0], [1, 0, 1]))), "matrix", may_reorder=True).toarray().tolist()
    [[2.0, 4.0]]
    """
    if not sp.issparse(matrix) or matrix.ndim != 2:
        raise InputError(f"`{name}` must be a two-dimensional sparse matrix, got {type(matrix).__name__}.")
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"`{name}` must hold real numbers, got values of type {matrix.dtype}.")
    if matrix.format == "csr" and _ascends(matrix):
        return sp.csr_array(matrix)
    if not may_reorder:
        raise InputError(f"`{name}` must store the items of each user in ascending order, each once.")
    # floats, so that values of repeated pairs do not overflow when they are added up
    rows = sp.csr_array(matrix.astype(float_type(matrix.dtype)), copy=True)
    rows.sum_duplicates()
    return rows


def float_type(number: np.dtype[Any]) -> np.dtype[Any]:
    """Return float32 if it holds all values of a type exactly, and float64 otherwise.

    Examples
    --------
    >>> float_type(np.dtype(np.int8)), float_type(np.dtype(np.int64))
    (dtype('float32'), dtype('float64'))
    """
    return np.dtype(np.float32 if number == np.float32 or number.name in _NARROW else np.float64)


def _ascends(matrix: sp.csr_array) -> bool:
    """Whether the items of each user ascend: `has_canonical_format`, but with vector instructions."""
    items, bounds = matrix.indices, matrix.indptr
    if np.any(bounds[1:] < bounds[:-1]):
        return False
    higher = np.empty(items.size + 1, np.bool_)
    np.greater(items[1:], items[:-1], out=higher[1:-1])
    higher[bounds] = True  # a user's first item need not be above the last item of the previous user
    return bool(higher.all())


def from_lists(
    lists: Sequence[Any], name: str, n_users: int | None, n_items: int | None
) -> tuple[sp.csr_array, tuple[str, ...]]:
    """Return a matrix of ones from a list of item numbers per user, and a note on repeated items.

    Examples
    --------
    >>> matrix, notes = from_lists([[2, 0, 2], []], "test", None, None)
    >>> matrix.toarray().tolist(), notes
    ([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]], ('1 item is repeated in a list of `test` and counts once',))
    """
    users, items = _numbers(lists, name)
    width = int(items.max(initial=0)) + 1 if n_items is None else n_items
    if items.size and not 0 <= items.min() <= items.max() < width:
        raise InputError(f"`{name}` must hold items 0..{width - 1}, got {items.min()}..{items.max()}.")
    height = len(lists) if n_users is None else max(n_users, len(lists))
    matrix = sp.csr_array(sp.coo_array((np.ones(items.size, np.float32), (users, items)), shape=(height, width)))
    matrix.data[:] = 1
    repeated = items.size - matrix.nnz
    words = (
        "item is repeated in a list of `{}` and counts once",
        "items are repeated in a list of `{}` and count once",
    )
    return matrix, (counted(repeated, *words).format(name),) if repeated else ()


def _numbers(lists: Sequence[Any], name: str) -> tuple[Ints, Ints]:
    """Return user and item of each entry of the lists."""
    rows = [_row(items, user, name) for user, items in enumerate(lists)]
    users = np.repeat(np.arange(len(rows)), [row.size for row in rows])
    return users, np.concatenate([*rows, np.zeros(0)], dtype=np.int64, casting="unsafe")


def _row(items: Any, user: int, name: str) -> AnyArray:
    """Return one list as an array, or raise `InputError` if it holds anything but whole numbers."""
    try:
        row = np.asarray(items)
    except ValueError:  # lists of different lengths inside it
        row = np.zeros((0, 0))
    if row.ndim != 1:
        raise InputError(f"`{name}` must be a list of item numbers per user, got {items!r} for user {user}.")
    if row.size and not _whole(row):
        first = next(item for item in items if not _whole(np.asarray(item)))
        raise InputError(f"`{name}` must hold item numbers, got {first!r} for user {user}.")
    return row


def _whole(values: AnyArray) -> bool:
    if values.dtype.kind == "f":
        return bool(np.all((np.floor(values) == values) & (np.abs(values) < 2**53)))
    return values.dtype.kind in "iu"
