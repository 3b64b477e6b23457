"""``truerank recommend``."""

from pathlib import Path

import numpy as np
import pytest

import truerank as tr
from tests.cli.running import refusal, run_here, truerank


@pytest.fixture
def given(factors: list[object], tmp_path: Path) -> list[object]:
    """Return `recommend` with its files, but without its output."""
    return ["recommend", *factors[1:4], "--train", tmp_path / "train.tsv"]


def test_recommend_and_evaluate(given: list[object], tmp_path: Path) -> None:
    out = tmp_path / "lists.trec"
    done = truerank(*given, "-k", "2", "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Recommendations(2 users, up to 2 of 3 items each)\nwritten to {str(out)!r}\n"
    assert out.read_text() == ("0 Q0 1 1 2 truerank\n0 Q0 0 2 1 truerank\n1 Q0 0 1 -1 truerank\n1 Q0 1 2 -2 truerank\n")
    assert run_here("evaluate", out, "--truth", tmp_path / "test.tsv", "-m", "rr@2").exit_code == 0


def test_standard_output_holds_the_lists_alone(given: list[object]) -> None:
    done = truerank(*given, "-o", "-")
    assert done.stdout.splitlines() == [
        '"user","item","rank","score"',
        "0,1,1,2",
        "0,0,2,1",
        "1,0,1,-1",
        "1,1,2,-2",
        "1,2,3,-3",
    ]
    assert "note: 2 users have fewer than 10 candidates" in done.stderr


def test_a_saved_model_has_names(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("user,item\nann,a\nann,b\nbob,b\neve,c\n")
    data = tr.read_interactions(tmp_path / "train.csv")
    tr.Popularity().fit(data).save(tmp_path / "model.npz")
    options = ["--model", tmp_path / "model.npz", "--train", tmp_path / "train.csv"]
    assert run_here("recommend", *options, "-k", 1, "-o", tmp_path / "lists.csv").exit_code == 0
    lists = tr.read_recommendations(tmp_path / "lists.csv", data)
    assert [lists.of_user(user).tolist() for user in ("ann", "bob", "eve")] == [["c"], ["a"], ["b"]]


def test_rows_of_factors_have_names(given: list[object], tmp_path: Path) -> None:
    (tmp_path / "users.txt").write_text("ann\nbob\n")
    (tmp_path / "items.txt").write_text("x\ny\nz\n")
    (tmp_path / "train.tsv").write_text("user\titem\nann\tz\n")
    names = ["--names", tmp_path / "users.txt", tmp_path / "items.txt"]
    assert run_here(*given, *names, "-k", 1, "-o", tmp_path / "lists.trec").exit_code == 0
    assert (tmp_path / "lists.trec").read_text() == "ann Q0 y 1 2 truerank\nbob Q0 x 1 -1 truerank\n"


def test_a_bias_is_added(given: list[object], tmp_path: Path) -> None:
    np.save(tmp_path / "bias.npy", np.array([9.0, 0.0, 0.0]))
    assert run_here(*given, "--bias", tmp_path / "bias.npy", "-k", 1, "-o", tmp_path / "lists.csv").exit_code == 0
    assert tr.read_recommendations(tmp_path / "lists.csv").items.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-k", "0"], "-k must be a whole number from 1 to 1,000,000,000,000, got '0'."),
        (["-o", "lists.xls"], "must end in .csv, .tsv, .jsonl, .parquet, .trec or .run, got 'lists.xls'."),
        (["--model", "model.npz"], "give either --factors or --model."),
    ],
)
def test_refusals(given: list[object], tmp_path: Path, options: list[str], message: str) -> None:
    assert refusal(*given, "-o", tmp_path / "lists.csv", *options).endswith(message)
    assert not (tmp_path / "lists.csv").exists()


def test_a_bias_needs_factors(tmp_path: Path) -> None:
    tr.Popularity().fit([[0, 1], [1]]).save(tmp_path / "model.npz")
    options = ["--model", tmp_path / "model.npz", "--bias", tmp_path / "bias.npy", "-o", tmp_path / "lists.csv"]
    assert refusal("recommend", *options) == "--bias applies only to --factors."


def test_candidates_and_what_a_model_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("user,item\nann,a\nann,b\nbob,b\neve,c\n")
    tr.Popularity().fit(tr.read_interactions(tmp_path / "train.csv")).save(tmp_path / "model.npz")
    (tmp_path / "stock.txt").write_text("c\na\nnew\n")
    options = ["--model", tmp_path / "model.npz", "--train", tmp_path / "train.csv", "-o", tmp_path / "lists.csv"]
    given = ["recommend", *options, "--candidates", tmp_path / "stock.txt"]
    assert "the scorer does not know item 'new'" in refusal(*given)
    assert run_here(*given, "--unknown", "last").exit_code == 0
    lists = tr.read_recommendations(tmp_path / "lists.csv")
    assert [lists.of_user(user).tolist() for user in ("ann", "bob")] == [["c", "new"], ["a", "c", "new"]]
    (tmp_path / "banned.csv").write_text("user,item\nbob,a\n")
    assert run_here(*given, "--unknown", "drop", "--exclude", tmp_path / "banned.csv").exit_code == 0
    lists = tr.read_recommendations(tmp_path / "lists.csv")
    assert [lists.of_user(user).tolist() for user in ("ann", "bob")] == [["c"], ["c"]]
