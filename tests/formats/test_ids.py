"""Ids keep their spelling, and two are the same if they are spelled the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truerank as tr
from truerank.formats.ids import as_names, comparable, numbered, numbers_if_spelled_so

SPELLED = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.from_regex(r"[-+]?0?[0-9]{1,4}", fullmatch=True),
    st.sampled_from(["0", "-0", "00", "-", "", "0x1F", " 7", "1e3", "7.0", "18446744073709551615", "９"]),
)


def spells_a_number(text: str) -> bool:
    """Whether a text is what Python prints for a whole number."""
    try:
        return str(int(text)) == text
    except ValueError:
        return False


@given(texts=st.lists(SPELLED, min_size=1), cut=st.integers(0, 9))
def test_text_becomes_numbers_only_if_nothing_is_lost(texts: list[str], cut: int) -> None:
    chunks = [texts[:cut], texts[cut:]]
    column = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks])
    found = numbers_if_spelled_so(column)
    numbers = [int(text) for text in texts] if all(map(spells_a_number, texts)) else []
    signed = bool(numbers) and -(2**63) <= min(numbers) <= max(numbers) < 2**63
    unsigned = bool(numbers) and 0 <= min(numbers) <= max(numbers) < 2**64
    assert pa.types.is_integer(found.type) == (signed or unsigned)
    assert [str(value) for value in found.to_pylist()] == texts


@given(
    parts=st.lists(
        st.one_of(
            st.lists(st.integers(-5, 5), min_size=1),
            st.lists(st.integers(2**63 - 2, 2**64 - 1), min_size=1).map(lambda ids: np.array(ids, dtype=np.uint64)),
            st.lists(st.sampled_from(["0", "1", "01", "a", "9223372036854775808"]), min_size=1),
        ),
        min_size=2,
        max_size=3,
    )
)
def test_ids_of_any_two_sources_compare_by_their_spelling(parts: list[Any]) -> None:
    columns = [pa.chunked_array([pa.array(part)]) for part in parts]
    columns = [column.cast(pa.large_string()) if pa.types.is_string(column.type) else column for column in columns]
    found = [column.to_pylist() for column in comparable(*columns)]
    flat = [
        (str(id_), mine) for part, own in zip(parts, found, strict=True) for id_, mine in zip(part, own, strict=True)
    ]
    for text, mine in flat:
        for other, yours in flat:
            assert (text == other) == (mine == yours)


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_zero_padded_ids_match_in_a_trec_run_and_a_csv_file(tmp_path: Path) -> None:
    run = write(tmp_path, "run", "0012 Q0 007 1 0.5 t\n0012 Q0 7 2 0.4 t\n")
    truth = write(tmp_path, "truth.csv", "user,item\n0012,007\n")
    assert tr.values(tr.read_lists(run, truth), "rr@2").tolist() == [1.0]


def test_zero_padded_ids_match_if_one_file_has_other_ids_too(tmp_path: Path) -> None:
    run = write(tmp_path, "run.csv", "user,item,score\n0012,0001,2\n0012,0002,1\n0013,0001,1\n")
    truth = write(tmp_path, "truth.csv", "user,item\n0012,0002\n0013,0001\nx,0001\n")
    assert tr.values(tr.read_lists(run, truth), "rr@2").tolist() == [0.5, 1.0, 0.0]


def test_zero_padded_ids_match_in_train_and_test(tmp_path: Path) -> None:
    train = write(tmp_path, "train.csv", "user,item\n0012,0000316769\n0013,B00005N5PF\n")
    test = write(tmp_path, "test.csv", "user,item\n0012,0000316769\n0013,0000316769\n")
    split = tr.read_split(train, test)
    assert split.train.names.tolist() == ["0012", "0013"]
    assert split.test.item_names.tolist() == ["0000316769", "B00005N5PF"]


def test_padded_and_plain_ids_differ(tmp_path: Path) -> None:
    data = tr.read_interactions(write(tmp_path, "a.csv", "user,item\n7,1\n07,1\n 7 ,2\n"))
    assert data.names.tolist() == ["07", "7"]
    assert data.matrix.toarray().tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_keep_numbers_and_text(make: Callable[[Any], Any]) -> None:
    data = tr.read_interactions(make({"user": [7, 12], "item": ["007", "7"]}))
    assert data.names.tolist() == [7, 12]
    assert data.item_names.tolist() == ["007", "7"]


LARGE = [2**63, 2**63 + 1, 2**64 - 1]


def test_unsigned_ids_stay_apart_in_ranks() -> None:
    ids = pd.Series(LARGE, dtype="uint64")
    ranks = tr.read_ranks(pd.DataFrame({"user": ids, "rank": [1, 2, 3], "n": [9, 9, 9]}))
    assert ranks.ids is not None
    assert ranks.ids.tolist() == LARGE
    assert ranks.rank.tolist() == [1, 2, 3]


def test_unsigned_ids_in_every_reader(tmp_path: Path) -> None:
    rows = "".join(f"{user},{item},1,9\n" for user in LARGE for item in (*LARGE, 5))
    path = write(tmp_path, "a.csv", "user,item,score,n\n" + rows)
    data = tr.read_interactions(path)
    assert data.names.tolist() == LARGE
    assert data.item_names.tolist() == [5, *LARGE]
    jsonl = write(tmp_path, "a.jsonl", "".join(f'{{"user": {user}, "item": {user}}}\n' for user in LARGE))
    assert tr.read_interactions(jsonl).names.tolist() == LARGE
    ranks = tr.read_lists(path, {LARGE[0]: [LARGE[1]], LARGE[2]: [LARGE[2], 5]})
    assert tr.values(ranks, "recall@4").tolist() == [1.0, 1.0]
    assert ranks.ids is not None
    assert ranks.ids.tolist() == [LARGE[0], LARGE[2]]
    assert tr.read_lists(path, {LARGE[0]: LARGE[:2]}).rank.tolist() == [1, 2]


def test_longer_numbers_are_text(tmp_path: Path) -> None:
    data = tr.read_interactions(write(tmp_path, "a.csv", f"user,item\n{2**64},1\n{2**64 + 1},1\n"))
    assert data.names.tolist() == [str(2**64), str(2**64 + 1)]


def test_dates_in_json_stay_text(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"user": "2019-01-01", "item": ["2020-02-02", "2020-02-03"]}\n')
    data = tr.read_interactions(path)
    assert (data.names.tolist(), data.item_names.tolist()) == (["2019-01-01"], ["2020-02-02", "2020-02-03"])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1.0, 1.5], "row 2: the user id must be a whole number or text, got 1.5"),
        ([1.0, 2.0**60], "row 2: the user id must be text, got 1.15"),
        ([1.0, float("nan")], "row 2: the user is missing"),
        ([True, False], "the user id must be a whole number or text, got True"),
        ([b"a", b"b"], "the user id must be a whole number or text, got b'a'"),
        (["a", "b\0"], "row 2: the user id must not contain a null character"),
    ],
)
def test_what_can_not_be_an_id(ids: list[Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.read_interactions(pl.DataFrame({"user": ids, "item": [1, 2]}))


def test_missing_ids_among_numbers_are_no_names(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "user,item\n1,2\nNA,3\n")
    with pytest.raises(tr.InputError, match=r"a\.csv', line 3: the user is missing"):
        tr.read_interactions(path)
    named = tr.read_interactions(write(tmp_path, "b.csv", "user,item\nUS,2\nNA,3\n"))
    assert named.names.tolist() == ["NA", "US"]


@pytest.mark.parametrize("word", ["NaN", "nan", "null", "NULL", "None", "N/A", "<NA>"])
@pytest.mark.parametrize("role", ["user", "item"])
def test_words_for_missing_values_are_no_ids(word: str, role: str, tmp_path: Path) -> None:
    """As in pandas; such words come from programs that wrote a missing value as text."""
    rows = {"user": ["ann", "bob"], "item": ["x", "y"]}
    rows[role][1] = word
    lines = "".join(f"{user},{item}\n" for user, item in zip(*rows.values(), strict=True))
    message = f"the {role} is missing: {word!r} stands for no value"
    with pytest.raises(tr.InputError, match=rf"a\.csv', line 3: {message}"):
        tr.read_interactions(write(tmp_path, "a.csv", "user,item\n" + lines))
    with pytest.raises(tr.InputError, match=message):
        tr.read_interactions(pl.DataFrame(rows))


def test_one_long_id_does_not_fill_the_memory(tmp_path: Path) -> None:
    rows = "".join(f"{row},1\n" for row in range(2_000)) + "x" * 100_000 + ",1\n"
    with pytest.raises(tr.InputError, match="the user ids are too long: 2001 of them, and one has 100,000 characters"):
        tr.read_interactions(write(tmp_path, "a.csv", "user,item\n" + rows))


def test_no_user_in_common_is_an_error() -> None:
    with pytest.raises(
        tr.InputError, match=r"no user of `truth` is in `run`: the ids do not match \(for example 'u1' and 1\)"
    ):
        tr.read_lists({1: [2, 3]}, {"u1": [2]})
    train, test = pd.DataFrame({"user": ["a"], "item": [1]}), pd.DataFrame({"user": ["b"], "item": [1]})
    with pytest.raises(tr.InputError, match=r"no user of `test` is in `train`: .*\(for example 'b' and 'a'\)"):
        tr.read_split(train, test)


def test_no_item_in_common_is_an_error_where_it_can_not_be_chance() -> None:
    with pytest.raises(
        tr.InputError, match=r"no item .* do not match \(for example, 'i2' is relevant and 2 is listed\)"
    ):
        tr.read_lists({1: [2, 3]}, {1: ["i2"]})
    lists, truth = {1: list(range(20))}, {1: list(range(100, 120))}
    with pytest.raises(tr.InputError, match="no item of `truth` is in `run`"):
        tr.read_lists(lists, truth)
    users = [1] * 20
    train, test = (pd.DataFrame({"user": users, "item": list(side[1])}) for side in (lists, truth))
    with pytest.raises(tr.InputError, match="no item of `test` is in `train`"):
        tr.read_split(train, test)


def test_few_items_in_common_are_noted() -> None:
    ranks = tr.read_lists({1: [2, 3]}, {1: [4]})
    assert ranks.notes == ("only 0 of 1 relevant items are in any list (for example, 4 is relevant and 2 is listed)",)
    ranks = tr.read_lists({1: list(range(100))}, {1: [0, *range(200, 240)]})
    assert ranks.notes == (
        "only 1 of 41 relevant items are in any list (for example, 200 is relevant and 0 is listed)",
    )
    assert tr.read_lists({1: [2, 3]}, {1: [3, 4]}).notes == ()


def test_users_without_a_list_are_counted_with_an_example() -> None:
    notes = tr.read_lists({1: [2, 3]}, {1: [2], 7: [2], 8: [3]}).notes
    assert notes == (
        "2 of 3 users in the truth have no list (for example 7): their relevant items count as below the depth",
    )


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("numbers", [[-3, -3, 0, 7, 7, 9], [7, -3, 7, 9, 0], [5], [2, 2]])
def test_whole_numbers_of_any_width(kind: pa.DataType, numbers: list[int]) -> None:
    half, other = len(numbers) // 2, pa.chunked_array([[7]], pa.int64())
    column = pa.chunked_array([numbers[:half], numbers[half:]], kind)
    assert [one.type for one in comparable(column, other)] == [pa.int64()] * 2
    for columns, listed in (((column,), numbers), ((column, other), [*numbers, 7])):
        distinct, codes = numbered(*columns)
        expected = list(dict.fromkeys(listed))
        assert distinct.to_pylist() == expected
        assert np.concatenate(codes).tolist() == [expected.index(number) for number in listed]
        assert as_names(distinct, "user").dtype == np.int64
