"""Training and held-out interactions <-> a directory of Parquet files that any other tool can read.

Each file carries the same digest of all of them, so that files of two splits are never taken for one, as they would be
if saving over an older split stopped halfway.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import scipy.sparse as sp

from truerank.arrays import AnyArray, Ints
from truerank.data.interactions import Interactions
from truerank.data.matrices import float_type
from truerank.data.reading import grouped
from truerank.errors import InputError
from truerank.formats.columns import INTERACTIONS
from truerank.formats.ids import as_names, id_column, is_text, shown
from truerank.formats.tables import open_source
from truerank.formats.writing import make_folder, replacing

FILES = ("users", "items", "train", "test")
_DIGEST = b"truerank_split"


def save_parts(folder: Path, train: Interactions, test: Interactions, notes: tuple[str, ...], repeats: str) -> None:
    """Write both parts, and the names of users and items in their order."""
    make_folder(folder)
    named = {"user": train.user_ids is not None, "item": train.item_ids is not None}
    about = json.dumps({"named": named, "notes": notes, "repeats": repeats})
    tables = {
        "users": pa.table({"user": train.names}).replace_schema_metadata({"truerank": about}),
        "items": pa.table({"item": train.item_names}),
        "train": _to_table(train),
        "test": _to_table(test),
    }
    digest = _digest(about, train, test)
    with replacing(*(folder / f"{name}.parquet" for name in tables)) as files:
        for table, file in zip(tables.values(), files, strict=True):
            known = table.schema.metadata or {}
            pq.write_table(table.replace_schema_metadata({**known, _DIGEST: digest}), file)


def _digest(about: str, train: Interactions, test: Interactions) -> str:
    found = hashlib.sha256(about.encode())
    for part in (train, test):
        found.update(json.dumps(part.notes).encode())
        columns = (part.indptr, part.items, part.values, part.times, part.ratings, part.positions)
        for array in (train.names, train.item_names, *columns):
            found.update(b"none" if array is None else str(array.dtype).encode() + array.tobytes())
    return found.hexdigest()


def load_parts(folder: Path) -> tuple[Interactions, Interactions, tuple[str, ...], Any]:
    """Read what `save_parts` wrote: both parts, the notes, and whether repeats are held out."""
    paths = {name: folder / f"{name}.parquet" for name in FILES}
    for path in paths.values():
        if not os.path.isfile(path):  # noqa: PTH113 - unlike that of a Path, it takes any text for a path
            raise InputError(f"{str(folder)!r} was not written by Split.save: there is no {path.name}.")
    tables = {name: open_source(path, INTERACTIONS, {}, None).whole() for name, path in paths.items()}
    extra = _metadata(tables["users"], paths["users"])
    named, notes = (extra.get(name) if isinstance(extra, dict) else None for name in ("named", "notes"))
    if not isinstance(named, dict) or set(named) != {"user", "item"}:
        raise InputError(f"{str(folder)!r} was not written by Split.save.")
    digests = {(table.schema.metadata or {}).get(_DIGEST) for table in tables.values()}
    if len(digests) > 1:
        raise InputError(f"{str(folder)!r} holds files of different splits: saving was interrupted; save it again.")
    names = {role: _names(tables[f"{role}s"], role, paths[f"{role}s"]) for role in ("user", "item")}
    train, test = (_from_table(tables[name], names, named, paths[name]) for name in ("train", "test"))
    return train, test, _texts(notes, paths["users"]), extra.get("repeats", "drop")


def _to_table(part: Interactions) -> pa.Table:
    columns = {"user": part.names[part.users], "item": part.item_names[part.items], "weight": part.values}
    extra = {"time": part.times, "rating": part.ratings, "position": part.positions}
    columns |= {name: array for name, array in extra.items() if array is not None}
    return pa.table(columns).replace_schema_metadata({"truerank": json.dumps(part.notes)})


def _from_table(table: pa.Table, names: Mapping[str, pa.Array], named: Mapping[str, Any], path: Path) -> Interactions:
    optional = [name for name in ("time", "rating", "position") if name in table.column_names]
    columns = {name: _column(table, name, path) for name in ("user", "item", "weight", *optional)}
    user, item = (_numbers(columns.pop(role), names[role], role, path) for role in ("user", "item"))
    shape = (len(names["user"]), len(names["item"]))
    order, indptr, indices = grouped(user, item, shape)
    column = {name: _plain(array, name, path)[order] for name, array in columns.items()}
    ids = {role: as_names(names[role], role) if named[role] else None for role in names}
    weights = column["weight"].astype(float_type(column["weight"].dtype), copy=False)
    return Interactions(
        sp.csr_array((weights, indices, indptr), shape=shape),
        ids["user"],
        ids["item"],
        times=column.get("time"),
        ratings=column.get("rating"),
        positions=column.get("position"),
        notes=_texts(_metadata(table, path), path),
    )


def _column(table: pa.Table, name: str, path: Path) -> pa.Array:
    """Return a column without missing values."""
    if table.column_names.count(name) != 1 or table[name].null_count:
        raise InputError(f"{str(path)!r} was not written by Split.save: it must have one complete column {name!r}.")
    return table[name].combine_chunks()


def _names(table: pa.Table, role: str, path: Path) -> pa.Array:
    """Return the distinct names of all users or items."""
    names = id_column(pa.chunked_array([_column(table, role, path)]), role, lambda row: f"{str(path)!r}, row {row + 1}")
    if len(names.unique()) < len(names):
        raise InputError(f"{str(path)!r} must name each {role} once.")
    return names.combine_chunks()


def _numbers(ids: pa.Array, names: pa.Array, role: str, path: Path) -> Ints:
    """Return the positions of ids among the names."""
    if not (ids.type == names.type or (is_text(ids.type) and is_text(names.type))):
        raise InputError(f"{str(path)!r} has {role}s of type {ids.type}, but {role}s.parquet has type {names.type}.")
    positions = pc.index_in(ids.cast(names.type), value_set=names)
    if positions.null_count:
        row = pc.index(positions.is_null(), True).as_py()
        raise InputError(f"{str(path)!r}, row {row + 1}: {role} {shown(ids[row].as_py())} is not in {role}s.parquet.")
    return positions.to_numpy().astype(np.int64)


def _plain(column: pa.Array, name: str, path: Path) -> AnyArray:
    """Return numbers, or times."""
    array: AnyArray = column.to_numpy(zero_copy_only=False)
    if array.dtype.kind not in {"time": "iufM", "position": "iu"}.get(name, "iuf"):
        raise InputError(f"{str(path)!r} must have numbers in the column {name!r}, got {column.type}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(f"{str(path)!r} must have finite numbers in the column {name!r}.")
    return array


def _metadata(table: pa.Table, path: Path) -> Any:
    try:
        return json.loads((table.schema.metadata or {})[b"truerank"])
    except (KeyError, ValueError, RecursionError) as error:
        raise InputError(f"{str(path)!r} was not written by Split.save.") from error


def _texts(notes: Any, path: Path) -> tuple[str, ...]:
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise InputError(f"{str(path)!r} was not written by Split.save: its notes must be strings.")
    return tuple(notes)
