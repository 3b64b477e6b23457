"""How often the interval of a corrected metric covers the exact metric, and how wide it is.

The interval is about the exact metric and is the same for every correction, so one column stands for all of them; the
last column shows how often ~bv(0.1) plus or minus two standard errors covers the exact metric. Exact ranks are those of
X, Y and Z on MovieLens 1M (in the package) and, with --ranks, of files such as `studies.py` writes. In each repetition
candidates are sampled anew and ties broken at random; "all" asks for the mean over these very users, "1,000" draws as
many users at random and asks for the mean over all of them. The table is results/honest_intervals.csv.

With --designs, the intervals of Recall@10 of X under designs that draw until enough is known, and the scores that they
take per user: results/designs.csv.

    python benchmarks/honest_intervals.py [--designs] [--repetitions 100] [--ranks NAME=FILE ...] [--users 5000]
"""

import argparse
import os
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import truerank as tr
from real_ranks import save
from truerank.core.checks import Floats
from truerank.estimators.corrected import ASSUMPTIONS
from truerank.evaluation.exact_ranges import BoundValues, ExactRange, bound_values
from truerank.papers.krichene_rendle_2020.movielens import embedded
from truerank.sampling.designs import as_design

METRICS = ("recall@10", "ndcg@10", "ap")
COLUMNS = (
    "ranks", "m", "metric", "assumed", "repetitions", "exact", "low", "high",
    "covers, all users", "covers, 1,000 users", "bv(0.1) and two errors cover",
)  # fmt: skip
DESIGNS = (
    "inverse(2)", "inverse(5)", "inverse(10)", "inverse(decide=10, beyond=0.3)", "inverse(decide=10)",
    "inverse(2, 1000)", "inverse(2, 300)",
)  # fmt: skip
FEW = 1_000
AGAIN = 25


def intervals(bounds: BoundValues, users: int, rng: np.random.Generator) -> list[tuple[float, float]]:
    """Return the interval from all users, then those from some drawn at random, again and again."""
    draws = [np.arange(users), *(rng.integers(users, size=FEW) for _ in range(AGAIN))]
    return [ExactRange.of(bounds.take(drawn)).interval(0.95) for drawn in draws]


def narrow(values: Floats) -> tuple[float, float]:
    error = 1.96 * values.std() / np.sqrt(values.size)
    return values.mean() - error, values.mean() + error


def rows(name: str, ranks: tr.Ranks, m: int, repetitions: int) -> Iterator[tuple[Any, ...]]:
    """Print and yield a row for each metric and assumption; all of them see the same samples."""
    rng, users = np.random.default_rng(m), len(ranks)
    # all repetitions are one evaluation, so that tables are solved once
    sampled = tr.Ranks.concatenate([tr.UniformSampling(m).draw(ranks, rng=rng) for _ in range(repetitions)])
    parts = np.arange(repetitions * users).reshape(repetitions, users)
    found = np.empty((len(METRICS), len(ASSUMPTIONS), repetitions, AGAIN + 2, 2))
    for row, metric in enumerate(METRICS):
        corrected = tr.values(sampled, f"{metric}~bv(0.1)").reshape(repetitions, users)
        found[row, :, :, -1] = [narrow(values) for values in corrected]
        for column, assume in enumerate(ASSUMPTIONS):
            bounds = bound_values(sampled, tr.metric(metric), assume)
            found[row, column, :, :-1] = [intervals(bounds.take(part), users, rng) for part in parts]
    for row, metric in enumerate(METRICS):
        truth = float(tr.values(ranks, metric).mean())
        for column, assume in enumerate(ASSUMPTIONS):
            ends = found[row, column]
            covers = np.mean((ends[..., 0] <= truth) & (truth <= ends[..., 1]), axis=0)
            low, high = ends[:, 0].mean(axis=0)
            shares = covers[0], covers[1:-1].mean(), covers[-1]
            print(
                f"| {name} | {m} | {metric} | {assume} | {truth:.4f} | {low:.4f} to {high:.4f} | "
                + " | ".join(f"{share:.1%}" for share in shares)
                + " |",
                flush=True,
            )
            yield name, m, metric, assume, repetitions, *(round(float(x), 4) for x in (truth, low, high, *shares))


def of_design(exact: tr.Ranks, design: str) -> list[Any]:
    """Return the scores per user of a design, and both ends of the interval by assumption."""
    drawn = as_design(design).draw(exact, rng=0)
    tables = [tr.evaluate(drawn, "recall@10", assume=assume) for assume in ("nothing", "falling")]
    ends = [f"{row[end]:.4f}" for table in tables for row in table.rows() for end in ("low", "high")]
    return [design, f"{drawn.n_scored.mean():.0f}", *ends]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--ranks", nargs="*", default=[], metavar="NAME=FILE")
    parser.add_argument("--users", type=int, default=5_000, help="Users of each file that are taken, at random.")
    parser.add_argument("--sampled", type=int, nargs="*", default=[100, 1_000])
    parser.add_argument("--only-files", action="store_true", help="Leave out X, Y and Z.")
    parser.add_argument("--designs", action="store_true", help="Only the intervals by design.")
    given = parser.parse_args()
    if given.designs:
        exact = embedded().ranks["X"].break_ties("random", rng=0)
        header = ("design", "scores", *(f"{assumed}, {end}" for assumed in ASSUMPTIONS[:2] for end in ("low", "high")))
        save("designs.csv", header, [of_design(exact, design) for design in DESIGNS])
        return
    own = {} if given.only_files else embedded().ranks
    studies = {f"MovieLens {name}": ranks.break_ties("random", rng=0) for name, ranks in own.items()}
    for name, _, path in (text.partition("=") for text in given.ranks):
        ranks = tr.Ranks.load(path)
        chosen = np.random.default_rng(0).permutation(len(ranks))[: given.users]
        studies[name] = ranks[np.sort(chosen)].break_ties("random", rng=0)
    print(
        "| ranks | m | metric | assumed | exact | mean interval | covers, all | covers, 1,000 | ~bv(0.1) ± 2 errors |"
    )
    print("|---|---:|---|---|---:|---:|---:|---:|---:|")
    found = [
        row for m in given.sampled for name, ranks in studies.items() for row in rows(name, ranks, m, given.repetitions)
    ]
    save("honest_intervals.csv", COLUMNS, found)


if __name__ == "__main__":
    main()
