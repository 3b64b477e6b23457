"""Top k lists: truerank against implicit's `recommend` and NumPy's argpartition, as ratios within one run.

    python benchmarks/recommending.py [--factors N] [-k N ...] [--threads N] [--rounds N]

All start from the same factors in float32, leave out the same training items, and must find the same items; of equal
scores there are none. Times are the best of some alternating rounds; CPU times and the share of equal places are
results/recommending.csv. implicit is left out where it is not installed. `rank` is the time truerank takes to rank one
held-out item per user.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import truerank as tr
from real_ranks import save

SHAPES = (6_040, 3_706), (3_000, 40_000)  # users, items
BLOCK = 512  # users whose scores NumPy holds at a time


class Data(NamedTuple):
    """Factors, training items, and one held-out item per user."""

    users: Any
    items: Any
    train: sp.csr_matrix
    test: sp.csr_matrix


Lists = Callable[[], Any]
"""Returns the items of each user, best first, of shape (users, k); None for what only ranks."""


def draw(n_users: int, n_items: int, n_factors: int) -> Data:
    rng = np.random.default_rng(0)
    users, items = (rng.standard_normal((n, n_factors)).astype(np.float32) for n in (n_users, n_items))
    seen = sp.random(n_users, n_items, min(100 / n_items, 0.3), format="csr", random_state=rng, dtype=np.float32)
    held = sp.csr_matrix((np.ones(n_users), (np.arange(n_users), rng.integers(n_items, size=n_users))), seen.shape)
    seen.sort_indices()
    return Data(users, items, seen, held)


def by_truerank(data: Data, k: int, threads: int) -> Lists:
    model = tr.Factors(data.users, data.items)
    return lambda: tr.recommend(model, train=data.train, k=k, threads=threads).items.reshape(-1, k)


def by_rank(data: Data, k: int, threads: int) -> Lists:
    model = tr.Factors(data.users, data.items)

    def rank() -> None:
        tr.rank(model, train=data.train, test=data.test, threads=threads)

    return rank


def by_argpartition(data: Data, k: int, threads: int) -> Lists:
    def recommend() -> Any:
        parts = []
        for start in range(0, len(data.users), BLOCK):
            scores = data.users[start : start + BLOCK] @ data.items.T
            scores[data.train[start : start + BLOCK].nonzero()] = -np.inf
            best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
            order = np.argsort(-np.take_along_axis(scores, best, 1), axis=1)
            parts.append(np.take_along_axis(best, order, 1))
        return np.concatenate(parts)

    return recommend


def by_implicit(data: Data, k: int, threads: int) -> Lists:
    from implicit.cpu.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(factors=data.items.shape[1], num_threads=threads)
    model.user_factors, model.item_factors = data.users, data.items
    everyone = np.arange(len(data.users))
    return lambda: model.recommend(everyone, data.train, N=k, filter_already_liked_items=True)[0]


CONTENDERS: dict[str, Callable[[Data, int, int], Lists]] = {
    "truerank": by_truerank,
    "truerank, rank": by_rank,
    "implicit": by_implicit,
    "numpy argpartition": by_argpartition,
}


def timed(run: Lists) -> tuple[float, Any]:
    start = time.process_time()
    found = run()
    return time.process_time() - start, found


def measure(data: Data, k: int, threads: int, rounds: int) -> list[tuple[object, ...]]:
    """Return the CPU seconds of each contender, relative to truerank, and the share of places with the same item."""
    runs: dict[str, Lists] = {}
    for name, prepare in CONTENDERS.items():
        try:
            runs[name] = prepare(data, k, threads)
        except ImportError as error:
            print(f"{name}: left out ({error})")
    best = dict.fromkeys(runs, np.inf)
    found: dict[str, Any] = {}
    for _ in range(rounds):
        for name, run in runs.items():
            seconds, found[name] = timed(run)
            best[name] = min(best[name], seconds)
    rows = []
    for name, seconds in best.items():
        same = "" if found[name] is None else f"{(found[name] == found['truerank']).mean():.5f}"
        rows.append((*data.train.shape, k, name, f"{seconds:.4f}", f"{seconds / best['truerank']:.2f}", same))
        print(*rows[-1], sep="  ", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("factors", 64), ("threads", 1), ("rounds", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("-k", type=int, nargs="+", default=[10, 100])
    given = parser.parse_args()
    header = ("users", "items", "k", "contender", "CPU seconds", "times truerank", "equal places")
    drawn = [draw(*shape, given.factors) for shape in SHAPES]
    rows = [row for data in drawn for k in given.k for row in measure(data, k, given.threads, given.rounds)]
    save("recommending.csv", header, rows)


if __name__ == "__main__":
    main()
