"""How much memory it takes to read a file of many rows.

    python benchmarks/large_files.py --rows 100_000_000 --folder /somewhere/with/room --limit 6

Writes user-item interactions with ratings and times as CSV, Parquet and JSONL, unless they are there, and reads each of
them, or evaluates as many ranks, in a process of its own. The peak is that of the process, less what it used after its
imports; `--limit` lets the operating system refuse more addresses than that.
"""

from __future__ import annotations

import argparse
import itertools
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
ENDINGS = [".csv", ".parquet", ".jsonl"]
CALLS = {
    "interactions": "tr.read_interactions(PATH, memory=memory)",
    "ranks": "tr.read_ranks(PATH, user='timestamp', rank='item', n=50_000, memory=memory)",
    "lists": "tr.read_lists(PATH, {7: [3]}, score='rating', memory=memory)",
    "evaluate": "tr.evaluate({name: made(name) for name in 'ab'}, ['ndcg@10', 'ap'])",
    "groups": "tr.evaluate(made('a'), 'ndcg@10', by=pa.table({'user': np.arange(rows), 'g': np.arange(rows) % 9}))",
    "compare": "tr.compare({name: made(name) for name in 'ab'}, 'ndcg@10')",
}
"""What is run, on the files or on ranks as many as their rows."""
RUN = """
import json, resource, sys, time
import numpy as np, pyarrow as pa, pyarrow.csv, pyarrow.json, pyarrow.parquet, scipy.sparse
import truerank as tr

given = json.loads(sys.argv[1])
PATH, memory = given["path"], given["memory"]

def status(name):
    return 1_024 * int(next(line for line in open("/proc/self/status") if line.startswith(name)).split()[1])

def made(name):
    ranks = np.random.default_rng(ord(name)).integers(1, 50_000, size=rows)
    return tr.Ranks.from_ranks(ranks, 50_000, ids=np.arange(rows))

rows = 10  # what is imported late is not measured
for call in given["warm"]:
    eval(call)
rows = given["rows"]
if given["limit"]:
    resource.setrlimit(resource.RLIMIT_AS, (status("VmSize") + given["limit"],) * 2)
before, start = status("VmHWM"), time.process_time()
try:
    found = repr(eval(given["call"])).splitlines()[0]
except tr.InputError as error:
    found = str(error)
used = (status("VmHWM") - before) // 10**6
print(json.dumps({"found": found, "megabytes": used, "seconds": time.process_time() - start}))
"""


def write(path: Path, rows: int) -> None:
    """Write a file, a part at a time."""
    rng, writer = np.random.default_rng(0), None
    with path.open("wb") as file:
        for start in range(0, rows, STEP):
            table = part(rng, start, min(STEP, rows - start), rows)
            if path.suffix == ".csv":
                pa_csv.write_csv(table, file, pa_csv.WriteOptions(include_header=start == 0))
            elif path.suffix == ".jsonl":
                table.to_pandas().to_json(file, orient="records", lines=True)
            else:
                writer = writer or pq.ParquetWriter(file, table.schema)
                writer.write_table(table)
        if writer is not None:
            writer.close()


def part(rng: np.random.Generator, start: int, size: int, rows: int) -> pa.Table:
    """Return some rows: the events of a user are far apart, with different items and times."""
    row, n_users = np.arange(start, start + size), rows // 100
    user, turn = row % n_users, row // n_users
    item, time = 1 + (487 * turn + 13 * row) % 49_999, 10**9 + 7_919 * row % 10**9
    return pa.table({"user": user, "item": item, "rating": rng.integers(1, 6, size=size), "timestamp": time})


def run(what: str, path: Path, rows: int, memory: str | None, limit: float | None) -> None:
    """Run a call in a process that may take `limit` more GB of addresses than after its imports."""
    given = {"path": str(path), "rows": rows, "memory": memory, "limit": int(limit * 1e9) if limit else None}
    given |= {"call": CALLS[what], "warm": [] if "PATH" in CALLS[what] else [CALLS[what]]}
    command = [sys.executable, "-c", RUN, json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    label = f"{what} {path.suffix}, memory={memory}, limit={limit} GB"
    if done.returncode:
        print(f"{label}: FAILED ({done.returncode}): {done.stderr[-300:]}", flush=True)
        return
    found = json.loads(done.stdout)
    print(f"{label}: {found['megabytes']:,} MB, {found['seconds']:.0f} s of CPU: {found['found']}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--what", nargs="+", default=list(CALLS), choices=list(CALLS))
    parser.add_argument("--endings", nargs="+", default=ENDINGS, choices=ENDINGS)
    parser.add_argument("--memory", nargs="+", default=[None])
    parser.add_argument("--limit", nargs="+", type=float, default=[None], help="GB beyond those after the imports")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    for what, memory, limit in itertools.product(given.what, given.memory, given.limit):
        for ending in given.endings if "PATH" in CALLS[what] else [""]:
            path = folder / f"events-{given.rows}{ending}"
            if ending and not path.exists():
                write(path, given.rows)
            run(what, path, given.rows, memory, limit)


if __name__ == "__main__":
    main()
