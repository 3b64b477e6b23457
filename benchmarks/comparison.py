"""Comparisons: how often a true null is rejected on real ranks, and how long all pairs of ten recommenders take.

A true null with real skewness: the differences of two real recommenders, less their mean, are the population. Samples
of users are drawn from it with replacement, and tested at 5 %; 500 samples share the resamples of a test. Speed: ten
recommenders, 100,000 users, 10,000 replicates, all 45 pairs, against scipy.stats.bootstrap on one of the pairs, and
against ranx.compare if it is installed. The tables are results/false_positives.csv and results/comparison_speed.csv.

    python benchmarks/comparison.py [--gowalla DIR] [--samples 2000] [--users 100000] [--only speed]
"""

import argparse
import importlib.util
import resource
import time
from pathlib import Path

import numpy as np
from scipy import stats

import truerank as tr
from real_ranks import real_ranks, resamples, samples, save
from truerank.core.checks import Floats
from truerank.evaluation.intervals import Units
from truerank.evaluation.paired_tests import BootstrapOutcome, LikelihoodOutcome

METRICS = ("ndcg@10", "recall@10", "rr")
SIZES = (100, 1000)
TESTS = ("likelihood", "t", "bootstrap", "randomisation")
Timing = tuple[str, float, float, int]
"""What was timed, seconds by the clock and of CPU, and the peak of the process in MB."""


def likelihood_p(drawn: Floats, largest: float) -> Floats:
    """Return the p-value by empirical likelihood of each row."""
    return np.array([LikelihoodOutcome(Units.of(own), largest).p_value for own in drawn])


def student_p(drawn: Floats) -> Floats:
    """Return the p-value of the t-test of each row."""
    errors = drawn.std(axis=1, ddof=1) / drawn.shape[1] ** 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(2 * stats.t.sf(np.abs(drawn.mean(axis=1) / errors), drawn.shape[1] - 1), nan=1.0)


def bootstrap_p(drawn: Floats, rng: np.random.Generator) -> Floats:
    """Return the p-value of the BCa bootstrap of each row, from resamples that all rows share."""
    size = drawn.shape[1]
    replicates = drawn @ resamples(size, 1000, rng).T
    rests = (drawn.sum(axis=1, keepdims=True) - drawn) / (size - 1)
    rows = zip(replicates, drawn.mean(axis=1).tolist(), rests, strict=True)
    return np.array([BootstrapOutcome.of(*row).p_value for row in rows])


def randomisation_p(drawn: Floats, rng: np.random.Generator) -> Floats:
    """Return the p-value of each row, from random exchanges that all rows share."""
    signs = 2.0 * rng.integers(2, size=(999, drawn.shape[1])) - 1
    others, own = np.abs(drawn @ signs.T), np.abs(drawn.sum(axis=1, keepdims=True))
    return ((others >= own - 1e-12).sum(axis=1) + 1) / (len(signs) + 1)


def rejected(population: Floats, largest: float, size: int, count: int, rng: np.random.Generator) -> list[float]:
    """Return the share of samples in which each test at 5 % finds a difference."""
    p_values = [
        (likelihood_p(drawn, largest), student_p(drawn), bootstrap_p(drawn, rng), randomisation_p(drawn, rng))
        for drawn in samples(population, size, count, rng)
    ]
    return [round(share, 4) for share in (np.concatenate(p_values, axis=1) <= 0.05).mean(axis=1).tolist()]


def false_positives(gowalla: Path | None, count: int) -> None:
    rng, rows = np.random.default_rng(0), []
    print("share of true nulls rejected at 5 %")
    print(f"{'data':14}{'metric':12}{'users':>8}" + "".join(f"{test:>15}" for test in TESTS))
    for data, ranks in real_ranks(gowalla).items():
        for metric in METRICS:
            difference = tr.values(ranks["B"], metric) - tr.values(ranks["A"], metric)
            population = difference - difference.mean()
            for size in (*SIZES, population.size):
                shares = rejected(population, 1.0, size, count, rng)
                rows.append((data, metric, size, count, *shares))
                print(f"{data:14}{metric:12}{size:8}" + "".join(f"{share:15.1%}" for share in shares), flush=True)
    save("false_positives.csv", ("data", "metric", "users", "samples", *TESTS), rows)


def timed(label: str, start: tuple[float, float]) -> Timing:
    memory = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)
    clock, processor = (round(end - begin, 2) for end, begin in zip(now(), start, strict=True))
    print(f"{label:50}{clock:8.1f} s, CPU {processor:6.1f} s, peak {memory:6} MB", flush=True)
    return label, clock, processor, memory


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def speed(users: int) -> None:
    rng = np.random.default_rng(0)
    ranks = {f"m{j}": tr.Ranks.from_ranks(rng.geometric(0.02, users).clip(1, 999), n=1000) for j in range(10)}
    found = []
    for test in TESTS:
        start = now()
        tr.compare(ranks, "ndcg@10", test=test, rng=0)  # type: ignore[arg-type]
        found.append(timed(f"truerank, {test}, 45 pairs", start))
    a, b = (tr.values(ranks[name], "ndcg@10") for name in ("m0", "m1"))
    start = now()
    # its BCa leaves out each of the users in turn, which takes the square of their number
    stats.bootstrap((b - a,), np.mean, n_resamples=10_000, batch=100, rng=0, method="percentile")
    found.append(timed("scipy.stats.bootstrap, percentile, 1 pair", start))
    if importlib.util.find_spec("ranx"):
        found.append(ranx_compare(users))
    header = ("comparison", "users", "seconds", "CPU seconds", "peak MB")
    save("comparison_speed.csv", header, [(label, users, *figures) for label, *figures in found])


def ranx_compare(users: int) -> Timing:
    """Time ranx on lists of ten for two recommenders, from its own objects on."""
    from ranx import Qrels, Run, compare

    rng = np.random.default_rng(0)
    qrels = Qrels({str(user): {"x": 1} for user in range(users)})
    runs = [
        Run({str(user): {("x" if place == at else f"o{place}"): 10.0 - place for place in range(10)}
             for user, at in enumerate(rng.integers(0, 20, users))}, name=f"m{j}")
        for j in range(2)
    ]  # fmt: skip
    start = now()
    compare(qrels, runs, metrics=["ndcg@10"], stat_test="fisher", n_permutations=10_000)
    return timed("ranx.compare, fisher, 1 pair", start)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gowalla", type=Path)
    parser.add_argument("--samples", type=int, default=2_000)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--only", choices=["speed", "false-positives"])
    given = parser.parse_args()
    if given.only != "false-positives":
        speed(given.users)
    if given.only != "speed":
        false_positives(given.gowalla, given.samples)
