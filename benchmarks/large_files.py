"""Files of many rows under a hard limit of the operating system on memory.

    python benchmarks/large_files.py --rows 100_000_000 --folder /somewhere/with/room

Files whose rows follow a rule are made unless they are there: user-item interactions, lists of 100 items, ranks. Each
is read, or written, by a process of its own that can't have more addresses than `--limit`, and what it finds is
compared with what the rule implies. results/large_files.csv keeps the peaks of resident memory, imports included.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from real_ranks import processor

RESULTS = Path(__file__).resolve().parent / "results" / "large_files.csv"
STEP = 5_000_000
ENDINGS = (".csv", ".parquet", ".jsonl")


def events(row: Any, rows: int) -> dict[str, Any]:
    """Return interactions: those of a user are far apart, with different items and times."""
    user, turn = row % (rows // 100), row // (rows // 100)
    item, time = 1 + (487 * turn + 13 * row) % 49_999, 10**9 + 7_919 * row % 10**9
    return {"user": user, "item": item, "rating": 1 + row % 5, "timestamp": time}


def lists(row: Any, rows: int) -> dict[str, Any]:
    """Return lists of 100 items, one after another, as `Recommendations.write` does."""
    user, place = row // 100, row % 100
    return {"user": user, "item": (7 * user + 13 * place) % 50_000, "rank": 1 + place}


def truth(row: Any, rows: int) -> dict[str, Any]:
    """Return the relevant item of each list: at the ranks 1 to 125 equally often, which is not listed beyond 100."""
    return {"user": row, "item": (7 * row + 13 * (row % 125)) % 50_000}


def ranks(row: Any, rows: int) -> dict[str, Any]:
    """Return the rank of one relevant item per user: from 1 to 1,000 equally often."""
    return {"user": row, "rank": 1 + 7_919 * row % 1_000, "n": np.full(row.size, 50_000)}


def several(row: Any, rows: int, gap: int = 10) -> dict[str, Any]:
    """Return the ranks of 100 relevant items per user, of which the first is at 1 to `gap`, equally often."""
    user, place = row // 100, row % 100
    return {"user": user, "rank": 1 + gap * place + user % gap, "n": np.full(row.size, 50_000)}


def groups(row: Any, rows: int) -> dict[str, Any]:
    """Return a group for each user."""
    return {"user": row, "group": pa.array(["even", "odd"]).take(pa.array(row % 2))}


class Rule(NamedTuple):
    """The columns of some rows, and how many times fewer rows than others a file has."""

    columns: Callable[[Any, int], dict[str, Any]]
    fewer: int = 1


RULES = {
    "events": Rule(events),
    "lists": Rule(lists),
    "truth": Rule(truth, 100),
    "groups": Rule(groups, 100),
    "ranks": Rule(ranks),
    "several": Rule(several),
    "deeper": Rule(lambda row, rows: several(row, rows, 20)),
}
"""What is in the files, by their names."""


def make(path: Path, rows: int) -> None:
    """Write a file, some rows at a time."""
    rule, writer = RULES[path.stem], None
    n = rows // rule.fewer
    with path.open("wb") as file:
        for start in range(0, n, STEP):
            table = pa.table(rule.columns(np.arange(start, min(start + STEP, n)), rows))
            if path.suffix == ".parquet":
                writer = writer or pq.ParquetWriter(file, table.schema)
                writer.write_table(table)
            elif path.suffix == ".csv":
                pa_csv.write_csv(table, file, pa_csv.WriteOptions(include_header=start == 0))
            else:
                _write_json_lines(table, file)
        if writer is not None:
            writer.close()


def _write_json_lines(table: pa.Table, file: BinaryIO) -> None:
    """Write objects of whole numbers, several times faster than by a JSON library."""
    parts: list[Any] = []
    for name in table.column_names:
        parts += [f'{", " if parts else "{"}"{name}": ', table[name].combine_chunks().cast(pa.string())]
    lines = pc.binary_join_element_wise(*parts, "}\n", "")
    file.write(memoryview(lines.buffers()[2])[: pc.sum(pc.binary_length(lines)).as_py()])


def _gain(found: Iterable[int]) -> float:
    return sum(1 / math.log2(rank + 1) for rank in found)


def _mean(most: int) -> float:
    """Return ndcg@10 where one item has the ranks 1 to `most` equally often."""
    return _gain(range(1, 11)) / most


def _share(firsts: Sequence[int]) -> float:
    """Return ndcg@10 where the first of many relevant items is at these ranks equally often, and others are below."""
    return _gain(firsts) / len(firsts) / _gain(range(1, 11))


def _sums(rows: int) -> list[int]:
    found = np.zeros(3, np.int64)
    for start in range(0, rows, STEP):
        table = events(np.arange(start, min(start + STEP, rows)), rows)
        found += [int(table[name].sum()) for name in ("item", "rating", "timestamp")]
    return [rows // 100, *found.tolist()]


class Case(NamedTuple):
    """What is run: Python that ends with `found`, or a command; with which endings; and what it must find."""

    what: str
    code: str
    endings: Sequence[str]
    expected: Callable[[int], Sequence[float]]


_FOUND_EVENTS = "[data.n_users, int(data.item_ids[data.items].sum()), int(data.ratings.sum()), int(data.times.sum())]"
_LISTS = """tr.Recommendations(
    items=(7 * (row // 100) + 13 * (row % 100)) % 50_000, indptr=np.arange(0, {rows} + 1, 100),
    user_ids=np.arange({rows} // 100), item_ids=np.arange(50_000), k=100)"""
_FOUND_RANKS = "found = [len(ranks), int(ranks.above.sum())]"
CASES = {
    "interactions": Case(
        "`read_interactions`",
        f"data = tr.read_interactions('{{events}}', memory='{{memory}}'); found = {_FOUND_EVENTS}",
        ENDINGS,
        _sums,
    ),
    "write lists": Case(
        "`Recommendations.write`",
        f"row = np.arange({{rows}}); lists = {_LISTS}; del row; lists.write('{{written}}'); found = [len(lists)]",
        (".csv", ".parquet"),
        lambda rows: [rows // 100],
    ),
    "lists": Case(
        "`read_lists`",
        "ranks = tr.read_lists('{lists}', '{truth}', memory='{memory}'); "
        "found = [len(ranks), float(tr.values(ranks, 'ndcg@10').mean())]",
        ENDINGS,
        lambda rows: [rows // 100, _mean(125)],
    ),
    "recommendations": Case(
        "`read_recommendations`",
        "lists = tr.read_recommendations('{lists}', memory='{memory}'); "
        "found = [len(lists), lists.n_items, int(lists.item_ids[lists.items[-100:]].sum())]",
        (".csv", ".parquet"),
        lambda rows: [rows // 100, 50_000, int(lists(np.arange(rows - 100, rows), rows)["item"].sum())],
    ),
    "ranks": Case(
        "`read_ranks`",
        f"ranks = tr.read_ranks('{{ranks}}', memory='{{memory}}'); {_FOUND_RANKS}",
        ENDINGS,
        lambda rows: [rows, rows // 1_000 * 499_500],
    ),
    "save ranks": Case(
        "`Ranks.save`",
        "ranks = tr.Ranks.from_ranks(1 + 7_919 * np.arange({rows}) % 1_000, 50_000, ids=np.arange({rows})); "
        f"ranks.save('{{saved}}'); {_FOUND_RANKS}",
        (".parquet",),
        lambda rows: [rows, rows // 1_000 * 499_500],
    ),
    "saved ranks": Case(
        "`read_ranks` of saved ranks",
        f"ranks = tr.read_ranks('{{saved}}', memory='{{memory}}'); {_FOUND_RANKS}",
        (".parquet",),
        lambda rows: [rows, rows // 1_000 * 499_500],
    ),
    "evaluate lists": Case(
        "`truerank evaluate --truth`",
        "evaluate {lists} --truth {truth}",
        (".csv", ".parquet"),
        lambda rows: [_mean(125)],
    ),
    "groups of lists": Case(
        "`truerank evaluate --truth --by`",
        "evaluate {lists} --truth {truth} --by {groups}",
        (".parquet",),
        lambda rows: [_mean(125)] * 2,
    ),
    "compare lists": Case(
        "`truerank compare --truth`",
        "compare {lists} second={lists} --truth {truth}",
        (".parquet",),
        lambda rows: [_mean(125)],
    ),
    "evaluate ranks": Case("`truerank evaluate`", "evaluate {several}", (".csv", ".parquet"), lambda rows: [0.1]),
    "groups of ranks": Case(
        "`truerank evaluate --by`",
        "evaluate {several} --by {groups}",
        (".parquet",),
        lambda rows: [_share(range(1, 11, 2)), _share(range(2, 11, 2))],
    ),
    "compare ranks": Case("`truerank compare`", "compare {several} {deeper}", (".parquet",), lambda rows: [0.05]),
}
_SHOWN = "print(json.dumps({'rows': [{'mean': one} for one in found]}))"


def run(case: Case, names: Mapping[str, Any], limit: float) -> dict[str, Any]:
    """Run a case in a process that can have `limit` GB of addresses; return what it found, its peak and its time."""
    code = case.code.format(**names)
    command = ["-c", f"import json, numpy as np, truerank as tr\n{code}\n{_SHOWN}"]
    if "found" not in case.code:
        command = ["-m", "truerank", *code.split(), "-m", "ndcg@10", "-f", "json", "--memory", names["memory"]]
    process = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TRUERANK_UNPACK_LIMIT": "20000000000"},  # rules pack well, as bombs do
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (int(limit * 1e9),) * 2),
    )
    out, errors = process.stdout.read(), process.stderr.read()  # type: ignore[union-attr]
    _, status, used = os.wait4(process.pid, 0)
    found = "right" if not status and _right(out, case, names["rows"]) else (errors or out).strip().splitlines()[-1]
    return {"peak, GB": f"{used.ru_maxrss / 1e6:.1f}", "CPU, s": round(used.ru_utime + used.ru_stime), "found": found}


def _right(out: str, case: Case, rows: int) -> bool:
    means = [row["mean"] for row in json.loads(out)["rows"]]
    return bool(np.allclose(means, case.expected(rows), rtol=1e-9, atol=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--what", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--endings", nargs="+", default=ENDINGS, choices=ENDINGS)
    parser.add_argument("--memory", default="7GB")
    parser.add_argument("--limit", type=float, default=8, help="GB of addresses, imports included")
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args()
    for what, ending in itertools.product(given.what, given.endings):
        if ending not in (case := CASES[what]).endings:
            continue
        paths = {name: given.folder / f"{name}{ending}" for name in (*RULES, "written", "saved")}
        for name in RULES:
            if f"{{{name}}}" in case.code and not paths[name].exists():
                make(paths[name], given.rows)
        found = run(case, {"rows": given.rows, "memory": given.memory} | paths, given.limit)
        print(what, ending, found, flush=True)
        _keep({"call": case.what, "format": ending[1:], "rows": given.rows, "limit, GB": given.limit} | found)


def _keep(row: dict[str, Any]) -> None:
    """Replace the row with the same call, format and number of rows in the results, or add it."""
    row = {name: str(value) for name, value in row.items()} | {"processor": processor()}
    rows = list(csv.DictReader(RESULTS.open())) if RESULTS.exists() else []
    key = ("call", "format", "rows")
    at = next((at for at, one in enumerate(rows) if all(one[name] == row[name] for name in key)), len(rows))
    rows[at : at + 1] = [row]
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
