"""``truerank lists``."""

import json
from pathlib import Path

import pytest

from tests.cli.running import refusal, run_here, truerank

TRAIN = "user,item\nann,a\nann,b\nbob,b\nbob,c\neve,d\n"
RUN = "ann Q0 c 1 2.0 x\nann Q0 d 2 1.0 x\nbob Q0 a 1 3.0 x\nbob Q0 d 2 1.0 x\n"


@pytest.fixture
def given(tmp_path: Path) -> list[object]:
    (tmp_path / "train.csv").write_text(TRAIN)
    (tmp_path / "run.trec").write_text(RUN)
    return ["lists", tmp_path / "run.trec", "--train", tmp_path / "train.csv"]


def test_lists_are_described(given: list[object]) -> None:
    done = truerank(*given, "-m", "coverage@2,popularity@2", "-m", "entropy@1", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [(row["metric"], row["mean"]) for row in rows] == [
        ("coverage@2", 0.75),
        ("popularity@2", 1),
        ("entropy@1", 1),
    ]


def test_several_recommenders_and_a_truth(given: list[object], tmp_path: Path) -> None:
    (tmp_path / "truth.csv").write_text("user,item\nann,d\nbob,a\n")
    (tmp_path / "other.csv").write_text("user,item\nann,d\nann,c\nbob,d\nbob,c\n")
    options = ["--truth", tmp_path / "truth.csv", "-m", "rr@2,overlap@2"]
    done = run_here("lists", f"one={given[1]}", f"two={tmp_path / 'other.csv'}", *given[2:], *options)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [["rr@2", "overlap@2"], ["one", "0.7500"], ["two", "0.5000"]]
    assert "0.7500 ± 0.2500" in lines[2]  # of two items each, three are shared


def test_groups_of_users(given: list[object], tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("user,group\nann,new\nbob,old\n")
    done = run_here(*given, "-m", "popularity@1", "--by", tmp_path / "groups.csv", "--format", "json")
    rows = json.loads(done.stdout)["rows"]
    assert [(row["group"], row["mean"], row["n"]) for row in rows] == [("new", 1, 1), ("old", 1, 1)]


def test_groups_without_names_of_columns(given: list[object], tmp_path: Path) -> None:
    """The first user must not be taken for a header."""
    (tmp_path / "groups.csv").write_text("ann,new\nbob,old\n")
    message = refusal(*given, "-m", "popularity@1", "--by", tmp_path / "groups.csv")
    assert message.endswith("because all of it is text: give it a first line with the names user and group.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "coverage@3"], "these lists are cut at 2 items, so their first 3 are not known."),
        (["-m", "rr@2"], "rr@2 compares lists with relevant items: give these as --truth."),
        (["-m", "coverage@2", "-c", "time=x"], "--column has no role 'time'; choose from user, item, score, rank."),
    ],
)
def test_refusals(given: list[object], options: list[str], message: str) -> None:
    assert refusal(*given, *options) == message


def test_items_must_be_in_the_catalogue(given: list[object], tmp_path: Path) -> None:
    (tmp_path / "run.trec").write_text(RUN.replace("bob Q0 a", "bob Q0 x"))
    assert "run.trec', line 3: item 'x' is not in --train." in refusal(*given, "-m", "coverage@2")
