"""Dataframes, dicts, lists and arrays in memory -> Arrow columns."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence, Sized
from typing import Any

import numpy as np
import pyarrow as pa

from truerank.errors import InputError
from truerank.formats.columns import Contents, find_columns
from truerank.formats.reasons import reason

_REFUSED = (pa.ArrowException, OverflowError, TypeError, ValueError)


def from_columns(columns: Mapping[Any, Any], contents: Contents, chosen: Mapping[str, str | int]) -> pa.Table | None:
    """Return ``{"user": [...], "item": [...]}`` as a table, None if the keys of a dict are not names of columns.

    Examples
    --------
    >>> from truerank.formats.columns import INTERACTIONS
    >>> from_columns({"user": ["ann"], "item": [7]}, INTERACTIONS, {}).to_pydict()
    {'user': ['ann'], 'item': [7]}
    >>> from_columns({"ann": [7]}, INTERACTIONS, {})
    """
    if not all(isinstance(name, str) for name in columns):
        return None
    found = find_columns(names := list(columns), contents, chosen, "the dict")
    if not set(contents.needed) <= set(found):
        return None
    if len({len(column) if _is_column(column) else None for column in columns.values()} | {None}) != 2:
        keys = " and ".join(repr(names[found[role]]) for role in contents.needed)
        raise InputError(
            f"the dict has the keys {keys}, which may be columns or users: columns must be lists of the same length; "
            "users with such names can be given in a dataframe."
        )
    return pa.table({name: _array(column, f"values of {name!r}") for name, column in columns.items()})


def _is_column(values: Any) -> bool:
    return (
        isinstance(values, Sized) and hasattr(values, "__getitem__") and not isinstance(values, str | bytes | Mapping)
    )


def refuse_pairs(lists: Sequence[Any], name: str) -> None:
    """Raise `InputError` if lists are tuples of two, which may be pairs of user and item."""
    if len(lists) and all(isinstance(row, tuple) and len(row) == 2 for row in lists):
        raise InputError(
            f"{name} has tuples of two, which may be pairs of user and item or the items of each user: "
            f"give the items of each user as lists, [{list(lists[0])!r}, ...], "
            "and read pairs from columns, {'user': [...], 'item': [...]}."
        )


def from_mapping(lists: Mapping[Any, Any], value: str) -> pa.Table:
    """Return ``{user: [item, ...]}`` or ``{user: {item: value}}`` as one row per user, with columns of lists.

    Examples
    --------
    >>> from_mapping({"ann": {7: 0.5}, "bob": {}}, "score").to_pydict()
    {'user': ['ann', 'bob'], 'item': [[7], []], 'score': [[0.5], []]}
    """
    for user, inner in lists.items():
        if isinstance(inner, str | bytes) or not isinstance(inner, Sized):
            raise InputError(f"the items of user {user!r} must be a list or a dict, got {inner!r}.")
    bounds = np.concatenate([[0], np.cumsum([len(inner) for inner in lists.values()], dtype=np.int64)])
    columns = {"item": _array(list(itertools.chain.from_iterable(lists.values())), "item ids")}
    if lists and all(isinstance(inner, Mapping) for inner in lists.values()):
        values = list(itertools.chain.from_iterable(inner.values() for inner in lists.values()))
        columns[value] = _array(values, f"{value}s")
    nested = {name: pa.LargeListArray.from_arrays(bounds, column) for name, column in columns.items()}
    return pa.table({"user": _array(list(lists), "user ids"), **nested})


def from_lists(lists: Sequence[Any] | np.ndarray[Any, Any], value: str) -> pa.Table:
    """Return one row per list; the users are numbered 0, 1, ..."""
    if isinstance(lists, np.ndarray) and lists.ndim == 2:
        bounds = np.arange(lists.shape[0] + 1, dtype=np.int64) * lists.shape[1]
        items = pa.LargeListArray.from_arrays(bounds, _array(lists.ravel(), "item ids"))
        return pa.table({"user": np.arange(lists.shape[0]), "item": items})
    refuse_pairs(lists, "the list")
    return from_mapping(dict(enumerate(lists)), value)


def columns_of(frame: Any) -> tuple[list[str], Any]:
    """Return the names of a dataframe's columns, and a function that returns one as an Arrow array."""
    import narwhals as nw

    if isinstance(frame, pa.Table):
        return frame.column_names, frame.column
    try:
        wrapped = nw.from_native(frame)
    except TypeError as error:
        if hasattr(frame, "__arrow_c_stream__"):
            return columns_of(pa.table(frame))
        kind = type(frame).__name__
        raise InputError(f"can't read from {kind}; give a path, a dataframe, a dict or a list.") from error
    try:
        eager = wrapped.collect() if isinstance(wrapped, nw.LazyFrame) else wrapped
        names = [str(name) for name in eager.columns]
    except Exception as error:  # each library has its own
        raise InputError(f"can't read the dataframe ({reason(error)}).") from error
    return names, lambda position: _column(eager, position)


def _column(frame: Any, position: int) -> pa.ChunkedArray:
    name = frame.columns[position]
    try:
        column = frame[name].to_arrow()
    except Exception as error:  # each library has its own
        raise InputError(f"can't read the column {str(name)!r} of the dataframe ({reason(error)}).") from error
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _array(values: Any, what: str) -> pa.Array:
    try:
        return pa.array(values)
    except OverflowError:
        pass  # Arrow does not infer uint64 for whole numbers above 2**63 - 1
    except _REFUSED as error:
        raise InputError(f"the {what} must all be numbers or all be text ({reason(error)}).") from error
    try:
        return pa.array(values, type=pa.uint64())
    except _REFUSED as error:
        raise InputError(f"the {what} must be whole numbers of 64 bits or text ({reason(error)}).") from error
