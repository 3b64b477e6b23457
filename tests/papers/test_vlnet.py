"""The VideoLectures.Net challenge: the examples of its text, its files, and what is wrong with them."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import truerank as tr
from tests import reference
from tests.cli.running import run_here, truerank
from truerank.metrics import MARp
from truerank.papers.vlnet import CUTOFFS, read_vlnet

Files = Callable[[str | bytes, str | bytes], tuple[Path, Path]]


def pairs(lectures: range | list[int], scores: range | list[int]) -> str:
    return ",".join(f"{lecture}|{score}" for lecture, score in zip(lectures, scores, strict=True))


SECOND_SOLUTION = (
    f"1:1:{pairs(range(1, 11), [100, 99, 98, 97, 96, 96, 96, 93, 92, 91])}\n"
    f"2:0:{pairs(range(1, 8), range(50, 43, -1))}\n"
)
SECOND_SUBMISSION = "1: 1, 2, 3, 7, 20, 6, 21, 8, 22, 23\n2: 23, 2, 3, 20, 10, 6, 7, 8, 21, 22\n"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    def write(solution: str | bytes, submission: str | bytes) -> tuple[Path, Path]:
        paths = tmp_path / "solution.txt", tmp_path / "submission.txt"
        for path, content in zip(paths, (solution, submission), strict=True):
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return paths

    return write


def test_the_first_example_of_the_text(files: Files) -> None:
    solution = f"1:1:{pairs(range(1, 11), range(100, 90, -1))}\n2:0:{pairs(range(101, 111), range(50, 40, -1))}\n"
    submission = "1: 1, 2, 3, 20, 10, 6, 7, 8, 21, 22\n2: 101, 102, 103, 50, 30, 106, 107, 108, 109, 52\n"
    ranks = read_vlnet(*files(solution, submission))["all"]
    np.testing.assert_allclose(tr.values(ranks, "rp@5"), [3 / 5, 3 / 5], rtol=1e-12)
    np.testing.assert_allclose(tr.values(ranks, "rp@10"), [7 / 10, 7 / 10], rtol=1e-12)
    assert tr.estimate(ranks, "marp@5,10").mean == pytest.approx(0.65, rel=1e-12)


def test_the_second_example_of_the_text(files: Files) -> None:
    ranks = read_vlnet(*files(SECOND_SOLUTION, SECOND_SUBMISSION))
    np.testing.assert_allclose(tr.values(ranks["all"], "rp@5"), [4 / 5, 2 / 5], rtol=1e-12)
    np.testing.assert_allclose(tr.values(ranks["all"], "rp@10"), [6 / 10, 4 / 7], rtol=1e-12)
    table = tr.evaluate(ranks, "marp@5,10")
    means = [table[name, "marp@5,10"].mean for name in ("all", "leaderboard", "rest")]
    assert means == pytest.approx([(0.7 + 17 / 35) / 2, 0.7, 17 / 35], rel=1e-12)


def test_solutions_need_not_be_sorted(files: Files) -> None:
    shuffled = f"2:0:{pairs([7, 3, 1, 2, 6, 5, 4], [44, 48, 50, 49, 45, 46, 47])}\n" + SECOND_SOLUTION.splitlines()[0]
    ranks = read_vlnet(*files(shuffled, SECOND_SUBMISSION))["all"]
    assert ranks.ids is not None
    assert ranks.ids.tolist() == [2, 1]
    np.testing.assert_allclose(tr.values(ranks, "marp@5,10"), [17 / 35, 0.7], rtol=1e-12)


def test_random_files_against_the_slow_definition(files: Files) -> None:
    """Unsorted solutions with ties, lists of any length with repeats, empty lists and empty solutions."""
    rng = np.random.default_rng(3)
    solution, submission, expected = "", "", []
    for query in range(200):
        lectures = rng.choice(60, rng.integers(0, 40), replace=False)
        grades = rng.integers(1, 12, lectures.size) / 2
        listed = rng.choice(60, rng.integers(0, 35))
        solution += f"{query}:{query % 2}:{pairs(lectures.tolist(), grades.tolist())}\n"
        submission += f"{query}: {', '.join(map(str, listed))}\n"
        known, seen = dict(zip(lectures.tolist(), grades.tolist(), strict=True)), set[int]()
        ranking = []
        for lecture in listed.tolist():
            ranking.append(0.0 if lecture in seen else known.get(lecture, 0.0))
            seen.add(lecture)
        missed = [grade for lecture, grade in known.items() if lecture not in seen]
        ranking += [0.0] * (30 - len(ranking)) + missed
        expected.append(reference.marp(ranking, CUTOFFS[1]) if known else np.nan)
    ranks = read_vlnet(*files(solution, submission), depth=30)
    np.testing.assert_allclose(tr.values(ranks["all"], MARp(CUTOFFS[1])), expected, rtol=1e-12)
    assert (len(ranks["leaderboard"]), len(ranks["rest"])) == (100, 100)
    result = tr.estimate(ranks["all"], "marp@5,10")
    assert result.n_undefined == np.isnan(expected).sum() > 0


def test_a_repeated_lecture_counts_once_but_takes_its_place(files: Files) -> None:
    ranks = read_vlnet(*files("1:0:5|3,6|2,7|1\n", "1: 5, 5, 6, 7\n"))["all"]
    assert tr.values(ranks, "rp@2")[0] == 1 / 2
    assert tr.values(ranks, "rp@3")[0] == pytest.approx(2 / 3)


def test_queries_that_are_missing_from_the_submission(files: Files) -> None:
    paths = files(SECOND_SOLUTION, SECOND_SUBMISSION.splitlines()[0] + "\n")
    message = r"query 2 \(line 2 of the solution\) has no line in the submission; add one, or score the 1 missing as 0"
    with pytest.raises(tr.InputError, match=message):
        read_vlnet(*paths)
    ranks = read_vlnet(*paths, missing="zero")["all"]
    np.testing.assert_allclose(tr.values(ranks, "marp@5,10"), [0.7, 0.0], rtol=1e-12)
    with pytest.raises(tr.InputError, match="`missing` must be 'refuse' or 'zero', got 'drop'"):
        read_vlnet(*paths, missing="drop")  # type: ignore[arg-type]


def test_queries_that_the_solution_lacks_are_left_out_and_noted(files: Files) -> None:
    ranks = read_vlnet(*files("1:0:5|3\n", "2: 5\n1: 5\n"))["all"]
    assert len(ranks) == 1
    assert ranks.notes[0] == "1 listed user is not in the truth and is left out"


def test_blanks_mean_nothing(files: Files) -> None:
    plain = read_vlnet(*files("1:1:5|3,6|2\n2:0:\n", "1:6,5\n2:\n"))["all"]
    assert read_vlnet(*files(" 1 : 1 :5 | 3 ,\t6|2\n2:0:  \n\n", "1 :  6 ,5\n2: \t\n"))["all"] == plain


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7 1 2 3", "there must be a colon, as in 'id: lecture, lecture, ...', got '7 1 2 3'"),
        ("", "there must be a colon"),
        ("seven: 1, 2", "the query must be a whole number of at most 9 digits, got 'seven'"),
        ("7: 1, lecture, 3", "the lecture must be a whole number of at most 9 digits, got 'lecture'"),
        ("7: 1,, 3", "the lecture must be a whole number of at most 9 digits, got ''"),
        ("7: 1 2, 3", "the lecture must be a whole number of at most 9 digits, got '1 2'"),
        ("7: 1.5", "the lecture must be a whole number of at most 9 digits, got '1.5'"),
        ("7: -1", "the lecture must be a whole number of at most 9 digits, got '-1'"),
        ("7: 12345678901", "the lecture must be a whole number of at most 9 digits, got '12345678901'"),
        ("7: 1: 2", "the lecture must be a whole number of at most 9 digits, got '1: 2'"),
        ("1: 3, 4", "query 1 already has a line, line 1"),
        ("7: 1, 2\r", "the line ends in CR LF, as on Windows; convert the file to LF line ends"),
        ("7: 1, é".encode("latin-1"), "the line has the byte 0xe9; save the file as plain text"),
        ("7: 1, 2".encode("utf-16"), "the line has the byte 0xff; save the file as plain text"),
        (b"\xef\xbb\xbf7: 1, 2", "the line has the byte 0xef; save the file as plain text"),
    ],
)
def test_malformed_submissions(files: Files, line: str | bytes, message: str) -> None:
    content = b"1: 5, 6\n" + (line.encode() if isinstance(line, str) else line) + b"\n9: 4\n"
    solution, submission = files("1:0:5|3\n", content)
    with pytest.raises(tr.InputError) as error:
        read_vlnet(solution, submission)
    assert str(error.value).startswith(f"{str(submission)!r}, line 2: {message}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7:0 5|3", "there must be two colons, as in 'id:flag:lecture|score,...', got '7:0 5|3'"),
        ("7:0:5|3:4|2", "there must be two colons"),
        ("x:0:5|3", "the query must be a whole number of at most 9 digits, got 'x'"),
        ("1e3:0:5|3", "the query must be a whole number of at most 9 digits, got '1e3'"),
        ("7.0:0:5|3", "the query must be a whole number of at most 9 digits, got '7.0'"),
        ("7:1e0:5|3", "the flag must be a whole number of at most 9 digits, got '1e0'"),
        ("7:0:1e3|3", "the lecture must be a whole number of at most 9 digits, got '1e3'"),
        ("7:0:5|3,+6|2", "the lecture must be a whole number of at most 9 digits, got '+6'"),
        ("7:2:5|3", "the flag must be 0 or 1, got '2'"),
        ("7::5|3", "the flag must be a whole number of at most 9 digits, got ''"),
        ("7:0:five|3", "the lecture must be a whole number of at most 9 digits, got 'five'"),
        ("7:0:5|3,6", "expected lecture|score, got '6'"),
        ("7:0:5,6", "expected lecture|score, got '5'"),
        ("7:0:5|3|4", "the score of lecture 5 must be a number of at least 0, got '3|4'"),
        ("7:0:5|3,", "expected lecture|score, got ''"),
        ("7:0:5|", "the score of lecture 5 must be a number of at least 0, got ''"),
        ("7:0:5|-3", "the score of lecture 5 must be a number of at least 0, got '-3'"),
        ("7:0:5|nan", "the score of lecture 5 must be a number of at least 0, got 'nan'"),
        ("7:0:5|inf", "the score of lecture 5 must be a number of at least 0, got 'inf'"),
        ("7:0:5|1e999", "the score of lecture 5 must be a number of at least 0, got '1e999'"),
        ("7:0:5|3,6|2,5|1", "lecture 5 is listed twice"),
        ("1:0:5|3", "query 1 already has a line, line 1"),
        ("7:0:5|3\r", "the line ends in CR LF"),
        ("7:0:5|3,é|4", "the line has the byte 0xc3"),
    ],
)
def test_malformed_solutions(files: Files, line: str, message: str) -> None:
    solution, submission = files(f"1:0:5|3.5,6|0\n{line}\n9:1:4|1\n", "1: 5, 6\n")
    with pytest.raises(tr.InputError) as error:
        read_vlnet(solution, submission)
    assert str(error.value).startswith(f"{str(solution)!r}, line 2: {message}")


def test_the_command_answers_malformed_lines_with_one_sentence(files: Files) -> None:
    solution, submission = files("1:0:5|3\n", "1: 5\r\n")
    done = run_here("marp", "--solution", solution, "--submission", submission, "--task", "2")
    message = "the line ends in CR LF, as on Windows; convert the file to LF line ends."
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"truerank: {str(submission)!r}, line 1: {message}\n"


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_empty_and_missing_files(files: Files, content: str, tmp_path: Path) -> None:
    solution, submission = files("1:0:5|3\n", content)
    with pytest.raises(tr.InputError, match=r"submission.txt' is empty\."):
        read_vlnet(solution, submission)
    with pytest.raises(tr.InputError, match=r"there is no file '.*nowhere\.txt'"):
        read_vlnet(tmp_path / "nowhere.txt", submission)


def test_the_command(files: Files, tmp_path: Path) -> None:
    solution, submission = files(SECOND_SOLUTION + "3:0:\n", SECOND_SUBMISSION + "3: 4\n")
    names = ["marp", "--solution", solution, "--submission", submission]
    done = truerank(*names, "--cutoffs", "5,10", "--format", "json", "--per-instance", tmp_path / "out.csv")
    rows = {row["recommender"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["all"]["mean"] == pytest.approx((0.7 + 17 / 35) / 2, rel=1e-15)
    assert [rows[name]["n"] for name in ("all", "leaderboard", "rest")] == [2, 1, 1]
    assert "note: all: marp@5,10 is undefined for 1 of 3 instances" in done.stderr
    values = list(csv.reader((tmp_path / "out.csv").read_text().splitlines()))
    assert values[0] == ["instance", "marp@5,10", "rp@5", "rp@10"]
    assert [float(cell) for cell in values[2]] == pytest.approx([2, 17 / 35, 2 / 5, 4 / 7])
    assert values[3] == ["3", "", "", ""]
    shown = run_here(*names, "--task", "2").stdout
    assert shown.splitlines()[1].split()[:4] == ["all", "0.5929", "±", "0.1071"]
    assert "marp@5,10,15,20,25,30" in run_here(*names, "--task", "1").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give the cut-offs either by --cutoffs, as in --cutoffs 5,10, or by --task 1 or 2"),
        (["--task", "1", "--cutoffs", "5"], "give the cut-offs either by --cutoffs"),
        (["--cutoffs", "5,ten"], "--cutoffs must be a whole number from 1 to 1,000,000,000,000, or several"),
        (["--cutoffs", "0"], "or several with commas, got '0'"),
        (["--task", "3"], "'3' is not one of '1', '2'"),
    ],
)
def test_bad_options(files: Files, options: list[str], message: str) -> None:
    solution, submission = files(SECOND_SOLUTION, SECOND_SUBMISSION)
    done = run_here("marp", "--solution", solution, "--submission", submission, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
