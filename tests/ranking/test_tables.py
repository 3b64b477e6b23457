"""Tables of ranks: exact and sampled ones, by user or by row, and what they must not say."""

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truerank as tr


def write(folder: Path, text: str) -> Path:
    (folder / "ranks.csv").write_text(text)
    return folder / "ranks.csv"


def test_a_column_m_means_sampled_ranks(tmp_path: Path) -> None:
    path = write(tmp_path, "user,rank,m,n\na,1,100,3541\nb,17,100,3541\n")
    ranks = tr.read_ranks(path)
    assert ranks.design == tr.UniformSampling(100)
    assert ranks == tr.Ranks.from_sampled([1, 17], m=100, n=3541, ids=["a", "b"])
    assert any("sampled" in note for note in tr.evaluate(ranks, "ndcg@10").notes)


def test_a_table_with_a_column_m_is_not_lists(tmp_path: Path) -> None:
    path = write(tmp_path, "user,item,rank,m,n\na,x,1,100,3541\n")
    with pytest.raises(
        tr.InputError, match="has a column m, so it holds ranks among sampled candidates, not ranked lists"
    ):
        tr.read_lists(path, {"a": ["x"]})
    assert tr.read_ranks(path).design == tr.UniformSampling(100)


def test_each_user_may_have_its_own_m(tmp_path: Path) -> None:
    path = write(tmp_path, "user,rank,m,n\na,3,20,100\nb,1,30,90\na,1,20,100\n")
    assert tr.read_ranks(path) == tr.Ranks.from_sampled([[1, 3], [1]], m=[20, 30], n=[100, 90], ids=["a", "b"])


def test_m_and_n_are_numbers_or_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "who,place,drawn,catalogue\na,3,20,100\nb,1,20,90\n")
    expected = tr.Ranks.from_sampled([3, 1], m=20, n=[100, 90], replace=True, ids=["a", "b"])
    columns = {"user": "who", "rank": "place", "n": "catalogue"}
    assert tr.read_ranks(path, m="drawn", replace=True, **columns) == expected  # type: ignore[arg-type]
    assert tr.read_ranks(path, m=20, replace=True, **columns) == expected  # type: ignore[arg-type]
    exact = tr.read_ranks(path, **columns)  # type: ignore[arg-type]
    assert exact == tr.Ranks.from_ranks([3, 1], n=[100, 90], ids=["a", "b"])


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("rank,n\n10,9\n", {}, r"line 2: the rank must lie in 1\.\.9, got 10"),
        ("rank,n\n1,9\n0,9\n", {}, r"line 3: the rank must lie in 1\.\.9, got 0"),
        ("rank,n\n1,9\n1.5,9\n", {}, r"line 3: the rank must be a whole number, got 1\.5"),
        ("rank,n\n1,9\nfirst,9\n", {}, "line 3: the rank must be a number, got 'first'"),
        ("rank,n\n1,0\n", {}, "line 2: n must be at least 1, got 0"),
        ("rank,n,m\n7,9,5\n", {}, r"line 2: the rank must lie in 1\.\.6, got 7"),
        ("user,rank,n,m\na,1,9,5\na,2,9,6\n", {}, "line 2: user 'a' has more than one m, 5 and 6"),
        ("user,rank,n\na,1,9\na,1,9\n", {}, "must differ within an instance"),
        ("rank,n,m\n1,9,5\n", {"m": 6}, "`m` 6 contradicts .* line 2, which says 5"),
        ("rank,n,m\n1,9,5\n", {"n": 6}, "`n` 6 contradicts .* line 2, which says 9"),
        ("rank,n\n1,9\n", {"m": "x"}, "there is no column 'x' for the m"),
        ("rank,n\n1,9\n", {"m": 0}, "`m` must be a whole number from 1, or the name of a column, got 0"),
        ("rank,n\n1,9\n", {"m": 1.5}, "`m` must be a whole number from 1, or the name of a column, got 1.5"),
        ("rank,n\n1,9\n", {"replace": True}, "`replace` applies to sampled ranks only; give `m`, or a column m"),
        ("user,item,score\na,x,1\n", {}, "holds ranked lists, not ranks; their `truth`"),
        ("rank,n\n", {}, "has no rows"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.read_ranks(write(tmp_path, text), **options)


def test_a_row_with_several_ranks_is_one_instance() -> None:
    frame = pl.DataFrame({"rank": [[5, 3], [1]], "n": [10, 4]})
    assert tr.read_ranks(frame) == tr.Ranks.from_ranks([[3, 5], [1]], n=[10, 4])
    named = frame.with_columns(user=pl.Series(["a", "b"]))
    assert tr.read_ranks(named) == tr.Ranks.from_ranks([[3, 5], [1]], n=[10, 4], ids=["a", "b"])


@pytest.mark.parametrize("read", [tr.read_ranks, lambda frame: tr.read_lists(frame, {1: [1]})])
def test_ragged_lists_are_refused(read: Any) -> None:
    # as many numbers in all, but not in each row
    frame = {"user": [1, 2], "item": [[1, 2], [3]], "rank": [[1], [2, 3]], "grade": [[1.0, 2.0], [3.0]], "n": [9, 9]}
    with pytest.raises(tr.InputError, match=r"row 1: the lists of .* must have the same length"):
        read(pl.DataFrame(frame))


def test_empty_lists_are_counted() -> None:
    ranks = tr.read_lists({1: [2, 3], 2: []}, {1: [3]})
    assert ranks.notes == ("1 empty list in the dict",)


@pytest.mark.parametrize("column", ["tied", "grades"])
def test_stored_ranks_must_not_be_ragged(column: str) -> None:
    ranks = tr.Ranks.from_ranks([[1, 2], [3]], n=9, grades=[[1, 2], [3]])
    table = ranks.to_arrow()
    table = table.set_column(table.column_names.index(column), column, pa.array([[1.0], [2.0, 3.0]]))
    with pytest.raises(
        tr.InputError, match=f"row 1: the lists in the columns 'above' and '{column}' must have the same"
    ):
        tr.Ranks.from_arrow(table)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ('{"depth": "deep"}', "the depth of stored ranks must be a whole number from 1, got 'deep'"),
        ('{"notes": "a note"}', "the notes of stored ranks must be strings, got 'a note'"),
        ('{"design": 5}', "the design of stored ranks must be a string, got 5"),
        ("[]", "the metadata of stored ranks must be an object, got list"),
        ("{", "the metadata of stored ranks can't be read"),
    ],
)
def test_metadata_is_checked(metadata: str, message: str) -> None:
    table = tr.Ranks.from_ranks([1, 2], n=9).to_arrow().replace_schema_metadata({"truerank": metadata})
    with pytest.raises(tr.InputError, match=message):
        tr.Ranks.from_arrow(table)


