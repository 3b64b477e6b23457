"""Training and held-out interactions <-> a folder of Parquet files that any other tool can read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import scipy.sparse as sp

from truerank.arrays import AnyArray
from truerank.data.interactions import Interactions
from truerank.data.matrices import float_type
from truerank.data.reading import grouped
from truerank.errors import InputError
from truerank.formats.writing import make_folder, replacing

FILES = ("users", "items", "train", "test")


def save_parts(folder: Path, train: Interactions, test: Interactions, notes: tuple[str, ...]) -> None:
    """Write both parts, and the names of users and items in their order."""
    make_folder(folder)
    named = {"user": train.user_ids is not None, "item": train.item_ids is not None}
    extra = {"truerank": json.dumps({"named": named, "notes": notes})}
    tables = {
        "users": pa.table({"user": train.names}).replace_schema_metadata(extra),
        "items": pa.table({"item": train.item_names}),
        "train": _to_table(train),
        "test": _to_table(test),
    }
    with replacing(*(folder / f"{name}.parquet" for name in tables)) as files:
        for table, file in zip(tables.values(), files, strict=True):
            pq.write_table(table, file)


def load_parts(folder: Path) -> tuple[Interactions, Interactions, tuple[str, ...]]:
    """Read what `save_parts` wrote: both parts, and the notes."""
    tables = {}
    for name in FILES:
        path = folder / f"{name}.parquet"
        if not path.is_file():
            raise InputError(f"{str(folder)!r} was not written by Split.save: there is no {name}.parquet.")
        try:
            tables[name] = pq.read_table(path)
        except pa.ArrowInvalid as error:
            raise InputError(f"can't read {str(path)!r}: {str(error).splitlines()[0]}") from error
    if b"truerank" not in (tables["users"].schema.metadata or {}):
        raise InputError(f"{str(folder)!r} was not written by Split.save.")
    extra = json.loads(tables["users"].schema.metadata[b"truerank"])
    names = {role: tables[f"{role}s"][role].combine_chunks() for role in ("user", "item")}
    train, test = (_from_table(tables[name], names, extra["named"]) for name in ("train", "test"))
    return train, test, tuple(extra["notes"])


def _to_table(part: Interactions) -> pa.Table:
    columns = {"user": part.names[part.users], "item": part.item_names[part.items], "weight": part.matrix.data}
    extra = {"time": part.times, "rating": part.ratings, "position": part.positions}
    columns |= {name: array for name, array in extra.items() if array is not None}
    return pa.table(columns).replace_schema_metadata({"truerank": json.dumps(part.notes)})


def _from_table(table: pa.Table, names: Mapping[str, pa.Array], named: Mapping[str, bool]) -> Interactions:
    user, item = (pc.index_in(table[role], value_set=names[role]).to_numpy() for role in ("user", "item"))
    shape = (len(names["user"]), len(names["item"]))
    order, indptr, indices = grouped(user, item, shape)
    column = {name: table[name].to_numpy()[order] for name in table.column_names if name not in names}
    ids = {role: _ids(names[role]) if named[role] else None for role in names}
    weights = column["weight"].astype(float_type(column["weight"].dtype), copy=False)
    return Interactions(
        sp.csr_array((weights, indices, indptr), shape=shape),
        ids["user"],
        ids["item"],
        times=column.get("time"),
        ratings=column.get("rating"),
        positions=column.get("position"),
        notes=tuple(json.loads(table.schema.metadata[b"truerank"])),
    )


def _ids(names: pa.Array) -> AnyArray:
    ids: AnyArray = names.to_numpy(zero_copy_only=False)
    return ids.astype(np.str_) if ids.dtype.kind == "O" else ids
