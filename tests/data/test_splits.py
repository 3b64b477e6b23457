"""Splits against slow definitions, their leak checks, and splits that exist as files."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import truerank as tr
from tests import shared

DATA = shared.DATA
Event = tuple[int, int, int]


@st.composite
def tables(draw: st.DrawFn) -> list[Event]:
    """Draw events (user, item, time) with equal times, users with one event, and any order of rows."""
    pairs = draw(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=2))
    return [(user, item, draw(st.integers(0, 3))) for user, item in draw(st.permutations(sorted(pairs)))]


def interactions(events: list[Event]) -> tr.Interactions:
    return tr.read_interactions(pd.DataFrame(events, columns=["user", "item", "time"]))


def pairs(part: tr.Interactions) -> list[tuple[int, int]]:
    return list(zip(part.names[part.users].tolist(), part.item_names[part.items].tolist(), strict=True))


def by_user(events: list[Event]) -> dict[int, list[Event]]:
    users = sorted({user for user, _, _ in events})
    return {user: [event for event in events if event[0] == user] for user in users}


def check_parts(split: tr.Split, events: list[Event]) -> None:
    """Each event is in one part, with what belongs to it."""
    assert sorted(pairs(split.train) + pairs(split.test)) == sorted((user, item) for user, item, _ in events)
    for part in (split.train, split.test):
        assert part.times is not None
        assert part.positions is not None
        found = zip(pairs(part), part.times.tolist(), part.positions.tolist(), strict=True)
        assert all(events[position] == (*pair, time) for pair, time, position in found)
    without = len(by_user(events)) - len({user for user, _ in pairs(split.test)})
    assert any("no held-out event" in note for note in split.notes) == (without > 0)


@given(events=tables(), k=st.integers(1, 3))
def test_leave_last_out(events: list[Event], k: int) -> None:
    """Python's sort is stable: among equal times the order is that of the rows."""
    split = tr.leave_last_out(interactions(events), k)
    held = [
        (user, item)
        for own in by_user(events).values()
        for user, item, _ in sorted(own, key=lambda event: event[2])[-k:]
        if len(own) > k
    ]
    assert sorted(pairs(split.test)) == sorted(held)
    check_parts(split, events)


@given(events=tables(), k=st.integers(1, 3), seed=st.integers(0, 9))
def test_leave_k_out(events: list[Event], k: int, seed: int) -> None:
    split = tr.leave_k_out(interactions(events), k, rng=seed)
    for number, own in enumerate(by_user(events).values()):
        assert split.test.of_user(number).size == (k if len(own) > k else 0)
    check_parts(split, events)


@given(events=tables(), fraction=st.floats(0.01, 0.99), seed=st.integers(0, 9))
def test_hold_out_fraction(events: list[Event], fraction: float, seed: int) -> None:
    split = tr.hold_out_fraction(interactions(events), fraction, rng=seed)
    for number, own in enumerate(by_user(events).values()):
        assert split.test.of_user(number).size == min(int(fraction * len(own) + 0.5), len(own) - 1)
    check_parts(split, events)


@given(events=tables(), at=st.integers(1, 3))
def test_split_by_time(events: list[Event], at: int) -> None:
    held = [(user, item) for user, item, time in events if time >= at]
    if not 0 < len(held) < len(events):
        with pytest.raises(tr.InputError, match=r"a split at .* leaves no (test|training) events"):
            tr.split_by_time(interactions(events), at)
        return
    split = tr.split_by_time(interactions(events), at)
    assert sorted(pairs(split.test)) == sorted(held)
    check_parts(split, events)


@given(events=tables(), fraction=st.floats(0.01, 0.99))
def test_split_by_time_at_a_fraction(events: list[Event], fraction: float) -> None:
    """The latest moment from which on there are enough events."""
    times = [time for _, _, time in events]
    enough = [moment for moment in times if sum(time >= moment for time in times) >= fraction * len(times)]
    if max(enough) == min(times):
        with pytest.raises(tr.InputError, match=r"a split at .* leaves no training events"):
            tr.split_by_time(interactions(events), fraction=fraction)
        return
    split = tr.split_by_time(interactions(events), fraction=fraction)
    assert split.test.times is not None
    assert split.test.times.min() == max(enough)
    check_parts(split, events)


