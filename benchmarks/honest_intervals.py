"""How often the interval of a corrected metric covers the exact metric, and how wide it is.

The interval is about the exact metric and is the same for every correction, so one column stands for all of them; the
last column shows how often ~bv(0.1) plus or minus two standard errors covers the exact metric. Exact ranks are those of
X, Y and Z on MovieLens 1M (in the package) and, with --ranks, of files that `Ranks.save` wrote. In each repetition
candidates are sampled anew and ties broken at random; "all" asks for the mean over these very users, "1,000" draws as
many users at random and asks for the mean over all of them.

    python benchmarks/honest_intervals.py [--repetitions 100] [--ranks NAME=FILE ...] [--users 5000]
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import truerank as tr
from truerank.arrays import Floats
from truerank.corrections.assumptions import ASSUMPTIONS, Assumption
from truerank.evaluation.exact_ranges import ExactRange, bound_values
from truerank.papers.krichene_rendle_2020.experiment import embedded

METRICS = ("recall@10", "ndcg@10", "ap")
ASSUMPTIONS: tuple[Assumption, ...] = ("nothing", "falling")
FEW = 1_000
AGAIN = 25


def intervals(
    sampled: tr.Ranks, metric: str, assume: Assumption, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """Return the interval from all users, then those from some drawn at random, again and again."""
    bounds = bound_values(sampled, tr.metric(metric), assume)
    draws = [np.arange(len(sampled)), *(rng.integers(len(sampled), size=FEW) for _ in range(AGAIN))]
    return [ExactRange.of(bounds.take(users)).interval(0.95) for users in draws]


def narrow(values: Floats) -> tuple[float, float]:
    error = 1.96 * values.std() / np.sqrt(values.size)
    return values.mean() - error, values.mean() + error


def show(name: str, ranks: tr.Ranks, m: int, repetitions: int) -> None:
    """Print a row for each metric and assumption; all of them see the same samples."""
    found = np.empty((len(METRICS), len(ASSUMPTIONS), repetitions, AGAIN + 2, 2))
    for repetition in range(repetitions):
        rng = np.random.default_rng([repetition, m])
        sampled = tr.UniformSampling(m).draw(ranks, rng=rng)
        for row, metric in enumerate(METRICS):
            found[row, :, repetition, -1] = narrow(tr.values(sampled, f"{metric}~bv(0.1)"))
            for column, assume in enumerate(ASSUMPTIONS):
                found[row, column, repetition, :-1] = intervals(sampled, metric, assume, rng)
    for row, metric in enumerate(METRICS):
        truth = float(tr.values(ranks, metric).mean())
        for column, assume in enumerate(ASSUMPTIONS):
            ends = found[row, column]
            covers = np.mean((ends[..., 0] <= truth) & (truth <= ends[..., 1]), axis=0)
            low, high = ends[:, 0].mean(axis=0)
            print(
                f"| {name} | {m} | {metric} | {assume} | {truth:.4f} | {low:.4f} to {high:.4f} | {covers[0]:.1%} | "
                f"{covers[1:-1].mean():.1%} | {covers[-1]:.0%} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--ranks", nargs="*", default=[], metavar="NAME=FILE")
    parser.add_argument("--users", type=int, default=5_000, help="Users of each file that are taken, at random.")
    parser.add_argument("--sampled", type=int, nargs="*", default=[100, 1_000])
    parser.add_argument("--only-files", action="store_true", help="Leave out X, Y and Z.")
    given = parser.parse_args()
    own = {} if given.only_files else embedded().ranks
    studies = {name: ranks.break_ties("random", rng=0) for name, ranks in own.items()}
    for name, _, path in (text.partition("=") for text in given.ranks):
        ranks = tr.Ranks.load(path)
        chosen = np.random.default_rng(0).permutation(len(ranks))[: given.users]
        studies[name] = ranks[np.sort(chosen)].break_ties("random", rng=0)
    print(
        "| ranks | m | metric | assumed | exact | mean interval | covers, all | covers, 1,000 | ~bv(0.1) ± 2 errors |"
    )
    print("|---|---:|---|---|---:|---:|---:|---:|---:|")
    for m in given.sampled:
        for name, ranks in studies.items():
            show(name, ranks, m, given.repetitions)


if __name__ == "__main__":
    main()
