"""The fields of `Ranks` <-> a Parquet file with a row per instance, or an npz file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.errors import InputError
from truerank.formats.writing import check_writable, replacing

if TYPE_CHECKING:
    import pyarrow as pa

PER_ITEM = ("above", "tied", "grades", "same_score", "drawn")
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
    if not Path(path).is_file():
        raise InputError(f"there is no file {str(path)!r}.")
    if Path(path).suffix.lower() == ".npz":
        arrays = _load_npz(path)
        return arrays | _extra(str(arrays.pop("truerank")))
    import pyarrow.parquet as pq

    return fields_from_arrow(pq.read_table(path))


def fields_to_arrow(fields: Mapping[str, Any]) -> pa.Table:
    """Return a table with a row per instance; what is kept per relevant item becomes lists."""
    import pyarrow as pa

    columns = {} if fields["ids"] is None else {"id": pa.array(fields["ids"])}
    columns["n_candidates"] = pa.array(fields["n_candidates"])
    columns |= {name: pa.array(fields[name]) for name in ("n_catalogue", "scored") if fields[name] is not None}
    offsets = pa.array(fields["indptr"], type=pa.int64())
    for name in PER_ITEM:
        if fields[name] is not None:
            columns[name] = pa.LargeListArray.from_arrays(offsets, pa.array(fields[name]))
    return pa.table(columns)


def fields_from_arrow(table: pa.Table) -> dict[str, Any]:
    """Read a table laid out as by `fields_to_arrow`."""
    if missing := {"n_candidates", "above", "tied"} - set(table.column_names):
        raise InputError(f"a table of ranks needs the columns {sorted(missing)}, got {table.column_names}.")
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    offsets = columns["above"].offsets.to_numpy()
    fields = {name: columns[name].flatten().to_numpy(zero_copy_only=False) for name in PER_ITEM if name in columns}
    fields["indptr"] = offsets - offsets[0]
    for name in PER_INSTANCE:
        column = "id" if name == "ids" else name
        if column in columns:
            fields[name] = columns[column].to_numpy(zero_copy_only=False)
    return fields | _extra((table.schema.metadata or {}).get(b"truerank", b"{}"))


def _extra(text: str | bytes) -> dict[str, Any]:
    """What a file holds besides arrays."""
    extra = json.loads(text)
    if extra.get("design") is not None:
        from truerank.sampling.registry import read_design

        extra["design"] = read_design(extra["design"])
    return extra


def _load_npz(path: str | Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"can't read {str(path)!r} ({error}).") from error
    if "truerank" not in arrays:
        raise InputError(f"{str(path)!r} was not written by Ranks.save.")
    return arrays
