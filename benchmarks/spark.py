"""Exact ranks on Spark: throughput against the local engine, what users, item blocks and tasks cost, and growth.

Clusters of one and two executors on this machine, with one core each. Dataframes are read from Parquet, so the figures
include reading and joining. CPU time is that of this process and of all below it: the driver, the executors and their
Python workers. The best of several runs counts; costs and exponents are of CPU time, which a busy machine leaves alone.

    python benchmarks/spark.py throughput overheads growth    # measure, a few minutes each -> results/spark.csv
    python benchmarks/spark.py report                         # what follows from the measurements

What is in the results already is not measured again: remove the file, or some of its rows, to do so.
"""

import argparse
import csv
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import truerank as tr

SOURCE = Path(__file__).resolve().parent.parent / "src"
RESULTS = Path(__file__).resolve().parent / "results" / "spark.csv"
FAR = (10**8, 10**7, 64)  # users, items and factors of the estimate
USERS_PER_TASK = 10_000
SAMPLE = 10**5
PARTS = ("throughput", "overheads", "growth")


class Case(NamedTuple):
    """Something to measure: data of some shape, and where and how they are ranked."""

    part: str
    users: int
    items: int
    factors: int = 64
    held: int = 1
    engine: str = "spark"
    executors: int = 1
    """Of Spark, with one core each; threads of the local engine."""
    partitions: int = 2
    blocks: int = 0
    """Item blocks; 0: as many as the default size makes."""

    @property
    def work(self) -> float:
        """Multiply-adds."""
        return float(self.users) * self.items * self.factors

    @property
    def data(self) -> tuple[int, int, int, int]:
        return self.users, self.items, self.factors, self.held


class Cost(NamedTuple):
    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} s ({self.cpu:.2f} s CPU)"


