"""Small changes of valid files that leave them in their format, so that readers go past what they check first.

`edited` parses a file, changes a value, row or column, and writes it again; `tests.hostile.damaged` changes bytes.
"""

import contextlib
import gzip
import io
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile import damaged, parquet, zipped

Rng = np.random.Generator

VALUES = [
    0,
    1,
    -1,
    7,
    1.5,
    -0.0,
    1e400,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    "",
    " ",
    "a",
    "u1",
    "NA",
    "é",
    "1e3",
    "x" * 99,
]
"""What a field becomes."""


def edited(content: bytes, rng: Rng) -> bytes:
    """Return a file with one value, row or column changed, or damaged if it can't be parsed."""
    edit = next((edit for start, edit in _EDITS.items() if content.startswith(start)), _edit_text)
    with contextlib.suppress(Exception):
        return edit(content, rng)
    return damaged(content, rng)


def _one_of(options: Any, rng: Rng) -> Any:
    return options[int(rng.integers(len(options)))]


def _edit_gzip(content: bytes, rng: Rng) -> bytes:
    return gzip.compress(edited(gzip.decompress(content), rng), mtime=0)


def _edit_zip(content: bytes, rng: Rng) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = _one_of(list(members), rng)
    members[name] = edited(members[name], rng)
    return zipped(members)


def _edit_array(content: bytes, rng: Rng) -> bytes:
    """Change a number, or drop or repeat the last one."""
    array = np.load(io.BytesIO(content))
    flat = array.ravel()
    if array.size and array.dtype.kind in "iuf":
        flat[int(rng.integers(array.size))] = _one_of([0, 1, 2, 100, flat[0], flat[-1]], rng)
    shapes = [array, array, array, flat[:-1], np.append(flat, flat[-1:]), array.astype(np.float32)]
    file = io.BytesIO()
    np.save(file, _one_of(shapes, rng))
    return file.getvalue()


def _edit_parquet(content: bytes, rng: Rng) -> bytes:
    """Change a value, or drop, repeat or reorder rows, or drop or rename a column."""
    table = pq.read_table(io.BytesIO(content))
    rows, at = table.num_rows, int(rng.integers(table.num_columns))
    column, kind = table.column(at).to_pylist(), table.schema.field(at)
    if column:
        place = int(rng.integers(len(column)))
        column[place] = _one_of([*(column[place - 1 :] if place else column), None, *VALUES], rng)
    with contextlib.suppress(Exception):
        return parquet(table.set_column(at, kind, pa.array(column, kind.type)))
    names = [*table.column_names[:at], _one_of(["user", "item", "x"], rng), *table.column_names[at + 1 :]]
    shuffled = table.take(pa.array(rng.integers(0, rows, size=rows)))
    return parquet(_one_of([table.drop_columns([kind.name]), table.rename_columns(names), shuffled, table[:1]], rng))


def _edit_store(content: bytes, rng: Rng) -> bytes:
    """Change a value, or what the tables are."""
    changes = [
        "UPDATE scores SET score = ?", "UPDATE scores SET user = ?", "UPDATE models SET name = ?",
        "UPDATE models SET catalogue = ?", "UPDATE OR IGNORE scores SET item = ?", "UPDATE models SET model = ?",
        "DELETE FROM scores WHERE user = ?", "DELETE FROM models WHERE name <> ?",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        path = Path(folder) / "scores.db"
        path.write_bytes(content)
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            value = _one_of([None, *VALUES], rng)
            database.execute(_one_of(changes, rng), (str(value) if value == 2**63 else value,))
        return path.read_bytes()


def _edit_json(content: bytes, rng: Rng) -> bytes:
    """Change a value of one of the lines, or its name."""
    lines = content.split(b"\n")
    at = int(rng.integers(max(1, len(lines) - 1)))
    row = json.loads(lines[at])
    name = _one_of(list(row), rng)
    value = _one_of([None, [], [1], {}, *VALUES], rng)
    if isinstance(row[name], list) and row[name] and rng.integers(3):
        row[name][int(rng.integers(len(row[name])))] = value
    elif rng.integers(3):
        row[name] = value
    else:
        row[_one_of(["user", "item", "score", "rank", "x"], rng)] = row.pop(name)
    lines[at] = json.dumps(row).encode()
    return b"\n".join(lines)


def _edit_text(content: bytes, rng: Rng) -> bytes:
    """Change a field, or drop, repeat or swap lines or columns."""
    separator = max((b"::", b",", b"\t", b"|", b";", b" "), key=content.count)
    rows = [line.split(separator) for line in content.split(b"\n")]
    row, column = _one_of(rows[:-1] or rows, rng), int(rng.integers(len(rows[0])))
    kind = int(rng.integers(10))
    if kind < 6:
        other = _one_of(_one_of(rows, rng), rng)
        row[int(rng.integers(len(row)))] = _one_of([other, other, str(_one_of(VALUES, rng)).encode()], rng)
    elif kind < 8:
        at = int(rng.integers(len(rows)))
        rows[at:at] = _one_of([[row], [row, row], rows[:at]], rng)
        rows = _one_of([rows, [*rows[:-2], [b""]], rows[:1] + rows[:0:-1]], rng)
    elif kind < 9:
        rows = [each[:column] + each[column + 1 :] for each in rows]
    else:
        rows = [each[:column] + each[column : column + 1] + each[column:] for each in rows]
    return b"\n".join(separator.join(each) for each in rows)


_EDITS: dict[bytes, Callable[[bytes, Rng], bytes]] = {
    b"\x1f\x8b": _edit_gzip,
    b"PK": _edit_zip,
    b"\x93NUMPY": _edit_array,
    b"PAR1": _edit_parquet,
    b"SQLite": _edit_store,
    b"{": _edit_json,
}
