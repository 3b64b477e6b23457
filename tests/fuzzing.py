"""Fuzz one of tests/fuzz_targets.py, or the compiled loops, guided by coverage, from the inputs in tests/corpora on.

``make fuzz`` and ``make fuzz-loops`` run it for a while on each target. What a run finds goes into build/fuzzed, where
the next one goes on, even if this one was killed; benchmarks/results/fuzzing.csv counts the inputs of all. An input
that reaches code which no other one does is kept in tests/corpora, as a line of base64; tests/test_fuzzing.py replays
them.

    python -m tests.fuzzing texts --runs 1000000
"""

import argparse
import base64
import csv
import hashlib
import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.fuzz_targets import TARGETS, changed

ROOT = Path(__file__).parents[1]
CORPORA = ROOT / "tests/corpora"
COUNTS = ROOT / "benchmarks/results/fuzzing.csv"
FOUND = ROOT / "build/fuzzed"
LARGEST = 500  # bytes of an input that is kept
EDGES = "-use_counters=0"  # tells apart which code inputs reach, but not how often


def seeds(target: str) -> Iterator[bytes]:
    """Return what is kept of earlier runs and random bytes, and for readers a valid file of each kind."""
    kept = CORPORA / f"{target}.txt"
    yield from map(base64.b64decode, kept.read_text().split() if kept.exists() else [])
    yield from map(np.random.default_rng(0).bytes, (30, 300, 1_000))
    if target == "readers":
        from tests.hostile import good_files  # not earlier, because truerank is instrumented when it is imported

        yield from (bytes([at, 0]) + content for at, content in enumerate(good_files().values()))


def fuzz(target: str, options: list[str]) -> None:
    """Let libFuzzer run a target in this process."""
    import atheris

    if "-merge=1" not in options or "-merge_inner=1" in options:  # or else another process runs the inputs
        with atheris.instrument_imports(include=["truerank"]):
            _import_all()
    counts = [0, 0]

    def one(data: bytes) -> None:
        counts[TARGETS[target](data)] += 1
        if not sum(counts) % 100 and "FUZZ_COUNTS" in os.environ:
            written = Path(os.environ["FUZZ_COUNTS"])
            beside = written.with_suffix(".new")
            beside.write_text(f"{sum(counts)} {counts[1]}")
            beside.replace(written)  # whole even if this process is killed now

    def mutate(data: bytes, size: int, seed: int) -> bytes:
        mutated = changed(data, np.random.default_rng(seed)) if seed % 4 else atheris.Mutate(data, size)
        return mutated[:size]

    structured = {"custom_mutator": mutate} if target == "readers" else {}
    again = f"{sys.executable} -m tests.fuzzing {target} --options"  # how libFuzzer starts itself when it merges
    atheris.Setup([again, *options], one, **structured)
    atheris.Fuzz()


def _import_all() -> None:
    import truerank

    for module in pkgutil.walk_packages(truerank.__path__, "truerank."):
        if not module.name.endswith("__main__") and "-" not in module.name:  # a compiled library is no module
            importlib.import_module(module.name)


def command(target: str) -> list[str]:
    """Return a command that runs libFuzzer on a target; what `make fuzz-loops` has built is one itself."""
    own = f"-artifact_prefix={FOUND}/{target}-"
    if target == "loops":
        return [str(ROOT / "build/fuzzed-loops"), "-max_len=64", "-entropic=0", own]
    return [
        sys.executable,
        "-m",
        "tests.fuzzing",
        target,
        "--options",
        "-max_len=4096",
        "-len_control=0",
        "-timeout=60",
        own,
    ]


def run(target: str, runs: int) -> int:
    """Run one target in a process of its own; return its exit code.

    Memory is used again soon, because pages that are new take long.
    """
    settings = {"FUZZ_COUNTS": str(_counts(target)), "ASAN_OPTIONS": "quarantine_size_mb=1:malloc_context_size=1"}
    return subprocess.run(
        [*command(target), f"-runs={runs}", str(FOUND / target)], check=False, env=os.environ | settings
    ).returncode


def prepare(target: str) -> None:
    """Write the seeds to the folder in which the target is run, beside what a killed run has left there."""
    (FOUND / target).mkdir(parents=True, exist_ok=True)
    for content in seeds(target):
        (FOUND / target / hashlib.sha1(content).hexdigest()).write_bytes(content)


def keep(target: str) -> None:
    """Keep inputs, small ones first, that reach code which no other one does."""
    least = FOUND / f"{target}.kept"
    shutil.rmtree(least, ignore_errors=True)
    least.mkdir()
    subprocess.run([*command(target), "-merge=1", EDGES, str(least), str(FOUND / target)], check=True)
    contents = [path.read_bytes() for path in least.iterdir()]
    lines = sorted(base64.b64encode(each).decode() for each in contents if len(each) < LARGEST)
    (CORPORA / f"{target}.txt").write_text("\n".join(lines) + "\n")
    shutil.rmtree(least)


def _counts(target: str) -> Path:
    """Return the file in which a run writes how many inputs it tried, and how many went past the first check."""
    return FOUND / f"{target}.counts"


def settle(target: str) -> None:
    """Add the counts of a run, which may have been killed, to those of all."""
    if not _counts(target).exists():
        return
    inputs, further = map(int, _counts(target).read_text().split())
    rows = {row["target"]: row for row in csv.DictReader(COUNTS.open())} if COUNTS.exists() else {}
    row = rows.setdefault(target, {"target": target, "inputs": "0", "past the first check": "0"})
    row["inputs"] = str(int(row["inputs"]) + inputs)
    row["past the first check"] = str(int(row["past the first check"]) + further)
    with COUNTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[each] for each in sorted(rows))
    _counts(target).unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=[*TARGETS, "loops"])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--options", nargs=argparse.REMAINDER, help="run in this process, with options of libFuzzer")
    given = parser.parse_args()
    if given.options:
        return fuzz(given.target, given.options)
    prepare(given.target)
    settle(given.target)
    status = run(given.target, given.runs)
    settle(given.target)
    keep(given.target)
    sys.exit(status)


if __name__ == "__main__":
    main()
