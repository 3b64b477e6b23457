"""How soon a new user gets results: truerank in a fresh environment, never run before.

Makes a virtual environment in a temporary directory and installs a wheel there with its dependencies. Prints the disk
space it takes and, each measured in a new process, the wall-clock and CPU seconds of importing and of the first and
second evaluation. The very first process of each kind is reported separately, because it finds no caches.

    python benchmarks/start.py [--wheel dist/truerank-...whl] [--repeats 5]
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CLOCK = """
import sys, time
def now(): return time.perf_counter(), time.process_time()
times = [now()]
"""
REPORT = "for a, b in zip(times, times[1:]): print(b[0] - a[0], b[1] - a[1])"
RANK = "tr.rank(tr.Factors(ones, ones), train=[[0]], test=[[1]])"
SCORES = "tr.rank(np.ones((9, 9)), train=[[0]], test=[[1]])"
FIT = "tr.IALS(factors=8, sweeps=2, rng=0).fit([[0, 1], [1, 2], [0, 2]])"
FIRST = f"{RANK}; tr.evaluate(tr.Ranks.from_ranks([1, 2, 7], n=50), ['ndcg@10', 'recall@10']).rows()"
EVALUATE = "tr.evaluate(tr.Ranks.from_ranks([1, 2, 7], n=50), ['ndcg@10', 'recall@10'])"


def scripts() -> dict[str, list[tuple[str, str]]]:
    """Return the steps of each kind of work: the name and the statement of each step."""
    before = [("import truerank", "import truerank as tr")]
    numpy = ("import numpy", "import numpy as np")
    libraries = [*before, ("numpy, pyarrow, scipy.sparse, tqdm", "import numpy as np, pyarrow, scipy.sparse, tqdm")]

    def twice(what: str, statement: str) -> list[tuple[str, str]]:
        return [(f"first {what}", statement), (f"second {what}", statement)]

    factors = FIRST.replace("ones", "np.ones((9, 8), 'f4')")
    return {
        "the first second": [numpy, ("import truerank, tr.rank, tr.evaluate", f"import truerank as tr; {factors}")],
        "evaluation of ranks": [*before, *twice("tr.evaluate", EVALUATE)],
        "ranking by factors, float32": [*libraries, *twice("tr.rank", RANK.replace("ones", "np.ones((9, 8), 'f4')"))],
        "ranking by factors, float64": [*libraries, *twice("tr.rank", RANK.replace("ones", "np.ones((9, 8))"))],
        "ranking by scores": [*libraries, *twice("tr.rank", SCORES)],
        "learning iALS": [*libraries, *twice("fit", FIT)],
    }


def run(python: Path, steps: list[tuple[str, str]]) -> list[tuple[float, float]]:
    """Run the steps in a new process, and return the wall-clock and CPU seconds of each."""
    lines = [CLOCK, *(f"{statement}; times.append(now())" for _, statement in steps), REPORT]
    done = subprocess.run([python, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    numbers = [float(word) for word in done.stdout.split()]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def install(folder: Path, wheel: Path | None) -> Path:
    """Make the environment, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = next(path for path in (folder / "bin/python", folder / "Scripts/python.exe") if path.exists())
    command = [str(python), *["-m", "pip", "--disable-pip-version-check", "install", "--quiet"], str(wheel or ROOT)]
    subprocess.run(command, check=True)
    return python


def megabytes(folder: Path) -> float:
    files = {path.resolve() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}
    return sum(path.stat().st_size for path in files) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="default: built from this repository")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", Path(folder, "empty")], check=True)
        python = install(Path(folder, "with"), options.wheel)
        added = megabytes(Path(folder, "with")) - megabytes(Path(folder, "empty"))
        print(f"`pip install truerank` adds {added:.0f} MB")
        for kind, steps in scripts().items():
            runs = [run(python, steps) for _ in range(1 + options.repeats)]
            print(f"\n{kind}: seconds (CPU) of the very first process, best of the next {options.repeats}")
            for step, (name, _) in enumerate(steps):
                wall, cpu = (min(times[step][k] for times in runs[1:]) for k in (0, 1))
                print(f"  {name:36} {'{:.3f} ({:.3f})'.format(*runs[0][step]):>16} {f'{wall:.3f} ({cpu:.3f})':>16}")


if __name__ == "__main__":
    main()
