"""Exact ranks on Spark: throughput against the local engine, what users, item blocks and tasks cost, and growth.

Clusters of one and two executors on this machine, with one core each. Dataframes are read from Parquet, so the figures
include reading and joining. CPU time is that of this process and of all below it: the driver, the executors and their
Python workers. The best of several runs counts; costs and exponents are of CPU time, which a busy machine leaves alone.

    python benchmarks/spark.py [--quick] [--repeats 2]
"""

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import truerank as tr

SOURCE = Path(__file__).resolve().parent.parent / "src"
FAR = (10**8, 10**7, 64)  # users, items and factors of the estimate
SAMPLE = 10**5


class Shape(NamedTuple):
    users: int
    items: int
    factors: int = 64
    train: int = 20

    @property
    def work(self) -> float:
        """Multiply-adds."""
        return float(self.users) * self.items * self.factors


BIG, SMALL = Shape(20_000, 100_000), Shape(4_000, 20_000)


def write_data(shape: Shape, folder: Path) -> None:
    """Write random factors, training and held-out pairs as Parquet."""
    rng = np.random.default_rng(0)
    for name, size in (("users", shape.users), ("items", shape.items)):
        rows = rng.standard_normal((size, shape.factors), dtype=np.float32)
        bounds = np.arange(size + 1, dtype=np.int32) * shape.factors
        features = pa.ListArray.from_arrays(bounds, rows.ravel())
        pq.write_table(pa.table({"id": np.arange(size), "features": features}), folder / f"{name}.parquet")
    users = np.arange(shape.users)
    held = rng.integers(0, shape.items, shape.users)
    seen = rng.integers(0, shape.items, (shape.users, shape.train))
    for name, pairs in (("test", (users, held)), ("train", (np.repeat(users, shape.train), seen.ravel()))):
        pq.write_table(pa.table({"user": pairs[0], "item": pairs[1]}), folder / f"{name}.parquet")


def local_ranks(folder: Path, threads: int) -> Callable[[], object]:
    """Return a function that ranks the same data by the local engine, from arrays."""
    rows = [pq.read_table(folder / f"{name}.parquet") for name in ("users", "items")]
    factors = [np.array(table["features"].combine_chunks().values).reshape(len(table), -1) for table in rows]
    lists = []
    for name in ("train", "test"):
        pairs = pq.read_table(folder / f"{name}.parquet")
        user, item = (pairs[column].to_numpy() for column in ("user", "item"))
        lists.append(np.split(item, np.searchsorted(user, np.arange(1, len(factors[0])))))
    train, test = (tr.Interactions.of(own, "lists", n_items=len(factors[1])) for own in lists)
    split = tr.Split(train, test)
    return lambda: tr.evaluate(tr.rank(tr.Factors(*factors), split, threads=threads), "recall@10")


def spark_ranks(spark: Any, folder: Path, **options: Any) -> Callable[[], object]:
    """Return a function that ranks on Spark, from Parquet to one estimate; the items are already on the executors."""
    frames = {name: spark.read.parquet(str(folder / f"{name}.parquet")) for name in ("users", "items", "train", "test")}
    factors = (frames["users"], frames["items"])
    ranks = tr.spark.rank(factors, train=frames["train"], test=frames["test"], **options)
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


class Cost(NamedTuple):
    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} s ({self.cpu:.2f} s CPU)"


def best(run: Callable[[], object], repeats: int) -> Cost:
    """Return the shortest times, after a run that loads everything."""
    run()
    costs = []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), cpu_time()
        run()
        costs.append(Cost(time.perf_counter() - wall, cpu_time() - cpu))
    return Cost(*(min(times) for times in zip(*costs, strict=True)))


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


def slope(sizes: list[float], times: list[float]) -> float:
    """Return the cost of one more by least squares."""
    return float(np.polyfit(sizes, times, 1)[0])