@given(events=tables(), k=st.integers(2, 4), seed=st.integers(0, 9))
def test_k_fold(events: list[Event], k: int, seed: int) -> None:
    assume(len(events) >= k)
    folds = tr.k_fold(interactions(events), k, rng=seed)
    assert len(folds) == k
    assert sorted(itertools.chain.from_iterable(pairs(fold.test) for fold in folds)) == sorted(
        (user, item) for user, item, _ in events
    )
    sizes = np.array([np.diff(fold.test.indptr) for fold in folds])
    assert np.ptp(sizes, axis=0).max() <= 1
    for fold in folds:
        check_parts(fold, events)


def full(n_users: int = 2000, n_items: int = 5) -> tr.Interactions:
    return tr.Interactions.of([list(range(n_items))] * n_users, "data")


@pytest.mark.parametrize(
    "cut",
    [
        lambda data, rng: tr.leave_k_out(data, 2, rng=rng),
        lambda data, rng: tr.hold_out_fraction(data, 0.4, rng=rng),
        lambda data, rng: tr.k_fold(data, 5, rng=rng)[3],
    ],
)
def test_chance_is_fair_and_seeded(cut: Callable[[tr.Interactions, Any], tr.Split]) -> None:
    data = full()
    first, again, other = (pairs(cut(data, rng).test) for rng in (1, np.random.default_rng(1), 2))
    assert first == again
    assert first != other
    share = len(first) / data.items.size
    per_item = np.bincount([item for _, item in first]) / data.n_users
    error = np.sqrt(share * (1 - share) / data.n_users)
    np.testing.assert_array_less(np.abs(per_item - share), 5 * error)


def test_folds_have_about_the_same_size() -> None:
    sizes = [fold.test.items.size for fold in tr.k_fold(full(), 4, rng=0)]
    # each user has a second event in one fold of four, drawn at random
    np.testing.assert_allclose(sizes, 2500, atol=5 * np.sqrt(2000 * 3 / 16))


