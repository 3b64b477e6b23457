"""The speed of the main paths through time: each relative to a limit or to plain NumPy, measured in the same run.

A path and its limit alternate, on one thread; the best CPU time of each counts. What looks slower than before is
measured again, because a busy computer only adds time. The ratios are added to results/history.csv with the commit and
the processor, and docs/results/history.md shows them.

    python benchmarks/history.py           # measures and shows
    python benchmarks/history.py --add     # ... and adds to the history
    python benchmarks/history.py --check   # ... and exits with 1 if a ratio is 10 % above its last one here
"""

import argparse
import csv
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import truerank as tr
from real_ranks import processor

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


class Timed:
    """The best CPU times of a path and of its limit so far."""

    def __init__(self, path: Call, limit: Call) -> None:
        self.calls, self.best = (path, limit), [np.inf, np.inf]

    def ratio(self, rounds: int) -> float:
        """Return the path's time relative to that of its limit, after more rounds of both."""
        for _ in range(rounds):
            for at, call in enumerate(self.calls):
                start = time.process_time()
                call()
                self.best[at] = min(self.best[at], time.process_time() - start)
        return self.best[0] / self.best[1]


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


def ratios_now(before: dict[str, float], rounds: int) -> dict[str, float]:
    """Measure all paths, and those that look slower than before up to four times more."""
    timed = {name: Timed(*calls) for name, calls in paths().items()}
    ratios = {name: each.ratio(rounds) for name, each in timed.items()}
    for _ in range(4):
        ratios |= {name: timed[name].ratio(rounds) for name in slower(ratios, before)}
    return ratios


def slower(ratios: dict[str, float], before: dict[str, float]) -> list[str]:
    """Return the paths whose ratio has grown by more than 10 %."""
    return [name for name, value in ratios.items() if value > TOLERANCE * before.get(name, np.inf)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", action="store_true", help="add to the history")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a ratio has grown by more than 10 %%")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    before = last(list(csv.DictReader(HISTORY.read_text().splitlines()))) if HISTORY.exists() else {}
    ratios = ratios_now(before, given.rounds)
    for name, value in ratios.items():
        print(f"{name:45} {value:8.3f}" + (f"   before {before[name]:8.3f}" if name in before else ""))
    if given.add:
        add(ratios)
    if given.check and (worse := slower(ratios, before)):
        sys.exit(f"slower by more than 10 %: {'; '.join(worse)}")


if __name__ == "__main__":
    main()
