"""``truerank evaluate``."""

import csv
import json
from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
import pytest

import truerank as tr
from tests.cli.conftest import RUN
from tests.cli.running import refusal, run_here, truerank
from truerank.cli import evaluation_commands, options
from truerank.evaluation.per_instance import Ties
from truerank.formats.text_files import Format


def means(output: str) -> dict[tuple[str, str], float]:
    return {(row["recommender"], row["metric"]): row["mean"] for row in json.loads(output)["rows"]}


def test_lists_and_truth(lists: tuple[Path, Path]) -> None:
    done = run_here("evaluate", lists[0], "--truth", lists[1], "-m", "recall@2", "-m", "RR@2", "--format", "json")
    assert done.exit_code == 0
    assert means(done.stdout) == {("run", "recall@2"): 0.75, ("run", "rr@2"): 0.5}


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
    done = run_here("evaluate", tmp_path / name, "-m", "auc", "-m", "ap")
    assert done.exit_code == 0
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
    done = run_here("evaluate", lists[0], "-t", lists[1], "-m", "recall@2", "-m", "ap@2", "--per-instance", out)
    assert done.exit_code == 0
    if kind == "parquet":
        assert pq.read_table(out).to_pydict() == {"instance": ["q1", "q2"], "recall@2": [1.0, 0.5], "ap@2": [0.5, 0.25]}
    elif kind == "jsonl":
        first = json.loads(out.read_text().splitlines()[0])
        assert first == {"instance": "q1", "recall@2": 1.0, "ap@2": 0.5}
    else:
        rows = list(csv.reader(out.read_text().splitlines(), delimiter="," if kind == "csv" else "\t"))
        assert rows[2] == ["q2", "0.5", "0.25"]


def test_values_on_standard_output_stand_alone(lists: tuple[Path, Path]) -> None:
    done = run_here("evaluate", lists[0], "-t", lists[1], "-m", "ap@2", "--per-instance", "-")
    assert list(csv.reader(done.stdout.splitlines())) == [["instance", "ap@2"], ["q1", "0.5"], ["q2", "0.25"]]
    assert "0.3750" in done.stderr


def test_random_ties_are_the_same_in_table_and_values(tmp_path: Path) -> None:
    ranks = tr.Ranks(above=[0] * 50, tied=[9] * 50, n_candidates=10)
    ranks.save(tmp_path / "ranks.npz")
    out = tmp_path / "values.csv"
    done = run_here(
        "evaluate", tmp_path / "ranks.npz", "-m", "rr", "--ties", "random", "-f", "json", "--per-instance", out
    )
    values = [float(row["rr"]) for row in csv.DictReader(out.read_text().splitlines())]
    assert len(set(values)) > 5
    assert means(done.stdout)["ranks", "rr"] == pytest.approx(sum(values) / 50, abs=1e-12)


def test_several_recommenders_by_name(tmp_path: Path) -> None:
    for name, places in {"a": [1, 2], "b": [4, 4]}.items():
        tr.Ranks.from_ranks(places, n=9, ids=["x", "y"]).save(tmp_path / f"{name}.npz")
    out = tmp_path / "values.csv"
    files = [f"als={tmp_path}/a.npz", tmp_path / "b.npz"]
    done = run_here("evaluate", *files, "-m", "rr,recall@2", "-f", "json", "--per-instance", out)
    expected = {("als", "rr"): 0.75, ("als", "recall@2"): 1.0, ("b", "rr"): 0.25, ("b", "recall@2"): 0.0}
    assert means(done.stdout) == expected
    assert "different instances" not in done.output
    rows = list(csv.reader(out.read_text().splitlines()))
    assert rows[0] == ["recommender", "instance", "rr", "recall@2"]
    assert rows[1:] == [
        ["als", "x", "1", "1"],
        ["als", "y", "0.5", "1"],
        ["b", "x", "0.25", "0"],
        ["b", "y", "0.25", "0"],
    ]


def test_several_runs_share_one_truth(lists: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "best.txt").write_text("q1 Q0 b 1 9 x\nq2 Q0 z 1 9 x\n")
    done = run_here("evaluate", lists[0], tmp_path / "best.txt", "-t", lists[1], "-m", "hr@1", "-f", "json")
    assert means(done.stdout) == {("run", "hr@1"): 0.0, ("best", "hr@1"): 1.0}


