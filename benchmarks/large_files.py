"""How much memory it takes to read a file of many rows.

    python benchmarks/large_files.py --rows 100_000_000 --folder /somewhere/with/room

Writes user-item interactions with ratings and times as CSV and as Parquet, unless they are there, and reads each of
them in a process of its own. The peak is that of the process, less what it used after its imports.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

STEP = 5_000_000
READ = """
import json, resource, sys, time
import pyarrow.csv, pyarrow.parquet, scipy.sparse
import truerank as tr

before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
try:
    data = tr.read_interactions(sys.argv[1], memory=sys.argv[2])
    found = repr(data)
except tr.InputError as error:
    found = str(error)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"found": found, "megabytes": (peak - before) // 1_024, "seconds": time.process_time() - start}))
"""


def write(path: Path, rows: int) -> None:
    """Write both files, a part at a time."""
    rng = np.random.default_rng(0)
    with path.with_suffix(".csv").open("wb") as file:
        writer = None
        for start in range(0, rows, STEP):
            table = part(rng, min(STEP, rows - start), rows)
            pa_csv.write_csv(table, file, pa_csv.WriteOptions(include_header=start == 0))
            writer = writer or pq.ParquetWriter(path.with_suffix(".parquet"), table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def part(rng: np.random.Generator, size: int, rows: int) -> pa.Table:
    columns = {"user": (0, rows // 100), "item": (0, 50_000), "rating": (1, 6), "timestamp": (10**9, 2 * 10**9)}
    return pa.table({name: rng.integers(low, high, size=size) for name, (low, high) in columns.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--memory", nargs="+", default=["2GB", "8GB"])
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    path = folder / f"events-{given.rows}"
    if not path.with_suffix(".csv").exists():
        write(path, given.rows)
    for ending in (".csv", ".parquet"):
        for memory in given.memory:
            command = [sys.executable, "-c", READ, str(path.with_suffix(ending)), memory]
            found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            used = f"{found['megabytes']:,} MB, {found['seconds']:.0f} s of CPU"
            print(f"{ending}, memory={memory}: {used}: {found['found']}")


if __name__ == "__main__":
    main()
