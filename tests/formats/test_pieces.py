"""Files that are read a few rows at a time give what they give when read at once."""

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import truerank as tr
from tests.hostile import zipped
from truerank.formats.columns import INTERACTIONS
from truerank.formats.rows import load

ROWS = [("7", "12", 4, 100), ("ann", "12", 3.5, 200), ("7", "-3", 5, 300), ("bob", "12", 1, 400)] * 5


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def cut(size: int) -> None:
        monkeypatch.setattr("truerank.formats.text_files._PIECE", size)
        monkeypatch.setattr("truerank.formats.arrow_tables._ROWS", size)
        monkeypatch.setattr("truerank.formats.arrow_tables._PIECE", size)
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
    "lines within quotes": HEADER + text([(user, f'"{item}\n{user},\n"', 3, 1) for user, item, *_ in NUMBERS]),
    "lines within quotes, carriage returns": (
        HEADER.replace(b"\n", b"\r")
        + text([(user, f'"{item}\r{user},"', 3, 1) for user, item, *_ in NUMBERS], end="\r")
    ),
    "quotes within a field": HEADER + text([(user, f'{item}"', 3, 1) for user, item, *_ in NUMBERS[:-1]]),
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


def test_blanks_after_a_byte_order_mark_are_not_a_field(tmp_path: Path) -> None:
    lists, truth = tmp_path / "run", tmp_path / "qrels"
    lists.write_bytes(b"\xef\xbb\xbf  1 Q0\ta 1  2.0 tag \n 1 Q0 b 2 1.0 tag\n")
    truth.write_bytes(b"\xef\xbb\xbf\t1  0 b\t1 \n")
    assert tr.values(tr.read_lists(lists, truth), "rr@2").tolist() == [1 / 2]


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


def objects(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


PAIRS = [{"user": user, "item": [f"i{item}" for item in range(1 + user % 3)]} for user in range(30)]
EVENTS = [{"user": f"u{user % 7}", "item": user, "rating": 3, "time": 10 * user} for user in range(40)]
JSON = {
    "lists": objects(*PAIRS),
    "text and numbers": objects(*EVENTS),
    "whole numbers, then fractions": objects(*EVENTS, {"user": "ann", "item": 4, "rating": 2.5, "time": 3}),
    "fractions, then whole numbers": objects({"user": "ann", "item": 4, "rating": 2.5, "time": 3}, *EVENTS),
    "large numbers": objects(*({"user": user, "item": 1} for user in (*range(20), 2**64 - 1))),
    "whole numbers written as fractions": objects(*({"user": float(user), "item": 2**63 + user} for user in range(20))),
    "dates": objects(*({"user": "ann", "item": at, "time": f"2024-01-{at}"} for at in range(10, 30))),
    "dates with times further down": objects(
        *({"user": "ann", "item": at, "time": f"2024-01-{at}"} for at in range(10, 30)),
        {"user": "ann", "item": 1, "time": "2024-02-01 10:00:00"},
    ),
    "ids that look like dates, then others": objects(
        *({"user": f"2024-01-{at}", "item": at} for at in range(10, 30)), {"user": "ann", "item": 1}
    ),
    "columns further down": objects({"item": 1, "user": 4, "more": [[1]]}, {"user": 3, "item": 5, "other": None}),
    "empty lines": b"\n\n" + objects(*EVENTS[:9]) + b"\n" * 200 + objects(*EVENTS[9:]) + b"  \n" * 99,
    "no line end at the end": objects(*EVENTS).rstrip(b"\n"),
    "both line ends": objects(*EVENTS).replace(b"\n", b"\r\n"),
    "Latin-1 further down": objects(*EVENTS) + '{"user": "é", "item": 3, "rating": 2, "time": 0}'.encode("latin-1"),
    "UTF-8": objects(*EVENTS, {"user": "é", "item": 3, "rating": 2, "time": 0}),
    "a byte-order mark": b"\xef\xbb\xbf" + objects(*EVENTS),
}


@pytest.mark.parametrize("content", JSON.values(), ids=list(JSON))
def test_json(content: bytes, tmp_path: Path, small_pieces: Callable[[int], None]) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(gzip.compress(content) if len(content) % 2 else content)
    expected = tr.read_interactions(path)
    for size in (1, 333):
        small_pieces(size)
        assert_same(tr.read_interactions(path), expected)


BAD_JSON = {
    "text among numbers": (
        objects(*PAIRS, {"user": "ann", "item": ["a"]}),
        r"JSON parse error: Column\(/user\) changed from number to string in row 31\.$",
        r"'user' must be of one type, got int64 up to row 30 and string after it\.$",
    ),
    "an array": (b'[{"user": 1, "item": 2}]', "is a JSON array; write one object per line instead"),
    "an open bracket": (
        objects(*EVENTS) + b'{"user": "x", "item": 4\n',
        r"or '}' after an object member\. in row 41\.$",
    ),
    "no id": (b"\n" + objects(*EVENTS, {"user": None, "item": 3}), r"events\.jsonl', line 42: the user is missing\.$"),
    "a word for no id": (objects(*EVENTS, {"user": "nan", "item": 3}), r"line 41: the user is missing: 'nan'"),
    "no rating": (objects(*EVENTS, {"user": "ann", "item": 3, "time": 3}), r"line 41: the rating is missing\.$"),
    "deep": (objects(*EVENTS) + b'{"user": ' + b"[" * 99 + b"\n", r"line 41: brackets are nested more than 64 deep\.$"),
    "a lost null": (objects(*PAIRS, {"user": 3, "item": [None]}), r"line 31: the item is missing\.$"),
}


@pytest.mark.parametrize("case", BAD_JSON.values(), ids=list(BAD_JSON))
def test_errors_name_the_row_of_json(
    case: tuple[Any, ...], tmp_path: Path, small_pieces: Callable[[int], None]
) -> None:
    (tmp_path / "events.jsonl").write_bytes(case[0])
    with pytest.raises(tr.InputError, match=case[1]):
        tr.read_interactions(tmp_path / "events.jsonl")
    small_pieces(70)
    with pytest.raises(tr.InputError, match=case[-1]):
        tr.read_interactions(tmp_path / "events.jsonl")


def test_archives_and_streams(
    tmp_path: Path, small_pieces: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = tr.read_interactions({"user": ["ann", "bob"] * 50, "item": [*range(100)]})
    csv = b"user,item\n" + text(list(zip(["ann", "bob"] * 50, range(100), strict=True)))
    pq.write_table(expected.to_arrow(), tmp_path / "a.parquet")
    parquet = (tmp_path / "a.parquet").read_bytes()
    jsonl = objects(*({"user": "bob" if item % 2 else "ann", "item": item} for item in range(100)))
    small_pieces(64)
    monkeypatch.setattr("truerank.formats.sources._IN_MEMORY", 100)
    for plain in (csv, parquet, jsonl):
        packed = gzip.compress(plain)
        for content in (plain, packed, zipped({"a": plain}), zipped({"a.gz": packed})):
            (tmp_path / "file").write_bytes(content)
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
            for source in (tmp_path / "file", "-"):
                found = tr.read_interactions(source)
                assert (found.events != expected.events).nnz == 0
                assert found.item_names.tolist() == list(range(100))


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