def test_different_instances_are_noted(tmp_path: Path) -> None:
    tr.Ranks.from_ranks([1, 2], n=9, ids=["x", "y"]).save(tmp_path / "a.npz")
    tr.Ranks.from_ranks([1, 2], n=9, ids=["x", "z"]).save(tmp_path / "b.npz")
    done = run_here("evaluate", tmp_path / "a.npz", tmp_path / "b.npz", "-m", "rr")
    assert done.exit_code == 0
    assert (
        "note: the rows are about different instances and can't be compared: 1 of 'a' are not in 'b', for instance 'y'"
        in done.stdout
    )


def test_metrics_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import truerank as tr\n@tr.register\ndef inverse(rank, i, n_relevant, n):\n    return 1 / rank\n"
    )
    tr.Ranks.from_ranks([4], n=10).save(tmp_path / "ranks.npz")
    done = truerank("evaluate", tmp_path / "ranks.npz", "-m", "inverse", "--define", tmp_path / "mine.py", "-f", "json")
    assert means(done.stdout) == {("ranks", "inverse"): 0.25}


@pytest.mark.parametrize(("tool", "expected"), [(None, 0.375), ("trec_eval", 1.0), ("ir-measures", 0.5)])
def test_convention(tmp_path: Path, tool: str | None, expected: float) -> None:
    """Both tools put the larger id first among equal scores; only one of them leaves out users without a list."""
    (tmp_path / "run.trec").write_text("q1 Q0 a 1 2.0 x\nq1 Q0 b 2 2.0 x\n")
    (tmp_path / "qrels.trec").write_text("q1 0 b 1\nq2 0 c 1\n")
    chosen = ["--convention", tool] if tool else []
    metric = "rr" if tool else "rr@2"
    done = run_here(
        "evaluate", tmp_path / "run.trec", "-t", tmp_path / "qrels.trec", "-m", metric, "-f", "json", *chosen
    )
    assert means(done.stdout) == {("run", metric): expected}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ny = 1 / 0\n", "fails in line 2: ZeroDivisionError: division by zero"),
        ("x = 1\n\ny = (\n", "fails in line 3: SyntaxError: '(' was never closed"),
        (None, "No such file or directory"),
    ],
)
def test_a_bad_definition(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    assert message in refusal("evaluate", "x.npz", "-m", "ap", "--define", tmp_path / "mine.py")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "auc"], "auc needs the whole ranking, but these ranks are cut at depth 2"),
        (["-m", "ndgc@2"], "unknown metric 'ndgc@2'; did you mean 'ndcg@2'?"),
        (["-m", "ap@2,ndgc@2"], "unknown metric 'ndgc@2'; did you mean 'ndcg@2'?"),
        (["-m", "ap@2,"], "ap is written 'ap@k' or 'ap(divisor)@k', got 'ap@2,'"),
        (["-m", f"ap@{10**20}"], "the k of ap@k must be a whole number from 1"),
        (["-m", f"marp@5,{10**20}"], "marp@k,k must be ascending whole numbers from 1"),
        (["-m", "ap@" + "9" * 900], "ap@"),
        (["-m", "a" * 32_000], "--metric takes up to 1,000 characters at once, got 32,000."),
        (["-m", "ap@2", "-c", "user=who"], "there is no column 'who' for the user"),
        (["-m", "ap@2", "-c", "user"], "--column takes ROLE=NAME, as in user=customer, got 'user'."),
        (["-m", "ap@2", "-c", "user=a", "-c", "user=b"], "--column gives the user two columns, 'a' and 'b'."),
        (
            ["-m", "ap@2", "--depth", "0"],
            "--depth must be a whole number from 1 to 1,000,000,000,000, or 'all', got '0'.",
        ),
        (["-m", "ap@2", "--depth", "1"], "--depth must be at least the length of the longest list (2), got 1."),
        (
            ["-m", "ap@2", "--depth", "all"],
            "with --depth all each list holds every candidate, but item 'z' of user 'q2'",
        ),
        (["-m", "ap@2", "--depth", str(10**20)], "--depth must be a whole number from 1 to"),
        (["-m", "ap@2", "--depth", "²"], "--depth must be a whole number from 1 to"),
        (["-m", "ap@2", "--depth", "9" * 5_000], "or 'all', got '999999999"),
        (["-m", "f1@2", "--convention", "trec_eval"], "f1@2 can't be computed as trec_eval does; choose from"),
        (
            ["-m", "ap@2", "--convention", "ranx", "--per-instance", "values.csv"],
            "--convention gives one number per metric and recommender: leave out --per-instance.",
        ),
        (["-m", "ap@2", "--convention", "ranx", "--by", "groups.csv"], "leave out --by."),
        (["-m", "ap@2", "--seed", "-1"], "--seed must be a whole number from 0 to 999,999,999,999,999,999, got '-1'."),
        (["-m", "ap@2", "--per-instance", "values.xlsx"], "must end in .csv, .tsv, .jsonl or .parquet"),
        (["-m", "ap@2", "--per-instance", "nowhere/values.csv"], "there is no directory 'nowhere'"),
    ],
)
def test_bad_input(lists: tuple[Path, Path], arguments: list[str], message: str) -> None:
    assert message in refusal("evaluate", lists[0], "-t", lists[1], *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["-m", "ap@2", "--ties", "alphabetical"], "'alphabetical' is not one of"), ([], "Missing option '-m'")],
)
def test_bad_usage(lists: tuple[Path, Path], arguments: list[str], message: str) -> None:
    done = run_here("evaluate", lists[0], "-t", lists[1], *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_numbers_of_thousands_of_digits_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "ranks.csv").write_text(f"rank,n\n{'1' * 5_000},10\n")
    assert refusal("evaluate", tmp_path / "ranks.csv", "-m", "ap")


