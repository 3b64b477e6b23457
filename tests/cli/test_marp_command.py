"""``truerank marp``; what it scores is tested with the challenge."""

import json
from pathlib import Path

import pytest

from tests.cli.running import refusal, run_here


@pytest.fixture
def files(tmp_path: Path) -> list[object]:
    (tmp_path / "solution.txt").write_text("1:1:1|9,2|8\n2:0:3|9\n")
    (tmp_path / "submission.txt").write_text("1: 1, 2\n2: 4, 5\n")
    return ["marp", "--solution", tmp_path / "solution.txt", "--submission", tmp_path / "submission.txt"]


def test_cutoffs_in_any_order_and_spacing(files: list[object]) -> None:
    done = run_here(*files, "--cutoffs", "2, 1", "-f", "json")
    rows = {row["recommender"]: row for row in json.loads(done.stdout)["rows"]}
    assert {name: (row["metric"], row["mean"]) for name, row in rows.items()} == {
        "all": ("marp@1,2", 0.5),
        "leaderboard": ("marp@1,2", 1.0),
        "rest": ("marp@1,2", 0.0),
    }


@pytest.mark.parametrize(
    "cutoffs", ["5 10", "5~bv(0.1)", "5,", "", "0", "-1", "5,²", "99999999999999999999", "9" * 5_000]
)
def test_bad_cutoffs(files: list[object], cutoffs: str) -> None:
    message = refusal(*files, "--cutoffs", cutoffs)
    assert message.startswith(
        "--cutoffs must be a whole number from 1 to 1,000,000,000,000, or several with commas, got"
    )


def test_cutoffs_or_a_task(files: list[object]) -> None:
    assert "either by --cutoffs" in refusal(*files)
    assert "either by --cutoffs" in refusal(*files, "--cutoffs", "5", "--task", "1")


def test_a_missing_query_is_told_in_options(files: list[object], tmp_path: Path) -> None:
    (tmp_path / "submission.txt").write_text("1: 1, 2\n")
    message = refusal(*files, "--cutoffs", "5")
    assert "--missing zero" in message
    assert "missing=" not in message