def exponent(sizes: list[int], times: list[float]) -> float:
    """Return how time grows: as this power of the size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


class Bench:
    """A session, and data by shape."""

    def __init__(self, spark: Any, folder: Path, repeats: int) -> None:
        self.spark, self.folder, self.repeats = spark, folder, repeats

    def data(self, shape: Shape) -> Path:
        own = self.folder / "-".join(map(str, shape))
        if not own.exists():
            own.mkdir()
            write_data(shape, own)
        return own

    def time(self, shape: Shape, **options: Any) -> Cost:
        return best(spark_ranks(self.spark, self.data(shape), **options), self.repeats)

    def local(self, shape: Shape, threads: int) -> Cost:
        return best(local_ranks(self.data(shape), threads), self.repeats)


def print_throughput(bench: Bench, shape: Shape, executors: int) -> float:
    """Compare with the local engine; return its multiply-adds per second of CPU time."""
    local, spark = bench.local(shape, executors), bench.time(shape)
    label = f"{shape.users:,} users x {shape.items:,} items x {shape.factors}"
    print(f"{label}: {executors} executor(s) {spark}, local engine with as many threads {local}: ", end="")
    print(f"{spark.wall / local.wall:.2f} times ({spark.cpu / local.cpu:.2f}); ", end="")
    print(f"{shape.work / local.cpu / 1e9:.1f} G multiply-adds per second of the local engine")
    return shape.work / local.cpu


def print_overheads(bench: Bench, quick: bool) -> tuple[float, float]:
    """Print the CPU time of a task, of an item block and of a user; return those of a user and a task."""

    def each(sizes: list[int], costs: list[Cost]) -> float:
        return slope([float(size) for size in sizes], [cost.cpu for cost in costs])

    tiny, tasks = Shape(2_000, 1_000, 8), [4, 32, 64]
    task = each(tasks, [bench.time(tiny, partitions=n) for n in tasks])
    print(f"a task costs {1e3 * task:.0f} ms")
    shape, blocks = SMALL if quick else Shape(4_000, 64_000), [1, 4, 16]
    costs = [bench.time(shape, items_per_block=-(-shape.items // n), partitions=1) for n in blocks]
    print(f"an item block costs {1e3 * each(blocks, costs):.0f} ms in a task with {shape.users:,} held-out items")
    users = [20_000, 80_000] if quick else [50_000, 200_000]
    user = each(users, [bench.time(Shape(n, 100), partitions=2) for n in users])
    print(f"a user costs {1e6 * user:.0f} us: reading, joining, passing to Python, 100 items, and one metric")
    return user, task


def print_growth(bench: Bench, quick: bool) -> None:
    """Print how CPU time grows with each size."""
    base = Shape(4_000, 20_000) if quick else Shape(10_000, 40_000)
    for field in ("users", "items", "factors"):
        sizes = [getattr(base, field), 4 * getattr(base, field)]
        one, other = (bench.time(base._replace(**{field: size}), partitions=2) for size in sizes)
        power = exponent(sizes, [one.cpu, other.cpu])
        print(f"{sizes[0]:,} -> {sizes[1]:,} {field}: {one} -> {other}, exponent {power:.2f}")


def print_estimate(speed: float, user: float, task: float) -> None:
    """Print what the largest shape would cost, from the measured constants."""
    users, items, factors = FAR
    counting = float(users) * items * factors / speed / 3600
    rest = (users * user + users / 10_000 * task) / 3600
    label = f"{users:.0e} users x {items:.0e} items x {factors}"
    print(f"{label}: {counting:,.0f} core-hours of counting, {rest:,.0f} of all else")
    sampled, error = (counting + rest) * SAMPLE / users, math.sqrt(0.1 * 0.9 / SAMPLE)
    print(f"{SAMPLE:,} random users: {sampled:.2f} core-hours, standard error {error:.4f} for a Recall@10 of 0.1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small shapes")
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    shape, constants = SMALL if options.quick else BIG, {}
    with tempfile.TemporaryDirectory() as folder:
        for executors in (1, 2):
            bench = Bench(session(executors), Path(folder), options.repeats)
            constants[executors] = print_throughput(bench, shape, executors)
            if executors == 1:
                user, task = print_overheads(bench, options.quick)
                print_growth(bench, options.quick)
            bench.spark.stop()
    print_estimate(constants[1], user, task)


if __name__ == "__main__":
    main()
