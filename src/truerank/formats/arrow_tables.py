"""Anything with rows (a file, a dataframe, lists or dicts) -> an Arrow table."""

from __future__ import annotations

import io
import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from truerank.core.checks import InputError, as_frame, refuse_pairs
from truerank.core.csr import bounds
from truerank.core.threads import fitting
from truerank.formats.columns import Contents, find_columns
from truerank.formats.ids import decoded
from truerank.formats.pieces import Gathered, Wanted
from truerank.formats.sources import File, Source, check_unpacked, locate, reason, unpacked, unpacked_size, unreadable
from truerank.formats.text_files import Detection, Format, Layout, check_format, not_utf8

_REFUSED = (pa.ArrowException, OverflowError, TypeError, ValueError)


def from_columns(columns: Mapping[Any, Any], contents: Contents, chosen: Mapping[str, str | int]) -> pa.Table | None:
    """Return ``{"user": [...], "item": [...]}`` as a table; None if the keys of a dict are not names of columns.

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
    is_indexed = isinstance(values, Sized) and hasattr(values, "__getitem__")
    return is_indexed and not isinstance(values, str | bytes | Mapping)


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
    indptr = bounds([len(inner) for inner in lists.values()])
    columns = {"item": _array(list(itertools.chain.from_iterable(lists.values())), "item ids")}
    if lists and all(isinstance(inner, Mapping) for inner in lists.values()):
        values = list(itertools.chain.from_iterable(inner.values() for inner in lists.values()))
        columns[value] = _array(values, f"{value}s")
    nested = {name: pa.LargeListArray.from_arrays(indptr, column) for name, column in columns.items()}
    return pa.table({"user": _array(list(lists), "user ids"), **nested})


def from_lists(lists: Sequence[Any] | np.ndarray[Any, Any], value: str) -> pa.Table:
    """Return one row per list; the users are numbered 0, 1, ..."""
    if isinstance(lists, np.ndarray) and lists.ndim == 2:
        indptr = np.arange(lists.shape[0] + 1, dtype=np.int64) * lists.shape[1]
        items = pa.LargeListArray.from_arrays(indptr, _array(lists.ravel(), "item ids"))
        return pa.table({"user": np.arange(lists.shape[0]), "item": items})
    refuse_pairs(lists, "the list")
    return from_mapping(dict(enumerate(lists)), value)


def columns_of(frame: Any) -> tuple[list[str], Any]:
    """Return the names of a dataframe's columns, and a function that returns one as an Arrow array."""
    import narwhals as nw

    if isinstance(frame, pa.Table):
        return frame.column_names, frame.column
    try:
        wrapped = as_frame(frame)
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
        column = _in_utc(frame[name]).to_arrow()
    except Exception as error:  # each library has its own
        raise InputError(f"can't read the column {str(name)!r} of the dataframe ({reason(error)}).") from error
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _in_utc(column: Any) -> Any:
    """Return times with a time zone as times in UTC without one, which Arrow reads from pandas without a warning."""
    if getattr(column.dtype, "time_zone", None) is None:
        return column
    return column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)


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


_ROWS = 1 << 17  # rows of a Parquet file read at once
_PIECE = 1 << 24  # bytes of JSON read at once
_BYTES_PER_BYTE = 8  # memory per byte of JSON: as bytes, as text, and parsed
# nesting of JSON objects; a depth of a hundred thousand overflows the stack of Arrow's parser
_DEEPEST = 64


Read = tuple[pa.Table, tuple[str, ...]]
"""Columns, and notes."""


