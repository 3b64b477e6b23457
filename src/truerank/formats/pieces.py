"""Tables that arrive in pieces, so that the text of a large file is never in memory as a whole."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from truerank.core.threads import require_memory
from truerank.formats.ids import is_text

_TEXT = pa.large_string()
_WHOLE = [(pa.int8(), 2**7), (pa.int16(), 2**15), (pa.int32(), 2**31), (pa.int64(), 2**63)]
_PENDING = 1 << 26  # bytes of ids that wait to be numbered


class Wanted(NamedTuple):
    """What to read of a file.

    Attributes
    ----------
    columns : sequence of int
        Their numbers.
    ids : collection of int
        Those with ids; if there are none, the table is wanted as it is, and its whole numbers keep their type.
    bytes_per_row : int
        Memory that the reader needs for each row, the rows themselves and its result included.
    """

    columns: Sequence[int]
    ids: Collection[int] = ()
    bytes_per_row: int = 0


class Gathered:
    """Pieces of a table, joined as they arrive: each text id is kept once, whole numbers in few bytes.

    Parameters
    ----------
    name : str
        What to call the source in messages.
    wanted : Wanted
        The columns, whose names are their numbers.

    Examples
    --------
    >>> gathered = Gathered("a file", Wanted([0, 1], ids=[0]))
    >>> gathered.add(pa.table({"0": ["ann", "bob"], "1": [4, 5]}))
    >>> gathered.add(pa.table({"0": ["ann"], "1": [3.5]}))
    >>> table = gathered.table()
    >>> table["0"].chunk(0).dictionary.to_pylist(), table["1"].to_pylist()
    (['ann', 'bob'], [4.0, 5.0, 3.5])
    """

    def __init__(self, name: str, wanted: Wanted) -> None:
        self._name, self._ids = name, {str(column): _Ids() for column in wanted.ids}
        self._bytes_per_row = wanted.bytes_per_row
        self._names: list[str] = []
        self._others: list[pa.Table] = []
        self._n_rows = self._n_bytes = 0

    def add(self, piece: pa.Table) -> None:
        """Take the next rows; refuse them if they don't fit into the memory that may be used."""
        for column, ids in self._ids.items():
            ids.add(piece[column])
        self._names = piece.column_names
        others = piece.select([name for name in piece.column_names if name not in self._ids])
        narrow = pa.table({name: _narrow(others[name]) for name in others.column_names}) if self._ids else others
        self._others.append(narrow)
        self._n_rows += len(piece)
        self._n_bytes += narrow.nbytes
        held = self._n_bytes + sum(ids.n_bytes for ids in self._ids.values())
        needed = self._bytes_per_row * self._n_rows + sum(ids.values.nbytes for ids in self._ids.values())
        require_memory(max(held, needed), f"{self._name}, of which {self._n_rows:,} rows were read,")

    def table(self) -> pa.Table:
        """Return all rows; raise ``pyarrow.ArrowTypeError`` if no type holds all values of a column."""
        others = pa.concat_tables(self._others, promote_options="permissive")
        columns = {name: others[name] for name in others.column_names}
        columns |= {name: ids.column() for name, ids in self._ids.items()}
        pa.default_memory_pool().release_unused()
        return pa.table({name: columns[name] for name in self._names})


def _narrow(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return whole numbers in the smallest type that holds them."""
    if column.type != pa.int64() or column.null_count == len(column):
        return column
    least, most = (value.as_py() for value in pc.min_max(column).values())
    return next(column.cast(kind) for kind, size in _WHOLE if -size <= least <= most < size)


def _width(kind: pa.DataType) -> int:
    return kind.bit_width if pa.types.is_primitive(kind) else 0


class _Ids:
    """A column of ids: whole numbers in few bytes, or codes of distinct texts, in the order of first occurrence.

    Attributes
    ----------
    values : pyarrow.Array
        The distinct texts.
    """

    def __init__(self) -> None:
        self._kind: pa.DataType | None = None
        self._chunks: list[pa.Array] = []
        self._pending: list[pa.DictionaryArray] = []
        self.values = pa.array([], _TEXT)

    @property
    def n_bytes(self) -> int:
        return self.values.nbytes + sum(chunk.nbytes for chunk in (*self._chunks, *self._pending))

    def add(self, column: pa.ChunkedArray) -> None:
        """Take the next ids; if some are text, all are."""
        kind = _TEXT if is_text(column.type) else column.type
        if self._kind not in (None, kind) and self._kind != _TEXT:
            earlier, self._chunks, self._kind = self.column(), [], _TEXT
            self.add(earlier)
        self._kind = self._kind or kind
        if self._kind != _TEXT:
            self._chunks += _narrow(column).chunks
            return
        self._pending += column.cast(_TEXT).dictionary_encode().chunks
        if sum(chunk.nbytes for chunk in self._pending) > _PENDING:
            self._number()

    def _number(self) -> None:
        """Turn texts into codes; those known so far keep theirs."""
        known = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), self.values)
        first, *others = pa.chunked_array([known, *self._pending]).unify_dictionaries().chunks
        self.values, self._pending = first.dictionary, []
        self._chunks += [chunk.indices for chunk in others]

    def column(self) -> pa.ChunkedArray:
        """Return all ids."""
        if self._kind != _TEXT:
            kind = max((chunk.type for chunk in self._chunks), key=_width, default=self._kind)
            return pa.chunked_array([chunk.cast(kind) for chunk in self._chunks], kind)
        self._number()
        chunks = [pa.DictionaryArray.from_arrays(codes, self.values) for codes in self._chunks]
        return pa.chunked_array(chunks, pa.dictionary(pa.int32(), _TEXT))