BIG = Case("throughput", 60_000, 200_000)
TINY = Case("overheads", 2_000, 1_000, 8)
BASE = Case("growth", 20_000, 200_000)
GROWN = [BASE._replace(**{field: 4 * getattr(BASE, field)}) for field in ("users", "items", "factors")]
TASKS = [TINY._replace(partitions=n) for n in (2, 32, 64)]
BLOCKS = [Case("overheads", 4_000, 64_000, partitions=1, blocks=n) for n in (1, 16, 64)]
MANY_USERS = [Case("overheads", n, 100) for n in (50_000, 200_000)]
CASES = [
    *(BIG._replace(engine=engine, executors=n) for n in (1, 2) for engine in ("local", "spark")),
    BIG._replace(users=BIG.users // 2, held=10),
    *TASKS, *BLOCKS, *MANY_USERS,
    BASE, *GROWN,
]  # fmt: skip
TRAINING, WARM_UP = 20, 3


def write_data(case: Case, folder: Path) -> None:
    """Write random factors, training and held-out pairs as Parquet."""
    rng = np.random.default_rng(0)
    for name, size in (("users", case.users), ("items", case.items)):
        rows = rng.standard_normal((size, case.factors), dtype=np.float32)
        bounds = np.arange(size + 1, dtype=np.int32) * case.factors
        features = pa.ListArray.from_arrays(bounds, rows.ravel())
        pq.write_table(pa.table({"id": np.arange(size), "features": features}), folder / f"{name}.parquet")
    for name, size in (("test", case.held), ("train", TRAINING)):
        # distinct items of each user: steps of a random size from a random start
        first, step = (rng.integers(low, case.items // 50, case.users)[:, None] for low in (0, 1))
        items = (first + step * np.arange(size)) % case.items
        pairs = {"user": np.repeat(np.arange(case.users), size), "item": items.ravel()}
        pq.write_table(pa.table(pairs), folder / f"{name}.parquet")


def local_ranks(case: Case, folder: Path) -> Callable[[], object]:
    """Return a function that ranks the same data by the local engine, from arrays."""
    rows = [pq.read_table(folder / f"{name}.parquet") for name in ("users", "items")]
    factors = [np.array(table["features"].combine_chunks().values).reshape(len(table), -1) for table in rows]
    lists = []
    for name in ("train", "test"):
        pairs = pq.read_table(folder / f"{name}.parquet")
        user, item = (pairs[column].to_numpy() for column in ("user", "item"))
        lists.append(np.split(item, np.searchsorted(user, np.arange(1, case.users))))
    train, test = (tr.Interactions.of(own, "lists", n_items=case.items) for own in lists)
    split = tr.Split(train, test)
    return lambda: tr.evaluate(tr.rank(tr.Factors(*factors), split, threads=case.executors), "recall@10")


def spark_ranks(spark: Any, case: Case, folder: Path) -> Callable[[], object]:
    """Return a function that ranks on Spark, from Parquet to one estimate; the items are already on the executors."""
    frames = {name: spark.read.parquet(str(folder / f"{name}.parquet")) for name in ("users", "items", "train", "test")}
    ranks = tr.spark.rank(
        (frames["users"], frames["items"]),
        train=frames["train"],
        test=frames["test"],
        partitions=case.partitions,
        items_per_block=-(-case.items // case.blocks) if case.blocks else None,
    )
    return lambda: tr.evaluate(ranks, "recall@10")


def session(executors: int) -> Any:
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "OPENBLAS_NUM_THREADS": "1"}
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executorEnv.PYTHONPATH": str(SOURCE),
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    return SparkSession.builder.master(f"local-cluster[{executors},1,1024]").config(map=settings).getOrCreate()


def cpu_time() -> float:
    """Return the CPU time of this process, of all below it, and of those that have ended."""
    parents, used = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        pid = int(name.split()[0])
        parents[pid], used[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    ours, before = {os.getpid()}, 0
    while len(ours) > before:
        before = len(ours)
        ours |= {pid for pid, parent in parents.items() if parent in ours}
    return sum(used[pid] for pid in ours) / os.sysconf("SC_CLK_TCK")


def best(run: Callable[[], object], repeats: int) -> Cost:
    """Return the shortest times."""
    costs = []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), cpu_time()
        run()
        costs.append(Cost(time.perf_counter() - wall, cpu_time() - cpu))
    return Cost(*(min(times) for times in zip(*costs, strict=True)))


class Bench:
    """Sessions that start when they are needed, and data that are written once."""

    def __init__(self, folder: Path, repeats: int) -> None:
        self.folder, self.repeats, self.spark, self.executors = folder, repeats, None, 0

    def measure(self, case: Case) -> Cost:
        run = local_ranks(case, self.data(case)) if case.engine == "local" else self.on_spark(case)
        return best(run, self.repeats)

    def on_spark(self, case: Case) -> Callable[[], object]:
        if self.executors != case.executors:
            self.stop()
            self.spark, self.executors = session(case.executors), case.executors
            for _ in range(WARM_UP):  # Python workers start, and the JVM compiles
                spark_ranks(self.spark, TINY, self.data(TINY))()
        return spark_ranks(self.spark, case, self.data(case))

    def data(self, case: Case) -> Path:
        own = self.folder / "-".join(map(str, case.data))
        if not own.exists():
            own.mkdir()
            write_data(case, own)
        return own

    def stop(self) -> None:
        if self.spark is not None:
            self.spark.stop()


def measure(parts: list[str], repeats: int) -> None:
    """Measure the cases of some parts that are not among the results yet; each is saved at once."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), repeats)
        for case in (case for case in CASES if case.part in parts):
            if case in saved():
                continue
            load = os.getloadavg()[0]
            cost = bench.measure(case)
            print(f"{case}: {cost}, load before {load:.1f}", flush=True)
            save(saved() | {case: cost})
        bench.stop()


def save(costs: dict[Case, Cost]) -> None:
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*Case._fields, *Cost._fields))
        writer.writerows((*case, *(f"{value:.3f}" for value in cost)) for case, cost in costs.items())


def saved() -> dict[Case, Cost]:
    """Return what was measured so far."""
    if not RESULTS.exists():
        return {}
    with RESULTS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = [name for name in Case._fields if name not in ("part", "engine")]
    return {
        Case(part=row["part"], engine=row["engine"], **{name: int(row[name]) for name in numbers}): Cost(
            float(row["wall"]), float(row["cpu"])
        )
        for row in rows
    }


def slope(cases: Iterable[Case], costs: dict[Case, Cost], size: Callable[[Case], float]) -> float:
    """Return the CPU time of one more by least squares."""
    chosen = list(cases)
    return float(np.polyfit([size(case) for case in chosen], [costs[case].cpu for case in chosen], 1)[0])


class Constants(NamedTuple):
    """CPU seconds."""

    use: float
    """Of a use of the ranks of few users and items."""
    task: float
    block: float
    """Of one more block of items in a task with 4,000 held-out items."""
    user: float
    multiply_add: float

    @classmethod
    def of(cls, costs: dict[Case, Cost]) -> "Constants":
        return cls(
            costs[TASKS[0]].cpu,
            slope(TASKS, costs, lambda case: case.partitions),
            slope(BLOCKS, costs, lambda case: case.blocks),
            slope(MANY_USERS, costs, lambda case: case.users),
            slope([BASE, GROWN[1]], costs, lambda case: case.work),
        )


def report(costs: dict[Case, Cost]) -> None:
    """Print what follows from the measurements."""
    constants = Constants.of(costs)
    print_throughput(costs)
    print_constants(constants)
    print_growth(costs, constants.use)
    print_estimate(constants, costs)


def print_throughput(costs: dict[Case, Cost]) -> None:
    for executors in (1, 2):
        local, spark = (costs[BIG._replace(engine=engine, executors=executors)] for engine in ("local", "spark"))
        label = f"{BIG.users:,} users x {BIG.items:,} items x {BIG.factors}, {executors} executor(s) or thread(s)"
        ratio = f"{spark.wall / local.wall:.2f} times ({spark.cpu / local.cpu:.2f})"
        speed = f"{BIG.work / spark.cpu / 1e9:.0f} and {BIG.work / local.cpu / 1e9:.0f} G multiply-adds per CPU second"
        print(f"- {label}: Spark {spark}, local engine {local}: {ratio}; {speed}.")


def print_constants(constants: Constants) -> None:
    task, block, user = 1e3 * constants.task, 1e3 * constants.block, 1e6 * constants.user
    print(
        f"- CPU time: a use of the ranks {constants.use:.1f} s, a task {task:.0f} ms, an item block {block:.0f} ms in a"
    )
    print(
        f"  task with {BLOCKS[0].users:,} held-out items, a user {user:.0f} us from Parquet to the estimate; ", end=""
    )
    print(f"{1e-9 / constants.multiply_add:.0f} G multiply-adds per CPU second.")


def print_growth(costs: dict[Case, Cost], use: float) -> None:
    """Print how CPU time grows with each size, without the fixed cost of a use and with it."""
    one = costs[BASE]
    measured = [each for each in zip(("users", "items", "factors"), GROWN, strict=True) if each[1] in costs]
    for field, case in measured:
        other = costs[case]
        net, whole = (math.log((other.cpu - fixed) / (one.cpu - fixed), 4) for fixed in (use, 0.0))
        sizes = f"{getattr(BASE, field):,} -> {getattr(case, field):,} {field}"
        print(f"- {sizes}: {one} -> {other}; exponent {net:.2f} without the cost of a use, {whole:.2f} with it.")


def print_estimate(constants: Constants, costs: dict[Case, Cost]) -> None:
    """Print what the largest shape would cost, from the measured constants."""
    users, items, factors = FAR
    counting = float(users) * items * factors * constants.multiply_add / 3600
    rest = (users * constants.user + users / USERS_PER_TASK * constants.task) / 3600
    ten = next(case for case in costs if case.held == 10)
    more = (costs[ten].cpu - constants.use) / (ten.work * constants.multiply_add)
    print(
        f"- An estimate for {users:.0e} users x {items:.0e} items x {factors}: {counting:,.0f} core-hours of counting "
        f"({more:.2f} times as many with ten held-out items per user) and {rest:.1f} of all else, in tasks of "
        f"{USERS_PER_TASK:,} users."
    )
    sampled, error = (counting + rest) * SAMPLE / users, math.sqrt(0.1 * 0.9 / SAMPLE)
    print(f"- {SAMPLE:,} random users: {sampled:.2f} core-hours, standard error {error:.4f} for a Recall@10 of 0.1.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "report"])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if parts := [part for part in options.parts if part != "report"]:
        measure(parts, options.repeats)
    if "report" in options.parts:
        report(saved())


if __name__ == "__main__":
    main()
