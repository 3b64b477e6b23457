"""What keeping scores costs: microseconds per pair of `rank_sampled` with a store, beyond those without one.

Each score is a lookup, so that almost all time is that of truerank. The store is written by a first call and read by a
second one; both give the same ranks.

    python benchmarks/score_store.py [--pairs 10000000] [--batch 1000]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import truerank as tr
from truerank.core.checks import AnyArray, Ints

PER_USER, N_ITEMS = 100, 20_000


def timed(call: Callable[[], tr.Ranks]) -> tuple[tr.Ranks, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = call()
    return found, time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--batch", type=int, default=1_000, help="Pairs in one call, which is one transaction.")
    given = parser.parse_args()
    n_users = given.pairs // PER_USER
    scores = np.random.default_rng(0).random(1 << 20)
    test = tr.Interactions.of([[user % N_ITEMS] for user in range(n_users)], "test", n_items=N_ITEMS)

    def score(users: Ints, items: Ints) -> AnyArray:
        return scores[(users * 7919 + items * 104_729) % scores.size]

    scorer = tr.FunctionScorer(score, pairs=True, batch_size=given.batch)
    options = {"test": test, "design": PER_USER - 1, "rng": 0}
    _, *base = timed(lambda: tr.rank_sampled(scorer, **options))  # type: ignore[call-overload]
    print(f"{given.pairs:,} pairs, {given.batch:,} in a call; CPU (wall-clock) microseconds per pair")
    with tempfile.TemporaryDirectory() as folder:
        store, results = Path(folder) / "scores.db", []
        for what in ("written", "read"):
            found, *seconds = timed(lambda: tr.rank_sampled(scorer, **options, store=store))  # type: ignore[call-overload]
            results.append(found)
            wall, cpu = ((own - before) / given.pairs * 1e6 for own, before in zip(seconds, base, strict=True))
            print(f"{what:8} {cpu:5.2f} ({wall:.2f})   {store.stat().st_size / given.pairs:.1f} bytes per pair")
        assert results[0] == results[1]


if __name__ == "__main__":
    main()
