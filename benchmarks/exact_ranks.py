"""Exact ranks from factors: truerank against the matrix product alone, and against other libraries.

Two shapes, one and two threads. All contenders run in one process, alternating, several times, on the same factors;
the best time of each counts, and only ratios within a table are meaningful. truerank is timed from sparse matrices to
ranks; the objects of the others are built beforehand. Each library's recall and ndcg at 10 are compared with
truerank's: results/exact_ranks.csv. Also: how CPU time grows with each size and with the number of threads
(results/growth.csv), the first call in a fresh process, and peak memory.

With --data, a folder with train and test files: the same ratios for models trained on it, of full ranks, of ranks known
down to a depth and of lists, by CPU time of one thread. They replace those of the same models, processor and loops in
results/below_product.csv. --models names a folder in which trained factors are kept, so that other loops can rank the
same ones; those for AVX2 are compared with a product for AVX2:

    python benchmarks/exact_ranks.py [--quick | --contest | --growth] [--threads 1 2] [--repeats 3]
    python benchmarks/exact_ranks.py --data DIR [--models DIR] [--repeats 3]
    TRUERANK_LOOPS=x86-64-v3 OPENBLAS_CORETYPE=Haswell python benchmarks/exact_ranks.py --data DIR --models DIR
"""

import argparse
import csv
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from exact_peers import PEERS, SAMPLED_PEERS, Data, Evaluation, Means, Peer
from real_ranks import RESULTS, processor, save

DATA = {"ml-1m-leave-last-out": "MovieLens 1M", "gowalla": "Gowalla"}  # what folders hold
BLOCKINGS = ((512, 1024), (512, 10**9), (256, 10**9), (1024, 2048))  # users x items of one product
ENOUGH = 0.3  # seconds for a contender's turn: a faster one runs several times
TOLERANCE = 2e-4  # for means: rounding of scores may swap two neighbours


class Shape(NamedTuple):
    users: int
    items: int
    factors: int
    train: int
    held_out: int

    def __str__(self) -> str:
        sizes = f"{self.users:,} users x {self.items:,} items x {self.factors} factors"
        return f"{sizes}, {self.held_out} held out, {self.train} in training"


SMALL, BIG = Shape(6_040, 3_706, 16, 165, 1), Shape(30_000, 40_000, 64, 50, 10)
MAPPED = Shape(1_000_000, 1_000_000, 16, 20, 1)
GOALS = {SMALL: 1.0, BIG: 0.85}  # times the product
STEPS = (0.25, 0.5, 1, 2, 4)
MIDDLE, QUICK_MIDDLE = Shape(4_096, 16_384, 64, 50, 4), Shape(2_048, 4_096, 32, 20, 4)


class Cost(NamedTuple):
    wall: float
    cpu: float  # of all threads

    def times(self, factor: float) -> "Cost":
        return Cost(self.wall * factor, self.cpu * factor)


def make_data(shape: Shape) -> Data:
    """Return random factors; users lean towards their held-out items, so that a few of these reach the top ten."""
    rng = np.random.default_rng(0)
    users = rng.standard_normal((shape.users, shape.factors), dtype=np.float32)
    items = rng.standard_normal((shape.items, shape.factors), dtype=np.float32)
    # one item from each of `held_out` sections of the catalogue: distinct for each user, and fast to draw
    width = shape.items // shape.held_out
    held = rng.integers(0, width, (shape.users, shape.held_out)) + np.arange(shape.held_out) * width
    for column in held.T:
        users += np.float32(0.7) * items[column]
    train = draw_items(rng, shape)
    clash = np.zeros(train.shape, np.bool_)
    for column in held.T:
        clash |= train == column[:, None]
    n_items = shape.items
    return Data(users, items, to_matrix(train, ~clash, n_items), to_matrix(held, held >= 0, n_items))


def draw_items(rng: np.random.Generator, shape: Shape) -> NDArray[np.int32]:
    """Return distinct ascending training items per user."""
    drawn = rng.integers(0, shape.items - shape.train + 1, (shape.users, shape.train), dtype=np.int32)
    drawn.sort(axis=1)
    drawn += np.arange(shape.train, dtype=np.int32)
    return drawn


