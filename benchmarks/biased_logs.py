"""Weights by propensity in a simulation with a known true preference: bias, error and coverage.

Each of many users has five relevant items of 500, all of them equally likely. An item is logged with the chance
(1 + number)^-0.5, so that items with low numbers are popular. The recommender finds popular items far more often than
others. Logs of 200 users are drawn again and again, and Recall@10 over all relevant items is estimated from
each. The table is results/biased_logs.csv.

    python benchmarks/biased_logs.py [--repetitions 1000]
"""

import argparse
from collections.abc import Iterator

import numpy as np

import truerank as tr
from real_ranks import save

N_ITEMS, N_RELEVANT, POPULAR = 500, 5, 100
TRUE_POWER = 0.5
COUNTS = 1.0 / (1 + np.arange(N_ITEMS))
"""Relative popularity."""
FINDS = np.where(np.arange(N_ITEMS) < POPULAR, 0.8, 0.2)
"""The chance that the recommender has an item in its top 10."""


def log(users: int, rng: np.random.Generator) -> tr.Ranks:
    """Return the ranks of what is logged of users who have at least one logged item."""
    relevant = rng.random((4 * users, N_ITEMS)).argpartition(N_RELEVANT, axis=1)[:, :N_RELEVANT]
    seen = rng.random(relevant.shape) < COUNTS[relevant] ** TRUE_POWER
    kept = np.flatnonzero(seen.any(axis=1))[:users]
    fields: dict[str, list[int]] = {"above": [], "items": []}
    sizes = []
    for own, inside in zip(relevant[kept], seen[kept], strict=True):
        items = own[inside]
        above = np.where(rng.random(items.size) < FINDS[items], 0, 50)
        order = np.argsort(above, kind="stable")
        fields["above"] += above[order].tolist()
        fields["items"] += items[order].tolist()
        sizes.append(items.size)
    return tr.Ranks(**fields, n_candidates=N_ITEMS, indptr=np.append(0, np.cumsum(sizes)))  # type: ignore[arg-type]


def propensities() -> dict[str, tr.Propensity | None]:
    items = np.arange(N_ITEMS)
    right = tr.Propensity(items, COUNTS**TRUE_POWER)
    return {
        "none": None,
        "right": right,
        "right, clipped at 0.1": right.clipped(0.1),
        "power 0.25": tr.Propensity(items, COUNTS**0.25),
        "power 0.75": tr.Propensity(items, COUNTS**0.75),
    }


def rows(repetitions: int) -> Iterator[list[object]]:
    truth = float(FINDS.mean())
    for users in (200,):
        found: dict[str, list[tuple[float, bool, float]]] = {name: [] for name in propensities()}
        rng = np.random.default_rng(users)
        for _ in range(repetitions):
            ranks = log(users, rng)
            for name, chance in propensities().items():
                one = tr.evaluate(ranks, "recall@10", propensity=chance)["recommender", "recall@10"]
                low, high = one.confidence_interval()
                found[name].append((one.mean, low <= truth <= high, one.n_effective))
        for name, each in found.items():
            means, covered, effective = np.array(each).T
            error = 100 * means.std() / len(means) ** 0.5
            shown = [100 * (means.mean() - truth), error, 100 * means.std(), 100 * covered.mean(), effective.mean()]
            yield [users, name, *(round(float(number), 2) for number in shown)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=1_000)
    table = []
    for row in rows(parser.parse_args().repetitions):
        table.append(row)
        print(*row, sep="\t", flush=True)
    save("biased_logs.csv", ["users", "propensity", "bias", "its error", "spread", "coverage", "effective"], table)


if __name__ == "__main__":
    main()
