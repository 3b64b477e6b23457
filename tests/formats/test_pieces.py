"""Files that are read a few rows at a time give what they give when read at once."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import truerank as tr
from truerank.formats.columns import INTERACTIONS
from truerank.formats.rows import load

ROWS = [("7", "12", 4, 100), ("ann", "12", 3.5, 200), ("7", "-3", 5, 300), ("bob", "12", 1, 400)] * 5


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def cut(size: int) -> None:
        monkeypatch.setattr("truerank.formats.text_files._PIECE", size)
        monkeypatch.setattr("truerank.formats.arrow_tables._ROWS", size)
        monkeypatch.setattr("truerank.formats.pieces._PENDING", size)

    return cut


def text(rows: list[tuple[Any, ...]], delimiter: str = ",", end: str = "\n") -> bytes:
    return "".join(delimiter.join(map(str, row)) + end for row in rows).encode()


HEADER = b"user,item,rating,time\n"
NUMBERS = [(str(user), item, 3, item) for user in range(9) for item in range(user + 1)]
DATES = [("ann", 1, 3, "2024-01-02"), ("bob", 2, 4, "2024-01-02T10:00:00")] * 9
FILES = {
    "numbers": HEADER + text(NUMBERS),
    "text after numbers": HEADER + text([*NUMBERS, *ROWS]),
    "numbers after text": HEADER + text([*ROWS, *NUMBERS]),
    "whole numbers, then fractions": HEADER + text([*NUMBERS, ("9", 1, 3.5, 1)]),
    "large numbers": HEADER + text([*NUMBERS, (str(2**64 - 1), 1, 3, 1)]),
    "large and negative numbers": HEADER + text([*NUMBERS, (str(2**64 - 1), 1, 3, 1), ("-4", 1, 3, 1)]),
    "ids with blanks around them": HEADER + text([(" 7", "a ", 1, 1), ("7", "a", 2, 2), ("x", "a", 2, 3)] * 4),
    "numbers with blanks around them": HEADER + text([(" 7", "8", 1, 1), ("7", "8 ", 2, 2)] * 9),
    "leading zeros further down": HEADER + text([*NUMBERS, ("007", 1, 3, 1)]),
    "dates": HEADER + text(DATES),
    "empty lines": HEADER + b"\n" + text(NUMBERS) + b"\n" * 200 + text(ROWS) + b"\n" * 99,
    "no line end at the end": (HEADER + text(NUMBERS)).rstrip(b"\n"),
    "carriage returns": HEADER.replace(b"\n", b"\r") + text(NUMBERS, end="\r"),
    "both": HEADER.replace(b"\n", b"\r\n") + text(ROWS, end="\r\n"),
    "quoted": HEADER + text([(f'"a, {user}"', f'"{item}"', 3, 1) for user, item, *_ in NUMBERS]),
    "MovieLens": text(NUMBERS, "::"),
    "uneven blanks": text([("user ", "item", "rating", " time"), *NUMBERS], "  "),
    "uneven further down": text([("user", "item", "rating", "time"), *NUMBERS], " ") + b"3   4  5 6\n",
    "Latin-1 further down": HEADER + text(NUMBERS) + "é,1,2,3\n".encode("latin-1"),
    "a byte-order mark": b"\xef\xbb\xbf" + HEADER + text(NUMBERS),
}


@pytest.mark.parametrize("content", FILES.values(), ids=list(FILES))
def test_text(content: bytes, tmp_path: Path, small_pieces: Callable[[int], None]) -> None:
    path = tmp_path / ("events.csv.gz" if len(content) % 2 else "events.csv")
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    expected = tr.read_interactions(path)
    for size in (1, 30, 100, 333):
        small_pieces(size)
        assert_same(tr.read_interactions(path), expected)


def assert_same(found: tr.Interactions, expected: tr.Interactions) -> None:
    for name in ("user_ids", "item_ids", "indptr", "items", "values", "ratings", "times", "positions"):
        a, b = getattr(found, name), getattr(expected, name)
        np.testing.assert_array_equal(a, b, strict=name != "times")  # dates may have another unit
    assert found.notes == expected.notes


MIXED = {
    "words among numbers": (
        HEADER + text(NUMBERS) + b"1,2,good,4\n",
        "line 47: the rating must be a number, got 'good'",
    ),
    "a number among dates": (
        HEADER + text(DATES) + b"1,2,3,4\n",
        "line 20: the time must be an ISO date like '2024-01",
    ),
    "a field too few": (HEADER + text(NUMBERS) + b"1,2,3\n", "line 47: expected 4 fields, got 3"),
    "a missing id": (HEADER + text(ROWS) + b",2,3,4\n", "line 22: the user is missing"),
    "a word for a missing id": (
        HEADER + text(ROWS) + b"nan,2,3,4\n",
        "line 22: the user is missing: 'nan' stands for no",
    ),
    "NA among numbers": (
        HEADER + text(NUMBERS) + b"NA,2,3,4\n",
        "line 47: the user is missing: 'NA' stands for no value",
    ),
}


@pytest.mark.parametrize(("content", "message"), MIXED.values(), ids=list(MIXED))
@pytest.mark.parametrize("size", [30, 1 << 25])
def test_errors_name_the_line(
    content: bytes, message: str, size: int, tmp_path: Path, small_pieces: Callable[[int], None]
) -> None:
    path = tmp_path / "events.csv"
    path.write_bytes(content)
    small_pieces(size)
    with pytest.raises(tr.InputError, match=message):
        tr.read_interactions(path)


def test_text_is_kept_once(tmp_path: Path, small_pieces: Callable[[int], None]) -> None:
    names = [f"a rather long name of a user {number % 3}" for number in range(300)]
    table = pa.table({"user": names, "item": range(300)})
    pq.write_table(table, tmp_path / "events.parquet")
    (tmp_path / "events.csv").write_text("user,item\n" + "".join(f"{name},{at}\n" for at, name in enumerate(names)))
    small_pieces(400)
    for name in ("events.parquet", "events.csv"):
        rows = load(tmp_path / name, INTERACTIONS)
        assert rows.table["user"].to_pylist() == names
        assert all(chunk.dictionary.to_pylist() == names[:3] for chunk in rows.table["user"].chunks)


@pytest.mark.parametrize("categorical", [False, True])
def test_parquet(tmp_path: Path, small_pieces: Callable[[int], None], categorical: bool) -> None:
    users = pa.array([f"user {number * number % 17}" for number in range(200)])
    unused = pa.DictionaryArray.from_arrays(
        users.dictionary_encode().indices, pa.array([f"user {n}" for n in range(99)])
    )
    table = pa.table({"user": unused if categorical else users, "item": range(200), "rating": [1.5] * 200})
    pq.write_table(table, tmp_path / "events.parquet", row_group_size=64)
    expected = tr.read_interactions(table)
    for size in (1, 7, 1 << 17):
        small_pieces(size)
        assert_same(tr.read_interactions(tmp_path / "events.parquet"), expected)


def test_lists_and_ranks(tmp_path: Path, small_pieces: Callable[[int], None]) -> None:
    rng = np.random.default_rng(0)
    run = tmp_path / "run.csv"
    rows = [(f"u{user}", f"i{item}", rng.integers(9)) for user in range(20) for item in rng.permutation(30)[:8]]
    run.write_bytes(b"user,item,score\n" + text(rows))
    (tmp_path / "ranks.csv").write_bytes(
        b"user,rank,n\n" + text([(user, 1 + at % 8, 30) for at, (user, *_) in enumerate(rows)])
    )
    truth = {f"u{user}": [f"i{user}", "i3"] for user in range(20)}

    def read() -> tuple[Any, ...]:
        lists = tr.read_recommendations(run)
        return (
            tr.read_lists(run, truth),
            tr.read_ranks(tmp_path / "ranks.csv"),
            lists.user_ids.tolist(),
            lists.items.tolist(),
        )

    expected = read()
    small_pieces(50)
    assert read() == expected