def test_a_run_without_truth_is_not_ranks(lists: tuple[Path, Path]) -> None:
    needed = "holds ranked lists, not ranks; their --truth (the relevant items) is also needed"
    assert needed in refusal("evaluate", lists[0], "-m", "ap@2")
    assert refusal("evaluate", lists[0], "-m", "ap@2", "--depth", "5").startswith(
        "--depth applies only to ranked lists"
    )


def test_text_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text("ann,x\nann,y\nbob,y\n")
    (tmp_path / "truth.csv").write_text("user,item\nann,y\nbob,y\n")
    arguments = ["evaluate", tmp_path / "run.csv", "-t", tmp_path / "truth.csv", "-m", "rr@2", "-f", "json"]
    arguments += ["-c", "user=0", "-c", "item=1"]
    wanted = "give --format-of run=csv-header or --format-of run=csv-no-header."
    assert refusal(*arguments).endswith(wanted)
    done = run_here(*arguments, "--format-of", "run=csv-no-header")
    assert means(done.stdout) == {("run", "rr@2"): 0.75}


def test_a_truth_that_may_have_two_formats(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text("user,item\n1,10\n1,20\n2,20\n2,10\n")
    (tmp_path / "truth.txt").write_text("1 20 5 978300760\n2 10 3 978302109\n")
    arguments = ["evaluate", tmp_path / "run.csv", "-t", tmp_path / "truth.txt", "-m", "rr@2", "-f", "json"]
    assert refusal(*arguments).endswith("choose with --format-of truth=trec or --format-of truth=movielens.")
    done = run_here(*arguments, "--format-of", "truth=movielens")
    assert means(done.stdout) == {("run", "rr@2"): 0.5}
    formats = "csv, csv-header, csv-no-header, movielens, trec"
    rule = f"--format-of takes run or truth with one of {formats}, as in truth=trec, each once, got"
    for wrong in ("truth=xml", "trec", "ranks=csv"):
        assert refusal(*arguments, "--format-of", wrong) == f"{rule} {wrong!r}."
    assert refusal("evaluate", tmp_path / "run.csv", "-m", "ap", "--format-of", "run=csv").startswith(
        "--format-of applies"
    )


def test_standard_input_serves_once(lists: tuple[Path, Path]) -> None:
    message = "--truth can be standard input only with a single run, which is a file."
    assert refusal("evaluate", "-", "-t", "-", "-m", "ap@2", stdin=RUN) == message
    assert refusal("evaluate", lists[0], f"b={lists[0]}", "-t", "-", "-m", "ap@2", stdin=RUN) == message


def test_missing_file() -> None:
    assert refusal("evaluate", "nowhere.parquet", "-m", "ap") == "there is no file 'nowhere.parquet'."


def test_ties_are_those_of_the_library() -> None:
    assert get_args(Ties) == evaluation_commands.TIES


def test_formats_are_those_of_the_library() -> None:
    assert get_args(Format) == options.TEXT_FORMATS
