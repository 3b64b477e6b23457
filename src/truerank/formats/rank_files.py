"""`Ranks` <-> Parquet and npz files, Arrow tables, and rows that can be separated and joined again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from truerank.core.checks import AnyArray, InputError, Ints, first_true, frozen, raised_on_workers
from truerank.core.csr import bounds
from truerank.core.ranks import Ranks
from truerank.core.samples import Sample
from truerank.formats import arrow_tables, sources, writing
from truerank.formats.columns import RANKS, some

PER_ITEM = ("above", "tied", "grades", "same_score", "drawn", "estimated", "items")
PER_INSTANCE = ("ids", "n_candidates", "n_catalogue", "scored")
_COLUMNS = {"ids": "id"}
ARRAYS = (*PER_ITEM, *PER_INSTANCE, "indptr")

ENDINGS = (".parquet", ".npz")
"""Endings that `Ranks.save` accepts."""


def check_path(path: str | Path) -> str:
    """Return the ending of a path to save to, or raise `InputError` if `Ranks.save` can't write it."""
    return writing.check_writable(path, ENDINGS)


def write_ranks(ranks: Ranks, path: str | Path) -> None:
    """Write what `read_ranks` reads."""
    design = None if ranks.design is None else str(ranks.design)
    extra = json.dumps({"depth": ranks.depth, "notes": ranks.notes, "design": design})
    kind = check_path(path)
    with writing.replacing(path) as (file,):
        if kind == ".npz":
            np.savez_compressed(file, allow_pickle=False, **_arrays(ranks), truerank=np.array(extra))
        else:
            pq.write_table(to_arrow(ranks).replace_schema_metadata({"truerank": extra}), file)


def read_ranks(path: str | Path) -> Ranks:
    """Read what `write_ranks` wrote."""
    if Path(path).suffix.lower() != ".npz":
        return from_opened(arrow_tables.open_source(path, RANKS, {}, None))
    arrays = sources.load_arrays(path)
    if not {"truerank", "above", "tied", "n_candidates", "indptr"} <= set(arrays):
        raise InputError(f"{str(path)!r} was not written by Ranks.save.")
    extra = _extra(str(arrays["truerank"]))
    return _from_fields({name: _checked(name, arrays[name]) for name in ARRAYS if name in arrays} | extra)


def _arrays(ranks: Ranks) -> dict[str, AnyArray]:
    """Return the arrays that these ranks have; the catalogue only if they are sampled."""
    names = [name for name in ARRAYS if name != "n_catalogue" or ranks.sample is not None]
    return {name: array for name in names if (array := getattr(ranks, name)) is not None}


def _from_fields(fields: dict[str, Any]) -> Ranks:
    """Return ranks from stored fields, including those of a sample."""
    design, catalogue, *per_item = (fields.pop(name, None) for name in ("design", "n_catalogue", "drawn", "estimated"))
    if (design is None) != (catalogue is None):
        raise InputError("`design` and `n_catalogue` belong together: give both, or neither for exact ranks.")
    return Ranks(**fields, sample=None if design is None else Sample(design, catalogue, *per_item))


def to_arrow(ranks: Ranks) -> pa.Table:
    """Return a table with a row per instance; values per relevant item become lists."""
    arrays = _arrays(ranks)
    columns = {_COLUMNS.get(name, name): pa.array(arrays[name]) for name in PER_INSTANCE if name in arrays}
    offsets = pa.array(ranks.indptr, type=pa.int64())
    lists = {name: pa.array(arrays[name]) for name in PER_ITEM if name in arrays}
    return pa.table(columns | {name: pa.LargeListArray.from_arrays(offsets, array) for name, array in lists.items()})


def from_arrow(table: pa.Table) -> Ranks:
    """Read a table laid out as by `to_arrow`."""
    return _joined(table.column_names, table.column, table.schema.metadata)


def from_opened(opened: arrow_tables.Opened) -> Ranks:
    """Read such a table from a source, one column after another, so that no two of them are held twice."""
    return _joined(opened.names, opened.column, opened.metadata)


def _joined(
    names: Sequence[str], column: Callable[[str], pa.ChunkedArray], metadata: Mapping[bytes, bytes] | None
) -> Ranks:
    if missing := {"n_candidates", "above", "tied"} - set(names):
        raise InputError(f"a table of ranks needs the columns {', '.join(sorted(missing))}, found {some(names)}.")
    if len(set(names)) < len(names):
        raise InputError(f"a table of ranks must have distinct columns, found {some(names)}.")
    extra = _extra((metadata or {}).get(b"truerank", b"{}"))
    fields: dict[str, Any] = {}
    for name in (name for name in PER_ITEM if name in names):  # 'above' comes first
        lists = column(name)
        if name == "above":
            fields["indptr"] = frozen(bounds(_sizes(name, lists)))
        fields[name] = _checked(name, _flattened(name, lists, fields["indptr"]))
        del lists  # before the next one is read
    for name in (name for name in PER_INSTANCE if _COLUMNS.get(name, name) in names):
        fields[name] = _checked(name, _values(_COLUMNS.get(name, name), column(_COLUMNS.get(name, name))))
    return _from_fields(fields | extra)


def _sizes(name: str, lists: pa.Array | pa.ChunkedArray) -> Ints:
    if "list" not in str(lists.type) or lists.null_count:
        raise InputError(f"the column {name!r} of a table of ranks must hold lists, got {lists.type}.")
    return pc.list_value_length(lists).to_numpy()


