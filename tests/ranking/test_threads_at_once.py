"""Several threads that rank and evaluate shared objects at once get the bits that one gets alone.

The compiled loops release the lock of the interpreter, so this is a race on every build, and more so without that lock.
"""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import truerank as tr

N_THREADS, N_USERS, N_ITEMS = 6, 80, 300


@dataclass
class Shared:
    """A model, a split, and ranks, whose caches are empty at first."""

    model: Any = field(init=False)
    split: tr.Split = field(init=False)
    exact: tr.Ranks = field(init=False)
    sampled: tr.Ranks = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        pairs = np.flatnonzero(rng.random(N_USERS * N_ITEMS) < 0.05)
        data = tr.read_interactions({"user": pairs // N_ITEMS, "item": pairs % N_ITEMS})
        self.split = tr.leave_k_out(data, rng=0)
        users, items = rng.standard_normal((data.n_users, 16)), rng.standard_normal((data.n_items, 16))
        self.model = tr.Factors(users.astype(np.float32), items.astype(np.float32))
        self.exact = tr.Ranks.from_ranks(rng.integers(1, N_ITEMS, size=N_USERS), n=N_ITEMS)
        self.sampled = tr.UniformSampling(20).draw(self.exact, rng=0)


JOBS: dict[str, Callable[[Shared], Any]] = {
    "rank": lambda shared: _ranks(tr.rank(shared.model, shared.split)),
    "rank to a depth": lambda shared: _ranks(tr.rank(shared.model, shared.split, depth=10, threads=2)),
    "rank_sampled": lambda shared: _ranks(tr.rank_sampled(shared.model, shared.split, design=20, rng=0)),
    "recommend": lambda shared: tr.recommend(shared.model, k=5, train=shared.split.train).items.tolist(),
    "neighbours": lambda shared: tr.ItemKNN(neighbours=5).fit(shared.split.train).scores(np.arange(9)).tolist(),
    "values": lambda shared: tr.values(shared.exact, "ndcg@10").tolist(),
    "corrected values": lambda shared: tr.values(shared.sampled, "recall@10~bv(0.1)").tolist(),
    "evaluate": lambda shared: str(tr.evaluate({"a": shared.exact, "b": shared.exact}, ["ap", "auc"])),
}


def _ranks(ranks: tr.Ranks) -> tuple[list[int], list[int]]:
    return ranks.above.tolist(), ranks.tied.tolist()


@pytest.fixture(autouse=True)
def _threads_change_often() -> Any:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("job", JOBS)
def test_the_same_work_at_once(job: str) -> None:
    alone = JOBS[job](Shared())
    for _ in range(2):
        assert at_once([JOBS[job]] * N_THREADS) == [alone] * N_THREADS


def test_different_work_at_once() -> None:
    alone = [job(Shared()) for job in JOBS.values()]
    for _ in range(2):
        assert at_once(list(JOBS.values())) == alone


def at_once(jobs: list[Callable[[Shared], Any]]) -> list[Any]:
    """Return what jobs return that start at the same moment, with objects that no one has used yet."""
    shared, start = Shared(), threading.Barrier(len(jobs))

    def run(job: Callable[[Shared], Any]) -> Any:
        start.wait()
        return job(shared)

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))