class Opened(ABC):
    """A source whose columns are known and can be read.

    Attributes
    ----------
    name : str
        What to call the source in messages.
    names : sequence of str
        Names of its columns, which need not be distinct.
    whole_ids : bool
        Whether ids must be whole numbers.
    fixed : bool
        Whether the format says which column is which, and not the caller.
    unnamed : bool
        Whether the columns have no names of their own.
    metadata : mapping, optional
        What the source says besides its columns.
    """

    name: str
    names: Sequence[str]
    whole_ids: bool = False
    fixed: bool = False
    unnamed: bool = False
    metadata: Mapping[bytes, bytes] | None = None

    @abstractmethod
    def read(self, wanted: Wanted) -> Read:
        """Return some columns, named by their numbers, and notes."""

    def place(self, row: int) -> str:
        """Return what to call a row in messages."""
        return f"{self.name}, row {row + 1}"

    def whole(self) -> pa.Table:
        """Return all columns by their names, with the metadata of the source."""
        table = self.read(Wanted(range(len(self.names))))[0].rename_columns(list(self.names))
        return table.replace_schema_metadata(self.metadata)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column as it is."""
        return self.read(Wanted([self.names.index(name)]))[0].column(0)


def open_source(source: Source, contents: Contents, chosen: Mapping[str, str | int], given: Format | None) -> Opened:
    """Open a file, dataframe, dict or list that should have these contents."""
    check_format(given)
    if isinstance(source, str | Path):
        return _open_file(locate(source), contents, chosen, given)
    if isinstance(source, bytes | bytearray | memoryview):
        raise InputError("can't read from bytes; give a path as text, a dataframe, a dict or a list.")
    if isinstance(source, Mapping):
        if (table := from_columns(source, contents, chosen)) is not None:
            return _Frame(table, "the dict")
        return _Frame(from_mapping(source, contents.value), "the dict", fixed=True)
    if isinstance(source, Sequence | np.ndarray):
        return _Frame(from_lists(source, contents.value), "the list", fixed=True)
    return _Frame(source, "the dataframe")


def _open_file(file: File, contents: Contents, chosen: Mapping[str, str | int], given: Format | None) -> Opened:
    with unreadable(str(file)):
        head = file.head()
        _check_head(head, str(file))
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        json = start in (b"{", b"[")
        if not json and not head.startswith(b"PAR1"):
            return _Text(file, Detection(file, contents, chosen, given).layout(head))
        if given is not None:
            raise InputError(f"{file} is {'JSON' if json else 'Parquet'}, not {given!r}.")
        if start == b"[":
            raise InputError(f"{file} is a JSON array; write one object per line instead (JSON Lines).")
        return _Json(file) if json else _Parquet(file)


def _check_head(head: bytes, name: str) -> None:
    """Refuse a file without content, and one that is neither text nor Parquet."""
    if not head.removeprefix(b"\xef\xbb\xbf").strip():
        raise InputError(f"{name} is empty.")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{name} is UTF-16; save it as UTF-8.")
    if b"\0" in head and not head.startswith(b"PAR1"):
        raise InputError(f"{name} is neither text nor Parquet, plain or gzipped: it contains null bytes.")


class _Text(Opened):
    """Lines that are divided into fields."""

    def __init__(self, file: File, layout: Layout) -> None:
        self.name, self.names = str(file), layout.names
        self.whole_ids, self.fixed, self.unnamed = layout.whole_ids, layout.fixed, layout.unnamed
        self._file, self._layout = file, layout

    def read(self, wanted: Wanted) -> Read:
        with unreadable(self.name):
            return self._layout.read(self._file, wanted)

    def place(self, row: int) -> str:
        return self._layout.line_of(self._file, row)


class _Parquet(Opened):
    """A Parquet file; only the needed columns are read.

    Text is read as a dictionary, which repeated values do not enlarge, and is unpacked once its size is known.
    """

    def __init__(self, file: File) -> None:
        self._file = file
        with file.open_anywhere() as stream:
            content = pq.ParquetFile(stream)
            self.name, self.names, self._contents = str(file), content.schema_arrow.names, content.metadata
            self.metadata = self._contents.metadata
            leaves = [content.schema.column(place) for place in range(len(content.schema))]
            self._texts = [leaf.path for leaf in leaves if _is_text(leaf)]

    def read(self, wanted: Wanted) -> Read:
        with unreadable(self.name), self._file.open_anywhere() as stream:
            # the metadata of columns say more, but Arrow ends the process if they are damaged
            groups = map(self._contents.row_group, range(self._contents.num_row_groups))
            stored = sum(group.total_byte_size for group in groups)
            check_unpacked(self.name, max(stored, 8 * self._contents.num_rows * len(wanted.columns)), stream.size())
            # with reading ahead, the packed columns of the whole file would be in memory
            content, size = pq.ParquetFile(stream, read_dictionary=self._texts, pre_buffer=False), 0
            gathered = Gathered(self.name, wanted)
            for piece in self._pieces(content, wanted.columns):
                size += sum(unpacked_size(column) for column in piece.columns)
                check_unpacked(self.name, size, stream.size())
                gathered.add(pa.table({name: unpacked(piece[name]) for name in piece.column_names}))
            return gathered.table(), ()

    def _pieces(self, content: pq.ParquetFile, columns: Sequence[int]) -> Iterator[pa.Table]:
        """Yield some rows at a time, with columns named by their numbers."""
        names = [str(column) for column in columns]
        if len(set(self.names)) < len(self.names):
            yield content.read().select(list(columns)).rename_columns(names)
            return
        wanted = [self.names[column] for column in columns]
        if not self._contents.num_rows:
            yield content.schema_arrow.empty_table().select(wanted).rename_columns(names)
        for batch in content.iter_batches(_ROWS, columns=wanted):
            yield pa.table(batch.select(wanted)).rename_columns(names)


def _is_text(leaf: pq.ColumnSchema) -> bool:
    return leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type in ("STRING", "NONE")


class _Json(Opened):
    """JSON objects, one per line.

    Any of them may have other columns, or need other types, so all are read once to find columns and types, and once
    more to keep the columns that are needed.
    """

    def __init__(self, file: File) -> None:
        self.name, self._file, self._encoding = str(file), file, "utf-8"
        try:
            self._inspect()
        except UnicodeDecodeError:
            self._encoding = "latin-1"
            self._inspect()
        self.names = list(self._kinds)

    def _inspect(self) -> None:
        """Count the rows, and find the types that hold all values."""
        self._kinds: dict[str, pa.DataType] = {}
        self._n_rows = 0
        for table in self._pieces():
            for name, kind in zip(table.schema.names, table.schema.types, strict=True):
                earlier = self._kinds.get(name, pa.null())
                try:
                    self._kinds[name] = _holding_both(earlier, kind)
                except pa.ArrowTypeError as error:
                    rows = f"{earlier} up to row {self._n_rows} and {kind} after it"
                    raise InputError(f"{self.name}: the column {name!r} must be of one type, got {rows}.") from error
            self._n_rows += len(table)

    def _pieces(self, kinds: Mapping[str, pa.DataType] | None = None) -> Iterator[pa.Table]:
        """Yield some rows at a time: columns of the given types, or all columns, with types that hold their values."""
        n_lines = n_rows = 0
        for piece in self._file.pieces(fitting(_PIECE, _BYTES_PER_BYTE)):
            content = piece.removeprefix(b"\xef\xbb\xbf").decode(self._encoding).encode()
            _check_nesting(content, self.name, n_lines)
            if not content.isspace():
                yield (table := self._parse(content, kinds, n_rows))
                n_rows += len(table)
            n_lines += content.count(b"\n")

    def _parse(self, content: bytes, kinds: Mapping[str, pa.DataType] | None, n_rows: int) -> pa.Table:
        """Return the rows in a piece that comes after `n_rows` others."""
        # a line must fit into a block, and Arrow counts the rows of each block
        reading = pa_json.ReadOptions(block_size=len(content) + 1)
        chosen = pa_json.ParseOptions(explicit_schema=pa.schema(kinds or {}), unexpected_field_behavior="ignore")
        try:
            table = pa_json.read_json(pa.BufferReader(content), reading, chosen if kinds else None)
        except pa.ArrowInvalid as error:
            numbered = re.sub(r"in row ([0-9]+)$", lambda row: f"in row {n_rows + int(row[1]) + 1}", str(error))
            raise pa.ArrowInvalid(numbered) from error
        try:
            table.validate(full=True)
        except pa.ArrowInvalid as error:  # Arrow loses a null before the first number of a list
            raise InputError(f"{self.name} has a list with a null before its numbers.") from error
        return table

    def read(self, wanted: Wanted) -> Read:
        with unreadable(self.name):
            kinds = {self.names[column]: self._kinds[self.names[column]] for column in wanted.columns}
            kinds |= {self.names[column]: self._spelled(self.names[column]) for column in wanted.ids}
            gathered = Gathered(self.name, wanted)
            for piece in self._pieces(kinds):
                gathered.add(pa.table({str(column): piece[self.names[column]] for column in wanted.columns}))
            return gathered.table(), (not_utf8(self._file),) if self._encoding == "latin-1" else ()

    def _spelled(self, name: str) -> pa.DataType:
        """Return the type of ids as they are spelled: dates are text, and numbers above 2**63 may be whole."""
        kind = self._kinds[name]
        nested = pa.types.is_list(kind)
        inner = kind.value_type if nested else kind
        if pa.types.is_timestamp(inner):
            return pa.list_(pa.string()) if nested else pa.string()
        whole = pa.list_(pa.uint64()) if nested else pa.uint64()
        return whole if pa.types.is_floating(inner) and self._all_are(name, whole) else kind

    def _all_are(self, name: str, kind: pa.DataType) -> bool:
        try:
            return all(True for _ in self._pieces({name: kind}))
        except pa.ArrowInvalid:
            return False

    def place(self, row: int) -> str:
        with self._file.open() as stream:
            lines = enumerate(io.TextIOWrapper(stream, "latin-1", newline="\n"), start=1)
            filled = (number for number, line in lines if line.strip())
            number = next(itertools.islice(filled, row, None), None)
            is_line_per_row = row + 1 + sum(1 for _ in filled) == self._n_rows
        return f"{self.name}, line {number}" if is_line_per_row else super().place(row)


def _holding_both(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type that holds the values of both; text if some look like dates and others do not."""
    try:
        return _promoted(one, other)
    except pa.ArrowTypeError:
        return _promoted(_without_dates(one), _without_dates(other))


