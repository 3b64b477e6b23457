"""From the challenge's two files to scores: 60,000 queries with lists of 30 and solutions of 30 lectures.

Prints the smallest wall-clock and CPU time of several repeats; on a busy machine the two differ.

    python benchmarks/challenge.py [--queries 60000] [--repeats 5]
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import truerank as tr
from truerank.papers.vlnet import read_vlnet

LENGTH, LECTURES = 30, 8_000


def write_files(folder: Path, n_queries: int) -> tuple[Path, Path]:
    """Write unsorted solutions, and lists in which half of the lectures are correct."""
    rng = np.random.default_rng(0)
    solution, submission = [], []
    for query in range(n_queries):
        right = rng.choice(LECTURES, LENGTH, replace=False)
        scores = rng.integers(1, 2_000, LENGTH)
        solution.append(f"{query}:{query % 2}:" + ",".join(f"{a}|{b}" for a, b in zip(right, scores, strict=True)))
        listed = rng.choice(LECTURES, LENGTH, replace=False)
        listed[::2] = right[::2]
        submission.append(f"{query}: " + ", ".join(map(str, listed)))
    paths = folder / "solution.txt", folder / "submission.txt"
    for path, lines in zip(paths, (solution, submission), strict=True):
        path.write_text("\n".join(lines) + "\n")
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=60_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = write_files(Path(folder), options.queries)
        for text in ("marp@5,10", "marp@5,10,15,20,25,30"):
            wall, processor = [], []
            for _ in range(options.repeats):
                start = time.perf_counter(), time.process_time()
                table = tr.evaluate(read_vlnet(*paths), text)
                wall.append(time.perf_counter() - start[0])
                processor.append(time.process_time() - start[1])
            score = table["all", text].mean
            print(f"{text}: {score:.6f} in {min(wall):.2f} s, {min(processor):.2f} s of CPU")


if __name__ == "__main__":
    main()