def test_dates_split_by_time() -> None:
    days = pd.to_datetime(["2019-01-01", "2019-06-01", "2020-01-01"])
    data = tr.read_interactions(pd.DataFrame({"user": [1, 1, 1], "item": [1, 2, 3], "date": days}))
    assert pairs(tr.split_by_time(data, "2019-06-01").test) == [(1, 2), (1, 3)]
    assert pairs(tr.leave_last_out(data).test) == [(1, 3)]
    with pytest.raises(tr.InputError, match="`at` must be a time like those of the events"):
        tr.split_by_time(data, "soon")


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (lambda data: tr.leave_last_out(data), "leave_last_out needs events with times, but they have none"),
        (lambda data: tr.split_by_time(data, 3), "split_by_time needs events with times"),
        (lambda data: tr.split_by_time(data), "give either `at` or `fraction`"),
        (lambda data: tr.split_by_time(data, 3, fraction=0.1), "give either `at` or `fraction`"),
        (lambda data: tr.leave_k_out(data, 0), "`k` must be a whole number from 1, got 0"),
        (lambda data: tr.leave_k_out(data, 1.5), "`k` must be a whole number from 1, got 1.5"),  # type: ignore[arg-type]
        (lambda data: tr.k_fold(data, 1), "`k` must be a whole number from 2, got 1"),
        (lambda data: tr.k_fold(data, 16), r"`k` must be at most the number of events \(15\), got 16"),
        (lambda data: tr.hold_out_fraction(data, 1.0), "`fraction` must lie between 0 and 1, got 1.0"),
    ],
)
def test_bad_arguments(cut: Callable[[tr.Interactions], object], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        cut(full(3))


def timed(rows: list[list[int]], times: list[int]) -> tr.Interactions:
    return tr.Interactions(tr.Interactions.of(rows, "data", n_items=3).matrix, times=np.array(times))


def test_leaks() -> None:
    train = timed([[0], [1]], [5, 3])
    tr.Split(train, timed([[1], [0]], [5, 3])).check(time="user")
    with pytest.raises(tr.InputError, match="1 pair is both in train and in test, first user 1 with item 1"):
        tr.Split(train, timed([[2], [1]], [5, 3])).check()
    with pytest.raises(
        tr.InputError, match=r"1 training event is later than a held-out event of the same user \(first user 1"
    ):
        tr.Split(train, timed([[1], [0, 2]], [5, 3, 2])).check(time="user")
    with pytest.raises(tr.InputError, match=r"1 training event is later than a held-out event \(first user 0"):
        tr.Split(train, timed([[], [0]], [4])).check(time="all")
    tr.Split(train, timed([[], [0]], [4])).check(time="user")
    tr.Split(train, timed([[], []], [])).check(time="all")
    with pytest.raises(tr.InputError, match="must both have times"):
        tr.Split(full(1), tr.Interactions.of([[]], "test", n_items=5)).check(time="user")


def same(one: tr.Interactions, other: tr.Interactions) -> bool:
    arrays = ("user_ids", "item_ids", "times", "ratings", "positions")
    matrices = [
        np.array_equal(getattr(one.matrix, name), getattr(other.matrix, name)) for name in ("indptr", "indices", "data")
    ]
    found = [(getattr(one, name), getattr(other, name)) for name in arrays]
    equal = [np.array_equal(mine, yours) if mine is not None else yours is None for mine, yours in found]
    return all(matrices) and all(equal) and one.matrix.shape == other.matrix.shape and one.notes == other.notes


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    columns = {"user": rng.integers(0, 9, 50), "item": rng.integers(0, 9, 50), "rating": rng.integers(1, 6, 50)}
    return pd.DataFrame({**columns, "time": rng.integers(0, 9, 50)})


@pytest.mark.parametrize(
    "data",
    [
        tr.read_interactions(frame()),
        tr.read_interactions(frame().astype({"user": str}), weight="rating"),
        tr.read_interactions(frame().assign(time=pd.to_datetime(frame()["time"], unit="D"))),
        tr.read_interactions(frame()[["user", "item"]]),
        tr.Interactions.of([[0, 2], [], [1, 3]], "data", n_items=6),
    ],
)
def test_save_and_load(data: tr.Interactions, tmp_path: Path) -> None:
    split = tr.leave_k_out(data, rng=0)
    split.save(tmp_path / "new" / "folder")
    for read in (tr.Split.load, tr.read_split):
        known = read(tmp_path / "new" / "folder")
        assert same(known.train, split.train)
        assert same(known.test, split.test)
        assert known.notes == split.notes


def test_what_is_no_saved_split(tmp_path: Path) -> None:
    with pytest.raises(tr.InputError, match=r"was not written by Split.save: there is no users\.parquet"):
        tr.Split.load(tmp_path)
    tr.leave_k_out(full(3), rng=0).save(tmp_path)
    (tmp_path / "test.parquet").write_text("nonsense")
    with pytest.raises(tr.InputError, match=r"can't read '.*test\.parquet'"):
        tr.Split.load(tmp_path)
    pd.DataFrame({"user": [1]}).to_parquet(tmp_path / "users.parquet")
    (tmp_path / "test.parquet").write_bytes((tmp_path / "train.parquet").read_bytes())
    with pytest.raises(tr.InputError, match=r"was not written by Split\.save\."):
        tr.Split.load(tmp_path)


@pytest.mark.parametrize(
    ("file", "column", "values", "message"),
    [
        ("users", "user", [1, 1, 3], r"users\.parquet' must name each user once"),
        ("train", "user", [1, 2, 9], r"train\.parquet', row 3: user 9 is not in users\.parquet"),
        ("train", "user", ["1", "2", "3"], "has users of type string, but users.parquet has type int64"),
        ("train", "item", [1, 2, None], "it must have one complete column 'item'"),
        ("test", "time", ["x", "y", "z"], "must have numbers in the column 'time', got string"),
        ("test", "weight", [1.0, 2.0, np.inf], "must have finite numbers in the column 'weight'"),
    ],
)
def test_damaged_files_of_a_saved_split(
    file: str, column: str, values: list[Any], message: str, tmp_path: Path
) -> None:
    tr.leave_last_out(interactions([(user, item, item) for user in (1, 2, 3) for item in (1, 2)])).save(tmp_path)
    table = pq.read_table(path := tmp_path / f"{file}.parquet")
    changed = table.set_column(table.column_names.index(column), column, [values])
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(tr.InputError, match=message):
        tr.Split.load(tmp_path)


@pytest.mark.parametrize(
    ("file", "about", "message"),
    [
        ("users", '{"named": {"user": true}}', r"was not written by Split\.save\.$"),
        ("users", "[]", r"was not written by Split\.save\.$"),
        ("test", '["a note", 1]', "its notes must be strings"),
        ("test", "no JSON", r"was not written by Split\.save\.$"),
    ],
)
def test_damaged_words_of_a_saved_split(file: str, about: str, message: str, tmp_path: Path) -> None:
    tr.leave_k_out(full(3), rng=0).save(tmp_path)
    table = pq.read_table(path := tmp_path / f"{file}.parquet")
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"truerank": about}), path)
    with pytest.raises(tr.InputError, match=message):
        tr.Split.load(tmp_path)