def to_matrix(items: NDArray[Any], kept: NDArray[np.bool_], n_items: int) -> sp.csr_matrix:
    indices = items[kept].astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int32)
    return sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(len(items), n_items))


def by_rank(data: Data, threads: int) -> Callable[[], Any]:
    import truerank as tr

    return lambda: tr.rank(tr.Factors(data.users, data.items), train=data.train, test=data.test, threads=threads)


def by_truerank(data: Data, threads: int) -> Evaluation:
    import truerank as tr

    ranks = by_rank(data, threads)

    def run() -> Means:
        table = tr.evaluate(ranks(), ["recall@10", "ndcg@10"])
        return {name: table[name].mean for name in ("recall@10", "ndcg@10")}

    return run


def product(data: Data, threads: int, blocking: tuple[int, int]) -> Callable[[], None]:
    """Return a function that computes every score once, block by block, and keeps none."""
    height, width = blocking[0], min(blocking[1], len(data.items))
    own = threading.local()

    def block(start: int) -> None:
        if not hasattr(own, "scores"):
            own.scores = np.empty(height * width, np.float32)
        rows = data.users[start : start + height]
        for first in range(0, len(data.items), width):
            columns = data.items[first : first + width]
            out = own.scores[: len(rows) * len(columns)].reshape(len(rows), len(columns))
            np.matmul(rows, columns.T, out=out)

    def run() -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(block, range(0, len(data.users), height)))

    return run


def best_costs(runs: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, Cost]:
    """Run all in turn, `repeats` times, quick ones several times per turn; return the best costs of each."""
    best = {name: measure(run) for name, run in runs.items()}  # also fills caches
    turns = {name: int(np.clip(ENOUGH / cost.wall, 1, 20)) for name, cost in best.items()}
    for _ in range(repeats):
        for name, run in runs.items():
            for _ in range(turns[name]):
                best[name] = Cost(*map(min, best[name], measure(run)))
    return best


