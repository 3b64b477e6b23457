"""False claims about many systems, many seeds and races, on users drawn from known laws.

    python benchmarks/many.py systems [--repetitions 1000] [--minutes 60] [--quick]
    python benchmarks/many.py seeds [--repetitions 1000] [--minutes 60] [--quick] [--data FOLDER]
    python benchmarks/many.py race [--repetitions 1000] [--minutes 60] [--quick] [--data FOLDER]

`systems`: 3 to 50 recommenders, equal and unequal. A repetition is wrong if any verdict is: "better" for one that is
not, "differ by less than the margin" or "not worse" where the loss is as large, a range of places that leaves out the
true one, or a set of the best without any of them. At most 5 % may be.

`seeds`: users crossed with runs whose means vary. How often the interval of the difference covers the truth, for new
users and new runs; beside it that of the users alone, which means over runs would give. With a folder of MovieLens
(train.tsv.gz, test.tsv.gz), how often iALS is told apart from itself with other seeds, and where its variance comes
from.

`race`: how often a race that is looked at after every user is wrong, by laws of differences with mean 0; with a
folder of MovieLens (train.tsv.gz, test.tsv.gz), after how many users races of real recommenders end, beside the users
that a fixed study needs for a power of 90 %, if it knows the difference beforehand.

Tables are written to results/many_systems.csv, many_seeds.csv and many_races.csv as they grow: a run goes on where the
last one ended, with further seeds, until each cell has its repetitions or the minutes are over. `--fresh` starts again.
The exit code is 1 if a cell fails, at the 0.1 % level.
"""

import argparse
import csv
import math
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, cast

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

import truerank as tr
from real_ranks import RESULTS, save
from truerank.core.checks import Floats, Ints
from truerank.evaluation.anytime_tests import AnytimeOutcome
from truerank.evaluation.crossed_runs import RunsOutcome
from truerank.evaluation.paired_tests import Adjustment
from truerank.papers.krichene_rendle_2020.movielens import embedded

N, LEVEL, FALSE, FAILED = 1_000, 0.95, 0.05, 0.001
GAINS = 1 / np.log2(np.arange(2, 12))
"""NDCG@10 at the first ten ranks."""
MARGIN = 0.02
Values = tuple[Ints, Floats]
"""Ranks of users, a column per recommender, and the expected NDCG@10 of each."""


def _hits(chances: Floats, users: int, rng: np.random.Generator, shared: float = 0.0) -> Ints:
    """Return ranks of which a share is in the top 10, anywhere; `shared` users have the same rank everywhere."""
    draws = rng.random((users, chances.size))
    ranks = rng.integers(1, 11, size=draws.shape)
    same = rng.random(users) < shared
    draws[same], ranks[same] = draws[same, :1], ranks[same, :1]
    return np.where(draws < chances, ranks, 500)


def _equal(count: int, users: int, rng: np.random.Generator, shared: float = 0.0) -> Values:
    chances = np.full(count, 0.2)
    return _hits(chances, users, rng, shared), chances * GAINS.mean()


def _rare(count: int, users: int, rng: np.random.Generator) -> Values:
    """All users have the item on top, except 2 % of them for each recommender."""
    return np.where(rng.random((users, count)) < 0.02, 500, 1), np.full(count, 0.98)


def _two_vary(count: int, users: int, rng: np.random.Generator) -> Values:
    """All recommenders but two hardly differ."""
    ranks, means = _equal(count, users, rng, shared=0.98)
    ranks[:, :2] = _equal(2, users, rng)[0]
    return ranks, means


def _stairs(count: int, users: int, rng: np.random.Generator) -> Values:
    chances = np.linspace(0.1, 0.4, count)
    return _hits(chances, users, rng, shared=0.5), chances * GAINS.mean()


def _one_better(count: int, users: int, rng: np.random.Generator) -> Values:
    chances = np.where(np.arange(count) == count - 1, 0.3, 0.2)
    return _hits(chances, users, rng), chances * GAINS.mean()


def _one_rarely_worse(count: int, users: int, rng: np.random.Generator) -> Values:
    """One loses a few users altogether, beyond the margin; the others are equal."""
    ranks = np.repeat(rng.integers(1, 11, size=(users, 1)), count, axis=1)
    ranks[rng.random(users) < 0.06, 0] = 500
    means = np.full(count, GAINS.mean())
    return ranks, means * np.where(np.arange(count) == 0, 0.94, 1.0)


