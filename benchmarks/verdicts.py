"""How often verdicts are false, and intervals miss the truth, on users drawn from known laws of the ranks.

Every cell has a pair of laws (`rank_laws.py`), a way to rank and a number of users, who are drawn anew in each
repetition; the truth is the expectation under the law. `tr.compare` is asked for the verdict, the interval, and whether
the worse recommender passes as not worse by a margin just below its true loss; `tr.evaluate` for the interval of each
law. What must hold in every cell: false "better" and false "not worse" at most 5 %, and intervals that cover at least
94 %. A cell fails if that can be ruled out at the 0.1 % level; if it is near, four times as many repetitions are made.

    python benchmarks/verdicts.py [--repetitions 1000] [--processes 2] [--cell TEXT ...] [--fresh] [--docs]
    python benchmarks/verdicts.py --quick

Cells that are in the table of results, benchmarks/results/verdicts.csv, are not repeated, so an interrupted run goes on
where it ended; --fresh begins anew. --cell chooses those whose name contains all of the texts. --docs writes the table
of docs/results/intervals.md. The exit code is 1 if a cell fails.
"""

import argparse
import csv
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache, partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats
from tqdm import tqdm

import truerank as tr
from rank_laws import Law, N, Pair, all_pairs
from truerank.core.checks import Ints
from truerank.estimators.corrected import recommended
from truerank.evaluation.differences import Difference

RESULTS = Path(__file__).parent / "results" / "verdicts.csv"
PAGE = Path(__file__).parents[1] / "docs" / "results" / "intervals.md"
LEVEL, FALSE, COVERED = 0.95, 0.05, 0.94
NEAR, FAILED = 0.02, 0.001
"""Chances of a count as bad as this one, if the limit holds: to repeat more often, and to fail."""
MORE = 4
JUST_BELOW = 1 - 1e-6
"""The margin as a part of the loss, which is thus beyond it."""
AT_ONCE = 200_000
"""Instances that are compared in one call, to bound memory."""


@dataclass(frozen=True)
class Setting:
    """A way to rank.

    Attributes
    ----------
    name : str
    design : SamplingDesign or None
        None: ranks are exact.
    sizes : tuple of int
        Numbers of users.
    estimator : str
        What `tr.evaluate` needs for intervals of the exact metric; `tr.compare` is asked for plain ones, which show the
        difference of sampled values and decide about the exact one.
    sessions : int
        The most instances of a user, who has any number from 1 on; the item is at the same place in all of them.
    """

    name: str
    design: tr.SamplingDesign | None
    sizes: tuple[int, ...]
    estimator: str = ""
    sessions: int = 1

    def metric(self, asked: str) -> str:
        """Return the metric of the trial: head-first ranks have only those that are cut."""
        return "ndcg@10" if asked == "ap" and isinstance(self.design, tr.HeadFirst) else asked


_CORRECTED = "~bv(0.1)"
SETTINGS = (
    Setting("exact", None, (5, 30, 100, 1_000, 5_000)),
    Setting("exact, 1 to 5 sessions", None, (5, 30, 100, 1_000), sessions=5),
    Setting("head-first", tr.HeadFirst(10), (30, 1_000)),
    Setting("uniform(20)", tr.UniformSampling(20), (5, 100, 1_000), _CORRECTED),
    Setting("uniform(100)", tr.UniformSampling(100), (5, 30, 100, 1_000), _CORRECTED),
    Setting("uniform(1000)", tr.UniformSampling(1_000), (5, 30, 100, 1_000, 5_000), _CORRECTED),
    Setting("uniform(1000), 1 to 5 sessions", tr.UniformSampling(1_000), (5, 100), _CORRECTED, sessions=5),
    Setting("inverse(2)", tr.InverseSampling(2), (5, 30, 300, 5_000)),
    Setting("inverse(2), 1 to 5 sessions", tr.InverseSampling(2), (5, 100), sessions=5),
    Setting("inverse(2, 100)", tr.InverseSampling(2, most=100), (5, 100, 300)),
)
# Sampled ranks take long. So each pair is tried with one of the numbers of users, in turn; those that are made to
# deceive samples with each, and only two of these with the most users.
DECEIVING = ("all at 15", "half at 11 to 20")
ALIKE = "alike"
MANY = 5_000


@dataclass(frozen=True)
class Cell:
    """What is tried: a pair of laws if verdicts are, or one law, A or B of the pair, if intervals of means are."""

    setting: str
    users: int
    what: str
    pair: str

    def __str__(self) -> str:
        return f"{self.setting}, {self.users} users, {self.what}, {self.pair}"