def measure(run: Callable[[], object]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


class Contest(NamedTuple):
    """Costs for all users, scaled if a library had only some of them, and how its means compare with truerank's."""

    costs: dict[str, Cost]
    users: dict[str, int]
    notes: dict[str, str]

    def rows(self, shape: Shape, threads: int) -> list[list[object]]:
        """Return the costs as rows of a table."""
        found, about = [], measured_here()
        for name, cost in self.costs.items():
            of_users = self.users.get(name, shape.users)
            seconds = [f"{each:.4f}" for each in cost]
            found.append(
                [f"{shape.users} x {shape.items}", threads, name, of_users, *seconds, self.notes.get(name, ""), *about]
            )
        return found


def compare(shape: Shape, threads: int, repeats: int) -> Contest:
    data, column = make_data(shape), (SMALL, BIG).index(shape)
    peers = {name: peer for name, peer in {**PEERS, **SAMPLED_PEERS}.items() if installed(peer)}
    users = {name: min(peer.most[column], shape.users) for name, peer in peers.items()}
    core: dict[str, Callable[[], Any]] = {
        **{product_name(blocking): product(data, threads, blocking) for blocking in BLOCKINGS},
        "truerank.rank": by_rank(data, threads),
        "truerank.rank, evaluate": by_truerank(data, threads),
    }
    runs = {name: peer.prepare(data.head(users[name]), threads) for name, peer in peers.items()}
    with threadpool_limits(1, "blas"):  # not timed: it takes milliseconds if many libraries are loaded
        costs = best_costs({**core, **runs}, repeats)
        for name, cost in best_costs(core, 2 * repeats).items():  # the closest race gets more rounds
            costs[name] = Cost(*map(min, costs[name], cost))
        expected = {name: by_truerank(data.head(users[name]), threads)() for name in peers}
        notes = {name: verdict(runs[name](), expected[name], peer) for name, peer in peers.items()}
    scaled = {name: cost.times(shape.users / users.get(name, shape.users)) for name, cost in costs.items()}
    return Contest(scaled, users, notes)


def installed(peer: Peer) -> bool:
    return importlib.util.find_spec(peer.module) is not None


def product_name(blocking: tuple[int, int]) -> str:
    height, width = blocking
    return f"product {height} x {'all' if width == 10**9 else width}"


def verdict(found: Means, expected: Means, peer: Peer) -> str:
    """Return whether the library's means agree with truerank's, and if not, why."""
    parts = []
    for name, value in found.items():
        agrees = abs(value - expected[name]) <= TOLERANCE
        parts.append(f"{name} agrees" if agrees else f"{name} differs: {value:.4f}, not {expected[name]:.4f}")
    unexplained = "differs" in " ".join(parts) and not peer.why
    return ", ".join(parts) + (f" ({peer.why})" if peer.why else "") + (" (UNEXPLAINED)" if unexplained else "")


def print_contest(shape: Shape, threads: int, contest: Contest, repeats: int) -> None:
    costs, ours = contest.costs, contest.costs["truerank.rank"]
    limit = Cost(*(min(column) for column in zip(*(costs[product_name(size)] for size in BLOCKINGS), strict=True)))
    print(f"\n{shape}; {threads} thread{'s' * (threads > 1)}; best of {repeats} rounds")
    print(f"{'':24} {'users':>6} {'seconds':>9} {'x product (CPU)':>20} {'x truerank (CPU)':>20}  means")
    for name, cost in costs.items():
        users = contest.users.get(name, shape.users)
        scaled = f"{users:,}" if users < shape.users else "all"
        ratios = " ".join(
            f"{cost.wall / base.wall:11.2f} {f'({cost.cpu / base.cpu:.2f})':>8}" for base in (limit, ours)
        )
        print(f"{name:24} {scaled:>6} {cost.wall:9.4f} {ratios}  {contest.notes.get(name, '')}".rstrip())
    for name in (*PEERS, *SAMPLED_PEERS):
        if name not in contest.notes:
            print(f"{name:24} not installed")
    print_goals(shape, costs, limit)


def print_goals(shape: Shape, costs: dict[str, Cost], limit: Cost) -> None:
    """Judge by wall-clock time; CPU time in brackets shows how much other work on the machine disturbed it."""
    print(f"goal: at most {GOALS[shape]} times the product:", judge(costs["truerank.rank"], limit, most=GOALS[shape]))
    for kind, peers in (("library", PEERS), ("sampled evaluation", SAMPLED_PEERS)):
        measured = [name for name in peers if name in costs]
        if measured:
            first = min(measured, key=lambda name: costs[name].cpu)
            ratio = judge(costs["truerank.rank, evaluate"], costs[first], most=1)
            print(f"goal: rank and evaluate faster than every {kind}: of {first}", ratio)


def judge(ours: Cost, other: Cost, *, most: float) -> str:
    wall, cpu = ours.wall / other.wall, ours.cpu / other.cpu
    return f"{wall:.2f} ({cpu:.2f} by CPU time), {'met' if wall <= most else 'MISSED'}"


def growth(middle: Shape, repeats: int) -> list[list[str]]:
    """Vary one size at a time by factors of two, or the threads, and fit CPU time ~ size ** exponent.

    A row has the times of all steps in milliseconds, the exponent, and its standard error by the scatter around it.
    """
    sizes = {"users": "users", "items": "items", "factors": "factors", "held-out items": "held_out"}
    cases = {
        (label, step): (middle._replace(**{field: int(getattr(middle, field) * step)}), 1)
        for label, field in sizes.items()
        for step in STEPS
    }
    cases |= {("threads", step): (middle, step) for step in (1, 2, 4)}
    made = {shape: make_data(shape) for shape, _ in cases.values()}
    costs = best_costs({str(case): by_rank(made[shape], threads) for case, (shape, threads) in cases.items()}, repeats)
    found = []
    for label in dict.fromkeys(label for label, _ in cases):
        seconds = {step: costs[str((label, step))].cpu for one, step in cases if one == label}
        times = [f"{seconds[step] * 1e3:.1f}" if step in seconds else "" for step in STEPS]
        exponent, error = fitted(np.log(list(seconds)), np.log(list(seconds.values())))
        found.append([label, *times, f"{exponent:.2f}", f"{error:.2f}", *measured_here()])
    return found


def fitted(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Return the slope of the least-squares line and its standard error."""
    away = x - x.mean()
    slope = away @ y / (away @ away)
    scatter = y - y.mean() - slope * away
    return slope, np.sqrt(scatter @ scatter / (x.size - 2) / (away @ away))


def measured_here() -> tuple[str, str]:
    """Return the date, and the processor with the variant of the loops."""
    return datetime.now(UTC).date().isoformat(), processor()


def trained(train: Any) -> dict[str, Callable[[], tuple[Any, Any]]]:
    """Return functions that train models and return their factors of users and of items."""
    import truerank as tr

    def ials(factors: int) -> tuple[Any, Any]:
        model = tr.IALS(factors=factors, rng=0).fit(train)
        return model.user_factors, model.item_factors

    def implicit(module: str, name: str, factors: int, **settings: Any) -> tuple[Any, Any]:
        model = getattr(importlib.import_module(module), name)(factors=factors, random_state=0, **settings)
        model.fit(sp.csr_matrix(train.matrix, dtype=np.float32), show_progress=False)
        return model.user_factors, model.item_factors

    models: dict[str, Callable[[], tuple[Any, Any]]] = {}
    for factors in (64, 128):
        models[f"iALS {factors}"] = partial(ials, factors)
        models[f"softmax {factors}"] = partial(softmax, train.matrix, factors)
        if importlib.util.find_spec("implicit"):
            models[f"implicit ALS {factors}"] = partial(implicit, "implicit.als", "AlternatingLeastSquares", factors)
            settings = {"iterations": 150, "learning_rate": 0.05}
            models[f"implicit BPR {factors}"] = partial(
                implicit, "implicit.bpr", "BayesianPersonalizedRanking", factors, **settings
            )
    return models


def softmax(train: Any, factors: int, *, epochs: int = 10, batch: int = 1024, rate: float = 0.1) -> tuple[Any, Any]:
    """Return factors trained by Adagrad on the softmax over the items of a batch, corrected for how often they come."""
    rng, (users, items) = np.random.default_rng(0), train.nonzero()
    parts = [rng.normal(0, 0.1, (size, factors)).astype(np.float32) for size in train.shape]
    squares = [np.full_like(part, 0.01) for part in parts]
    logs = np.log(np.bincount(items, minlength=train.shape[1]) + 1).astype(np.float32)
    for _ in range(epochs):
        for some in np.array_split(rng.permutation(len(users)), -(-len(users) // batch)):
            rows = users[some], items[some]
            own, other = (part[row] for part, row in zip(parts, rows, strict=True))
            errors = own @ other.T - logs[rows[1]]
            errors = np.exp(errors - errors.max(axis=1, keepdims=True))
            errors /= errors.sum(axis=1, keepdims=True)
            errors[np.diag_indices(len(some))] -= 1
            for part, square, row, slope in zip(parts, squares, rows, (errors @ other, errors.T @ own), strict=True):
                distinct, place = np.unique(row, return_inverse=True)
                total = np.zeros((len(distinct), factors), np.float32)
                np.add.at(total, place, slope)
                square[distinct] += total**2
                part[distinct] -= rate * total / np.sqrt(square[distinct])
    return parts[0], parts[1]


def kept(path: Path | None, train: Callable[[], tuple[Any, Any]]) -> list[NDArray[np.float32]]:
    """Return the factors in a file, after training and writing them if they are not there."""
    if path is not None and path.exists():
        with np.load(path) as found:
            return [found["users"], found["items"]]
    users, items = (np.asarray(each, np.float32) for each in train())
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, users=users, items=items)
    return [users, items]


def below_product(folder: Path, models: Path | None, repeats: int) -> None:
    """Measure ranks and lists of trained models relative to the product; each model is saved at once."""
    import truerank as tr

    split, data = tr.read_split(folder), DATA.get(folder.name, folder.name)
    print(f"\n{data}: CPU time of one thread relative to the product; best of {repeats} rounds")
    for model, train in trained(split.train).items():
        factors = kept(models and models / f"{data}, {model}.npz", train)
        with threadpool_limits(1, "blas"):
            costs = best_costs(trained_runs(tr.Factors(*factors), split), repeats)
        limit = costs.pop("product").cpu
        row = [data, model, processor(), f"{limit:.3f}", *(f"{cost.cpu / limit:.2f}" for cost in costs.values())]
        print(*row, sep="  ", flush=True)
        with (RESULTS / "below_product.csv").open(newline="") as file:
            header, *rows = csv.reader(file)
        save("below_product.csv", header, [*(other for other in rows if other[:3] != row[:3]), row])


def trained_runs(scorer: Any, split: Any) -> dict[str, Callable[[], object]]:
    """Return what is measured, in the order of the columns of the results."""
    import truerank as tr

    test, empty = split.test.matrix, sp.csr_matrix((0, 0))
    users = np.flatnonzero(np.diff(test.indptr))
    held = [own[:1].tolist() for own in np.split(test.indices, test.indptr[1:-1])]
    first = tr.Interactions.of(held, "test", n_users=test.shape[0], n_items=test.shape[1])
    rank, lists = partial(tr.rank, scorer, threads=1), partial(tr.recommend, scorer, train=split.train, threads=1)
    return {
        "product": product(Data(scorer.user_factors[users], scorer.item_factors, empty, empty), 1, BLOCKINGS[1]),
        **{f"@{depth}": partial(rank, split, depth=depth) for depth in (10, 20, 100)},
        "one item": partial(rank, train=split.train, test=first),
        "all items": partial(rank, split),
        **{f"best {k}": partial(lists, k=k) for k in (10, 100)},
    }


def print_first_call(repeats: int) -> None:
    script = (
        "from time import perf_counter as now; times = [now()]\n"
        "import truerank as tr; times.append(now())\n"
        "import numpy as np, pyarrow, scipy.sparse, tqdm; times.append(now())\n"
        "ones = np.ones((9, 8), np.float32)\n"
        "for _ in range(2): tr.rank(tr.Factors(ones, ones), train=[[0]], test=[[1]]); times.append(now())\n"
        "print(*np.diff(times))"
    )
    with tempfile.TemporaryDirectory() as folder:  # for bytecode, which some environments do not keep
        fresh(script, bytecode=folder)  # fills this directory
        rounds = [fresh(script, bytecode=folder) for _ in range(max(repeats, 5))]
    imports, others, first, second = (min(column) for column in zip(*rounds, strict=True))
    print(f"\nFresh process; best of {len(rounds)}")
    print(f"import truerank {imports:.2f} s; numpy, scipy and pyarrow, which it then needs, {others:.2f} s")
    print(f"first call {first:.2f} s, second call {second * 1e3:.1f} ms")


def fresh(script: str, *arguments: str, bytecode: str | None = None) -> list[float]:
    """Run a script in a new process, and return the numbers it prints."""
    command = [sys.executable, "-W", "ignore", "-c", script, *arguments]
    kept = {} if bytecode is None else {"PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **kept})
    return [float(number) for number in done.stdout.split()]


def print_memory(threads: int) -> None:
    """Print the peak increase of resident memory during the call."""
    if not Path("/proc/self/clear_refs").exists():
        print("\nPeak memory: not measured, this needs Linux")
        return
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import exact_ranks\n"
        "exact_ranks.report_peak(getattr(exact_ranks, sys.argv[2]), int(sys.argv[3]))"
    )
    cases = {"big_data": str(BIG), "mapped_data": f"{MAPPED}, by one user in 500, from mapped files"}
    print(f"\nPeak memory above the inputs; {threads} thread{'s' * (threads > 1)}")
    for maker, label in cases.items():
        above, mapped, seconds = fresh(script, str(Path(__file__).resolve().parent), maker, str(threads))
        print(f"{label}: {above:.0f} MB, of which {mapped:.0f} MB pages of mapped files, in {seconds:.1f} s")


def report_peak(maker: Callable[[Path], Data], threads: int) -> None:
    """Print megabytes above the inputs, megabytes of mapped files among them, and seconds; run it in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        data = maker(Path(folder))
        by_rank(make_data(Shape(10, 10, 2, 1, 1)), threads)()  # loads the code
        before, mapped = memory("VmRSS"), memory("RssFile")
        # not ru_maxrss: it includes the peak while making the data, and that of the parent process
        Path("/proc/self/clear_refs").write_text("5")
        cost = measure(by_rank(data, threads))
        print(memory("VmHWM") - before, memory("RssFile") - mapped, cost.wall)


def memory(field: str) -> float:
    """Return a field of this process's status in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


def big_data(_: Path) -> Data:
    return make_data(BIG)


def mapped_data(folder: Path) -> Data:
    """Return factors in mapped files; all users have training items, one in 500 has a held-out item."""
    rng = np.random.default_rng(0)
    maps = []
    for name, size in (("users", MAPPED.users), ("items", MAPPED.items)):
        mapped = np.lib.format.open_memmap(folder / name, "w+", np.float32, (size, MAPPED.factors))
        for start in range(0, size, 10_000):
            mapped[start : start + 10_000] = rng.standard_normal((10_000, MAPPED.factors), dtype=np.float32)
        del mapped
        maps.append(np.load(folder / name, mmap_mode="r"))
    train = draw_items(rng, MAPPED)
    held = rng.integers(0, MAPPED.items, (MAPPED.users, 1), dtype=np.int32)
    chosen = (np.arange(MAPPED.users) % 500 == 0)[:, None]
    matrices = to_matrix(train, train >= 0, MAPPED.items), to_matrix(held, chosen, MAPPED.items)
    return Data(maps[0], maps[1], *matrices)


def versions() -> str:
    from importlib.metadata import PackageNotFoundError, version

    def one(name: str) -> Iterable[str]:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            return

    names = ("numpy", "scipy", "torch", "implicit", "recbole", "cornac", "lenskit", "recometrics")
    return ", ".join([f"Python {sys.version.split()[0]}", *(text for name in names for text in one(name))])


def contests(quick: bool, threads: Iterable[int], repeats: int) -> None:
    """Compare with other libraries, and save what was found unless it is for the small shape only."""
    rows = []
    for shape in (SMALL,) if quick else (SMALL, BIG):
        for n_threads in threads:
            contest = compare(shape, n_threads, repeats)
            print_contest(shape, n_threads, contest, repeats)
            rows += contest.rows(shape, n_threads)
    if not quick:
        columns = ("shape", "threads", "contender", "users", "seconds", "CPU seconds", "means", "date", "processor")
        save("exact_ranks.csv", columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small shape, small sizes for growth, no memory")
    parser.add_argument("--contest", action="store_true", help="only the contest with other libraries")
    parser.add_argument("--growth", action="store_true", help="only how CPU time grows")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, help="only rank models trained on this data")
    parser.add_argument("--models", type=Path, help="where trained factors are kept")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(versions())
    if options.data:
        below_product(options.data, options.models, options.repeats)
        return
    if not options.growth:
        contests(options.quick, options.threads, options.repeats)
    if not options.contest:
        grown = growth(QUICK_MIDDLE if options.quick else MIDDLE, options.repeats)
        print(*(" ".join(map(str, row)) for row in grown), sep="\n")
        if not options.quick:
            times = [f"x {step}" for step in STEPS]
            save("growth.csv", ("size", *times, "exponent", "error", "date", "processor"), grown)
    if options.contest or options.growth:
        return
    print_first_call(options.repeats)
    if not options.quick:
        print_memory(options.threads[-1])


if __name__ == "__main__":
    main()
