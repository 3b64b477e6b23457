"""The speed of the main paths through time: each relative to a limit or to plain NumPy, measured in the same run.

A path and its limit alternate, on one thread; the best CPU time of each counts. The ratios are added to
results/history.csv with the commit and the processor.

    python benchmarks/history.py           # measures and shows
    python benchmarks/history.py --add     # ... and adds to the history
    python benchmarks/history.py --check   # ... and exits with 1 if a ratio is 10 % above its last one here
"""

import argparse
import csv
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import truerank as tr
from truerank.kernels import library

HISTORY = Path(__file__).with_name("results") / "history.csv"
COLUMNS = ["date", "commit", "processor", "path", "ratio"]
TOLERANCE = 1.1

Call = Callable[[], object]


def paths() -> dict[str, tuple[Call, Call]]:
    """Return the main paths, each with what it is measured against."""
    rng = np.random.default_rng(0)
    users, items = (rng.normal(size=(size, 64)).astype(np.float32) for size in (2_000, 20_000))
    test = tr.Interactions.of(rng.integers(0, 20_000, (2_000, 1)).tolist(), "test", n_items=20_000)
    model, scores = tr.Factors(users, items), users @ items.T
    product, read = lambda: users @ items.T, lambda: scores.max()
    many = [tr.Ranks.from_ranks(rng.integers(1, 1_000, 100_000), n=1_000) for _ in range(2)]
    few = tr.UniformSampling(100).draw(many[0], rng=1)
    places = many[0].rank
    ndcg = lambda: np.where(places <= 10, 1 / np.log2(places + 1), 0).mean()  # noqa: E731
    metrics = ["ndcg@10", "recall@10", "ap", "auc"]
    return {
        "rank of factors / product": (lambda: tr.rank(model, test=test, threads=1), product),
        "rank of factors to a depth of 10 / product": (lambda: tr.rank(model, test=test, depth=10, threads=1), product),
        "rank of a score matrix / one read": (lambda: tr.rank(scores, test=test, threads=1), read),
        "rank among 100 sampled / product": (lambda: tr.rank_sampled(model, test=test, design=100, rng=0), product),
        "top 100 lists / product": (lambda: tr.recommend(model, k=100, threads=1), product),
        "4 metrics of 100,000 users / NumPy": (lambda: tr.evaluate(many[0], metrics), ndcg),
        "corrected metric of 100,000 users / NumPy": (lambda: tr.evaluate(few, "ndcg@10~bv(0.1)"), ndcg),
        "comparison of 100,000 users / NumPy": (lambda: tr.compare({"A": many[0], "B": many[1]}, "ndcg@10"), ndcg),
    }


def ratio(path: Call, limit: Call, rounds: int) -> float:
    """Return the best CPU time of a path relative to that of its limit."""
    best = [np.inf, np.inf]
    for _ in range(rounds):
        for at, call in enumerate((path, limit)):
            start = time.process_time()
            call()
            best[at] = min(best[at], time.process_time() - start)
    return best[0] / best[1]


def processor() -> str:
    """Return the processor's name, and the variant of the loops that runs on it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{[*names, platform.processor()][0]}, {library.variant()}"


def last(history: list[dict[str, str]]) -> dict[str, float]:
    """Return the last ratio of each path on this processor."""
    here = processor()
    return {row["path"]: float(row["ratio"]) for row in history if row["processor"] == here}


def add(ratios: dict[str, float]) -> None:
    """Append what was measured."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    about = [datetime.now(UTC).date().isoformat(), commit.strip(), processor()]
    is_new = not HISTORY.exists()
    with HISTORY.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS] * is_new + [[*about, path, f"{value:.3f}"] for path, value in ratios.items()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", action="store_true", help="add to the history")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a ratio has grown by more than 10 %%")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    before = last(list(csv.DictReader(HISTORY.open()))) if HISTORY.exists() else {}
    ratios = {name: ratio(path, limit, given.rounds) for name, (path, limit) in paths().items()}
    for name, value in ratios.items():
        print(f"{name:45} {value:8.3f}" + (f"   before {before[name]:8.3f}" if name in before else ""))
    if given.add:
        add(ratios)
    slower = [name for name, value in ratios.items() if value > TOLERANCE * before.get(name, np.inf)]
    if given.check and slower:
        sys.exit(f"slower by more than 10 %: {'; '.join(slower)}")


if __name__ == "__main__":
    main()