def test_parts_must_be_interactions() -> None:
    with pytest.raises(tr.InputError, match=r"`train` must be Interactions, as `Interactions.of` makes them, got \[\]"):
        tr.Split([], full(3))  # type: ignore[arg-type]


def test_notebooks_show_both_parts() -> None:
    shown = tr.leave_last_out(interactions([(1, 1, 1), (1, 2, 2), (2, 1, 5)]))._repr_html_()
    assert [word for word in ("train", "test", "events", "users") if word not in shown] == []


def test_files_of_a_split(tmp_path: Path) -> None:
    (tmp_path / "ml-1m.train.rating").write_text("5\t1\t3\t10\n7\t2\t4\t11\n7\t3\t4\t12\n")
    (tmp_path / "ml-1m.test.rating").write_text("5\t9\t3\t20\n")
    (tmp_path / "ml-1m.test.negative").write_text("(5,9)\t1\n")
    for split in (tr.read_split(tmp_path), tr.read_split(*sorted(tmp_path.glob("*.rating"), reverse=True))):
        assert pairs(split.train) == [(5, 1), (7, 2), (7, 3)]
        assert pairs(split.test) == [(5, 9)]
        assert split.train.names.tolist() == split.test.names.tolist() == [5, 7]
        assert split.notes == ("1 user has no held-out event", "1 held-out item has no training event")
        split.check(time="user")


def test_shared_pairs_are_noted(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("who,item\nann,1\nbob,2\n")
    (tmp_path / "test.csv").write_text("who,item\nann,1\n")
    split = tr.read_split(tmp_path, user="who")
    assert split.notes == ("1 user has no held-out event", "1 pair is both in train and in test")
    with pytest.raises(tr.InputError, match="first user ann with item 1"):
        split.check()


def test_missing_files_of_a_split(tmp_path: Path) -> None:
    with pytest.raises(tr.InputError, match="`test` must be given, unless `train` is a directory that holds both"):
        tr.read_split(tmp_path / "train.csv")
    for name in ("train.csv", "train.tsv"):
        (tmp_path / name).write_text("user,item\n1,1\n")
    with pytest.raises(tr.InputError, match=r"must hold one file called train, .* found train\.csv, train\.tsv"):
        tr.read_split(tmp_path)
    (tmp_path / "train.tsv").unlink()
    with pytest.raises(tr.InputError, match=r"must hold one file called test, .* found none"):
        tr.read_split(tmp_path)


def test_different_shapes() -> None:
    with pytest.raises(tr.InputError, match="must have the same users and items"):
        tr.Split(full(2), full(3))


def test_different_names() -> None:
    one, other = (tr.Interactions(full(2).matrix, user_ids=np.array(names)) for names in (["a", "b"], ["a", "c"]))
    with pytest.raises(tr.InputError, match="the same users in the same order, got users 'b' and 'c' at position 1"):
        tr.Split(one, other)


def test_training_after_the_test_is_found() -> None:
    train = pd.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "time": [5, 9, 1]})
    test = pd.DataFrame({"user": [1, 2], "item": [3, 2], "time": [7, 3]})
    split = tr.read_split(train, test)
    assert "1 training event is later than a held-out event of the same user" in split.notes
    with pytest.raises(tr.InputError, match=r"1 training event is later .* of the same user \(first user 1\)"):
        split.check()
    assert split.check(time="ignore") is split
    untimed = tr.read_split(train.drop(columns="time"), test.drop(columns="time"))
    assert untimed.check() is untimed


def test_random_splits_may_train_on_later_events() -> None:
    events = [(user, item, item) for user in range(9) for item in range(9)]
    split = tr.leave_k_out(interactions(events), rng=0)
    with pytest.raises(tr.InputError, match="training events are later"):
        split.check()


