"""How close ranking comes to what the machine can do.

- Factors: multiply-adds per second of `tr.rank`, relative to a loop that does nothing else, for several numbers of
  factors. The loop is compiled here, by the compiler in CC or by zig.
- Scores from a function that returns at once: `tr.rank` relative to reading the scores from memory once.
- Item-item models: `tr.rank` relative to SciPy's product of the histories and the similarity alone.
- Samples: `tr.rank_sampled` relative to `tr.rank`, which scores every item.

Contenders alternate in one process; the best CPU time of each counts. Ratios are results/limits.csv.

    python benchmarks/limits.py [--repeats 5] [--threads 1]
"""

import argparse
import ctypes
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import truerank as tr
from exact_ranks import Shape, best_costs, by_rank, make_data
from real_ranks import save
from truerank.kernels import library
from truerank.kernels.scores import users_per_block

FACTORS = Shape(6_000, 20_000, 64, 50, 1)
BLOCKS = [Shape(2_000, 40_000, 64, 50, held_out) for held_out in (1, 10, 50)]
MODEL = Shape(6_040, 3_706, 8, 165, 1)
NEIGHBOURS = 100
SAMPLED = [Shape(6_000, 40_000, 64, 50, 7), Shape(6_040, 3_706, 64, 165, 1), Shape(6_040, 3_706, 16, 165, 1)]
SAMPLES = (100, 300, 1_000)
ROUNDS = 20_000_000
Row = tuple[str, str, str, str]  # what, relative to what, case, ratio


def compile_peak(folder: Path) -> Callable[[int], int]:
    """Return a function that does so many rounds of multiply-adds, and returns their number."""
    if (variant := library.variant()) == library.NUMPY:
        raise SystemExit("there is no compiled library to measure.")
    path, source = folder / "peak.so", Path(__file__).with_name("peak.c")
    subprocess.run([*compiler(variant), "-O3", "-fPIC", "-shared", str(source), "-o", str(path)], check=True)
    loop = ctypes.CDLL(str(path)).multiply_add
    loop.argtypes, loop.restype = (ctypes.c_int64, ctypes.POINTER(ctypes.c_float)), ctypes.c_int64
    return lambda rounds: int(loop(rounds, ctypes.byref(ctypes.c_float())))


def compiler(variant: str) -> list[str]:
    """Return the command that compiles for a variant of the library, the one in CC or else zig."""
    command = shlex.split(os.environ.get("CC", f"{shlex.quote(sys.executable)} -m ziglang cc"))
    if not variant.startswith("x86"):
        return command
    level = variant.removesuffix("-vnni")
    processor = f"-march={level}" if "CC" in os.environ else f"-mcpu={level.replace('-', '_')}"
    return [*command, processor, "-mprefer-vector-width=512"]


def share_of_peak(repeats: int, threads: int) -> Iterator[Row]:
    """Measure with 1 held-out item, so that nearly all work is multiplying."""
    with tempfile.TemporaryDirectory() as folder:
        peak = compile_peak(Path(folder))
    shapes = [FACTORS._replace(factors=d) for d in (16, 64, 128, 256)]
    runs: dict[str, Callable[[], Any]] = {str(shape.factors): by_rank(make_data(shape), threads) for shape in shapes}
    costs = best_costs({"peak": partial(peak, ROUNDS), **runs}, repeats)
    most = peak(ROUNDS) / costs["peak"].cpu
    for shape in shapes:
        rate = shape.users * shape.items * shape.factors / costs[str(shape.factors)].cpu
        yield "multiply-adds", "peak of a core", f"{shape.factors} factors", f"{rate / most:.2f}"


def score_blocks(repeats: int, threads: int) -> Iterator[Row]:
    """Measure scores from a function that returns at once."""
    for shape in BLOCKS:
        data = make_data(shape)
        for kind in (np.float32, np.float64):
            scores: NDArray[Any] = (data.users @ data.items.T).astype(kind)
            scorer = tr.FunctionScorer(partial(rows, scores), n_users=shape.users, n_items=shape.items)
            ranked = partial(tr.rank, scorer, train=data.train, test=data.test, threads=threads)
            costs = best_costs({"rank": ranked, "read": partial(read, scores)}, repeats)
            ratio = costs["rank"].cpu / costs["read"].cpu
            yield "given scores", "reading them once", f"{shape.held_out} held out, {scores.dtype}", f"{ratio:.2f}"


def rows(scores: NDArray[Any], users: NDArray[np.int64]) -> NDArray[Any]:
    """Return the scores of consecutive users without copying them."""
    return scores[users[0] : users[-1] + 1]


def read(scores: NDArray[Any]) -> None:
    """Read all scores once, in the same blocks: NumPy finds a maximum as fast as memory delivers."""
    size = users_per_block(scores.shape[1])
    for start in range(0, len(scores), size):
        scores[start : start + size].max()


def item_models(repeats: int, threads: int) -> Iterator[Row]:
    data = make_data(MODEL)
    histories = sp.csr_array(data.train.astype(np.float32))
    dense = (data.items @ data.items.T).astype(np.float32)
    least = np.partition(dense, -NEIGHBOURS, axis=1)[:, [-NEIGHBOURS]]
    for name, similarity in {"dense": dense, "sparse": sp.csr_array(np.where(dense >= least, dense, 0))}.items():
        ranked = partial(
            tr.rank, tr.Similarity(similarity, histories), train=data.train, test=data.test, threads=threads
        )
        costs = best_costs({"rank": ranked, "product": partial(product, histories, similarity)}, repeats)
        ratio = costs["rank"].cpu / costs["product"].cpu
        yield "item-item model", "SciPy's product alone", name, f"{ratio:.2f}"


def product(histories: sp.csr_array, similarity: Any) -> None:
    histories @ similarity


def samples(repeats: int, threads: int) -> Iterator[Row]:
    for shape in SAMPLED:
        data = make_data(shape)
        options: dict[str, Any] = {"train": data.train, "test": data.test, "threads": threads}
        runs: dict[str, Callable[[], Any]] = {"exact": by_rank(data, threads)}
        for m in SAMPLES:
            runs[str(m)] = partial(tr.rank_sampled, tr.Factors(data.users, data.items), design=m, rng=0, **options)
        costs = best_costs(runs, repeats)
        for m in SAMPLES:
            ratio = costs[str(m)].cpu / costs["exact"].cpu
            case = str(m) if shape == SAMPLED[0] else f"{m}, {shape.factors} factors"
            yield "sampled candidates", f"all {shape.items}", case, f"{ratio:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    sections = (share_of_peak, score_blocks, item_models, samples)
    with threadpool_limits(1, "blas"):
        rows = [row for section in sections for row in section(options.repeats, options.threads)]
    save("limits.csv", ("what", "relative to", "case", "ratio"), rows)
    for row in rows:
        print(*row, sep="  ")


if __name__ == "__main__":
    main()
