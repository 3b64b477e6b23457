"""Columns -> a CSV, TSV, JSONL or Parquet file."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from truerank.arrays import Floats
from truerank.errors import InputError


def write_columns(path: str | Path, columns: Mapping[str, Sequence[Any] | Floats]) -> None:
    """Write columns of equal length at full precision; undefined numbers are left empty (null).

    The ending of the path decides on the kind of file.
    """
    table = pa.table({name: pa.array(np.asarray(column), from_pandas=True) for name, column in columns.items()})
    kind = Path(path).suffix.lower()
    if kind == ".parquet":
        pq.write_table(table, path)
    elif kind == ".jsonl":
        lines = (json.dumps(row, allow_nan=False) for row in table.to_pylist())
        Path(path).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    elif kind in (".csv", ".tsv"):
        delimiter = "\t" if kind == ".tsv" else ","
        pa_csv.write_csv(table, path, pa_csv.WriteOptions(delimiter=delimiter, quoting_style="needed"))
    else:
        raise InputError(f"the file to write must end in .csv, .tsv, .jsonl or .parquet, got {str(path)!r}.")
