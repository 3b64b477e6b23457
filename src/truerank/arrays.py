"""Array types, and checks of arrays that callers pass in."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truerank.errors import InputError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
AnyArray = NDArray[Any]


def frozen(array: AnyArray) -> AnyArray:
    """Make an array that nobody else uses read-only, and return it."""
    array.setflags(write=False)
    return array


def check_whole(name: str, number: Any, least: int = 1) -> None:
    """Raise `InputError` unless a setting is a whole number, which 3.0 is and True is not, from `least` on."""
    numeric = isinstance(number, int | float | np.integer | np.floating) and not isinstance(number, bool)
    if not (numeric and math.isfinite(number) and number == math.floor(number) and number >= least):
        raise InputError(f"`{name}` must be a whole number from {least}, got {number!r}.")


def refuse_masked(values: Any, name: str) -> None:
    """Raise `InputError` for masked entries, whose mask NumPy would drop; `name` is what to call the values.

    Examples
    --------
    >>> refuse_masked(np.ma.masked_array([1, 2], mask=[False, True]), "`ranks`")
    Traceback (most recent call last):
    ...
    truerank.errors.InputError: `ranks` must not have masked entries, got 1; fill them in or leave them out.
    """
    if np.ma.is_masked(values):
        n_masked = np.count_nonzero(np.ma.getmaskarray(values))
        raise InputError(f"{name} must not have masked entries, got {n_masked}; fill them in or leave them out.")


def as_ints(name: str, values: ArrayLike) -> Ints:
    """Return `values` as a new one-dimensional int64 array, refusing anything but whole numbers."""
    refuse_masked(values, f"`{name}`")
    array = np.atleast_1d(np.asarray(values))
    if array.ndim != 1:
        raise InputError(f"`{name}` must be one-dimensional, got {array.ndim} dimensions.")
    if array.dtype.kind == "f":
        require(np.floor(array) == array, name, "hold whole numbers", array)
        require(np.abs(array) < 2**53, name, "hold whole numbers below 2**53", array)
    elif array.dtype.kind not in "iu":
        raise InputError(f"`{name}` must hold whole numbers, got values of type {array.dtype}.")
    return array.astype(np.int64)


def as_ids(name: str, given: ArrayLike, size: int | None = None) -> AnyArray:
    """Return names as a one-dimensional array, of the given size if there is one.

    Examples
    --------
    >>> as_ids("item_ids", ["b", "a"], 2).tolist()
    ['b', 'a']
    """
    refuse_masked(given, f"`{name}`")
    ids = np.asarray(given)
    if ids.ndim != 1 or (size is not None and ids.size != size):
        expected = "be one-dimensional" if size is None else f"have {size} entries"
        raise InputError(f"`{name}` must {expected}, got shape {ids.shape}.")
    # fixed-width text instead of objects, so that no file format ever needs pickle
    return ids.astype(np.str_) if ids.dtype.kind in "OT" else ids


def require(ok: Bools, name: str, rule: str, values: AnyArray) -> None:
    """Raise `InputError` naming the first value for which `ok` is false."""
    if not np.all(ok):
        position = int(np.argmin(ok))
        raise InputError(f"`{name}` must {rule}, got {values[position]} at position {position}.")


def distinct_columns(*rows: AnyArray) -> tuple[Ints, Ints]:
    """Return where each distinct column first occurs, and the number of the distinct column that each column equals.

    Distinct columns are in lexicographic order, as in ``np.unique(rows, axis=1)``, which takes ten times as long. The
    rows must have the same length.

    Examples
    --------
    >>> first, which = distinct_columns(np.array([3, 1, 3, 1]), np.array([0.5, 2.0, 0.5, 1.0]))
    >>> first.tolist(), which.tolist()
    ([3, 1, 0], [2, 1, 2, 0])
    """
    which = np.zeros(rows[0].size, dtype=np.int64)
    first = np.zeros(min(rows[0].size, 1), dtype=np.int64)
    for row in rows:
        values, codes = np.unique(row, return_inverse=True)
        _, first, which = np.unique(which * values.size + codes, return_index=True, return_inverse=True)
    return first, which