SYSTEMS: dict[str, Callable[[int, int, np.random.Generator], Values]] = {
    "equal, independent": _equal,
    "equal, 90 % of users alike": partial(_equal, shared=0.9),
    "equal, 2 % of users lost": _rare,
    "equal, two vary": _two_vary,
    "stairs": _stairs,
    "one better": _one_better,
    "one rarely worse": _one_rarely_worse,
}


@dataclass(frozen=True)
class Cell:
    """What is tried."""

    law: str
    count: int
    users: int
    how: str


def system_cells(quick: bool) -> Iterator[tuple[Cell, float]]:
    """Yield cells, and by how much fewer repetitions they get: those of 50 recommenders take a second each."""
    for law in SYSTEMS:
        for count, users in ((3, 30), (3, 1_000), (10, 100), (10, 1_000)):
            for how in ("max-t", "holm") if count == 3 else ("max-t",):
                if not quick or (count, users) == (3, 1_000):
                    yield Cell(law, count, users, how), 1.0
        if not quick and law in ("equal, independent", "equal, 2 % of users lost", "stairs"):
            yield Cell(law, 50, 300, "max-t"), 0.2


def false_claims(cell: Cell, rng: np.random.Generator) -> tuple[bool, float]:
    """Return whether anything that is said is false, and the share of pairs that were told apart."""
    ranks, means = SYSTEMS[cell.law](cell.count, cell.users, rng)
    given = {str(at): tr.Ranks.from_ranks(own, n=N) for at, own in enumerate(ranks.T)}
    margin = None if cell.count == 50 else MARGIN
    result = tr.compare(given, "ndcg@10", adjustment=cast("Adjustment", cell.how), margin=margin)
    order = result.order()
    wrong = any(_is_false(each, means) for each in result)
    best = {str(at) for at in np.flatnonzero(means > means.max() - 1e-12)}
    wrong |= not best <= set(order.best)
    for place in order:
        better, equal = (
            means > means[int(place.recommender)] + 1e-12,
            np.abs(means - means[int(place.recommender)]) < 1e-12,
        )
        wrong |= place.first > better.sum() + 1 or place.last < better.sum() + equal.sum()
    return bool(wrong), float(np.mean([each.finding.kind == "better" for each in result]))


def _is_false(found: tr.Difference, means: Floats) -> bool:
    true = means[int(found.recommender)] - means[int(found.baseline)]
    finding = found.finding
    if finding.kind == "better":
        limited = "not by more" in finding.words and true <= -MARGIN
        return limited or not (true > 1e-12 if finding.winner == found.recommender else true < -1e-12)
    lost = {"equivalent": abs(true) >= MARGIN, "not worse": true <= -MARGIN}
    return bool(lost.get(finding.kind, False))


RUNS = ((3, 3), (5, 5), (10, 10), (3, 10), (3, 1), (2, 2))
SPREADS = (0.0, 0.01, 0.03)
"""Standard deviations of a run's mean."""


def seed_cells(quick: bool) -> Iterator[tuple[Cell, float]]:
    for runs in RUNS:
        for spread in SPREADS:
            if not quick or (runs == (3, 3) and spread > 0):
                yield Cell(f"spread of runs {spread:g}", 0, 500, "{} and {} runs".format(*runs)), 1.0


def covered(cell: Cell, rng: np.random.Generator) -> tuple[bool, bool]:
    """Return whether the interval misses 0, and that of the users alone; both recommenders have the same mean."""
    numbers = [int(word) for word in cell.how.split() if word.isdigit()]
    spread = float(cell.law.split()[-1])
    users = 0.3 + 0.2 * rng.choice([-1, 1], size=cell.users)
    runs = {}
    for name, count in zip("AB", numbers, strict=True):
        # a single run stands for a recommender without randomness
        moved = np.clip(spread * (count > 1) * rng.standard_normal(count), -0.09, 0.09)
        hits = rng.random((count, cell.users)) < users + moved[:, None]
        runs[name] = [tr.Ranks.from_ranks(np.where(own, 1, 500), n=N) for own in hits]
    [found] = tr.compare(runs, "recall@10")
    alone = found.outcome.users if isinstance(found.outcome, RunsOutcome) else found.outcome
    return _misses(found.confidence_interval()), _misses(alone.confidence_interval(LEVEL))


def _misses(interval: tuple[float, float]) -> bool:
    return interval[0] > 1e-12 or interval[1] < -1e-12


def _centred(values: Floats) -> Floats:
    gaps = values - values.mean()
    return gaps / max(1.0, np.abs(gaps).max())


