"""How often intervals hold the truth, on real ranks.

All users of a data set are the population, whose mean is known; samples of users are drawn from it with replacement.
Corrected metrics are those of one draw of 100 candidates per user, around the mean of their own population. The t
interval has 10,000 samples; Wilson's, for values of 0 and 1, as many; BCa has 1,000 samples of 1,000 resamples.

    python benchmarks/interval_coverage.py [--gowalla DIR] [--samples 1000]
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import truerank as tr
from real_ranks import real_ranks
from truerank.arrays import Floats
from truerank.evaluation.intervals import Interval, student_interval, wilson_interval
from truerank.evaluation.paired_tests import Sample

METRICS = ("ndcg@10", "recall@10", "rr")
SIZES = (100, 1000)
MANY = 10_000


def student(values: Floats) -> Interval:
    return student_interval(float(values.mean()), float(values.std(ddof=1) / values.size**0.5), values.size, 0.95)


def wilson(values: Floats) -> Interval:
    return wilson_interval(float(values.mean()), values.size, 0.95)


def bca(values: Floats) -> Interval:
    sample = Sample.of(np.column_stack([values, np.zeros(values.size)]))
    return tr.Bootstrap(1000, rng=1).outcomes(sample, [(0, 1)])[0].confidence_interval(0.95)


def coverage(population: Floats, size: int, samples: int, interval: Callable[[Floats], Interval]) -> float:
    """Return the share of samples whose interval holds the mean of the population."""
    rng, mean, held = np.random.default_rng(0), float(population.mean()), 0
    for _ in range(samples):
        low, high = interval(population[rng.integers(population.size, size=size)])
        held += low <= mean <= high
    return held / samples


def row(data: str, metric: str, population: Floats, samples: int) -> None:
    binary = bool(np.isin(population, (0, 1)).all())
    for size in (*SIZES, population.size):
        many = MANY if size <= 1000 else 2000
        found = [f"{coverage(population, size, many, student):9.1%}"]
        found.append(f"{coverage(population, size, many, wilson):9.1%}" if binary else " " * 9)
        found.append(f"{coverage(population, size, samples, bca):9.1%}" if size <= 1000 else "")
        print(f"{data:14}{metric:20}{size:8}" + "".join(found), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gowalla", type=Path)
    parser.add_argument("--samples", type=int, default=1000)
    given = parser.parse_args()
    print(f"{'data':14}{'metric':20}{'users':>8}{'t':>9}{'Wilson':>9}{'BCa':>9}")
    for data, ranks in real_ranks(given.gowalla).items():
        sampled = tr.UniformSampling(100).draw(ranks["B"], rng=0)
        for metric in METRICS:
            row(data, metric, tr.values(ranks["B"], metric), given.samples)
            row(data, f"{metric}~bv(0.1)", tr.values(sampled, f"{metric}~bv(0.1)"), given.samples)
