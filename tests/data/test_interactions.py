"""Interactions from every kind of file and frame, against rows that were read by hand."""

import gzip
import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import truerank as tr
from truerank.data.event_files import grouped

Row = tuple[Any, Any, float, int]
ROWS: list[Row] = [(3, 20, 4.0, 100), (1, 10, 5.0, 50), (3, 10, 3.5, 90), (1, 30, 2.0, 50), (7, 20, 1.0, 70)]


def lines(rows: Sequence[tuple[Any, ...]], mark: str) -> str:
    return "".join(
        mark.join(f"{value:g}" if isinstance(value, float) else str(value) for value in row) + "\n" for row in rows
    )


def frame() -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=["userId", "movieId", "rating", "timestamp"])


def u_data(folder: Path) -> Path:
    (folder / "u.data").write_text(lines(ROWS, "\t"))
    return folder / "u.data"


def ratings_dat(folder: Path) -> Path:
    (folder / "ratings.dat").write_text(lines(ROWS, "::"))
    return folder / "ratings.dat"


def ratings_csv(folder: Path) -> Path:
    (folder / "ratings.csv").write_text("userId,movieId,rating,timestamp\n" + lines(ROWS, ","))
    return folder / "ratings.csv"


def recbole(folder: Path) -> Path:
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
    (folder / "ml.inter").write_text(header + lines(ROWS, "\t"))
    return folder / "ml.inter"


def ncf(folder: Path) -> Path:
    (folder / "ml-1m.train.rating").write_text(lines(ROWS, "\t"))
    return folder / "ml-1m.train.rating"


def windows_csv(folder: Path) -> Path:
    text = "\r\n\r\nUser ID;Item ID;Stars;Date\r\n" + lines(ROWS, ";").replace("\n", "\r\n") + "\r\n"
    (folder / "export.csv").write_bytes(text.encode("utf-8-sig"))
    return folder / "export.csv"


def gzipped(folder: Path) -> Path:
    (folder / "events.csv.gz").write_bytes(gzip.compress(ratings_csv(folder).read_bytes()))
    return folder / "events.csv.gz"


def parquet(folder: Path) -> Path:
    frame().assign(other="x").to_parquet(folder / "events.parquet")
    return folder / "events.parquet"


def jsonl(folder: Path) -> Path:
    frame().to_json(folder / "events.jsonl", orient="records", lines=True)
    return folder / "events.jsonl"


FILES = [u_data, ratings_dat, ratings_csv, recbole, ncf, windows_csv, gzipped, parquet, jsonl]


def check(data: tr.Interactions) -> None:
    assert data.user_ids is not None
    assert data.item_ids is not None
    assert data.times is not None
    assert data.ratings is not None
    assert data.positions is not None
    assert (data.user_ids.tolist(), data.item_ids.tolist()) == ([1, 3, 7], [10, 20, 30])
    assert data.matrix.toarray().tolist() == [[1, 0, 1], [1, 1, 0], [0, 1, 0]]
    assert data.ratings.tolist() == [5.0, 2.0, 3.5, 4.0, 1.0]
    assert data.times.tolist() == [50, 50, 90, 100, 70]
    assert data.positions.tolist() == [1, 3, 2, 0, 4]
    assert data.notes == ()


@pytest.mark.parametrize("write", FILES)
def test_every_file_means_the_same(write: Callable[[Path], Path], tmp_path: Path) -> None:
    check(tr.read_interactions(write(tmp_path)))


