"""The fields of `Ranks` <-> a Parquet file with a row per instance, or an npz file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.arrays import AnyArray, Ints
from truerank.errors import InputError
from truerank.formats.columns import some
from truerank.formats.writing import check_writable, replacing

if TYPE_CHECKING:
    import pyarrow as pa

    from truerank.sampling.designs import SamplingDesign

PER_ITEM = ("above", "tied", "grades", "same_score", "drawn", "items", "count_weights")
PER_INSTANCE = ("n_candidates", "n_catalogue", "scored", "ids")
ARRAYS = (*PER_ITEM, *PER_INSTANCE, "indptr")


ENDINGS = (".parquet", ".npz")
"""Endings that `Ranks.save` accepts."""


def check_path(path: str | Path) -> str:
    """Return the ending of a path to save to, or raise `InputError` if `Ranks.save` can't write it."""
    return check_writable(path, ENDINGS)


def write_fields(path: str | Path, fields: Mapping[str, Any]) -> None:
    """Write what `read_fields` reads."""
    design = None if fields["design"] is None else str(fields["design"])
    extra = json.dumps({"depth": fields["depth"], "notes": fields["notes"], "design": design})
    kind = check_path(path)
    with replacing(path) as (file,):
        if kind == ".npz":
            arrays = {name: fields[name] for name in ARRAYS if fields[name] is not None}
            np.savez_compressed(file, allow_pickle=False, **arrays, truerank=np.array(extra))
        else:
            import pyarrow.parquet as pq

            pq.write_table(fields_to_arrow(fields).replace_schema_metadata({"truerank": extra}), file)


def read_fields(path: str | Path) -> dict[str, Any]:
    """Read what `write_fields` wrote."""
    if Path(path).suffix.lower() != ".npz":
        from truerank.formats.columns import RANKS
        from truerank.formats.tables import open_source

        return fields_from_arrow(open_source(path, RANKS, {}, None).whole())
    from truerank.formats.arrays import load_arrays

    arrays = load_arrays(path)
    if not {"truerank", "above", "tied", "n_candidates", "indptr"} <= set(arrays):
        raise InputError(f"{str(path)!r} was not written by Ranks.save.")
    extra = _extra(str(arrays["truerank"]))
    return {name: _checked(name, arrays[name]) for name in ARRAYS if name in arrays} | extra


def fields_to_arrow(fields: Mapping[str, Any]) -> pa.Table:
    """Return a table with a row per instance; values per relevant item become lists."""
    import pyarrow as pa

    columns = {} if fields["ids"] is None else {"id": pa.array(fields["ids"])}
    columns["n_candidates"] = pa.array(fields["n_candidates"])
    columns |= {name: pa.array(fields[name]) for name in ("n_catalogue", "scored") if fields[name] is not None}
    offsets = pa.array(fields["indptr"], type=pa.int64())
    for name in PER_ITEM:
        if fields[name] is not None:
            columns[name] = pa.LargeListArray.from_arrays(offsets, _column(fields[name]))
    return pa.table(columns)


def _column(array: AnyArray) -> pa.Array:
    """Return one entry per relevant item: a number or name, or a list where the array has two dimensions."""
    import pyarrow as pa

    if array.ndim == 1:
        return pa.array(array)
    return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])


def fields_from_arrow(table: pa.Table) -> dict[str, Any]:
    """Read a table laid out as by `fields_to_arrow`."""
    if missing := {"n_candidates", "above", "tied"} - set(table.column_names):
        needed = ", ".join(sorted(missing))
        raise InputError(f"a table of ranks needs the columns {needed}, found {some(table.column_names)}.")
    if len(set(table.column_names)) < len(table.column_names):
        raise InputError(f"a table of ranks must have distinct columns, found {some(table.column_names)}.")
    fields: dict[str, Any] = {"indptr": _bounds(table)}
    for name in PER_ITEM:
        if name in table.column_names:
            fields[name] = _checked(name, _values(name, table[name].combine_chunks().flatten()))
    for name in PER_INSTANCE:
        column = "id" if name == "ids" else name
        if column in table.column_names:
            fields[name] = _checked(name, _values(column, table[column].combine_chunks()))
    return fields | _extra((table.schema.metadata or {}).get(b"truerank", b"{}"))


def _bounds(table: pa.Table) -> Ints:
    """Return the boundaries of the instances, which all lists must share."""
    import pyarrow.compute as pc

    names = [name for name in PER_ITEM if name in table.column_names]
    for name in names:
        if "list" not in str(table[name].type) or table[name].null_count:
            raise InputError(f"the column {name!r} of a table of ranks must hold lists, got {table[name].type}.")
    sizes = {name: pc.list_value_length(table[name].combine_chunks()).to_numpy() for name in names}
    for name in names:
        if np.any(differ := sizes[name] != sizes["above"]):
            row = int(np.argmax(differ))
            raise InputError(f"row {row + 1}: the lists in the columns 'above' and {name!r} must have the same length.")
    return np.concatenate([[0], np.cumsum(sizes["above"], dtype=np.int64)])


def _values(name: str, column: pa.Array) -> AnyArray:
    import pyarrow as pa

    if column.null_count:
        raise InputError(f"the column {name!r} of a table of ranks must not have missing values.")
    if str(column.type).startswith("fixed_size_list"):
        return _values(name, column.flatten()).reshape(len(column), -1)
    if pa.types.is_nested(column.type):
        raise InputError(f"the column {name!r} of a table of ranks must hold one value per entry, got {column.type}.")
    return column.to_numpy(zero_copy_only=False)


_NAMES = ("biufUOTM", "numbers or text")
_KINDS = {
    "grades": ("f", "numbers"),
    "count_weights": ("f", "numbers"),
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
    return {"depth": depth, "notes": tuple(notes or ()), "design": _design(design)}


def _design(text: object) -> SamplingDesign | None:
    if text is None:
        return None
    from truerank.sampling.registry import read_design

    if not isinstance(text, str):
        raise InputError(f"the design of stored ranks must be a string, got {text!r}.")
    return read_design(text)