X_Y = (embedded().ranks["X"], embedded().ranks["Y"])
RACES: dict[str, Callable[[np.random.Generator], Floats]] = {
    "MovieLens X - Y, centred": lambda rng: _centred(tr.values(X_Y[0], "ndcg@10") - tr.values(X_Y[1], "ndcg@10")),
    "1 % of users lose all": lambda rng: np.where(np.arange(5_000) < 50, -0.99, 0.01),
    "0.1 % of users lose all": lambda rng: np.where(np.arange(5_000) < 5, -0.999, 0.001),
    "normal": lambda rng: _centred(rng.normal(0, 0.2, size=5_000)),
}


def race_cells(quick: bool) -> Iterator[tuple[Cell, float]]:
    for law in RACES:
        for how in ("these users", "new users"):
            if not quick or law == "1 % of users lose all":
                yield Cell(law, 2, 5_000, how), 1.0


def wrong_race(cell: Cell, rng: np.random.Generator) -> tuple[bool, bool]:
    """Return whether bets ever find a difference, and whether t-tests after every tenth user do."""
    law = RACES[cell.law](rng)
    drawn = rng.permutation(law) if cell.how == "these users" else rng.choice(law, law.size)
    count = np.arange(1, drawn.size + 1)
    means = np.cumsum(drawn) / count
    errors = np.sqrt(np.maximum(np.cumsum(drawn**2) / count - means**2, 1e-18) / count)
    by_t = (np.abs(means / errors)[99::10] > 1.96).any()
    found = AnytimeOutcome(drawn, 1.0, law.size if cell.how == "these users" else None)
    return found.p_value <= 1 - LEVEL, bool(by_t)


def real_races(data: Path, repetitions: int) -> Iterator[list[Any]]:
    """Yield after how many users races of real recommenders end, and what a fixed study needs."""
    split = tr.read_split(data)
    train = split.train
    models = {
        "iALS": tr.IALS(factors=64, rng=0).fit(train),
        "iALS, another seed": tr.IALS(factors=64, rng=1).fit(train),
        "ItemKNN": tr.ItemKNN().fit(train),
        "EASE": tr.EASE().fit(train),
        "Popularity": tr.Popularity().fit(train),
    }
    ranks = tr.rank(models, split)
    for one, other in combinations(models, 2):
        pair = {one: models[one], other: models[other]}
        [full] = tr.compare({name: ranks[name] for name in pair}, "ndcg@10")
        truth = one if full.difference < 0 else other
        for margin in (None, 0.01):
            found = [tr.race(pair, split, "ndcg@10", margin=margin, rng=seed) for seed in range(repetitions)]
            wrong = sum(_is_wrong(each.difference, full.difference, truth, margin) for each in found)
            users = np.mean([each.users for each in found])
            # two-sided at 5 %, a power of 90 %, drawn without replacement from all users
            needed = full.instances_needed(level=0.975, power=0.9)
            needed = needed / (1 + needed / full.n)
            yield [f"{one} - {other}", margin, full.n, -full.difference, users, needed, wrong, repetitions]


def _is_wrong(found: tr.Difference, difference: float, truth: str, margin: float | None) -> bool:
    finding = found.finding
    return (finding.winner not in (None, truth)) or (finding.kind == "equivalent" and abs(difference) >= (margin or 0))


def real_seeds(data: Path, seeds: int = 10) -> Iterator[list[Any]]:
    """Yield how often iALS is told apart from itself, 3 seeds against 3 others, and the parts of the variance."""
    split = tr.read_split(data)
    runs = {
        factors: [tr.rank(tr.IALS(factors=factors, rng=seed).fit(split.train), split) for seed in range(seeds)]
        for factors in (32, 64)
    }
    rng = np.random.default_rng(0)
    for factors, own in runs.items():
        found, alone, times = 0, 0, 200
        for _ in range(times):
            places = rng.permutation(seeds)
            [each] = tr.compare({"A": [own[at] for at in places[:3]], "B": [own[at] for at in places[3:6]]}, "ndcg@10")
            users = each.outcome.users if isinstance(each.outcome, RunsOutcome) else each.outcome
            found, alone = found + (each.finding.kind == "better"), alone + (users.p_value <= 1 - LEVEL)
        means = [tr.values(run, "ndcg@10").mean() for run in own]
        yield [
            f"iALS({factors}) against itself",
            float(np.mean(means)),
            float(np.std(means, ddof=1)),
            found,
            alone,
            times,
        ]
    [each] = tr.compare({"iALS(32)": runs[32], "iALS(64)": runs[64]}, "ndcg@10")
    yield ["iALS(64) - iALS(32)", each.difference, each.standard_error, each.user_error, each.run_error, each.verdict]
    for row in tr.plan({"iALS(32)": runs[32], "iALS(64)": runs[64]}, "ndcg@10").designs:
        yield [row.design, row.difference, row.users, row.repetitions, row.probability, ""]


