"""Comparisons: how often a true null is rejected on real ranks, and how long all pairs of ten recommenders take.

A true null with real skewness: the differences of two real recommenders, less their mean, are the population. Samples
of users are drawn from it with replacement, and tested at 5 %. The t-test has 10,000 samples; the others, which
resample, have fewer. Speed: ten recommenders, 100,000 users, 10,000 replicates, all 45 pairs, against
scipy.stats.bootstrap on one of the pairs, and against ranx.compare if it is installed.

    python benchmarks/comparison.py [--gowalla DIR] [--samples 1000] [--users 100000]
"""

import argparse
import importlib.util
import resource
import time
from pathlib import Path

import numpy as np
from scipy import stats

import truerank as tr
from real_ranks import real_ranks
from truerank.arrays import Floats
from truerank.evaluation.paired_tests import PairedTest, Sample, StudentTest

METRICS = ("ndcg@10", "recall@10", "rr")
SIZES = (100, 1000)
MANY = 10_000


def rejected(population: Floats, size: int, samples: int, test: PairedTest, seed: int = 0) -> float:
    """Return the share of samples in which a test at 5 % finds a difference."""
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(samples):
        drawn = population[rng.integers(population.size, size=size)]
        [outcome] = test.outcomes(Sample.of(np.column_stack([drawn, np.zeros(size)])), [(0, 1)])
        found += outcome.p_value <= 0.05
    return found / samples


def false_positives(gowalla: Path | None, samples: int) -> None:
    print("share of true nulls rejected at 5 %")
    print(f"{'data':14}{'metric':12}{'users':>8}{'t':>9}{'bootstrap':>11}{'randomis.':>11}")
    for data, ranks in real_ranks(gowalla).items():
        for metric in METRICS:
            difference = tr.values(ranks["B"], metric) - tr.values(ranks["A"], metric)
            population = difference - difference.mean()
            for size in (*SIZES, population.size):
                shares = [rejected(population, size, MANY if size <= 1000 else 2000, StudentTest())]
                if size <= 1000:
                    resampling: list[PairedTest] = [tr.Bootstrap(1000, rng=1), tr.Randomisation(999, rng=1)]
                    shares += [rejected(population, size, samples, test) for test in resampling]
                print(f"{data:14}{metric:12}{size:8}" + "".join(f"{share:10.1%} " for share in shares), flush=True)


def timed(label: str, start: float) -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(f"{label:55}{time.perf_counter() - start:8.1f} s   peak {memory:6.0f} MB", flush=True)


def speed(users: int) -> None:
    rng = np.random.default_rng(0)
    ranks = {f"m{j}": tr.Ranks.from_ranks(rng.geometric(0.02, users).clip(1, 999), n=1000) for j in range(10)}
    for test in ("t", "bootstrap", "randomisation"):
        start = time.perf_counter()
        tr.compare(ranks, "ndcg@10", test=test, rng=0)
        timed(f"truerank, {test}, 45 pairs of {users:,} users", start)
    a, b = (tr.values(ranks[name], "ndcg@10") for name in ("m0", "m1"))
    start = time.perf_counter()
    stats.bootstrap((b - a,), np.mean, n_resamples=10_000, batch=100, rng=0)
    timed("scipy.stats.bootstrap, 1 pair", start)
    if importlib.util.find_spec("ranx"):
        ranx_compare(users)


def ranx_compare(users: int) -> None:
    """Time ranx on lists of ten for two recommenders, from its own objects on."""
    from ranx import Qrels, Run, compare

    rng = np.random.default_rng(0)
    qrels = Qrels({str(user): {"x": 1} for user in range(users)})
    runs = [
        Run({str(user): {("x" if place == at else f"o{place}"): 10.0 - place for place in range(10)}
             for user, at in enumerate(rng.integers(0, 20, users))}, name=f"m{j}")
        for j in range(2)
    ]  # fmt: skip
    start = time.perf_counter()
    compare(qrels, runs, metrics=["ndcg@10"], stat_test="fisher", n_permutations=10_000)
    timed("ranx.compare, fisher, 1 pair", start)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gowalla", type=Path)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--users", type=int, default=100_000)
    given = parser.parse_args()
    speed(given.users)
    false_positives(given.gowalla, given.samples)
