"""The command line, run as a user runs it."""

import csv
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import truerank as tr
from truerank.cli import commands as cli
from truerank.report import plots

RUN = "q1 Q0 a 1 3.0 x\nq1 Q0 b 2 2.0 x\nq2 Q0 a 1 1.5 x\nq2 Q0 c 2 1.0 x\n"
QRELS = "q1 0 b 1\nq2 0 c 1\nq2 0 z 1\n"


def truerank(*arguments: object, stdin: str | bytes | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "truerank", *map(str, arguments)]
    content = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(command, input=content, capture_output=True, env=os.environ | env, check=False)
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def lists(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "run.txt").write_text(RUN)
    (tmp_path / "qrels.txt").write_text(QRELS)
    return tmp_path / "run.txt", tmp_path / "qrels.txt"


def test_lists_and_truth(lists: tuple[Path, Path]) -> None:
    done = truerank("evaluate", lists[0], "--truth", lists[1], "-m", "recall@2", "-m", "RR@2", "--format", "json")
    assert done.returncode == 0
    cells = {cell["metric"]: cell["mean"] for cell in json.loads(done.stdout)["rows"]}
    assert cells == {"recall@2": 0.75, "rr@2": 0.5}


def test_a_list_from_standard_input(lists: tuple[Path, Path]) -> None:
    done = truerank("evaluate", "-", "-t", lists[1], "-m", "hr@1", "--format", "tsv", stdin=RUN)
    assert done.returncode == 0
    header, row = (line.split("\t") for line in done.stdout.splitlines())
    assert float(dict(zip(header, row, strict=True))["mean"]) == 0.0


@pytest.mark.parametrize("name", ["ranks.parquet", "ranks.npz", "ranks.csv"])
def test_files_of_ranks(tmp_path: Path, name: str) -> None:
    ranks = tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000)
    if name.endswith("csv"):
        (tmp_path / name).write_text("rank,n\n" + "".join(f"{rank},10000\n" for rank in ranks.rank))
    else:
        ranks.save(tmp_path / name)
    done = truerank("evaluate", tmp_path / name, "-m", "auc", "-m", "ap")
    assert done.returncode == 0
    assert "0.8431" in done.stdout
    assert "0.1014" in done.stdout
    assert "note: only 5 instances" in done.stdout


def test_ranks_from_standard_input(tmp_path: Path) -> None:
    tr.Ranks.from_ranks([1, 2], n=10).save(tmp_path / "ranks.parquet")
    done = truerank("evaluate", "-", "-m", "rr", "-f", "markdown", stdin=(tmp_path / "ranks.parquet").read_bytes())
    assert "| recommender | 0.7500 ± 0.2500 | 2 | 0.0% |" in done.stdout
    assert "note:" in done.stderr


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_values_of_each_instance(lists: tuple[Path, Path], tmp_path: Path, kind: str) -> None:
    out = tmp_path / f"values.{kind}"
    done = truerank("evaluate", lists[0], "-t", lists[1], "-m", "recall@2", "-m", "ap@2", "--per-instance", out)
    assert done.returncode == 0
    if kind == "parquet":
        assert pq.read_table(out).to_pydict() == {"instance": ["q1", "q2"], "recall@2": [1.0, 0.5], "ap@2": [0.5, 0.25]}
    elif kind == "jsonl":
        first = json.loads(out.read_text().splitlines()[0])
        assert first == {"instance": "q1", "recall@2": 1.0, "ap@2": 0.5}
    else:
        rows = list(csv.reader(out.read_text().splitlines(), delimiter="," if kind == "csv" else "\t"))
        assert rows[2] == ["q2", "0.5", "0.25"]