TASKS: dict[str, tuple[Callable[..., Iterator[tuple[Cell, float]]], Callable[..., tuple[Any, Any]], str, int]] = {
    "systems": (system_cells, false_claims, "share of pairs told apart", 1_000),
    "seeds": (seed_cells, covered, "missed by users alone", 1_000),
    "race": (race_cells, wrong_race, "found by repeated t-tests", 1_000),
}


def repeated(cell: Cell, task: str, start: int, stop: int) -> Floats:
    """Return for each repetition whether it went wrong, and what is beside that."""
    rngs = (np.random.default_rng([zlib.crc32(repr(cell).encode()), at]) for at in range(start, stop))
    return np.array([TASKS[task][1](cell, rng) for rng in rngs], dtype=np.float64)


class Results:
    """What has been counted so far in each cell: repetitions, how many were wrong, the sum of what is beside that."""

    def __init__(self, task: str, repetitions: int, quick: bool) -> None:
        self.task, self.quick = task, quick
        self.wanted = {cell: max(int(repetitions * part), 20) for cell, part in TASKS[task][0](quick)}
        self.counts = {cell: np.zeros(3) for cell in self.wanted}
        self.path = RESULTS / f"many_{task if task != 'race' else 'races'}.csv"

    def read(self) -> None:
        with self.path.open(newline="") as file:
            for law, count, users, how, *found in list(csv.reader(file))[1:]:
                done, wrong, beside = map(float, found)
                cell = Cell(law, int(count), int(users), how)
                if cell in self.counts:
                    self.counts[cell] = np.array([done, wrong, beside * done])

    def rows(self) -> list[list[Any]]:
        """Return a row for each cell that was tried."""
        return [
            [cell.law, cell.count, cell.users, cell.how, int(done), int(wrong), round(beside / done, 4)]
            for cell, (done, wrong, beside) in self.counts.items()
            if done
        ]

    def run(self, until: float) -> None:
        """Try the cells in turn, a twentieth of their repetitions at a time."""
        while time.monotonic() < until:
            cell = min(self.counts, key=lambda each: self.counts[each][0] / self.wanted[each])
            done, wanted = int(self.counts[cell][0]), self.wanted[cell]
            if done >= wanted:
                return
            found = repeated(cell, self.task, done, min(done + max(wanted // 20, 1), wanted))
            self.counts[cell] += len(found), *found.sum(axis=0)
            print(cell, *self.counts[cell], sep="\t", flush=True)
            if not self.quick:
                header = ["law", "recommenders", "users", "how", "repetitions", "wrong", TASKS[self.task][2]]
                save(self.path.name, header, self.rows())


def failures(rows: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    return [row for row in rows if stats.binom.sf(row[5] - 1, row[4], FALSE + 0.01) < FAILED]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--minutes", type=float, default=math.inf, help="when to stop")
    parser.add_argument("--quick", action="store_true", help="a few cells; results are not kept")
    parser.add_argument("--fresh", action="store_true", help="don't go on from earlier results")
    parser.add_argument("--data", type=Path, help="folder of MovieLens, for races of real recommenders")
    parser.add_argument("--races", type=int, default=20, help="races of each pair of real recommenders")
    chosen = parser.parse_args()
    repetitions = chosen.repetitions or (40 if chosen.quick else TASKS[chosen.task][3])
    results = Results(chosen.task, repetitions, chosen.quick)
    if not (chosen.quick or chosen.fresh):
        results.read()
    results.run(time.monotonic() + 60 * chosen.minutes)
    rows = results.rows()
    if chosen.task == "race" and chosen.data is not None:
        columns = ["pair", "margin", "users", "difference", "users until decided", "fixed study", "wrong", "races"]
        real = []
        for row in real_races(chosen.data, chosen.races):
            real.append(row)
            print(*row, sep="\t", flush=True)
        save("real_races.csv", columns, real)
    if chosen.task == "seeds" and chosen.data is not None:
        for row in real_seeds(chosen.data):
            print(*row, sep="\t", flush=True)
    for failed in failures(rows):
        print("FAILED:", *failed, file=sys.stderr)
    sys.exit(bool(failures(rows)))


if __name__ == "__main__":
    main()
