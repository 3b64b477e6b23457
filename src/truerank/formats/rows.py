"""Checked rows with columns named by their roles, the starting point of every reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from truerank.core.checks import AnyArray, Floats, InputError, Ints, counted, first_true, shown
from truerank.core.csr import bounds, owners
from truerank.formats.arrow_tables import Opened, open_source
from truerank.formats.columns import Column, Contents, chosen_columns, find_columns, position, require_columns, some
from truerank.formats.ids import (
    as_names,
    decoded,
    first_not_a_number,
    id_column,
    is_text,
    is_words,
    missing,
    missing_word,
)
from truerank.formats.pieces import Wanted
from truerank.formats.sources import Source, is_list
from truerank.formats.text_files import Format

Chosen = Mapping[str, Column] | None
"""Columns by role, as far as they are chosen."""
_IDS = ("user", "item", "session")
_DATES = (pa.timestamp("us"), pa.timestamp("us", "UTC"))


@dataclass(frozen=True)
class Rows:
    """Rows of a source, one per item, without missing values.

    Attributes
    ----------
    table : pyarrow.Table
        Columns named by their roles; "user" and "item" hold ids as `id_column` returns them, where text that was read
        in pieces is stored as codes of distinct texts.
    name : str
        What to call the source in messages.
    place : function
        Returns what to call a row (from 0) in messages: file and line if there are lines.
    notes : tuple of str
        Anything unusual in the source.
    parents : array of int, optional
        If the source had lists, the row of the source (from 0) that each row comes from.
    """

    table: pa.Table
    name: str
    place: Callable[[int], str]
    notes: tuple[str, ...] = ()
    parents: Ints | None = None

    def __contains__(self, role: str) -> bool:
        return role in self.table.column_names

    def __len__(self) -> int:
        return self.table.num_rows

    def without(self, *roles: str) -> Rows:
        """Return the rows without some columns."""
        return replace(self, table=self.table.drop_columns([role for role in roles if role in self]))

    def ids(self, role: str) -> pa.Array:
        """Return the ids of a role as a contiguous array."""
        column = self.column(role)
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    def column(self, role: str) -> pa.ChunkedArray:
        """Return the ids of a role as a column of plain values; whole numbers in 64 bits."""
        column = decoded(self.table[role])
        return column.cast(pa.int64()) if pa.types.is_signed_integer(column.type) else column

    def names(self, role: str) -> AnyArray:
        """Return the ids of a role as an array of numbers or fixed-width text."""
        return as_names(self.ids(role), role)

    def without_match(self, other: Rows, role: str, arguments: tuple[str, str], example: str) -> InputError:
        """Return the error that no id is in the other source; `arguments` name both if their own names are equal."""
        names = (self.name, other.name) if self.name != other.name else tuple(f"`{name}`" for name in arguments)
        return InputError(f"no {role} of {names[0]} is in {names[1]}: the ids do not match ({example}).")

    def error(self, row: int, reason: str) -> InputError:
        """Return the error that names a row."""
        return InputError(f"{self.place(row)}: {reason}.")

    def numbers(self, role: str) -> Floats:
        """Return a column of numbers; text that spells numbers is converted, NaN is refused."""
        column = decoded(self.table[role])
        try:
            numbers: Floats = _filled(column, pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise self._not(role, "a number", pa.float64()) from error
        if (row := first_true(np.isnan(numbers))) is not None:
            raise self.error(row, f"the {role}{self._of(row)} is NaN")
        return numbers

    def finite(self, role: str) -> Floats:
        """Return a column of finite numbers."""
        numbers = self.numbers(role)
        if (row := first_true(np.isinf(numbers))) is not None:
            raise self.error(row, f"the {role} must be a finite number, got {numbers[row]}")
        return numbers

    def whole(self, role: str) -> Ints:
        """Return a column of whole numbers."""
        column = decoded(self.table[role])
        if pa.types.is_integer(column.type):
            try:
                return _filled(column, pa.int64())
            except pa.ArrowInvalid as error:
                raise self._not(role, "a 64-bit whole number", pa.int64()) from error
        numbers = self.numbers(role)
        if (row := first_true((np.floor(numbers) != numbers) | (np.abs(numbers) >= 2**53))) is not None:
            raise self.error(row, f"the {role} must be a whole number, got {numbers[row]:g}")
        return numbers.astype(np.int64)

    def times(self, role: str) -> AnyArray:
        """Return a column of times: whole numbers, floats or dates."""
        column = decoded(self.table[role])
        if is_text(column.type):
            column = self._spelled_times(role, column)
        if pa.types.is_integer(column.type):
            return self.whole(role)
        if pa.types.is_floating(column.type):
            return self.finite(role)
        if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
            return column.to_numpy()
        raise InputError(f"{self.name}: the {role}s must be numbers or dates, got {column.type}.")

    def _spelled_times(self, role: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Read times from text, all in the format of the first."""
        what = {pa.float64(): "a number", _DATES[0]: "an ISO date", _DATES[1]: "an ISO date with a time zone"}
        kind = next((kind for kind in what if _castable(column.slice(0, 1), kind)), None)
        if kind is None:
            raise self._not(role, "a number or an ISO date", _DATES[0])
        try:
            return column.cast(kind)
        except pa.ArrowInvalid as error:
            like = "" if kind == pa.float64() else f" like {column[0].as_py()!r}"
            raise self._not(role, what[kind] + like, kind) from error

    def _of(self, row: int) -> str:
        words = {"item": "of item", "user": "for user"}
        known = {word: self.table[role][row].as_py() for role, word in words.items() if role in self}
        return "".join(f" {word} {shown(name)}" for word, name in known.items())

    def _not(self, role: str, what: str, kind: pa.DataType) -> InputError:
        """Return the error that names the first row whose value is not of that kind."""
        column = decoded(self.table[role])
        row, size = 0, len(column)
        while size > 1:
            half = size // 2
            good = _castable(column.slice(row, half), kind)
            row, size = (row + half, size - half) if good else (row, half)
        return self.error(row, f"the {role} must be {what}, got {str(column[row].as_py())!r}")


