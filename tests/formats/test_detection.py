"""Formats are detected where only one fits; where two do, the reader asks."""

from pathlib import Path
from typing import Any

import pytest

import truerank as tr
from truerank.data.event_files import read_pairs

LISTS = {1: [10, 20, 30], 2: [10, 20, 30]}


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    """User, item, rating and time without a header, as MovieLens 100K and NCF have them."""
    path = tmp_path / "test.rating"
    path.write_text("1\t20\t5\t978300760\n2\t30\t4\t978300761\n")
    return path


def test_four_columns_of_numbers_as_a_truth_are_ambiguous(ratings: Path) -> None:
    with pytest.raises(tr.InputError) as error:
        tr.read_lists(LISTS, ratings)
    assert str(error.value) == (
        f"{str(ratings)!r} has four columns of numbers and no header, which may be TREC qrels (user, iteration, item, "
        "relevance) or MovieLens ratings (user, item, rating, time): choose with truth_format='trec' or "
        "truth_format='movielens'."
    )
    as_ratings = tr.read_lists(LISTS, ratings, truth_format="movielens")
    assert tr.values(as_ratings, "rr@3").tolist() == [1 / 2, 1 / 3]
    numbered = tr.read_lists(LISTS, ratings, user=0, item=1)
    assert numbered == as_ratings
    ratings.write_text("1\t7\t20\t1\n2\t8\t30\t2\n")
    as_qrels = tr.read_lists(LISTS, ratings, truth_format="trec")
    assert tr.values(as_qrels, "rr@3").tolist() == [1 / 2, 1 / 3]
    assert as_qrels.grades is not None
    assert as_qrels.grades.tolist() == [1, 2]


def test_four_columns_of_numbers_are_events_where_events_are_read(ratings: Path) -> None:
    data = tr.read_interactions(ratings)
    assert data.ratings is not None
    assert (data.item_names.tolist(), data.ratings.tolist()) == ([20, 30], [5, 4])
    assert read_pairs(ratings, (3, 31)).of_user(1).tolist() == [20]


@pytest.mark.parametrize(
    "text", ["1 0 20 1\n2 0 30 1\n", "1 Q0 20 1\n2 Q0 30 1\n", "1 7 d20 1\n2 8 d30 1\n", "1\t0\t20\t1\n2\t0\t30\t1\n"]
)
def test_qrels_are_detected(tmp_path: Path, text: str) -> None:
    (tmp_path / "qrels").write_text(text)
    lists = LISTS if "d" not in text else {user: [f"d{item}" for item in items] for user, items in LISTS.items()}
    assert tr.values(tr.read_lists(lists, tmp_path / "qrels"), "rr@3").tolist() == [1 / 2, 1 / 3]
    with pytest.raises(tr.InputError, match=r"holds relevant items \(TREC qrels\), not interactions; if its columns"):
        tr.read_interactions(tmp_path / "qrels")
    with pytest.raises(tr.InputError, match=r"holds relevant items \(TREC qrels\), not ranks\.$"):
        tr.read_ranks(tmp_path / "qrels")