def _promoted(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    both = [pa.schema({"": kind}) for kind in (one, other)]
    return pa.unify_schemas(both, promote_options="permissive").field(0).type


def _without_dates(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_without_dates(kind.value_type))
    return pa.string() if pa.types.is_timestamp(kind) else kind


def _check_nesting(content: bytes, name: str, n_lines: int) -> None:
    """Refuse lines, after `n_lines` others, whose brackets are nested deeper than in any table."""
    codes = np.frombuffer(content, dtype=np.uint8)
    # { and } are [ and ] with another bit set
    at = np.flatnonzero(((codes | 0x20) == 0x7B) | ((codes | 0x20) == 0x7D))
    depth = np.cumsum(np.where((codes[at] | 0x20) == 0x7B, 1, -1))
    line = np.searchsorted(np.flatnonzero(codes == 0x0A), at)
    first = np.flatnonzero(np.diff(line, prepend=-1))
    before = np.repeat(np.append(0, depth)[first], np.diff(first, append=at.size))
    if np.any(deep := depth - before > _DEEPEST):
        where = f"line {n_lines + line[np.argmax(deep)] + 1}"
        raise InputError(f"{name}, {where}: brackets are nested more than {_DEEPEST} deep.")


class _Frame(Opened):
    """A dataframe of any library, or an Arrow table."""

    def __init__(self, frame: Any, name: str, *, fixed: bool = False) -> None:
        self.name, self.fixed = name, fixed
        self.metadata = frame.schema.metadata if isinstance(frame, pa.Table) else None
        self.names, self._column = columns_of(frame)

    def read(self, wanted: Wanted) -> Read:
        found = {str(column): self._column(column) for column in wanted.columns}
        return pa.table(found | {str(column): decoded(found[str(column)]) for column in wanted.ids}), ()