@pytest.mark.parametrize("write", [u_data, ratings_dat, ratings_csv, recbole, ncf])
def test_folders(write: Callable[[Path], Path], tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    write(tmp_path / "inner")
    (tmp_path / "inner" / "README").write_text("about")
    check(tr.read_interactions(tmp_path / "inner"))
    check(tr.read_interactions(tmp_path))


@pytest.mark.parametrize(("write", "name"), [(u_data, "ml-100k"), (ratings_dat, "ml-1m"), (ratings_csv, "ml-20m")])
def test_the_original_zip(write: Callable[[Path], Path], name: str, tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "to").mkdir()
    with zipfile.ZipFile(tmp_path / "to" / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir(name)
        archive.write(path, f"{name}/{path.name}")
        archive.writestr(f"{name}/movies.dat", "1::Am\xe9lie::Comedy\n".encode("latin-1"))
        archive.writestr(f"__MACOSX/{name}/{path.name}", "rubbish")
    check(tr.read_interactions(tmp_path / "to" / f"{name}.zip"))
    check(tr.read_interactions(tmp_path / "to"))
    with zipfile.ZipFile(tmp_path / "to" / f"{name}.zip") as archive:
        archive.extract(f"{name}/{path.name}", tmp_path / "to")
    check(tr.read_interactions(tmp_path / "to"))


def test_frames_and_dicts() -> None:
    check(tr.read_interactions(frame()))
    check(tr.read_interactions(pl.from_pandas(frame()).lazy()))
    check(tr.read_interactions(frame().astype({"userId": float, "movieId": "category"})))
    nested = tr.read_interactions({"b": {"x": 4.0, "y": 1.0}, "a": {"x": 2.0}})
    assert nested.ratings is not None
    assert (nested.matrix.toarray().tolist(), nested.ratings.tolist()) == ([[1, 0], [1, 1]], [2.0, 4.0, 1.0])
    assert tr.read_interactions({"b": ["x"], "a": ["y", "x"]}).matrix.toarray().tolist() == [[1, 1], [1, 0]]


def test_columns_by_name_and_number(tmp_path: Path) -> None:
    strange = frame().rename(columns={"userId": "who", "movieId": "what", "rating": "how", "timestamp": "when"})
    check(tr.read_interactions(strange, user="who", item="what", rating="how", time="when"))
    check(tr.read_interactions(strange, user=0, item=1, rating=2, time=3))
    (tmp_path / "five.tsv").write_text(
        lines([(time, user, item, rating, 9) for user, item, rating, time in ROWS], "\t")
    )
    check(tr.read_interactions(tmp_path / "five.tsv", user=1, item=2, rating=3, time=0))
    plain = tr.read_interactions(strange[["who", "what"]], user="who", item="what")
    assert (plain.times, plain.ratings) == (None, None)


def test_weights_become_values() -> None:
    data = tr.read_interactions(frame().assign(weight=[2, 3, 4, 5, 0]))
    assert data.matrix.data.tolist() == [1] * 5
    data = tr.read_interactions(frame().assign(weight=[2, 3, 4, 5, 0]), weight="weight")
    assert data.matrix.data.tolist() == [3, 5, 4, 2, 0]
    assert data.items.size == 5


def test_dates() -> None:
    days = ["2024-01-01", "2024-01-01 10:00:00", "2023-12-31"]
    for times in (days, pd.to_datetime(days, format="ISO8601"), pd.to_datetime(days, format="ISO8601", utc=True)):
        data = tr.read_interactions(pd.DataFrame({"user": [1, 2, 3], "item": [1, 1, 1], "date": times}))
        assert data.times is not None
        assert data.times.astype("datetime64[s]").tolist() == pd.to_datetime(days, format="ISO8601").tolist()


def test_dates_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,time\n1,2,2024-01-01\n1,3,2024-01-01T10:00:00\n")
    data = tr.read_interactions(tmp_path / "a.csv")
    assert data.times is not None
    assert (data.times[1] - data.times[0]).astype("timedelta64[h]") == np.timedelta64(10, "h")


def test_text_ids_in_latin_1(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("user,item\nJosé,1\nAnn,2\n".encode("latin-1"))
    data = tr.read_interactions(tmp_path / "a.csv")
    assert data.user_ids is not None
    assert data.user_ids.tolist() == ["Ann", "José"]
    assert data.notes == (f"{str(tmp_path / 'a.csv')!r} is not UTF-8 and was read as Latin-1",)
    (tmp_path / "a.csv").write_text("user,item\nJosé,1\nAnn,2\n", encoding="utf-8")
    assert tr.read_interactions(tmp_path / "a.csv").notes == ()


@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 5)), min_size=1),
    least=st.sampled_from([None, 1, 3]),
)
def test_low_ratings_are_dropped_event_by_event(rows: list[tuple[int, int, int]], least: int | None) -> None:
    kept = sorted(
        (user, item, row, rating) for row, (user, item, rating) in enumerate(rows) if least is None or rating >= least
    )
    table = pd.DataFrame(rows, columns=["user", "item", "rating"])
    if not kept:
        with pytest.raises(tr.InputError, match="must leave some events, but all ratings are below 3"):
            tr.read_interactions(table, min_rating=least)
        return
    data = tr.read_interactions(table, min_rating=least)
    assert data.user_ids is not None
    assert data.item_ids is not None
    assert data.ratings is not None
    assert data.positions is not None
    assert data.user_ids.tolist() == sorted({user for user, *_ in kept})
    assert data.item_ids.tolist() == sorted({item for _, item, *_ in kept})
    columns = (data.user_ids[data.users], data.item_ids[data.items], data.positions, data.ratings)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == kept
    assert any("are dropped" in note for note in data.notes) == (len(kept) < len(rows))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))))