@dataclass(frozen=True)
class Counts:
    """How many repetitions came out how; only `covered` is about the intervals of means.

    Attributes
    ----------
    repetitions : int
    covered : int
        Intervals that hold the truth.
    false_better : int
        Verdicts for one that is not better; for any, if what is seen can't tell.
    a_passes, b_passes : int
        False "not worse" of either: the margin is passed although the loss is a little larger, or no gain passes a
        margin of 0.
    decided : int
        Verdicts for the better one.
    """

    repetitions: int = 0
    covered: int = 0
    false_better: int = 0
    a_passes: int = 0
    b_passes: int = 0
    decided: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    @property
    def false_not_worse(self) -> int:
        return max(self.a_passes, self.b_passes)

    @property
    def rarity(self) -> float:
        """The chance of counts as bad as the worst of these if each limit held just so."""
        wrong = stats.binom.sf([self.false_better - 1, self.false_not_worse - 1], self.repetitions, FALSE)
        return float(min(*wrong, stats.binom.cdf(self.covered, self.repetitions, COVERED)))


def cells(settings: Sequence[Setting]) -> Iterator[Cell]:
    """Yield all cells; laws that several pairs have are evaluated once, and A mostly is the law of another B."""
    for setting in settings:
        for users in setting.sizes:
            tried: set[bytes] = set()
            for place, pair in enumerate(all_pairs().values()):
                if _is_tried(setting, users, place, pair.name):
                    yield Cell(setting.name, users, "compare", pair.name)
                    laws = {name: law.key for name, law in zip("AB", pair.laws, strict=True)}
                    chosen = [name for name in ("AB" if ALIKE in pair.name else "B") if laws[name] not in tried]
                    yield from (Cell(setting.name, users, f"evaluate {name}", pair.name) for name in chosen)
                    tried |= {laws[name] for name in chosen}


def _is_tried(setting: Setting, users: int, place: int, pair: str) -> bool:
    """Whether a pair, by its place and name, is tried with a number of users."""
    if setting.design is None or any(word in pair for word in DECEIVING):
        return True
    if ALIKE in pair:
        return users < MANY
    turns = [size for size in setting.sizes if size < MANY]
    return users == turns[place % len(turns)]


def measured(cell: Cell, repetitions: int) -> Counts:
    """Return the counts of a cell; if they are near a limit, of more repetitions."""
    setting, pair = by_name()[cell.setting], all_pairs()[cell.pair]
    found = _repeated(cell, setting, pair, 0, repetitions)
    if found.rarity < NEAR:
        found += _repeated(cell, setting, pair, repetitions, MORE * repetitions)
    return found


@cache
def by_name() -> dict[str, Setting]:
    return {setting.name: setting for setting in SETTINGS}