def test_metrics_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import truerank as tr\n@tr.register_metric\ndef inverse(rank, i, n_relevant, n):\n    return 1 / rank\n"
    )
    tr.Ranks.from_ranks([4], n=10).save(tmp_path / "ranks.npz")
    done = truerank("evaluate", tmp_path / "ranks.npz", "-m", "inverse", "--define", tmp_path / "mine.py", "-f", "json")
    assert json.loads(done.stdout)["rows"][0]["mean"] == 0.25


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "auc"], "auc needs the whole ranking, but these lists are cut at depth 2"),
        (["-m", "ndgc@2"], "unknown metric 'ndgc@2'; did you mean 'ndcg@2'?"),
        (["-m", "ap@2", "-c", "user=who"], "there is no column 'who' for the user"),
        (["-m", "ap@2", "-c", "user"], "write ROLE=COLUMN"),
        (["-m", "ap@2", "--depth", "0"], "must be a whole number from 1, or 'all', got '0'"),
        (["-m", "ap@2", "--per-instance", "values.xlsx"], "must end in .csv, .tsv, .jsonl or .parquet"),
        (["-m", "ap@2", "--ties", "alphabetical"], "'alphabetical' is not one of"),
        ([], "Missing option '-m'"),
    ],
)
def test_bad_input(lists: tuple[Path, Path], arguments: list[str], message: str) -> None:
    done = truerank("evaluate", lists[0], "-t", lists[1], *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_run_without_truth_is_not_ranks(lists: tuple[Path, Path]) -> None:
    done = truerank("evaluate", lists[0], "-m", "ap@2")
    assert done.returncode == 2
    assert "holds ranked lists (a TREC run), not ranks; their truth (the relevant items) is needed, too." in done.stderr


def test_missing_file() -> None:
    done = truerank("evaluate", "nowhere.parquet", "-m", "ap")
    assert (done.returncode, done.stderr) == (2, "truerank: there is no file 'nowhere.parquet'.\n")


@pytest.mark.parametrize(
    "command",
    [[], *([name] for name in ("evaluate", "rank", "sample", "correct", "consistency", "data", "marp", "reproduce"))],
)
def test_every_command_has_help(command: list[str]) -> None:
    done = truerank(*command, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage:")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell: str) -> None:
    assert "truerank" in truerank(_TRUERANK_COMPLETE=f"{shell}_source").stdout
    done = truerank(_TRUERANK_COMPLETE="bash_complete", COMP_WORDS="truerank evaluate -m nd", COMP_CWORD="3")
    assert "ndcg" in done.stdout


@pytest.fixture
def factors(tmp_path: Path) -> list[object]:
    np.save(tmp_path / "users.npy", np.array([[1.0], [-1.0]]))
    np.save(tmp_path / "items.npy", np.array([[1.0], [2.0], [3.0]]))
    (tmp_path / "train.tsv").write_text("user\titem\n0\t2\n")
    (tmp_path / "test.tsv").write_text("user\titem\n0\t0\n1\t0\n")
    pairs = ["--train", tmp_path / "train.tsv", "--test", tmp_path / "test.tsv"]
    return ["rank", "--factors", tmp_path / "users.npy", tmp_path / "items.npy", *pairs]


def test_rank_and_evaluate(factors: list[object], tmp_path: Path) -> None:
    done = truerank(*factors, "-o", tmp_path / "ranks.parquet")
    assert done.returncode == 0, done.stderr
    ranks = tr.Ranks.load(tmp_path / "ranks.parquet")
    assert ranks == tr.Ranks.from_ranks([2, 1], n=[2, 3], ids=[0, 1])
    assert truerank("evaluate", tmp_path / "ranks.parquet", "-m", "rr").returncode == 0


def test_rank_checks_its_input_before_it_works(factors: list[object], tmp_path: Path) -> None:
    done = truerank(*factors, "-o", tmp_path / "ranks.xls")
    assert (done.returncode, done.stdout) == (2, "")
    assert "must end in .parquet or .npz" in done.stderr
    (tmp_path / "test.tsv").write_text("user\titem\n0\t3\n")
    done = truerank(*factors, "-o", tmp_path / "ranks.npz")
    assert done.returncode == 2
    assert "test.tsv', line 2: the item must lie in 0..2, got 3." in done.stderr
    (tmp_path / "items.npy").write_bytes(b"not an array")
    done = truerank(*factors, "-o", tmp_path / "ranks.npz")
    assert done.returncode == 2
    assert "can't read an array from" in done.stderr
    assert not (tmp_path / "ranks.npz").exists()


@pytest.fixture
def toy(tmp_path: Path) -> dict[str, Path]:
    ranks = {"A": [100] * 5, "B": [40, 40, 8437, 9266, 4482], "C": [212, 2, 743, 5342, 1548]}
    for name, numbers in ranks.items():
        tr.Ranks.from_ranks(numbers, n=10_000).save(tmp_path / f"{name}.parquet")
    return {name: tmp_path / f"{name}.parquet" for name in ranks}


def test_sample_and_correct(toy: dict[str, Path], tmp_path: Path) -> None:
    done = truerank("sample", toy["C"], "-m", "99", "--seed", "3", "-o", tmp_path / "sampled.npz")
    assert done.returncode == 0, done.stderr
    sampled = tr.Ranks.load(tmp_path / "sampled.npz")
    assert sampled == tr.UniformSampling(99).draw(tr.Ranks.load(toy["C"]), rng=3)
    done = truerank("correct", tmp_path / "sampled.npz", "-m", "ap~bv(0.1)", "-f", "json")
    assert json.loads(done.stdout)["rows"][0]["mean"] == tr.estimate(sampled, "ap~bv(0.1)").mean


def test_correct_somebody_elses_study(tmp_path: Path) -> None:
    (tmp_path / "study.csv").write_text("rank\n1\n17\n3\n")
    arguments = [tmp_path / "study.csv", "-m", "recall@10~cls", "-f", "json"]
    done = truerank("correct", *arguments, "--sampled", "100", "--candidates", "3541", "--replace")
    expected = tr.estimate(tr.Ranks.from_sampled([1, 17, 3], m=100, n=3541, replace=True), "recall@10~cls")
    assert json.loads(done.stdout)["rows"][0]["mean"] == expected.mean
    done = truerank("correct", *arguments)
    assert done.returncode == 2
    assert "does not say how many candidates there were" in done.stderr


def test_consistency(toy: dict[str, Path]) -> None:
    named = [f"{name}={path}" for name, path in toy.items()]
    done = truerank("consistency", *named, "-m", "ap", "--replace", "--largest", "1000")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[1:6] == [
        "m >= 1 A > C > B",
        "m >= 73 A > B > C",
        "m >= 281 A > C > B",
        "m >= 438 C > A > B",
        "m >= 954 C > B > A",
    ]
    assert lines[-1] == "exact order from m = 954"
    done = truerank("consistency", toy["A"], toy["B"], "-m", "ap")
    assert done.returncode == 2
    assert "write NAME=RANKS" in done.stderr


@pytest.mark.parametrize(
    ("size", "message"),
    [("0", "`m` must be a whole number from 1"), ("10000", "at most the number of irrelevant candidates")],
)
def test_bad_sample_sizes(toy: dict[str, Path], tmp_path: Path, size: str, message: str) -> None:
    done = truerank("sample", toy["A"], "-m", size, "-o", tmp_path / "sampled.npz")
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "sampled.npz").exists()


def test_reproduce_shows_tables_and_writes_cells_and_figures(tmp_path: Path) -> None:
    figures, cells = tmp_path / "figures", tmp_path / "cells.json"
    done = truerank("reproduce", "krichene-rendle", "--json", cells, "--figures", figures)
    assert done.returncode == 0, done.stderr
    assert "C > A = B" in done.stdout
    assert "Of 84 cells" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"The figures are in '{figures}'")
    assert sorted(path.name for path in figures.iterdir()) == [f"figure-{number}.svg" for number in range(1, 7)]
    records = json.loads(cells.read_text())["cells"]
    counts = Counter(record["table"] for record in records)
    assert counts == {1: 12, 2: 12, 3: 96, 4: 84}
    assert {"table", "row", "column", "published", "ours", "standard_error", "verdict"} <= set(records[0])
    assert records[0]["printed"] == "0.990"


def test_reproduce_refuses_before_it_starts(tmp_path: Path) -> None:
    done = truerank("reproduce", "krichene-rendle", "--json", tmp_path / "nowhere" / "cells.json")
    assert done.returncode == 2
    assert "there is no folder" in done.stderr
    done = truerank("reproduce", "krichene-rendle", "--data", tmp_path)
    assert done.returncode == 2
    assert str(tmp_path) in done.stderr
    assert done.stdout == ""


def test_figure_formats_are_those_of_the_plots() -> None:
    assert cli.FIGURE_FORMATS == plots.FORMATS


def test_a_file_that_cannot_be_written_is_named(toy: dict[str, Path], tmp_path: Path) -> None:
    done = truerank("sample", toy["A"], "-m", "9", "-o", tmp_path / "nowhere" / "sampled.npz")
    assert done.returncode == 2
    assert f"'{tmp_path}/nowhere/sampled.npz': there is no directory '{tmp_path}/nowhere'.\n" in done.stderr
