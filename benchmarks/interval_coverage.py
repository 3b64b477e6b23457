"""How often intervals hold the truth, on real ranks.

All users of a data set are the population, whose mean is known; samples of users are drawn from it with replacement.
Corrected metrics are those of one draw of 100 candidates per user, around the mean of their own population. "default"
is what `Estimate.expectation_interval` gives: the t interval corrected for skewness and rare values, or Wilson's for
values of 0 and 1. BCa has 1,000 resamples, which 500 samples share. Differences are those of two recommenders on the
same users; for them `compare` takes the t interval by default. The table is results/interval_coverage.csv.

    python benchmarks/interval_coverage.py [--gowalla DIR] [--samples 10000]
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

import truerank as tr
from real_ranks import real_ranks, resamples, samples, save
from truerank.arrays import Bools, Floats
from truerank.evaluation.attainable_values import attainable
from truerank.evaluation.intervals import Interval, skewed_interval, wilson_interval
from truerank.evaluation.moments import Moments
from truerank.evaluation.resampling import BootstrapOutcome

METRICS = ("ndcg@10", "recall@10", "rr")
SIZES = (100, 1000)
REPLICATES = 1000
KINDS = ("t", "default", "BCa")


def moments(drawn: Floats) -> list[Moments]:
    """Return the moments of each row."""
    means, n = drawn.mean(axis=1), drawn.shape[1]
    gaps = drawn - means[:, None]
    squares, cubes = np.einsum("ij,ij->i", gaps, gaps), np.einsum("ij,ij,ij->i", gaps, gaps, gaps)
    return [Moments(n, *own) for own in zip(means.tolist(), squares.tolist(), cubes.tolist(), strict=True)]


def student(own: Moments) -> Interval:
    return Interval(own.reach(0.95, -1), own.reach(0.95, 1))


def defaults(drawn: Floats, rows: list[Moments], ends: Interval | None) -> Iterator[Interval]:
    for own, binary in zip(rows, ((drawn == 0) | (drawn == 1)).all(axis=1).tolist(), strict=True):
        yield wilson_interval(own.mean, drawn.shape[1], 0.95) if binary else skewed_interval(own, 0.95, ends)


def bca(drawn: Floats, rng: np.random.Generator) -> Iterator[Interval]:
    replicates = drawn @ resamples(drawn.shape[1], REPLICATES, rng).T
    for values, own in zip(drawn, replicates, strict=True):
        rest = (values.sum() - values) / (values.size - 1)
        yield BootstrapOutcome.of(own, float(values.mean()), rest).confidence_interval(0.95)


def held(intervals: Iterable[Interval], mean: float) -> Bools:
    low, high = np.array(list(intervals)).T
    return (low <= mean) & (mean <= high)


def coverage(population: Floats, ends: Interval | None, size: int, count: int, rng: np.random.Generator) -> list[float]:
    """Return the share of samples whose t, default and BCa interval hold the mean of the population."""
    mean, found = float(population.mean()), []
    for drawn in samples(population, size, count, rng):
        rows = moments(drawn)
        kinds = (map(student, rows), defaults(drawn, rows, ends), bca(drawn, rng))
        found.append([held(intervals, mean) for intervals in kinds])
    return [round(share, 4) for share in np.concatenate(found, axis=1).mean(axis=1).tolist()]


def populations(ranks: dict[str, tr.Ranks]) -> Iterator[tuple[str, Floats, Interval | None]]:
    """Yield names and values of the users, and the values that are attainable, if they are known."""
    sampled = tr.UniformSampling(100).draw(ranks["B"].break_ties("random", rng=0), rng=0)
    for metric in METRICS:
        a, b = (tr.values(ranks[name], metric) for name in "AB")
        yield metric, b, attainable(ranks["B"], tr.metric(metric))
        yield f"{metric}~bv(0.1)", tr.values(sampled, f"{metric}~bv(0.1)"), None
        yield f"{metric}, difference", b - a, None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gowalla", type=Path)
    parser.add_argument("--samples", type=int, default=10_000)
    given = parser.parse_args()
    rng, rows = np.random.default_rng(0), []
    print(f"{'data':14}{'metric':22}{'users':>8}" + "".join(f"{kind:>9}" for kind in KINDS))
    for data, ranks in real_ranks(given.gowalla).items():
        for metric, values, ends in populations(ranks):
            population = values[~np.isnan(values)]
            for size in (*SIZES, population.size):
                found = coverage(population, ends, size, given.samples, rng)
                rows.append((data, metric, size, given.samples, *found))
                print(f"{data:14}{metric:22}{size:8}" + "".join(f"{share:9.1%}" for share in found), flush=True)
    save("interval_coverage.csv", ("data", "metric", "users", "samples", *KINDS), rows)


if __name__ == "__main__":
    main()