def test_a_run_is_neither_interactions_nor_ranks(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("1 Q0 20 1 0.5 me\n1 Q0 30 2 0.4 me\n")
    with pytest.raises(tr.InputError, match="holds ranked lists, not interactions"):
        tr.read_interactions(tmp_path / "run")
    with pytest.raises(
        tr.InputError, match=r"holds ranked lists, not ranks; their `truth` \(the relevant items\) is also needed"
    ):
        tr.read_ranks(tmp_path / "run")
    with pytest.raises(tr.InputError, match="holds ranked lists, not relevant items"):
        tr.read_lists(LISTS, tmp_path / "run")


def test_columns_of_files_without_a_header_are_told_by_number(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text("x,1,10,0.9\nx,1,20,0.8\nx,2,30,0.7\n")
    with pytest.raises(tr.InputError, match="has no header and 4 columns: give the columns by number, as in user=0"):
        tr.read_lists(tmp_path / "run.csv", LISTS)
    for columns in ({"user": 1, "item": 2, "score": 3}, {"user": "1", "item": "2", "score": "3"}):
        ranks = tr.read_lists(tmp_path / "run.csv", {1: [20], 2: [30]}, **columns)
        assert tr.values(ranks, "rr@2").tolist() == [1 / 2, 1]
    (tmp_path / "ranks.csv").write_text("1,9\n3,9\n")
    with pytest.raises(tr.InputError, match="has no header and 2 columns: give the columns by number, as in rank=0"):
        tr.read_ranks(tmp_path / "ranks.csv")
    assert tr.read_ranks(tmp_path / "ranks.csv", rank=0, n="1").rank.tolist() == [1, 3]


def test_two_columns_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text("1 20\n2 30\n")
    assert tr.values(tr.read_lists(LISTS, tmp_path / "pairs"), "rr@3").tolist() == [1 / 2, 1 / 3]
    assert tr.read_lists(tmp_path / "pairs", {1: [20]}).rank.tolist() == [1]


@pytest.mark.parametrize("mark", [",", ";", "|", "\t", " "])
def test_every_delimiter_in_every_reader(tmp_path: Path, mark: str) -> None:
    rows = [("user", "item", "score", "rank", "n"), (1, 20, 0.5, 1, 9), (1, 30, 0.4, 2, 9)]
    (tmp_path / "file").write_text("".join(mark.join(map(str, row)) + "\n" for row in rows))
    assert tr.read_lists(tmp_path / "file", {1: [30]}).rank.tolist() == [2]
    assert tr.read_ranks(tmp_path / "file").rank.tolist() == [1, 2]
    assert tr.read_interactions(tmp_path / "file").item_names.tolist() == [20, 30]


def test_uneven_blanks_far_down(tmp_path: Path) -> None:
    lines = [f"{user} 0 {user % 7} 1\n" for user in range(20_000)]
    lines[15_000] = "15000  0 \t5 1 \n"
    (tmp_path / "qrels").write_text("".join(lines))
    ranks = tr.read_lists({user: list(range(7)) for user in range(20_000)}, tmp_path / "qrels")
    assert ranks.rank[14_999:15_002].tolist() == [
        1 + user % 7 if user != 15_000 else 6 for user in (14_999, 15_000, 15_001)
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("xml", "the format must be one of csv, csv-header, csv-no-header, movielens, trec, got 'xml'"),
        ("trec", "is not in a TREC format: a run has 6 columns and qrels have 4, got 1"),
        ("movielens", r"must have 4 columns \(user, item, rating, time\), got 2"),
    ],
)
def test_formats_that_do_not_fit(tmp_path: Path, given: str, message: str) -> None:
    (tmp_path / "a.csv").write_text("user,item\n1,2\n")
    with pytest.raises(tr.InputError, match=message):
        tr.read_lists(LISTS, tmp_path / "a.csv", truth_format=given)  # type: ignore[arg-type]
    (tmp_path / "a.jsonl").write_text('{"user": 1, "item": 2}\n')
    if given != "xml":
        with pytest.raises(tr.InputError, match=f"is JSON, not '{given}'"):
            tr.read_lists(LISTS, tmp_path / "a.jsonl", truth_format=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("columns", [{"user": 0, "item": 1}, {"user": "0", "item": "1"}, {"user": 0}])
def test_text_alone_may_begin_with_a_header_or_a_row(tmp_path: Path, columns: dict[str, Any]) -> None:
    """Where nothing tells them apart the reader asks, instead of taking the first row for names."""
    path = tmp_path / "a.csv"
    path.write_text("ann,x\nbob,y\nann,z\n")
    with pytest.raises(tr.InputError, match="may begin with a header or with a row, because all of it is text: give"):
        tr.read_interactions(path, **columns)
    events = tr.read_interactions(path, **(columns | {"item": 1}), header=False)
    assert events.names.tolist() == ["ann", "bob"]
    assert events.items.size == 3
    events = tr.read_interactions(path, user=0, item=1, header=True)
    assert events.names.tolist() == ["ann", "bob"]
    assert events.items.size == 2


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("user,thing\nann,x\nbob,y\n", 2),  # a usual name
        ("who:token,what:token\nann,x\nbob,y\n", 2),
        ("who,what\nann,1\nbob,2\n", 2),  # only the first line has text in a column of numbers
        ("ann,1\nbob,2\n", 2),  # a number is no name
    ],
)
def test_a_header_is_told_from_a_row(tmp_path: Path, text: str, n: int) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert tr.read_interactions(tmp_path / "a.csv", user=0, item=1).items.size == n


def test_every_reader_takes_a_header(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text("ann,x\nann,y\nbob,y\n")
    (tmp_path / "truth.csv").write_text("ann,y\nbob,y\n")
    with pytest.raises(tr.InputError, match=r"run\.csv.* give run_header=True or run_header=False\."):
        tr.read_lists(tmp_path / "run.csv", tmp_path / "truth.csv", user=0, item=1)
    ranks = tr.read_lists(
        tmp_path / "run.csv", tmp_path / "truth.csv", user=0, item=1, run_header=False, truth_header=False, depth="all"
    )
    assert ranks.rank.tolist() == [2, 1]
    assert tr.read_recommendations(tmp_path / "run.csv", user=0, item=1, header=False).items.size == 3
    split = tr.read_split(tmp_path / "run.csv", tmp_path / "truth.csv", user=0, item=1, header=False)
    assert (split.train.items.size, split.test.items.size) == (3, 2)
    (tmp_path / "ranks.csv").write_text("2019,7\n3,9\n")
    assert tr.read_ranks(tmp_path / "ranks.csv", rank="2019", n="7", header=True).rank.tolist() == [3]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"header": "yes"}, "`header` must be True, False or None, got 'yes'"),
        ({"header": True, "format": "movielens"}, "`header` applies to delimited text only, not to the format"),
    ],
)
def test_headers_that_do_not_fit(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    (tmp_path / "a.csv").write_text("user,item\n1,2\n")
    with pytest.raises(tr.InputError, match=message):
        tr.read_interactions(tmp_path / "a.csv", **given)
