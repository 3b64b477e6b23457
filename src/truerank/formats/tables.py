"""Files, dataframes, dicts and nested lists -> Arrow tables with one row per (user, item)."""

from __future__ import annotations

import itertools
import re
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from truerank.errors import InputError
from truerank.formats.columns import find_columns, require_columns

Source = Any
"""A path, "-" for standard input, a dataframe, a dict of dicts or lists, or a list of lists."""

_TREC_RUN = ["user", "iteration", "item", "rank", "score", "tag"]
_TREC_QRELS = ["user", "iteration", "item", "relevance"]
_NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)


def load(source: Source, value: Literal["score", "relevance", "rating"]) -> tuple[pa.Table, str]:
    """Return the rows of any source as they are, and what to call it in messages.

    `value` says what the inner values of a dict of dicts are.
    """
    if isinstance(source, str | Path):
        return read_file(source), repr(str(source))
    if isinstance(source, Mapping):
        return _from_mapping(source, value), "the dict"
    if isinstance(source, Sequence | np.ndarray):
        return _from_mapping(dict(enumerate(source)), value), "the list"
    return _from_frame(source), "the dataframe"


def by_role(table: pa.Table, where: str, needed: Collection[str], columns: Mapping[str, str] | None = None) -> pa.Table:
    """Return the columns that play a role, named by it, with one row per item and no gaps."""
    found = find_columns(table.column_names, columns)
    require_columns(found, needed, table.column_names, where)
    return _check_nulls(_explode(pa.table({role: table[column] for role, column in found.items()})), where)


def read_file(path: str | Path) -> pa.Table:
    """Return the rows of a Parquet, CSV, TSV, JSONL or TREC file, plain or gzipped; "-" is standard input.

    The kind is told by the content, not by the name.
    """
    content = pa.py_buffer(sys.stdin.buffer.read()) if str(path) == "-" else None
    if content is None and not Path(path).is_file():
        raise InputError(f"there is no file {str(path)!r}.")
    with unreadable(repr(str(path))):
        with open_stream(path, content) as stream:
            head = stream.read(1 << 16)
        check_head(head, repr(str(path)))
        with open_stream(path, content) as stream:
            return _parse(stream, head)


@contextmanager
def unreadable(name: str) -> Iterator[None]:
    """Say in one sentence why a file can't be read: it is cut off, or not what it begins as."""
    try:
        yield
    except (pa.ArrowInvalid, OSError, zipfile.BadZipFile) as error:
        raise InputError(f"can't read {name}: {str(error).splitlines()[0]}") from error


def check_head(head: bytes, name: str) -> None:
    """Refuse a file without content, and one that is neither text nor Parquet."""
    if not head.removeprefix(b"\xef\xbb\xbf").strip():
        raise InputError(f"{name} is empty.")
    if b"\0" in head and not head.startswith(b"PAR1"):
        raise InputError(f"{name} is neither text nor Parquet, plain or gzipped: it holds bytes of zero.")


def open_stream(path: str | Path, content: pa.Buffer | None = None) -> Any:
    """Return the bytes of a file, or of a buffer, as a stream, unpacked if they are gzipped."""
    raw = pa.OSFile(str(path)) if content is None else pa.BufferReader(content)
    gzipped = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    return pa.CompressedInputStream(raw, "gzip") if gzipped else raw


def _parse(stream: Any, head: bytes) -> pa.Table:
    if head.startswith(b"PAR1"):
        return pq.read_table(stream)
    if head.lstrip().startswith(b"{"):
        return pa_json.read_json(stream)
    first = head.lstrip(b"\xef\xbb\xbf").splitlines()[0]
    if names := _trec_columns(first):
        return _read_trec(stream, head, names)
    delimiter = max("\t,;", key=lambda mark: first.count(mark.encode()))
    return pa_csv.read_csv(stream, parse_options=pa_csv.ParseOptions(delimiter=delimiter))


def _trec_columns(line: bytes) -> list[str] | None:
    fields = line.split()
    if len(fields) == 6 and all(map(_NUMBER.fullmatch, fields[3:5])):
        return _TREC_RUN
    if len(fields) == 4 and b"," not in line and re.fullmatch(rb"-?\d+", fields[3]):
        return _TREC_QRELS
    return None


def _read_trec(stream: Any, head: bytes, names: list[str]) -> pa.Table:
    if re.search(rb"[ \t]{2,}|[ \t]\r?\n|^[ \t]", head) or (b"\t" in head and b" " in head):
        lines = (b" ".join(line.split()) for line in stream.read().splitlines())
        stream, delimiter = pa.BufferReader(b"\n".join(lines)), " "
    else:
        delimiter = "\t" if b"\t" in head else " "
    # ids are names, even where they look like numbers: "007" is not 7
    types = {"user": pa.string(), "item": pa.string(), "rank": pa.float64(), "score": pa.float64()}
    table = pa_csv.read_csv(
        stream,
        read_options=pa_csv.ReadOptions(column_names=names),
        parse_options=pa_csv.ParseOptions(delimiter=delimiter, quote_char=False),
        convert_options=pa_csv.ConvertOptions(
            column_types=types, include_columns=[name for name in names if name not in ("iteration", "tag")]
        ),
    )
    # the TREC tools order by score; the rank column is there to be read
    return table.drop_columns("rank") if "score" in table.column_names else table


def _from_frame(frame: Any) -> pa.Table:
    import narwhals as nw

    try:
        known = nw.from_native(frame)
    except TypeError as error:
        kind = type(frame).__name__
        raise InputError(f"can't read lists from {kind}; give a path, a dataframe, a dict or a list.") from error
    eager = known.collect() if isinstance(known, nw.LazyFrame) else known
    return pa.table({name: eager[name].to_arrow() for name in eager.columns})


def _from_mapping(lists: Mapping[Any, Any], value: str) -> pa.Table:
    sizes = [len(inner) for inner in lists.values()]
    users = _ids(list(lists), "user").take(np.repeat(np.arange(len(sizes)), sizes))
    items = _ids(list(itertools.chain.from_iterable(lists.values())), "item")
    if not all(isinstance(inner, Mapping) for inner in lists.values()):
        return pa.table({"user": users, "item": items})
    flat = itertools.chain.from_iterable(inner.values() for inner in lists.values())
    return pa.table({"user": users, "item": items, value: pa.array(flat, type=pa.float64())})


def _ids(names: list[Any], role: str) -> pa.Array:
    try:
        return pa.array(names)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"the {role} ids must all be numbers or all be text ({error}).") from error


def _explode(table: pa.Table) -> pa.Table:
    """Turn rows that hold whole lists into one row per item."""
    nested = [name for name in table.column_names if _is_list(table[name].type)]
    if not nested:
        return table
    import pyarrow.compute as pc

    lists = {name: table[name].combine_chunks() for name in nested}
    parents = pc.list_parent_indices(lists[nested[0]])
    flat = {name: pc.list_flatten(column) for name, column in lists.items()}
    if any(len(column) != len(parents) for column in flat.values()):
        raise InputError(f"the lists in the columns {', '.join(nested)} must have the same lengths.")
    return pa.table({name: flat[name] if name in flat else table[name].take(parents) for name in table.column_names})


def _is_list(kind: pa.DataType) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in tests)


def _check_nulls(table: pa.Table, where: str) -> pa.Table:
    for name in table.column_names:
        if table[name].null_count:
            row = int(np.argmax(table[name].is_null().to_numpy()))
            raise InputError(f"{where} has no {name} in row {row + 1}.")
    return table