def test_what_is_only_held_out_or_repeated_is_noted() -> None:
    train = pd.DataFrame({"user": [1, 1, 1, 2], "item": [1, 1, 2, 1]})
    test = pd.DataFrame({"user": [1, 3, 4, 4], "item": [7, 1, 8, 8]})
    assert tr.read_split(train, test).notes == (
        "train: 1 event repeats a pair of user and item: the last row counts",
        "test: 1 event repeats a pair of user and item: the last row counts",
        "1 user has no held-out event",
        "2 users with held-out events have no training event",
        "2 held-out items have no training event",
    )


def test_what_read_interactions_accepts_can_be_split(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "events.csv", index=False)
    expected = tr.leave_last_out(tr.read_interactions(frame()))
    for source in (frame(), tmp_path / "events.csv"):
        split = tr.leave_last_out(source)
        assert same(split.train, expected.train)
        assert same(split.test, expected.test)
    lists = {"ann": ["a", "b", "c"], "bob": ["b", "c"]}
    for cut in (tr.leave_k_out, tr.hold_out_fraction):
        assert cut(lists, rng=0).train.names.tolist() == ["ann", "bob"]
    matrix = tr.read_interactions(lists).matrix
    assert len(tr.k_fold(matrix, 2, rng=0)) == 2
    with pytest.raises(tr.InputError, match="split_by_time needs events with times"):
        tr.split_by_time(matrix, 3)


def test_weights_of_zero_are_interactions() -> None:
    matrix = tr.Interactions.of([[0, 2]], "data").matrix * 0
    assert matrix.nnz == 2
    data = tr.Interactions(matrix)
    with pytest.raises(tr.InputError, match="2 pairs are both in train and in test, first user 0 with item 0"):
        tr.Split(data, data).check()


@pytest.mark.skipif(not DATA.is_dir(), reason="the folder ../shared/data is not there")
@pytest.mark.parametrize(
    ("name", "shape", "sizes", "notes"),
    [
        ("ml-1m-leave-last-out", (6_040, 3_706), (994_169, 6_040), ("1 held-out item has no training event",)),
        ("gowalla", (29_858, 40_981), (810_128, 217_242), ()),
    ],
)
def test_real_splits(name: str, shape: tuple[int, int], sizes: tuple[int, int], notes: tuple[str, ...]) -> None:
    split = tr.read_split(DATA / name).check()
    assert split.train.matrix.shape == split.test.matrix.shape == shape
    assert (split.train.items.size, split.test.items.size) == sizes
    assert split.train.item_names.tolist() == list(range(shape[1]))
    assert split.notes == notes


class _Killed(BaseException):
    """Ends saving as a signal would: nothing is cleaned up."""


@pytest.mark.parametrize("step", range(5))
def test_a_stored_split_never_mixes_two(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saving over an older split replaces four files one by one, and may stop before any of them."""
    old, new = (tr.leave_k_out(full(9), rng=seed) for seed in (0, 1))
    assert not same(old.train, new.train)
    old.save(tmp_path)
    done: list[Path] = []
    replace = Path.replace

    def stop_at_step(self: Path, target: Path) -> Path:
        if len(done) == step:
            raise _Killed
        done.append(target)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", stop_at_step)
    if step < 4:
        with pytest.raises(_Killed):
            new.save(tmp_path)
    else:
        new.save(tmp_path)
    monkeypatch.undo()
    assert len(done) == step
    if step in (0, 4):
        assert same(tr.Split.load(tmp_path).train, (old, new)[step // 4].train)
        assert same(tr.Split.load(tmp_path).test, (old, new)[step // 4].test)
    else:
        for read in (tr.Split.load, tr.read_split):
            with pytest.raises(tr.InputError, match="holds files of different splits: saving was interrupted"):
                read(tmp_path)
        new.save(tmp_path)
        assert same(tr.Split.load(tmp_path).train, new.train)


def test_splits_that_were_saved_without_a_digest_are_read(tmp_path: Path) -> None:
    split = tr.leave_k_out(full(4), rng=0)
    split.save(tmp_path)
    for file in tmp_path.glob("*.parquet"):
        table = pq.read_table(file)
        kept = {name: text for name, text in (table.schema.metadata or {}).items() if name != b"truerank_split"}
        pq.write_table(table.replace_schema_metadata(kept), file)
    assert same(tr.Split.load(tmp_path).train, split.train)
    split.save(tmp_path / "new")
    (tmp_path / "train.parquet").write_bytes((tmp_path / "new" / "train.parquet").read_bytes())
    with pytest.raises(tr.InputError, match="holds files of different splits"):
        tr.Split.load(tmp_path)
