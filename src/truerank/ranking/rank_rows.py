"""`Ranks` <-> tables whose rows can be separated and joined again: each row states its design and its depth."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from truerank.errors import InputError, raised_elsewhere
from truerank.ranking import files

if TYPE_CHECKING:
    import pyarrow as pa

    from truerank.ranking.ranks import Ranks

STATED = ("design", "depth")
"""Columns that have the same value in every row."""


def to_rows(ranks: Ranks, schema: pa.Schema) -> pa.Table:
    """Return a row per instance with the columns of the schema; what these ranks don't have is null.

    Examples
    --------
    >>> import pyarrow as pa, truerank as tr
    >>> ranks = tr.Ranks.from_sampled([[5, 3], [1]], m=20, n=100)
    >>> schema = pa.schema({"n_candidates": "int64", "above": pa.list_(pa.int64()), "design": "string"})
    >>> to_rows(ranks, schema).to_pylist()[0]
    {'n_candidates': 22, 'above': [2, 3], 'design': 'uniform(20)'}
    """
    import pyarrow as pa

    table, stated = ranks.to_arrow(), {"design": ranks.design, "depth": ranks.depth}
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    columns |= {
        name: pa.array([value if name == "depth" else str(value)] * len(ranks))
        for name, value in stated.items()
        if value is not None
    }
    return pa.table([columns.get(field.name, pa.nulls(len(ranks))).cast(field.type) for field in schema], schema)


def fields_from_rows(table: pa.Table) -> dict[str, Any]:
    """Return the fields of the ranks in the rows of a table; columns of nulls are ignored.

    Examples
    --------
    >>> import pyarrow as pa, truerank as tr
    >>> rows = {"n_candidates": [9, 9], "above": [[2], [0]], "tied": [[0], [1]], "depth": [5, 5], "scored": [None] * 2}
    >>> tr.Ranks(**fields_from_rows(pa.table(rows)))
    Ranks(2 instances, 2 relevant items, lists cut at depth 5, 50.0 % of instances tied)
    """
    filled = [name for name in table.column_names if not len(table) or table[name].null_count < len(table)]
    extra = {name: _only(table, name) for name in STATED if name in filled}
    rest = table.select([name for name in filled if name not in STATED])
    return files.fields_from_arrow(rest.replace_schema_metadata({"truerank": json.dumps(extra)}))


def fields_from_frame(frame: Any) -> dict[str, Any]:
    """Return the fields of the ranks in a dataframe of another process that has a method `toArrow`, such as Spark's."""
    if not hasattr(frame, "toArrow"):
        raise InputError(f"ranks must be in a Spark dataframe, got {type(frame).__name__}.")
    with raised_elsewhere():
        return fields_from_rows(frame.toArrow())


def _only(table: pa.Table, name: str) -> Any:
    """Return the value that all rows must have."""
    values = table[name].unique().to_pylist()
    if len(values) > 1:
        raise InputError(f"all ranks of a table must have the same {name}, got {values[0]!r} and {values[1]!r}.")
    return values[0] if values else None
