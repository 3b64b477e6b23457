"""How often intervals hold the truth, on real ranks.

All users of a data set are the population, whose mean is known; samples of users are drawn from it with replacement.
Corrected metrics are those of one draw of 100 candidates per user, around the mean of their own population. "default"
is what `Estimate.expectation_interval` and `compare` give: empirical likelihood that allows for values which were not
seen. BCa has 1,000 resamples, which 500 samples share. Differences are those of two recommenders on the same users.
"width" is the mean width of the default interval over that of Student's. The table is results/interval_coverage.csv.

    python benchmarks/interval_coverage.py [--gowalla DIR] [--samples 2000]
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import truerank as tr
from real_ranks import real_ranks, resamples, samples, save
from truerank.core.checks import Floats
from truerank.evaluation.intervals import Interval, Units, attainable, student_interval
from truerank.evaluation.paired_tests import BootstrapOutcome

METRICS = ("ndcg@10", "recall@10", "rr")
SIZES = (100, 1000)
REPLICATES = 1000
KINDS = ("t", "default", "BCa")
Ends = Interval
"""The least and the largest value that is possible."""


def student(drawn: Floats) -> Iterator[Interval]:
    n = drawn.shape[1]
    for mean, error in zip(drawn.mean(axis=1).tolist(), (drawn.std(axis=1, ddof=1) / n**0.5).tolist(), strict=True):
        yield student_interval(mean, error, n, 0.95)


def defaults(drawn: Floats, ends: Ends) -> Iterator[Interval]:
    for own in drawn:
        yield Units.of(own).interval(0.95, ends)


def bca(drawn: Floats, rng: np.random.Generator) -> Iterator[Interval]:
    replicates = drawn @ resamples(drawn.shape[1], REPLICATES, rng).T
    for values, own in zip(drawn, replicates, strict=True):
        rest = (values.sum() - values) / (values.size - 1)
        yield BootstrapOutcome.of(own, float(values.mean()), rest).confidence_interval(0.95)


def coverage(population: Floats, ends: Ends, size: int, count: int, rng: np.random.Generator) -> list[float]:
    """Return the share of samples whose t, default and BCa interval hold the mean of the population, and the width."""
    mean, found = float(population.mean()), []
    for drawn in samples(population, size, count, rng):
        kinds = (student(drawn), defaults(drawn, ends), bca(drawn, rng))
        found.append(np.array([list(intervals) for intervals in kinds]))
    low, high = np.moveaxis(np.concatenate(found, axis=1), 2, 0)
    widths = (high - low).mean(axis=1)
    shares = ((low <= mean) & (mean <= high)).mean(axis=1)
    return [*(round(share, 4) for share in shares.tolist()), round(float(widths[1] / widths[0]), 3)]


def populations(ranks: dict[str, tr.Ranks]) -> Iterator[tuple[str, Floats, Ends]]:
    """Yield names and values of the users, and the values that are possible."""
    sampled = tr.UniformSampling(100).draw(ranks["B"].break_ties("random", rng=0), rng=0)
    for metric in METRICS:
        a, b = (tr.values(ranks[name], metric) for name in "AB")
        ends, corrected = attainable(ranks["B"], tr.metric(metric)), tr.values(sampled, f"{metric}~bv(0.1)")
        assert ends is not None
        yield metric, b, ends
        yield f"{metric}~bv(0.1)", corrected, Interval(float(np.nanmin(corrected)), float(np.nanmax(corrected)))
        yield f"{metric}, difference", b - a, Interval(ends.low - ends.high, ends.high - ends.low)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gowalla", type=Path)
    parser.add_argument("--samples", type=int, default=2_000)
    given = parser.parse_args()
    rng, rows = np.random.default_rng(0), []
    print(f"{'data':14}{'metric':22}{'users':>8}" + "".join(f"{kind:>9}" for kind in (*KINDS, "width")))
    for data, ranks in real_ranks(given.gowalla).items():
        for metric, values, ends in populations(ranks):
            population = values[~np.isnan(values)]
            for size in (*SIZES, population.size):
                found = coverage(population, ends, size, given.samples, rng)
                rows.append((data, metric, size, given.samples, *found))
                print(f"{data:14}{metric:22}{size:8}" + "".join(f"{share:9.3f}" for share in found), flush=True)
    save("interval_coverage.csv", ("data", "metric", "users", "samples", *KINDS, "width"), rows)


if __name__ == "__main__":
    main()
