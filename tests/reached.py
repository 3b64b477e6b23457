"""Which share of the lines and branches the tests reach, by folder: fails below what is required.

`make coverage` measures them; benchmarks/results/coverage.csv keeps the shares.

    coverage json -o build/coverage.json && python -m tests.reached build/coverage.json
"""

import csv
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.mutations import CODE, MODULES, ROOT

RESULTS = ROOT / "benchmarks/results/coverage.csv"
COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")
COMPUTES = "what make mutate changes"
LEAST = {COMPUTES: 1.0, "all": 0.95}
"""Least share of the lines and branches together."""


def counted(summaries: Iterable[dict[str, int]]) -> list[int]:
    """Return how many lines there are, how many are reached, and the same of branches."""
    return [sum(column) for column in zip(*([own[name] for name in COUNTS] for own in summaries), strict=True)]


def rooms(files: dict[str, Any]) -> dict[str, list[int]]:
    """Return the counts of each folder, of the modules that `make mutate` changes, and of all."""
    own = {str((ROOT / path).relative_to(CODE)): found["summary"] for path, found in files.items()}
    folders = sorted({path.partition("/")[0] for path in own if "/" in path})
    parts = {folder: [path for path in own if path.startswith(f"{folder}/")] for folder in folders}
    parts |= {COMPUTES: MODULES, "all": list(own)}
    return {name: counted(own[path] for path in paths) for name, paths in parts.items()}


def share(counts: list[int]) -> float:
    lines, reached, branches, taken = counts
    return (reached + taken) / (lines + branches)


def main(report: Path) -> None:
    found = rooms(json.loads(report.read_text())["files"])
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["part", "lines", "lines reached", "branches", "branches reached"])
        writer.writerows([name, *counts] for name, counts in found.items())
    if missed := [name for name, least in LEAST.items() if share(found[name]) < least]:
        raise SystemExit(f"the tests reach too little of {' and of '.join(missed)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