def _flattened(name: str, lists: pa.ChunkedArray, indptr: Ints) -> AnyArray:
    """Return the values in lists, which must be as long as those of the first column."""
    start = 0
    for chunk in lists.chunks:
        ends = indptr[start : start + len(chunk) + 1]
        if (row := first_true(_sizes(name, chunk) != np.diff(ends))) is not None:
            where = f"row {start + row + 1}"
            raise InputError(f"{where}: the lists in the columns 'above' and {name!r} must have the same length.")
        start += len(chunk)
    return _values(name, pa.chunked_array([chunk.flatten() for chunk in lists.chunks], lists.type.value_type))


def _values(name: str, column: pa.ChunkedArray) -> AnyArray:
    """Return a column as an array that nobody else has."""
    if column.null_count:
        raise InputError(f"the column {name!r} of a table of ranks must not have missing values.")
    if pa.types.is_nested(column.type):
        raise InputError(f"the column {name!r} of a table of ranks must hold one value per entry, got {column.type}.")
    chunks = column.chunks or [pa.array([], column.type)]
    return frozen(np.concatenate([chunk.to_numpy(zero_copy_only=False) for chunk in chunks]))


_NAMES = ("biufUOTM", "numbers or text")
_KINDS = {
    "grades": ("f", "numbers"),
    "estimated": ("f", "numbers"),
    "same_score": ("b", "true or false"),
    "ids": _NAMES,
    "items": _NAMES,
}


def _checked(name: str, array: AnyArray) -> AnyArray:
    """Refuse an array of another type than `Ranks.save` writes."""
    kinds, what = _KINDS.get(name, ("iuf", "whole numbers"))
    if array.size and array.dtype.kind not in kinds:
        raise InputError(f"the {name} of stored ranks must be {what}, got values of type {array.dtype}.")
    return array


def _extra(text: str | bytes) -> dict[str, Any]:
    """Return the stored fields that are not arrays."""
    try:
        extra = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the metadata of stored ranks can't be read ({error}).") from error
    if not isinstance(extra, dict):
        raise InputError(f"the metadata of stored ranks must be an object, got {type(extra).__name__}.")
    depth, notes, design = (extra.get(name) for name in ("depth", "notes", "design"))
    if depth is not None and (type(depth) is not int or not 1 <= depth < 2**63):
        raise InputError(f"the depth of stored ranks must be a whole number from 1, got {depth!r}.")
    if notes is not None and not (isinstance(notes, list) and all(isinstance(note, str) for note in notes)):
        raise InputError(f"the notes of stored ranks must be strings, got {notes!r}.")
    if design is not None and not isinstance(design, str):
        raise InputError(f"the design of stored ranks must be a string, got {design!r}.")
    return {"depth": depth, "notes": tuple(notes or ()), "design": design}


STATED = ("design", "depth")
"""Columns that have the same value in every row."""


def to_rows(ranks: Ranks, schema: pa.Schema) -> pa.Table:
    """Return a row per instance with the columns of the schema; columns that these ranks lack are null.

    Examples
    --------
    >>> import pyarrow as pa, truerank as tr
    >>> ranks = tr.Ranks.from_sampled([[5, 3], [1]], m=20, n=100)
    >>> schema = pa.schema({"n_candidates": "int64", "above": pa.list_(pa.int64()), "design": "string"})
    >>> to_rows(ranks, schema).to_pylist()[0]
    {'n_candidates': 22, 'above': [2, 3], 'design': 'uniform(20)'}
    """
    table, design = to_arrow(ranks), None if ranks.design is None else str(ranks.design)
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    columns |= {name: pa.array([value] * len(ranks)) for name, value in (("design", design), ("depth", ranks.depth))}
    return pa.table([columns.get(field.name, pa.nulls(len(ranks))).cast(field.type) for field in schema], schema)


def from_rows(table: pa.Table) -> Ranks:
    """Return the ranks in the rows of a table; columns of nulls, and estimated counts if any are missing, are ignored.

    Examples
    --------
    >>> import pyarrow as pa, truerank as tr
    >>> rows = {"n_candidates": [9, 9], "above": [[2], [0]], "tied": [[0], [1]], "depth": [5, 5], "scored": [None] * 2}
    >>> from_rows(pa.table(rows))
    Ranks(2 instances, 2 relevant items, cut at depth 5, 50.0 % of instances tied)
    """
    most = {"estimated": 1}
    filled = [
        name for name in table.column_names if not len(table) or table[name].null_count < most.get(name, len(table))
    ]
    extra = {name: _only(table, name) for name in STATED if name in filled}
    rest = table.select([name for name in filled if name not in STATED])
    return from_arrow(rest.replace_schema_metadata({"truerank": json.dumps(extra)}))


def from_frame(frame: Any) -> Ranks:
    """Return the ranks in a dataframe of another process with a method `toArrow`, such as Spark's."""
    if not hasattr(frame, "toArrow"):
        raise InputError(f"ranks must be in a Spark dataframe, got {type(frame).__name__}.")
    with raised_on_workers():
        return from_rows(frame.toArrow())


def _only(table: pa.Table, name: str) -> Any:
    """Return the value that all rows must have."""
    values = table[name].unique().to_pylist()
    if len(values) > 1:
        raise InputError(f"all ranks of a table must have the same {name}, got {values[0]!r} and {values[1]!r}.")
    return values[0] if values else None