def test_metadata_do_not_replace_arrays() -> None:
    ranks = tr.Ranks.from_ranks([1, 2], n=9)
    table = ranks.to_arrow().replace_schema_metadata({"truerank": '{"above": [5, 5], "n_candidates": 99}'})
    assert tr.Ranks.from_arrow(table) == ranks


def test_saved_ranks_take_no_other_design(tmp_path: Path) -> None:
    sampled = tr.Ranks.from_sampled([1, 17], m=100, n=3541)
    sampled.save(tmp_path / "sampled.parquet")
    assert tr.read_ranks(tmp_path / "sampled.parquet", m=100, n=3541) == sampled
    with pytest.raises(tr.InputError, match=r"`m` 99 contradicts .*, which says 100"):
        tr.read_ranks(tmp_path / "sampled.parquet", m=99)
    with pytest.raises(
        tr.InputError, match=r"`replace` contradicts .*, whose candidates were sampled without replacement"
    ):
        tr.read_ranks(tmp_path / "sampled.parquet", replace=True)


def test_an_irrelevant_item_twice_in_a_list_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "user,item,score\n1,x,3\n2,x,3\n1,y,2\n1,z,1\n2,y,1\n1,y,0\n")
    with pytest.raises(tr.InputError, match=r"ranks.csv', line [47]: item 'y' of user 1 is in the list more than once"):
        tr.read_lists(path, {1: ["z"], 2: ["x"]})
    with pytest.raises(tr.InputError, match="item 7 of user 1 is in the list more than once"):
        tr.read_lists(pd.DataFrame({"user": [1, 1, 1], "item": [7, 8, 7]}), {1: [8]})