def _repeated(cell: Cell, setting: Setting, pair: Pair, start: int, stop: int) -> Counts:
    """Return the counts of some repetitions; what is random depends on their numbers alone."""
    step = max(1, AT_ONCE * 2 // cell.users // (setting.sessions + 1))
    trial = _compared if cell.what == "compare" else _evaluated
    total = Counts()
    for first in range(start, stop, step):
        rng = np.random.default_rng([zlib.crc32(str(cell).encode()), first])
        total += trial(cell, setting, pair, min(step, stop - first), rng)
    return total


@dataclass(frozen=True, eq=False)
class Users:
    """The instances of all repetitions: whose they are, and to which repetition they belong."""

    ids: Ints
    repetition: Ints

    @classmethod
    def of(cls, users: int, repetitions: int, sessions: int, rng: np.random.Generator) -> "Users":
        ids = np.arange(users * repetitions)
        if sessions > 1:
            ids = np.repeat(ids, rng.integers(1, sessions + 1, ids.size))
        return cls(ids, ids // users)

    def ranks(self, places: Ints, setting: Setting, rng: np.random.Generator) -> tr.Ranks:
        """Return ranks as the setting gives them, from the candidates above and tied of each user."""
        above, tied = places[:, self.ids]
        exact = tr.Ranks(above=above, tied=tied if tied.any() else None, n_candidates=N, ids=self.ids)
        return exact if setting.design is None else setting.design.draw(exact, rng=rng)

    @property
    def groups(self) -> dict[int, str]:
        """The repetition of each user, which is a group of its own."""
        return {int(user): str(number) for user, number in zip(self.ids, self.repetition, strict=True)}

    def apart(self, ranks: dict[str, tr.Ranks]) -> Iterator[dict[str, tr.Ranks]]:
        """Yield the ranks of each repetition."""
        bounds = np.searchsorted(self.repetition, np.arange(self.repetition[-1] + 2))
        for start, stop in pairwise(bounds):
            yield {name: one[start:stop] for name, one in ranks.items()}


def _compared(cell: Cell, setting: Setting, pair: Pair, repetitions: int, rng: np.random.Generator) -> Counts:
    users = Users.of(cell.users, repetitions, setting.sessions, rng)
    places = pair.draw(cell.users * repetitions, rng)
    ranks = {name: users.ranks(own, setting, rng) for name, own in zip("AB", places, strict=True)}
    asked = setting.metric(pair.metric)
    found = differences(ranks, asked, users)
    return judged(found, pair.gain(asked), alike=pair.alike_under == setting.name)


def differences(ranks: dict[str, tr.Ranks], metric: str, users: Users) -> list[Difference]:
    """Return the difference of each repetition, B less A.

    One call compares all repetitions, as groups; but where users are pooled, and not for the estimate alone, each
    repetition is a call of its own.
    """
    compare = partial(tr.compare, metrics=metric, level=LEVEL, adjustment="none")
    if _pools(ranks["A"], metric):
        first = compare(next(users.apart(ranks))).differences[0]
        if not first.bounded:
            return [compare(own).differences[0] for own in users.apart(ranks)]
    return list(compare(ranks, by=users.groups).differences)


def _pools(ranks: tr.Ranks, metric: str) -> bool:
    """Whether estimates of a user depend on other users."""
    return recommended(tr.metric(metric), ranks).pools_instances


def judged(found: Sequence[Difference], gain: float, *, alike: bool) -> Counts:
    """Return what came out how; `gain` is by how much B is better, and `alike` whether samples can't tell it."""
    named = np.array([[each.verdict.startswith(f"{name} is better") for name in "AB"] for each in found])
    better = np.array([gain < 0, gain > 0])
    margin = JUST_BELOW * abs(gain)
    return Counts(
        repetitions=len(found),
        covered=sum(_holds(each.confidence_interval(), gain) for each in found),
        false_better=int(named[:, ~better].any(axis=1).sum() if not alike else named.any(axis=1).sum()),
        a_passes=sum(each.reversed().not_worse(margin) for each in found) if gain >= 0 else 0,
        b_passes=sum(each.not_worse(margin) for each in found) if gain <= 0 else 0,
        decided=int(named[:, better].any(axis=1).sum()),
    )


def _evaluated(cell: Cell, setting: Setting, pair: Pair, repetitions: int, rng: np.random.Generator) -> Counts:
    law: Law = pair.laws["AB".index(cell.what[-1])]
    users = Users.of(cell.users, repetitions, setting.sessions, rng)
    ranks = {"A": users.ranks(law.draw(cell.users * repetitions, rng), setting, rng)}
    asked = setting.metric(pair.metric)
    found = estimates(ranks, asked + setting.estimator, users)
    return Counts(len(found), sum(_holds(each.confidence_interval(LEVEL), law.mean(asked)) for each in found))


def estimates(ranks: dict[str, tr.Ranks], metric: str, users: Users) -> list[tr.Estimate]:
    """Return the estimate of each repetition, as `differences` does."""
    if _pools(ranks["A"], metric):
        first = tr.evaluate(next(users.apart(ranks)), metric).estimates[0]
        if first.exact_range is None:
            return [tr.evaluate(own, metric).estimates[0] for own in users.apart(ranks)]
    return list(tr.evaluate(ranks, metric, by=users.groups).estimates)


def _holds(interval: tuple[float, float], truth: float) -> bool:
    """Whether an interval holds the truth, up to rounding; ends that are not known exclude nothing."""
    low, high = interval
    return not (low > truth + 1e-9 or high < truth - 1e-9)


def run(wanted: Sequence[Cell], done: dict[Cell, Counts], repetitions: int, processes: int, path: Path) -> None:
    """Measure the cells that are not done, and add each to the file as soon as it is."""
    left = [cell for cell in wanted if cell not in done]
    with path.open("a", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        if not file.tell():
            rows.writerow([each.name for kind in (Cell, Counts) for each in fields(kind)])
        for cell, found in tqdm(_work(left, repetitions, processes), total=len(left), disable=None):
            done[cell] = found
            rows.writerow([*astuple(cell), *astuple(found)])
            file.flush()
            if found.rarity < FAILED:
                tqdm.write(failure(cell, found), file=sys.stderr)


def _work(left: Sequence[Cell], repetitions: int, processes: int) -> Iterator[tuple[Cell, Counts]]:
    task = partial(_measured, repetitions=repetitions)
    if processes == 1:
        yield from map(task, left)
        return
    all_pairs()  # before processes are forked, so that programmes are solved once
    with get_context("fork").Pool(processes) as pool:
        yield from pool.imap_unordered(task, left)


def _measured(cell: Cell, repetitions: int) -> tuple[Cell, Counts]:
    return cell, measured(cell, repetitions)


def read(path: Path) -> dict[Cell, Counts]:
    """Return the cells of a file, if there is one."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        Cell(row["setting"], int(row["users"]), row["what"], row["pair"]): Counts(
            *(int(row[each.name]) for each in fields(Counts))
        )
        for row in rows
    }


def failure(cell: Cell, found: Counts) -> str:
    shares = [f"covered {found.covered / found.repetitions:.1%}"]
    if cell.what == "compare":
        wrong = {"false better": found.false_better, "false not worse": found.false_not_worse}
        shares += [f"{name} {count / found.repetitions:.1%}" for name, count in wrong.items()]
    return f"FAILED: {cell}: {', '.join(shares)} of {found.repetitions:,}"


def table(done: dict[Cell, Counts]) -> list[str]:
    """Return the lines of the table: a row per setting and number of users, with the worst of all pairs."""
    rows = [
        "| ranks | users | pairs | false better | false not worse | difference covered | mean covered | decided |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for setting in SETTINGS:
        for users in setting.sizes:
            own = {cell: found for cell, found in done.items() if (cell.setting, cell.users) == (setting.name, users)}
            if own:
                rows.append(f"| {setting.name} | {users:,} | {' | '.join(_worst(setting, own))} |")
    return rows


def _worst(setting: Setting, own: dict[Cell, Counts]) -> list[str]:
    pairs = {cell: found for cell, found in own.items() if cell.what == "compare"}
    means = [found for cell, found in own.items() if cell.what != "compare"]
    differ = [
        found.decided / found.repetitions
        for cell, found in pairs.items()
        if all_pairs()[cell.pair].gain(setting.metric(all_pairs()[cell.pair].metric)) != 0
    ]
    return [
        str(len(pairs)),
        _extreme([(found.false_better, found.repetitions) for found in pairs.values()], max),
        _extreme([(found.false_not_worse, found.repetitions) for found in pairs.values()], max),
        _extreme([(found.covered, found.repetitions) for found in pairs.values()], min),
        _extreme([(found.covered, found.repetitions) for found in means], min),
        f"{np.mean(differ):.0%}" if differ else "",
    ]


def _extreme(counts: Iterable[tuple[int, int]], end: Callable[..., tuple[int, int]]) -> str:
    """Return the largest or the least share with its standard error, in percent."""
    count, of = end(counts, key=lambda each: each[0] / each[1], default=(0, 0))
    if not of:
        return ""
    share = count / of
    return f"{100 * share:.1f} ± {100 * (share * (1 - share) / of) ** 0.5:.1f} %"


def write_table(page: Path, lines: Sequence[str]) -> None:
    """Put the table in place of the one with the same header."""
    text = page.read_text(encoding="utf-8").splitlines()
    start = text.index(lines[0])
    stop = next((at for at in range(start, len(text)) if not text[at].startswith("|")), len(text))
    page.write_text("\n".join([*text[:start], *lines, *text[stop:]]) + "\n", encoding="utf-8")


def quick(settings: Sequence[Setting]) -> list[Cell]:
    """Return a few cells that take less than a minute."""
    pairs = ("2.0% of the users lose all", "the same ranks", "ties of 20 against a power law")
    few = {
        (setting.name, next(size for size in setting.sizes if size >= 30))
        for setting in settings
        if not isinstance(setting.design, tr.InverseSampling)
    }
    return [cell for cell in cells(settings) if cell.pair in pairs and (cell.setting, cell.users) in few]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, help="1,000, or 100 for --quick")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cell", nargs="*", default=[], metavar="TEXT", help="only cells whose name has all of these")
    parser.add_argument("--quick", action="store_true", help="a few cells, in less than a minute; results are not kept")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--docs", action="store_true", help="write the table into the documentation")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    chosen = quick(SETTINGS) if given.quick else cells(SETTINGS)
    wanted = [cell for cell in chosen if all(text in str(cell) for text in given.cell)]
    path = Path(os.devnull) if given.quick else given.results
    if given.fresh:
        path.unlink(missing_ok=True)
    done = {} if given.quick else read(path)
    run(wanted, done, given.repetitions or (100 if given.quick else 1_000), given.processes, path)
    shown = {cell: found for cell, found in done.items() if cell in set(wanted)}
    lines = table(shown)
    print("\n".join(lines))
    failed = [failure(cell, found) for cell, found in shown.items() if found.rarity < FAILED]
    print("\n".join([f"{len(failed)} of {len(shown)} cells fail", *failed]))
    if given.docs:
        write_table(PAGE, lines)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