def load(
    source: Source, contents: Contents, columns: Chosen = None, given: Format | None = None, *, lenient: bool = False
) -> Rows:
    """Return the checked rows of any source, with the columns that have a role.

    Parameters
    ----------
    source : path, dataframe, dict or list
        Where to read.
    contents : Contents
        What to look for.
    columns : dict, optional
        Columns by role, where their names are not the usual ones; None for columns to be found by name.
    given : str, optional
        The format of a text file, if it can't be detected.
    lenient : bool
        Whether a chosen column may be absent, because another source has it.
    """
    opened = open_source(source, contents, chosen_columns(columns), given)
    return load_opened(opened, contents, columns, lenient=lenient)


def load_opened(opened: Opened, contents: Contents, columns: Chosen, *, lenient: bool = False) -> Rows:
    """Return the rows of a source that is already open."""
    chosen = {} if opened.fixed else chosen_columns(columns)
    if not lenient:
        check_chosen(columns, opened)
    found = find_columns(opened.names, contents, chosen, opened.name)
    require_columns(found, contents, opened.names, opened.name)
    ids = {found[role] for role in _IDS if role in found}
    table, notes = opened.read(Wanted(list(dict.fromkeys(found.values())), ids, contents.bytes_per_row))
    named = pa.table({role: table[str(column)] for role, column in found.items()})
    rows = _one_per_item(Rows(named, opened.name, opened.place, notes))
    _check_complete(rows)
    return _with_ids(rows, opened.whole_ids)


def check_chosen(columns: Chosen, *sources: Opened) -> None:
    """Raise `InputError` for a chosen column that none of the sources has."""
    for role, column in chosen_columns(columns).items():
        if all(source.fixed or position(column, source.names, source.name) is None for source in sources):
            where = " or ".join(dict.fromkeys(source.name for source in sources))
            names = some(list(dict.fromkeys(name for source in sources for name in source.names)))
            raise InputError(f"there is no column {column!r} for the {role} in {where}; choose from {names}.")


def _one_per_item(rows: Rows) -> Rows:
    """Turn rows that hold whole lists into one row per item."""
    nested = [role for role in rows.table.column_names if is_list(rows.table[role].type)]
    if not nested:
        return rows
    if "user" in nested:
        raise InputError(f"{rows.name} must have one user per row, got lists of users.")
    lists = {role: rows.table[role].combine_chunks() for role in nested}
    for role, column in lists.items():
        if (row := missing(column)) is not None:
            raise rows.error(row, f"the {role} is missing")
    sizes = {role: pc.list_value_length(column).to_numpy(zero_copy_only=False) for role, column in lists.items()}
    for role in nested[1:]:
        if (row := first_true(sizes[role] != sizes[nested[0]])) is not None:
            raise rows.error(row, f"the lists of {nested[0]} and {role} must have the same length")
    parents = owners(bounds(sizes[nested[0]]))
    flat = {role: pa.chunked_array([column.flatten()]) for role, column in lists.items()}
    table = pa.table({role: flat.get(role, rows.table[role].take(parents)) for role in rows.table.column_names})
    empty = int((sizes[nested[0]] == 0).sum())
    notes = (*rows.notes, f"{counted(empty, 'empty list', 'empty lists')} in {rows.name}") if empty else rows.notes
    return Rows(table, rows.name, lambda row: rows.place(int(parents[row])), notes, parents)


def _check_complete(rows: Rows) -> None:
    if len(rows) == 0:
        raise InputError(f"{rows.name} has no rows.")
    for role in rows.table.column_names:
        column = rows.table[role] if role in _IDS else decoded(rows.table[role])
        if (row := missing(column)) is not None:
            raise rows.error(row, f"the {role} is missing")
        if role in _IDS and is_words(column.type) and (row := missing_word(column)) is not None:
            raise rows.error(row, f"the {role} is missing: {column[row].as_py()!r} stands for no value")


def _with_ids(rows: Rows, whole: bool) -> Rows:
    table = rows.table
    for role in _IDS:
        if role in rows:
            ids = id_column(table[role], role, rows.place)
            if whole and not pa.types.is_integer(ids.type):
                row = first_not_a_number(decoded(ids))
                raise rows.error(row, f"the {role} must be a whole number, got {shown(ids[row].as_py())}")
            table = table.set_column(table.column_names.index(role), role, ids)
    return replace(rows, table=table)


def _filled(column: pa.ChunkedArray, kind: pa.DataType) -> AnyArray:
    """Return a column as an array of numbers of a type, one chunk at a time so that there is no second copy."""
    values = np.empty(len(column), np.dtype(str(kind)))  # Arrow's own conversion of the type needs pandas
    start = 0
    for chunk in column.chunks:
        values[start : start + len(chunk)] = chunk.cast(kind).to_numpy(zero_copy_only=False)
        start += len(chunk)
    return values


def _castable(column: pa.ChunkedArray, kind: pa.DataType) -> bool:
    try:
        column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True
