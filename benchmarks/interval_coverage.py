"""How often intervals hold the truth, on real ranks.

All users of a data set are the population, whose mean is known; samples of users are drawn from it with replacement.
Corrected metrics are those of one draw of 100 candidates per user, around the mean of their own population. "default"
is what `Estimate.confidence_interval` gives: the t interval corrected for skewness, or Wilson's for values of 0 and 1.
BCa has 1,000 resamples, which all samples share. Differences are those of two recommenders on the same users; for
them `compare` takes the t interval by default.

    python benchmarks/interval_coverage.py [--gowalla DIR] [--samples 10000]
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import truerank as tr
from real_ranks import real_ranks
from truerank.arrays import Floats
from truerank.evaluation.intervals import Interval, skewed_interval, student_interval, wilson_interval
from truerank.evaluation.moments import Moments
from truerank.evaluation.resampling import BootstrapOutcome

METRICS = ("ndcg@10", "recall@10", "rr")
SIZES = (100, 1000)
REPLICATES = 1000
# samples that are drawn at once
CHUNK = 500


def student(values: Floats) -> Interval:
    own = Moments.of(values)
    return student_interval(own.mean, own.standard_error, own.n, 0.95)


def default(values: Floats) -> Interval:
    own = Moments.of(values)
    if np.isin(values, (0, 1)).all():
        return wilson_interval(own.mean, own.n, 0.95)
    return skewed_interval(own.mean, own.standard_error, own.n, own.skewness, 0.95)


def bca(values: Floats, replicates: Floats) -> Interval:
    rest = (values.sum() - values) / (values.size - 1)
    return BootstrapOutcome.of(replicates, float(values.mean()), rest).confidence_interval(0.95)


def coverage(population: Floats, size: int, samples: int) -> list[float]:
    """Return the share of samples whose t, default and BCa interval hold the mean of the population."""
    rng, mean = np.random.default_rng(0), float(population.mean())
    times = rng.multinomial(size, np.full(size, 1 / size), size=REPLICATES) / size if size in SIZES else None
    kinds: list[Callable[[Floats], Interval]] = [student, default]
    held = np.zeros(3)
    for _ in range(samples // CHUNK):
        drawn = population[rng.integers(population.size, size=(CHUNK, size))]
        for at, kind in enumerate(kinds):
            held[at] += sum(low <= mean <= high for low, high in map(kind, drawn))
        if times is not None:
            held[2] += sum(low <= mean <= high for low, high in map(bca, drawn, drawn @ times.T))
    return (held / (samples // CHUNK * CHUNK)).tolist()


def row(data: str, metric: str, population: Floats, samples: int) -> None:
    defined = population[~np.isnan(population)]
    for size in (*SIZES, defined.size):
        found = coverage(defined, size, samples if size in SIZES else min(samples, 2_000))
        print(f"{data:14}{metric:22}{size:8}" + "".join(f"{share:9.1%}" for share in found if share), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gowalla", type=Path)
    parser.add_argument("--samples", type=int, default=10_000)
    given = parser.parse_args()
    print(f"{'data':14}{'metric':22}{'users':>8}{'t':>9}{'default':>9}{'BCa':>9}")
    for data, ranks in real_ranks(given.gowalla).items():
        sampled = tr.UniformSampling(100).draw(ranks["B"].break_ties("random", rng=0), rng=0)
        for metric in METRICS:
            a, b = (tr.values(ranks[name], metric) for name in "AB")
            row(data, metric, b, given.samples)
            row(data, f"{metric}~bv(0.1)", tr.values(sampled, f"{metric}~bv(0.1)"), given.samples)
            row(data, f"{metric}, difference", b - a, given.samples)