def test_rows_by_user_item_and_position(pairs: list[tuple[int, int]]) -> None:
    user, item = (np.array([pair[axis] for pair in pairs], dtype=np.int32) for axis in (0, 1))
    order, indptr, items = grouped(user, item, (4, 4))
    assert order.tolist() == sorted(range(len(pairs)), key=lambda row: (*pairs[row], row))
    assert items.tolist() == item[order].tolist()
    assert np.diff(indptr).tolist() == [sum(one == number for one, _ in pairs) for number in range(4)]


DAT = "1::2::3::4\n"
CSV = "userId,movieId,rating,timestamp\n1,2,3.0,4\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("ratings.dat", DAT + "1::3::4\n", "line 2: expected 4 fields, got 3."),
        ("ratings.dat", DAT + "1:9:3::4::5\n", "line 2: expected 4 fields, got 3."),
        ("ratings.dat", DAT + "\nann::3::4::5\n", "line 3: the user must be a whole number, got 'ann'."),
        ("ratings.dat", DAT + "1::3::good::5\n", "line 2: the rating must be a number, got 'good'."),
        ("ratings.dat", DAT + "1::3::4::\n", "line 2: the time is missing."),
        ("u.data", "1\t2\t3\t4\n1\tx\t3\t5\n", "line 2: the item must be a whole number, got 'x'."),
        ("ratings.csv", CSV + "2,3,4.0,5,6\n", "line 3: expected 4 fields, got 5."),
        ("ratings.csv", CSV + ",3,4.0,5\n", "line 3: the user is missing."),
        ("ratings.csv", CSV + "2,3,,5\n", "line 3: the rating is missing."),
        ("ratings.csv", CSV + "2,3,inf,5\n", "line 3: the rating must be a finite number, got inf."),
        ("ratings.csv", CSV + "2,3,4.0,soon\n", "line 3: the time must be a number, got 'soon'."),
        ("a.csv", "user,item,time\n1,2,soon\n", "line 2: the time must be a number or an ISO date, got 'soon'."),
        (
            "a.csv",
            "user,item,time\n1,2,2019-01-01T00:00:00Z\n1,3,2019-13-01\n",
            "line 3: the time must be an ISO date with a time zone like '2019-01-01T00:00:00Z', got '2019-13-01'.",
        ),
        (
            "a.csv",
            "user,item,time\n1,2,2019-01-01\n1,3,2019-01-02T00:00:00Z\n",
            "line 3: the time must be an ISO date like '2019-01-01', got '2019-01-02T00:00:00Z'.",
        ),
        ("a.csv", "user,item\n1,b\n1,\n", "line 3: the item is missing."),
        ("a.csv", 'user,item\n1,"b"\n1,"c,d"\n2\n', "line 4: expected 2 fields, got 1."),
        ("a.csv", "user,item\n", "has no rows."),
        ("a.csv", "", "is empty."),
        ("a.csv", "\n \n", "is empty."),
        ("a.csv", "who,item\nann,2\n", "has no column for the user: expected 'user_id' or similar, found who, item"),
        ("a.tsv", "1\t2\t3\n", "has no header and 3 columns: give the columns by number, as in user=0, item=1."),
        ("a.parquet", "PAR1 and no more", "can't read"),
        ("a.zip", "PK\x03\x04 and no more", "can't read"),
    ],
)
def test_bad_files(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(tr.InputError) as error:
        tr.read_interactions(tmp_path / name)
    assert message in str(error.value)
    assert str(tmp_path / name) in str(error.value)


def test_a_bad_line_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "ml-1m.zip", "w") as archive:
        archive.writestr("ml-1m/ratings.dat", DAT * 3 + "1::2\n")
    with pytest.raises(
        tr.InputError, match=r"^'ml-1m/ratings.dat' in '.*ml-1m.zip', line 4: expected 4 fields, got 2.$"
    ):
        tr.read_interactions(tmp_path / "ml-1m.zip")


