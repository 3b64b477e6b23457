"""What a report of many users costs: `write_report` of three recommenders, CPU seconds and peak memory.

The ranks are drawn from lognormal laws; no item ties. "one": a held-out item per user and the same candidates for all.
"several": one to a hundred held-out items, seven on average, and numbers of candidates that differ from user to user.
Each report is written in a new process; its memory includes that of the ranks. The table is results/reports.csv.

    python benchmarks/reports.py [--users 40000 1000000]
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import numpy as np

import truerank as tr
from real_ranks import save

CATALOGUE = 40_981


def recommenders(users: int, several: bool) -> dict[str, tr.Ranks]:
    """Return the ranks of three recommenders on the same users."""
    rng = np.random.default_rng(0)
    sizes = np.minimum(rng.geometric(1 / 7, users), 100) if several else np.ones(users, dtype=np.int64)
    n = CATALOGUE - several * np.minimum(rng.geometric(1 / 25, users) + 5, 900)
    indptr, user = np.append(0, np.cumsum(sizes)), np.repeat(np.arange(users), sizes)

    def ranks(median: int) -> tr.Ranks:
        above = np.minimum(rng.lognormal(np.log(median), 2, user.size), (n - sizes)[user]).astype(np.int64)
        return tr.Ranks(above=above[np.lexsort((above, user))], n_candidates=n, indptr=indptr)

    return {"A": ranks(300), "B": ranks(360), "C": ranks(420)}


def measure(users: int, kind: str) -> None:
    """Write one report, and print the CPU seconds and the peak memory in GB."""
    given = recommenders(users, kind == "several")
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        tr.write_report(given, Path(folder) / "report.html")
        seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{seconds:.1f} {peak:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, nargs="+", default=[40_000, 1_000_000])
    parser.add_argument("--kind", choices=["one", "several"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kind:
        measure(options.users[0], options.kind)
        return
    rows = []
    for users, kind in product(options.users, ("one", "several")):
        command = [sys.executable, __file__, "--users", str(users), "--kind", kind]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append((users, kind, *done.stdout.split()))
        print(*rows[-1], sep="  ", flush=True)
    save("reports.csv", ("users", "held-out items", "CPU seconds", "peak GB"), rows)


if __name__ == "__main__":
    main()