def test_which_file_is_meant(tmp_path: Path) -> None:
    with pytest.raises(tr.InputError, match=r"must hold one file of events .*, found none; name the file itself."):
        tr.read_interactions(tmp_path)
    (tmp_path / "a.rating").write_text("1\t2\t3\t4\n")
    (tmp_path / "b.rating").write_text("1\t2\t3\t4\n")
    with pytest.raises(tr.InputError, match=r"found a\.rating, b\.rating; name the file itself"):
        tr.read_interactions(tmp_path)
    with pytest.raises(tr.InputError, match="there is no file 'nowhere'"):
        tr.read_interactions("nowhere")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"user": "who"}, "there is no column 'who' for the user in the dataframe; choose from userId, movieId"),
        ({"time": 9}, "there is no column 9 for the time in the dataframe"),
        ({"weight": "mass"}, "there is no column 'mass' for the weight in the dataframe"),
    ],
)
def test_bad_columns(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.read_interactions(frame(), **columns)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"user": [], "item": []}, "the dataframe has no rows"),
        ({"user": [1, None], "item": [1, 2]}, "the dataframe, row 2: the user is missing"),
        ({"user": [1, 2], "item": ["a", ""]}, "the dataframe, row 2: the item is missing"),
        ({"user": [1, 2], "item": [1, 2], "rating": ["5", "bad"]}, "row 2: the rating must be a number, got 'bad'"),
        ({"user": [1, 2], "item": [1, 2], "time": [True, False]}, "the times must be numbers or dates, got bool"),
    ],
)
def test_bad_frames(table: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.read_interactions(pl.DataFrame(table))


def test_a_threshold_needs_ratings() -> None:
    with pytest.raises(tr.InputError, match="`min_rating` needs a column of ratings"):
        tr.read_interactions(frame().drop(columns="rating"), min_rating=4)


def test_parts_have_the_length_of_the_whole() -> None:
    matrix = sp.csr_array(np.array([[1, 0], [1, 1]]))
    for name, size in (("user_ids", 2), ("item_ids", 2), ("times", 3), ("ratings", 3), ("positions", 3)):
        tr.Interactions(matrix, **{name: np.zeros(size)})  # type: ignore[arg-type]
        with pytest.raises(tr.InputError, match=f"`{name}` must have {size} entries, got shape"):
            tr.Interactions(matrix, **{name: np.zeros(size + 1)})  # type: ignore[arg-type]


def test_parquet_reads_only_what_it_needs(tmp_path: Path) -> None:
    table = pq.read_table(parquet(tmp_path))
    pq.write_table(table.append_column("heavy", [["x" * 1000] * len(ROWS)]), tmp_path / "events.parquet")
    check(tr.read_interactions(tmp_path / "events.parquet"))


@given(seed=st.integers(0, 10_000))
def test_overlap_counts_what_both_have(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.random((5, 9)) < rng.random() for _ in range(2))
    both = tr.Interactions.of(sp.csr_array(a.astype(np.int8)), "a").overlap(tr.Interactions.of(sp.csr_array(b), "b"))
    assert both.tolist() == (a & b).sum(axis=1).tolist()


@pytest.mark.parametrize("read", [tr.read_interactions, tr.read_ranks])
def test_files_that_are_broken_are_named_in_one_sentence(tmp_path: Path, read: Callable[[Path], object]) -> None:
    rows = ["user_id,item_id,rank,n", *(f"{user},{user % 7},{1 + user % 5},9" for user in range(9_000))]
    whole = gzip.compress("\n".join(rows).encode())
    cut, binary = tmp_path / "cut.csv.gz", tmp_path / "ml-1m.zip"
    cut.write_bytes(whole[: len(whole) // 2])
    binary.write_bytes(bytes(range(256)) * 9)
    with pytest.raises(tr.InputError, match=rf"^can't read '{re.escape(str(cut))}': .+$"):
        read(cut)
    with pytest.raises(tr.InputError, match=rf"^'{re.escape(str(binary))}' is neither text nor Parquet.+$"):
        read(binary)


@pytest.mark.parametrize("number", [np.bool_, np.int8, np.uint16, np.int32, np.int64, np.float32])
def test_values_cannot_overflow(number: Any) -> None:
    """300 users of one item: more than int8 holds."""
    split = tr.leave_k_out(sp.csr_array(np.ones((300, 2), dtype=number)), rng=0)
    both = split.train.matrix + split.test.matrix
    assert (both.T @ both).toarray().tolist() == [[300, 300], [300, 300]]
    assert split.train.matrix.dtype in (np.float32, np.float64)


def test_read_values_are_floats() -> None:
    assert tr.read_interactions(frame()).matrix.dtype == np.float32
    assert tr.read_interactions({user: ["a"] for user in range(300)}).matrix.sum() == 300


def test_repeated_entries_are_one_interaction() -> None:
    """200 times 1 is 200, which int8 does not hold."""
    twice = sp.csr_array((np.ones(202, np.int8), [1] * 200 + [0, 2], [0, 202]), shape=(1, 3))
    data = tr.Interactions(twice)
    assert data.matrix.toarray().tolist() == [[1, 200, 1]]
    assert data.items.tolist() == [0, 1, 2]
    with pytest.raises(tr.InputError, match=r"must store the items of each user in ascending order\."):
        tr.Interactions(twice, times=np.arange(202))
    lists = tr.Interactions.of([[1, 1, 0], [2]], "test")
    assert lists.matrix.toarray().tolist() == [[1, 1, 0], [0, 0, 1]]
    assert lists.notes == ("1 item is repeated in a list of `test` and counts once",)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ([0, 1], "`test` must be a list of item numbers per user, got 0 for user 0"),
        ([[0], "ab"], "`test` must be a list of item numbers per user, got 'ab' for user 1"),
        ([[[1], [2, 3]]], r"`test` must be a list of item numbers per user, got \[\[1\], \[2, 3\]\] for user 0"),
        ([[1], [2, "a"]], "`test` must hold item numbers, got 'a' for user 1"),
        ([[1.0, 1.5]], "`test` must hold item numbers, got 1.5 for user 0"),
        ([[1.0, np.nan]], "`test` must hold item numbers, got nan for user 0"),
        ([[np.inf]], "`test` must hold item numbers, got inf for user 0"),
        ([[True]], "`test` must hold item numbers, got True for user 0"),
        ([[-1]], r"`test` must hold items 0\.\.0, got -1\.\.-1"),
        (np.eye(2), "must be a sparse matrix or a list of item numbers per user, got ndarray"),
        (sp.csr_array(np.eye(2) * 1j), "must hold real numbers, got values of type complex128"),
    ],
)
def test_what_is_no_list_of_items(given_: Any, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.Interactions.of(given_, "test")


def test_names_are_text_not_objects() -> None:
    names = pd.Series(["ann", "bob"], dtype=object).to_numpy()
    data = tr.Interactions(sp.csr_array(np.eye(2)), user_ids=names, item_ids=["a", "b"])  # type: ignore[arg-type]
    assert data.names.dtype.kind == data.item_names.dtype.kind == "U"
    assert tr.rank(tr.ScoreMatrix(np.eye(2), user_ids=names, item_ids=["a", "b"]), test=data).rank.tolist() == [1, 1]


def test_lists_of_arrays_and_whole_floats() -> None:
    data = tr.Interactions.of([np.array([2.0]), (), np.array([0, 1], dtype=np.uint8)], "test")
    assert data.matrix.toarray().tolist() == [[0, 0, 1], [0, 0, 0], [1, 1, 0]]


@given(seed=st.integers(0, 10_000))
def test_any_sparse_matrix_is_brought_into_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 4, rng.integers(1, 5))
    bounds, items = np.concatenate([[0], np.cumsum(sizes)]), rng.integers(0, 5, sizes.sum())
    given_ = sp.csr_array((np.ones(items.size), items, bounds), shape=(sizes.size, 5))
    ordered = given_.copy().has_canonical_format
    known = tr.Interactions.of(given_, "train")
    assert known.matrix.copy().has_canonical_format
    assert np.array_equal(known.matrix.toarray(), given_.toarray())
    assert np.shares_memory(known.items, given_.indices) == (ordered and items.size > 0)


def test_a_dict_of_columns_is_a_table() -> None:
    """The way in which every dataframe library spells columns."""
    columns: dict[str, Any] = {
        "user": ["bob", "ann", "bob"],
        "item": [7, 9, 8],
        "timestamp": np.array([3, 1, 2]),
        "title": ["x", "y", "z"],
    }
    expected = tr.read_interactions(pd.DataFrame(columns))
    for each in (columns, {name: tuple(column) for name, column in columns.items()}, dict(pd.DataFrame(columns))):
        data = tr.read_interactions(each)
        assert data.names.tolist() == ["ann", "bob"]
        assert data.to_arrow().equals(expected.to_arrow())
    named = tr.read_interactions({"who": ["ann"], "what": ["x"]}, user="who", item="what")
    assert (named.names.tolist(), named.item_names.tolist()) == (["ann"], ["x"])
    ranks = tr.read_ranks({"user": ["ann", "bob"], "rank": [3, 1], "n": [10, 10]})
    assert ranks.rank.tolist() == [3, 1]
    nested = tr.read_interactions({"user": ["ann", "bob"], "item": [["x", "y"], ["x"]]})
    assert nested.items.size == 3


@pytest.mark.parametrize(
    "users",
    [
        {"user": ["a", "b"], "item": ["c"]},
        {"user": ["a"], "item": ["c"], "ann": ["a", "b"]},
        {"user": {"a": 1.0}, "item": {"b": 2.0}},
        {"user": {"a"}, "item": {"b"}},
        {"User-ID": ["a", "b"], "ITEM": ["c"]},
    ],
)
def test_users_that_are_called_like_columns_are_refused(users: Any) -> None:
    with pytest.raises(tr.InputError, match=r"the dict has the keys .* and .*, which may be columns or users"):
        tr.read_interactions(users)


def test_lists_by_user_are_not_columns() -> None:
    assert tr.read_interactions({"user": ["a", "b"], "ann": ["a"]}).names.tolist() == ["ann", "user"]


def test_tuples_of_two_may_be_pairs() -> None:
    scores = np.zeros((2, 10))
    with pytest.raises(tr.InputError, match=r"`test` has tuples of two.* as lists, \[\[0, 7\], \.\.\.\]"):
        tr.rank(scores, test=[(0, 7), (1, 9)])
    for read in (tr.read_interactions, lambda pairs: tr.read_lists([[1, 2]], pairs)):
        with pytest.raises(tr.InputError, match="the list has tuples of two, which may be pairs of user and item"):
            read([(0, 7), (1, 9)])
    assert tr.rank(scores, test=[[0, 7], [1, 9]]).above.size == 4
    assert tr.rank(scores, test=[(0, 7, 8), (1, 9)]).above.size == 5


def _changed(part: str, value: Any, size: int = 3, at: int = -1) -> sp.csr_array:
    """Return a matrix whose arrays were changed after SciPy had looked at them."""
    matrix = sp.csr_array(np.tri(size, size))
    getattr(matrix, part)[at] = value
    return matrix


OUT_OF_RANGE = {
    "columns": (_changed("indices", 10**6), r"must have columns in 0\.\.2, got 0\.\.1000000"),
    "negative columns": (_changed("indices", -1), r"must have columns in 0\.\.2, got -1\.\.1"),
    "negative columns that ascend": (_changed("indices", -1, at=1), r"must have columns in 0\.\.2, got -1\.\.2"),
    "bounds": (_changed("indptr", 99), "must have an `indptr` that rises from 0 to at most 6, its stored entries"),
    "rows by column": (_changed("indices", 7).T, r"must have rows in 0\.\.2, got 0\.\.7"),
    "blocks": (sp.bsr_array(np.eye(4), blocksize=(2, 2)), r"must have rows and columns within its shape \(4, 4\)"),
    "pairs": (sp.coo_array(np.eye(3)), r"must have rows in 0\.\.2, got 0\.\.9"),
    "not finite": (_changed("data", np.nan), "the values of .* must be finite, got nan for user 2 and item 2"),
}
OUT_OF_RANGE["blocks"][0].indices[-1] = 9
OUT_OF_RANGE["pairs"][0].coords[0][-1] = 9


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_matrices_are_checked_at_the_door(name: str) -> None:
    """SciPy does not look at indices, and compiled loops would follow them out of bounds."""
    matrix, message = OUT_OF_RANGE[name]
    good = sp.csr_array(np.eye(matrix.shape[0]))
    doors: list[Callable[[], object]] = [
        lambda: tr.Interactions(matrix),
        lambda: tr.IALS(factors=2, rng=0).fit(matrix),
        lambda: tr.EASE().fit(matrix),
        lambda: tr.ItemKNN().fit(matrix),
        lambda: tr.Popularity().fit(matrix),
        lambda: tr.rank(np.zeros(good.shape), train=matrix, test=good),
        lambda: tr.rank(np.zeros(good.shape), test=matrix),
        lambda: tr.Similarity(good, matrix),
        lambda: tr.leave_k_out(matrix, rng=0),
    ]
    if name != "not finite":
        doors += [lambda: tr.Similarity(matrix, good), lambda: tr.ScoreMatrix(matrix)]
    for door in doors:
        with pytest.raises(tr.InputError, match=message):
            door()


def test_scores_in_sparse_matrices_may_be_out_of_order_and_repeated() -> None:
    plain = np.random.default_rng(0).random((4, 4)).round(2)
    mixed = sp.csr_array(plain)
    mixed.indices[:4], mixed.data[:4] = mixed.indices[3::-1].copy(), mixed.data[3::-1].copy()
    twice = sp.csr_array((np.repeat(plain.ravel() / 2, 2), np.repeat(np.tile(np.arange(4), 4), 2), np.arange(0, 40, 8)))
    history = sp.csr_array(np.tri(4, 4)[::-1])
    expected = tr.Similarity(plain, history).scores(np.arange(4))
    for matrix in (mixed, twice):
        before = matrix.copy()
        np.testing.assert_allclose(tr.Similarity(matrix, history).scores(np.arange(4)), expected, rtol=1e-12)
        np.testing.assert_allclose(tr.ScoreMatrix(matrix).scores(np.arange(4)), plain, rtol=1e-12)
        assert np.array_equal(matrix.indices, before.indices)
